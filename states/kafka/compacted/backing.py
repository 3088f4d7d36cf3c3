"""One partition of a CompactedTopicState: its backing map, and its writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from trident_py.kafka.clients import Cluster
from trident_py.model.canonical import key_of
from trident_py.state import (
    BackingMap,
    ITupleCollection,
    OpaqueMap,
    OpaqueValue,
    RemovableMapState,
    SnapshottableMap,
    StateFactory,
    StateType,
    TransactionalMap,
    TransactionalValue,
    ValueUpdater,
)
from trident_py.state.base import Key
from trident_py.state.fit import check_call
from trident_py.state.maps import MAPS
from trident_py.tuples import Fields, TridentTuple

from ...rows import share_rows
from ..append.records import chunks_of
from ..fence import TopicFence
from ..marks import ANSWER, Mark
from ..producer import TransactionalProducer
from .codec import GLOBAL_KEY, Codec, Text, as_bytes
from .local_table import GENERATION, PAGE, PREV, SETTLES, LocalTable, Row, format_txid, table_of


class KeyWriter:
    """One Kafka transaction for each batch, under the fixed transactional id of the state partition. ``opened`` counts
    the producers opened: before a new one, another process may have written."""

    def __init__(self, fence: TopicFence, part: int, of: int, settings: Mapping[str, Any]) -> None:
        self._fence = fence
        self._part = part
        self._of = of
        self._producer = TransactionalProducer(fence.place, part, settings)
        self._own = Mark()
        self._txid: int | None = None
        self.opened = 0

    def begin(self, txid: int | None) -> None:
        """Begin a transaction. Raises ZombieError for an older driver, attempt or batch; FailedException if the broker
        is away."""
        behind = txid is not None and txid < self._own.txid
        stays = self._producer.is_open and self._fence.attempt == 0 and not behind
        if not stays or not self._producer.shows(self._own.txid):
            _, self._own = self._fence.take_over(self._producer, self._part, txid, self._own)
            self.opened += 1
        self._txid = txid
        self._producer.begin()

    def send(self, values: Sequence[Text | None], keys: Sequence[Text], prevs: Sequence[Any] | None = None) -> None:
        """Write records. ``prevs``: the previous value of each record, or None; given, the records get headers."""
        topic = self._fence.place.topic
        if prevs is None:
            self._producer.send(topic, values, keys)  # type: ignore[arg-type]
            return
        common = [(GENERATION, str(self._fence.generation).encode()), *format_txid(self._txid)]
        headers = [common if prev is None else [*common, (PREV, prev)] for prev in prevs]
        self._producer.send(topic, values, keys, headers)  # type: ignore[arg-type]

    def commit(self, txid: int | None) -> None:
        """Commit the records and the mark. Raises FailedException if the batch must be replayed."""
        mark = self._fence.mark(self._own, txid, self._of)
        self._producer.commit(mark)
        self._own = mark

    def rollback(self) -> None:
        self._producer.abort()

    def close(self) -> None:
        self._producer.close()


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
        self.txid: int | None = None
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

    def close(self) -> None:
        self.writer.close()
        if self._table is not None:
            self._table.leave()

    def _over(self) -> None:
        self.active, self.txid = False, None
        self._pending = {}

    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        if len(keys) == 0:
            return []
        names = as_bytes(self.codec.key_texts(self.codec.split_keys(keys), row=0 if self.active else None))
        with self._local_table().lock:  # another thread's query may rebuild it
            rows = self._catch_up().get(names)
        if self._pending:
            rows = [self._pending.get(name, row) for name, row in zip(names, rows, strict=True)]
        return self._values(rows)

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        if len(keys) > 0:
            self._pending |= self.rows_of(keys, vals)

    def rows_of(self, keys: Sequence[Key], vals: Sequence[Any]) -> dict[bytes, Row]:
        """Return the rows of stored values by their keys. Raises StateError for what they cannot hold."""
        columns = self.codec.split_keys(keys)
        names = as_bytes(self.codec.key_texts(columns))
        txids, values, prevs = self._split(vals)
        texts = self.codec.value_texts(self.codec.split_values(values), columns)
        olds: Sequence[str | None] = [None] * len(texts)
        if self.kind == "opaque":
            olds = self.codec.value_texts(self.codec.split_values(prevs), columns)
        return {
            name: Row(_bytes(text), txid, _bytes(old))
            for name, text, txid, old in zip(names, texts, txids, olds, strict=True)
        }

    def write(self, tuples: Sequence[TridentTuple]) -> None:
        """Send rows directly, column by column; of several rows of a key the last wins."""
        done = 0
        self._sent = True
        fields: Fields
        for fields, chunk in chunks_of(tuples):
            self.codec.check_fields(fields)
            keys = [chunk.columns[name] for name in self.codec.keys or ()] or [list(GLOBAL_KEY) * chunk.length]
            values = [chunk.columns[name] for name in self.codec.value]
            texts = self.codec.key_texts(keys, values, done)
            self.writer.send(self.codec.value_texts(values, keys, done), texts, None)
            done += chunk.length
        self.written += done

    def rows(self) -> Iterator[tuple[tuple, Any]]:
        """Yield all keys with their stored values."""
        rows = self._catch_up().rows()
        while part := list(islice(rows, PAGE)):
            values = self._values([row for _, row in part])
            yield from zip([self.codec.key(name) for name, _ in part], values, strict=True)

    def count(self) -> int:
        """Return how many keys there are, with those whose value is null under a txid."""
        return self._catch_up().count()

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

    def __init__(
        self, factory: StateFactory, backing: TopicBacking, partition: int, of: int, settle: Callable[[], None] | None
    ) -> None:
        """Make the partition. ``settle``: a driver's work before the first batch, for a state without a driver; else
        None."""
        kind = StateType("non-transactional" if backing.kind == PLAIN else backing.kind)
        super().__init__(MAPS[kind].build(backing), GLOBAL_KEY)
        self.factory = factory
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
        self.backing.close()

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
            codec.check_fields(fields)
            keys = chunk.rows(names) if len(names) else [GLOBAL_KEY] * chunk.length
            rows = chunk.rows(codec.value)
            for key, row in zip(keys, rows, strict=True):
                empty = all(value is None for value in row)
                last[key_of(key)] = key, None if empty else row[0] if width == 1 else row
        self.multiPut([key for key, _ in last.values()], [value for _, value in last.values()])

    def multiUpdate(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater]) -> list[Any]:
        check_call(self.factory, "multiUpdate")
        return self.delegate.multiUpdate(keys, updaters)

    def multiRemove(self, keys: Sequence[Key]) -> None:
        """Write tombstones."""
        self.multiPut(keys, [None] * len(keys))

    def get(self) -> Any:
        check_call(self.factory, "get")
        return super().get()

    def update(self, updater: ValueUpdater) -> Any:
        check_call(self.factory, "update")
        return self.multiUpdate(self.snapshotKey, [updater])[0]

    def set(self, value: Any) -> None:
        check_call(self.factory, "set")
        super().set(value)

    def getTuples(self) -> Iterator[list[Any]]:
        single = len(self.backing.codec.value) == 1
        for key, stored in share_rows(self.backing.rows(), self.partition, self.of):
            value = stored[1] if isinstance(self.delegate, TransactionalMap | OpaqueMap) else stored
            yield [*key, value] if single else [*key, *value]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
