"""The absence of a spout's cluster: reported, waited for up to a limit at a start, and without a limit in a run.

At a start a wrong address or password is the likelier cause, and a person is watching; the limit is that of all stores
(`trident_py.patience`). In a run there are no batches until the cluster is back.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ..errors import FailedException, SpoutError, TridentError
from ..patience import START_WAIT, back_off_seconds

SILENT = 5.0  # seconds; in a run, shorter absences are not reported
AGAIN = 60.0


class Absence:
    """Tracks whether one spout's cluster answers, in one run. Driver only."""

    def __init__(self, who: str, limit: float, tell: Callable[[TridentError], object]) -> None:
        self._who = who
        self._limit = limit
        self._tell = tell
        self._met = False  # the cluster has answered in this run
        self._begun: float | None = None
        self._told = 0
        self._next = 0.0

    def answered(self) -> None:
        if self._told and self._met:
            self._tell(SpoutError(f"{self._who}: Kafka answers again"))
        self._met, self._begun, self._told = True, None, 0

    def silent(self, error: FailedException) -> SpoutError | None:
        """Records a failed contact. Returns the error that ends the run: at a start, when the limit is over."""
        now = time.monotonic()
        if self._begun is None:
            self._begun, self._next = now, now + (SILENT if self._met else 0.0)
        left = self._begun + self._limit - now
        if not self._met and left <= 0:
            return SpoutError(
                f"{self._who}: Kafka is away: {error}. The start waited {self._limit:g} s for it ({START_WAIT}). Put "
                "it right, or let the topology wait longer. No batch was begun"
            )
        if now >= self._next:
            self._told += 1
            self._next = now + (AGAIN if self._met else back_off_seconds(self._told + 4))
            until = "until it answers there are no batches" if self._met else f"up to {left:.0f} s more ({START_WAIT})"
            self._tell(SpoutError(f"{self._who}: waiting for Kafka, {until}: {error}"))
        return None
