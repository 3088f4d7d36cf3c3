"""TridentWindowingInmemoryStoreTopology of storm-starter: words counted over a sliding window.

    python -m examples.trident_windowing --local                       in this process, no JVM; the window in memory
    python -m examples.trident_windowing --local sqlite:///windows.db  the window in a database
    python -m examples.trident_windowing [sqlite:///windows.db]        on Spark

A window in a database outlives the driver. Name a new one here: a run that is not the continuation of the one that
wrote it is refused. Storm's counterpart was TridentHBaseWindowingStoreTopology, which Storm no longer has.

Source: TridentWindowingInmemoryStoreTopology.java in examples/storm-starter (Apache Storm).
"""

from __future__ import annotations

import sys

from states.sql import SqlWindowsStoreFactory
from trident_py import Fields, LocalCluster, SparkCluster, TridentTopology, Values
from trident_py.testing import CountAsAggregator, FixedBatchSpout, Split, collect
from trident_py.windowing import InMemoryWindowsStoreFactory, SlidingCountWindow

SENTENCES = (
    Values("the cow jumped over the moon"),
    Values("the man went to the store and bought some candy"),
    Values("four score and seven years ago"),
    Values("how many apples can you eat"),
    Values("to be or not to be the person"),
)


def received(input):
    print(f"Received tuple: {input}")


def build(windowStore, windowConfig, cycles: int | None = 1, batch: int = 3) -> TridentTopology:
    """The topology; ``cycles=None`` is Storm's example, which never ends. A cycle has 36 words."""
    spout = FixedBatchSpout(Fields("sentence"), batch, *SENTENCES * (cycles or 1))
    spout.setCycle(cycles is None)

    topology = TridentTopology()
    stream = (
        topology.newStream("spout1", spout)
        .parallelismHint(16)
        .each(Fields("sentence"), Split(), Fields("word"))
        .window(windowConfig, windowStore, Fields("word"), CountAsAggregator(), Fields("count"))
        .peek(received)
    )
    collect(stream, "counts")
    return topology


def main() -> None:
    url = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), None)
    store = SqlWindowsStoreFactory(url, "words") if url else InMemoryWindowsStoreFactory()
    topology = build(store, SlidingCountWindow.of(1000, 100), cycles=34)
    with LocalCluster() if "--local" in sys.argv else SparkCluster() as cluster:
        running = cluster.submitTopology("wordCounter", {}, topology.build())
        running.awaitTermination()
        print("COUNTS:", [count for rows in running.collected("counts").values() for (count,) in rows])


if __name__ == "__main__":
    main()
