"""KafkaSpout on SparkCluster: the same rows as in this process, restarts, and what a run shows of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from spout_support import decided, eventually, produce, transaction, transactional

from trident_py import LocalCluster, TridentTopology
from trident_py.errors import TopologyError
from trident_py.kafka import Json, KafkaSpout
from trident_py.testing import collect

pytestmark = pytest.mark.spark


@pytest.fixture
def topic(kafka: Any) -> str:
    """Two partitions with committed, aborted and plain records."""
    made: str = kafka.create_topic(partitions=2)
    producer = transactional(kafka, made)
    for n in range(40):
        value = [f'{{"n": {n}}}']
        if n % 3:
            transaction(producer, made, value, commit=n % 3 == 1, partition=n % 2)
        else:
            produce(kafka, made, value, n % 2)
    decided(kafka, made, 2)
    return made


def build(kafka: Any, topic: str, **options: Any) -> Any:
    topology = TridentTopology()
    settings = {"fields": ["partition", "value"], "value": Json("n bigint"), "maxRecordsPerBatch": 15, **options}
    stream = topology.newStream("numbers", KafkaSpout(kafka.bootstrap, topic, **settings)).parallelismHint(2)
    collect(stream, "rows")
    return topology.build()


def run(cluster: Any, topology: Any) -> Any:
    running = cluster.submitTopology("t", {}, topology)
    assert running.awaitTermination(120)
    return running


def read(running: Any) -> list[tuple]:
    return [row for rows in running.collected("rows").values() for row in rows]


def test_spark_and_this_process_give_the_same_batches_and_a_restart_goes_on(
    kafka: Any, topic: str, spark_cluster: Callable[..., Any]
) -> None:
    topology = build(kafka, topic, endingOffsets="latest")
    with LocalCluster() as here:
        expected = run(here, topology).collected("rows")
    first = run(spark_cluster(), topology)
    assert {txid: sorted(rows) for txid, rows in first.collected("rows").items()} == {
        txid: sorted(rows) for txid, rows in expected.items()
    }
    assert sorted(n for _, n in read(first)) == [n for n in range(40) if n % 3 != 2]
    produce(kafka, topic, ['{"n": 100}', '{"n": 101}'])
    again = run(spark_cluster(), topology)
    assert sorted(read(again)) == [(0, 100), (0, 101)]
    assert again.txid == (first.txid or 0) + 1


def test_an_endless_spout_on_spark_tells_its_backlog_and_ends_with_the_reason(
    kafka: Any, topic: str, spark_cluster: Callable[..., Any]
) -> None:
    running = spark_cluster().submitTopology("t", {}, build(kafka, topic))
    eventually(lambda: len(read(running)) == 27 or running.exception)
    (progress,) = running.progress.values()
    eventually(lambda: progress.backlog == {"numbers": {f"{topic}-0": 0, f"{topic}-1": 0}})
    produce(kafka, topic, ["nonsense"])
    with pytest.raises(TopologyError, match=f"topic {topic}, partition 0, offset .*: its value cannot be read"):
        running.awaitTermination(60)
