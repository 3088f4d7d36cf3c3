"""Kafka to Kafka on Spark: workers are killed around their commits, and each record is there once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from topic_reading import group_offsets, read

from states.kafka import RowUpdater, TransactionalTopicState
from trident_py import TridentTopology
from trident_py.kafka import Json, KafkaSpout
from trident_py.operations import Function
from trident_py.testing import Crashing

pytestmark = pytest.mark.spark
COUNT, PARTITIONS, POINTS = 200, 2, ("beginCommit", "commit", "afterCommit")


class Halved(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([tuple[0] // 2])


def test_kafka_to_kafka_with_workers_killed_at_any_point_of_a_commit(
    kafka: Any, spark_cluster: Callable[..., Any]
) -> None:
    """Batches 2 to 4 lose a worker each, in one partition or the other; the group stands at the end of the input."""
    source, target = (kafka.create_topic(partitions=PARTITIONS) for _ in range(2))
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for n in range(COUNT):
        producer.produce(source, json.dumps({"n": n}), partition=n % PARTITIONS)
    assert producer.flush(30) == 0
    spout = KafkaSpout(
        kafka.bootstrap, source, value=Json("n bigint"), fields=["value"], groupId=f"group-{source}",
        shareOffsets=True, maxRecordsPerBatch=40, endingOffsets="latest",
    )  # fmt: skip
    factory: Any = TransactionalTopicState(kafka.bootstrap, target, ["n", "half"], "n", consumed="numbers")
    for number, point in enumerate(POINTS):
        factory = Crashing(factory, point, {(number + 2, 0)}, "kill", number % PARTITIONS)
    topology = TridentTopology()
    stream = topology.newStream("numbers", spout).parallelismHint(PARTITIONS).each("n", Halved(), "half bigint")
    stream.partitionPersist(factory, ["n", "half"], RowUpdater())
    running = spark_cluster().submitTopology("chain", {}, topology.build())
    assert running.awaitTermination(200)
    tries = {event.txid: event.attempt for event in running.events if event.kind == "committed"}
    assert {txid: tries[txid] for txid in (1, 2, 3, 4)} == {1: 0, 2: 1, 3: 1, 4: 1}
    found = Counter((json.loads(each.value or b"")["n"], json.loads(each.value or b"")["half"])
                    for each in read(kafka.bootstrap, target))  # fmt: skip
    assert found == Counter((n, n // 2) for n in range(COUNT))
    each = COUNT // PARTITIONS
    assert group_offsets(kafka.bootstrap, f"group-{source}", source) == {(source, 0): each, (source, 1): each}
