"""Replays whose metadata is not that of the first attempt: the next batch goes on from what was committed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from states.sql import BatchState, RowUpdater
from trident_py import Fields, LocalCluster, TopologyError, TridentTopology
from trident_py.engine.two_phase import Publisher
from trident_py.errors import FailedException
from trident_py.spouts import ITridentSpout

from .folder import FolderFactory, WriteRows, written
from .test_driver_execution import inline
from .test_txids import LONG, NONE

pytestmark = pytest.mark.spark


class Growing(ITridentSpout):
    """Each batch reads from where the last one ended to the present end of a source that grows, also in a replay.

    ``end``: the file with that end. The first attempts of txids 1 and 3 fail.
    """

    kind = "opaque"

    def __init__(self, end: Path, last: int) -> None:
        self.end, self.last = end, last

    def getOutputFields(self) -> Fields:
        return Fields("n bigint")

    def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
        return Ends(self.end)

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        return Range()

    def isExhausted(self) -> bool:
        return False

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > self.last


class Ends(ITridentSpout.BatchCoordinator):
    def __init__(self, end: Path) -> None:
        self.end = end
        self.mine: set[int] = set()

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        if currMetadata is not None and txid not in self.mine:
            return currMetadata  # begun before this start
        self.mine.add(txid)
        end = int(self.end.read_text()) if self.end.exists() else 2
        self.end.write_text(str(end + 2))
        return {"from": 0 if prevMetadata is None else prevMetadata["to"], "to": end}

    def tuplesAtMost(self, metadata: Any) -> int:
        return metadata["to"] - metadata["from"]

    def isReady(self, txid: int) -> bool:
        return True


class Range(ITridentSpout.Emitter):
    def emitBatch(self, tx: Any, coordinatorMeta: Any, collector: Any) -> None:
        if tx.attemptId == 0 and tx.txid in (1, 3):
            raise FailedException("once")
        for n in range(coordinatorMeta["from"], coordinatorMeta["to"]):
            collector.emit([n])


def topology(folder: Path, last: int, state: Any, updater: Any) -> Any:
    made = TridentTopology()
    made.newStream("in", Growing(folder / "end", last)).partitionPersist(state, "n", updater)
    return made.build()


def each_once(counts: Counter[int]) -> None:
    assert counts == Counter(range(max(counts) + 1))


STARTS = (1, 2, 3, 5)
"""How far each start goes: behind a batch that was replayed, and behind others."""


def starts(make: Any, conf: dict[str, Any], folder: Path) -> None:
    """A run that ends and is started again; each tuple counts once."""
    (folder / "out").mkdir()
    for last in STARTS:
        made = topology(folder, last, FolderFactory(str(folder / "out")), WriteRows())
        running = make().submitTopology("t", conf, made)
        assert running.awaitTermination(100)
        assert running.txid == last
    each_once(Counter(row[0] for rows in written(folder / "out").values() for row in rows))


@pytest.mark.parametrize("conf", [LONG, NONE, {"topology.inline.max.tuples": 0}], ids=["following", "not", "jobs"])
def test_the_next_start_goes_on_from_the_attempt_that_was_committed(
    spark_cluster: Any, tmp_path: Path, conf: dict[str, Any]
) -> None:
    starts(lambda: spark_cluster(str(tmp_path / "checkpoints")), inline(100) | conf, tmp_path)


@pytest.mark.parametrize("remote", ["hdfs"], indirect=True)
@pytest.mark.parametrize("conf", [LONG, NONE], ids=["following", "not"])
def test_so_it_does_where_the_checkpoint_is_in_hdfs(
    remote: Any, spark_cluster: Any, tmp_path: Path, conf: dict[str, Any]
) -> None:
    starts(lambda: spark_cluster(remote.uri), inline(100) | conf, tmp_path)


def test_so_it_does_without_spark(tmp_path: Path) -> None:
    starts(lambda: LocalCluster(str(tmp_path / "checkpoints")), {}, tmp_path)


@pytest.mark.parametrize("conf", [LONG, NONE], ids=["following", "not"])
def test_a_replay_that_was_decided_is_what_the_next_batch_goes_on_from(
    spark_cluster: Any, tmp_path: Path, conf: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver ends between the decision and the end of the batch."""
    state = BatchState(f"sqlite:///{tmp_path}/rows.db", "rows", "n bigint")

    def cluster() -> Any:
        return spark_cluster(str(tmp_path / "checkpoints"))

    with monkeypatch.context() as dying:
        whole = Publisher._publish_all

        def ends(publisher: Publisher, *details: Any) -> None:
            whole(publisher, *details)
            raise RuntimeError("asked by the test")

        dying.setattr(Publisher, "_publish_all", ends)
        running = cluster().submitTopology("t", inline(100) | conf, topology(tmp_path, 4, state, RowUpdater()))
        with pytest.raises(TopologyError, match="asked by the test"):
            running.awaitTermination(100)
    running = cluster().submitTopology("t", inline(100) | conf, topology(tmp_path, 4, state, RowUpdater()))
    assert running.awaitTermination(100)
    each_once(Counter({row[0]: count for row, count in state.stored().items()}))
