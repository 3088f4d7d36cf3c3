"""The fence of one run: which driver, batch and attempt may write a state. The same rule for every store that keeps a
ledger row beside the data; each store reads its row in its own way, inside the step that writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

from trident_py.context import RunContext, attempt_of
from trident_py.errors import StateError, ZombieError


class FenceRow(NamedTuple):
    """The ledger's row of a state. ``txid``: the last complete batch. ``started`` and ``attempt``: the latest attempt
    that the driver has let in."""

    generation: int
    lineage: str
    txid: int
    started: int
    attempt: int

    @property
    def last(self) -> int:
        return max(self.txid, self.started)


@dataclass(frozen=True)
class Fence:
    """What a partition must find in the ledger before it writes."""

    topology: str
    state: str
    generation: int
    lineage: str
    context: Any = field(default=None, compare=False, repr=False)
    run: str = field(default="", compare=False, repr=False)

    noted: ClassVar[str] = "row in the ledger"

    @classmethod
    def of(cls, conf: dict) -> Self | None:
        """The fence of a run; None if no cluster runs the state (a unit test's makeState)."""
        run = RunContext.of(conf)
        if run.generation is None:
            return None
        return cls(run.topology, run.state, run.generation, run.lineage, run.running, run.run)

    @property
    def own(self) -> tuple[str, str]:
        return self.topology, self.state

    @property
    def shown(self) -> str:
        """The state, for an error."""
        return f"state {self.state!r} of topology {self.topology!r}"

    @property
    def attempt(self) -> int:
        """The attempt that this task runs for."""
        return attempt_of(self.context)

    def newest(self, row: FenceRow | None) -> FenceRow:
        """The row, if this driver is the newest. Raises ZombieError if a newer driver has taken over, StateError if the
        row is gone."""
        if row is None or row.generation < self.generation:
            raise StateError(
                f"{self.shown}: its {self.noted} is gone or older than this driver; the store was replaced "
                "while the topology ran. Start the topology again"
            )
        if row.generation > self.generation:
            raise ZombieError(
                f"{self.shown}: this driver has generation {self.generation}, but a newer one with generation "
                f"{row.generation} has taken over; nothing more is written. Stop this driver"
            )
        return row

    def admits(self, row: FenceRow | None, txid: int | None) -> FenceRow:
        """The row, if this task may write batch ``txid``. Raises ZombieError for an older driver, batch or attempt, and
        StateError for another lineage."""
        row = self.newest(row)
        if row.lineage != self.lineage:
            raise StateError(
                f"{self.shown}: the store still belongs to another checkpoint (lineage {row.lineage!r}): the driver "
                "has not called prepare() yet. Run the topology on a cluster of trident_py"
            )
        if txid is not None and txid < row.last:
            raise ZombieError(
                f"{self.shown}: batch {txid} is behind batch {row.last} of the store; nothing of it is written. It "
                "comes from an older driver or task: if one still runs, stop it. If none does, start the topology "
                "again: the start reports how checkpoint and store differ"
            )
        if txid is not None and txid == row.started and self.attempt < row.attempt:
            raise ZombieError(
                f"{self.shown}: attempt {self.attempt} of batch {txid} was given up, attempt {row.attempt} has taken "
                "over; nothing of the older one is written"
            )
        return row
