"""A real Kafka broker for tests: one KRaft process on loopback, killed and restarted at will.

    with KafkaBroker() as broker:
        broker.create_topic("words", partitions=2)
        spout = KafkaSpout(broker.bootstrap, "words")
        ...
        broker.kill()       # SIGKILL, in the middle of whatever it does
        broker.restart()    # same log, same port

The jars come from Maven (see `kafka_jars`), Java 17 or newer from PATH or JAVA_HOME. The broker and its folder are gone
after ``close()`` (or the ``with`` block), and also when the process that started it ends in any way.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trident_py.errors import TridentError, explain_missing

from . import class_archives
from .kafka_jars import jars
from .service import HOST, Service, ServiceMissing, free_port

__all__ = ["KafkaBroker", "admin_of", "create_topic"]

MAIN, STORAGE = "kafka.Kafka", "kafka.tools.StorageTool"
ANSWER = 1.0
PATIENCE = 60
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "num.partitions": 1,
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 4,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "log.cleaner.backoff.ms": 100,
    "log.cleaner.dedupe.buffer.size": 16 << 20,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "broker.session.timeout.ms": 1000,  # with the default of 9 s a killed broker starts 10 s later
    "broker.heartbeat.interval.ms": 250,
    "log.retention.check.interval.ms": 1000,
    "log.initial.task.delay.ms": 100,
}


class KafkaBroker(Service):
    """One broker with its controller. ``options`` are its own settings: ``KafkaBroker(**{"num.partitions": 2})``.

    It never syncs to disk: acknowledged records survive the death of the process, which ``kill()`` tests, but not of
    the machine. A write to an unknown topic does not create it: use `create_topic`.
    """

    name = "Kafka"

    def __init__(self, base: str | Path | None = None, **options: Any) -> None:
        super().__init__(base, **options)
        self.cluster_id, self.controller_port = uuid.uuid4().hex[:22], free_port()

    @property
    def bootstrap(self) -> str:
        """``bootstrap.servers`` of this broker."""
        return f"{HOST}:{self.port}"

    def create_topic(self, name: str | None = None, partitions: int = 1, **config: Any) -> str:
        """Creates an empty topic and returns its name. None: an unused name.

        ``config`` has underscores for dots: ``cleanup_policy="compact"``.
        """
        return create_topic(self.bootstrap, name, partitions, config)

    def _make(self) -> None:
        super()._make()
        self._run("format its log", self._java(STORAGE, *self._format()), None)

    def _programs(self) -> Any:
        java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"  # noqa: PTH118
        if (path := shutil.which(java)) is None:
            raise ServiceMissing(f"{java} is not installed: sudo apt-get install openjdk-17-jre-headless")
        jars()
        return path

    def _format(self) -> list[str]:
        self._write_settings()
        return ["format", "--cluster-id", self.cluster_id, "--config", f"{self.folder}/server.properties"]

    def _write_settings(self) -> None:
        assert self.folder is not None
        addresses = {
            "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "controller.quorum.voters": f"1@{HOST}:{self.controller_port}",
            "log.dirs": f"{self.folder}/data",
        }
        lines = [f"{name}={value}\n" for name, value in {**SETTINGS, **addresses, **self.options}.items()]
        (self.folder / "server.properties").write_text("".join(lines))

    def _java(self, main: str, *arguments: str) -> list[str]:
        memory = ["-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return [self._programs(), *memory, *class_archives.options(main), "-cp", f"{jars()}/*", main, *arguments]

    def _command(self) -> list[str]:
        self._write_settings()
        return self._java(MAIN, f"{self.folder}/server.properties")

    def _answer(self) -> None:
        admin = admin_of(self.bootstrap)
        topics = admin.list_topics(timeout=ANSWER)
        if not topics.brokers:
            raise TridentError("no broker yet")

    def _no_answer(self) -> tuple[type[BaseException], ...]:
        from confluent_kafka import KafkaException

        return (KafkaException, TridentError)


def create_topic(
    bootstrap: str, name: str | None = None, partitions: int = 1, config: Mapping[str, Any] | None = None
) -> str:
    """Creates an empty topic on any broker and returns its name. None: an unused name.

    ``config`` may have underscores for dots.
    """
    from confluent_kafka.admin import NewTopic

    name = name or f"trident-{uuid.uuid4().hex[:12]}"
    settings = {key.replace("_", "."): str(value) for key, value in (config or {}).items()}
    admin = admin_of(bootstrap)  # keep the reference: the futures fail when it is collected
    futures = admin.create_topics([NewTopic(name, partitions, -1, config=settings)], operation_timeout=PATIENCE)
    futures[name].result(PATIENCE)
    _until_led(admin, name, partitions)
    return name


def _until_led(admin: Any, topic: str, partitions: int) -> None:
    """Waits until every partition has a leader: a topic exists earlier, and its first client would have to retry."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    offsets = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
    end = time.monotonic() + PATIENCE
    while True:
        try:
            for answer in admin.list_offsets(offsets, request_timeout=ANSWER).values():
                answer.result(PATIENCE)
            return
        except KafkaException:
            if time.monotonic() > end:
                raise
        time.sleep(0.01)


def admin_of(bootstrap: str) -> Any:
    try:
        from confluent_kafka.admin import AdminClient
    except ImportError as error:
        raise ServiceMissing(explain_missing("Kafka", f"the client {error.name}", "kafka")) from error
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
