"""Checks a compacted topic before a state writes it, and creates a missing one.

The number of partitions must not change, since it decides the partition of a key. The offset metadata of the group
``trident/<topology>/<state>/keys`` records it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trident_py.errors import StateError
from trident_py.kafka.clients import Cluster
from trident_py.state import Location, Remembered

from ...diagnostics import Finding
from ..advice import kafka_errors
from ..ledger import RENEWED, TopicLedger
from ..marks import ANSWER, Mark, MarkPlace
from ..topic_admin import make, partitions_of, reach, run_when_available, settings_of, unless_missing
from .local_table import table_of

KEYS = "keys"
HOUR = 3600.0
_LAGS = {
    "delete.retention.ms": "a tombstone, and with it the txid that tells a replay, may be gone before the restart",
    "max.compaction.lag.ms": "records may be compacted away while a reader is down for so long",
}


@dataclass(frozen=True)
class Compaction:
    """A state's requirements of its topic. ``restart``: for how many seconds the topology may be down."""

    cluster: Cluster
    topic: str
    partitions: int | None = None
    replication: int | None = None
    config: tuple[tuple[str, str], ...] = ()
    restart: float = HOUR

    def look(self) -> list[Finding]:
        """Report whether the topic is suitable, would be created, or is wrong. Writes nothing."""
        reach(self.cluster)
        existing = self.existing()
        if existing is None:
            many = "the broker's default" if self.partitions is None else self.partitions
            return [Finding("creates", f"topic {self.topic!r} does not exist; it would be created, compacted, "
                                       f"partitions: {many}")]  # fmt: skip
        settings, partitions = existing
        problems = [Finding("error", text) for text in self._problems(settings, partitions)]
        return problems or [Finding("ok", f"topic {self.topic!r} is compacted and has {partitions} partitions")]

    def ensure_topic(self) -> int:
        """Create a missing topic; return the number of partitions. Raises StateError for an unsuitable topic."""
        existing = self.existing()
        if existing is None:
            self._create()
            return self.ensure_topic()
        settings, partitions = existing
        for text in self._problems(settings, partitions):
            raise StateError(text)
        return partitions

    def existing(self) -> tuple[dict[str, str], int] | None:
        """Return the topic's settings and its number of partitions; None for a missing topic."""
        admin, topic = self.cluster.admin(), self.topic
        return unless_missing(
            self.cluster, topic, lambda: (settings_of(admin, topic), len(partitions_of(admin, topic)))
        )

    def _problems(self, settings: Mapping[str, str], partitions: int) -> Iterator[str]:
        policy = settings.get("cleanup.policy", "")
        if "compact" not in policy:
            yield self._problem("cleanup.policy", policy, "it is not compacted, so old keys are dropped with their "
                                "segments", "compact")  # fmt: skip
        elif "delete" in policy and any(settings.get(name) != "-1" for name in ("retention.ms", "retention.bytes")):
            yield self._problem("cleanup.policy", policy, "keys that are not written again are dropped after "
                                f"retention.ms={settings.get('retention.ms')}, "
                                f"retention.bytes={settings.get('retention.bytes')}", "compact")  # fmt: skip
        for name, why in _LAGS.items():
            value, least = int(settings.get(name, 0)), int(self.restart * 1000)
            if value < least:
                reason = f"{why}: the state must survive a stop of {self.restart:g} s (restart=)"
                yield self._problem(name, value, reason, least)
        if self.partitions is not None and self.partitions != partitions:
            yield (
                f"topic {self.topic!r} has {partitions} partitions, but the state declares {self.partitions}. "
                f"{_TWO}. Declare partitions={partitions}"
            )

    def _problem(self, name: str, value: Any, reason: str, instead: Any) -> str:
        return (
            f"topic {self.topic!r} has {name}={value}: {reason}. Change it: kafka-configs.sh --alter --entity-type "
            f"topics --entity-name {self.topic} --add-config {name}={instead}"
        )

    def _create(self) -> None:
        config = {"cleanup.policy": "compact", **dict(self.config)}
        make(self.cluster, self.cluster.admin(), self.topic, self.partitions, self.replication, config)
        until = time.monotonic() + ANSWER
        while self.existing() is None and time.monotonic() < until:
            time.sleep(0.02)


_TWO = (
    "Their number decides the partition of a key: with another number a key would live in two partitions, where "
    "compaction never merges its records and it is unknown which is the last"
)


class KeyedTopic:
    """The driver's checks of the topic: at the start of a run, and before each attempt that its partitions are
    unchanged."""

    def __init__(self, compaction: Compaction) -> None:
        self.cluster = compaction.cluster
        self._compaction = compaction
        self._place: MarkPlace | None = None
        self._admin: Any = None
        self._partitions = 0
        self._written = 0.0

    def open(self, conf: dict) -> None:
        """Check or creates the topic. Raises StateError if it is unsuitable or its partition count has changed."""
        self._place = MarkPlace.of(self.cluster, self._compaction.topic, conf)
        self._partitions = self._compaction.ensure_topic()
        self._admin = self.cluster.admin()
        recorded = self._place.read(KEYS)
        if recorded is not None:
            self._compare(self._place, recorded.partitions, self._partitions)
        self._record(self._place)

    def check_unchanged(self) -> None:
        """Called before each attempt; renews the recorded number if due. Raises StateError if the number of partitions
        has changed."""
        assert self._place is not None
        with kafka_errors(self.cluster, f"look up topic {self._compaction.topic!r}"):
            now = len(partitions_of(self._admin, self._compaction.topic))
        self._compare(self._place, self._partitions, now)
        if time.monotonic() - self._written > RENEWED:
            self._record(self._place)

    def last_txid(self) -> int:
        """Return the highest txid among the topic's records, 0 if there is none."""
        if self._compaction.existing() is None:
            return 0
        table = table_of(self.cluster, self._compaction.topic)
        table.catch_up(ANSWER / 6)
        return table.last_txid()

    def _compare(self, place: MarkPlace, before: int, now: int) -> None:
        if before != now:
            raise StateError(
                f"{place.label}: the topic had {before} partitions and has {now}. {_TWO}. Create a new topic with "
                f"{now} partitions and write the keys again"
            )

    def _record(self, place: MarkPlace) -> None:
        place.write(KEYS, Mark(partitions=self._partitions), f"record the number of partitions of {place.label}")
        self._written = time.monotonic()


class CompactedLedger(TopicLedger):
    """The driver's side of a fenced CompactedTopicState: it checks the topic, then takes over the fence."""

    def __init__(self, keyed: KeyedTopic, location: Location, settings: Mapping[str, Any], valued: bool) -> None:
        super().__init__(keyed.cluster, location, settings, counted=False)
        self._keyed = keyed
        self._valued = valued

    def open(self, conf: dict) -> int:
        run_when_available(self._cluster, lambda: self._keyed.open(conf))
        return super().open(conf)

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        self._keyed.check_unchanged()
        super().prepare(txid, attempt, numPartitions)

    def _in_values(self, marks: Remembered) -> int:
        """Return the highest txid according to the marks; without marks, according to the values, which reads the
        topic."""
        if not self._valued:
            return 0
        return marks.last or self._keyed.last_txid()
