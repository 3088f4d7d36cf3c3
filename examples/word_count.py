"""TridentWordCount of storm-starter, line by line, with its DRPC query (see docs/word_count.md).

    python -m examples.word_count --local                             in this process, no JVM
    python -m examples.word_count                                     on Spark
    python -m trident_py run [--local] examples.word_count:build      the same by the command line, without a request
    python -m trident_py drpc serve examples.word_count:build         on Spark; then, in another terminal:
    python -m trident_py drpc-client -f words "cat the dog jumped"

Source: examples/storm-starter/src/jvm/org/apache/storm/starter/trident/TridentWordCount.java (Apache Storm).
"""

from __future__ import annotations

import sys

from trident_py import Fields, LocalCluster, LocalDRPC, SparkCluster, TridentTopology, Values
from trident_py.operations import BaseFunction
from trident_py.operations.builtin import Count, FilterNull, MapGet
from trident_py.testing import FixedBatchSpout, MemoryMapState, stored


class Split(BaseFunction):
    def execute(self, tuple, collector):
        sentence = tuple.getString(0)
        for word in sentence.split(" "):
            collector.emit(Values(word))


def build(cycle: bool = False, state=None, drpc: LocalDRPC | None = None) -> TridentTopology:
    """The topology; ``cycle=True`` is Storm's example, which never ends."""
    spout = FixedBatchSpout(
        Fields("sentence"),
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
        .each(Fields("sentence"), Split(), Fields("word"))
        .groupBy(Fields("word"))
        .persistentAggregate(state or MemoryMapState.Factory(), Count(), Fields("count"))
        .parallelismHint(16)
    )
    (
        topology.newDRPCStream("words", drpc)
        .each(Fields("args"), Split(), Fields("word"))
        .groupBy(Fields("word"))
        .stateQuery(wordCounts, Fields("word"), MapGet(), Fields("count"))
        .each(Fields("count"), FilterNull())
        .project(Fields("word", "count"))
    )
    return topology


def main() -> None:
    state, drpc = MemoryMapState.Factory(), LocalDRPC()
    with LocalCluster() if "--local" in sys.argv else SparkCluster() as cluster:
        cluster.submitTopology("wordCounter", {}, build(state=state, drpc=drpc).build()).awaitTermination()
        counts = stored(state)
        asked = drpc.execute("words", "cat the dog jumped")
    for (word,), count in sorted(counts.items(), key=lambda item: (-item[1].curr, item[0])):
        print(f"{count.curr:3} {word}")
    print("DRPC RESULT:", sorted(asked))


if __name__ == "__main__":
    main()
