"""A local table of this process with the latest record of every key of a topic; it follows the topic.

The table is a temporary SQLite file, which ends with the process. It takes about twice the bytes of keys and values on
disk, and its page cache in memory. One table serves all states of a process over one topic. Before it answers, it reads
up to the last stable offset. Compaction leaves gaps in the offsets, which do no harm: only the last record of a key
counts.

Brokers remove a tombstone ``delete.retention.ms`` after its compaction, so a table not read for longer starts anew.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from trident_py.errors import FailedException, StateError
from trident_py.kafka import confluent
from trident_py.kafka.blocking_calls import call_client, offsets_of
from trident_py.kafka.clients import ASKING, Cluster, means
from trident_py.kafka.error_codes import Meaning

from ..advice import kafka_errors
from ..marks import ANSWER
from ..topic_admin import count_partitions, partitions_of, settings_of, unless_missing

log = logging.getLogger("states.kafka")

TXID = "trident-txid"
PREV = "trident-prev"
GENERATION = "trident-generation"
SETTLES = 0.2
"""For how many seconds a query waits for transactions that are open when it begins: most commit within this time."""
CACHE_KIB = 16_384
PAGE = 5_000
ASKED, READ = 500, 20_000
CONSUMER = {
    "group.id": "trident-table", **ASKING, "enable.partition.eof": True,
    "isolation.level": "read_committed", "auto.offset.reset": "error", "fetch.wait.max.ms": 100,
    "queued.max.messages.kbytes": 16_384, "fetch.message.max.bytes": 4_194_304,
}  # fmt: skip

_UPSERT = (
    "INSERT INTO t VALUES (?, ?, ?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v, txid = excluded.txid, "
    "prev = excluded.prev WHERE excluded.txid IS NULL OR t.txid IS NULL OR excluded.txid >= t.txid"
)


def format_txid(txid: int | None) -> list[tuple[str, bytes]]:
    """Return the header of a record that tells its batch, if it has one."""
    return [] if txid is None else [(TXID, str(txid).encode())]


class Row(NamedTuple):
    """The last record of a key; ``value`` None: a tombstone with a txid."""

    value: bytes | None
    txid: int | None = None
    prev: bytes | None = None


_tables: weakref.WeakValueDictionary[tuple[int, Cluster, str], LocalTable] = weakref.WeakValueDictionary()
_making = threading.Lock()


def table_of(cluster: Cluster, topic: str) -> LocalTable:
    """Return this process's table of the topic, until `LocalTable.leave`; it is freed with its last reference."""
    with _making:
        key = (os.getpid(), cluster, topic)
        table = _tables.get(key)
        if table is None:
            table = _tables[key] = LocalTable(cluster, topic)
        return table


