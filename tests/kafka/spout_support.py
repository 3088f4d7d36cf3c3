"""What the tests of KafkaSpout share: topics with known contents, and a run of the spout batch by batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from spouts.harness import Player, flat
from topic_reading import has_open_transactions

from trident_py.tuples import TransactionAttempt

PATIENCE = 60.0


def produce(broker: Any, topic: str, values: Iterable[Any], partition: int = 0, **more: Any) -> None:
    """Writes the values to one partition, and waits until they are there."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value, partition=partition, **more)
    assert producer.flush(PATIENCE) == 0


def transactional(broker: Any, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(PATIENCE)
    return producer


def transaction(producer: Producer, topic: str, values: Iterable[Any], commit: bool = True, partition: int = 0) -> None:
    """One transaction with these values, committed or aborted."""
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(PATIENCE) == 0
    if commit:
        producer.commit_transaction(PATIENCE)
    else:
        producer.abort_transaction(PATIENCE)


def decided(broker: Any, topic: str, partitions: int = 1) -> None:
    """Waits until no transaction is open: the marks are written a moment after a commit returns."""
    eventually(lambda: not has_open_transactions(broker.bootstrap, topic, partitions))


def commit(broker: Any, group: str, offsets: dict[tuple[str, int], int]) -> None:
    """Commits offsets for a group, as a consumer would."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(*place, at) for place, at in offsets.items()], asynchronous=False)
    consumer.close()


def delete_records(broker: Any, topic: str, before: int, partition: int = 0) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for answer in admin.delete_records([TopicPartition(topic, partition, before)]).values():
        answer.result(PATIENCE)


def recreate(broker: Any, topic: str, partitions: int = 1) -> None:
    """Deletes a topic and makes a new one of that name."""
    delete(broker, topic)
    eventually(lambda: made(broker, topic, partitions))


def delete(broker: Any, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic], operation_timeout=PATIENCE)[topic].result(PATIENCE)


def made(broker: Any, topic: str, partitions: int) -> bool:
    try:
        broker.create_topic(topic, partitions=partitions)
    except Exception as error:
        assert "TOPIC_ALREADY_EXISTS" in str(error)
        return False
    return True


def add_partitions(broker: Any, topic: str, total: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_partitions([NewPartitions(topic, total)])[topic].result(PATIENCE)


def eventually(condition: Callable[[], Any]) -> None:
    """Waits until it holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came to be so"
        time.sleep(0.01)


def values(rows: list) -> list:
    """The only field of all rows of a batch, or of several."""
    return [value for (value,) in flat(rows)]


def when_ready(player: Player, txid: int) -> list:
    """The rows of the next batch, once there is one."""
    eventually(lambda: player.coordination.ready(txid))
    return player.batch(txid)


def all_of(player: Player) -> list[list]:
    """The values of each batch of a spout that ends, in order."""
    made, txid = [], 1
    while not player.coordination.is_exhausted(txid):
        if player.coordination.ready(txid):
            made.append(values(player.batch(txid)))
            txid += 1
        else:
            time.sleep(0.01)
    return made


def again(player: Player, txid: int, partitions: int = 1) -> list:
    """What tasks that know nothing emit for a batch, from its metadata alone."""
    fresh = Player(player.infos[0].spout, partitions=partitions, store=player.store, restored=player.logged)
    try:
        return fresh.emit(txid, 1)
    finally:
        fresh.close()


__all__ = ["Player", "TransactionAttempt", "flat"]
