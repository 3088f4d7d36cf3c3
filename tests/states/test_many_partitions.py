"""128 partitions of a state commit one batch with all their transactions open at once: none waits for a lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import databases
import pytest

from states.sql import InsertIgnoreState, RowUpdater, SqlMapState
from states.sql.store import close_stores, parse_url, store_of
from trident_py.model.context import with_context
from trident_py.operations.builtin import Sum
from trident_py.state import SILENT, MapCombinerAggStateUpdater, OpaqueValue, StateFactory, StateUpdater, persist
from trident_py.tuples import TridentTuple

PARTITIONS = 128
KEYS = 4  # of each partition
PATIENCE = 120.0
_WAITS = {
    **dict.fromkeys(databases.MYSQLS, "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_waits'"),
    "postgresql": "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype <> 'extend'",
}
_OPEN = {
    **dict.fromkeys(databases.MYSQLS, "SELECT count(*) FROM information_schema.innodb_trx"),
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'",
}


@pytest.fixture(scope="module", params=databases.SERVERS)
def roomy(request: pytest.FixtureRequest, own_server_of_module: Callable[..., Any]) -> tuple[str, Any]:
    """A server with room for a connection per partition: by default MariaDB has 151, PostgreSQL 100."""
    return request.param, own_server_of_module(request.param, max_connections=PARTITIONS + 20)


@pytest.fixture
def place(roomy: tuple[str, Any]) -> Iterator[tuple[str, str]]:
    """The kind of database, and the URL of an empty one."""
    kind, server = roomy
    with databases.fresh(server) as url:
        yield kind, url
        close_stores()


class MeetingUpdater(StateUpdater):
    """Updates the state, then waits for the other partitions: each has read the fence and written its rows, none has
    committed."""

    def __init__(self, inner: StateUpdater, meeting: threading.Barrier) -> None:
        self.inner, self.meeting = inner, meeting

    def updateState(self, state: Any, tuples: Sequence[Any], collector: Any) -> None:
        self.inner.updateState(state, tuples, collector)
        self.meeting.wait()


@contextmanager
def asking(url: str) -> Iterator[Callable[[str], int]]:
    """A connection of its own, which asks the server for a number."""
    store = store_of(parse_url(url))
    connection = store.take()
    try:
        yield lambda text: int(connection.execute(text).fetchone()[-1])
    finally:
        store.drop(connection)


class Batches:
    """The driver and the partitions of one state, each partition in a thread of its own."""

    def __init__(self, factory: StateFactory, updater: StateUpdater, partitions: int, batches: int = 0) -> None:
        self.updater, self.partitions = updater, partitions
        conf = with_context({"topology.name": "many"}, state="s", lineage="one", txid=batches)
        conf = with_context(conf, run=f"after {batches}", way="")
        self.driver: Any = factory.participant()
        self.conf = with_context(conf, generation=self.driver.open(conf))
        self.states = [factory.makeState(self.conf, None, index, partitions) for index in range(partitions)]

    def run(self, txid: int, meeting: threading.Barrier) -> list[Any]:
        """Every partition adds txid to its keys. Returns the receipts, by partition."""
        self.driver.prepare(txid, 0, self.partitions)
        with ThreadPoolExecutor(self.partitions) as threads:
            written = [threads.submit(self._persist, txid, index, meeting) for index in range(self.partitions)]
        receipts = [partition.result() for partition in written]
        self.driver.publish(txid, 0, receipts)
        return receipts

    def _persist(self, txid: int, index: int, meeting: threading.Barrier) -> Any:
        tuples = [TridentTuple.of(["k", "n"], (key, txid)) for key in keys_of(index)]
        return persist(self.states[index], txid, MeetingUpdater(self.updater, meeting), tuples, SILENT)


def keys_of(index: int) -> list[int]:
    """The keys of a partition, as far apart as a hash puts them."""
    return [place * PARTITIONS + index for place in range(KEYS)]


@contextmanager
def watched(kind: str, ask: Callable[[str], int]) -> Iterator[list[int]]:
    """Counts lock waits from here to the end of the block: MariaDB's own counter, or PostgreSQL's locks as looked up
    again and again."""
    seen: list[int] = []
    begun, over = ask(_WAITS[kind]), threading.Event()

    def look() -> None:
        while not over.is_set():
            seen.append(ask(_WAITS[kind]) - begun)
            over.wait(0.01)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
        seen.append(ask(_WAITS[kind]) - begun)


def a_map(url: str) -> tuple[StateFactory, StateUpdater]:
    return SqlMapState.opaque(url, "counts", "k bigint", "n bigint"), MapCombinerAggStateUpdater(Sum(), "k", "n")


def rows(url: str) -> tuple[StateFactory, StateUpdater]:
    return InsertIgnoreState(url, "line", "k", ["k bigint", "n bigint"]), RowUpdater()


ALL_KEYS = sorted(key for index in range(PARTITIONS) for key in keys_of(index))
STORED = {
    a_map: {(key,): OpaqueValue(2, 3, 1) for key in ALL_KEYS},
    rows: {(key,): (1,) for key in ALL_KEYS},  # the first one stands
}


@pytest.mark.parametrize("state", [a_map, rows])
def test_128_partitions_commit_one_batch_without_a_lock_wait(place: tuple[str, str], state: Any) -> None:
    kind, url = place
    factory, updater = state(url)
    batches = Batches(factory, updater, PARTITIONS)
    open_at_once: list[int] = []
    with asking(url) as ask, asking(url) as looking, watched(kind, looking) as waits:
        meeting = threading.Barrier(PARTITIONS, lambda: open_at_once.append(ask(_OPEN[kind])), PATIENCE)
        for txid in (1, 2):  # new rows, then the same keys again
            batches.run(txid, meeting)
    assert open_at_once == [PARTITIONS, PARTITIONS]
    assert len(waits) > 2 and max(waits) == 0
    assert factory.stored() == STORED[state]


def test_partitions_that_locked_the_fence_for_themselves_would_wait(
    place: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the test above would see if the fence were read under an exclusive lock."""
    kind, url = place
    factory, updater = a_map(url)
    batches = Batches(factory, updater, 4)
    dialect = store_of(parse_url(url)).dialect
    monkeypatch.setattr(type(dialect), "shared", dialect.exclusive)
    with (
        asking(url) as looking,
        watched(kind, looking) as waits,
        pytest.raises(threading.BrokenBarrierError),
    ):
        batches.run(1, threading.Barrier(4, timeout=1.0))
    assert max(waits) > 0


@pytest.mark.parametrize("roomy", databases.MYSQLS, indirect=True)
@pytest.mark.parametrize("state", [a_map, rows])
def test_a_batch_asks_the_database_as_often_for_each_partition_and_leaves_no_mark(
    place: tuple[str, str], state: Any
) -> None:
    _, url = place
    asked = "SHOW GLOBAL STATUS LIKE 'Questions'"
    statements = {}
    with asking(url) as ask:
        for begun, partitions in enumerate((2, 4, 8, 16)):  # each a run of its own that goes on
            batches = Batches(*state(url), partitions, 2 * begun)
            batches.run(2 * begun + 1, threading.Barrier(partitions, timeout=PATIENCE))  # makes the connections
            before = ask(asked)
            batches.run(2 * begun + 2, threading.Barrier(partitions, timeout=PATIENCE))
            statements[partitions] = ask(asked) - before - 1
        assert ask("SELECT count(*) FROM trident_part") == 0
    each = (statements[4] - statements[2]) // 2
    assert statements == {count: statements[2] + (count - 2) * each for count in statements}
    assert each <= {a_map: 7, rows: 11}[state] and statements[2] - 2 * each <= 4
