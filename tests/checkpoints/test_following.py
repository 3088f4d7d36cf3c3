"""The log of batches that follow others in a micro-batch of Spark, and Spark's own logs, tell one story."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest
from linked_files import LinkedFiles

from trident_py.checkpoints.converting import _reached
from trident_py.checkpoints.following import (
    FILE,
    Followed,
    FollowingLog,
    JournalFollowingLog,
    VersionedFollowingLog,
    copied_journal,
    first_txid,
)
from trident_py.checkpoints.sparklogs import last_batch, offset_of, txid_of
from trident_py.errors import SpoutError, ZombieError
from trident_py.spouts.versions import VersionedMetadataStore

BASE = 7
SIZES = list(product((0, 1, 2), repeat=3))
"""How many batches follow the first one, in each of three micro-batches."""
DRIVER = {"host": "mill", "pid": 4711, "id": "x"}
Log = Callable[[Path], FollowingLog]


def linked(folder: Path) -> VersionedFollowingLog:
    """The log as it is in HDFS and S3."""
    return VersionedFollowingLog(VersionedMetadataStore(LinkedFiles(folder / "trident")), str(folder))


LOGS = pytest.mark.parametrize("log", [JournalFollowingLog, linked], ids=["journal", "versions"])


def metadata(txid: int) -> dict:
    return {"in": txid}


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)


class History:
    """What a driver does, step by step, and how far it really is: ``over``, and whether the next batch has begun."""

    def __init__(self, folder: Path, sizes: tuple[int, ...], log: Log) -> None:
        self.folder, self.sizes = folder, sizes
        self.log = log(folder)
        self.log.take(DRIVER)
        self.over, self.begun = BASE, False
        self.durable = b""
        self.is_safe()

    def is_safe(self) -> None:
        """What a journal has now outlasts a power loss."""
        if (self.folder / FILE).exists():
            self.durable = (self.folder / FILE).read_bytes()

    def steps(self) -> Iterator[str]:
        """Pauses behind each step: a driver may die there."""
        for number, followers in enumerate(self.sizes):
            first = self.over + 1
            head = f"v1\n{{}}\n{json.dumps(offset_of(first, metadata(first)))}"
            write(self.folder, f"offsets/{number}", head)
            self.begun = True
            yield "logged"
            for txid in range(first, first + followers + 1):
                if txid > first:
                    self.log.begun(Followed(number, first, txid - 1, metadata(txid - 1), metadata(txid)))
                    self.is_safe()
                    self.begun = True
                    yield "begun"
                self.over, self.begun = txid, False
                yield "states have it, the log does not"
                now = Followed(number, first, txid, metadata(txid), None)
                self.log.over(now)
                yield "over"
            if followers:
                self.log.ended(now)
            yield "ended"
            write(self.folder, f"commits/{number}", "v1\n{}")
            yield "committed"


def dies_after(folder: Path, sizes: tuple[int, ...], log: Log, steps: int) -> tuple[History, str] | None:
    """A driver that has ended after so many steps, and the last of them; None if there are fewer."""
    history = History(folder, sizes, log)
    for number, step in enumerate(history.steps(), 1):
        if number == steps:
            history.log.close()
            return history, step
    history.log.close()
    return None


def deaths(tmp_path: Path, log: Log) -> Iterator[tuple[History, str]]:
    for sizes in SIZES:
        steps = 1
        while (died := dies_after(tmp_path / "c", sizes, log, steps)) is not None:
            yield died
            shutil.rmtree(tmp_path / "c")
            steps += 1
        shutil.rmtree(tmp_path / "c")


def reached(folder: Path, log: Log) -> tuple[int, dict | None, dict | None]:
    with closing(log(folder)) as newer:
        return _reached(folder, BASE, newer)


def found(folder: Path, log: Log) -> tuple[int, Followed | None]:
    """What a newer driver reads: the last micro-batch that Spark has committed, and what followed."""
    newer, committed = log(folder), last_batch(folder)
    done = -1 if committed is None else committed
    offsets = folder / "offsets" / str(done + 1)
    followed = newer.read(committed, txid_of(offsets.read_text() if offsets.exists() else None))
    newer.close()
    return done, followed


def killed(history: History) -> None:
    """The process was killed: all that it wrote is there."""


def power_lost(history: History) -> None:
    """Nothing of the journal is there that was not synced. (HDFS and S3 have synced what they have answered.)"""
    if (history.folder / FILE).exists():
        (history.folder / FILE).write_bytes(history.durable)


@LOGS
@pytest.mark.parametrize("happened", [killed, power_lost])
def test_a_driver_that_dies_anywhere_leaves_what_is_over_and_what_has_begun(
    tmp_path: Path, happened: Callable[[History], None], log: Log
) -> None:
    """A batch whose end was not recorded is repeated as it was. Where Spark has the end, it is over."""
    seen = 0
    for history, _ in deaths(tmp_path, log):
        happened(history)
        txid, last, begun = reached(history.folder, log)
        repeated = history.over - txid
        assert repeated in (0, 1)
        if repeated:
            assert begun == metadata(history.over) and not history.begun
        else:
            assert begun == (metadata(history.over + 1) if history.begun else None)
        assert last == (metadata(txid) if txid > BASE else None)
        seen += 1
    assert seen > 300


@LOGS
def test_the_next_micro_batch_has_the_txid_behind_all_that_came_before(tmp_path: Path, log: Log) -> None:
    for history, _ in deaths(tmp_path, log):
        done, followed = found(history.folder, log)
        if followed is None or followed.micro_batch <= done:
            assert first_txid(done + 1, BASE, followed) == BASE + done + 2 + sum(history.sizes[: done + 1])
        else:
            assert followed.micro_batch == done + 1
            assert first_txid(done + 2, BASE, followed) == followed.txid + 1  # once Spark has committed it


@LOGS
def test_a_micro_batch_that_the_older_driver_commits_after_the_newer_one_has_read_shifts_no_txid(
    tmp_path: Path, log: Log
) -> None:
    """It had its last batch behind it when the newer one took the checkpoint; only Spark had not heard of it."""
    seen = 0
    for history, step in deaths(tmp_path, log):
        if step == "ended":
            done, followed = found(history.folder, log)
            assert first_txid(done + 2, BASE, followed) == history.over + 1  # Spark begins behind what it then finds
            seen += 1
    assert seen == 3 * len(SIZES)


def test_micro_batches_of_one_batch_are_counted_on_behind_those_of_several() -> None:
    followed = Followed(3, 5, 8, {}, None)
    assert [first_txid(number, 0, followed) for number in (3, 4, 6)] == [5, 9, 11]
    assert [first_txid(number, 10, None) for number in (0, 4)] == [11, 15]


def test_what_spark_has_not_synced_may_be_lost_with_the_power(tmp_path: Path) -> None:
    """Of Spark's logs any number of the last files: the journal still has all but the last batch."""
    seen = 0
    for history, _ in deaths(tmp_path, JournalFollowingLog):
        files = sorted(history.folder.glob("[oc]*/*"), key=lambda file: (int(file.name), file.parent.name == "commits"))
        for file in [*reversed(files)]:
            file.unlink()
            txid, last, begun = reached(history.folder, JournalFollowingLog)
            if txid == BASE and begun is None:
                continue  # it was Spark's offset alone that had the first batch
            assert history.over - txid in (0, 1)
            assert last == (metadata(txid) if txid > BASE else None)
            done, followed = found(history.folder, JournalFollowingLog)
            assert followed is not None
            if followed.micro_batch == done + 1:
                assert (history.folder / "offsets" / str(done + 1)).exists()
            else:
                assert first_txid(done + 1, BASE, followed) == txid + 1
            seen += 1
    assert seen > 1000


