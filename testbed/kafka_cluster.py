"""Three real Kafka brokers for tests, with replication 3: any one of them may die, stand still and come back.

    with KafkaCluster() as cluster:
        topic = cluster.create_topic(partitions=2)
        cluster.leader(topic).kill()             # another broker leads the partition
        cluster.coordinator("my-id").freeze()    # SIGSTOP; thaw() goes on
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from trident_py.errors import TridentError
from trident_py.model.partitioning import java_hash

from .kafka_broker import PATIENCE, KafkaBroker, admin_of, create_topic
from .service import HOST

__all__ = ["GROUPS", "TRANSACTIONS", "KafkaCluster"]

BROKERS = (1, 2, 3)
TRANSACTIONS, GROUPS = "__transaction_state", "__consumer_offsets"
REPLICATED = {
    "default.replication.factor": 3, "min.insync.replicas": 2, "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3, "transaction.state.log.min.isr": 2,
    "share.coordinator.state.topic.replication.factor": 3, "share.coordinator.state.topic.min.isr": 2,
    "broker.session.timeout.ms": 2000,
}  # fmt: skip


class KafkaCluster:
    """Three brokers, each of them a controller as well. ``options`` are settings of all; start() takes a while."""

    def __init__(self, **options: Any) -> None:
        self.brokers = [KafkaBroker(**{**REPLICATED, "node.id": number, **options}) for number in BROKERS]
        first = self.brokers[0]
        voters = [f"{each.options['node.id']}@{HOST}:{each.controller_port}" for each in self.brokers]
        for broker in self.brokers:
            broker.cluster_id = first.cluster_id
            broker.options["controller.quorum.voters"] = ",".join(voters)

    @property
    def bootstrap(self) -> str:
        """``bootstrap.servers``: all three."""
        return ",".join(broker.bootstrap for broker in self.brokers)

    def create_topic(self, name: str | None = None, partitions: int = 1, **config: Any) -> str:
        return create_topic(self.bootstrap, name, partitions, config)

    def leader(self, topic: str, partition: int = 0) -> KafkaBroker:
        """The broker that leads a partition now; waits while there is none."""

        def number() -> int:
            return max(0, self._metadata(topic).topics[topic].partitions[partition].leader)

        return self.brokers[_soon(number, f"partition {partition} of {topic} has a leader") - 1]

    def coordinator(self, id: str, topic: str = TRANSACTIONS) -> KafkaBroker:
        """The coordinator of a transactional id, or with `GROUPS` of a group."""
        number = java_hash(id)
        signed = number - (1 << 32) if number >= 1 << 31 else number
        return self.leader(topic, abs(signed) % len(self._metadata(topic).topics[topic].partitions))

    def start(self) -> Self:
        try:
            with ThreadPoolExecutor(len(BROKERS)) as pool:
                list(pool.map(KafkaBroker.start, self.brokers))  # none answers alone
            _soon(lambda: len(self._metadata().brokers) == len(BROKERS), "all brokers are known")
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        for broker in self.brokers:
            broker.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _metadata(self, topic: str | None = None) -> Any:
        admin = admin_of(self.bootstrap)
        return admin.list_topics(**({} if topic is None else {"topic": topic}), timeout=PATIENCE)


def _soon(look: Callable[[], Any], what: str) -> Any:
    """What ``look`` returns, as soon as that is something."""
    end = time.monotonic() + PATIENCE
    while not (found := look()):
        if time.monotonic() > end:
            raise TridentError(f"Kafka: it took more than {PATIENCE} s until {what}")
        time.sleep(0.02)
    return found
