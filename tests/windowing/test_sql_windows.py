"""Windows in a SQL table, on every database: those of a plain fold, whatever fails, also if the process is killed."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import databases
import pytest
from contracts.backups import put_back, tables_of
from contracts.taking import leaving_out
from faults.forks import fork
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from states.sql import SqlWindowsStoreFactory
from states.sql.store import parse_url, store_of
from trident_py import LocalCluster
from trident_py.errors import StateError, TopologyError
from trident_py.model.chunks import Chunk, TupleList
from trident_py.model.context import CurrentBatch, with_context
from trident_py.tuples import Fields, TransactionAttempt
from trident_py.windowing import Duration as D
from trident_py.windowing import SlidingCountWindow, TumblingDurationWindow, WindowConfig

from .killed import BATCHES, CONFIGS, main
from .naive import Batch, expected
from .stories import POINTS, stories
from .support import CrashingStore, windows

pytestmark = pytest.mark.dear

_numbers = itertools.count()
EVENT_TIME = TumblingDurationWindow.of(D.of(1_000)).withTimestampField("time")
EACH = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None,
    max_examples=settings.default.max_examples // 5,
)  # fmt: skip


@pytest.fixture
def cluster() -> Iterator[Any]:
    with LocalCluster() as cluster:
        yield cluster


@EACH
@given(stories())
def test_windows_are_those_of_a_plain_fold_whatever_fails(database: str, cluster: Any, story: Any) -> None:
    config, made, replays, at, attempts = story
    store = CrashingStore(SqlWindowsStoreFactory(database, f"w{next(_numbers)}"), at, frozenset(attempts))
    final = [replays.get(txid, batch) for txid, batch in enumerate(made, 1)]
    assert windows(cluster, config, store, made, replays=replays) == expected(config, final)


@EACH
@given(stories(), st.integers(1, 5))
def test_a_run_that_stops_goes_on_with_its_windows(database: str, tmp_path_factory: Any, story: Any, at: int) -> None:
    config, made, _replays, _at, _attempts = story
    name = f"on{next(_numbers)}"
    store, found, late = SqlWindowsStoreFactory(database, name), {}, {}
    folder = str(tmp_path_factory.mktemp("checkpoints"))
    for done, count in itertools.pairwise(sorted({0, min(at, len(made)), len(made)})):
        with LocalCluster(folder) as cluster:
            more = windows(cluster, config, store, made[:count], name=name, done=done)
            found, late = found | more[0], late | more[1]
    assert (found, late) == expected(config, made)


@pytest.mark.parametrize("at", POINTS)
@pytest.mark.parametrize("name", CONFIGS)
def test_a_process_killed_at_any_step_loses_and_doubles_no_tuple(
    database: str, tmp_path: Path, at: str, name: str
) -> None:
    """The driver is killed in each batch once; the next one goes on from the checkpoint."""
    for start in range(len(BATCHES) + 1):
        process = fork(main, database, str(tmp_path), at, str(start + 1), name)
        process.start()
        process.join()
        assert process.exitcode == (-signal.SIGKILL if start < len(BATCHES) else 0)
    lines = [json.loads(line) for line in (tmp_path / "emitted.jsonl").read_text().splitlines()]
    wanted = expected(CONFIGS[name], BATCHES)[0]
    emitted: dict[int, dict[int, list]] = {}
    for line in lines:
        rows = [tuple(row) for row in line["rows"]]
        emitted.setdefault(line["txid"], {}).setdefault(line["partition"], rows)
        assert emitted[line["txid"]][line["partition"]] == rows, "an attempt emitted other windows than one before"
    assert emitted == wanted


def test_windows_of_another_number_of_partitions_are_refused(database: str, tmp_path: Path) -> None:
    made = [Batch([[(0, 1)]] * 2)]
    store, config = SqlWindowsStoreFactory(database, "parts"), SlidingCountWindow.of(3, 1)
    with LocalCluster(str(tmp_path)) as cluster:
        windows(cluster, config, store, made, name="parts")
        with pytest.raises(TopologyError, match=r"has the windows of 2 partitions, .* parallelismHint\(2\)"):
            windows(cluster, config, store, made * 2, name="parts", hint=3, done=1)
        found, _ = windows(cluster, config, store, made * 2, name="parts", done=1)
    assert found == {2: {part: [(2, 0, 2, [1, 1])] for part in (0, 1)}}


def one_batch(driver: Any, state: Any, begin: Any, txid: int) -> None:
    """A whole batch of one tuple, of what `driven` gives."""
    begin(txid)
    list(state.enter(tuples("a"), Fields("v"), print))
    state.commit(txid)
    driver.publish(txid, 0, [])


def test_a_block_that_the_table_does_not_take_is_an_error(database: str) -> None:
    factory = SqlWindowsStoreFactory(database, "w").windowState(SlidingCountWindow.of(100, 100), "w")
    driver, state, begin = driven(factory)
    one_batch(driver, state, begin, 1)
    with leaving_out(store_of(parse_url(database)), "w", "part"):
        begin(2)
        list(state.enter(tuples("b"), Fields("v"), print))
        with pytest.raises(StateError, match="took 0 of 1 rows"):
            state.commit(2)
        state.rollback(2)


OPEN = [Batch([[(0, (txid, n, part)) for n in range(3)] for part in (0, 1)]) for txid in range(6)]


def rows_of(database: str, table: str) -> list[tuple]:
    with store_of(parse_url(database)).reading() as connection:
        return [tuple(row) for row in connection.execute(f'SELECT * FROM "{table}" ORDER BY 1, 2, 3').fetchall()]


def replace_rows(database: str, table: str, rows: list[tuple]) -> None:
    with store_of(parse_url(database)).writing() as connection:
        connection.execute(f'DELETE FROM "{table}"')
        connection.executemany(f'INSERT INTO "{table}" VALUES ({", ".join("?" * 10)})', rows)


@pytest.mark.parametrize("config", [SlidingCountWindow.of(100, 5), EVENT_TIME])
def test_a_window_whose_rows_were_removed_or_restored_alone_is_refused(
    database: str, tmp_path: Path, config: WindowConfig
) -> None:
    """Any row, all of a partition, all that hold tuples, all; and those of an earlier or of a later batch."""
    store, copies = SqlWindowsStoreFactory(database, "w"), {}

    def go_on(last: int) -> Any:
        with LocalCluster(str(tmp_path / "checkpoints")) as cluster:
            return windows(cluster, config, store, OPEN[:last], name="open", done=last - 1)

    for last in (2, 3, 4):
        go_on(last)
        copies[last] = rows_of(database, "w")
    rows = copies[4]
    parts = {row[0] for row in rows}
    assert parts == {-1, 0, 1}
    less = [[row for row in rows if row != other] for other in rows]
    less += [[row for row in rows if row[0] != part] for part in parts]
    for left in [*less, [row for row in rows if row[1] == 0], [], copies[2], copies[3]]:
        replace_rows(database, "w", left)
        with pytest.raises(TopologyError, match="rows were deleted, or the table was restored without its ledger"):
            go_on(5)
        assert rows_of(database, "w") == left
    replace_rows(database, "w", rows)
    wanted = expected(config, OPEN)[0]
    assert {**go_on(5)[0], **go_on(6)[0]} == {txid: found for txid, found in wanted.items() if txid > 4}


def test_a_table_that_is_restored_under_a_running_driver_is_refused(database: str) -> None:
    factory, made = SqlWindowsStoreFactory(database, "under"), SlidingCountWindow.of(100, 100)
    driver, state, begin = driven(factory.windowState(made, "under"))
    for txid in (1, 2, 3):
        one_batch(driver, state, begin, txid)
        if txid == 2:
            older = rows_of(database, "under")
    replace_rows(database, "under", older)
    with pytest.raises(StateError, match=r"does not have the rows that batch 3 left in partition 0"):
        begin(4)
    state.rollback(4)


def test_a_window_whose_database_goes_back_under_a_driver_is_told(database: str) -> None:
    factory, made = SqlWindowsStoreFactory(database, "back"), SlidingCountWindow.of(100, 100)
    driver, state, begin = driven(factory.windowState(made, "back"))
    place = store_of(parse_url(database))
    for txid in (1, 2, 3):
        one_batch(driver, state, begin, txid)
        if txid == 1:
            older = tables_of(place)
    put_back(place, older)
    with pytest.raises(StateError, match="its last complete batch is 1, and this driver has completed batch 3"):
        begin(4)


@pytest.mark.parametrize("gone", [True, False])
def test_a_table_begins_anew_only_under_another_name(database: str, tmp_path: Path, gone: bool) -> None:
    """The rows of the ledger alone are gone, or the table has another name."""

    def go_on(table: str, last: int) -> Any:
        store = SqlWindowsStoreFactory(database, table)
        with LocalCluster(str(tmp_path / "checkpoints")) as cluster:
            return windows(cluster, SlidingCountWindow.of(6, 6), store, OPEN[:last], name="anew", done=last - 1)

    go_on("w", 1)
    if gone:
        with store_of(parse_url(database)).writing() as connection:
            connection.execute("DELETE FROM trident_fence")
        with pytest.raises(TopologyError, match="knows nothing of this state"):
            go_on("w", 2)
        shutil.rmtree(tmp_path / "checkpoints")
        with pytest.raises(TopologyError, match="has values with txids up to 1, but its ledger knows nothing"):
            go_on("w", 2)
    else:
        assert list(go_on("v", 3)[0]) == [3]


def test_a_table_of_an_older_version_goes_on_and_is_sealed(database: str, tmp_path: Path) -> None:
    """It has no definition in its layout, and a partition's row may be missing."""
    store, config, found = SqlWindowsStoreFactory(database, "w"), SlidingCountWindow.of(6, 6), {}
    for last in (1, 2, 3):
        with LocalCluster(str(tmp_path)) as cluster:
            found |= windows(cluster, config, store, OPEN[:last], name="older", done=last - 1)[0]
        rows = rows_of(database, "w")
        assert [bytes(row[-1]) for row in rows if row[0] == -1] == [b"6 tuples every 6"]
        assert len([row for row in rows if row[1] == 0 <= row[0] and row[-2]]) == 2
        if last == 1:
            replace_rows(database, "w", [row if row[1] else (*row[:-1], b"") for row in rows if row[1] or row[0] < 0])
    assert found == expected(config, OPEN[:3])[0]


