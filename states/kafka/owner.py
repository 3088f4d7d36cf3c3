"""The owner of a topic: a note in the offset metadata of the consumer group ``trident/owner-of/<topic>``.

The note is written in a transaction under the transactional id of the same name. If two drivers write it at once, the
first is fenced, and finds the other's note when it retries. The note is written again with the driver's mark, because
brokers forget the offsets of idle groups.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from trident_py.errors import FailedException, StateError
from trident_py.kafka.clients import Cluster, is_fenced
from trident_py.model.json_text import parse_json
from trident_py.state import Location

from ..ledger.owner import Owner, Tenure
from .marks import DRIVER, Mark, MarkPlace
from .producer import TransactionalProducer

AT_ONCE = 8
T = TypeVar("T")


class Partitions:
    """The partitions' producers; a context manager that closes them."""

    def __init__(self, place: MarkPlace, settings: Mapping[str, Any]) -> None:
        self._place = place
        self._settings = settings
        self._producers: list[TransactionalProducer] = []
        self.marks: list[Mark] = []

    def __enter__(self) -> Partitions:
        return self

    def __exit__(self, *exception: object) -> None:
        for producer in self._producers:
            producer.close()

    @property
    def last(self) -> int:
        """The highest txid that a partition has written, 0 if there is none."""
        return max((mark.txid for mark in self.marks), default=0)

    def open(self, count: int) -> list[Mark]:
        """Shut out the old producers of this many partitions, and return the marks read afterwards."""
        self._make(count)
        self.marks = self._in_parallel(self._take_over)
        return self.marks

    def shut_out(self, count: int) -> None:
        """End the open transactions of this many partitions; their old producers can no longer commit."""
        self._make(count)
        self._in_parallel(lambda part: self._producers[part].open())

    def _make(self, count: int) -> None:
        self._producers = [TransactionalProducer(self._place, part, self._settings) for part in range(count)]

    def settle(self, check_newest: Callable[[], None] | None = None) -> None:
        """Called after the new driver's mark is written; writes the partitions' marks again, which shuts out a task of
        the old driver that has reopened its producer meanwhile. With ``check_newest`` resets the marks' txids to 0,
        each after this was called, which raises if a newer driver may have written the mark."""
        self.marks = self._in_parallel(lambda part: self._settle(part, check_newest))

    def _take_over(self, part: int) -> Mark:
        self._producers[part].open()
        return self._place.read_after_open(part) or Mark()

    def _settle(self, part: int, check_newest: Callable[[], None] | None) -> Mark:
        writer, mark = self._producers[part], self.marks[part]
        if not writer.is_open:  # its last commit was not clean
            mark = self._take_over(part)
        while True:
            wanted = mark
            if check_newest is not None:
                check_newest()
                wanted = mark._replace(txid=0)
            try:
                writer.commit(wanted)
                return wanted
            except FailedException as error:
                if not is_fenced(error.__cause__):
                    raise
                mark = self._take_over(part)  # another producer took over; re-read its mark

    def _in_parallel(self, call: Callable[[int], T]) -> list[T]:
        parts = range(len(self._producers))
        if len(parts) < 2:
            return list(map(call, parts))
        with ThreadPoolExecutor(min(AT_ONCE, len(parts))) as pool:
            return list(pool.map(call, parts))


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
            return Owner(*parse_json(position.metadata)["owner"])
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

    def check(self, conf: dict) -> Owner | None:
        """Return the owner. Called before a start; only reads. Raises StateError if another state owns the topic."""
        owner = self._place.owner(settled=False)
        Tenure.of(self._location, conf).stays(owner)
        return owner

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
            mark = place.read_after_open(DRIVER) or Mark()
            writer.commit(mark._replace(generation=mark.generation + 1))
            with Partitions(place, self._settings) as parts:
                parts.shut_out(mark.partitions)
        finally:
            writer.close()
