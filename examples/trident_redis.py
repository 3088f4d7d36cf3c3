"""WordCountTridentRedis of storm-redis-examples: a text per word in a hash of Redis, and a query of it.

    python -m examples.trident_redis redis://localhost:6379/0 --local      in this process, no JVM
    python -m examples.trident_redis redis://localhost:6379/0              on Spark

Source: WordCountTridentRedis.java, WordCountStoreMapper.java and WordCountLookupMapper.java in
examples/storm-redis-examples (Apache Storm).
"""

from __future__ import annotations

import sys

from states.redis import (
    RedisDataType,
    RedisDataTypeDescription,
    RedisLookupMapper,
    RedisState,
    RedisStateQuerier,
    RedisStateUpdater,
    RedisStoreMapper,
)
from trident_py import Fields, LocalCluster, SparkCluster, TridentTopology, Values
from trident_py.testing import FixedBatchSpout, collect

HASH = "test"
WORDS = (Values("storm", 1), Values("trident", 1), Values("needs", 1), Values("javadoc", 1))


class WordCountStoreMapper(RedisStoreMapper):
    def getDataTypeDescription(self):
        return RedisDataTypeDescription(RedisDataType.HASH, HASH)

    def getKeyFromTuple(self, tuple):
        return "test_" + tuple.getString(0)

    def getValueFromTuple(self, tuple):
        return str(tuple.getInteger(1))


class WordCountLookupMapper(RedisLookupMapper):
    def getDataTypeDescription(self):
        return RedisDataTypeDescription(RedisDataType.HASH, HASH)

    def getKeyFromTuple(self, tuple):
        return "test_" + tuple.getString(0)

    def toTuple(self, input, value):
        return [Values(self.getKeyFromTuple(input), value)]


def build(url: str, cycles: int | None = 2) -> TridentTopology:
    """The topology; ``cycles=None`` is Storm's example, which never ends. A cycle is one batch."""
    fields = Fields("word", "count")
    spout = FixedBatchSpout(fields, 4, *WORDS * (cycles or 1))
    spout.setCycle(cycles is None)
    factory = RedisState.Factory(url, HASH)

    topology = TridentTopology()
    stream = topology.newStream("spout1", spout)
    stream.partitionPersist(factory, fields, RedisStateUpdater(WordCountStoreMapper()).withExpire(86400000), Fields())

    state = topology.newStaticState(factory)
    query = RedisStateQuerier(WordCountLookupMapper())
    stream = stream.stateQuery(state, Fields("word"), query, Fields("columnName", "columnValue"))
    collect(stream.project(Fields("word", "columnName", "columnValue")), "found")
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