class LocalTable:
    """The latest record of every key. Keys are bytes; a record without a key is an error. Thread-safe."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self.lock = threading.RLock()
        self._retention: float | None = None
        self._partitions = 0
        self.begun = 0
        self._told = False
        self._begin()

    def _begin(self) -> None:
        self.begun += 1
        self._rows: Any = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        for name, value in (("journal_mode", "OFF"), ("synchronous", "OFF"), ("cache_size", -CACHE_KIB)):
            self._rows.execute(f"PRAGMA {name} = {value}")
        self._rows.execute("CREATE TABLE t (k BLOB PRIMARY KEY, v BLOB, txid INTEGER, prev BLOB) WITHOUT ROWID")
        self._at: dict[int, int] = {}
        self._consumer: Any = None
        self._reached = time.monotonic()

    def catch_up(self, settles: float = SETTLES, whole: bool = False) -> int:
        """Read all records committed by now. ``settles``: for how many seconds to wait for open transactions.
        ``whole``: a transaction that stays open for longer is an error. Returns ``begun``, the number of times the
        table was started anew; the current one has been read to the end. A topic that is not there yet has no records;
        with ``whole``, as inside a commit, it must be there, and so must one that was read before.

        Raises FailedException if the broker is away, StateError for records that no state has written.
        """
        with self.lock, kafka_errors(self._cluster, f"read topic {self._topic!r} back"):
            try:
                if not (whole or self._at) and self._is_missing():
                    return self.begun
                if self._stale():
                    self._begin()
                began = self._reached if self._at else time.monotonic()
                self._follow(self._ends(settles, whole))
                self._reached = time.monotonic()
                self._warn(self._reached - began)
                return self.begun
            except BaseException:
                self._consumer = None  # drops its fetched records; the next consumer starts at ``_at``
                raise

    def _is_missing(self) -> bool:
        there = unless_missing(self._cluster, self._topic, lambda: partitions_of(self._admin, self._topic)) is not None
        if not (there or self._told):
            log.warning("topic %r does not exist, or not yet: until it does, it has no values", self._topic)
            self._told = True
        return not there

    def _stale(self) -> bool:
        """Return whether a tombstone may have been written and removed since the table last reached the end."""
        if self._retention is None:
            self._retention = int(settings_of(self._admin, self._topic)["delete.retention.ms"]) / 1000
        return bool(self._at) and time.monotonic() - self._reached > self._retention

    def _warn(self, seconds: float) -> None:
        if self._retention is not None and seconds > self._retention:
            log.warning(
                "topic %r took %.1f s to read back, but keeps tombstones for %.1f s only: a key that was removed "
                "meanwhile may still be there. Raise its delete.retention.ms", self._topic, seconds, self._retention,
            )  # fmt: skip

    @cached_property
    def _admin(self) -> Any:
        return self._cluster.admin()

    def _ends(self, settles: float, whole: bool) -> dict[int, int]:
        """Return the last stable offset of each partition; only transactions that stayed open lie beyond it."""
        if self._consumer is None:
            self._partitions = len(partitions_of(self._admin, self._topic))
        else:
            self._partitions = count_partitions(self._consumer, self._topic)
        wanted = self._offsets(confluent.IsolationLevel.READ_UNCOMMITTED)
        until = time.monotonic() + settles
        while True:  # not `again_for`: repeats for an answer, not for an error
            stable = self._offsets(confluent.IsolationLevel.READ_COMMITTED)
            if all(stable[part] >= end for part, end in wanted.items()):
                return stable
            if time.monotonic() > until:
                if whole:
                    raise self._open_transaction_error(settles)
                return stable
            time.sleep(0.002)

    def _open_transaction_error(self, seconds: float) -> FailedException:
        return FailedException(
            f"Kafka at {self._cluster.bootstrap}: a transaction in topic {self._topic!r} stays open for more than "
            f"{seconds:g} s, and hides the records committed after it; the batch will be replayed. Brokers end the "
            "transaction after its producer's transaction.timeout.ms; kafka-transactions.sh list shows its producer"
        )

    def _offsets(self, isolation: Any, earliest: bool = False) -> dict[int, int]:
        spec = confluent.OffsetSpec.earliest() if earliest else confluent.OffsetSpec.latest()
        wanted = {confluent.TopicPartition(self._topic, part): spec for part in range(self._partitions)}
        return {at.partition: offset for at, offset in offsets_of(self._admin, wanted, isolation, ANSWER).items()}

    def _follow(self, ends: dict[int, int]) -> None:
        self._begin_at(ends)
        if all(self._at[part] >= end for part, end in ends.items()):
            return
        if self._consumer is None:
            self._consumer = self._start_consumer()
        heard = time.monotonic()
        while any(self._at[part] < end for part, end in ends.items()):
            first = call_client(self._consumer.consume, 1, 0.1)  # returns at the first record; then take all that wait
            if first:
                self._take([*first, *call_client(self._consumer.consume, READ, 0.005)])
                heard = time.monotonic()
            elif time.monotonic() - heard > ANSWER:
                raise FailedException(
                    f"Kafka at {self._cluster.bootstrap}: no more records of topic {self._topic!r} arrived for "
                    f"{ANSWER:g} s, at {self._at} of {ends}. The batch will be replayed"
                )

    def _begin_at(self, ends: dict[int, int]) -> None:
        if any(self._at.get(part, 0) > end for part, end in ends.items()):
            log.warning("topic %r ends before the last offset read: it was recreated, and is read again", self._topic)
            self._begin()
        if not set(ends) <= set(self._at):
            first = self._offsets(confluent.IsolationLevel.READ_UNCOMMITTED, earliest=True)
            self._at = {part: self._at.get(part, offset) for part, offset in first.items()}
            self._consumer = None

    def _start_consumer(self) -> Any:
        consumer = self._cluster.consumer(CONSUMER)
        call_client(consumer.list_topics, self._topic, ANSWER)  # connect first: else librdkafka waits half a second
        starts = [confluent.TopicPartition(self._topic, part, offset) for part, offset in self._at.items()]
        call_client(consumer.assign, starts)
        return consumer

    def _take(self, messages: Sequence[Any]) -> None:
        """Apply records and note the offsets reached. The end of a partition is a message of its own, since transaction
        markers after the last record have offsets, too."""
        rows: dict[bytes, Row] = {}
        at: dict[int, int] = {}
        for message in messages:
            error = message.error()
            if error is None:
                key, headers = message.key(), message.headers()
                if key is None:
                    raise self._keyless(message)
                rows[key] = Row(message.value()) if headers is None else self._row(message, headers)
                at[message.partition()] = message.offset() + 1
            elif error.code() == confluent.KafkaError._PARTITION_EOF:
                at[message.partition()] = message.offset()
            elif error.code() == confluent.KafkaError._AUTO_OFFSET_RESET:
                self._begin()
                raise FailedException(
                    f"topic {self._topic!r}: its records at {message.offset()} are gone: it was recreated, or records "
                    "were deleted. It is read again from its beginning, and the batch will be replayed"
                )
            elif means(error, Meaning.REFUSED):  # never skip an unreadable record
                raise confluent.KafkaException(error)
        self._write(rows)
        self._at.update((part, max(offset, self._at[part])) for part, offset in at.items())

    def _row(self, message: Any, headers: Sequence[tuple[str, bytes | None]]) -> Row:
        values = dict(headers)
        txid = values.get(TXID)
        try:
            return Row(message.value(), None if txid is None else int(txid), values.get(PREV))
        except ValueError as error:
            raise StateError(
                f"{self._at_record(message)}: the header {TXID} is {txid!r}, which is not a txid. Another program "
                "writes the topic: use another topic for the state"
            ) from error

    def _at_record(self, message: Any) -> str:
        return f"topic {self._topic!r}, partition {message.partition()}, offset {message.offset()}"

    def _keyless(self, message: Any) -> StateError:
        return StateError(
            f"{self._at_record(message)}: a record without a key, written before the topic was compacted. Use another "
            "topic, or delete the records up to this one"
        )

    def leave(self) -> None:
        """Called when a state that may have put rows is closed. The next one reads the topic anew: it may have been put
        back meanwhile, to an end that was not read beyond."""
        with _making:
            key = (os.getpid(), self._cluster, self._topic)
            if _tables.get(key) is self:
                del _tables[key]

    def put(self, rows: Iterable[tuple[bytes, Row]]) -> None:
        """Add rows that this process has committed itself, so they need not be read back."""
        with self.lock:
            self._write(dict(rows))

    def _write(self, rows: dict[bytes, Row]) -> None:
        removed = [(key,) for key, row in rows.items() if row.value is None and row.txid is None]
        kept = sorted((key, *row) for key, row in rows.items() if row.value is not None or row.txid is not None)
        try:
            self._rows.execute("BEGIN")
            self._rows.executemany("DELETE FROM t WHERE k = ?", removed)
            self._rows.executemany(_UPSERT, kept)
            self._rows.execute("COMMIT")
        except sqlite3.Error as error:
            self._begin()
            raise StateError(
                f"topic {self._topic!r}: its local table cannot be written: {error}. It needs room for all keys and "
                "values in the folder for temporary files (SQLITE_TMPDIR, TMPDIR)"
            ) from error

    def get(self, keys: Sequence[bytes]) -> list[Row | None]:
        """Return the rows in the order of the keys."""
        rows: dict[bytes, Row] = {}
        wanted = sorted(set(keys))
        with self.lock:
            for at in range(0, len(wanted), ASKED):
                some = wanted[at : at + ASKED]
                marks = ",".join("?" * len(some))
                selected = self._rows.execute(f"SELECT k, v, txid, prev FROM t WHERE k IN ({marks})", some)  # noqa: S608  columns of our own
                rows.update((row[0], Row._make(row[1:])) for row in selected)
        return list(map(rows.get, keys))

    def last_txid(self) -> int:
        """Return the highest txid of a row, 0 if there is none."""
        with self.lock:
            return int(self._rows.execute("SELECT max(txid) FROM t").fetchone()[0] or 0)

    def count(self) -> int:
        """Return how many keys have a row."""
        with self.lock:
            return int(self._rows.execute("SELECT count(*) FROM t").fetchone()[0])

    def rows(self) -> Iterator[tuple[bytes, Row]]:
        """Yield all keys that have a value, in the order of their bytes."""
        last = None
        while True:
            where, after = ("", ()) if last is None else ("AND k > ?", (last,))
            with self.lock:
                text = f"SELECT k, v, txid, prev FROM t WHERE v IS NOT NULL {where} ORDER BY k LIMIT {PAGE}"  # noqa: S608  columns of our own
                page = self._rows.execute(text, after).fetchall()
            if not page:
                return
            for key, *row in page:
                yield key, Row._make(row)
            last = page[-1][0]
