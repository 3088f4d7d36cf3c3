"""`trident txid rewind`: afterwards the run goes on as if the later batches had never been."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults import story
from faults.disk import kill_before
from faults.forks import Driver, run
from faults.readings import Fold, Readings
from faults.spouts import ROW as story_row
from faults.spouts import Drifting, Repeating
from faults.steps import Fault
from faults.stores import differences, read
from going_back import Filing, Noting, component, dies, killed
from remotes import Remote

from states.sql import AppendState, BatchState, RowUpdater
from states.sql.store import close_stores
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import LineageError
from trident_py.extras.txid.inspection import look
from trident_py.extras.txid.rewind import examine, list_kept, rewind
from trident_py.spouts.interfaces import NON_TRANSACTIONAL
from trident_py.testing import FixedBatchSpout

pytestmark = pytest.mark.dear

SEED, LAST = 5, 7
ROWS = ("append", "rows", "batch")
BACK = 3


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_stores()


def begin(url: Any, folder: Path, only: tuple[str, ...] = ROWS, txid: int = 6, state: str = "append") -> Noting:
    """A run whose driver was killed when one partition of a state had committed a batch."""
    start = Noting(url, folder, LAST, (Fault("committed", state, txid),), SEED, only=only)
    assert run(start).process.exitcode == -signal.SIGKILL
    return Noting(url, folder, LAST, seed=SEED, only=only)


def go_on(start: Noting) -> None:
    """The next start runs to the end, and every row is that of a plain fold."""
    assert run(start).told[-1] == ("done", LAST)
    assert differences(start.url, Fold(Readings(SEED), LAST), start.only) == []


def content(folder: Path) -> dict[Path, bytes]:
    """SQLite's file of locks is no content."""
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file() and file.suffix != ".db-shm"}


def sqlite(folder: Path) -> str:
    return f"sqlite:///{folder}/store.db"


STEPS = [
    ("rewind fenced", ""), ("rewind intended", ""), ("rewind opened", ""), ("undone", "append"),
    ("rewind rewound", "appended"), ("rewind rewound", "batched"), ("rewind forgotten", ""), ("rewind over", ""),
]  # fmt: skip
CALLS = 80
KINDS = {"rewind fenced": "repeats", "rewind over": "continues"}
"""What the next start does after a death at these steps; it is refused after others."""


def is_back(start: Noting) -> None:
    """Log and states are as after the batch, and the run goes on from there."""
    found = look(component(start))
    assert (found.committed, found.begun, found.next.sentence) == (BACK, None, f"continues after txid {BACK}")
    assert differences(start.url, Fold(Readings(SEED), BACK), ROWS) == []
    go_on(start)


def test_a_rewind_killed_at_each_step_in_turn_goes_on_with_the_same_command(database: str, tmp_path: Path) -> None:
    start = begin(database, tmp_path)
    for step, name in STEPS:
        assert killed(start, BACK, step, name), step
        assert look(component(start)).next.kind == KINDS.get(step, "refused"), step
    is_back(start)


@pytest.mark.whole("test_a_rewind_killed_at_each_step_in_turn_goes_on_with_the_same_command")
@pytest.mark.parametrize(("step", "name"), STEPS, ids=lambda word: word)
def test_a_rewind_that_is_killed_is_finished_by_the_same_command(
    database: str, tmp_path: Path, step: str, name: str
) -> None:
    start = begin(database, tmp_path)
    assert killed(start, BACK, step, name)
    found = look(component(start))
    if step not in KINDS:
        assert found.next.kind == "refused" and f"on its way back from txid 5 to {BACK}" in found.next.sentence
        assert found.next.sentence.removeprefix("is refused: ") in run(start).told[-1][2]
        with pytest.raises(LineageError, match=f"on its way back to txid {BACK}: finish that first"):
            rewind(component(start), BACK - 1)
        with pytest.raises(LineageError, match="Finish it with the topology with which it began"):
            rewind(component(replace(start, only=ROWS[:1])), BACK)
    if step != "rewind over":
        assert sorted(rewind(component(start), BACK)) == ["appended", "batched", "rows_by_id"]
    is_back(start)


