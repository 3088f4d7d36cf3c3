"""The fifth store of a ledger, and states on it: the protocol is the product's (`states.ledger`), the store is a dict.

What is in it, by key: the row of the ledger, a mark for each partition, notes of owners, and the data that a reader
sees. A request changes it in one step or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar

from states.ledger.fence import Fence, LedgerRow
from states.ledger.owner import Owner
from states.ledger.protocol import Ledger
from states.ledger.store import LedgerStore, Trace, Transition
from trident_py.errors import StateError
from trident_py.model.context import RunContext
from trident_py.state import BackingMap, Location, MapState, State, StateFactory
from trident_py.state.maps import NonTransactionalMap, OpaqueMap, TransactionalMap

from .numbered import SimulatedSequence
from .spouts import here
from .windows import CONFIGS, SimulatedWindow
from .world import Place

ROW, MARK, OWNER, DATA, STAGE = "row", "mark", "owner", "data", "stage"
Content = Mapping[Any, Any]


class SimulatedStore(LedgerStore[LedgerRow]):
    """The ledger's side of the store. ``keeps``: a mark counts in every attempt of its batch."""

    keeps = False

    def __init__(self, number: int) -> None:
        self.number = number

    @property
    def place(self) -> Place:
        return here().stores[self.number]

    def read(self, settled: bool = False) -> LedgerRow | None:
        return here().ask("read", "read the row", lambda: self.place.content.get(ROW))

    def change(self, old: LedgerRow | None, new: LedgerRow, step: Transition) -> bool:
        driver = here().alive().number
        return here().ask("write", step.doing, lambda: self._change(old, new, step, driver))

    def _change(self, old: LedgerRow | None, new: LedgerRow, step: Transition, driver: int) -> bool:
        assert new != old, "a request that arrives twice would fit the row twice"
        content = dict(self.place.content)
        if content.get(ROW) != old or not self._has_marks(content, new.txid, step):
            return False
        content[ROW] = new
        for key in [key for key in content if key[0] == MARK and self._is_over(key, new, step)]:
            del content[key]
        self._show(content, new, step)
        self.place.change(content)
        self._note(old, new, driver)
        return True

    def _note(self, old: LedgerRow | None, new: LedgerRow, driver: int) -> None:
        """Tell the specification who has changed the row."""
        memory, name = here().memory, ("generation", self.number, driver)
        if old is None or new.generation > old.generation:
            memory[name] = new.generation
        elif memory.get(name, 0) < new.generation:
            memory["outdated"] = driver

    def _has_marks(self, content: Content, txid: int, step: Transition) -> bool:
        for receipt in step.receipts or ():
            mark = content.get((MARK, txid, receipt["partition"]))
            if mark is None or (not self.keeps and mark != step.attempt):
                return False
        return True

    def _is_over(self, key: Any, new: LedgerRow, step: Transition) -> bool:
        return step.forgets or key[1] <= new.txid or (step.begins and not self.keeps)

    def _show(self, content: dict[Any, Any], new: LedgerRow, step: Transition) -> None:
        """Called within the step that completes a batch."""

    def trace(self) -> Trace:
        content = here().ask("read", "ask the ledger", lambda: self.place.content)
        row = content.get(ROW)
        marked = max((key[1] for key in content if key[0] == MARK), default=0)
        over = row or LedgerRow()
        return Trace(row, max(over.txid, marked), max(over.last, marked))

    def owners(self) -> Mapping[str, Owner | None]:
        return {"data": here().look("read", self.place.content.get((OWNER, "data")))}

    def claim(self, name: str, old: Owner | None, new: Owner) -> bool:
        def act() -> bool:
            if self.place.content.get((OWNER, name)) != old:
                return False
            self.place.change({**self.place.content, (OWNER, name): new})
            return True

        return here().ask("write", "note the owner", act)


class KeepingStore(SimulatedStore):
    """The store of rows without a key."""

    keeps = True


