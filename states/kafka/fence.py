"""The check before a state partition writes: its driver is the newest, and its batch is not behind.

The marks are read for each `open` of the partition's producer, before and after `init_transactions`. A newer driver
shuts out the partitions' producers once more after it has written its mark (`Partitions.settle`). So a task of an older
driver either finds that mark here or is shut out when it commits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trident_py.errors import StateError, ZombieError
from trident_py.model.context import RunContext, attempt_of

from ..ledger.fence import gone_back
from .marks import DRIVER, Mark, MarkPlace
from .producer import TransactionalProducer


@dataclass(frozen=True)
class TopicFence:
    """The generation and lineage of the run that a partition writes for; generation 0 without a driver (unit tests)."""

    place: MarkPlace
    generation: int
    lineage: str
    context: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, place: MarkPlace, conf: dict) -> TopicFence:
        context = RunContext.of(conf)
        return cls(place, context.generation or 0, context.lineage, context.running)

    @property
    def attempt(self) -> int:
        """The attempt that this task runs for."""
        return attempt_of(self.context)

    def take_over(self, producer: TransactionalProducer, part: int, txid: int | None, own: Mark) -> tuple[Mark, Mark]:
        """Open the partition's producer for a batch; return the driver's mark and the partition's mark. ``own``: the
        mark that this object has written last.

        Raises what `check` and `partition_mark` raise, FailedException if the broker is away, and StateError if the
        brokers have gone back; the producer is closed then.
        """
        self.check(txid)  # before `open`, so that an older task does not shut out a newer one
        producer.open()
        try:
            driver, mark = self.check(txid), self.partition_mark(part, txid)
            if mark.txid < own.txid:
                raise gone_back(self.place.label, mark.txid, own.txid)
            return driver, mark
        except BaseException:
            producer.close()
            raise

    def check_own(self, part: int, own: Mark) -> None:
        """Called before each batch whose producer stays open. Raises StateError if the brokers have gone back: where
        they know no sequence number of the producer, they would take its records."""
        if own.txid and (mark := self.place.read(part) or Mark()).txid < own.txid:
            raise gone_back(self.place.label, mark.txid, own.txid)

    def check(self, txid: int | None) -> Mark:
        """Return the driver's mark. Raises ZombieError for an older driver, batch or attempt, StateError if the mark is
        gone or names another lineage."""
        if self.generation == 0:
            return Mark()
        mark, label = self.place.read(DRIVER), self.place.label
        if mark is None or mark.generation < self.generation:
            raise StateError(
                f"{label}: the mark of its driver is gone or older than this driver; the topic or its consumer groups "
                "were replaced while the topology ran. Start the topology again"
            )
        if mark.generation > self.generation:
            raise newer_driver(label, self.generation, mark.generation)
        if mark.lineage != self.lineage:
            raise StateError(
                f"{label}: the topic still belongs to another checkpoint (lineage {mark.lineage!r}): call the driver's "
                "prepare() before tasks run. Run the topology on a cluster of trident_py"
            )
        if txid is not None and txid < mark.txid:
            raise _behind(label, txid, mark.txid)
        if txid is not None and txid == mark.txid and self.attempt < mark.attempt:
            raise ZombieError(
                f"{label}: attempt {self.attempt} of batch {txid} was given up, attempt {mark.attempt} has taken over; "
                "nothing of the older one is written"
            )
        return mark

    def partition_mark(self, part: int, txid: int | None) -> Mark:
        """Return the partition's mark; called after `open`. If its txid equals ``txid``, the partition has written its
        part of the batch.

        Raises ZombieError for an older driver or batch, StateError if another checkpoint has written this batch.
        """
        mark, label = self.place.read(part) or Mark(), self.place.label
        if mark.generation > self.generation > 0:
            raise newer_driver(label, self.generation, mark.generation)
        if txid is None or mark.txid < txid:
            return mark
        if mark.txid > txid:
            raise _behind(label, txid, mark.txid)
        if mark.lineage != self.lineage:
            raise StateError(
                f"{label}: partition {part} has written batch {txid} for another checkpoint (lineage "
                f"{mark.lineage!r}), which was still running when this one began. Stop that driver, and start this one "
                "again; the start then lists your options"
            )
        return mark

    def mark(self, last: Mark, txid: int | None, partitions: int, rows: int = 0) -> Mark:
        """Return the mark that a partition writes with its data; without a txid it keeps the batch of its ``last``
        mark."""
        if txid is None:
            txid, rows = last.txid, last.rows
        return Mark(txid, self.generation, self.lineage, self.attempt, partitions, rows)


def newer_driver(label: str, generation: int, newer: int) -> ZombieError:
    return ZombieError(
        f"{label}: this driver has generation {generation}, but a newer one with generation {newer} has taken over; "
        "nothing more is written. Stop this driver"
    )


def _behind(label: str, txid: int, last: int) -> ZombieError:
    return ZombieError(
        f"{label}: batch {txid} is behind batch {last} of the store; nothing of it is written. It belongs to an older "
        "driver or task: if one still runs, stop it. If none does, start the topology again; the start then reports "
        "how checkpoint and topic differ"
    )
