"""Whose a topic is: a note kept as the offset metadata of a consumer group, ``trident/owner-of/<topic>``.

It is written in a transaction under the transactional id of the same name, so that of two who come at once the first
is fenced, and finds the other when it comes again; and again with the driver's mark, because brokers forget the offsets
of idle groups.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from trident_py.errors import StateError
from trident_py.kafka.asking import asked
from trident_py.kafka.clients import ASKING, Cluster
from trident_py.state import Location

from ..owners import Owner, Tenure
from .advice import kafka_errors
from .marks import DRIVER, Mark, MarkPlace, committed_in
from .partitions import Partitions
from .producer import TransactionalProducer

Offsets = tuple[list[Any], Any]


class Note(NamedTuple):
    """What is committed with the group's offset; without a txid."""

    owner: Owner
    txid: int = 0

    def text(self) -> str:
        return json.dumps({"owner": self.owner}, separators=(",", ":"))


@dataclass(frozen=True)
class NotePlace(MarkPlace):
    """Where a topic's note is, whoever writes it."""

    def name(self, part: int | str) -> str:
        return f"trident/owner-of/{quote(self.topic, safe='')}"

    def owner(self, settled: bool) -> Owner | None:
        """Whose the topic is; ``settled``: once every open transaction on the note has ended. Raises StateError."""
        found = committed_in(self, DRIVER, settled)
        if found.offset < 0:
            return None
        try:
            return Owner(*json.loads(found.metadata)["owner"])
        except (ValueError, TypeError, KeyError) as error:
            raise StateError(
                f"group {self.name(DRIVER)!r} holds {found.metadata!r}, which this library has not written; if no "
                "topology updates the topic, remove the group (kafka-consumer-groups.sh --delete)"
            ) from error


class TopicOwner:
    """The driver's side, one object for each run. ``fenced``: by transactions, as the state itself writes."""

    def __init__(self, cluster: Cluster, location: Location, settings: Mapping[str, Any], fenced: bool = True) -> None:
        (topic,) = location.names
        self._place = NotePlace(cluster, topic, "", "")
        self._location = location
        self._settings = settings
        self._fenced = fenced
        self._tenure: Tenure | None = None
        self._mine = False

    def check(self, conf: dict) -> None:
        """Before a start. Reads only. Raises StateError if the topic is another state's."""
        Tenure.of(self._location, conf).stays(self._place.owner(settled=False))

    def comes(self, conf: dict) -> None:
        """At a start: for whom `claim` is."""
        self._tenure = Tenure.of(self._location, conf)

    def claim(self) -> None:
        """Before the first batch. An owner that is replaced writes no more. Raises StateError, FailedException where
        another one comes at this moment: called again, it finds who."""
        if self._tenure is None:
            return
        found = self._place.owner(settled=True)
        if not self._tenure.stays(found):
            self._write(self._tenure)
            found = self._tenure.own
        self._mine = found == self._tenure.own

    def renewal(self) -> list[Offsets]:
        """The note again, for the transaction that writes the driver's mark."""
        if self._tenure is None or not self._mine:
            return []
        return [(self._offsets(self._tenure.own), self._place.metadata(DRIVER))]

    def renew(self) -> None:
        """The same without a transaction."""
        for offsets, _ in self.renewal():
            self._write_plainly(offsets)

    def _offsets(self, owner: Owner) -> list[Any]:
        return self._place.offsets(Note(owner))  # type: ignore[arg-type]

    def _write(self, tenure: Tenure) -> None:
        if not self._fenced:
            self._write_plainly(self._offsets(tenure.own))
            return
        writer = TransactionalProducer(self._place, DRIVER, self._settings)
        try:
            writer.open()
            found = self._place.owner(settled=True)
            if not tenure.stays(found):
                if found is not None and found[:2] != tenure.own[:2]:
                    self._shut_out(found)
                writer.commit(Note(tenure.own))  # type: ignore[arg-type]
        finally:
            writer.close()

    def _write_plainly(self, offsets: list[Any]) -> None:
        consumer = self._place.cluster.consumer({**ASKING, "group.id": self._place.name(DRIVER)})
        try:
            with kafka_errors(self._place.cluster, f"note whose topic {self._place.topic!r} is"):
                asked(consumer.commit, offsets=offsets, asynchronous=False)
        finally:
            consumer.close()

    def _shut_out(self, old: Owner) -> None:
        """As a newer driver of that one would: its mark first, then its partitions."""
        place = MarkPlace(self._place.cluster, self._place.topic, old.topology, old.state)
        writer = TransactionalProducer(place, DRIVER, self._settings)
        try:
            writer.open()
            mark = place.read(DRIVER) or Mark()
            writer.commit(mark._replace(generation=mark.generation + 1))
            with Partitions(place, self._settings) as parts:
                parts.shut_out(mark.partitions)
        finally:
            writer.close()
