"""The fence of one run: which driver, batch and attempt may write a state, and whether the store is still the one that
this driver has written. The same rule for every store that keeps a ledger row beside the data; each store reads its row
in its own way, inside the step that writes."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self, TypeVar

from trident_py.errors import LostCommits, StateError, ZombieError
from trident_py.model.context import RunContext, attempt_of

NO_ATTEMPT = -1
"""Of a row: this driver has let in no attempt yet. Of a mark: its attempt was given up."""


@dataclass(frozen=True)
class LedgerRow:
    """What a ledger records of a state. ``txid``: the last complete batch. ``started`` and ``attempt``: the latest
    attempt that the driver has let in. ``run``: the token of the run that wrote last."""

    generation: int = 0
    lineage: str = ""
    txid: int = 0
    started: int = 0
    attempt: int = 0
    run: str = ""

    @property
    def last(self) -> int:
        """The highest txid that is complete or begun."""
        return max(self.txid, self.started)

    def evolve(self, **changes: Any) -> Self:
        """Return the row that follows this one."""
        return replace(self, **changes)


FIELDS = tuple(each.name for each in fields(LedgerRow))
"""What stores keep of a row, in its order. A subclass may have more."""
Row = TypeVar("Row", bound=LedgerRow)


@dataclass(frozen=True)
class Fence:
    """What a partition must find in the ledger before it writes."""

    topology: str
    state: str
    generation: int
    lineage: str
    context: Any = field(default=None, compare=False, repr=False)
    run: str = field(default="", compare=False, repr=False)

    gone: ClassVar[str] = "its row in the ledger is gone or older than this driver; the store was replaced"
    foreign: ClassVar[str] = (
        "the store still belongs to another checkpoint (lineage {}): the driver has not called prepare() yet"
    )
    behind: ClassVar[str] = (
        "It comes from an older driver or task: if one still runs, stop it. If none does, start the topology again: "
        "the start reports how checkpoint and store differ"
    )
    """What errors say, and where a kind of store has its own words."""

    @classmethod
    def of(cls, conf: dict) -> Self | None:
        """Return the fence of a run; None if no cluster runs the state (a unit test's makeState)."""
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

    @property
    def token(self) -> str:
        """The run, as the ledger notes it."""
        return RunContext(run=self.run).token

    def newest(self, row: Row | None) -> Row:
        """Return the row, if this driver is the newest. Raises ZombieError if a newer driver has taken over, StateError
        if the row is gone."""
        if row is None or row.generation < self.generation:
            raise StateError(f"{self.shown}: {self.gone} while the topology ran. Start the topology again")
        if row.generation > self.generation:
            raise newer_driver(self.shown, self.generation, row.generation)
        return row

    def follows(self, row: Row | None, txid: int) -> Row:
        """Return the row, if the store has every batch before ``txid``. Raises StateError if it has gone back, and what
        `newest` raises."""
        row = self.newest(row)
        if row.txid < txid - 1:
            raise store_behind_error(self.shown, row.txid, txid - 1)
        return row

    def admits(self, row: Row | None, txid: int | None, attempt: int | None = None) -> Row:
        """Return the row, if this task, or this ``attempt``, may write batch ``txid``. Raises ZombieError for an older
        driver, batch or attempt, and StateError for another lineage, or if the store has gone back."""
        row = self.newest(row)
        if row.lineage != self.lineage:
            raise StateError(
                f"{self.shown}: {self.foreign.format(repr(row.lineage))}. Run the topology on a cluster of trident_py"
            )
        if txid is None:
            return row
        if txid < row.last:
            raise self.late(txid, row.last)
        of_task, attempt = attempt is None, self.attempt if attempt is None else attempt
        if txid == row.started and attempt < row.attempt:
            raise ZombieError(
                f"{self.shown}: attempt {attempt} of batch {txid} was given up, attempt {row.attempt} has taken "
                "over; nothing of the older one is written"
            )
        row = self.follows(row, txid)
        if of_task and row.txid < txid:
            self._check_begun(row, txid, attempt)
        return row

    def _check_begun(self, row: Row, txid: int, attempt: int) -> None:
        """Raise StateError for a task of a further attempt that the store does not know: each of those is recorded
        before its tasks, so the store has gone back since, and what the task has read there is gone."""
        if attempt > 0 and (row.started, row.attempt) != (txid, attempt):
            raise _older_copy_error(
                self.shown, f"it does not know attempt {attempt} of batch {txid}, which this driver has begun"
            )

    def late(self, txid: int, last: int) -> ZombieError:
        """Return the error for a batch behind the store's."""
        behind = f"batch {txid} is behind batch {last} of the store; nothing of it is written"
        return ZombieError(f"{self.shown}: {behind}. {self.behind}")


def newer_driver(shown: str, generation: int, newer: int) -> ZombieError:
    """Return the error for a driver that another one has replaced."""
    return ZombieError(
        f"{shown}: this driver has generation {generation}, but a newer one with generation {newer} has taken over; "
        "nothing more is written. Stop this driver: a start, or `trident txid fence`, has shut it out"
    )


def store_behind_error(shown: str, has: int, complete: int) -> StateError:
    """Return the error for a store that lacks batches which this driver has completed there."""
    return _older_copy_error(shown, f"its last complete batch is {has}, and this driver has completed batch {complete}")


def _older_copy_error(shown: str, told_by: str) -> StateError:
    return StateError(
        f"{shown}: the store has gone back while the topology ran: {told_by}. A replica that lagged has taken over, a "
        "backup was restored, or a crash has cost the server its last writes. Nothing more is written. Restore the "
        "newer store, and start the topology again: the start then lists your options"
    )


def commit_loss_error(shown: str, txid: int, receipts: int) -> LostCommits:
    """Return the error for a store that has lost what tasks have committed of the batch that is to become complete."""
    return LostCommits(
        f"{shown}: {receipts} partitions have committed batch {txid}, but the store does not have the marks of all of "
        "them: a replica that lagged has taken over, or the server has lost its last writes"
    )
