"""The driver's side of a state: the one state machine of all stores that keep a ledger.

The row says which driver may write (``generation``), for which checkpoint (``lineage``), which batch is complete
(``txid``) and which attempt was let in last (``started``, ``attempt``). Every change is computed from the row by a rule
and made only if the row is still the same, so whoever comes later applies the rule to the newer row. A change whose
answer was lost is therefore made once. docs/protocol.md has the rules in words and as a picture.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Generic

from trident_py.errors import FailedException, StateError
from trident_py.model.context import RunContext
from trident_py.state import BatchParticipant, Location, Remembered

from .fence import Fence, Row, lost_commits
from .owner import Tenure
from .store import LedgerStore, Step

_TRIES = 20


class Ledger(BatchParticipant, Generic[Row]):
    """The driver's side of one state; one object for each run. A subclass says where the ledger is (`_stores_of`).

    A ledger in several files has a row in each; the first one decides. ``valued`` returns the highest txid among the
    values. ``records_each_attempt``: also the first attempt of each batch is recorded.
    """

    keeps_receipts = True
    records_each_attempt: ClassVar[bool] = False
    row_type: Callable[[], Row]
    fence_type: ClassVar[type[Fence]] = Fence

    def __init__(self, location: Location, valued: Callable[[], int] = lambda: 0) -> None:
        self.location = location
        self._valued = valued
        self._stores: Sequence[LedgerStore[Row]] = ()
        self._known: dict[int, Row] = {}
        self._fence: Fence | None = None
        self._joins: tuple[int, bool] | None = None
        self._tenure: Tenure | None = None

    @abstractmethod
    def _stores_of(self, context: RunContext, ready: bool) -> Sequence[LedgerStore[Row]]:
        """Return the state's ledger, one for each file. ``ready``: after missing tables are created."""

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
        for store in stores:
            for owner in store.owners().values():
                tenure.stays(owner)
        traces = [store.trace() for store in stores]
        first = traces[0].row
        lineage = "" if first is None else first.lineage
        return Remembered(
            self.location.shown,
            lineage,
            written=max(self._last_written(trace) for trace in traces),
            whole=min(0 if trace.row is None else trace.row.txid for trace in traces),
            last=max(trace.last for trace in traces),
            valued=0 if lineage and lineage == context.lineage else self._valued(),
            run="" if first is None else first.run,
        )

    def open(self, conf: dict) -> int:
        """Take over: raises the generation everywhere, beginning with the first file, and returns it."""
        context, step = RunContext.of(conf), Step("open the ledger")
        self._stores = stores = self._stores_of(context, ready=True)
        self._known = {}
        rows = [store.read() for store in stores[1:]]
        least = max((row.generation for row in rows if row is not None), default=0)
        generation = self._change(0, partial(self._taken_over, least=least), step).generation
        own = context.topology, context.state, generation, context.lineage
        self._fence = self.fence_type(*own, run=context.run)
        for index in range(1, len(stores)):
            self._change(index, self._followed, step)
        self._joins = context.txid, context.forget
        self._tenure = Tenure.of(self.location, conf)
        return generation

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        """Called on the driver before each attempt; shuts out earlier ones. Raises ZombieError for an older driver or
        batch, StateError if the store has gone back."""
        if self._fence is None:
            return
        self._join()
        if attempt > 0 or self.records_each_attempt:
            step = Step("begin the batch in the ledger", begins=True)
            self._change_all(partial(self._begun, txid=txid, attempt=attempt), step, txid)

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Move the last complete txid. Raises ZombieError if a newer driver has taken over, LostCommits if the store
        lacks what partitions have committed; the batch is then replayed."""
        if self._fence is None:
            return
        self._join()
        step = Step("end the batch in the ledger", attempt=attempt, receipts=receipts)
        self._change_all(partial(self._completed, txid=txid, attempt=attempt), step, txid)

    def published(self, txid: int) -> bool:
        """Return whether the ledger has the batch as complete."""
        return self.fence.newest(self._stores[0].read()).txid >= txid

    def abort(self, txid: int, attempt: int) -> None:
        """Do nothing: the replay repairs what a failed attempt has committed."""

    # -- the rules: each returns what follows a row, or the row itself if it stays

    def _taken_over(self, row: Row | None, least: int) -> Row:
        old = self.row_type() if row is None else row
        return replace(old, generation=max(old.generation, least) + 1, attempt=0)

    def _followed(self, row: Row | None) -> Row:
        """Of two drivers that open at once, the newer one may have been here first."""
        if row is None or row.generation < self.fence.generation:
            return replace(self.row_type() if row is None else row, generation=self.fence.generation, attempt=0)
        return self.fence.newest(row)

    def _joined(self, row: Row | None) -> Row:
        """The ledger belongs to this checkpoint, which has committed ``txid``. ``forget``: the batches of another one
        no longer count."""
        row, txid = self.fence.newest(row), self._joining[0]
        if (row.lineage, row.run) == (self.fence.lineage, self.fence.token) and row.txid >= txid:
            return row
        over, started = (txid, 0) if self._forgets(row) else (max(row.txid, txid), row.started)
        return replace(row, lineage=self.fence.lineage, txid=over, started=started, run=self.fence.token)

    def _begun(self, row: Row | None, txid: int, attempt: int) -> Row:
        return replace(self.fence.admits(row, txid, attempt), started=txid, attempt=attempt)

    def _completed(self, row: Row | None, txid: int, attempt: int) -> Row:
        row = self.fence.newest(row)
        return row if row.txid >= txid else replace(self.fence.admits(row, txid, attempt), txid=txid)

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
            step = Step("join the checkpoint in the ledger", forgets=self._forgets(row))
            self._change(index, self._joined, step)
        self._joins = None

    def _claim(self, store: LedgerStore[Row]) -> None:
        """Take over from a replaced owner, which can no longer write. Raises StateError if another state owns the
        place."""
        assert self._tenure is not None
        for name, owner in store.owners().items():
            while not self._tenure.stays(owner) and not store.claim(name, owner, self._tenure.own):
                owner = store.owners()[name]

    def _change_all(self, rule: Callable[[Row | None], Row], step: Step, txid: int) -> None:
        for index in range(len(self._stores)):
            known = self._known.get(index)
            self._change(index, rule, step, known if known is not None and known.txid == txid - 1 else None)

    def _change(self, index: int, rule: Callable[[Row | None], Row], step: Step, known: Row | None = None) -> Row:
        """Apply the rule to the row that is there, or first to the one that this driver knows: then a change is one
        request. Return the row as it is now."""
        store = self._stores[index]
        for _ in range(_TRIES):
            row = store.read() if known is None else known
            new = rule(row)
            if new is row or store.change(row, new, step):
                self._known[index] = new
                return new
            known = store.read()
            if known == row and step.receipts is not None:
                raise lost_commits(self.fence.shown, new.txid, len(step.receipts))
        raise FailedException(f"{self.location.shown}: other drivers keep changing the ledger")

    def _last_written(self, trace: Any) -> int:
        return int(trace.written)
