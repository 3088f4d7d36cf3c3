"""What was lost in silence when store and checkpoint were not of one age: refused, and when told to go on, lost by
exactly as much as the error says."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from states.sql import BatchState, RowUpdater
from trident_py import Fields, TopologyError, TridentTopology
from trident_py.engine.store_position import ACCEPT, BASE
from trident_py.errors import LineageError
from trident_py.spouts import IOpaquePartitionedTridentSpout
from trident_py.testing.faults.feed import OneForAll

from .readings import Readings, Row
from .stores import EXACT, MAPS, TABLES, read
from .test_recovery import CLUSTERS, Make, world
from .worlds import World

pytestmark = pytest.mark.dear

__all__ = ["world"]  # the fixture


@dataclass(frozen=True)
class Sixty(Readings):
    """60 records a batch, each once and in order."""

    seed: int = 0

    def part(self, txid: int, partition: int) -> list[Row]:
        return [self.row(f"s{partition}", n) for n in range(30 * txid - 29, 30 * txid + 1)]

    def row(self, sender: str, number: int) -> Row:
        return f"{sender}-{number}", f"w{number % 8}", 1, sender, number


def records(url: str, state: str) -> int:
    """How many records of the source are in the state's tables."""
    column = "SUM(total)" if state in MAPS else "COUNT(*)"
    ((count,),) = read(url, f"SELECT {column} FROM {TABLES[state]}")
    return int(count)


@pytest.mark.one_of_each
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_backup_under_a_newer_checkpoint_is_no_silent_loss_of_420_records_of_1200(world: Make, cluster: str) -> None:
    made = world(cluster)
    made.readings = Sixty()
    made.start(8)
    backup = made.dump()
    made.start(15)
    made.restore(backup)
    told = made.refused("has the batches up to 8, the checkpoint .* has committed batch 15", 20)
    for words in ("lacks the batches in between", "restore the store as it was after batch 15"):
        assert words in told
    assert all(f"{TABLES[state]}@8:15" in told for state in EXACT)
    made.start(20, {ACCEPT: [f"{TABLES[state]}@8:15" for state in EXACT]})
    made.holds(*range(1, 9), *range(16, 21))
    (waiting,) = read(made.url, "SELECT COUNT(*) FROM in_order_held")
    found = {state: 1200 - records(made.url, state) for state in EXACT}
    assert found == dict.fromkeys(EXACT, 420) | {"sequence": 420 + waiting[0]}
    assert waiting[0] == 300  # what came after the gap waits for it


@pytest.mark.one_of_each
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_state_that_was_not_in_the_topology_for_a_while_lacks_those_batches(world: Make, cluster: str) -> None:
    made = world(cluster)
    away = ("opaque", "append", "keyed")
    others = [state for state in EXACT if state not in away]
    made.start(2)
    made.start(4, only=others)
    told = made.refused("has the batches up to 2, the checkpoint .* has committed batch 4", 5)
    assert "or the state was not in the topology for a while" in told
    setting = [f"{TABLES[state]}@2:4" for state in away]
    assert f"{setting!r}" in told
    made.start(5, {ACCEPT: setting})
    made.start(6)
    made.holds(1, 2, 3, 4, 5, 6, only=others)
    made.holds(1, 2, 5, 6, only=away)


# -- a checkpoint that is one batch older, and a batch that is emitted otherwise

FIELD = Fields("number bigint")


@dataclass(frozen=True)
class Growing(OneForAll, IOpaquePartitionedTridentSpout):
    """Opaque: goes on behind the last committed number; the first try of a batch has 44 numbers, the next ones 35.

    In the first try of ``copied`` the checkpoint is copied: the batch is begun there, and nothing else of it.
    """

    last: int
    folder: str
    copied: int = 0

    def getOutputFields(self) -> Fields:
        return FIELD

    def getPartitionsForBatch(self) -> list[int]:
        return [0]

    def emitBatchNew(self, tx: Any, collector: Any, partitions: list[int], lastPartitionMeta: dict) -> dict:
        if not partitions:
            return {}
        tried = Path(self.folder) / f"tried-{tx.txid}"
        first = lastPartitionMeta[0] or 0
        end = first + (35 if tried.exists() else 44)
        tried.touch()
        if tx.txid == self.copied:
            shutil.copytree(Path(self.folder) / "checkpoints", Path(self.folder) / "copied")
        for number in range(first, end):
            collector.emit((number,))
        return {0: end}


def run(made: World, last: int, copied: int = 0, conf: dict | None = None) -> None:
    topology = TridentTopology()
    numbers = topology.newStream("numbers", Growing(last, str(made.folder), copied))
    numbers.partitionPersist(BatchState(made.url, "numbers", columns=FIELD), "number", RowUpdater())
    with made.cluster(str(made.checkpoints)) as cluster:
        assert cluster.submitTopology("t", conf or {}, topology.build()).awaitTermination(200)


def stored(made: World) -> Counter:
    return Counter(number for (number,) in read(made.url, "SELECT number FROM numbers"))


@pytest.mark.one_of_each
@pytest.mark.parametrize("when", ["before it was begun", "in its middle"])
@pytest.mark.one_of_each
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_checkpoint_one_batch_older_does_not_emit_a_batch_anew_that_was_shown(
    world: Make, cluster: str, when: str
) -> None:
    """The batch would be skipped, and those behind it begin elsewhere: rows lost or doubled by the difference."""
    made = world(cluster)
    run(made, 3)
    before = made.copy("before")
    run(made, 4, copied=4)
    newest = made.copy("newest")
    made.put_back(before if when == "before it was begun" else made.folder / "copied")
    held = stored(made)
    assert held == Counter(range(4 * 44))
    said = "has committed batch 3 and has no decision about it" if when == "in its middle" else "has committed batch 3:"
    with pytest.raises(TopologyError, match=f"has batch 4; the checkpoint .* {said}") as told:
        run(made, 6)
    assert isinstance(told.value.__cause__, LineageError)
    assert stored(made) == held
    made.put_back(newest)
    run(made, 6)
    assert stored(made) == Counter(range(6 * 44))
    made.lose()  # the other way on: what the source sends again is applied again
    run(made, 8, conf={BASE: 6})
    assert stored(made) == Counter(range(6 * 44)) + Counter(range(2 * 44))
