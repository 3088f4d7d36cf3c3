"""The log of batches that follow others in a micro-batch of Spark, and Spark's own logs, tell one story."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from trident_py.checkpoints.converting import _reached
from trident_py.checkpoints.following import FILE, Followed, FollowingLog, KeptFollowingLog, first_txid
from trident_py.checkpoints.sparklogs import last_batch, offset_of
from trident_py.errors import LineageError, SpoutError, ZombieError

BASE = 7
SIZES = list(product((0, 1, 2), repeat=3))
"""How many batches follow the first one, in each of three micro-batches."""
DRIVER = {"host": "mill", "pid": 4711, "id": "x"}


def metadata(txid: int) -> dict:
    return {"in": txid}


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)


class History:
    """What a driver does, step by step, and how far it really is: ``over``, and whether the next batch has begun."""

    def __init__(self, folder: Path, sizes: tuple[int, ...]) -> None:
        self.folder, self.sizes = folder, sizes
        self.log = KeptFollowingLog(folder)
        self.log.take(DRIVER)
        self.over, self.begun = BASE, False
        self.durable = (folder / FILE).read_bytes()

    def steps(self) -> Iterator[None]:
        """Pauses behind each step: a driver may die there."""
        for number, followers in enumerate(self.sizes):
            first = self.over + 1
            head = f"v1\n{{}}\n{json.dumps(offset_of(first, metadata(first)))}"
            write(self.folder, f"offsets/{number}", head)
            self.begun = True
            yield
            for txid in range(first, first + followers + 1):
                if txid > first:
                    self.log.begun(number, first, txid, metadata(txid))
                    self.durable = (self.folder / FILE).read_bytes()
                    self.begun = True
                    yield
                self.over, self.begun = txid, False
                yield  # states have it, the log does not
                self.log.over(number, first, txid, metadata(txid))
                yield
            write(self.folder, f"commits/{number}", "v1\n{}")
            yield


def dies_after(folder: Path, sizes: tuple[int, ...], steps: int) -> History | None:
    """A driver that has ended after so many steps; None if there are fewer."""
    history = History(folder, sizes)
    for number, _ in enumerate(history.steps(), 1):
        if number == steps:
            history.log.close()
            return history
    history.log.close()
    return None


def deaths(tmp_path: Path) -> Iterator[History]:
    for sizes in SIZES:
        steps = 1
        while (history := dies_after(tmp_path / "c", sizes, steps)) is not None:
            yield history
            shutil.rmtree(tmp_path / "c")
            steps += 1
        shutil.rmtree(tmp_path / "c")


def killed(history: History) -> None:
    """The process was killed: all that it wrote is there."""


def power_lost(history: History) -> None:
    """Nothing of the journal is there that was not synced."""
    (history.folder / FILE).write_bytes(history.durable)


@pytest.mark.parametrize("happened", [killed, power_lost])
def test_a_driver_that_dies_anywhere_leaves_what_is_over_and_what_has_begun(
    tmp_path: Path, happened: Callable[[History], None]
) -> None:
    """A batch whose end was not recorded is repeated as it was. Where Spark has the end, it is over."""
    seen = 0
    for history in deaths(tmp_path):
        happened(history)
        txid, last, begun = _reached(history.folder, BASE)
        repeated = history.over - txid
        assert repeated in (0, 1)
        if repeated:
            assert begun == metadata(history.over) and not history.begun
        else:
            assert begun == (metadata(history.over + 1) if history.begun else None)
        assert last == (metadata(txid) if txid > BASE else None)
        seen += 1
    assert seen > 300


def test_the_next_micro_batch_has_the_txid_behind_all_that_came_before(tmp_path: Path) -> None:
    for history in deaths(tmp_path):
        committed = last_batch(history.folder)
        log = KeptFollowingLog(history.folder)
        followed = log.read(committed)
        log.close()
        done = -1 if committed is None else committed
        if followed is None or followed.micro_batch <= done:
            assert first_txid(done + 1, BASE, followed) == BASE + done + 2 + sum(history.sizes[: done + 1])
        else:
            assert followed.micro_batch == done + 1
            assert first_txid(done + 2, BASE, followed) == followed.txid + 1  # once Spark has committed it


def test_micro_batches_of_one_batch_are_counted_on_behind_those_of_several() -> None:
    followed = Followed(3, 5, 8, {}, None)
    assert [first_txid(number, 0, followed) for number in (3, 4, 6)] == [5, 9, 11]
    assert [first_txid(number, 10, None) for number in (0, 4)] == [11, 15]


def test_a_log_that_is_ahead_of_sparks_was_restored_from_another_copy(tmp_path: Path) -> None:
    log = KeptFollowingLog(tmp_path)
    log.over(4, 5, 5, {})
    assert log.read(3) == Followed(4, 5, 5, {}, None)
    with pytest.raises(LineageError, match=r"restored in parts: .*journal tells of batch 4, Spark's logs end with 2"):
        log.read(2)
    log.close()


def test_an_older_driver_writes_nothing_after_a_newer_one_has_taken_the_log(tmp_path: Path) -> None:
    older, newer = KeptFollowingLog(tmp_path), KeptFollowingLog(tmp_path)
    older.take({**DRIVER, "pid": 1})
    older.over(0, 1, 1, {})
    newer.take(DRIVER)
    for write in (older.begun, older.over):
        with pytest.raises(ZombieError, match="process 4711 on host mill has taken it over"):
            write(0, 1, 2, {})
    assert newer.read(None) == Followed(0, 1, 1, {}, None)
    older.close()
    newer.close()


def test_a_copied_log_is_read_and_a_damaged_one_is_told(tmp_path: Path) -> None:
    log = KeptFollowingLog(tmp_path)
    log.over(0, 1, 1, {"in": 1})
    log.begun(0, 1, 2, {"in": 2})
    log.close()
    text = (tmp_path / FILE).read_text()
    copied = FollowingLog.copied(text, "hdfs://far/journal")
    assert copied.read(None) == Followed(0, 1, 1, {"in": 1}, {"in": 2})
    assert FollowingLog.copied(None, "").read(None) is None
    with pytest.raises(SpoutError, match="hdfs://far/journal is damaged"):
        FollowingLog.copied(text[3:], "hdfs://far/journal")
