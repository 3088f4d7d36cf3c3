"""DebugMemoryMapState of storm-starter: a state that fails every fifth update, to show replays.

    python -m examples.trident_debug_state --local      in this process, no JVM
    python -m examples.trident_debug_state              on Spark

It stands in the word count in place of MemoryMapState. A failed update is replayed with the same txid, and the counts
are those of a run without failures.

Source: examples/storm-starter/src/jvm/org/apache/storm/starter/trident/DebugMemoryMapState.java (Apache Storm).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from examples.word_count import build
from trident_py import FailedException, LocalCluster, SparkCluster
from trident_py.testing import MemoryMapState, stored


class DebugMemoryMapState(MemoryMapState):
    """Counts its calls in a store of the driver: on Spark the next attempt may run in another process."""

    def __init__(self, store, calls, partition):
        super().__init__(store, partition)
        self.calls = calls

    def multiUpdate(self, keys, updaters):
        updateCount = self.calls.get(self.partition, [("calls",)])[0] or 0
        self.calls.put(self.partition, [("calls",)], [updateCount + 1])
        self.print(updateCount, keys, updaters)
        if updateCount % 5 == 0:
            print("Throwing FailedException")
            raise FailedException("Enforced State Update Fail. On retrial should replay the exact same batch.")
        return super().multiUpdate(keys, updaters)

    def print(self, updateCount, keys, updaters):
        for key, updater in zip(keys, updaters, strict=True):
            print(f"updateCount = {updateCount}, keys = {key} => updaterArgs = {updater.getArg()}")

    @dataclass(frozen=True)
    class Factory(MemoryMapState.Factory):
        calls: MemoryMapState.Factory = field(default_factory=MemoryMapState.Factory)

        def makeState(self, conf, metrics, partitionIndex, numPartitions):
            return DebugMemoryMapState(self.store(conf), self.calls.store(conf), partitionIndex)


def main() -> None:
    state = DebugMemoryMapState.Factory()
    with LocalCluster() if "--local" in sys.argv else SparkCluster() as cluster:
        cluster.submitTopology("wordCounter", {}, build(state=state).build()).awaitTermination()
    for (word,), count in sorted(stored(state).items(), key=lambda item: (-item[1].curr, item[0])):
        print(f"{count.curr:3} {word}")


if __name__ == "__main__":
    main()
