"""The producers' settings, which of them users may change, and which of a user's settings only producers take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trident_py.errors import DefinitionError
from trident_py.kafka.clients import Cluster
from trident_py.state import Location

# With librdkafka's back-off of 100 ms, the second of two consecutive transactions would wait that long for the end of
# the first, which the broker finishes in the background. With sparse connections `init_transactions` takes 55 ms, or
# 500 ms if the coordinator's connection is not up yet; without them 4 ms. murmur2_random chooses the same partition for
# a key as Java's producers. Short reconnect pauses find a returning broker soon. librdkafka's "rebootstrap" is off: it
# forgets the coordinators of groups, which blocks the next transaction forever (librdkafka issue 5511).
SETTINGS: Mapping[str, Any] = {
    "acks": "all", "enable.idempotence": True, "linger.ms": 5, "retry.backoff.ms": 5, "retry.backoff.max.ms": 100,
    "reconnect.backoff.max.ms": 1000, "metadata.recovery.strategy": "none", "enable.sparse.connections": False,
    "partitioner": "murmur2_random",
}  # fmt: skip
TRANSACTIONAL: Mapping[str, Any] = {**SETTINGS, "transaction.timeout.ms": 60_000}
DELIVERED: Mapping[str, Any] = {**SETTINGS, "message.timeout.ms": 60_000}
# The limits of the queue in this process, in records and in KiB; librdkafka's own limits would lose the order.
WAITING: Mapping[str, int] = {"queue.buffering.max.messages": 500_000, "queue.buffering.max.kbytes": 262_144}
UNLIMITED: Mapping[str, Any] = {"queue.buffering.max.messages": 10_000_000, "queue.buffering.max.kbytes": 2_147_483_647}

_OURS = {
    "bootstrap.servers": "it is the first argument",
    "metadata.broker.list": "it is another name of bootstrap.servers, the first argument",
    "isolation.level": "a state reads what is committed",
    "auto.offset.reset": "a state reads its topic from the beginning",
    "enable.auto.commit": "a state commits no offsets but those of consumed=",
    "transactional.id": "it is derived from the names of topology, state, partition and topic",
    "enable.idempotence": "it is always on",
    "group.id": "it is derived from the names of topology, state and partition",
    "on_delivery": "the state waits for every delivery itself",
    "delivery.report.only.error": "the state waits for every delivery itself",
}
_FOR_PRODUCERS = (
    "linger.ms", "queue.buffering.", "batch.", "compression.", "transaction.timeout.ms", "message.timeout.ms",
    "delivery.timeout.ms", "message.send.max.retries", "retries", "partitioner", "acks", "request.required.acks",
    "request.timeout.ms", "max.in.flight", "sticky.partitioning.linger.ms", "message.max.bytes",
    "enable.gapless.guarantee", "enable.sparse.connections",
)  # fmt: skip

_HERE = ("localhost", "127.0.0.1", "[::1]")
Pairs = tuple[tuple[str, str], ...]


def pairs(topic: str, settings: Any) -> Pairs:
    """Return a user's settings as a comparable value. Raises DefinitionError for a setting that users cannot change."""
    texts = {name: _text(value) for name, value in dict(settings or {}).items()}
    for name, reason in _OURS.items():
        if name in texts:
            raise DefinitionError(f"topic {topic!r}: the setting {name!r} cannot be changed: {reason}")
    for name in ("acks", "request.required.acks"):
        if texts.get(name, "all") not in ("all", "-1"):
            raise DefinitionError(f"topic {topic!r}: the setting {name!r} cannot be less than 'all'")
    for name in (*WAITING, "log_level"):  # ours to read: librdkafka does not see them
        if not re.fullmatch("[0-9]{1,18}", texts.get(name, "0")):
            raise DefinitionError(f"topic {topic!r}: the setting {name!r} must be a whole number, got {texts[name]!r}")
    return tuple(sorted(texts.items()))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def cluster_of(bootstrap: str, settings: Any) -> Cluster:
    """Return the cluster with the settings that all clients need to reach it."""
    for_all = {name: value for name, value in dict(settings or {}).items() if not name.startswith(_FOR_PRODUCERS)}
    return Cluster.of(bootstrap, for_all)


def location_of(cluster: Cluster, topic: str, shared: str = "") -> Location:
    """Return the location of the topic, at each of the named brokers."""
    brokers = (address.strip().rpartition(":") for address in cluster.bootstrap.lower().split(","))
    stores = frozenset(f"{'localhost' if host in _HERE else host}:{port}" for host, _, port in brokers)
    return Location(stores, frozenset([topic]), shared, f"topic {topic!r} at {cluster.bootstrap}")


def for_producers(settings: Any) -> dict[str, str]:
    """Return the settings that only producers take."""
    return {name: value for name, value in dict(settings or {}).items() if name.startswith(_FOR_PRODUCERS)}


class Room:
    """How many records may wait in a producer's queue. 0 is no limit, as in librdkafka."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        limits = (int(settings.get(name, default)) or UNLIMITED[name] for name, default in WAITING.items())
        self._records, kilobytes = limits
        self._bytes = kilobytes * 1024

    def for_records(self, values: list[bytes | None]) -> int:
        """Return the limit for records of this size; at least one."""
        size = sum(map(len, filter(None, values))) // max(len(values), 1) + 100
        return max(1, min(self._records, self._bytes // size))
