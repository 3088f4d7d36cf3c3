"""The Kafka broker that tests start: it keeps what was acknowledged, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from testbed import kafka_jars
from testbed import service as services
from testbed.kafka_broker import KafkaBroker
from testbed.service import ServiceMissing

from .waiting import PATIENCE, is_gone, soon

PARENT = """
import sys
from testbed.kafka_broker import KafkaBroker
broker = KafkaBroker().start()
print(broker.pid, broker.folder, flush=True)
sys.stdin.read()
"""


pytestmark = pytest.mark.whole("test_a_broker_killed_around_commit")  # it is used there


def write(broker: Any, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE) == 0


def read(broker: Any, topic: str) -> list[str]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "test", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    while (message := consumer.poll(PATIENCE)) is not None and message.error() is None:
        found.append(message.value().decode())
    assert message is not None, "the end of the partition was not reached"
    consumer.close()
    return found


def test_what_was_acknowledged_survives_a_kill_and_a_stop(own_kafka: Callable[..., Any]) -> None:
    broker = own_kafka()
    topic, port = broker.create_topic(), broker.port
    write(broker, topic, "one")
    broker.kill()
    assert not broker.running
    broker.restart()
    write(broker, topic, "two")
    broker.restart()
    assert broker.port == port
    assert read(broker, topic) == ["one", "two"]


def test_a_broker_ends_with_the_process_that_started_it(own_kafka: Callable[..., Any]) -> None:
    own_kafka().close()  # it is there, or the test says so
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdin is not None and parent.stdout is not None
    pid, folder = parent.stdout.readline().split()
    assert psutil.pid_exists(int(pid)) and Path(folder).is_dir()
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdin.close()
    parent.stdout.close()
    assert soon(lambda: is_gone(int(pid)) and not Path(folder).exists())


def test_options_are_the_brokers_settings_and_topics_are_not_made_by_writing(own_kafka: Callable[..., Any]) -> None:
    broker = own_kafka(**{"num.partitions": 3})
    topic = broker.create_topic(partitions=2, cleanup_policy="compact")
    with Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "test"}) as consumer:
        assert len(consumer.list_topics(topic, PATIENCE).topics[topic].partitions) == 2
        assert consumer.list_topics("never-made", PATIENCE).topics["never-made"].error is not None
    assert "num.partitions=3\n" in (broker.folder / "server.properties").read_text()


def test_missing_jars_and_a_missing_maven_say_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(services.shutil, "which", lambda *_, **__: None)
    monkeypatch.setenv(kafka_jars.VARIABLE, str(tmp_path / "jars"))
    assert not kafka_jars.there()
    with pytest.raises(ServiceMissing, match="mvn, which fetches jars for tests, is not installed"):
        kafka_jars.jars()
    (tmp_path / "jars").mkdir()
    with pytest.raises(ServiceMissing, match="has no Kafka broker; remove it"):
        kafka_jars.jars()
    with pytest.raises(ServiceMissing, match="java is not installed"):
        KafkaBroker(base=tmp_path).start()
