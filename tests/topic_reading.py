"""What a topic holds, read by a plain consumer: every committed record, and what a reader sees during a run."""

from __future__ import annotations

import threading
import time
from collections import Counter
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from trident_py.kafka.blocking_calls import offsets_of

PATIENCE = 30.0
ENDING = 3.0  # seconds in which a transaction whose commit has returned reaches its partitions, on a loaded machine


class Record(NamedTuple):
    partition: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None


def _consumer(bootstrap: str, topic: str, isolation: str) -> tuple[Any, int]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, "log_level": 0,
         "enable.partition.eof": True, "isolation.level": isolation, "fetch.wait.max.ms": 20,
         "auto.offset.reset": "earliest", "reconnect.backoff.max.ms": 500}
    )  # fmt: skip
    partitions = len(consumer.list_topics(topic, PATIENCE).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
    return consumer, partitions


def has_open_transactions(bootstrap: str, topic: str, partitions: int) -> bool:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    asked = {TopicPartition(topic, each): OffsetSpec.latest() for each in range(partitions)}

    levels = (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
    committed, all_of_them = (offsets_of(admin, asked, level, PATIENCE) for level in levels)
    return committed != all_of_them


def read(bootstrap: str, topic: str, isolation: str = "read_committed", ending: float = ENDING) -> list[Record]:
    """Every record from the beginning to the end as it is now, in the order of each partition.

    A commit returns before its records are visible, so what is committed is waited for, for so many seconds. Who reads
    while others write waits for none.
    """
    consumer, partitions = _consumer(bootstrap, topic, isolation)
    until = time.monotonic() + ending
    while isolation == "read_committed" and time.monotonic() < until:
        if not has_open_transactions(bootstrap, topic, partitions):
            break
        time.sleep(0.02)
    found, ended, until = [], set(), time.monotonic() + PATIENCE
    while len(ended) < partitions:
        message = consumer.poll(0.2)
        assert time.monotonic() < until, "the topic has no end"
        if message is None:
            continue
        if message.error() is None:
            found.append(Record(message.partition(), message.key(), message.value(), message.headers()))
        elif message.error().name() == "_PARTITION_EOF":
            ended.add(message.partition())
    consumer.close()
    return found


def values(bootstrap: str, topic: str) -> Counter:
    """The values of all records, as text, and how often each is there."""
    return Counter(None if each.value is None else each.value.decode() for each in read(bootstrap, topic))


def group_offsets(bootstrap: str, group: str, topic: str) -> dict[tuple[str, int], int]:
    """The offsets that a group has committed in a topic. (AdminClient's call can end the process by SIGSEGV.)"""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "isolation.level": "read_committed", "log_level": 0}
    )
    try:
        partitions = consumer.list_topics(topic, PATIENCE).topics[topic].partitions
        found = consumer.committed([TopicPartition(topic, each) for each in partitions], PATIENCE)
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}
    finally:
        consumer.close()


class Reader:
    """Polls a topic all the time, committed records only, and keeps what it sees, poll by poll."""

    def __init__(self, bootstrap: str, topic: str, size: int = 100_000) -> None:
        self.polls: list[list[str]] = []
        self._size = size
        self._consumer, _ = _consumer(bootstrap, topic, "read_committed")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()

    @property
    def seen(self) -> list[str]:
        return [value for poll in list(self.polls) for value in poll]

    def wait_for(self, count: int) -> None:
        """Until it has seen so many records."""
        until = time.monotonic() + PATIENCE
        while len(self.seen) < count:
            assert time.monotonic() < until, f"{len(self.seen)} of {count} records seen"
            self._stopping.wait(0.01)

    def _run(self) -> None:
        while not self._stopping.is_set():
            messages = self._consumer.consume(self._size, 0.05)
            found = [each.value().decode() for each in messages if each.error() is None]
            if found:
                self.polls.append(found)
