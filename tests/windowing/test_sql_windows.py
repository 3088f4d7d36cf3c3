"""Windows in a SQL table, on every database: those of a plain fold, whatever fails, also if the process is killed."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import databases
import pytest
from contracts.taking import leaving_out
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from states.sql import SqlWindowsStoreFactory
from states.sql.store import parsed, store_of
from trident_py import LocalCluster
from trident_py.chunks import Chunk, TupleList
from trident_py.context import CurrentBatch, with_context
from trident_py.errors import TopologyError
from trident_py.tuples import Fields, TransactionAttempt
from trident_py.windowing import Duration as D
from trident_py.windowing import SlidingCountWindow, TumblingDurationWindow, WindowConfig

from .killed import BATCHES, CONFIGS
from .naive import Batch, expected
from .stories import POINTS, stories
from .support import CrashingStore, windows

HERE = Path(__file__).parent
_numbers = itertools.count()
EACH = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)


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
        command = [sys.executable, str(HERE / "killed.py"), database, str(tmp_path), at, str(start + 1), name]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == (-signal.SIGKILL if start < len(BATCHES) else 0), ended.stderr[-2000:]
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


def test_a_block_that_the_table_does_not_take_ends_the_run(database: str, cluster: Any) -> None:
    store, config = SqlWindowsStoreFactory(database, "w"), SlidingCountWindow.of(3, 1)
    store.windowState(config, "w").shape  # type: ignore[attr-defined]  # noqa: B018
    with leaving_out(store_of(parsed(database)), "w", "part"), pytest.raises(TopologyError, match="took 0 of 1 rows"):
        windows(cluster, config, store, [Batch([[(0, 1)]])])


@pytest.mark.parametrize("config", [SlidingCountWindow.of(100, 10), TumblingDurationWindow.of(D.of(1_000))])
def test_the_table_holds_only_what_a_later_window_needs(database: str, cluster: Any, config: WindowConfig) -> None:
    made = [Batch([[(0, n) for n in range(30)]], txid * 100) for txid in range(40)]
    windows(cluster, config, SqlWindowsStoreFactory(database, "kept"), made)
    store = store_of(parsed(database))
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
    driver, running = factory.participant(), CurrentBatch()  # type: ignore[attr-defined]
    running.transaction = TransactionAttempt(1, 0)
    conf = with_context({}, topology="t", state="copies", lineage="l", running=running)
    conf = with_context(conf, generation=driver.open(conf))
    driver.prepare(1, 0, 1)
    slow, copy = (factory.makeState(conf, None, 0, 1) for _ in range(2))
    slow.beginCommit(1)
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
    with store_of(parsed(database)).reading() as connection:
        rows = connection.execute('SELECT "data" FROM "copies" WHERE "tuples" > 0 AND "part" = 0').fetchall()
    assert [Chunk.decode(bytes(data)).pylist("v") for (data,) in rows] == [["d"]]


def tuples(*values: str) -> TupleList:
    found = TupleList(Fields("v"))
    found.append(Chunk({"v": list(values)}, len(values)))
    return found


def test_windows_are_the_same_if_no_block_is_kept_decoded(tmp_path: Path, cluster: Any) -> None:
    config, made = SlidingCountWindow.of(11, 4), [Batch([[(0, n + txid * 5) for n in range(5)]]) for txid in range(6)]
    store = SqlWindowsStoreFactory(f"sqlite:///{tmp_path}/w.db", "w")
    found = windows(cluster, config, store, made, more={"topology.trident.windowing.cache.tuple.limit": 1})
    assert found == expected(config, made)
