"""What a lone broker loses when it dies just behind a commit: a limit of Kafka's, named in docs/kafka.md.

The commit is in the log of transactions, and its end in no partition yet. A broker that finds that at its start calls
the transaction complete, and tells no partition.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from servers.waiting import soon
from topic_reading import values

from testbed.kafka_cluster import KafkaCluster

pytestmark = [pytest.mark.servers, pytest.mark.whole("test_a_broker_killed_around_commit"), pytest.mark.timeout(300)]
TRIES = 20  # half of them come in time


def producer_of(broker: Any, topic: str) -> Producer:
    made = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0})
    made.init_transactions(30)
    return made


def send(producer: Producer, topic: str, value: str) -> None:
    producer.begin_transaction()
    producer.produce(topic, value, partition=0)
    producer.flush(30)


def kill_behind_a_commit(broker: Any, killed: list[Any]) -> str:
    """Return the topic. The brokers are back."""
    topic: str = broker.create_topic()
    producer = producer_of(broker, topic)
    send(producer, topic, "first")
    producer.commit_transaction(30)
    for each in killed:
        os.kill(each.pid, signal.SIGKILL)
    for each in killed:
        each.kill()
        each.start()
    return topic


def stays_hidden(broker: Any, topic: str) -> bool:
    """Whether nobody sees the committed record, also after a moment."""
    if values(broker.bootstrap, topic):
        return False
    time.sleep(3)
    return not values(broker.bootstrap, topic)


def test_what_a_lone_broker_has_committed_may_be_invisible_and_lost_with_the_next_abort(
    own_kafka: Callable[..., Any],
) -> None:
    broker = own_kafka()
    topics = (kill_behind_a_commit(broker, [broker]) for _ in range(TRIES))
    hidden = next(topic for topic in topics if stays_hidden(broker, topic))
    producer = producer_of(broker, hidden)
    send(producer, hidden, "second")
    producer.abort_transaction(30)
    send(producer, hidden, "third")
    producer.commit_transaction(30)
    assert values(broker.bootstrap, hidden) == {"third": 1}


def test_three_brokers_end_every_transaction() -> None:
    with KafkaCluster() as cluster:
        for number in range(8):
            killed = [cluster.brokers[number % 3]]
            topic = kill_behind_a_commit(cluster, killed)
            assert soon(lambda topic=topic: values(cluster.bootstrap, topic) == {"first": 1})  # type: ignore[misc]