class ShowingStore(SimulatedStore):
    """The store of whole batches: their rows are staged, and shown with the row of the ledger."""

    def _has_marks(self, content: Content, txid: int, step: Transition) -> bool:
        return all((STAGE, txid, receipt["token"]) in content for receipt in step.receipts or ())

    def _show(self, content: dict[Any, Any], new: LedgerRow, step: Transition) -> None:
        if step.receipts is None:
            return
        for receipt in step.receipts:
            for key in content[STAGE, new.txid, receipt["token"]]:
                content[DATA, key] = content.get((DATA, key), 0) + 1
        for key in [key for key in content if key[0] == STAGE and key[1] <= new.txid]:
            del content[key]


class SimulatedLedger(Ledger[LedgerRow]):
    """The ledger of a simulated state; ``recording``: it records also the first attempt, as Redis does."""

    row_type = LedgerRow

    def __init__(self, factory: SimulatedState) -> None:
        super().__init__(factory.location, factory.valued)
        self.factory = factory
        self.decides = factory.kind == "batch"

    @property
    def records_each_attempt(self) -> bool:  # type: ignore[override]
        return self.factory.recording

    def _store_of(self, context: RunContext, ready: bool) -> LedgerStore[LedgerRow]:
        return _STORES.get(self.factory.kind, SimulatedStore)(self.factory.number)

    def _fence_of(self, conf: dict) -> Fence | None:
        return Fence.of(conf)

    def _last_written(self, trace: Trace) -> int:
        return trace.row.txid if self.decides and trace.row is not None else super()._last_written(trace)


_STORES: dict[str, type[SimulatedStore]] = {"append": KeepingStore, "batch": ShowingStore}


@dataclass
class Transaction:
    """A partition's transaction: what it has read, and what it writes in one step, if the fence admits it then. A
    component that only asks has no fence; it sees what was there when its state was made. ``recording``: its attempt
    must be in the ledger, as in `RedisFence.begins`."""

    place: Place
    fence: Fence | None
    partition: int
    read: Content
    recording: bool = False
    txid: int = 0

    def begin(self, txid: int | None) -> None:
        assert txid is not None
        self.txid = txid
        self.read = here().ask("read", f"begin partition {self.partition}", lambda: self.place.content)
        self._admit(self.fence, self.read, txid)

    def _admit(self, fence: Fence | None, content: Content, txid: int) -> None:
        if fence is None:
            return
        row = fence.admits(content.get(ROW), txid)
        if self.recording and (row.last, row.attempt) < (txid, fence.attempt):
            raise StateError(f"the store has lost the beginning of batch {txid}, attempt {fence.attempt}")

    def commit(self, write: Callable[[dict[Any, Any]], None]) -> None:
        fence, txid, partition = self._frozen(), self.txid, self.partition

        def act() -> None:
            content = dict(self.place.content)
            self._admit(fence, content, txid)
            write(content)
            if fence is not None:
                content[MARK, txid, partition] = fence.attempt
            self.place.change(content)

        here().ask("task", f"commit partition {partition}", act)

    def _frozen(self) -> Fence | None:
        """Return the fence of this attempt, also for a request that arrives in a later one."""
        if self.fence is None:
            return None
        context = SimpleNamespace(transaction=self.fence.context.transaction)
        return replace(self.fence, context=context)


@dataclass(unsafe_hash=True)
class Sum:
    """A value that an update changes in place."""

    total: int = 0


class Buffered(BackingMap):
    """The values of a map, as its partition's transaction sees them."""

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.puts: dict[Any, Any] = {}

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        return [self.puts.get(tuple(key), self.transaction.read.get((DATA, *key))) for key in keys]

    def multiPut(self, keys: Sequence[Any], vals: Sequence[Any]) -> None:
        self.puts.update(zip(map(tuple, keys), vals, strict=True))


