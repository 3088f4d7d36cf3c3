"""What Kafka 4.3 loses if a partition has no leader when a transaction ends: a limit that docs/kafka.md names.

The coordinator takes such a partition for a deleted one, and calls the transaction complete without telling it. Here
the leader stands still while another broker coordinates. A lone broker does it to itself, if it dies behind a commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from needed import needed
from topic_reading import values

from states.kafka import RowUpdater, TransactionalTopicState
from states.kafka.marks import Mark, MarkPlace, group_metadata
from testbed.kafka_broker import KafkaBroker
from testbed.kafka_cluster import GROUPS, KafkaCluster
from trident_py import LocalCluster, TopologyError, TridentTopology
from trident_py.kafka.clients import Cluster
from trident_py.testing import FixedBatchSpout
from trident_py.tuples import Fields

pytestmark = [pytest.mark.servers, pytest.mark.whole("test_a_broker_killed_around_commit"), pytest.mark.timeout(400)]
ALONE = {"default.replication.factor": 1, "offsets.topic.replication.factor": 1, "min.insync.replicas": 1}
GIVEN_UP = 5.0  # seconds after which the others have given up a broker that stands still


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """Three brokers whose topics have one replica each, but for the log of transactions."""
    with needed("kafka"), KafkaCluster(**ALONE) as made:
        producer_of(made, "first")  # makes the log of transactions
        yield made


def producer_of(cluster: KafkaCluster, name: str) -> Producer:
    made = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": name, "log_level": 0})
    made.init_transactions(30)
    return made


def send(producer: Producer, topic: str, value: str) -> None:
    producer.begin_transaction()
    producer.produce(topic, value, partition=0)
    producer.flush(30)


def end_without(leader: KafkaBroker, end: Callable[[float], None]) -> None:
    """End a transaction while a partition's leader stands still, until the others have given it up."""
    leader.freeze()
    try:
        end(30)
        time.sleep(GIVEN_UP)
    finally:
        leader.thaw()


def unled(cluster: KafkaCluster, leader: KafkaBroker, name: str) -> str:
    """Return a transactional id that another broker coordinates."""
    return next(id for n in range(99) if cluster.coordinator(id := f"{name}{n}") is not leader)


@pytest.mark.parametrize("decision", ["commit", "abort"])
def test_a_partition_without_a_leader_takes_the_next_decision_for_its_own(cluster: KafkaCluster, decision: str) -> None:
    topic = cluster.create_topic()
    leader = cluster.leader(topic)
    id = unled(cluster, leader, topic)
    producer = producer_of(cluster, id)
    send(producer, topic, "first")
    end_without(leader, producer.commit_transaction if decision == "commit" else producer.abort_transaction)
    assert not values(cluster.bootstrap, topic)
    other = {"commit": "abort", "abort": "commit"}[decision]
    producer = producer_of(cluster, id)
    send(producer, topic, "second")
    (producer.abort_transaction if other == "abort" else producer.commit_transaction)(30)
    assert values(cluster.bootstrap, topic) == ({} if other == "abort" else {"first": 1, "second": 1})


def run(cluster: KafkaCluster, name: str, topic: str, folder: Path, batches: int) -> None:
    rows = [(n,) for n in range(batches)]
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout(Fields("n bigint"), 1, *rows))
    state = TransactionalTopicState(cluster.bootstrap, topic, value="n", partitions=1)
    stream.partitionPersist(state, ["n"], RowUpdater(), stateName="rows").parallelismHint(1)
    with LocalCluster(str(folder)) as local:
        local.submitTopology(name, {}, topology.build()).awaitTermination()


def place_led_by_another(cluster: KafkaCluster, beside: bool) -> tuple[MarkPlace, KafkaBroker]:
    """Return a place whose marks are led by a broker that coordinates none of its transactions. ``beside``: it leads
    the topic, too."""
    for number in range(99):
        place = MarkPlace(Cluster.of(cluster.bootstrap), cluster.create_topic(), f"t{number}", "rows")
        leader = cluster.coordinator(place.name(0), GROUPS)
        same = cluster.leader(place.topic) is leader
        if cluster.coordinator(place.transactional_id(0)) is not leader and same == beside:
            return place, leader
    raise AssertionError("no such place")


def send_with_mark(place: MarkPlace, cluster: KafkaCluster, mark: Mark, value: str) -> Producer:
    """Do a partition's work on a batch, up to its end."""
    producer = producer_of(cluster, place.transactional_id(0))
    send(producer, place.topic, value)
    producer.send_offsets_to_transaction(place.offsets(mark), group_metadata(place.cluster, place.name(0)), 30)
    return producer


@pytest.mark.parametrize(("beside", "second"), [(True, 1), (False, 2)], ids=["with its records", "alone"])
def test_a_mark_that_was_never_told_ends_the_start_with_the_cause(
    cluster: KafkaCluster, tmp_path: Path, beside: bool, second: int
) -> None:
    """Aborted as the error says, its batch is replayed: once, or twice for readers if its records had been told."""
    place, leader = place_led_by_another(cluster, beside)
    run(cluster, place.topology, place.topic, tmp_path, 1)
    mark = place.read(0)
    assert mark is not None and mark.txid == 1
    producer = send_with_mark(place, cluster, mark._replace(txid=2), "1")
    end_without(leader, producer.commit_transaction)
    with pytest.raises(TopologyError, match=r"rows.*not told their partitions.*kafka-transactions\.sh") as told:
        run(cluster, place.topology, place.topic, tmp_path, 3)
    assert place.name(0) in str(told.value) and "unreachable" not in str(told.value)
    send_with_mark(place, cluster, mark, "aborted").abort_transaction(30)  # as kafka-transactions.sh does
    run(cluster, place.topology, place.topic, tmp_path, 3)
    assert values(cluster.bootstrap, place.topic) == {"0": 1, "1": second, "2": 1}