def test_a_new_checkpoint_goes_on_with_the_windows_of_a_table(database: str, tmp_path: Path) -> None:
    """The ledger may go on at a later txid than the window's last batch."""
    store, config, found = SqlWindowsStoreFactory(database, "w"), SlidingCountWindow.of(6, 6), {}
    for folder, base, last in (("one", 0, 1), ("two", 7, 8), ("two", 7, 9), ("two", 7, 10)):
        more = {"topology.txid.base": base}
        with LocalCluster(str(tmp_path / folder)) as cluster:
            found |= windows(cluster, config, store, OPEN[:1] * last, name="new", done=last - 1, more=more)[0]
    assert list(found) == [8, 10]


@pytest.mark.parametrize("config", [SlidingCountWindow.of(100, 10), TumblingDurationWindow.of(D.of(1_000))])
def test_the_table_holds_only_what_a_later_window_needs(database: str, cluster: Any, config: WindowConfig) -> None:
    made = [Batch([[(0, n) for n in range(30)]], txid * 100) for txid in range(40)]
    windows(cluster, config, SqlWindowsStoreFactory(database, "kept"), made)
    store = store_of(parse_url(database))
    with store.reading() as connection:
        (rows,) = connection.execute('SELECT count(*) FROM "kept"').fetchone()
    assert rows <= 14


