"""The journal of a local checkpoint: killed at every call, cut off at every byte, damaged, full, taken over."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from faults.disk import kill_before
from faults.forks import fork

from trident_py.checkpoints import append_log
from trident_py.checkpoints.append_log import HEADER, AppendLogStore, entries_of
from trident_py.checkpoints.metadata_store import LOG
from trident_py.errors import SpoutError, TridentError, ZombieError

Entries = dict[str, dict[int, Any]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AppendLogStore]:
    made = AppendLogStore(tmp_path)
    yield made
    made.close()


def read(folder: Path) -> Entries:
    found = AppendLogStore(folder)
    try:
        return {path: found._read(path) for path in found.paths("") if found._read(path)}
    finally:
        found.close()


# -- SIGKILL ----------------------------------------------------------------------------------------------------------


def writes(folder: Path, number: int, told: Any) -> None:
    """In a process of its own: writes until it is killed; tells what has returned. Small, so it rewrites often."""
    kill_before(number, 150)
    store = AppendLogStore(folder)
    for txid in range(1, 7):
        store.put("begun", txid, "x" * 40)
        store.cleanup_before("begun", txid)
        told.send(("begun", txid))
        store.note("batches", txid, txid)
        told.send(("batches", txid))
    told.send(("end", 0))


def test_a_process_killed_before_any_call_to_the_disk_loses_nothing_that_has_returned(tmp_path: Path) -> None:
    number, killed, last = 0, 0, ("", 0)
    while last != ("end", 0):
        number += 1
        folder = tmp_path / str(number)
        told, theirs = multiprocessing.Pipe()
        process = fork(writes, folder, number, theirs)
        process.start()
        theirs.close()
        last, returned = ("", 0), {"begun": 0, "batches": 0}
        while True:
            try:
                last = told.recv()
            except EOFError:
                break
            returned |= dict([last])
        process.join()
        killed += process.exitcode == -signal.SIGKILL
        found = read(folder)
        for path, txid in returned.items():
            there = max(found.get(path, {0: None}))
            assert there in (txid, txid + 1), (number, path, txid, there)
    assert killed == number - 1 > 25


# -- power ------------------------------------------------------------------------------------------------------------


def test_a_file_that_was_cut_off_anywhere_holds_what_stands_before_the_cut(tmp_path: Path) -> None:
    store = AppendLogStore(tmp_path / "whole")
    ends = [len(HEADER)]
    for txid in range(1, 6):
        store.put("p", txid, {"at": txid})
        ends.append(store.file.stat().st_size)
    data = store.file.read_bytes()
    store.close()
    for cut in range(len(HEADER), len(data) + 1):
        file = tmp_path / "cut" / append_log.JOURNAL
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data[:cut])
        whole = sum(end <= cut for end in ends) - 1
        assert read(file.parent) == ({"p": {txid: {"at": txid} for txid in range(1, whole + 1)}} if whole else {})
        again = AppendLogStore(file.parent)  # and it goes on behind what is left
        again.put("q", 9, "next")
        again.close()
        assert read(file.parent)["q"] == {9: "next"}


def test_what_was_written_since_the_last_sync_may_be_lost_in_any_part(store: AppendLogStore) -> None:
    """The disk may have taken the second of two writes and not the first."""
    store.put("begun", 1, "one")
    before = store.file.stat().st_size
    store.note("batches", 1, "one")
    middle = store.file.stat().st_size
    store.note("batches", 2, "two")
    data = bytearray(store.file.read_bytes())
    data[before:middle] = bytes(middle - before)
    store.file.write_bytes(data)
    assert read(store.file.parent) == {"begun": {1: "one"}}


def test_a_write_returns_when_it_is_on_the_disk_and_a_note_before(
    store: AppendLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    sync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda file: (sync(file), synced.append(os.fstat(file).st_size))[0])
    store.put("p", 1, "one")
    assert synced[-1] == store.file.stat().st_size
    store.note("p", 2, "two")
    assert synced[-1] < store.file.stat().st_size
    store.put("p", 3, "three")
    assert synced[-1] == store.file.stat().st_size
    store.note("p", 4, "four")
    size = store.file.stat().st_size
    store.close()
    assert synced[-1] == size
    store.__init__(store.file.parent)  # type: ignore[misc]


def test_any_bit_that_flips_in_a_whole_file_is_damage_and_none_is_a_torn_end(store: AppendLogStore) -> None:
    """The last line counts: it was synced, so a driver may have gone on from it."""
    for txid in range(1, 4):
        store.put("begun", txid, {"spout@1": txid})
    store.note("batches", 3, {})
    data = store.file.read_bytes()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SpoutError, match="journal is damaged"):
            entries_of(bytes(flipped), store.file)


def test_damage_is_told_with_the_file_which_stays_as_it_is(store: AppendLogStore) -> None:
    store.put("p", 1, "one")
    data = store.file.read_bytes().replace(b"one", b"One")
    store.file.write_bytes(data)
    with pytest.raises(SpoutError, match=r"journal is damaged: .*restore the file from a copy"):
        read(store.file.parent)
    assert store.file.read_bytes() == data


def test_a_value_that_was_removed_stays_removed(store: AppendLogStore) -> None:
    store.put("decided", 1, {"attempt": 0})
    store.remove("decided", 1)
    assert read(store.file.parent) == {}


def test_the_file_is_bounded(store: AppendLogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append_log, "LEAST_SIZE", 1000)
    store._limit = 1000
    for txid in range(500):
        store.put("p", txid, {"offset": txid})
        store.cleanup_before("p", txid)
    assert store.file.stat().st_size < 1100
    assert read(store.file.parent)["p"][499] == {"offset": 499}
    assert sorted(file.name for file in store.file.parent.iterdir()) == ["journal", "lock"]


# -- a full disk ------------------------------------------------------------------------------------------------------


def test_after_an_error_of_the_disk_nothing_is_written_any_more(
    store: AppendLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("p", 1, "one")
    write, calls = os.write, []

    def full(file: int, data: Any) -> int:
        calls.append(file)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return write(file, bytes(data[:7]))

    monkeypatch.setattr(os, "write", full)
    told = "file {} cannot be written at txid {}: .Errno 28. No space left on device. Make room there, then start again"
    with pytest.raises(TridentError, match=told.format(store.file, 2)):
        store.put("p", 2, "two")
    monkeypatch.undo()
    with pytest.raises(TridentError, match=told.format(store.file, 3)):
        store.put("p", 3, "three")
    assert read(store.file.parent) == {"p": {1: "one"}}


def test_after_a_sync_that_failed_nothing_is_written_any_more(
    store: AppendLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the disk has the line is unknown then, and a second sync would not tell."""
    store.put("p", 1, "one")

    def fails(file: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fails)
    for txid in (2, 3):
        with pytest.raises(TridentError, match=f"{store.file} cannot be written at txid {txid}: .Errno 5. Input"):
            store.put("p", txid, "more")
    monkeypatch.undo()
    assert 3 not in read(store.file.parent)["p"]


