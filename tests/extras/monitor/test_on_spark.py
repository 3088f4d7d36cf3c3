"""A page of a run on Spark: batches in the driver and as jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trident_py import Fields, TopologyError, TridentTopology
from trident_py.operations.builtin import Count
from trident_py.testing import FeederBatchSpout, MemoryMapState, failing

from .runs import get, samples, until


def ended(running: Any) -> list[Any]:
    """The three batches, once the page has the end of each."""
    found = get(running.http, "/api/batches")[1]["batches"]
    return found if len(found) == 3 and all(batch["ended"] for batch in found) else []


def stop_from_outside(running: Any, feeder: FeederBatchSpout, spark: Any) -> None:
    """Somebody stops the query of a run that is paused."""
    running.deactivate()
    feeder.feed([("e",)], wait=False)
    assert not running.awaitTermination(0.5)
    (query,) = spark.streams.active
    query.stop()
    with pytest.raises(TopologyError, match="the query was stopped from outside this topology"):
        running.awaitTermination(60)


@pytest.mark.spark
@pytest.mark.parametrize("where", ["driver", "job"])
def test_a_run_on_spark_says_what_its_events_say(spark_cluster: Callable[..., Any], where: str) -> None:
    feeder, topology = FeederBatchSpout(Fields("word string")), TridentTopology()
    words = topology.newStream("words", feeder).each("word", failing(lambda word: [word], {(2, 0)}), "same")
    words.groupBy("same").persistentAggregate(MemoryMapState.Factory(), Count(), "count", stateName="counts")
    conf = {"topology.http": 0, "topology.inline.max.tuples": 100 if where == "driver" else 0}
    cluster = spark_cluster()
    running = cluster.submitTopology("page", conf | {"topology.inline.max.millis": 60_000}, topology.build())
    for batch in ([("a",), ("b",)], [("a",)], [("c",)]):
        feeder.feed(batch, timeout=120)
    batches = until(lambda: ended(running))
    outcomes = [[(each["outcome"], each["where"]) for each in batch["attempts"]] for batch in batches]
    assert outcomes == [[("committed", where)], [("replay", ""), ("committed", where)], [("committed", where)]]
    states = {each["state"] for batch in batches for attempt in batch["attempts"] for each in attempt["phases"]}
    assert states == {"", "counts"}
    found = samples(running.http)
    assert found["trident_batches_total{component=words,outcome=replay}"] == 1
    assert found["trident_tuples_total{spout=words}"] == running.progress["words"].emitted["words"] == 4
    running.deactivate()
    feeder.feed([("d",)], wait=False)
    until(lambda: get(running.http, "/api/batches") and running.inactive.is_set())
    assert not running.awaitTermination(0.5) and running.txid == 3
    running.activate()
    until(lambda: running.txid == 4, 60)
    if where == "driver":
        feeder.close()
        assert running.awaitTermination(60)
    else:
        stop_from_outside(running, feeder, cluster.spark)
    with pytest.raises(OSError):
        get(running.http, "/healthz")
