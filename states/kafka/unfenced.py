"""The driver's side of a state without a fence: the topic is looked at, and whose it is; no driver is ever shut out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from trident_py.kafka.clients import Cluster
from trident_py.state import BatchParticipant, Location, Remembered

from .ledger import RENEWED
from .marks import Place
from .owner import TopicOwner
from .topics import check_there, opened


class Looked(Protocol):
    """What looks at the topic, one object for each run."""

    cluster: Cluster

    def open(self, conf: dict) -> None:
        """Makes the topic if it is missing and that is wanted. Raises StateError for one that cannot serve."""
        ...

    def unchanged(self) -> bool:
        """Before each attempt; whether what brokers may forget is due to be written again. Raises StateError."""
        ...


class AppendedTopic:
    """The topic of a state that only adds records. ``create``: a missing one gets so many partitions."""

    def __init__(self, cluster: Cluster, topic: str, create: int | None) -> None:
        self.cluster = cluster
        self._topic = topic
        self._create = create
        self._due = 0.0

    def open(self, conf: dict) -> None:
        check_there(Place.of(self.cluster, self._topic, conf), self.cluster.admin(), self._create)
        self._due = time.monotonic() + RENEWED

    def unchanged(self) -> bool:
        """Asks nothing: whoever writes finds out."""
        due = time.monotonic() > self._due
        if due:
            self._due = time.monotonic() + RENEWED
        return due


class UnfencedLedger(BatchParticipant):
    """One object for each run."""

    def __init__(self, topic: Looked, location: Location) -> None:
        self._topic = topic
        self._owner = TopicOwner(topic.cluster, location, {}, fenced=False)
        self._claimed = False

    def remembered(self, conf: dict) -> Remembered | None:
        """Nothing, for it keeps no txids. Raises StateError if the topic is another state's."""
        opened(self._topic.cluster, lambda: self._owner.check(conf))
        return None

    def open(self, conf: dict) -> int:
        opened(self._topic.cluster, lambda: self._topic.open(conf))
        self._owner.comes(conf)
        return 0

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        renewed = self._topic.unchanged()
        if not self._claimed:
            self._owner.claim()
        elif renewed:
            self._owner.renew()
        self._claimed = True

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Nothing: every partition has waited for its deliveries."""

    def abort(self, txid: int, attempt: int) -> None:
        """Nothing: the replay writes again."""
