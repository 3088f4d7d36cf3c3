"""The driver's side of a state: the one state machine of all stores that keep a ledger.

The row says which driver may write (``generation``), for which checkpoint (``lineage``), which batch is complete
(``txid``) and which attempt was let in last (``started``, ``attempt``). Every change is computed from the row by a rule
and made only if the row is still the same, so whoever comes later applies the rule to the newer row. A change whose
answer was lost is therefore made once. docs/protocol.md has the rules in words and as a picture.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Generic

from trident_py.errors import FailedException, StateError
from trident_py.model.context import RunContext, with_context
from trident_py.state import BatchParticipant, Location, Remembered

from .fence import NO_ATTEMPT, Fence, LedgerRow, Row, commit_loss_error
from .owner import Tenure
from .store import LedgerStore, Transition

_TRIES = 20
Rule = Callable[[Any], Any]


class Ledger(BatchParticipant, Generic[Row]):
    """The driver's side of one state; one object for each run. A subclass says where the ledger is (`_store_of`).

    ``valued`` returns the highest txid among the values.
    ``records_each_attempt``: whether every attempt is recorded, not only the first one of a run and further ones of a
    batch: then an end shuts nothing out, as the next attempt does. ``ending``: what an error says of `publish`.
    """

    keeps_receipts = True
    records_each_attempt: ClassVar[bool] = False
    ending: ClassVar[str] = "end the batch in the ledger"
    row_type: Callable[[], Row]

    def __init__(self, location: Location, valued: Callable[[], int] = lambda: 0) -> None:
        self.location = location
        self._valued = valued
        self._store: LedgerStore[Row]
        self._known: Row | None = None
        self._fence: Fence | None = None
        self._repeated = False  # the last batch was complete already, so its end shut out none of its tasks
        self._joins: tuple[int, bool] | None = None
        self._tenure: Tenure | None = None

    @abstractmethod
    def _store_of(self, context: RunContext, ready: bool) -> LedgerStore[Row]:
        """Return the state's ledger. ``ready``: after missing tables are created."""

    @abstractmethod
    def _fence_of(self, conf: dict) -> Fence | None:
        """Return the fence of this run, as its tasks get it."""

    @property
    def fence(self) -> Fence:
        if self._fence is None:
            raise StateError("the ledger does not know its run: call open() first")
        return self._fence

    def remembered(self, conf: dict) -> Remembered:
        """Read the ledger, and the txids of the values unless the ledger is this checkpoint's. Raises StateError if
        another state owns the place."""
        context, tenure = RunContext.of(conf), Tenure.of(self.location, conf)
        store = self._store_of(context, ready=False)
        owners = list(store.owners().values())
        for owner in owners:
            tenure.stays(owner)
        trace = store.trace()
        known = trace.row or LedgerRow()
        lineage = known.lineage
        return Remembered(
            self.location.shown,
            lineage,
            written=self._last_written(trace),
            whole=known.txid,
            last=trace.last,
            valued=0 if lineage and lineage == context.lineage else self._valued(),
            run=known.run,
            generation=known.generation,
            attempt=known.attempt,
            owner=next((owner.name for owner in owners if owner is not None), ""),
        )

    def find_owner(self, conf: dict) -> tuple[str, str] | None:
        """Read who owns the place."""
        owners = self._store_of(RunContext.of(conf), ready=False).owners().values()
        return next(((owner.topology, owner.state) for owner in owners if owner is not None), None)

    def open(self, conf: dict) -> int:
        """Take over: raise the generation and return it."""
        context = RunContext.of(conf)
        self._store, self._known = self._store_of(context, ready=True), None
        generation = self._change(self._take_over, Transition("open the ledger")).generation
        self._fence = self._fence_of(with_context(conf, generation=generation))
        self._joins = context.txid, context.forget
        self._tenure = Tenure.of(self.location, conf)
        return generation

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        """Called on the driver before each attempt; shuts out earlier ones. Raises ZombieError for an older driver or
        batch, StateError if the store has gone back."""
        if self._fence is None:
            return
        # Marks of an older driver may have the same attempt, and tasks of a batch that was complete already run on.
        first = self._joins is not None or self._repeated
        self._join()
        if first or attempt > 0:
            transition = Transition("begin the batch in the ledger", begins=True)
            self._change(partial(self._begin, txid=txid, attempt=attempt), transition, txid - 1)
            self._repeated = False

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Move the last complete txid. Raises ZombieError if a newer driver has taken over, LostCommits if the store
        lacks what partitions have committed; the batch is then replayed."""
        if self._fence is None:
            return
        self._join()
        self._repeated = True  # until it is known: a batch whose end is refused runs again
        transition = Transition(self.ending, attempt=attempt, receipts=receipts)
        row = self._change(partial(self._complete, txid=txid, attempt=attempt), transition, txid - 1)
        self._repeated = (row.started, row.attempt) <= (txid, attempt)

    def rewind(self, txid: int) -> None:
        """Undo the batches after this one, in one step."""
        transition = Transition(f"go back to batch {txid}", forgets=True, back=txid)
        self._change(partial(self._go_back, txid=txid), transition)

    def give_up(self, txid: int) -> bool:
        """Shut out an end of this batch that is still under way. Return False if the batch is complete. Raises
        ZombieError for an older driver."""
        transition = Transition("give up the batch", begins=True)
        return bool(self._change(partial(self._give_up, txid=txid), transition).txid < txid)

    def newest(self) -> Row:
        """Return the row. Raises ZombieError for an older driver."""
        return self.fence.newest(self._store.read())

    def change(self, rule: Rule) -> Row:
        """Change the row by a rule of the state's own, and return it."""
        return self._change(rule, Transition("change the ledger"))

    def abort(self, txid: int, attempt: int) -> None:
        """Do nothing: the replay repairs what a failed attempt has committed."""

    # -- the rules: each returns what follows a row. An equal row is no request, so each request changes the row, and
    # one that arrives twice, or late, finds another row and changes nothing.

    def _take_over(self, row: Row | None) -> Row:
        old = self.row_type() if row is None else row
        return old.evolve(generation=old.generation + 1, attempt=NO_ATTEMPT)

    def _hand_over(self, row: Row | None) -> Row:
        """Hand the ledger to this checkpoint, which has committed ``txid``. ``forget``: the batches of another one no
        longer count."""
        row, txid = self.fence.newest(row), self._joining[0]
        forgets, ours = self._forgets(row), (row.lineage, row.run) == (self.fence.lineage, self.fence.token)
        if ours and row.txid >= txid and not forgets:
            return row
        over, started = (txid, 0) if forgets else (max(row.txid, txid), row.started)
        return row.evolve(lineage=self.fence.lineage, txid=over, started=started, run=self.fence.token)

    def _begin(self, row: Row | None, txid: int, attempt: int) -> Row:
        return self.fence.admits(row, txid, attempt).evolve(started=txid, attempt=attempt)

    def _complete(self, row: Row | None, txid: int, attempt: int) -> Row:
        """Move the last complete txid. Where the first attempt of the next batch is not recorded, shut out what still
        runs of this batch: a task that has read before that attempt would write behind it."""
        row = self.fence.newest(row)
        if row.txid >= txid:
            return row
        late = {} if self.records_each_attempt else {"started": txid, "attempt": attempt + 1}
        return self.fence.admits(row, txid, attempt).evolve(txid=txid, **late)

    def _give_up(self, row: Row | None, txid: int) -> Row:
        """Let in the next attempt, which after a start is the first one of this driver."""
        row = self.fence.newest(row)
        following = row.attempt + 1 if row.started == txid else 0
        return row if row.txid >= txid else row.evolve(started=txid, attempt=following)

    def _go_back(self, row: Row | None, txid: int) -> Row:
        """Go back to a batch. What another checkpoint has written stays; a row of this run has gone back."""
        row = self.fence.newest(row)
        if row.lineage != self.fence.lineage or (row.run == self.fence.token and row.last <= txid):
            return row
        return row.evolve(txid=min(row.txid, txid), started=0, attempt=0, run=self.fence.token)

    # -- how a rule is applied

    @property
    def _joining(self) -> tuple[int, bool]:
        assert self._joins is not None
        return self._joins

    def _forgets(self, row: Row) -> bool:
        return self._joining[1] and row.lineage != self.fence.lineage

    def _join(self) -> None:
        """Run once, before the first batch or the end of one that was decided."""
        if self._joins is None:
            return
        row = self.fence.newest(self._store.read())
        self._claim()
        transition = Transition("join the checkpoint in the ledger", forgets=self._forgets(row))
        self._change(self._hand_over, transition)
        self._joins = None

    def _claim(self) -> None:
        """Take over from a replaced owner, which can no longer write. Raises StateError if another state owns the
        place."""
        assert self._tenure is not None
        store = self._store
        for name, owner in store.owners().items():
            for _ in range(_TRIES):
                if self._tenure.stays(owner) or store.claim(name, owner, self._tenure.own):
                    break
                owner = store.owners()[name]
            else:
                raise FailedException(f"{self.location.shown}: others keep changing the owner of {name}")

    def _change(self, rule: Rule, transition: Transition, over: int | None = None) -> Row:
        """Apply the rule to the row that is there, or first to the one that this driver knows if batch ``over`` is the
        last complete one in it: then a change is one request. Return the row as it is now."""
        store, known = self._store, self._known
        if known is not None and known.txid != over:
            known = None
        for _ in range(_TRIES):
            row = store.read() if known is None else known
            new = rule(row)
            if new == row or store.change(row, new, transition):
                self._known = new
                return new
            known = store.read()
            if known == row and transition.receipts is not None:
                raise commit_loss_error(self.fence.shown, new.txid, len(transition.receipts))
        raise FailedException(f"{self.location.shown}: other drivers keep changing the ledger")

    def _last_written(self, trace: Any) -> int:
        return int(trace.written)
