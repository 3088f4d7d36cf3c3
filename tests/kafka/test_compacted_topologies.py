"""Word count into a compacted topic on both clusters, with replays; and its counts asked for by other topologies."""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from typing import Any

import pytest
from compacted_reading import folded

from states.kafka import CompactedTopicState, RowUpdater
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.operations.builtin import Count, MapGet, SnapshotGet, TupleCollectionGet
from trident_py.spouts import FixedBatchSpout
from trident_py.testing import Crashing, collect, failing

_COUNT = itertools.count()
_TEXT = ["the", "cow", "jumped", "over", "the", "moon", "and", "an", "old", "man", "went", "to", "the", "store"]
WORDS = random.Random(7).choices(_TEXT, k=120)


@pytest.fixture
def make(kafka: Any) -> Any:
    def made(key: Any, value: str, kind: str, **more: Any) -> Any:
        topic = f"topologies-{os.getpid()}-{next(_COUNT)}"
        return CompactedTopicState(kafka.bootstrap, topic, key, value, kind, **{"partitions": 3, **more})

    return made


def run(cluster: Any, topology: TridentTopology, name: str = "words") -> Any:
    running = cluster.submitTopology(name, {}, topology.build())
    assert running.awaitTermination(120)
    return running


def words(values: list[str], size: int = 10) -> FixedBatchSpout:
    return FixedBatchSpout(Fields("word string"), size, *[(value,) for value in values])


def counting(by_word: Any, total: Any, size: int = 10) -> TridentTopology:
    topology = TridentTopology()
    stream = topology.newStream("words", words(WORDS, size))
    stream.groupBy("word").persistentAggregate(by_word, Count(), "count").parallelismHint(2)
    stream.persistentAggregate(total, Count(), "count")
    return topology


STEPS = ["beginCommit", "update", "put", "commit", "afterCommit"]


@pytest.mark.parametrize("kind", ["opaque", "transactional"])
def test_a_word_count_that_fails_and_is_replayed_equals_the_fold(make: Any, kind: str) -> None:
    """Each step fails in another batch, twice in the fifth one; the other state of the topology is replayed too."""
    by_word, total = make("word string", "count bigint", kind), make(None, "count bigint", kind)
    crashing: Any = by_word
    for txid, step in enumerate(STEPS, 2):
        crashing = Crashing(crashing, step, {(txid, 0), *([(5, 1)] if txid == 5 else [])})
    with LocalCluster() as cluster:
        running = run(cluster, counting(crashing, total))
        assert [running.attempts[txid] for txid in range(1, 8)] == [0, 1, 1, 1, 2, 1, 0]
    assert folded(by_word.bootstrap, by_word.topic) == {(word,): n for word, n in Counter(WORDS).items()}
    assert folded(total.bootstrap, total.topic) == {("$GLOBAL$",): len(WORDS)}


def test_a_non_transactional_one_counts_the_replay_too(make: Any) -> None:
    by_word = make("word string", "count bigint", "non-transactional")
    topology = TridentTopology()
    grouped = topology.newStream("words", words(["a", "b", "a"])).groupBy("word")
    grouped.persistentAggregate(Crashing(by_word, "afterCommit", {(1, 0)}), Count(), "count")
    with LocalCluster() as cluster:
        run(cluster, topology)
    assert folded(by_word.bootstrap, by_word.topic) == {("a",): 4, ("b",): 2}


def test_rows_of_a_replayed_batch_are_the_same_keys(make: Any) -> None:
    rows = make("word string", "n bigint", "plain")
    topology = TridentTopology()
    spout = FixedBatchSpout(Fields("word string", "n bigint"), 5, *[(f"w{n % 7}", n) for n in range(20)])
    stream = topology.newStream("rows", failing(spout, {(3, 0)})).partitionBy("word")
    stream.partitionPersist(Crashing(rows, "afterCommit", {(2, 0)}), ["word", "n"], RowUpdater()).parallelismHint(2)
    with LocalCluster() as cluster:
        run(cluster, topology)
    assert folded(rows.bootstrap, rows.topic) == {(f"w{n % 7}",): n for n in range(20)}


def asking(by_word: Any, total: Any, want: list[str]) -> TridentTopology:
    topology = TridentTopology()
    stream = topology.newStream("asked", words(want))
    counted, whole, listed = (topology.newStaticState(state) for state in (by_word, total, by_word))
    found = stream.groupBy("word").stateQuery(counted, "word", MapGet(), "count").parallelismHint(3)
    collect(found, "one")
    collect(stream.stateQuery(whole, SnapshotGet(), "total"), "total")
    again = topology.newStream("again", words(["x"])).broadcast()
    collect(again.stateQuery(listed, TupleCollectionGet(), ["w", "n"]).parallelismHint(3), "all")
    return topology


