"""TridentReach of storm-starter: how many people have seen a URL, by DRPC over two static states.

    python -m examples.trident_reach --local      in this process, no JVM
    python -m examples.trident_reach              on Spark; the answers come from the driver

Source: examples/storm-starter/src/jvm/org/apache/storm/starter/trident/TridentReach.java (Apache Storm).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from trident_py import Fields, LocalCluster, LocalDRPC, SparkCluster, TridentTopology, Values
from trident_py.operations import BaseFunction, CombinerAggregator
from trident_py.operations.builtin import MapGet, Sum
from trident_py.state import ReadOnlyMapState, ReadOnlyState, StateFactory

TWEETERS_DB = {
    "foo.com/blog/1": ["sally", "bob", "tim", "george", "nathan"],
    "engineering.twitter.com/blog/5": ["adam", "david", "sally", "nathan"],
    "tech.backtype.com/blog/123": ["tim", "mike", "john"],
}
FOLLOWERS_DB = {
    "sally": ["bob", "tim", "alice", "adam", "jim", "chris", "jai"],
    "bob": ["sally", "nathan", "jim", "mary", "david", "vivian"],
    "tim": ["alex"],
    "nathan": ["sally", "bob", "adam", "harry", "chris", "vivian", "emily", "jordan"],
    "adam": ["david", "carissa"],
    "mike": ["john", "bob"],
    "john": ["alice", "nathan", "jim", "mike", "bob"],
}


class StaticSingleKeyMapState(ReadOnlyState, ReadOnlyMapState):
    def __init__(self, map):
        self.map = map

    def multiGet(self, keys):
        return [self.map.get(key[0]) for key in keys]

    @dataclass(frozen=True)
    class Factory(StateFactory):
        map: dict

        def makeState(self, conf, metrics, partitionIndex, numPartitions):
            return StaticSingleKeyMapState(self.map)


class One(CombinerAggregator):
    def init(self, tuple):
        return 1

    def combine(self, val1, val2):
        return 1

    def zero(self):
        return 1


class ExpandList(BaseFunction):
    def execute(self, tuple, collector):
        for value in tuple.getValue(0) or []:
            collector.emit(Values(value))


def build(drpc: LocalDRPC | None = None) -> TridentTopology:
    topology = TridentTopology()
    urlToTweeters = topology.newStaticState(StaticSingleKeyMapState.Factory(TWEETERS_DB))
    tweetersToFollowers = topology.newStaticState(StaticSingleKeyMapState.Factory(FOLLOWERS_DB))
    (
        topology.newDRPCStream("reach", drpc)
        .stateQuery(urlToTweeters, Fields("args"), MapGet(), Fields("tweeters"))
        .each(Fields("tweeters"), ExpandList(), Fields("tweeter"))
        .shuffle()
        .stateQuery(tweetersToFollowers, Fields("tweeter"), MapGet(), Fields("followers"))
        .each(Fields("followers"), ExpandList(), Fields("follower"))
        .groupBy(Fields("follower"))
        .aggregate(One(), Fields("one"))
        .aggregate(Fields("one"), Sum(), Fields("reach"))
    )
    return topology


def main() -> None:
    drpc = LocalDRPC()
    with LocalCluster() if "--local" in sys.argv else SparkCluster() as cluster:
        cluster.submitTopology("reach", {}, build(drpc).build())
        for url in ("aaa", "foo.com/blog/1", "engineering.twitter.com/blog/5"):
            print("REACH:", drpc.execute("reach", url))


if __name__ == "__main__":
    main()
