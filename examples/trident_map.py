"""TridentMapExample of storm-starter: map, flatMap, filter and peek, and a DRPC query of the counts.

    python -m examples.trident_map --local      in this process, no JVM
    python -m examples.trident_map              on Spark

Source: examples/storm-starter/src/jvm/org/apache/storm/starter/trident/TridentMapExample.java (Apache Storm).
"""

from __future__ import annotations

import sys

from trident_py import Fields, LocalCluster, LocalDRPC, SparkCluster, TridentTopology, Values
from trident_py.operations import BaseFilter, Consumer, FlatMapFunction, MapFunction
from trident_py.operations.builtin import Count, FilterNull, MapGet, Sum
from trident_py.testing import FixedBatchSpout, MemoryMapState


class ToUpper(MapFunction):
    def execute(self, input):
        return Values(input.getStringByField("word").upper())


class Split(FlatMapFunction):
    def execute(self, input):
        return [Values(word) for word in input.getString(0).split(" ")]


class TheFilter(BaseFilter):
    def isKeep(self, tuple):
        return tuple.getString(0) == "THE"


class Print(Consumer):
    def accept(self, input):
        print(input.getString(0))


def build(cycle: bool = False, state=None, drpc: LocalDRPC | None = None) -> TridentTopology:
    """The topology; ``cycle=True`` is Storm's example, which never ends."""
    spout = FixedBatchSpout(
        Fields("word"),
        3,
        Values("the cow jumped over the moon"),
        Values("the man went to the store and bought some candy"),
        Values("four score and seven years ago"),
        Values("how many apples can you eat"),
        Values("to be or not to be the person"),
    )
    spout.setCycle(cycle)

    topology = TridentTopology()
    wordCounts = (
        topology.newStream("spout1", spout)
        .parallelismHint(16)
        .flatMap(Split())
        .map(ToUpper(), Fields("uppercased"))
        .filter(TheFilter())
        .peek(Print())
        .groupBy(Fields("uppercased"))
        .persistentAggregate(state or MemoryMapState.Factory(), Count(), Fields("count"))
        .parallelismHint(16)
    )
    (
        topology.newDRPCStream("words", drpc)
        .flatMap(Split(), Fields("word"))
        .groupBy(Fields("word"))
        .stateQuery(wordCounts, Fields("word"), MapGet(), Fields("count"))
        .filter(FilterNull())
        .aggregate(Fields("count"), Sum(), Fields("sum"))
    )
    return topology


def main() -> None:
    drpc = LocalDRPC()
    with LocalCluster() if "--local" in sys.argv else SparkCluster() as cluster:
        cluster.submitTopology("wordCounter", {}, build(drpc=drpc).build()).awaitTermination()
        print("DRPC RESULT:", drpc.execute("words", "CAT THE DOG JUMPED"))


if __name__ == "__main__":
    main()