class SimulatedMap(MapState):
    """A partition of a map state.

    On replay: as the map of its kind.
    """

    KINDS: ClassVar[dict[str, Any]] = {
        "opaque": OpaqueMap, "transactional": TransactionalMap, "non-transactional": NonTransactionalMap,
        "opaque in place": OpaqueMap, "transactional in place": TransactionalMap,
    }  # fmt: skip

    def __init__(self, factory: SimulatedState, transaction: Transaction) -> None:
        self.transaction = transaction
        self.backing = Buffered(transaction)
        self.map = self.KINDS[factory.kind].build(self.backing)

    def beginCommit(self, txid: int | None) -> None:
        self.backing.puts = {}
        self.transaction.begin(txid)
        self.map.beginCommit(txid)

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        return self.map.multiGet(keys)

    def multiUpdate(self, keys: Sequence[Any], updaters: Sequence[Any]) -> list[Any]:
        return self.map.multiUpdate(keys, updaters)

    def multiPut(self, keys: Sequence[Any], vals: Sequence[Any]) -> None:
        self.map.multiPut(keys, vals)

    def commit(self, txid: int | None) -> Any:
        puts = {(DATA, *key): value for key, value in self.backing.puts.items()}
        self.transaction.commit(lambda content: content.update(puts))
        self.map.commit(txid)
        return {"partition": self.transaction.partition}


class SimulatedRows(State):
    """A partition of a row state of any kind.

    On replay: by its kind: rows are ignored by their key, the partition by its mark, or the batch is not shown.
    """

    def __init__(self, factory: SimulatedState, transaction: Transaction) -> None:
        self.kind, self.transaction = factory.kind, transaction
        self.rows: list[Any] = []

    def beginCommit(self, txid: int | None) -> None:
        self.rows = []
        self.transaction.begin(txid)

    def insert(self, tuples: Sequence[Any], tell: bool) -> Sequence[Any]:
        self.rows += [(each[0], each[1]) for each in tuples]
        return tuples if tell else []

    def commit(self, txid: int | None) -> Any:
        fence, rows, transaction = self.transaction.fence, list(self.rows), self.transaction
        assert fence is not None
        token = f"{fence.token}-{fence.attempt}-{transaction.partition}"
        mark = (MARK, txid, transaction.partition)

        def write(content: dict[Any, Any]) -> None:
            if self.kind == "batch":
                if content[ROW].txid < txid:
                    content[STAGE, txid, token] = tuple(rows)
            elif self.kind in ("insert-ignore", "upsert"):
                content.update(((DATA, row), 1) for row in rows)
            elif content[ROW].txid < txid and mark not in content:
                for row in rows:
                    content[DATA, row] = content.get((DATA, row), 0) + 1

        self.transaction.commit(write)
        return {"partition": transaction.partition, "token": token, "rows": len(rows), "count": len(rows)}


@dataclass(frozen=True)
class SimulatedState(StateFactory):
    """The factory. ``kind``: as in the table of guarantees; ``number``: of its store."""

    kind: str
    recording: bool = False
    number: int = 0

    @property
    def location(self) -> Location:
        return Location(frozenset(["simulated"]), frozenset([f"data {self.number}"]), shown="the simulated store")

    def valued(self) -> int:
        """Return the highest txid among the values, where they carry one."""
        if not self.kind.startswith(("opaque", "transactional")):
            return 0
        content = here().stores[self.number].content
        return here().look("read", max((value[0] for key, value in content.items() if key[0] == DATA), default=0))

    def participant(self) -> SimulatedLedger:
        return SimulatedLedger(self)

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> State:
        place, fence = here().stores[self.number], Fence.of(conf)
        here().look("read", place.digest)
        make = _STATES.get(self.kind, SimulatedMap if self.kind in SimulatedMap.KINDS else SimulatedRows)
        return make(self, Transaction(place, fence, partitionIndex, place.content, self.recording))


_STATES: dict[str, Any] = {
    "sequence": SimulatedSequence, "sequence with gaps": SimulatedSequence, **dict.fromkeys(CONFIGS, SimulatedWindow),
}  # fmt: skip
