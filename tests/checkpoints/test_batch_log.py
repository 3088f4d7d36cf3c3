"""The log of batches: what a start finds of it, whatever happened to the driver or to the machine before."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from linked_files import LinkedFiles

from trident_py.checkpoints.append_log import JOURNAL, AppendLogStore
from trident_py.checkpoints.batch_log import BatchLog, Logged
from trident_py.checkpoints.hash_seed import own_order
from trident_py.checkpoints.location import open_log
from trident_py.checkpoints.metadata_store import IMPORTED, LOG, SharedMetadataStore
from trident_py.checkpoints.versioned_store import VersionedStore
from trident_py.engine.startup import AGREEMENT
from trident_py.engine.store_position import Rewinding
from trident_py.errors import TridentError, ZombieError

Made = Callable[[Path], BatchLog]


def log_of(store: SharedMetadataStore) -> BatchLog:
    return BatchLog(store, "here", "t", own_order)


def journal(folder: Path) -> BatchLog:
    return log_of(AppendLogStore(folder))


def versions(folder: Path) -> BatchLog:
    return log_of(VersionedStore(LinkedFiles(folder)))


@pytest.fixture(params=[journal, versions])
def made(request: pytest.FixtureRequest) -> Made:
    found: Made = request.param
    return found


def taken(made: Made, folder: Path) -> BatchLog:
    log = made(folder)
    log.take()
    return log


def known(log: BatchLog) -> tuple[int, dict | None, dict | None]:
    """The last txid that is over, its metadata, and those of the next one."""
    last = log.last() or Logged(0, None)
    begun = log.find_begun(last.txid + 1)
    return last.txid, last.metadata, None if begun is None else begun.metadata


def batches() -> Iterator[tuple[str, int, tuple[int, dict | None, dict | None]]]:
    """The calls of three batches, and what is known after each."""
    for txid in range(1, 4):
        before = {"n": txid - 1} if txid > 1 else None
        yield "begin", txid, (txid - 1, before, {"n": txid})
        yield "end", txid, (txid, {"n": txid}, None)


def call(log: BatchLog, name: str, txid: int) -> None:
    log.enter({"query": "q", "number": txid // 2})
    (log.begin if name == "begin" else log.end)(txid, {"n": txid})


@pytest.mark.parametrize("calls", range(7))
def test_a_driver_killed_anywhere_leaves_what_is_over_and_what_has_begun(tmp_path: Path, calls: int) -> None:
    log, expected = taken(journal, tmp_path), (0, None, None)
    for name, txid, after in list(batches())[:calls]:
        call(log, name, txid)
        expected = after
    assert known(journal(tmp_path)) == expected
    assert known(taken(journal, tmp_path)) == expected


@pytest.mark.parametrize("calls", range(7))
def test_where_a_file_costs_requests_the_end_of_a_batch_is_known_with_the_next(tmp_path: Path, calls: int) -> None:
    """Until then a killed driver leaves it as begun, and it is repeated as it was."""
    log, expected = taken(versions, tmp_path), (0, None, None)
    for name, txid, after in list(batches())[:calls]:
        call(log, name, txid)
        expected = after if name == "begin" else expected
    assert known(taken(versions, tmp_path)) == expected


def test_a_driver_that_closes_the_log_leaves_the_end_of_the_last_batch(made: Made, tmp_path: Path) -> None:
    log = taken(made, tmp_path)
    for name, txid, _ in batches():
        call(log, name, txid)
    log.close()
    found = made(tmp_path).last()
    assert found == Logged(3, {"n": 3}, {"query": "q", "number": 1})


def test_what_was_not_synced_may_be_lost_with_the_power_and_only_that(tmp_path: Path) -> None:
    """The end of a batch is not synced: without it the batch has begun, with the metadata that it was emitted with."""
    log = taken(journal, tmp_path / "whole")
    for name, txid, _ in batches():
        call(log, name, txid)
    lines = (tmp_path / "whole" / JOURNAL).read_bytes().splitlines(keepends=True)
    shutil.copytree(tmp_path / "whole", tmp_path / "lost")
    (tmp_path / "lost" / JOURNAL).write_bytes(b"".join(lines[:-1]))
    assert known(journal(tmp_path / "lost")) == (2, {"n": 2}, {"n": 3})


def test_a_replay_with_other_metadata_is_what_counts(made: Made, tmp_path: Path) -> None:
    log = taken(made, tmp_path)
    log.begin(1, {"n": 1})
    log.begin(1, {"n": 7})
    assert known(taken(made, tmp_path)) == (0, None, {"n": 7})


@pytest.mark.parametrize("begins", [1, 2], ids=["the same batch again", "the next batch"])
def test_an_older_driver_begins_nothing_after_a_newer_one_has_taken_the_log(
    made: Made, tmp_path: Path, begins: int
) -> None:
    older = taken(made, tmp_path)
    older.begin(1, {"n": 1})
    newer = taken(made, tmp_path)
    assert older.has_moved()
    with pytest.raises(ZombieError, match=r"the checkpoint here: process \d+ on host .* has taken it over"):
        older.begin(begins, {"n": begins})
    with pytest.raises(ZombieError):
        older.check()
    older.close()
    assert known(newer) == (0, None, {"n": 1})
    newer.begin(1, {"n": 1})
    newer.check()


def test_what_an_older_driver_has_written_until_the_log_is_taken_is_read(made: Made, tmp_path: Path) -> None:
    older, newer = taken(made, tmp_path), made(tmp_path)
    assert known(newer) == (0, None, None)
    older.begin(1, {"n": 1})
    assert newer.has_moved()
    newer.take()
    assert known(newer) == (0, None, {"n": 1})


def test_an_older_driver_that_ends_leaves_the_newer_ones_log_alone(tmp_path: Path) -> None:
    older = taken(versions, tmp_path)
    older.begin(1, {"n": 1})
    older.end(1, {"n": 1})
    newer = taken(versions, tmp_path)
    newer.begin(1, {"n": 2})
    older.close()
    assert known(versions(tmp_path)) == (0, None, {"n": 2})


def test_each_batch_makes_one_file_and_one_is_left(tmp_path: Path) -> None:
    log = taken(versions, tmp_path)
    for name, txid, _ in batches():
        call(log, name, txid)
    (file,) = (tmp_path / LOG).iterdir()
    assert file.name == "4.json"  # the owner, and three batches


def test_a_log_that_is_lost_beside_the_record_of_the_first_start_is_told(tmp_path: Path) -> None:
    store = AppendLogStore(tmp_path)
    store.put("component", 0, {"base": 0, "lineage": "x"})
    with pytest.raises(TridentError, match="has only one of the record of its first start and the log"):
        log_of(store).read_state(None)  # type: ignore[arg-type]


def test_a_component_whose_first_record_is_lost_is_not_taken_for_a_new_one(made: Made, tmp_path: Path) -> None:
    log = taken(made, tmp_path)
    log.begin(1, {"n": 1})
    log.begin(2, {"n": 2})
    log.end(2, {"n": 2})
    with pytest.raises(TridentError, match="has only one of the record of its first start and the log"):
        log.read_state(None)  # type: ignore[arg-type]


def test_an_older_driver_writes_no_other_path_after_a_newer_one_has_taken_the_log(made: Made, tmp_path: Path) -> None:
    """Such as an opaque spout's positions, which it writes behind the commit of its states."""
    older = taken(made, tmp_path)
    older.store.put("s/positions", 1, {"at": 1})
    newer = taken(made, tmp_path)
    assert newer.store.get("s/positions", 1) == {"at": 1}
    with pytest.raises(ZombieError):
        older.store.put("s/positions", 2, {"at": 2})
    newer.store.put("s/positions", 2, {"at": 3})
    assert made(tmp_path).store.get("s/positions", 2) == {"at": 3}


