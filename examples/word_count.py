"""TridentWordCount of storm-starter, line by line. Its DRPC half comes with DRPC (see docs/word_count.md).

    python -m trident_py run --local examples.word_count:build        in this process, no JVM
    python -m trident_py run examples.word_count:build                on Spark

Source: examples/storm-starter/src/jvm/org/apache/storm/starter/trident/TridentWordCount.java (Apache Storm).
"""

from __future__ import annotations

from trident_py import Fields, LocalCluster, TridentTopology, Values
from trident_py.operations import BaseFunction
from trident_py.operations.builtin import Count
from trident_py.testing import FixedBatchSpout, MemoryMapState, stored


class Split(BaseFunction):
    def execute(self, tuple, collector):
        sentence = tuple.getString(0)
        for word in sentence.split(" "):
            collector.emit(Values(word))


def build(cycle: bool = False, state=None) -> TridentTopology:
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
    (
        topology.newStream("spout1", spout)
        .parallelismHint(16)
        .each(Fields("sentence"), Split(), Fields("word"))
        .groupBy(Fields("word"))
        .persistentAggregate(state or MemoryMapState.Factory(), Count(), Fields("count"))
        .parallelismHint(16)
    )
    return topology


def main() -> None:
    state = MemoryMapState.Factory()
    with LocalCluster() as cluster:
        running = cluster.submitTopology("wordCounter", {}, build(state=state).build())
        running.awaitTermination()
        counts = stored(state)
    for (word,), count in sorted(counts.items(), key=lambda item: (-item[1].curr, item[0])):
        print(f"{count.curr:3} {word}")


if __name__ == "__main__":
    main()