def answered(running: Any, want: list[str]) -> None:
    counted = Counter(WORDS)
    assert sorted(running.collected("one")[1], key=repr) == sorted(
        ((word, counted.get(word)) for word in want), key=repr
    )
    assert running.collected("total")[1] == [(word, len(WORDS)) for word in want]
    assert sorted(row[-2:] for row in running.collected("all")[1]) == sorted(counted.items())


def test_another_topology_asks_for_what_this_one_has_counted(make: Any) -> None:
    by_word, total = make("word string", "count bigint", "opaque"), make(None, "count bigint", "transactional")
    want = ["the", "cow", "nobody"]
    with LocalCluster() as cluster:
        run(cluster, counting(by_word, total))
        answered(run(cluster, asking(by_word, total, want), "asking"), want)


def test_what_is_not_yet_counted_is_null_as_in_every_map(make: Any) -> None:
    by_word, total = make("word string", "count bigint", "opaque"), make(None, "count bigint", "transactional")
    with LocalCluster() as cluster:
        running = run(cluster, asking(by_word, total, ["the"]), "early")
        found = [running.collected(name).get(1, []) for name in ("one", "total", "all")]
        assert found == [[("the", None)], [("the", None)], []]
        run(cluster, counting(by_word, total))
        answered(run(cluster, asking(by_word, total, ["the"]), "late"), ["the"])


def test_a_query_in_the_same_topology_sees_the_batches_before(make: Any) -> None:
    by_word = make("word string", "count bigint", "opaque")
    topology = TridentTopology()
    grouped = topology.newStream("words", words(["a", "b", "a", "c", "a", "b"], 2)).groupBy("word")
    state = grouped.persistentAggregate(by_word, Count(), "count").parallelismHint(2)
    collect(grouped.stateQuery(state, "word", MapGet(), "before"), "before")
    with LocalCluster() as cluster:
        told = {txid: sorted(rows, key=repr) for txid, rows in run(cluster, topology).collected("before").items()}
    assert told == {1: [("a", None), ("b", None)], 2: [("a", 1), ("c", None)], 3: [("a", 2), ("b", 1)]}


@pytest.mark.parametrize("kind", ["opaque", "transactional"])
def test_a_query_behind_the_update_sees_what_its_batch_has_written(make: Any, kind: str) -> None:
    topology = TridentTopology()
    grouped = topology.newStream("words", words(["a", "b", "a", "c", "a", "b"], 2)).groupBy("word")
    state = grouped.persistentAggregate(make("word string", "count bigint", kind), Count(), "count").parallelismHint(2)
    collect(grouped.aggregate(Count(), "n").stateQuery(state, "word", MapGet(), "now").project(["word", "now"]), "now")
    with LocalCluster() as cluster:
        told = {txid: sorted(rows) for txid, rows in run(cluster, topology).collected("now").items()}
    assert told == {1: [("a", 1), ("b", 1)], 2: [("a", 2), ("c", 1)], 3: [("a", 3), ("b", 2)]}


def test_plain_rows_that_the_batch_has_sent_are_seen_behind_the_update(make: Any) -> None:
    topology = TridentTopology()
    spout = FixedBatchSpout(Fields("word string", "n bigint"), 2, ("a", 1), ("b", 2), ("a", 3))
    stream = topology.newStream("rows", spout).partitionBy("word")
    state = stream.partitionPersist(make("word string", "n bigint", "plain"), ["word", "n"], RowUpdater())
    collect(stream.stateQuery(state.parallelismHint(2), "word", MapGet(), "now").project(["word", "now"]), "now")
    with LocalCluster() as cluster:
        told = {txid: sorted(rows) for txid, rows in run(cluster, topology).collected("now").items()}
    assert told == {1: [("a", 1), ("b", 2)], 2: [("a", 3)]}


@pytest.mark.spark
def test_on_spark_a_word_count_is_exact_and_is_asked_by_other_workers(make: Any, spark_cluster: Any) -> None:
    by_word, total = make("word string", "count bigint", "opaque"), make(None, "count bigint", "transactional")
    cluster, want = spark_cluster(), ["the", "cow", "nobody"]
    crashing = Crashing(by_word, "afterCommit", {(2, 0)})
    running = run(cluster, counting(crashing, total, 50))
    assert running.attempts[2] == 1
    assert folded(by_word.bootstrap, by_word.topic) == {(word,): n for word, n in Counter(WORDS).items()}
    answered(run(cluster, asking(by_word, total, want), "asking"), want)