def test_the_end_of_a_batch_that_none_follows_is_made_durable(made: Made, tmp_path: Path) -> None:
    log = taken(made, tmp_path)
    log.begin(1, {"n": 1})
    log.end(1, {"n": 1})
    log.settle()
    found = made(tmp_path).last()
    assert found is not None and found.txid == 1


def test_a_note_does_not_make_the_file_anew_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new file is durable whole, and the note behind it is not: what was dropped in memory would be lost with it."""
    store = AppendLogStore(tmp_path)
    store.put("s/positions", 1, {"at": 1})
    store.put("s/positions", 2, {"at": 2})
    store.cleanup_before("s/positions", 2)
    monkeypatch.setattr(store, "_limit", 0)
    before = store.file.stat().st_ino
    store.note(LOG, 0, {})
    assert store.file.stat().st_ino == before
    store.put(LOG, 0, {})
    assert store.file.stat().st_ino != before


def test_of_two_drivers_that_continue_a_copied_checkpoint_at_once_none_takes_it_back(tmp_path: Path) -> None:
    """The other one continues the copy, and runs a batch, while this one looks whether somebody has."""

    def opened(folder: LinkedFiles) -> BatchLog:
        return open_log("s3a://b", "t", "c", own_order, lambda _: folder)

    class Slow(LinkedFiles):
        def names(self, folder: str = "") -> list[str]:
            found = super().names(folder)
            if folder == AGREEMENT and not others:
                others.append(opened(LinkedFiles(tmp_path)))
                others[0].begin(6, {})
                others[0].end(6, {})
                others[0].settle()
            return found

    others: list[BatchLog] = []
    copied = AppendLogStore(tmp_path)
    copied.put(LOG, 0, {"driver": {}, "over": Logged(5, {}, None)._asdict(), "begun": None})
    copied.put(AGREEMENT, 0, {"txid": 5})
    copied.close()
    with pytest.raises(ZombieError):
        opened(Slow(tmp_path))
    last = opened(LinkedFiles(tmp_path)).last()
    assert last is not None and last.txid == 6


def run_batches(log: BatchLog, first: int, last: int, kept: int) -> BatchLog:
    log.kept = kept
    for txid in range(first, last + 1):
        log.begin(txid, {"n": txid})
        log.end(txid, {"n": txid})
    log.settle()
    return log


def ways_back(log: BatchLog) -> list[tuple[int, Any]]:
    """Where it can go back to, and with which metadata."""
    return [(txid, batch and batch.metadata) for txid in [each.txid for each in log.list_kept()]
            for batch in [log.find_over(txid)]]  # fmt: skip


def test_the_last_batches_are_kept_with_their_metadata_and_times(made: Made, tmp_path: Path) -> None:
    log = run_batches(taken(made, tmp_path), 1, 9, 3)
    for found in (log, made(tmp_path)):
        assert ways_back(found) == [(txid, {"n": txid}) for txid in (9, 8, 7, 6)]
        assert all(abs(each.ended - time.time()) < 60 for each in found.list_kept() if each.ended)


def test_the_batches_of_a_log_that_has_few_reach_to_its_beginning(made: Made, tmp_path: Path) -> None:
    log = run_batches(taken(made, tmp_path), 1, 2, 3)
    assert ways_back(log) == [(2, {"n": 2}), (1, {"n": 1}), (0, None)]
    assert ways_back(taken(made, tmp_path / "new")) == [(0, None)]


def test_a_log_that_began_with_imported_positions_does_not_go_back_to_its_beginning(made: Made, tmp_path: Path) -> None:
    """What the spouts had there is in no entry any more."""
    log = taken(made, tmp_path)
    log.store.put(IMPORTED, 0, {"base": 0})
    assert ways_back(run_batches(log, 1, 2, 3)) == [(2, {"n": 2}), (1, {"n": 1})]


@pytest.mark.parametrize("numbers", [(3, 1, 3), (1, 3, 5), (0, 3, 2), (5, 0, 5)])
def test_where_another_number_is_kept_the_ways_back_begin_anew(
    made: Made, tmp_path: Path, numbers: tuple[int, ...]
) -> None:
    """What the spouts kept beside the log may be gone for the batches before."""
    log, last = taken(made, tmp_path), 0
    for kept in numbers:
        log, first, last = run_batches(log, last + 1, last + 7, kept), last + 1, last + 7
        assert [txid for txid, _ in ways_back(log)] == list(range(last, max(first, last - kept) - 1, -1))
    one = run_batches(log, last + 1, last + 1, numbers[-1])
    assert all(metadata == {"n": txid} for txid, metadata in ways_back(one))


def test_a_driver_killed_in_the_end_of_a_batch_leaves_one_way_back_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch has taken the place of the oldest one, and is not over."""
    log = run_batches(taken(journal, tmp_path), 1, 9, 3)
    log.begin(10, {"n": 10})
    note = log.store.note
    monkeypatch.setattr(log.store, "note", lambda path, txid, value: note(path, txid, value) if txid else None)
    log.end(10, {"n": 10})
    assert ways_back(journal(tmp_path)) == [(txid, {"n": txid}) for txid in (9, 8, 7)]