def test_opaque_values_go_back_one_batch_and_no_further(database: str, tmp_path: Path) -> None:
    start = begin(database, tmp_path, ("opaque", "general"), state="opaque")
    with pytest.raises(LineageError, match="opaque cannot go back to txid 4: it has values of batch 6, and keeps one"):
        rewind(component(start), 4)
    assert killed(start, 5, "undone", "opaque") and killed(start, 5, "rewind rewound", "opaque")
    rewind(component(start), 5)
    words = {word: value[0] for word, value in Fold(Readings(SEED), 5).sums().items()}
    assert dict(read(database, "SELECT word, total FROM opaque")) == words
    for txid in (4, 3, 0):
        with pytest.raises(LineageError, match="it went back to batch 5 before, and has no values from before that"):
            rewind(component(start), txid)
    go_on(start)
    with pytest.raises(LineageError, match=f"values of batch {LAST}, and keeps one .* it can go back to {LAST - 1}"):
        rewind(component(start), 4)
    rewind(component(start), LAST - 1)
    go_on(start)


def test_if_one_state_cannot_go_back_none_does(tmp_path: Path) -> None:
    start = begin(sqlite(tmp_path), tmp_path, (*ROWS, "opaque", "trans", "keyed", "sequence"))
    before = content(tmp_path)
    with pytest.raises(LineageError) as refused:
        rewind(component(start), BACK)
    told = dict(each.split(f" cannot go back to txid {BACK}: ") for each in str(refused.value).split("; "))
    assert {state: why.split(". So none of them")[0] for state, why in told.items()} == {
        "opaque": "it has values of batch 5, and keeps one value before that: it can go back to 4",
        "transactional": "it keeps no value before the last one",
        "keyed": "a row has replaced the one of its key",
        "in_order": "which rows waited behind a gap is not kept by batch",
    }
    assert str(refused.value).endswith("So none of them goes back. Nothing was changed")
    with pytest.raises(LineageError, match=r"is at txid 5, so there is no batch 6 yet\. Nothing was changed"):
        rewind(component(start), 6)
    assert content(tmp_path) == before
    go_on(start)


def test_a_state_that_has_nothing_of_the_batch_that_is_given_up_stays_as_it_is(database: str, tmp_path: Path) -> None:
    only = (*ROWS, "trans", "keyed", "sequence")
    start = Noting(database, tmp_path, LAST, (Fault("recorded", "", 6),), SEED, only=only)
    assert run(start).process.exitcode == -signal.SIGKILL
    start = Noting(database, tmp_path, LAST, seed=SEED, only=only)
    asked = examine(component(start), [5, 4])
    assert set(asked[5].values()) == {None}
    assert asked[4]["transactional"] == "it keeps no value before the last one"
    for name in ("transactional", "appended"):
        assert killed(start, 5, "rewind rewound", name)
    rewind(component(start), 5)
    assert look(component(start)).next.sentence == "continues after txid 5"
    go_on(start)


def test_a_state_that_has_part_of_the_batch_that_is_given_up_is_asked(tmp_path: Path) -> None:
    start = begin(sqlite(tmp_path), tmp_path, ("trans",), state="trans")
    with pytest.raises(LineageError, match="transactional cannot go back to txid 5: it keeps no value before the last"):
        rewind(component(start), 5)
    go_on(start)
    assert set(examine(component(start), [LAST])[LAST].values()) == {None}


@pytest.mark.parametrize("fault", [("recorded", ""), ("committed", "append"), ("publish", "append")])
def test_a_driver_of_before_ends_and_writes_nothing(tmp_path: Path, fault: tuple[str, str]) -> None:
    step, state = fault
    start = Noting(sqlite(tmp_path), tmp_path, LAST, (Fault(step, state, 6, action="ask"),), SEED, only=ROWS)
    older = Driver(start)
    assert older.next() == "at"
    rewind(component(start), BACK)
    older.go_on()
    older.next()
    older.close()
    assert older.told[-1][:2] == ("error", "ZombieError")
    assert differences(start.url, Fold(Readings(SEED), BACK), ROWS) == []
    go_on(Noting(start.url, tmp_path, LAST, seed=SEED, only=ROWS))