@pytest.fixture
def syncs_fail(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets the syncs of these numbers fail, counted from now on, of whatever file."""

    def fails(*numbers: int) -> None:
        count = itertools.count(1)

        def sync(real: Callable[[int], None], file: int) -> None:
            if next(count) in numbers:
                raise OSError(5, "Input/output error")
            real(file)

        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, partial(sync, getattr(os, name)))

    return fails


@pytest.mark.parametrize("failed", [(1,), (1, 2), (1, 4)], ids=["it", "the new file", "the new file in its place"])
@pytest.mark.parametrize("again", ["settle", "put", "close"])
def test_after_a_settle_that_failed_another_file_takes_the_place_of_that_one(
    store: AppendLogStore, failed: tuple[int, ...], again: str, syncs_fail: Callable[..., None]
) -> None:
    """A second sync of the same file may succeed although the disk has lost the line."""
    store.put("p", 1, "one")
    store.note("p", 2, "two")
    old = store.file.open("rb")  # so that no other file gets its number
    syncs_fail(*failed)
    for _ in failed:
        with pytest.raises(TridentError, match=r"journal cannot be made durable: .*Input/output error"):
            store.settle()
    if again == "put":
        store.put("p", 3, "three")
    elif again == "settle":
        store.settle()
        assert store._written.durable == store._written.size
    else:
        store.close()
        store.__init__(store.file.parent)  # type: ignore[misc]
    with old:
        assert not os.path.samestat(store.file.stat(), os.fstat(old.fileno()))
    assert read(store.file.parent) == {"p": {1: "one", 2: "two", **({3: "three"} if again == "put" else {})}}


def test_a_settle_that_failed_does_not_write_over_another_driver_later(
    store: AppendLogStore, syncs_fail: Callable[..., None]
) -> None:
    store.note("p", 1, "one")
    store.note("p", 2, "two")
    syncs_fail(1)
    with pytest.raises(TridentError, match="cannot be made durable"):
        store.settle()
    with closing(AppendLogStore(store.file.parent)) as newer:
        newer.seize(LOG, lambda entries: (0, {"driver": {"host": "there", "pid": 4711}}))
        store.settle()
        newer.put("p", 3, "three")
    with pytest.raises(ZombieError, match="4711"):
        store.put("p", 3, "late")


def test_a_disk_that_fails_leaves_no_file_open(store: AppendLogStore, syncs_fail: Callable[..., None]) -> None:
    store.put("p", 1, "one")
    store.note("p", 2, "two")
    opened = [store._file, store._lock_file]
    syncs_fail(1)
    with pytest.raises(TridentError, match="cannot be made durable"):
        store.close()
    for file in opened:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(file)
    store.__init__(store.file.parent)  # type: ignore[misc]


# -- another driver ---------------------------------------------------------------------------------------------------


def test_the_older_of_two_is_refused_with_host_and_process_whatever_it_writes(store: AppendLogStore) -> None:
    store.put("begun", 1, "older")
    newer = AppendLogStore(store.file.parent)
    newer.seize(LOG, lambda entries: (0, {"driver": {"host": "there", "pid": 4711}}))
    before = store.file.read_bytes()
    for write in (store.put, store.note):
        for _ in range(2):
            with pytest.raises(ZombieError, match=r"process 4711 on host there has taken it over .* Nothing more"):
                write("begun", 2, "late")
    with pytest.raises(ZombieError, match="4711"):
        store.remove("begun", 1)
    assert store.file.read_bytes() == before
    newer.put("begun", 2, "newer")
    newer.close()
    assert read(store.file.parent)["begun"] == {1: "older", 2: "newer"}


def test_who_seizes_it_has_everything_that_the_older_one_has_written(store: AppendLogStore) -> None:
    newer = AppendLogStore(store.file.parent)
    assert newer.get("batches", 1) is None
    store.put("batches", 1, "over")
    newer.seize(LOG, lambda entries: (0, {"driver": {}}))
    assert newer.get("batches", 1) == "over"
    with pytest.raises(ZombieError):
        store.note("batches", 2, "late")
    newer.close()


def test_a_journal_that_is_gone_is_not_made_anew(store: AppendLogStore) -> None:
    store.put("p", 1, "one")
    store.file.unlink()
    for _ in range(2):
        with pytest.raises(ZombieError, match="was moved or deleted"):
            store.put("p", 2, "two")
    assert not store.file.exists()


def test_a_folder_that_a_stopped_process_has_locked_is_told(
    store: AppendLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("p", 1, "one")
    monkeypatch.setattr(append_log, "LOCK_SECONDS", 0.05)
    with store._lock_folder(), pytest.raises(TridentError, match=r"is locked: .*fuser .*lock"):
        read(store.file.parent)
    assert read(store.file.parent) == {"p": {1: "one"}}
