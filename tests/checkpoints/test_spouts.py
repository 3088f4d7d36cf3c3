"""kill -9 of a driver on a local checkpoint, with spouts that keep their position in what each batch is said to be.

Kafka has its own suite (`test_spout_crashes.py`), partitioned spouts run in `test_every_state.py` and in both.py.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from faults.forks import Start, run
from faults.steps import DRIVER, Fault, InHalves, Stepped
from faults.stores import read

from states.sql import BatchState, InsertIgnoreState, RowUpdater, SqlMapState
from states.sql.store import parse_url, store_of
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import TopologyError
from trident_py.operations.builtin import Count, Sum
from trident_py.spouts import FileSpout, ICommitterTridentSpout, ITridentSpout
from trident_py.state import MapCombinerAggStateUpdater
from trident_py.testing import Crashing, FixedBatchSpout

ROW = Fields("id string", "word string", "n bigint")
SIZE, PER_FILE = 7, 25
PLACES = [
    ("described", "", DRIVER), ("recorded", "", DRIVER), ("begin", "sums", 0), ("half", "rows", 0),
    ("committed", "sums", 1), ("publish", "shown", DRIVER), ("published", "shown", DRIVER), ("over", "", DRIVER),
]  # fmt: skip
LAST = len(PLACES) + 3


def row(number: int) -> tuple[str, str, int]:
    return f"id{number}", f"w{number % 5}", number


class Counting(ITridentSpout):
    """Its coordinator says from which number to which a batch goes; the emitter's partition 0 emits them."""

    kind = "transactional"

    def __init__(self, last: int) -> None:
        self.last = last

    def getOutputFields(self) -> Fields:
        return ROW

    def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
        return Counts(self.last)

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        return Emits(context.getPartitionIndex())


class Counts(ITridentSpout.BatchCoordinator):
    def __init__(self, last: int) -> None:
        self.last = last

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        start = 0 if prevMetadata is None else prevMetadata[1]
        return [start, start + SIZE] if currMetadata is None else currMetadata

    def isReady(self, txid: int) -> bool:
        return txid <= self.last

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > self.last


class Emits(ITridentSpout.Emitter):
    def __init__(self, partition: int) -> None:
        self.partition = partition

    def emitBatch(self, tx: Any, coordinatorMeta: Any, collector: Any) -> None:
        for number in range(*coordinatorMeta) if self.partition == 0 else ():
            collector.emit(row(number))


class Committing(Counting, ICommitterTridentSpout):
    """The same, whose emitters take part in the commit: each writes down what it has committed."""

    def __init__(self, last: int, folder: Path) -> None:
        super().__init__(last)
        self.folder = str(folder)

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        return Commits(context.getPartitionIndex(), Path(self.folder))


class Commits(Emits):
    def __init__(self, partition: int, folder: Path) -> None:
        super().__init__(partition)
        self.folder = folder

    def commit(self, attempt: Any) -> None:
        with (self.folder / "committed").open("a") as file:
            file.write(f"{attempt.txid}\n")


@dataclass(frozen=True)
class SpoutStart(Start):
    spout: str = ""

    def topology(self) -> Any:
        made = {
            "files": lambda: FileSpout(str(self.folder / "in-*.csv"), ROW, batchSize=SIZE),
            "coordinated": lambda: Counting(self.last),
            "committer": lambda: Committing(self.last, self.folder),
        }[self.spout]()
        topology = TridentTopology()
        stream = topology.newStream("numbers", made).parallelismHint(2)
        shown = Stepped("shown", BatchState(self.url, "shown", columns=ROW))
        stream.partitionBy("id").partitionPersist(shown, ROW.names, RowUpdater()).parallelismHint(2)
        rows = Stepped("rows", InsertIgnoreState(self.url, "kept", key="id", columns=ROW))
        stream.partitionBy("id").partitionPersist(rows, ROW.names, InHalves(RowUpdater())).parallelismHint(2)
        sums = Stepped("sums", SqlMapState.opaque(self.url, "sums", "word string", "total bigint"))
        words = stream.groupBy("word").aggregate("n", Sum(), "total").partitionBy("word").parallelismHint(2)
        updater = InHalves(MapCombinerAggStateUpdater(Sum(), "word", "total"))
        words.partitionPersist(sums, ["word", "total"], updater).parallelismHint(2)
        return topology.build()


