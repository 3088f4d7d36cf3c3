"""The driver's side of a Kafka state in one run: fences older drivers, and records how batches are spread.

`open` takes over the driver's transactional id, commits a mark with a higher generation, and shuts out every partition
of the previous driver; of two drivers that open at once, one is fenced. An ordinary batch does not move the driver's
mark, since the partitions' own marks tell a replay. A batch without records does, so that some mark always shows the
last batch. The driver's mark is written again every `RENEWED` seconds, because brokers forget the offsets of idle
groups (``offsets.retention.minutes``, by default a week). It is never younger than the marks of the last batch: while
it exists they exist, and once it is gone they may be gone. If partition numbers tell a replay, each partition gets a
mark before its first batch: one that has none soon after has lost it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trident_py.errors import FailedException, StateError, ZombieError
from trident_py.kafka.clients import Cluster, is_fenced
from trident_py.model.context import RunContext
from trident_py.state import BatchParticipant, Location, Remembered

from ..ledger.fence import newer_driver, store_behind_error
from ..ledger.partition_layout import Layout, check_whole
from .marks import DRIVER, Mark, MarkPlace
from .owner import NotePlace, Partitions, TopicOwner
from .producer import TransactionalProducer
from .topic_admin import check_there, id_of, reach, run_when_available

RENEWED = 600.0
FORGOTTEN = 86_400.0  # brokers keep an idle partition's mark for longer, unless configured to forget it sooner


class TopicLayout:
    """Handles a batch replayed under another layout, where partition numbers tell a replay. One object for each run.

    A partition number stands for the same records only if the number of partitions and the way are the same. So the
    driver's mark holds both (`states.ledger.partition_layout`), and a batch that a partition has written under another
    layout is not written again: its replay only counts. The batch was whole if the count equals that of the marks, or
    if every partition has a mark (a partition without tuples writes none). Otherwise the replay cannot tell which
    records are there, and the run ends with an error that says what to do.
    """

    def __init__(self, place: MarkPlace, settings: Mapping[str, Any], way: str) -> None:
        self._place = place
        self._settings = settings
        self._way = way
        self._txid = 0
        self._now = self._then = Layout(0)
        self._begun: list[Mark] = []

    def of_batch(self, txid: int, partitions: int, recorded: Layout) -> Layout:
        """Return the spread to record: the old one if a partition has written the batch under it, else the current
        one."""
        now = Layout(partitions, self._way)
        self._txid, self._now, self._then, self._begun = txid, now, recorded, []
        if now == recorded or recorded.partitions == 0:
            return now
        with Partitions(self._place, self._settings) as old:
            self._begun = [mark for mark in old.open(recorded.partitions) if mark.txid == txid]
        return recorded if self._begun else now

    def check(self, txid: int, receipts: Sequence[Any]) -> None:
        """Called after all partitions have counted. Raises StateError for a batch half written under another spread."""
        if txid == self._txid and self._begun:
            written = [mark.rows for mark in self._begun]
            check_whole(self._place.label, txid, self._then, self._now, written, receipts)


STAYS = "a topic keeps what was written to it"


class TopicLedger(BatchParticipant):
    """The driver's side of a fenced state; one object for each run.

    ``counted``: partition numbers tell a replay, so a batch must keep the spread with which it began. ``create``: the
    number of partitions of a missing topic. ``location``: the topic's.
    """

    stays = STAYS

    def __init__(
        self, cluster: Cluster, location: Location, settings: Mapping[str, Any], counted: bool,
        create: int | None = None,
    ) -> None:  # fmt: skip
        self._cluster = cluster
        (self._topic,) = location.names
        self._owner = TopicOwner(cluster, location, settings)
        self._settings = settings
        self._counted = counted
        self._create = create
        self._place: MarkPlace | None = None
        self._producer: TransactionalProducer | None = None
        self._admin: Any = None
        self._mark = Mark()
        self._layout: TopicLayout | None = None
        self._joins: tuple[int, bool, str] | None = None
        self._run = ""
        self._known: dict[int, int] = {}
        self._over = 0
        self._written = 0.0

    def find_owner(self, conf: dict) -> tuple[str, str] | None:
        """Read the topic's note."""
        reach(self._cluster)
        owner = NotePlace(self._cluster, self._topic, "", "").owner(settled=False)
        return None if owner is None else (owner.topology, owner.state)

    def remembered(self, conf: dict) -> Remembered:
        """Read the marks. Before `open`, transactions of an older driver may be open; this waits for them only if the
        checkpoint is ahead of the marks visible without them."""
        place = MarkPlace.of(self._cluster, self._topic, conf)
        reach(self._cluster)
        topic = id_of(place, self._cluster.admin())
        if not topic:
            return Remembered(f"topic {self._topic!r}")  # a deleted topic's marks go a moment later
        owner = self._owner.check(conf)
        marks = self._marks(place, topic, settled=self._place is not None)
        context = RunContext.of(conf)
        if marks.least < context.txid:
            marks = self._marks(place, topic, settled=True)
        marks = replace(marks, owner="" if owner is None else owner.name)
        if marks.lineage and marks.lineage == context.lineage:
            return marks
        return replace(marks, valued=self._in_values(marks))

    def _marks(self, place: MarkPlace, topic: str, settled: bool) -> Remembered:
        driver = place.read(DRIVER, settled) or Mark()
        where = f"topic {self._topic!r}"
        if driver.topic not in ("", topic):
            return Remembered(where)  # the mark of a deleted topic of that name
        marks = [place.read(part, settled) for part in range(driver.partitions)]
        written = max([driver.over, *(mark.txid for mark in marks if mark is not None)])
        whole = None
        if (lost := self._find_lost_mark(driver, marks)) is not None:
            where, whole = f"{where}, where the mark of partition {lost} is gone and its content is unknown,", 0
        return Remembered(
            where, driver.lineage, written, whole, max(written, driver.txid), run=driver.run,
            generation=driver.generation, attempt=driver.attempt,
        )  # fmt: skip

    def _find_lost_mark(self, driver: Mark, marks: Sequence[Mark | None]) -> int | None:
        """Return the first partition that has lost its mark, if the mark is too young for brokers to have forgotten
        it."""
        missing = [part for part, mark in enumerate(marks[: driver.marked]) if mark is None]
        return missing[0] if missing and time.time() - driver.since < FORGOTTEN else None

    def _in_values(self, marks: Remembered) -> int:
        """Return the highest txid among the values; 0 if values have no txid."""
        return 0

    def open(self, conf: dict) -> int:
        place = self._place = MarkPlace.of(self._cluster, self._topic, conf)
        self._admin = self._cluster.admin()
        self.close()
        generation = run_when_available(self._cluster, lambda: self._take_over(place, conf))
        context = RunContext.of(conf)
        self._joins = context.txid, context.forget, context.lineage
        self._run = context.token
        self._owner.register_owner(conf)
        return generation

    def _take_over(self, place: MarkPlace, conf: dict) -> int:
        check_there(place, self._admin, self._create)
        self._producer = TransactionalProducer(place, DRIVER, self._settings)
        self._producer.open()
        old, topic = place.read_after_open(DRIVER) or Mark(), id_of(place, self._admin)
        anew = old.topic not in ("", topic)
        if anew:
            old = old._replace(txid=0, over=0, lineage="")
        with Partitions(place, self._settings) as parts:
            parts.open(old.partitions)
            self._write_first(old._replace(generation=old.generation + 1, attempt=0, topic=topic))
            parts.settle(self._check_newest if anew else None)
            self._over = max(self._mark.over, parts.last)
            self._known = {part: mark.txid for part, mark in enumerate(parts.marks)}
        self._note_partitions(old.partitions)
        self._layout = TopicLayout(place, self._settings, Layout.of(0, conf).way) if self._counted else None
        return self._mark.generation

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        """Record the batch's spread before any partition writes, and shut out older attempts. Raises StateError if
        another state has become the owner of the topic, or if the brokers have gone back."""
        if attempt > 0:
            self._check_marks()
        joined = self._join(numPartitions)  # marks of another lineage tell nothing of this batch
        spread = Layout(numPartitions)
        if self._layout is not None:
            spread = self._layout.of_batch(txid, numPartitions, self._mark.spread)
        if self._counted and spread.partitions > self._mark.marked:
            with Partitions(self._opened_place, self._settings) as parts:
                parts.open(spread.partitions)
                parts.settle()
            self._note_partitions(spread.partitions)
        due = time.monotonic() - self._written > RENEWED
        if joined is not None or spread != self._mark.spread or attempt > 0 or due:
            mark = (joined or self._mark)._replace(partitions=spread.partitions, way=spread.way)
            mark = mark._replace(marked=self._mark.marked, since=self._mark.since)
            self._write(mark._replace(txid=txid, attempt=attempt, over=txid - 1))
        self._joins = None
        if attempt > 0:
            with Partitions(self._opened_place, self._settings) as parts:
                parts.shut_out(spread.partitions)  # ends the previous attempt's transactions: no reader waits for them

    def _note_partitions(self, partitions: int) -> None:
        """Note how many partitions have marks, and make the driver's mark, which records it, due."""
        if self._counted:
            self._mark = self._mark._replace(marked=partitions, since=int(time.time()))
            self._written = -RENEWED

    def _join(self, partitions: int = 0) -> Mark | None:
        """Called before the first batch of a run or the end of one that was decided. Claims the topic, and returns the
        driver's mark with this checkpoint, if it must record it. Marks of a lineage that is to be forgotten are reset,
        also those of ``partitions`` that the last batch did not have."""
        if self._joins is None:
            return None
        self._check_newest()
        self._owner.claim()
        over, forget, lineage = self._joins
        if (self._mark.lineage, self._mark.run) == (lineage, self._run) and self._over >= over:
            return None
        if forget and self._mark.lineage != lineage:
            self._write(self._mark._replace(over=self._over))  # a restart finds what this one has found
            with Partitions(self._opened_place, self._settings) as parts:
                parts.open(max(self._mark.partitions, partitions))
                parts.settle(self._check_newest)  # before the mark has the new lineage: a restart would skip it
        return self._mark._replace(lineage=lineage, run=self._run)

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Write a mark only for a batch without receipts: partitions have written theirs with their data. Raises
        StateError for a batch half written under another spread, or if the brokers have gone back."""
        if self._layout is not None:
            self._layout.check(txid, receipts)
        if not receipts and self._producer is not None:
            self._check_marks()
            self._write((self._join() or self._mark)._replace(over=txid))
            self._joins = None
            self._known = {}  # the driver's mark is behind theirs
        self._known |= {receipt["partition"]: txid for receipt in receipts if receipt["written"]}

    def _check_marks(self) -> None:
        """Raise StateError if marks are behind those that this driver knows to be written. Called after a failed
        attempt: a producer fails on brokers that have gone back, since they miss its last sequence number."""
        if self._joins is not None and self._joins[1]:
            return  # nothing of this run is known, and a mark that is forgotten may be behind the one before
        place = self._opened_place
        known: dict[int | str, int] = {DRIVER: self._mark.over, **self._known}  # type: ignore[dict-item]
        for part, txid in known.items():
            if self._read_last(place, part) >= txid or place.is_pending(part):
                continue
            if (has := self._read_last(place, part)) < txid:  # it may have been told meanwhile
                raise store_behind_error(place.label, has, txid)

    def _read_last(self, place: MarkPlace, part: int | str) -> int:
        mark = place.read(part, settled=False) or Mark()
        return mark.over if part == DRIVER else mark.txid

    def abort(self, txid: int, attempt: int) -> None:
        """Do nothing: the next attempt shuts this one out."""

    def close(self) -> None:
        """Close the driver's producer."""
        if self._producer is not None:
            self._producer.close()

    @property
    def _opened_place(self) -> MarkPlace:
        if self._place is None:
            raise StateError("call open() first: this ledger belongs to no run yet")
        return self._place

    def _write_first(self, mark: Mark) -> None:
        """Write the mark of a new generation. Of two drivers that open at once, the first is fenced here."""
        assert self._producer is not None
        try:
            self._producer.commit(mark)
        except FailedException as error:
            if not is_fenced(error.__cause__):
                raise
            raise ZombieError(
                f"{self._opened_place.label}: another driver was started at the same time and has taken over; nothing "
                "is written. Stop one of the two"
            ) from error
        self._mark, self._written = mark, time.monotonic()

    def _write(self, mark: Mark) -> None:
        """Write the driver's mark. Raises ZombieError if a newer driver has taken over, FailedException if the broker
        is away."""
        writer = self._producer
        assert writer is not None
        if not writer.is_open:
            self._check_newest()  # before `open`, so that an older driver does not shut out a newer one
            writer.open()
            self._check_newest()
        writer.commit(mark, self._owner.renewal())
        self._mark, self._written = mark, time.monotonic()

    def _check_newest(self) -> None:
        place = self._opened_place
        mark = place.read(DRIVER)
        if mark is not None and mark.generation > self._mark.generation:
            raise newer_driver(place.label, self._mark.generation, mark.generation)


class UnfencedLedger(BatchParticipant):
    """The driver's side of a TopicState; one object for each run. ``create``: the number of partitions of a missing
    topic."""

    stays = STAYS

    def __init__(self, cluster: Cluster, location: Location, create: int | None) -> None:
        self._cluster = cluster
        (self._topic,) = location.names
        self._create = create
        self._owner = TopicOwner(cluster, location, {}, fenced=False)
        self._written: float | None = None

    def remembered(self, conf: dict) -> Remembered | None:
        run_when_available(self._cluster, lambda: self._owner.check(conf))
        return None

    def open(self, conf: dict) -> int:
        place = MarkPlace.of(self._cluster, self._topic, conf)
        run_when_available(self._cluster, lambda: check_there(place, self._cluster.admin(), self._create))
        self._owner.register_owner(conf)
        return 0

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        if self._written is None:
            self._owner.claim()
        elif time.monotonic() - self._written > RENEWED:
            self._owner.renew()
        else:
            return
        self._written = time.monotonic()

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Do nothing: every partition has waited for its deliveries."""

    def abort(self, txid: int, attempt: int) -> None:
        """Do nothing: the replay writes again."""
