"""States that keep their data in the object: on Spark too, one object for each partition serves every batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from trident_py import Config, Fields, LocalCluster, TridentTopology
from trident_py.operations.builtin import Count
from trident_py.spark.driver_execution import HERE
from trident_py.spouts import FeederBatchSpout
from trident_py.state import BaseStateUpdater, IBackingMap, NonTransactionalMap, State, StateFactory
from trident_py.testing import collect

pytestmark = pytest.mark.spark
Cluster = Callable[..., Any]
SMALL = 10  # the most tuples of a batch in the driver process


class HeapMap(IBackingMap):
    """As ported from Java: the map is a field."""

    def __init__(self) -> None:
        self.rows: dict[tuple, Any] = {}

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        return [self.rows.get(tuple(key)) for key in keys]

    def multiPut(self, keys: Sequence[Any], vals: Sequence[Any]) -> None:
        self.rows.update(zip(map(tuple, keys), vals, strict=True))


class HeapMapFactory(StateFactory):
    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        return NonTransactionalMap.build(HeapMap())


class Tally(State):
    """On replay: counts again."""

    def __init__(self) -> None:
        self.counts: Counter = Counter()

    def beginCommit(self, txid: int | None) -> None: ...

    def commit(self, txid: int | None) -> None: ...


class TallyFactory:
    """Implements the interface without deriving from it."""

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        return Tally()


class Add(BaseStateUpdater):
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        state.counts.update(tuple[0] for tuple in tuples)
        for word in dict.fromkeys(tuple[0] for tuple in tuples):
            collector.emit([word, state.counts[word]])


def by_map(words: Any) -> Any:
    return words.groupBy("word").persistentAggregate(HeapMapFactory(), Count(), "count")


def by_state(words: Any) -> Any:
    return words.partitionBy("word").partitionPersist(TallyFactory(), "word", Add(), Fields("word", "count"))


def counted(cluster: Any, update: Any, sizes: Sequence[int]) -> tuple[dict, list[str]]:
    """The last count of each word, and where the batches of these sizes ran."""
    feeder, topology = FeederBatchSpout(Fields("word")), TridentTopology()
    state = update(topology.newStream("in", feeder).parallelismHint(2)).parallelismHint(2)
    collect(state.newValuesStream(), "counts")
    for size in sizes:
        feeder.feed([["abc"[n % 3]] for n in range(size)], wait=False)
    feeder.close()
    running = cluster.submitTopology("counted", {Config.TOPOLOGY_INLINE_MAX_TUPLES: SMALL}, topology.build())
    assert running.awaitTermination(120)
    last = {word: count for _, rows in sorted(running.collected("counts").items()) for word, count in rows}
    return last, [event.reason for event in running.events if event.kind == "committed"]


@pytest.mark.parametrize("update", [by_map, by_state])
@pytest.mark.parametrize("sizes", [(3, 6, 3), (30, 60, 30), (3, 30, 3, 0, 60, 6)], ids=["small", "large", "mixed"])
def test_it_counts_the_same_on_both_clusters(spark_cluster: Cluster, update: Any, sizes: tuple[int, ...]) -> None:
    wanted = dict.fromkeys("abc", sum(sizes) // 3)
    with LocalCluster() as local:
        assert counted(local, update, sizes)[0] == wanted
    found, places = counted(spark_cluster(), update, sizes)
    assert found == wanted
    assert places == [HERE] * len(sizes)
