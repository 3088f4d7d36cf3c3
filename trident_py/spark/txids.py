"""The equation: which txids a micro-batch of Spark runs (docs/txids.md)."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..config import Config
from ..engine.attempts import Execute
from ..engine.component import ComponentRun
from ..engine.phases import profile
from ..engine.store_position import BASE
from ..errors import LineageError

FOLLOW_MILLIS = 60_000
READY_WAIT = 0.05  # seconds that a run with availableNow waits for a spout to be ready
PENDING_WAIT = 5.0  # and while a spout expects tuples
IDLE_WAIT = 0.2  # between two questions to the sources of Spark that a mixed component has


def follow_seconds(conf: Mapping[str, Any]) -> float:
    """Return how long a turn of the clock runs batches. A profile measures each batch with Spark's work around it."""
    given = conf.get(Config.TOPOLOGY_INLINE_FOLLOW_MILLIS)
    return 0.0 if profile(conf) else (FOLLOW_MILLIS if given is None else given) / 1000


class MicroBatch(NamedTuple):
    """A call of foreachBatch. ``query``: Spark's id of the query, which its checkpoint keeps; ``number``: the batch id;
    ``sources``: the offsets at which sources of Spark begin and end, as text."""

    query: str
    number: int
    begins: list[str] | None = None
    ends: list[str] | None = None

    @property
    def has_moved(self) -> bool:
        """Whether sources of Spark have read on. There may be no rows in it all the same."""
        return self.ends != (self.begins or [""] * len(self.ends or ()))

    def to_json(self) -> dict[str, Any]:
        """Return what the log keeps of it."""
        return {"query": self.query, "number": self.number, **({} if self.ends is None else {"ends": self.ends})}


class Txids:
    """The txids of one component, for its calls of foreachBatch. ``mixed``: whether it has Python spouts beside its
    SparkSpouts. ``finished`` is set when no further call is of use."""

    def __init__(self, run: ComponentRun, available_now: bool, mixed: bool, finished: threading.Event) -> None:
        self._run = run
        self._seconds = follow_seconds(run.program.conf)
        self._available_now = available_now
        self._mixed = mixed
        self._finished = finished

    def run_turn(self, micro_batch: MicroBatch, execute: Execute) -> None:
        """Run the batches of one turn of the clock."""
        self._run.log.enter(micro_batch.to_json())
        ends = time.monotonic() + self._seconds
        while self._awaits(ends if self._seconds else None):
            self._run.run_next(execute)
            if time.monotonic() >= ends:
                return

    def _awaits(self, ends: float | None) -> bool:
        """Return whether there is another batch in this turn. Without a time, waits for it."""
        now = time.monotonic()
        if self._available_now:
            found = self._run.await_next(now + READY_WAIT, now + PENDING_WAIT)
        else:
            found = self._run.await_next(ends)
        if self._run.is_over or (self._available_now and not found):
            self._finished.set()
        return found

    def run_rows(self, micro_batch: MicroBatch, execute: Execute) -> None:
        """Run the txid of a micro-batch of sources of Spark, unless it is committed."""
        if self._is_over(micro_batch):
            return
        self._run.log.enter(micro_batch.to_json())
        begun, now = self._run.log.find_begun(self._run.txid + 1) is not None, time.monotonic()
        pending = now + PENDING_WAIT if self._available_now else 0.0
        of_spark = not self._mixed or micro_batch.has_moved
        if begun or of_spark or self._run.await_next(now + IDLE_WAIT, pending):
            self._run.run_next(execute)
        elif self._available_now:
            self._finished.set()
        else:
            self._run.running.stopping.wait(now + IDLE_WAIT - time.monotonic())

    def _is_over(self, micro_batch: MicroBatch) -> bool:
        """Return whether the log has the txid of this micro-batch as over. Raises LineageError if Spark's checkpoint
        does not belong to the log: one of them was lost, or restored from a copy."""
        last, begun = self._run.log.last(), self._run.log.find_begun(self._run.txid + 1)
        known = begun or last
        kept, number = (known and known.micro_batch) or {}, micro_batch.number
        if known is None or "ends" not in kept:  # no source of Spark had a part in it
            if any(micro_batch.begins or ()):
                raise self._refuse(micro_batch, "the log has no micro-batch")
            return False
        if kept["query"] != micro_batch.query:
            raise self._refuse(micro_batch, f"the log has batch {known.txid} in another query")
        if number == kept["number"] and micro_batch.ends == kept["ends"]:
            return begun is None
        if begun is not None or number <= kept["number"] or micro_batch.begins != kept["ends"]:
            raise self._refuse(micro_batch, f"the log has batch {known.txid} in micro-batch {kept['number']}")
        return False

    def _refuse(self, micro_batch: MicroBatch, reason: str) -> LineageError:
        return LineageError(
            f"the checkpoint {self._run.log.where} and Spark's, in its folder 'spark', do not belong together: "
            f"{reason}, and Spark goes on with micro-batch {micro_batch.number}, or with other rows. Restore both from "
            f"one copy, or move both away: the next start names the {BASE} with which a new one continues. No tuple "
            "was emitted"
        )