def test_the_password_is_in_no_text_of_the_store() -> None:
    factory = SqlWindowsStoreFactory("postgresql://me:secret@host/db", "w")
    assert "secret" not in repr(factory) + repr(factory.windowState(SlidingCountWindow.of(2, 1), "w"))


@pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
def test_of_two_copies_of_a_task_the_second_waits_and_replaces_what_the_first_has_written(database: str) -> None:
    """Spark starts a copy of a slow task; with a function that is not deterministic it may bring other tuples."""
    factory = SqlWindowsStoreFactory(database, "copies").windowState(SlidingCountWindow.of(100, 100), "copies")
    driver, slow, begin = driven(factory)
    begin(1)
    copy = factory.makeState(driver.conf, None, 0, 1)
    list(slow.enter(tuples("a", "b", "c"), Fields("v"), print))

    def run_copy() -> None:
        copy.beginCommit(1)
        list(copy.enter(tuples("d"), Fields("v"), print))
        copy.commit(1)

    with ThreadPoolExecutor(1) as threads:
        second = threads.submit(run_copy)
        assert not wait([second], 0.5).done
        slow.commit(1)
        second.result(60)
    with store_of(parse_url(database)).reading() as connection:
        rows = connection.execute('SELECT "data" FROM "copies" WHERE "tuples" > 0 AND "part" = 0').fetchall()
    assert [Chunk.decode(bytes(data)).pylist("v") for (data,) in rows] == [["d"]]


def driven(factory: Any) -> tuple[Any, Any, Any]:
    """The driver's side of a window, its partition, and what begins a batch of both."""
    driver, running = factory.participant(), CurrentBatch()
    conf = with_context({}, topology="t", state=factory.name, lineage="l", running=running)
    driver.conf = with_context(conf, generation=driver.open(conf))
    state = factory.makeState(driver.conf, None, 0, 1)

    def begin(txid: int) -> None:
        running.transaction = TransactionAttempt(txid, 0)
        driver.prepare(txid, 0, 1)
        state.beginCommit(txid)

    return driver, state, begin


def tuples(*values: str) -> TupleList:
    found = TupleList(Fields("v"))
    found.append(Chunk({"v": list(values)}, len(values)))
    return found


def test_windows_are_the_same_if_no_block_is_kept_decoded(tmp_path: Path, cluster: Any) -> None:
    config, made = SlidingCountWindow.of(11, 4), [Batch([[(0, n + txid * 5) for n in range(5)]]) for txid in range(6)]
    store = SqlWindowsStoreFactory(f"sqlite:///{tmp_path}/w.db", "w")
    found = windows(cluster, config, store, made, more={"topology.trident.windowing.cache.tuple.limit": 1})
    assert found == expected(config, made)
