"""What a run with ``topology.profile`` tells of its phases, batch by batch, and the medians of them."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ...engine.phases import BatchPhases, Phase
from ...report.progress import RunningTopology
from .phases import PHASES

ORDER = {name: number for number, name in enumerate(PHASES)}


class PhaseShare(NamedTuple):
    """A phase: the median of its seconds over the batches, and that median's share of the whole batch's."""

    phase: str
    of: str
    seconds: float
    share: float


@dataclass(frozen=True)
class Profile:
    """Where the time of a component's batches went."""

    component: str
    batches: list[BatchPhases]

    @cached_property
    def whole(self) -> float:
        """The median of whole batches, in seconds."""
        return statistics.median(batch.whole for batch in self.batches) if self.batches else 0.0

    def rows(self) -> list[PhaseShare]:
        """Return the phases in the order of a batch. A batch without a phase counts as one in which it took no time."""
        names = {name for batch in self.batches for name in batch.seconds}
        return [self._row(name) for name in sorted(names, key=lambda name: (ORDER[name[0]], name[1]))]

    def _row(self, name: Phase) -> PhaseShare:
        seconds = statistics.median(batch.seconds.get(name, 0.0) for batch in self.batches)
        return PhaseShare(*name, seconds, seconds / self.whole if self.whole else 0.0)


def batches_seen(running: RunningTopology) -> int:
    """Return how many batches the component has committed that has committed the most. At most `KEPT`."""
    return max((len(progress.profiled) for progress in running.progress.values()), default=0)


def profiles(running: RunningTopology, batches: int, warm_up: int) -> list[Profile]:
    """Return so many batches of each component, without the first ones; of a shorter run without the first half. Called
    after the run has ended, before its cluster does."""
    found = []
    for component, progress in running.progress.items():
        kept = list(progress.profiled)
        first = min(warm_up, len(kept) // 2)
        found.append(Profile(component, running.phases_of(component, kept[first : first + batches])))
    return found
