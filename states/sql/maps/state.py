"""Map states in one SQL table: typed key columns, the value, its txid and the previous value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from trident_py.entry_points import load
from trident_py.errors import DefinitionError, StateError
from trident_py.state import (
    BatchParticipant,
    ITupleCollection,
    NonTransactionalMap,
    Reading,
    SnapshottableMap,
    StateType,
    ValueUpdater,
)
from trident_py.state.base import Key
from trident_py.state.fit import check_call, refuse_global
from trident_py.state.maps import MAPS
from trident_py.state.roles import StoredValues
from trident_py.tuples import Fields, FieldsLike

from ...diagnostics import Finding
from ...rows import share_rows
from ..inspect import check
from ..ledger import SqlFence, SqlLedger
from ..rows.base import TableFactory
from ..store import parse_url, redact_url
from ..table import CheckedTable, describe, kind_problems, one_key, prepare, read_columns, shape_of
from ..transaction import Transaction
from ..undo import Never, OpaqueUndo, Undo
from .backing import SqlBackingMap

GLOBAL_KEY = ("$GLOBAL$",)


class SqlMapRows(SnapshottableMap, ITupleCollection):
    """One partition of a SqlMapState.

    On replay: transactional keeps what the batch has written, opaque starts again from the previous value,
    non-transactional applies the batch again.
    """

    def __init__(self, factory: SqlMapState, backing: SqlBackingMap, partition: int, of: int) -> None:
        super().__init__(MAPS[factory.type].build(backing), GLOBAL_KEY)
        self.factory = factory
        self.backing = backing
        self.partition = partition
        self.of = of

    def beginCommit(self, txid: int | None) -> None:
        self.backing.transaction.begin(txid)
        self._restart()

    def _restart(self) -> None:
        self.backing.written = 0
        self.delegate.beginCommit(self.backing.transaction.txid)

    def commit(self, txid: int | None) -> Any:
        super().commit(txid)
        return {"partition": self.partition, "written": self.backing.written, **self.backing.transaction.commit()}

    def rollback(self, txid: int | None) -> None:
        super().commit(txid)
        self.backing.transaction.rollback()

    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        own = [*keys]  # what is known of these keys is not that of the caller's list, which may change before a put
        return self.backing.transaction.repeat(partial(self.delegate.multiGet, own), self._restart)

    def multiUpdate(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater]) -> list[Any]:
        return self.backing.transaction.repeat(partial(self.delegate.multiUpdate, keys, updaters), self._restart)

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        self.backing.transaction.repeat(partial(self.delegate.multiPut, keys, vals), self._restart)

    def get(self) -> Any:
        check_call(self.factory, "get")
        return self.multiGet(self.snapshotKey)[0]

    def update(self, updater: Any) -> Any:
        check_call(self.factory, "update")
        return self.multiUpdate(self.snapshotKey, [updater])[0]

    def set(self, value: Any) -> None:
        check_call(self.factory, "set")
        self.multiPut(self.snapshotKey, [value])

    def getTuples(self) -> Iterator[list[Any]]:
        current = 0 if isinstance(self.delegate, NonTransactionalMap) else 1
        for key, value in share_rows(self.backing.rows(), self.partition, self.of):
            yield [*key, value if current == 0 else value[1]]


@dataclass(frozen=True, repr=False)
class SqlMapState(TableFactory):
    """A map state in one SQL table; call `nonTransactional`, `transactional` or `opaque` to create it.

    ``key=None`` is the state of a global aggregate. Types come from the fields (``"count bigint"``) or from the
    existing table; a missing table is created.
    On replay: as its kind; every partition of a batch is one transaction of the store, fenced by the ledger.
    """

    url: str
    table: str
    key: Fields | None
    value: Fields
    type: StateType
    reading = Reading.CURRENT
    state_type = SqlMapRows

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_names([*(self.key or ()), *self.value])
        if len(self.value) == 0 or (self.key is not None and len(self.key) == 0):
            raise DefinitionError(f"table {self.table!r}: key and value need at least one field each")
        self._check_own()
        self._fields()[0].concat(self._fields()[1])  # raises for a column named twice

    def _check_own(self) -> None:
        before = [f"prev_{name}" for name in self.value] if self.type is StateType.OPAQUE else []
        own = [] if self.type is StateType.NON_TRANSACTIONAL else ["txid", *before]
        if taken := [name for name in (*(self.key or ()), *self.value) if name in own]:
            raise DefinitionError(
                f"table {self.table!r}: {taken[0]!r} is a column of the state itself, which has {', '.join(own)}. Give "
                "the field of the key or value another name"
            )

    @classmethod
    def nonTransactional(
        cls, url: str, table: str, key: FieldsLike | None = None,
        value: FieldsLike = "count bigint", *, keys: FieldsLike | None = None,
    ) -> SqlMapState:  # fmt: skip
        """Store the columns key, value. A replayed batch counts twice."""
        return cls(url, table, _key(table, key, keys), Fields.of_columns(value), StateType.NON_TRANSACTIONAL)

    @classmethod
    def transactional(
        cls, url: str, table: str, key: FieldsLike | None = None,
        value: FieldsLike = "count bigint", *, keys: FieldsLike | None = None,
    ) -> SqlMapState:  # fmt: skip
        """Store the columns key, value, txid. Exact if a replayed batch has the same content."""
        return cls(url, table, _key(table, key, keys), Fields.of_columns(value), StateType.TRANSACTIONAL)

    @classmethod
    def opaque(
        cls, url: str, table: str, key: FieldsLike | None = None,
        value: FieldsLike = "count bigint", *, keys: FieldsLike | None = None,
    ) -> SqlMapState:  # fmt: skip
        """Store the columns key, value, txid, prev_<value>. Exact even if a replayed batch has other content, but for
        S12."""
        return cls(url, table, _key(table, key, keys), Fields.of_columns(value), StateType.OPAQUE)

    @property
    def kind(self) -> str:
        return self.type.value

    @property
    def key_fields(self) -> Fields | None:
        return self._fields()[0]

    @property
    def refused_calls(self) -> Mapping[str, str]:
        return refuse_global(f"table {self.table!r}", self.key)

    @property
    def keys(self) -> Fields | None:
        """The older name of ``key``."""
        return self.key

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> SqlMapRows:
        backing = self._make_backing(SqlFence.of(conf), partitionIndex)
        return SqlMapRows(self, backing, partitionIndex, numPartitions)

    def check(self) -> Sequence[Finding]:
        return check(self.place, *self._fields(), foreign=self._foreign)

    def check_queried(self) -> Sequence[Finding]:
        """Check the store for a query, which may read the values of any kind."""
        return check(self.place, *self._fields())

    def participant(self) -> BatchParticipant:
        place = self.place

        def read_last_txid() -> int:
            return 0 if read_columns(place.store(), self.table) is None else self._make_backing(None).last_txid()

        undo: Undo = Never("it keeps no value before the last one")
        if self.type is StateType.OPAQUE:
            undo = OpaqueUndo(self.table, tuple(self.value))
        return SqlLedger(self.location, self._prepare, place.store, read_last_txid, undo)

    @property
    def _foreign(self) -> list[str]:
        """The columns of a map of another kind."""
        return [] if self.type is StateType.OPAQUE else ["txid", *(f"prev_{name}" for name in self.value)]

    def _prepare(self) -> None:
        """Create and check the table. Raises StateError for one of another kind."""
        self._make_backing(None)
        store = self.place.store()
        there = describe(store, self.table) if self._foreign else None
        for problem in kind_problems(self._foreign, there or {}):
            raise StateError(f"table {self.table!r} in {store.shown} {problem}")

    def stored(self) -> dict[tuple, Any]:
        return dict(self._make_backing(None).rows())

    def open_values(self) -> StoredValues:
        opened = load(repr(self), "sql_values").StoredSqlValues
        return opened(partial(self._make_backing, None), self.type, self.key, self.value)

    def _make_backing(self, fence: SqlFence | None, partition: int = 0) -> SqlBackingMap:
        place = self.place
        transaction = Transaction(place.store(), fence, partition)
        shape = one_key(place, prepare(place, shape_of(place, *self._fields())))
        transaction.table = CheckedTable(place, shape)
        return SqlBackingMap(place, shape, len(self.value), self.type, transaction)

    def _fields(self) -> tuple[Fields, Fields]:
        keys = Fields("k string") if self.key is None else self.key
        others = self.value
        if self.type is not StateType.NON_TRANSACTIONAL:
            others = Fields("txid bigint").concat(others)
        if self.type is StateType.OPAQUE:
            types = {f"prev_{name}": ddl for name, ddl in self.value.types.items()}
            others = others.concat(Fields.of_names([f"prev_{name}" for name in self.value], types))
        return keys, others

    def __repr__(self) -> str:
        return (
            f"SqlMapState({self.kind}, {redact_url(parse_url(self.url))!r}, {self.table!r}, "
            f"key={self.key}, value={self.value})"
        )


def _key(table: str, key: FieldsLike | None, keys: FieldsLike | None) -> Fields | None:
    """Return the key's fields; ``keys`` is the older name of ``key``. Raises DefinitionError if both are given."""
    if key is not None and keys is not None:
        raise DefinitionError(f"table {table!r}: give key or keys, which mean the same, but not both")
    fields = keys if key is None else key
    return None if fields is None else Fields.of_columns(fields)
