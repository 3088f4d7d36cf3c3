"""One partition of a CompactedTopicState, and its backing map."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from trident_py.errors import DefinitionError
from trident_py.kafka.clients import Cluster
from trident_py.model.canonical import key_of
from trident_py.state import (
    BackingMap,
    ITupleCollection,
    OpaqueMap,
    OpaqueValue,
    RemovableMapState,
    SnapshottableMap,
    StateType,
    TransactionalMap,
    TransactionalValue,
    ValueUpdater,
)
from trident_py.state.base import Key
from trident_py.state.maps import MAPS
from trident_py.tuples import Fields, TridentTuple

from ...rows import share_rows
from ..append.records import chunks_of
from ..marks import ANSWER
from .codec import GLOBAL_KEY, Codec, as_bytes
from .local_table import PAGE, SETTLES, LocalTable, Row, table_of
from .writer import KeyWriter

PLAIN = "plain"


class TopicBacking(BackingMap):
    """Keys and stored values of one state partition: read from the process's local table, written by its writer.

    On replay: does nothing special; the map above it compares the txids.
    """

    def __init__(self, codec: Codec, kind: str, cluster: Cluster, writer: KeyWriter) -> None:
        self.codec = codec
        self.kind = kind
        self.writer = writer
        self.active = False
        self.written = 0
        self._cluster = cluster
        self._table: LocalTable | None = None
        self._read = (-1, -1)  # the writer's producer and the table at the last read to the end
        self._pending: dict[bytes, Row] = {}
        self._sent = False
        self._unread = False

    def begin(self, txid: int | None) -> None:
        self._over()
        self._sent = False
        self.writer.begin(txid)
        self.active, self.txid = True, txid

    def commit(self, txid: int | None) -> None:
        """Send the pending rows, commit, and then puts them into the local table."""
        pending = self._pending
        if pending:
            rows = list(pending.values())
            prevs = None if self.kind == PLAIN else [row.prev for row in rows]
            self.writer.send([row.value for row in rows], list(pending), prevs)
        self.writer.commit(txid)
        self.written += len(pending)
        self._over()
        if pending and self._table is not None:
            self._table.put(pending.items())
        self._unread = self._unread or self._sent or (bool(pending) and self._table is None)

    def rollback(self) -> None:
        self._over()
        self.writer.rollback()

    def _over(self) -> None:
        self.active, self.txid = False, None
        self._pending = {}

    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        if len(keys) == 0:
            return []
        names = as_bytes(self.codec.key_texts(self.codec.split_keys(keys)))
        with self._local_table().lock:  # another thread's query may rebuild it
            rows = self._catch_up().get(names)
        if self._pending:
            rows = [self._pending.get(name, row) for name, row in zip(names, rows, strict=True)]
        return self._values(rows)

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        if len(keys) == 0:
            return
        columns = self.codec.split_keys(keys)
        names = as_bytes(self.codec.key_texts(columns))
        txids, values, prevs = self._split(vals)
        texts = self.codec.value_texts(self.codec.split_values(values), columns)
        olds: Sequence[str | None] = [None] * len(texts)
        if self.kind == "opaque":
            olds = self.codec.value_texts(self.codec.split_values(prevs), columns)
        for name, text, txid, old in zip(names, texts, txids, olds, strict=True):
            self._pending[name] = Row(_bytes(text), txid, _bytes(old))

    def write(self, tuples: Sequence[TridentTuple]) -> None:
        """Send rows directly, column by column; of several rows of a key the last wins."""
        done = 0
        self._sent = True
        fields: Fields
        for fields, chunk in chunks_of(tuples):
            self.check_fields(fields)
            keys = [chunk.columns[name] for name in self.codec.keys or ()] or [list(GLOBAL_KEY) * chunk.length]
            values = [chunk.columns[name] for name in self.codec.value]
            texts = self.codec.key_texts(keys, values, done)
            self.writer.send(self.codec.value_texts(values, keys, done), texts, None)
            done += chunk.length
        self.written += done

    def check_fields(self, fields: Fields) -> None:
        """Raise DefinitionError unless rows of these fields can be written."""
        names = [*(self.codec.keys or ()), *self.codec.value]
        if set(names) != set(fields):
            raise DefinitionError(
                f"topic {self.codec.topic!r} takes rows of ({', '.join(names)}), got the fields {fields}; give "
                "partitionPersist these fields as its input fields"
            )

    def rows(self) -> Iterator[tuple[tuple, Any]]:
        """Yield all keys with their stored values."""
        rows = self._catch_up().rows()
        while part := list(islice(rows, PAGE)):
            values = self._values([row for _, row in part])
            yield from zip([self.codec.key(name) for name, _ in part], values, strict=True)

    def _catch_up(self) -> LocalTable:
        """Return the local table, read as far as needed.

        Inside a commit it is read to the end once after the producer was opened, since from then on no other process
        writes this partition's keys; and again if the table was rebuilt. This partition's committed records may lie
        behind an open transaction of another one, so it waits for that to end (a plain state does not: it sends before
        it reads). Outside a commit each call catches up with the topic, at least up to its own last commit.
        """
        table = self._local_table()
        if not self.active and self._unread:  # own records may lie behind another partition's open transaction
            table.catch_up(ANSWER, whole=True)
            self._unread = False
        elif not self.active:
            table.catch_up(self._settles())
        elif self._read != (self.writer.opened, table.begun):
            plain = self.kind == PLAIN
            self._read = self.writer.opened, table.catch_up(0.0 if plain else ANSWER, whole=not plain)
        return table

    def _local_table(self) -> LocalTable:
        if self._table is None:
            self._table = table_of(self._cluster, self.codec.topic)
        return self._table

    def _settles(self) -> float:
        """Return how long to wait for open transactions: longer if the last batch wrote, since its own may still be
        ending."""
        return ANSWER / 6 if self.written else SETTLES

    def _values(self, rows: Sequence[Row | None]) -> list[Any]:
        values = self.codec.values([None if row is None else row.value for row in rows])
        if self.kind == "transactional":
            return [None if r is None else TransactionalValue(r.txid, v) for r, v in zip(rows, values, strict=True)]
        if self.kind == "opaque":
            prevs = self.codec.values([None if row is None else row.prev for row in rows])
            triples = zip(rows, values, prevs, strict=True)
            return [None if row is None else OpaqueValue(row.txid, value, prev) for row, value, prev in triples]
        return values

    def _split(self, stored: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """Split stored values into txids, values and previous values."""
        if self.kind == "opaque":
            txids, values, prevs = zip(*stored, strict=True)
            return txids, values, prevs
        if self.kind == "transactional":
            txids, values = zip(*stored, strict=True)
            return txids, values, ()
        return [None if self.kind == PLAIN else self.txid] * len(stored), stored, ()


class CompactedMap(SnapshottableMap, RemovableMapState, ITupleCollection):
    """One partition of a CompactedTopicState.

    On replay: plain writes the keys again with the replay's values, transactional keeps what the batch has written,
    opaque starts again from the previous value, non-transactional applies the batch again.
    """

    def __init__(self, backing: TopicBacking, partition: int, of: int, settle: Callable[[], None] | None) -> None:
        """Make the partition. ``settle``: a driver's work before the first batch, for a state without a driver; else
        None."""
        kind = StateType("non-transactional" if backing.kind == PLAIN else backing.kind)
        super().__init__(MAPS[kind].build(backing), GLOBAL_KEY)
        self.backing = backing
        self.partition = partition
        self.of = of
        self._settle = settle

    def beginCommit(self, txid: int | None) -> None:
        if self._settle is not None:
            self._settle()
            self._settle = None
        self.backing.written = 0
        self.backing.begin(txid)
        super().beginCommit(txid)

    def commit(self, txid: int | None) -> Any:
        super().commit(txid)
        self.backing.commit(txid)
        return {"partition": self.partition, "written": self.backing.written}

    def rollback(self, txid: int | None) -> None:
        super().commit(txid)
        self.backing.rollback()

    def close(self) -> None:
        """Called when the run is over in this process, or another process now runs the partition."""
        self.backing.writer.close()

    def insert(self, tuples: Sequence[TridentTuple], tell: bool) -> Sequence[TridentTuple]:
        """Write the rows under their keys; with ``tell`` returns all rows. Raises StateError for a bad row."""
        if len(tuples) == 0:
            return []
        if self.backing.kind == PLAIN:
            self.backing.write(tuples)
        else:
            self._put(tuples)
        return tuples if tell else []

    def _put(self, tuples: Sequence[TridentTuple]) -> None:
        codec = self.backing.codec
        names, width = codec.keys or Fields(), len(codec.value)
        last: dict[tuple, tuple[tuple, Any]] = {}
        for fields, chunk in chunks_of(tuples):
            self.backing.check_fields(fields)
            keys = chunk.rows(names) if len(names) else [GLOBAL_KEY] * chunk.length
            rows = chunk.rows(codec.value)
            for key, row in zip(keys, rows, strict=True):
                empty = all(value is None for value in row)
                last[key_of(key)] = key, None if empty else row[0] if width == 1 else row
        self.multiPut([key for key, _ in last.values()], [value for _, value in last.values()])

    def multiUpdate(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater]) -> list[Any]:
        if self.backing.kind == PLAIN:
            raise DefinitionError(
                f"topic {self.backing.codec.topic!r}: a plain compacted topic cannot be updated, since its records do "
                'not identify a replay. For persistentAggregate choose kind="opaque" or kind="transactional" (or '
                '"non-transactional", which counts a replay twice)'
            )
        return self.delegate.multiUpdate(keys, updaters)

    def multiRemove(self, keys: Sequence[Key]) -> None:
        """Write tombstones."""
        self.multiPut(keys, [None] * len(keys))

    def get(self) -> Any:
        self._check_global()
        return super().get()

    def update(self, updater: ValueUpdater) -> Any:
        self._check_global()
        return self.multiUpdate(self.snapshotKey, [updater])[0]

    def set(self, value: Any) -> None:
        self._check_global()
        super().set(value)

    def getTuples(self) -> Iterator[list[Any]]:
        single = len(self.backing.codec.value) == 1
        for key, stored in share_rows(self.backing.rows(), self.partition, self.of):
            value = stored[1] if isinstance(self.delegate, TransactionalMap | OpaqueMap) else stored
            yield [*key, value] if single else [*key, *value]

    def _check_global(self) -> None:
        codec = self.backing.codec
        if codec.keys is not None:
            raise DefinitionError(f"topic {codec.topic!r} has the keys {codec.keys}: a global aggregate needs key=None")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