@LOGS
def test_a_replay_with_other_metadata_than_spark_has_logged_is_what_counts(tmp_path: Path, log: Log) -> None:
    """The first batch of a micro-batch, killed behind each step."""
    one, other = log(tmp_path), {"other": 8}
    one.take(DRIVER)
    for number, txid, last in ((0, 8, None), (1, 9, other)):
        write(tmp_path, f"offsets/{number}", f"v1\n{{}}\n{json.dumps(offset_of(txid, metadata(txid)))}")
        before = Followed(number, txid, txid - 1, last or {}, other)
        one.begun(before)
        assert found(tmp_path, log) == (number - 1, before._replace(micro_batch=number - 1))
        assert first_txid(number, BASE, found(tmp_path, log)[1]) == txid
        assert reached(tmp_path, log) == (txid - 1, last, other)
        first = Followed(number, txid, txid, other, None)
        one.over(first)
        one.ended(first)
        assert found(tmp_path, log) == (number - 1, first)
        write(tmp_path, f"commits/{number}", "v1\n{}")
        assert found(tmp_path, log) == (number, first)
        assert reached(tmp_path, log) == (txid, other, None)
    one.close()


@LOGS
def test_an_older_driver_writes_nothing_after_a_newer_one_has_taken_the_log(tmp_path: Path, log: Log) -> None:
    older, newer = log(tmp_path), log(tmp_path)
    older.take({**DRIVER, "pid": 1})
    has = Followed(0, 1, 2, {}, {"in": 3})
    older.over(has._replace(begun=None))
    older.begun(has)
    newer.take(DRIVER)
    offset = 1  # the first txid, in Spark's log
    refused = r"process 4711 on host mill has taken it over|it has changed .*/followed/"
    for write in (older.begun, older.ended if log is linked else older.over):
        with pytest.raises(ZombieError, match=refused):
            write(Followed(0, 1, 3, {"in": 3}, None))
    assert newer.read(None, offset) == has
    newer.over(Followed(0, 1, 3, {"in": 3}, None))
    newer.begun(Followed(0, 1, 3, {"in": 3}, {"in": 4}))
    assert newer.read(None, offset) == Followed(0, 1, 3, {"in": 3}, {"in": 4})
    older.close()
    newer.close()


