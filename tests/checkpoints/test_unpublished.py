"""A batch that was decided and not published, of a spout that has no metadata and ends with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from states.sql import BatchState, RowUpdater
from trident_py import Fields, LocalCluster, TopologyError, TridentTopology
from trident_py.engine.two_phase import Publisher
from trident_py.spouts import ICommitterTridentSpout, ITridentSpout

QUEUE = [[1], [2], [3], [4]]


class Committer(ICommitterTridentSpout):
    """Two numbers a batch. Keeps (txid, position, position before), so a repeated txid begins where it began."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def getOutputFields(self) -> Fields:
        return Fields("n bigint")

    def getComponentConfiguration(self) -> dict:
        return {"topology.max.task.parallelism": 1}

    def kept(self) -> tuple[int, int, int]:
        txid, at, before = map(int, (self.file.read_text() if self.file.exists() else "0 0 0").split())
        return txid, at, before

    def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
        return _Ends(self)

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        return _Emits(self)


class _Ends(ITridentSpout.BatchCoordinator):
    def __init__(self, spout: Committer) -> None:
        self.spout = spout

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        return None

    def isReady(self, txid: int) -> bool:
        return not self.isExhausted()

    def isExhausted(self) -> bool:
        return self.spout.kept()[1] >= len(QUEUE)


class _Emits(ICommitterTridentSpout.Emitter):
    def __init__(self, spout: Committer) -> None:
        self.spout = spout

    def start(self, tx: Any) -> int:
        txid, at, before = self.spout.kept()
        return before if txid == tx.txid else at

    def emitBatch(self, tx: Any, coordinatorMeta: Any, collector: Any) -> None:
        for values in QUEUE[self.start(tx) : self.start(tx) + 2]:
            collector.emit(values)

    def commit(self, tx: Any) -> None:
        self.spout.file.write_text(f"{tx.txid} {self.start(tx) + 2} {self.start(tx)}")


@pytest.mark.parametrize("step", ["insist", "publish"], ids=["decided", "not yet decided"])
def test_the_last_batch_of_a_spout_without_metadata_is_published_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    state = BatchState(f"sqlite:///{tmp_path}/rows.db", "rows", "n bigint")

    def run() -> Any:
        topology = TridentTopology()
        topology.newStream("s", Committer(tmp_path / "at")).partitionPersist(state, "n", RowUpdater())
        with LocalCluster(str(tmp_path / "checkpoints")) as cluster:
            running = cluster.submitTopology("t", {}, topology.build())
            running.awaitTermination(20)
            return running

    with monkeypatch.context() as dying:
        whole = getattr(Publisher, step)

        def ends(publisher: Any, batch: Any, *more: Any) -> None:
            if batch.txid == 2:
                raise RuntimeError("asked by the test")
            whole(publisher, batch, *more)

        dying.setattr(Publisher, step, ends)
        with pytest.raises(TopologyError, match="asked by the test"):
            run()
    assert run().txid == 2
    assert sorted(n for (n,) in state.stored()) == [1, 2, 3, 4]
