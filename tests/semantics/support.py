"""A spout of given batches, a way to run a topology to its end, and the small operations that tests share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from trident_py import Fields, TridentTopology
from trident_py.operations import Aggregator, CombinerAggregator, Function, ReducerAggregator
from trident_py.spouts import ITridentSpout
from trident_py.testing import collect

TIMEOUT = 120
_runs = itertools.count()
Batch = Sequence[Sequence[Any]]

# On Spark in `make test-all`; the recorded cases of Storm run there in `make test`, one for each shape of topology.
_on_spark = pytest.param("spark", marks=pytest.mark.spark)
_on_spark_too = pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.whole])
both = pytest.mark.parametrize("cluster", ["local", _on_spark_too], indirect=True)
both_always = pytest.mark.parametrize("cluster", ["local", _on_spark], indirect=True)


class Batches(ITridentSpout):
    """Batch i is txid i; task k of n emits every n-th tuple. ``replays``: what later attempts of a txid emit."""

    kind = "transactional"

    def __init__(self, fields: Any, batches: Sequence[Batch], replays: Mapping[int, Batch] | None = None) -> None:
        self.fields = Fields.of(fields)
        self.batches = [list(batch) for batch in batches]
        self.replays = dict(replays or {})
        if replays:
            self.kind = "opaque"

    def getOutputFields(self) -> Fields:
        return self.fields

    def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
        return _Coordinator(len(self.batches))

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        return _Emitter(self, context.getThisTaskIndex(), context.numPartitions())

    def of(self, txid: int, attempt: int) -> Batch:
        batch = self.batches[txid - 1] if txid <= len(self.batches) else []
        return self.replays.get(txid, batch) if attempt else batch


class _Coordinator(ITridentSpout.BatchCoordinator):
    def __init__(self, count: int) -> None:
        self.count = count

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> int:
        return txid

    def isReady(self, txid: int) -> bool:
        return txid <= self.count

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > self.count


class _Emitter(ITridentSpout.Emitter):
    def __init__(self, spout: Batches, index: int, tasks: int) -> None:
        self.spout = spout
        self.index = index
        self.tasks = tasks

    def emitBatch(self, tx: Any, coordinatorMeta: Any, collector: Any) -> None:
        for values in self.spout.of(tx.txid, tx.attemptId)[self.index :: self.tasks]:
            collector.emit(values)


def run(cluster: Any, topology: TridentTopology, conf: dict | None = None, name: str | None = None) -> Any:
    """Runs to the end of all spouts and returns the RunningTopology."""
    running = cluster.submitTopology(name or f"semantics-{next(_runs)}", conf, topology.build())
    assert running.awaitTermination(TIMEOUT), "the run did not end"
    return running


def bag(rows: Iterable[Any]) -> list[str]:
    """Rows without their order; 1, 1.0, True and "1" differ."""
    return sorted(repr(tuple(row)) for row in rows)


def bags(collected: Mapping[int, Iterable[Any]]) -> dict[int, list[str]]:
    """Rows by txid without their order; a batch without rows is left out."""
    return {txid: bag(rows) for txid, rows in collected.items() if list(rows)}


def through(
    cluster: Any, fields: Any, batches: Sequence[Batch], build: Callable[[Any], Any], partitions: int = 1
) -> dict[int, list[str]]:
    """What comes out when the batches go through the operations that ``build`` adds to a stream: bags by txid."""
    topology = TridentTopology()
    stream = topology.newStream("s", Batches(fields, batches)).parallelismHint(partitions)
    collect(build(stream), "out")
    return bags(run(cluster, topology).collected("out"))


def current(rows: Mapping[tuple, Any]) -> dict[tuple, Any]:
    """The values of an opaque state's rows, as `stored` gives them."""
    return {key: value.curr for key, value in rows.items()}


class Partition(Function):
    """Emits the number of its partition, or ``n of m``."""

    def __init__(self, count: bool = False) -> None:
        self.count = count

    def prepare(self, conf: dict, context: Any) -> None:
        index = context.getPartitionIndex()
        self.shown = f"{index} of {context.numPartitions()}" if self.count else index

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit((self.shown,))


class Size(Function):
    """Emits the size of the tuple that it gets."""

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit((len(tuple),))


class Trace(CombinerAggregator):
    """Shows how it is called: init is the value, combine puts brackets around two, zero is Z."""

    def init(self, tuple: Any) -> str:
        return str(tuple[0])

    def combine(self, val1: str, val2: str) -> str:
        return f"({val1}+{val2})"

    def zero(self) -> str:
        return "Z"


class Joined(ReducerAggregator):
    """The first values of all tuples, joined in the order of their arrival."""

    def init(self) -> str:
        return ""

    def reduce(self, curr: str, tuple: Any) -> str:
        return curr + str(tuple[0] if len(tuple) else "()")


class Collects(Aggregator):
    """Emits one string at the end: the values of each tuple."""

    def init(self, batchId: Any, collector: Any) -> list:
        return []

    def aggregate(self, value: list, tuple: Any, collector: Any) -> None:
        value.append(list(tuple))

    def complete(self, value: list, collector: Any) -> None:
        collector.emit((repr(sorted(value, key=repr)),))


class Emits(Aggregator):
    """Emits these values, one tuple each, at the end."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def init(self, batchId: Any, collector: Any) -> None:
        return None

    def aggregate(self, value: Any, tuple: Any, collector: Any) -> None:
        return None

    def complete(self, value: Any, collector: Any) -> None:
        for each in self.values:
            collector.emit((each,))