@LOGS
def test_what_another_driver_has_written_is_read_until_the_log_is_taken(tmp_path: Path, log: Log) -> None:
    older, newer = log(tmp_path), log(tmp_path)
    older.take({**DRIVER, "pid": 1})
    for txid in (2, 3):
        now = Followed(0, 1, txid, {}, None)
        older.over(now)
        older.ended(now)
        assert newer.read(None, 1) == now
    older.close()
    newer.close()


def test_batches_that_follow_make_one_file_each_and_leave_one(tmp_path: Path) -> None:
    log, files = linked(tmp_path), LinkedFiles(tmp_path / "trident")
    log.take(DRIVER)
    for txid in range(1, 30):
        log.over(Followed(0, 1, txid, {}, None))
        log.begun(Followed(0, 1, txid, {}, {}))
        log.begun(Followed(0, 1, txid, {}, {}))  # another attempt
    log.ended(Followed(0, 1, 30, {}, None))
    assert files.names("followed") == ["31.json"]  # with the one that took it


def test_a_journal_that_was_copied_into_hdfs_or_s3_is_read_until_a_batch_follows_there(tmp_path: Path) -> None:
    log = JournalFollowingLog(tmp_path)
    last = Followed(0, 1, 1, {"in": 1}, {"in": 2})
    log.over(last._replace(begun=None))
    log.begun(last)
    log.close()
    text = (tmp_path / FILE).read_text()
    store = VersionedMetadataStore(LinkedFiles(tmp_path / "trident"))
    copied = VersionedFollowingLog(store, "hdfs://far", text)
    assert copied.read(None, 1) == last
    copied.take(DRIVER)
    assert copied.read(None, 1) == last
    now = Followed(0, 1, 2, {"in": 2}, {"in": 3})
    copied.begun(now)
    assert copied.read(None, 1) == VersionedFollowingLog(store, "hdfs://far", text).read(None, 1) == now
    assert copied_journal(None, "") is None
    with pytest.raises(SpoutError, match="hdfs://far/trident/following/journal is damaged"):
        copied_journal(text[3:], "hdfs://far")
