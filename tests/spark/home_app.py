"""An application for `test_network.py`: topologies with and without something that lives in the driver, on a cluster.

Run by spark-submit on a host; prints one JSON line for each topology: its result, or the text of its refusal.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from trident_py import DefinitionError, Fields, TridentTopology
from trident_py.operations.builtin import Count
from trident_py.spark import SparkCluster
from trident_py.spouts import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout
from trident_py.state import MemoryMapState
from trident_py.testing import FixedBatchSpout, collect, failing

FAILS = {(1, 0), (2, 0), (2, 1)}
BATCHES = 3


class Listing:
    def __init__(self, names: list[str]) -> None:
        self.names = names

    def getPartitionsForBatch(self) -> list[str]:
        return self.names

    def isReady(self, txid: int) -> bool:
        return True


class Emitter:
    """Emits (partition, next number): the last metadata says where it stands."""

    def getOrderedPartitions(self, names: list[str]) -> list[str]:
        return sorted(names)

    def emitBatchNew(self, tx: Any, collector: Any, partitions: Any, last: dict[str, Any]) -> dict[str, Any]:
        for name in partitions:
            collector.emit([name, (last[name] or 0)])
        return {name: (last[name] or 0) + 1 for name in partitions}

    def reEmitPartitionBatch(self, tx: Any, collector: Any, partition: str, metadata: int) -> None:
        collector.emit([partition, metadata - 1])


class _Numbers:
    def getOutputFields(self) -> Fields:
        return Fields("part", "n")

    def getCoordinator(self, conf: dict, context: Any) -> Listing:
        return Listing(["a", "b", "c"])

    def getEmitter(self, conf: dict, context: Any) -> Emitter:
        return Emitter()

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > BATCHES


class OpaqueNumbers(_Numbers, IOpaquePartitionedTridentSpout): ...


class TransactionalNumbers(_Numbers, IPartitionedTridentSpout): ...


def numbers(spout: Any) -> Callable[[SparkCluster, dict], Any]:
    """Reads the spout in two tasks; some attempts fail."""

    def run(cluster: SparkCluster, conf: dict) -> Any:
        topology = TridentTopology()
        stream = topology.newStream("s", spout).parallelismHint(2).partitionBy("part")
        collect(stream.each("n", failing(lambda n: True, FAILS)).parallelismHint(2), "rows")
        running = cluster.submitTopology(type(spout).__name__, conf, topology.build())
        assert running.awaitTermination(120)
        rows = {txid: sorted(rows) for txid, rows in running.collected("rows").items()}
        return [rows, running.attempts]

    return run


def words(cluster: SparkCluster, conf: dict) -> Any:
    """Counts words in memory; some attempts fail."""
    topology, factory = TridentTopology(), MemoryMapState.Factory()
    stream = topology.newStream("words", FixedBatchSpout(Fields("word"), 2, ("a",), ("b",), ("a",), ("a",), ("c",)))
    kept = stream.each("word", failing(lambda word: True, FAILS)).groupBy("word")
    kept.persistentAggregate(factory, Count(), Fields("n"), stateName="counts").parallelismHint(2)
    running = cluster.submitTopology("words", conf, topology.build())
    assert running.awaitTermination(120)
    return [{key[0]: value.curr for key, value in factory.stored().items()}, running.attempts]


def refused(run: Callable[[SparkCluster, dict], Any], cluster: SparkCluster) -> str:
    try:
        run(cluster, {})
    except DefinitionError as error:
        return str(error)
    return "not refused"


def main() -> None:
    network = {"topology.home.network": True}
    with SparkCluster(SparkSession.builder.getOrCreate()) as cluster:
        print(json.dumps(["opaque", numbers(OpaqueNumbers())(cluster, {})]), flush=True)
        print(json.dumps(["transactional refused", refused(numbers(TransactionalNumbers()), cluster)]), flush=True)
        print(json.dumps(["words refused", refused(words, cluster)]), flush=True)
        print(json.dumps(["transactional", numbers(TransactionalNumbers())(cluster, network)]), flush=True)
        print(json.dumps(["words", words(cluster, network)]), flush=True)


if __name__ == "__main__":
    main()
