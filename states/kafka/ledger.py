"""The driver's side of a Kafka state in one run (a BatchParticipant): fences, and remembers the layout.

`open` takes over the driver's transactional id, commits its own mark with a higher generation, and shuts out every
partition of the driver before; of two drivers that open at once one is fenced. No mark is moved in an ordinary batch:
the partitions' own marks tell a replay. The driver's mark is written again every `RENEWED` seconds, because brokers
forget the offsets of idle groups (``offsets.retention.minutes``, a week unless set otherwise). So it is never younger
than the marks of the last batch: where it is gone, theirs may be, and where it is there, theirs are.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from trident_py.errors import FailedException, StateError, ZombieError
from trident_py.kafka.clients import Cluster, is_fenced

from ..lineage import Remembered, begins_anew
from ..spread import Spread
from .fence import newer_driver
from .layout import Layout
from .marks import DRIVER, Mark, Place
from .partitions import Partitions
from .topics import check_old, check_there, opened, patiently, reach
from .transactions import TransactionalProducer

RENEWED = 600.0


class TopicLedger:
    """One object for each run. ``counted``: a replay is told by the number of the partition, so the batch must
    be spread as it was begun. ``create``: a missing topic gets so many partitions.
    ``elsewhere``: records may go to other topics."""

    def __init__(
        self, cluster: Cluster, topic: str, settings: Mapping[str, Any], counted: bool, create: int | None = None,
        elsewhere: bool = False,
    ) -> None:  # fmt: skip
        self._cluster = cluster
        self._topic = topic
        self._settings = settings
        self._counted = counted
        self._valued = not counted  # whether the values carry txids
        self._create = create
        self._elsewhere = elsewhere
        self._place: Place | None = None
        self._producer: TransactionalProducer | None = None
        self._admin: Any = None
        self._mark = Mark()
        self._layout: Layout | None = None
        self._unknown: dict | None = None
        self._written = 0.0

    def open(self, conf: dict) -> int:
        """Raises the generation and returns it; waits for brokers that are busy. Raises LineageError if another
        checkpoint wrote the topic."""
        place = self._place = Place.of(self._cluster, self._topic, conf)
        self._admin = self._cluster.admin()
        return opened(self._cluster, lambda: self._take_over(place, conf))

    def _take_over(self, place: Place, conf: dict) -> int:
        check_there(place, self._admin, self._create)
        self._producer = TransactionalProducer(place, DRIVER, self._settings)
        self._producer.open()
        found = place.read(DRIVER)
        self._unknown = conf if found is None or found.partitions == 0 else None  # nothing was ever prepared
        with Partitions(place, self._settings) as parts:
            parts.open(0 if found is None else found.partitions)
            anew = self._begins_anew(conf, found or Mark(), parts.last)
            if anew:
                parts.settle(anew)  # first: nobody asks for it again once the mark has the new lineage
            old = found or Mark()
            lineage = conf.get("trident.lineage") or ""
            self._write_first(Mark(0, old.generation + 1, lineage, 0, old.partitions, way=old.way))
            parts.settle(anew)
        self._layout = Layout(place, self._settings, Spread.of(0, conf).way) if self._counted else None
        return self._mark.generation

    def last_txid(self, conf: dict) -> int:
        """The highest txid that a partition has written, 0 if none: the base to go on from."""
        place = Place.of(self._cluster, self._topic, conf)
        reach(self._cluster)
        found = place.read(DRIVER)
        marks = [place.read(part) for part in range(0 if found is None else found.partitions)]
        return max((mark.txid for mark in marks if mark is not None), default=0)

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        """Records how the batch is spread before anything of it is written; shuts out older attempts."""
        if self._unknown is not None:
            conf = self._unknown
            patiently(lambda: self._check_first(conf, txid))
            self._unknown = None
        spread = Spread(numPartitions)
        if self._layout is not None:
            spread = self._layout.of_batch(txid, numPartitions, self._mark.spread)
        due = time.monotonic() - self._written > RENEWED
        if spread != self._mark.spread or attempt > 0 or due:
            self._write(self._mark._replace(txid=txid, attempt=attempt, partitions=spread.partitions, way=spread.way))
        if attempt > 0:
            with Partitions(self._known_place, self._settings) as parts:
                parts.shut_out(spread.partitions)  # what the attempt before has open is ended; nobody waits for it

    def _check_first(self, conf: dict, txid: int) -> None:
        """Before the first batch of a state without marks. Raises StateError if they may have been forgotten."""
        check_old(self._known_place, self._admin, conf, txid, self._elsewhere)

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Each partition has written its mark with its data. Raises StateError for a batch half written by others."""
        if self._layout is not None:
            self._layout.check(txid, receipts)

    def abort(self, txid: int, attempt: int) -> None:
        """Nothing: the next attempt shuts this one out."""

    def close(self) -> None:
        """Forgets the driver's producer."""
        if self._producer is not None:
            self._producer.close()

    @property
    def _known_place(self) -> Place:
        if self._place is None:
            raise StateError("the ledger does not know its run: open comes first")
        return self._place

    def _begins_anew(self, conf: dict, found: Mark, last: int) -> bool:
        if last == 0 or found.lineage == (conf.get("trident.lineage") or ""):
            return False
        place = self._known_place
        where = f"topic {self._topic!r}"
        valued = last if self._valued else 0
        return begins_anew(conf, Remembered(place.topology, place.state, where, found.lineage, last, valued))

    def _write_first(self, mark: Mark) -> None:
        """Of two drivers that open at once the first is fenced here."""
        assert self._producer is not None
        try:
            self._producer.commit(mark)
        except FailedException as error:
            if error.__cause__ is None or not is_fenced(error.__cause__):
                raise
            raise ZombieError(
                f"{self._known_place.who}: another driver was started at the same time and has taken over; nothing is "
                "written. Stop one of the two"
            ) from error
        self._mark, self._written = mark, time.monotonic()

    def _write(self, mark: Mark) -> None:
        """Raises ZombieError if a newer driver has taken over, FailedException if the broker is away."""
        if self._producer is None:
            raise StateError("the ledger does not know its run: open comes first")
        if not self._producer.is_open:
            self._check_newest()  # an older driver must not even disturb
            self._producer.open()
            self._check_newest()
        self._producer.commit(mark)
        self._mark, self._written = mark, time.monotonic()

    def _check_newest(self) -> None:
        found = self._known_place.read(DRIVER)
        if found is not None and found.generation > self._mark.generation:
            raise newer_driver(self._known_place.who, self._mark.generation, found.generation)
