"""WordCountTridentRedisMap of storm-redis-examples: counts in a hash of Redis, and a query of them.

    python -m examples.trident_redis_map redis://localhost:6379/0 --local      in this process, no JVM
    python -m examples.trident_redis_map redis://localhost:6379/0              on Spark

Source: WordCountTridentRedisMap.java in examples/storm-redis-examples (Apache Storm).
"""

from __future__ import annotations

import sys

from states.redis import RedisMapState
from trident_py import Fields, LocalCluster, SparkCluster, TridentTopology, Values
from trident_py.operations.builtin import MapGet, Sum
from trident_py.testing import FixedBatchSpout, collect

WORDS = (Values("storm", 1), Values("trident", 1), Values("needs", 1), Values("javadoc", 1))


def build(url: str, hash: str = "test", cycles: int | None = 2) -> TridentTopology:
    """The topology; ``cycles=None`` is Storm's example, which never ends. A cycle is one batch."""
    fields = Fields("word", "count")
    spout = FixedBatchSpout(fields, 4, *WORDS * (cycles or 1))
    spout.setCycle(cycles is None)
    factory = RedisMapState.transactional(url, hash)

    topology = TridentTopology()
    stream = topology.newStream("spout1", spout)
    state = stream.groupBy(Fields("word")).persistentAggregate(factory, Fields("count"), Sum(), Fields("sum"))

    found = stream.partitionBy(Fields("word")).stateQuery(state, Fields("word"), MapGet(), Fields("sum"))
    collect(found.project(Fields("word", "sum")), "found")
    return topology


def main() -> None:
    url = next(argument for argument in sys.argv[1:] if not argument.startswith("-"))
    with LocalCluster() if "--local" in sys.argv else SparkCluster() as cluster:
        running = cluster.submitTopology("test_wordCounter_for_redis", {}, build(url).build())
        running.awaitTermination()
        for txid, found in running.collected("found").items():
            print(f"batch {txid} found {found}")


if __name__ == "__main__":
    main()
