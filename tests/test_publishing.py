"""What happens between "all partitions have committed" and "everybody has been told"."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from trident_py import FailedException, TopologyError, TridentTopology
from trident_py.checkpoints.append_log import JOURNAL, AppendLogStore
from trident_py.engine.program import BatchInfo, compile_plan
from trident_py.engine.two_phase import Publisher
from trident_py.errors import LostCommits, StateError, ZombieError
from trident_py.operations.builtin import Count
from trident_py.report.progress import RunningTopology
from trident_py.state import BatchParticipant
from trident_py.testing import FixedBatchSpout, MemoryMapState


@dataclass
class Participant(BatchParticipant):
    """Remembers what it is told, and raises what it is to raise, one error for each call."""

    errors: list[Exception] = field(default_factory=list)
    decides: bool = False
    keeps_receipts: bool = False
    shown: Any = False
    told: list[Any] = field(default_factory=list)

    def open(self, conf: dict) -> int:
        return 1

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None: ...

    def abort(self, txid: int, attempt: int) -> None: ...

    def publish(self, txid: int, attempt: int, receipts: Any) -> None:
        self.told.append((txid, attempt, list(receipts)))
        if self.errors:
            raise self.errors.pop(0)

    def give_up(self, txid: int) -> bool:
        if isinstance(self.shown, Exception):
            raise self.shown
        return not self.shown


def publisher(folder: Path, conf: dict | None = None, **participants: Participant) -> Publisher:
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("v", 1, (1,))).persistentAggregate(MemoryMapState.Factory(), Count(), "n")
    (program,) = compile_plan(topology.plan(), {**(conf or {}), "trident.metadata": AppendLogStore(folder)})
    return Publisher(program, dict(participants), RunningTopology("t", [program.component]))


BATCH = BatchInfo(7, 2)
RECEIPTS = {"plain": [1], "batch": [{"token": "x"}]}


def test_without_a_deciding_state_nothing_is_written_and_an_error_passes_through(tmp_path: Path) -> None:
    plain = Participant([FailedException("away")])
    with pytest.raises(FailedException, match="away"):
        publisher(tmp_path, plain=plain).publish(BATCH, RECEIPTS, {})
    assert plain.told == [(7, 2, [1])]
    assert not (tmp_path / JOURNAL).exists()


def test_a_deciding_state_is_told_first_and_what_fails_is_told_again(tmp_path: Path) -> None:
    plain, batch = Participant([FailedException("away")] * 2), Participant([FailedException("away")], decides=True)
    made = publisher(tmp_path, plain=plain, batch=batch)
    made.publish(BATCH, RECEIPTS, {"spout": 3})
    assert len(batch.told) == 4 and len(plain.told) == 3
    assert made.decision(7) == {"attempt": 2, "metadata": {"spout": 3}, "receipts": {"batch": [{"token": "x"}]}}
    assert publisher(tmp_path, batch=Participant(decides=True)).decision(7) == made.decision(7)  # in the next driver


def test_commits_that_are_lost_when_the_batch_is_decided_end_the_run(tmp_path: Path) -> None:
    """No replay can bring them back; the next driver, which has the receipts, finds the same."""
    rows = Participant([LostCommits("2 partitions have committed")] * 2, keeps_receipts=True)
    made = publisher(tmp_path, rows=rows, batch=Participant(decides=True))
    receipts = RECEIPTS | {"rows": [{"partition": 0}]}
    for work in (lambda: made.publish(BATCH, receipts, {}), lambda: made.insist(BATCH, made.decision(7)["receipts"])):  # type: ignore[index]
        with pytest.raises(TopologyError, match="Another state has decided the batch, so it is not replayed"):
            work()
    assert rows.told == [(7, 2, [{"partition": 0}])] * 2


def test_a_refusal_withdraws_the_decision_only_if_nothing_is_visible(tmp_path: Path) -> None:
    for shown, kept in ((False, False), (True, True), (StateError("nobody knows"), True)):
        folder = tmp_path / str(shown)
        batch = Participant([StateError("no such column")], decides=True, shown=shown)
        made = publisher(folder, batch=batch)
        with pytest.raises(TopologyError if kept else StateError, match="no such column"):
            made.publish(BATCH, RECEIPTS, {})
        assert (made.decision(7) is not None) is kept


def test_a_refusal_behind_a_visible_batch_leaves_it_decided(tmp_path: Path) -> None:
    plain, batch = Participant([StateError("gone")]), Participant(decides=True)
    made = publisher(tmp_path, plain=plain, batch=batch)
    with pytest.raises(TopologyError, match="gone"):
        made.publish(BATCH, RECEIPTS, {})
    assert made.decision(7) is not None


def test_a_limit_ends_the_telling_and_the_batch_stays_decided(tmp_path: Path) -> None:
    batch = Participant([FailedException("away")] * 9, decides=True)
    made = publisher(tmp_path, {"topology.max.batch.attempts": 2}, batch=batch)
    with pytest.raises(TopologyError, match="away"):
        made.publish(BATCH, RECEIPTS, {})
    assert len(batch.told) == 2 and made.decision(7) is not None


def test_an_older_driver_can_decide_nothing_once_a_newer_one_is_open(tmp_path: Path) -> None:
    older = publisher(tmp_path, batch=Participant(decides=True))
    older.open({"batch": 1})
    newer = publisher(tmp_path, batch=Participant(decides=True))
    newer.open({"batch": 2})
    with pytest.raises(ZombieError, match="another driver"):
        older.publish(BATCH, RECEIPTS, {})
    assert newer.decision(7) is None
    newer.publish(BATCH, {"batch": ["mine"]}, {})
    assert newer.decision(7)["receipts"] == {"batch": ["mine"]}  # type: ignore[index]
