"""The check before a state partition writes: its driver is the newest, and its batch is not behind.

The marks are read for each `open` of the partition's producer, before and after `init_transactions`. A newer driver
shuts out the partitions' producers once more after it has written its mark (`Partitions.settle`). So a task of an older
driver either finds that mark here or is shut out when it commits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from trident_py.errors import StateError
from trident_py.model.context import RunContext

from ..ledger.fence import Fence, store_behind_error
from .marks import DRIVER, Mark, MarkPlace
from .producer import TransactionalProducer


@dataclass(frozen=True)
class TopicFence(Fence):
    """The fence of the run that a partition writes for; generation 0 without a driver (unit tests)."""

    place: MarkPlace = field(kw_only=True)

    gone: ClassVar[str] = (
        "the mark of its driver is gone or older than this driver; the topic or its consumer groups were replaced"
    )
    foreign: ClassVar[str] = (
        "the topic still belongs to another checkpoint (lineage {}): call the driver's prepare() before tasks run"
    )
    behind: ClassVar[str] = (
        "It belongs to an older driver or task: if one still runs, stop it. If none does, start the topology again; "
        "the start then reports how checkpoint and topic differ"
    )

    @classmethod
    def at(cls, place: MarkPlace, conf: dict) -> TopicFence:
        context = RunContext.of(conf)
        own = place.topology, place.state, context.generation or 0, context.lineage, context.running
        return cls(*own, place=place)

    @property
    def shown(self) -> str:
        return self.place.label

    def follows(self, row: Any, txid: int) -> Any:
        """Do nothing: the marks of the partitions tell whether the topic has gone back."""
        return row

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
                raise store_behind_error(self.shown, mark.txid, own.txid)
            return driver, mark
        except BaseException:
            producer.close()
            raise

    def check(self, txid: int | None) -> Mark:
        """Return the driver's mark. Raises ZombieError for an older driver, batch or attempt, StateError if the mark is
        gone or names another lineage."""
        if self.generation == 0:
            return Mark()
        mark = self.place.read(DRIVER)
        self.admits(None if mark is None else mark.row, txid)
        return mark or Mark()

    def partition_mark(self, part: int, txid: int | None) -> Mark:
        """Return the partition's mark; called after `open`. If its txid equals ``txid``, the partition has written its
        part of the batch.

        Raises ZombieError for an older driver or batch, StateError if another checkpoint has written this batch.
        """
        mark = self.place.read_after_open(part) or Mark()
        if mark.generation > self.generation:
            self.check(txid)  # without a newer driver the driver's mark was lost, and generations count anew
        if txid is None or mark.txid < txid:
            return mark
        if mark.txid > txid:
            raise self.late(txid, mark.txid)
        if mark.lineage != self.lineage:
            raise StateError(
                f"{self.shown}: partition {part} has written batch {txid} for another checkpoint (lineage "
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