def test_it_goes_back_again_and_before_the_first_batch(tmp_path: Path) -> None:
    start = begin(sqlite(tmp_path), tmp_path)
    for txid in (4, 2, 0):
        rewind(component(start), txid)
        assert differences(start.url, Fold(Readings(SEED), txid), ROWS) == []
        assert list_kept(component(start))[0].txid == txid
    go_on(start)


EVERY = (*ROWS, "opaque", "trans", "keyed", "sequence")


def copy(source: Path, target: Path) -> None:
    """Copy a database, with what is in the log beside its file."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


def restored(folder: Path, only: tuple[str, ...], url: Any) -> Noting:
    """A run at batch 5, whose store was put back to a copy of batch 3, as a replica that lags is."""
    first = Noting(url, folder, BACK, seed=SEED, only=only)
    assert run(first).told[-1] == ("done", BACK)
    copy(folder / "store.db", folder / "copy.db")
    start = begin(url, folder, only)
    copy(folder / "copy.db", folder / "store.db")
    return start


def test_a_store_that_was_put_back_gets_the_batches_that_it_lacks(tmp_path: Path) -> None:
    """Of any state, as none has to go back: a start would have to leave the batches out."""
    start = restored(tmp_path, EVERY, sqlite(tmp_path))
    refused = look(component(start)).next.sentence
    assert "the store lacks the batches in between" in refused and f"trident txid rewind --to {BACK}" in refused
    with pytest.raises(LineageError, match="appended cannot go back to txid 4: its store has the batches up to 3"):
        rewind(component(start), BACK + 1)
    assert [txid for txid, why in examine(component(start), range(6)).items() if set(why.values()) == {None}] == [BACK]
    for step in ("rewind fenced", "rewind intended", "rewind opened", "rewind forgotten", "rewind over"):
        assert killed(start, BACK, step, ""), step
        assert look(component(start)).next.kind == ("continues" if step == "rewind over" else "refused"), step
    assert differences(start.url, Fold(Readings(SEED), BACK), EVERY) == []
    go_on(start)


def test_a_copy_of_the_store_that_ran_on_apart_is_no_store_that_was_put_back(tmp_path: Path) -> None:
    url, apart = sqlite(tmp_path), tmp_path / "apart"
    assert run(Noting(url, tmp_path, BACK, seed=SEED, only=ROWS)).told[-1] == ("done", BACK)
    shutil.copytree(tmp_path, apart, ignore=shutil.ignore_patterns("apart"))
    assert run(Noting(sqlite(apart), apart, BACK + 1, seed=SEED + 1, only=ROWS)).told[-1] == ("done", BACK + 1)
    start = begin(url, tmp_path)
    copy(apart / "store.db", tmp_path / "store.db")
    before = content(tmp_path / "checkpoints")
    with pytest.raises(LineageError, match="has the batches up to 4, but batch 4 of this log is of another run than"):
        rewind(component(start), BACK + 1)
    assert content(tmp_path / "checkpoints") == before


@pytest.mark.parametrize("backed_up", ["before", "after", "after another"])
def test_a_store_that_was_backed_up_beside_a_rewind_is_put_back(backed_up: str, tmp_path: Path) -> None:
    start, store = Noting(sqlite(tmp_path), tmp_path, LAST, seed=SEED, only=ROWS), tmp_path / "store.db"
    assert run(replace(start, last=BACK)).told[-1] == ("done", BACK)
    for when in ("before", "after", "after another"):
        if when != "before":
            rewind(component(start), BACK)
        if when == backed_up:
            copy(store, tmp_path / "copy.db")
    assert run(start).told[-1] == ("done", LAST)
    copy(tmp_path / "copy.db", store)
    rewind(component(start), BACK)
    go_on(start)


def test_a_store_that_was_put_back_may_go_back_further(tmp_path: Path) -> None:
    start = restored(tmp_path, ROWS, sqlite(tmp_path))
    rewind(component(start), BACK - 1)
    assert differences(start.url, Fold(Readings(SEED), BACK - 1), ROWS) == []
    go_on(start)


@pytest.mark.parametrize("other", ["rows", "trans"])
def test_a_state_beside_the_one_that_was_put_back_goes_back_or_none_does(other: str, tmp_path: Path) -> None:
    only = ("append", other)
    start = restored(tmp_path, only, {"append": sqlite(tmp_path), other: f"sqlite:///{tmp_path}/other.db"})
    if other == "trans":
        before = content(tmp_path)
        with pytest.raises(LineageError, match=f"transactional cannot go back to txid {BACK}: .* So none of"):
            rewind(component(start), BACK)
        assert content(tmp_path) == before
    else:
        rewind(component(start), BACK)
        assert differences(start.url, Fold(Readings(SEED), BACK), only) == []
        go_on(start)


def test_a_batch_that_was_decided_is_undone(tmp_path: Path) -> None:
    start = Noting(sqlite(tmp_path), tmp_path, LAST, (Fault("published", "batch", 6),), SEED, only=ROWS)
    assert run(start).process.exitcode == -signal.SIGKILL
    start = Noting(start.url, tmp_path, LAST, seed=SEED, only=ROWS)
    assert look(component(start)).next.kind == "publishes"
    rewind(component(start), 5)
    assert differences(start.url, Fold(Readings(SEED), 5), ROWS) == []
    go_on(start)


def test_rows_of_an_unknown_batch_are_told_before_anything_is_changed(tmp_path: Path) -> None:
    start = begin(sqlite(tmp_path), tmp_path)
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("INSERT INTO appended (id) VALUES ('mine')")
    assert examine(component(start), [4])[4]["appended"] == (
        "1 rows have no batch in the column 'batch'; set it, to 0 for rows that stay wherever it goes back to"
    )


@pytest.mark.parametrize("visible", ["files", "batches", "manifest"])
@pytest.mark.parametrize("step", ["recorded", "publish", "published"])
def test_files_go_back_by_their_ledger(tmp_path: Path, visible: str, step: str) -> None:
    fault = Fault(step, "" if step == "recorded" else "files", 6)
    start = Filing(sqlite(tmp_path), tmp_path, LAST, (fault,), SEED, visible=visible)
    assert run(start).process.exitcode == -signal.SIGKILL
    start = replace(start, faults=())
    for kill in ("rewind opened", "rewind rewound"):
        assert killed(start, BACK, kill, "" if kill == "rewind opened" else "files")
    rewind(component(start), BACK)
    check_files(start, BACK)
    assert run(start).told[-1] == ("done", LAST)
    check_files(start, LAST)


@pytest.mark.parametrize("visible", ["files", "batches", "manifest"])
def test_a_folder_that_was_put_back_gets_the_batches_that_it_lacks(tmp_path: Path, visible: str) -> None:
    assert run(Filing(sqlite(tmp_path), tmp_path, BACK, seed=SEED, visible=visible)).told[-1] == ("done", BACK)
    start = Filing(sqlite(tmp_path), tmp_path, LAST, seed=SEED, visible=visible)
    shutil.copytree(start.files, tmp_path / "copy")
    assert run(replace(start, last=BACK + 2)).told[-1] == ("done", BACK + 2)
    shutil.rmtree(start.files)
    (tmp_path / "copy").rename(start.files)
    assert look(component(start)).next.kind == "refused"
    rewind(component(start), BACK)
    check_files(start, BACK)
    assert run(start).told[-1] == ("done", LAST)
    check_files(start, LAST)


def check_files(start: Filing, last: int) -> None:
    """The ledger, and a reader who lists the folder, have the rows of a plain fold."""
    expected = Fold(Readings(SEED), last).counted()
    assert start.state().stored() == expected
    if start.visible != "manifest":
        listed = [json.loads(line) for file in start.files.rglob("*part-*") for line in file.read_text().splitlines()]
        assert Counter(tuple(row.values()) for row in listed) == expected


def spouting(url: str, folder: Path, last: int) -> Any:
    """A spout that repeats a batch, and one that never does: where either has read to is kept beside the log."""
    topology = TridentTopology()
    repeating = topology.newStream("repeating", Repeating(last)).parallelismHint(2)
    drifting = topology.newStream("drifting", Drifting(last, str(folder))).parallelismHint(2)
    seen = BatchState(url, "seen", columns=story_row, txid="batch")
    topology.merge(repeating, drifting).partitionBy("id").partitionPersist(seen, story_row.names, RowUpdater())
    return topology.build()


@pytest.mark.parametrize("on", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_spouts_go_on_from_where_they_were(on: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url, place = sqlite(tmp_path), str(tmp_path / "checkpoints")

    def run_to(last: int) -> None:
        cluster = LocalCluster(place) if on == "local" else request.getfixturevalue("spark_cluster")(place)
        cluster.submitTopology("spouts", {}, spouting(url, tmp_path, last)).awaitTermination(60)

    def check_seen(last: int) -> None:
        seen = Counter(read(url, "SELECT id, word, n FROM seen"))
        counts = [sum(id_.startswith(f"d{partition}-") for id_, _, _ in seen) for partition in range(story.PARTITIONS)]
        assert seen == Counter([row for n in range(1, last + 1) for row in story.batch(n)] + story.drifted(counts))
        assert {txid for (txid,) in read(url, "SELECT batch FROM seen")} == set(range(1, last + 1))

    run_to(6)
    start = Noting(url, tmp_path, 6)
    rewind(component(start, topology=spouting(url, tmp_path, 6), name="spouts"), 2)
    check_seen(2)
    run_to(5)
    check_seen(5)


def test_a_log_in_hdfs_or_s3_goes_back(place_of_uri: Remote, tmp_path: Path) -> None:
    fault = (Fault("committed", "append", 6),)
    start = Noting(sqlite(tmp_path), tmp_path, LAST, fault, SEED, only=("append",), **place_of_uri.of_start)
    assert run(start).process.exitcode == -signal.SIGKILL
    start = replace(start, faults=())
    assert killed(start, BACK, "rewind forgotten")
    assert look(component(start)).next.kind == "refused"
    rewind(component(start), BACK)
    assert differences(start.url, Fold(Readings(SEED), BACK), start.only) == []
    go_on(start)


def _take_back_until(start: Noting, call: int) -> None:
    kill_before(call, 1 << 18)
    rewind(component(start), BACK)


@pytest.mark.whole("test_a_rewind_killed_at_each_step_in_turn_goes_on_with_the_same_command")
@pytest.mark.parametrize("call", range(1, CALLS + 1))
def test_a_rewind_killed_before_any_call_of_the_disk_is_finished(tmp_path: Path, call: int) -> None:
    start = begin(sqlite(tmp_path), tmp_path)
    died = dies(_take_back_until, start, call)
    assert died or call > 10
    assert not died or call < CALLS, "there are more calls"
    found = look(component(start))
    if found.committed == 5:
        assert found.next.kind in ("refused", "repeats")
        rewind(component(start), BACK)
    assert differences(start.url, Fold(Readings(SEED), BACK), ROWS) == []
    go_on(start)


def test_what_no_spout_emits_again_does_not_go_back(tmp_path: Path) -> None:
    class Once(FixedBatchSpout):
        kind = NON_TRANSACTIONAL

    topology = TridentTopology()
    stream = topology.newStream("in", Once(Fields("word string"), 1, ("a",), ("b",)))
    stream.partitionPersist(AppendState(sqlite(tmp_path), "words", txid="batch"), "word", RowUpdater())
    start, built = Noting(sqlite(tmp_path), tmp_path, 2), topology.build()
    with LocalCluster(start.place) as cluster:
        cluster.submitTopology("once", {}, built).awaitTermination(60)
    with pytest.raises(LineageError, match="spout in cannot go back to txid 1: it does not emit a batch again"):
        rewind(component(start, topology=built, name="once"), 1)
    assert set(examine(component(start, topology=built, name="once"), [2])[2].values()) == {None}  # it stays
