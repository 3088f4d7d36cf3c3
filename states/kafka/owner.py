"""The owner of a topic: a note in the offset metadata of the consumer group ``trident/owner-of/<topic>``.

The note is written in a transaction under the transactional id of the same name. If two drivers write it at once, the
first is fenced, and finds the other's note when it retries. The note is written again with the driver's mark, because
brokers forget the offsets of idle groups.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from trident_py.errors import StateError
from trident_py.kafka.clients import Cluster
from trident_py.state import Location

from ..ledger.owner import Owner, Tenure
from .marks import DRIVER, Mark, MarkPlace
from .partitions import Partitions
from .producer import TransactionalProducer

Offsets = tuple[list[Any], Any]


class Note(NamedTuple):
    """The note, in the form of a mark without a txid."""

    owner: Owner
    txid: int = 0

    def text(self) -> str:
        return json.dumps({"owner": self.owner}, separators=(",", ":"))


@dataclass(frozen=True)
class NotePlace(MarkPlace):
    """The place of a topic's note, the same for all writers."""

    def name(self, part: int | str) -> str:
        return f"trident/owner-of/{quote(self.topic, safe='')}"

    def owner(self, settled: bool) -> Owner | None:
        """Return the topic's owner, or None. ``settled``: waits until every open transaction on the note has ended.
        Raises StateError for a note that this library has not written."""
        position = self.fetch_committed(DRIVER, settled)
        if position.offset < 0:
            return None
        try:
            return Owner(*json.loads(position.metadata)["owner"])
        except (ValueError, TypeError, KeyError) as error:
            raise StateError(
                f"group {self.name(DRIVER)!r} holds {position.metadata!r}, which this library has not written; if no "
                "topology updates the topic, remove the group (kafka-consumer-groups.sh --delete)"
            ) from error


class TopicOwner:
    """Checks and writes the note on the driver; one object for each run. ``fenced``: the note is written in a
    transaction, as the state's data are."""

    def __init__(self, cluster: Cluster, location: Location, settings: Mapping[str, Any], fenced: bool = True) -> None:
        (topic,) = location.names
        self._place = NotePlace(cluster, topic, "", "")
        self._location = location
        self._settings = settings
        self._fenced = fenced
        self._tenure: Tenure | None = None
        self._is_owner = False

    def check(self, conf: dict) -> None:
        """Called before a start. Only reads. Raises StateError if another state owns the topic."""
        Tenure.of(self._location, conf).stays(self._place.owner(settled=False))

    def register_owner(self, conf: dict) -> None:
        """Called at a start; sets the owner for whom `claim` claims the topic."""
        self._tenure = Tenure.of(self._location, conf)

    def claim(self) -> None:
        """Called before the first batch. A replaced owner can no longer write. Raises StateError if another state owns
        the topic, FailedException if another one claims it at this moment: the next call finds that owner."""
        if self._tenure is None:
            return
        owner = self._place.owner(settled=True)
        if not self._tenure.stays(owner):
            self._write(self._tenure)
            owner = self._tenure.own
        self._is_owner = owner == self._tenure.own

    def renewal(self) -> list[Offsets]:
        """Return the note's offsets, for the transaction that writes the driver's mark again."""
        if self._tenure is None or not self._is_owner:
            return []
        return [(self._place.offsets(Note(self._tenure.own)), self._place.metadata(DRIVER))]

    def renew(self) -> None:
        """Write the note again, without a transaction."""
        if self._tenure is not None and self._is_owner:
            self._write_plainly(self._tenure.own)

    def _write(self, tenure: Tenure) -> None:
        if not self._fenced:
            self._write_plainly(tenure.own)
            return
        writer = TransactionalProducer(self._place, DRIVER, self._settings)
        try:
            writer.open()
            owner = self._place.owner(settled=True)
            if not tenure.stays(owner):
                if owner is not None and owner[:2] != tenure.own[:2]:
                    self._shut_out(owner)
                writer.commit(Note(tenure.own))
        finally:
            writer.close()

    def _write_plainly(self, owner: Owner) -> None:
        self._place.write(DRIVER, Note(owner), f"record the owner of topic {self._place.topic!r}")

    def _shut_out(self, old: Owner) -> None:
        """Shut out the old owner as a newer driver of it would: first its driver's mark, then its partitions."""
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