def test_a_log_that_went_back_has_forgotten_what_was_later(made: Made, tmp_path: Path) -> None:
    log = run_batches(taken(made, tmp_path), 1, 9, 4)
    log.store.put(AGREEMENT, 0, {"base": 0, "lineage": "x", "run": "old"})
    for txid in (6, 8, 9):
        log.store.put("s/positions", txid, {"at": txid})
    log.begin(10, {"n": 10})
    log.intend(Rewinding(7, ("s",)))
    assert made(tmp_path).read_state(None).rewinding == Rewinding(7, ("s",))
    log.go_back(7, "new", {})
    for found in (log, made(tmp_path)):
        standing = found.read_state(None)
        assert (standing.committed, standing.begun, standing.rewinding) == (7, False, None)
        assert ways_back(found) == [(7, {"n": 7}), (6, {"n": 6}), (5, {"n": 5})]
        assert found.store.txids("s/positions") == [6]
        assert standing.record is not None and standing.record["run"] == "new"
    assert ways_back(run_batches(log, 8, 8, 4)) == [(txid, {"n": txid}) for txid in (8, 7, 6, 5)]


def test_what_a_run_that_went_back_may_need_of_positions_stays(tmp_path: Path) -> None:
    """That of the last batch that has one, up to the batch to which it may go back."""
    store = AppendLogStore(tmp_path)
    for txid in (1, 3, 7, 9):
        store.put("s/positions", txid, {"at": txid})
    store.cleanup_before("s/positions", 5)
    assert store.txids("s/positions") == [3, 7, 9]
    store.cleanup_before("s/positions", 9)
    assert store.txids("s/positions") == [9]
