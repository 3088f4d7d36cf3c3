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
    """The driver's side of one state; one object for each run. A subclass says where the ledger is (`_stores_of`).

    A ledger in several files has a row in each; the first one decides. ``valued`` returns the highest txid among the
    values. ``records_each_attempt``: whether every attempt is recorded, not only the first one of a run and further
    ones of a batch. ``ending``: what an error says of `publish`.
    """

    keeps_receipts = True
    records_each_attempt: ClassVar[bool] = False
    ending: ClassVar[str] = "end the batch in the ledger"
    row_type: Callable[[], Row]

    def __init__(self, location: Location, valued: Callable[[], int] = lambda: 0) -> None:
        self.location = location
        self._valued = valued
        self._stores: Sequence[LedgerStore[Row]] = ()
        self._known: dict[int, Row] = {}
        self._fence: Fence | None = None
        self._repeated = False  # the last batch was complete already, so its end shut out none of its tasks
        self._joins: tuple[int, bool] | None = None
        self._tenure: Tenure | None = None

    @abstractmethod
    def _stores_of(self, context: RunContext, ready: bool) -> Sequence[LedgerStore[Row]]:
        """Return the state's ledger, one for each file. ``ready``: after missing tables are created."""

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
        stores = self._stores_of(context, ready=False)
        owners = [owner for store in stores for owner in store.owners().values()]
        for owner in owners:
            tenure.stays(owner)
        traces = [store.trace() for store in stores]
        first = traces[0].row
        known = LedgerRow() if first is None else first
        lineage = known.lineage
        return Remembered(
            self.location.shown,
            lineage,
            written=max(self._last_written(trace) for trace in traces),
            whole=min(0 if trace.row is None else trace.row.txid for trace in traces),
            last=max(trace.last for trace in traces),
            valued=0 if lineage and lineage == context.lineage else self._valued(),
            run=known.run,
            generation=known.generation,
            attempt=known.attempt,
            owner=next((owner.name for owner in owners if owner is not None), ""),
        )

    def open(self, conf: dict) -> int:
        """Take over: raises the generation everywhere, beginning with the first file, and returns it."""
        context, transition = RunContext.of(conf), Transition("open the ledger")
        self._stores = stores = self._stores_of(context, ready=True)
        self._known = {}
        rows = [store.read() for store in stores[1:]]
        least = max((row.generation for row in rows if row is not None), default=0)
        generation = self._change(0, partial(self._take_over, least=least), transition).generation
        self._fence = self._fence_of(with_context(conf, generation=generation))
        for index in range(1, len(stores)):
            self._change(index, self._follow, transition)
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
        if first or attempt > 0 or self.records_each_attempt:
            transition = Transition("begin the batch in the ledger", begins=True)
            self._change_all(partial(self._begin, txid=txid, attempt=attempt), transition, txid)
            self._repeated = False

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Move the last complete txid. Raises ZombieError if a newer driver has taken over, LostCommits if the store
        lacks what partitions have committed; the batch is then replayed."""
        if self._fence is None:
            return
        self._join()
        self._repeated = True  # until it is known: a batch whose end is refused runs again
        transition = Transition(self.ending, attempt=attempt, receipts=receipts)
        self._change_all(partial(self._complete, txid=txid, attempt=attempt), transition, txid)
        self._repeated = any((row.started, row.attempt) <= (txid, attempt) for row in self._known.values())

    def rewind(self, txid: int) -> None:
        """Undo the batches after this one, each file in one step; the first file comes last, as in `_join`."""
        transition = Transition(f"go back to batch {txid}", forgets=True, back=txid)
        for index in reversed(range(len(self._stores))):
            self._change(index, partial(self._go_back, txid=txid), transition)

    def give_up(self, txid: int) -> bool:
        """Shut out an end of this batch that is still under way. Return False if the batch is complete. Raises
        ZombieError for an older driver."""
        transition = Transition("give up the batch", begins=True)
        return bool(self._change(0, partial(self._give_up, txid=txid), transition).txid < txid)

    def newest(self) -> Row:
        """Return the row. Raises ZombieError for an older driver."""
        return self.fence.newest(self._stores[0].read())

    def change(self, rule: Rule) -> Row:
        """Change the row by a rule of the state's own, and return it."""
        return self._change(0, rule, Transition("change the ledger"))

    def abort(self, txid: int, attempt: int) -> None:
        """Do nothing: the replay repairs what a failed attempt has committed."""

    # -- the rules: each returns what follows a row. An equal row is no request, so each request changes the row, and
    # one that arrives twice, or late, finds another row and changes nothing.

    def _take_over(self, row: Row | None, least: int) -> Row:
        old = self.row_type() if row is None else row
        return old.evolve(generation=max(old.generation, least) + 1, attempt=NO_ATTEMPT)

    def _follow(self, row: Row | None) -> Row:
        """Follow the first file. Of two drivers that open at once, the newer one may have been here first."""
        if row is None or row.generation < self.fence.generation:
            old = self.row_type() if row is None else row
            return old.evolve(generation=self.fence.generation, attempt=NO_ATTEMPT)
        return self.fence.newest(row)

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
        """Run once, before the first batch or the end of one that was decided; the first file comes last, since it
        decides which checkpoint owns the store."""
        if self._joins is None:
            return
        for index, store in reversed(list(enumerate(self._stores))):
            row = self.fence.newest(store.read())
            self._claim(store)
            transition = Transition("join the checkpoint in the ledger", forgets=self._forgets(row))
            self._change(index, self._hand_over, transition)
        self._joins = None

    def _claim(self, store: LedgerStore[Row]) -> None:
        """Take over from a replaced owner, which can no longer write. Raises StateError if another state owns the
        place."""
        assert self._tenure is not None
        for name, owner in store.owners().items():
            for _ in range(_TRIES):
                if self._tenure.stays(owner) or store.claim(name, owner, self._tenure.own):
                    break
                owner = store.owners()[name]
            else:
                raise FailedException(f"{self.location.shown}: others keep changing the owner of {name}")

    def _change_all(self, rule: Rule, transition: Transition, txid: int) -> None:
        for index in range(len(self._stores)):
            known = self._known.get(index)
            self._change(index, rule, transition, known if known is not None and known.txid == txid - 1 else None)

    def _change(self, index: int, rule: Rule, transition: Transition, known: Row | None = None) -> Row:
        """Apply the rule to the row that is there, or first to the one that this driver knows: then a change is one
        request. Return the row as it is now."""
        store = self._stores[index]
        for _ in range(_TRIES):
            row = store.read() if known is None else known
            new = rule(row)
            if new == row or store.change(row, new, transition):
                self._known[index] = new
                return new
            known = store.read()
            if known == row and transition.receipts is not None:
                raise commit_loss_error(self.fence.shown, new.txid, len(transition.receipts))
        raise FailedException(f"{self.location.shown}: other drivers keep changing the ledger")

    def _last_written(self, trace: Any) -> int:
        return int(trace.written)