def start(folder: Path, spout: str) -> SpoutStart:
    for number in range(3):
        lines = [",".join(map(str, row(n))) for n in range(number * PER_FILE, (number + 1) * PER_FILE)]
        (folder / f"in-{number}.csv").write_text("\n".join(["id,word,n", *lines]) + "\n")
    return SpoutStart(f"sqlite:///{folder}/store.db", folder, LAST, spout=spout)


@pytest.mark.parametrize("spout", ["files", "committer", pytest.param("coordinated", marks=pytest.mark.whole)])
def test_a_spout_loses_and_doubles_nothing_when_its_driver_is_killed_at_any_step(tmp_path: Path, spout: str) -> None:
    """Each start goes on where the last one was killed: it replays that batch and is killed in the next one."""
    order = start(tmp_path, spout)
    for txid, (step, state, partition) in enumerate(PLACES, 2):
        driver = run(replace(order, faults=(Fault(step, state, txid, partition),)))
        assert driver.process.exitcode == -signal.SIGKILL, (step, driver.told[-2:])
    driver = run(order)
    numbers = range(3 * PER_FILE if spout == "files" else SIZE * LAST)
    assert driver.told[-1] == ("done", LAST), driver.told[-1]
    expected = sorted(map(row, numbers))
    assert sorted(read(order.url, "SELECT id, word, n FROM shown")) == expected
    assert sorted(read(order.url, "SELECT id, word, n FROM kept")) == expected
    sums = {f"w{word}": sum(number for number in numbers if number % 5 == word) for word in range(5)}
    assert dict(read(order.url, "SELECT word, total FROM sums")) == sums
    if spout == "committer":
        committed = [int(line) for line in (tmp_path / "committed").read_text().split()]
        assert sorted(set(committed)) == list(range(1, LAST + 1)) and committed == sorted(committed)


# -- another set of spouts --------------------------------------------------------------------------------------------


class Words(FixedBatchSpout):
    def __init__(self, stream: str) -> None:
        super().__init__("word", 1, *[[stream] for _ in range(4)])


def count(folder: Path, streams: str, fails: int | None = None) -> dict[str, int]:
    """Counts each stream's tuples. The run ends behind the map's commit in the batch that fails."""
    topology = TridentTopology()
    made = [topology.newStream(name, Words(name)) for name in streams]
    words = topology.merge(*made) if len(made) > 1 else made[0]
    url = f"sqlite:///{folder}/counts.db"
    state = SqlMapState.transactional(url, "counts", ["word string"], "n bigint")
    weak = Crashing(state, "afterCommit", set() if fails is None else {(fails, 0)}, how="error")
    words.groupBy("word").persistentAggregate(weak, Count(), "n")
    with LocalCluster(str(folder / "checkpoints")) as cluster:
        cluster.submitTopology("t", {}, topology.build()).awaitTermination()
    with store_of(parse_url(url)).reading() as connection:
        return dict(connection.execute('SELECT "word", "n" FROM "counts"').fetchall())


@pytest.mark.parametrize(("before", "after"), [("a", "ab"), ("ab", "a"), ("ab", "ac")])
def test_a_begun_batch_is_not_replayed_with_other_spouts(tmp_path: Path, before: str, after: str) -> None:
    """Its map may have the batch already: tuples of a new spout would be lost, and those of a missing one."""
    with pytest.raises(TopologyError, match="afterCommit in txid 2"):
        count(tmp_path, before, fails=2)
    folder = tmp_path / "checkpoints" / "t"
    written, read = (folder / "%2B".join(streams) for streams in (before, after))
    written.rename(read)
    told = f"has begun batch 2 with the streams {', '.join(before)}; the topology has the streams {', '.join(after)} "
    with pytest.raises(TopologyError, match=rf"{told}.* until batch 2 is over, then change them"):
        count(tmp_path, after)
    read.rename(written)
    assert count(tmp_path, before) == dict.fromkeys(before, 4)
    written.rename(read)
    count(tmp_path, after)  # no batch has begun
