"""The code samples of Storm's Trident tutorial, line by line, in its order, with the results it gives.

Source: docs/Trident-tutorial.md of Apache Storm. `test_sample_list.py` holds the list.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from examples.trident_reach import FOLLOWERS_DB, TWEETERS_DB, ExpandList, StaticSingleKeyMapState
from states.sql import SqlMapState
from trident_py import Fields, LocalDRPC, TridentTopology, Values
from trident_py.drpc import DRPCClient
from trident_py.operations import BaseFilter, BaseFunction, CombinerAggregator
from trident_py.operations.builtin import Count, FilterNull, MapGet, Sum
from trident_py.state import TransactionalValue
from trident_py.testing import MemoryMapState, stored

from .sample_parts import Split, counted, spout_of
from .support import bag, both, both_always, current, run, through


@both
def test_d01_the_word_count(cluster: Any) -> None:
    factory = MemoryMapState.Factory()
    spout = spout_of(4)
    topology = TridentTopology()
    (
        topology.newStream("spout1", spout)
        .each(Fields("sentence"), Split(), Fields("word"))
        .groupBy(Fields("word"))
        .persistentAggregate(factory, Count(), Fields("count"))
        .parallelismHint(6)
    )
    run(cluster, topology)
    found = current(stored(factory))
    assert found == counted(4)
    assert {word: n for word, n in found.items() if n > 1} == {("the",): 4, ("and",): 2}


@both
def test_d02_the_word_count_into_a_database(cluster: Any, tmp_path: Path) -> None:
    """Storm's MemcachedState.transactional(serverLocations) is a project of its own; a SQL table takes its place."""
    factory = SqlMapState.transactional(f"sqlite:///{tmp_path}/c.db", "c", key="word string", value="count bigint")
    topology = TridentTopology()
    (
        topology.newStream("spout1", spout_of(4))
        .each(Fields("sentence"), Split(), Fields("word"))
        .groupBy(Fields("word"))
        .persistentAggregate(factory, Count(), Fields("count"))
    )
    run(cluster, topology)
    txids = {("how",): 2, ("many",): 2, ("apples",): 2, ("can",): 2, ("you",): 2, ("eat",): 2}
    assert stored(factory) == {word: TransactionalValue(txids.get(word, 1), n) for word, n in counted(4).items()}


@both_always
def test_d03_the_sum_of_the_counts_of_some_words(cluster: Any) -> None:
    """Storm's client asks over Thrift; here over HTTP, as an array of arrays in JSON."""
    topology, drpc = TridentTopology(), LocalDRPC()
    wordCounts = (
        topology.newStream("spout1", spout_of(4))
        .each(Fields("sentence"), Split(), Fields("word"))
        .groupBy(Fields("word"))
        .persistentAggregate(MemoryMapState.Factory(), Count(), Fields("count"))
    )
    (
        topology.newDRPCStream("words", drpc)
        .each(Fields("args"), Split(), Fields("word"))
        .groupBy(Fields("word"))
        .stateQuery(wordCounts, Fields("word"), MapGet(), Fields("count"))
        .each(Fields("count"), FilterNull())
        .aggregate(Fields("count"), Sum(), Fields("sum"))
    )
    running = run(cluster, topology, {"drpc.http.port": 0})
    with DRPCClient("127.0.0.1", int(running.requests.url.rpartition(":")[2].partition("/")[0])) as client:
        assert client.execute("words", "cat dog the man") == [[5]]
    assert drpc.execute("words", "cat dog") == [[0]]
    running.stop()


class One(CombinerAggregator):
    def init(self, tuple: Any) -> int:
        return 1

    def combine(self, val1: int, val2: int) -> int:
        return 1

    def zero(self) -> int:
        return 1


@both
def test_d04_the_reach_of_a_url(cluster: Any) -> None:
    topology, drpc = TridentTopology(), LocalDRPC()
    urlToTweeters = topology.newStaticState(StaticSingleKeyMapState.Factory(TWEETERS_DB))
    tweetersToFollowers = topology.newStaticState(StaticSingleKeyMapState.Factory(FOLLOWERS_DB))
    (
        topology.newDRPCStream("reach", drpc)
        .stateQuery(urlToTweeters, Fields("args"), MapGet(), Fields("tweeters"))
        .each(Fields("tweeters"), ExpandList(), Fields("tweeter"))
        .shuffle()
        .stateQuery(tweetersToFollowers, Fields("tweeter"), MapGet(), Fields("followers"))
        .parallelismHint(200)
        .each(Fields("followers"), ExpandList(), Fields("follower"))
        .groupBy(Fields("follower"))
        .aggregate(One(), Fields("one"))
        .parallelismHint(20)
        .aggregate(Count(), Fields("reach"))
    )
    running = cluster.submitTopology("reach", {}, topology.build())
    assert {url: drpc.execute("reach", url) for url in (*TWEETERS_DB, "aaa")} == {
        "foo.com/blog/1": [[16]], "engineering.twitter.com/blog/5": [[14]], "tech.backtype.com/blog/123": [[7]],
        "aaa": [[0]],
    }  # fmt: skip
    running.stop()


XYZ = [(1, 2, 3), (4, 5, 6), (7, 20, 9)]


class MyFilter(BaseFilter):
    def isKeep(self, tuple: Any) -> bool:
        assert tuple.getFields().toList() == ["y"]
        return tuple.getInteger(0) < 10


@both
def test_d05_a_filter_on_one_field_sees_only_that(cluster: Any) -> None:
    found = through(cluster, Fields("x", "y", "z"), [XYZ], lambda stream: stream.each(Fields("y"), MyFilter()))
    assert found == {1: bag(XYZ[:2])}


class AddAndMultiply(BaseFunction):
    def execute(self, tuple: Any, collector: Any) -> None:
        i1 = tuple.getInteger(0)
        i2 = tuple.getInteger(1)
        collector.emit(Values(i1 + i2, i1 * i2))


@both
def test_d06_add_and_multiply_are_appended(cluster: Any) -> None:
    def build(stream: Any) -> Any:
        stream = stream.each(Fields("x", "y"), AddAndMultiply(), Fields("added", "multiplied"))
        assert stream.getOutputFields().toList() == ["x", "y", "z", "added", "multiplied"]
        return stream

    found = through(cluster, Fields("x", "y", "z"), [XYZ[:2]], build)
    assert found == {1: bag([(1, 2, 3, 3, 2), (4, 5, 6, 9, 20)])}


VALS = [("a", 1), ("b", 2), ("a", 3)]


@both
def test_d07_the_sum_of_a_batch(cluster: Any) -> None:
    build = lambda stream: stream.aggregate(Fields("val2"), Sum(), Fields("sum"))  # noqa: E731
    assert through(cluster, Fields("val1", "val2"), [VALS], build, partitions=2) == {1: bag([(6,)])}


@both
def test_d07_the_sum_of_each_group(cluster: Any) -> None:
    build = lambda stream: stream.groupBy(Fields("val1")).aggregate(Fields("val2"), Sum(), Fields("sum"))  # noqa: E731
    assert through(cluster, Fields("val1", "val2"), [VALS], build, partitions=2) == {1: bag([("a", 4), ("b", 2)])}
