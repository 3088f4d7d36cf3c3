"""Shared by the row states: the factories' base class, and the table that follows from the fields of the tuples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from trident_py.errors import DefinitionError, StateError
from trident_py.model.chunks import TupleList
from trident_py.state import BatchParticipant, ITupleCollection, Location, Needs, State, StateFactory, StatePlace
from trident_py.state.roles import StoredRows
from trident_py.tuples import Fields, FieldsLike

from ...columns.arrow import KeyedRows
from ...columns.values import Column, decode_row, nameable
from ...diagnostics import Finding
from ...rows import RowUpdater, check_asked_behind, share_rows
from ..dialects.base import names
from ..dialects.registry import dialect_of
from ..inspect import check
from ..key_types import settle_types
from ..ledger import SqlFence, SqlLedger
from ..store import has_server, needs_of_store, parse_url, redact_url
from ..table import (
    CheckedTable,
    Shape,
    TablePlace,
    describe,
    location_of,
    prepare,
    prepare_ledger,
    read_columns,
    shape_of,
)
from ..transaction import Transaction
from ..undo import Never, RowUndo, Undo
from .row_checks import SUFFIX, Checked, Rejects, letters_of


class RowPartition(State, ITupleCollection):
    """Base class of one partition of a row state; runs in the task that has its tuples.

    On replay: as the state says.
    """

    def __init__(self, factory: Any, fence: SqlFence | None, partition: int, of: int) -> None:
        self.factory = factory
        self.partition = partition
        self.of = of
        self._shape: Shape | None = None
        store = factory.place.store()
        self._transaction = Transaction(store, fence, partition)
        self._rejects = Rejects(factory.table, fence, store) if factory.onBadRow == "dead-letter" else None

    def prepare(self, fields: Fields) -> Any:
        """Return the table's columns that tuples with these fields fill, in the order of the fields; the first call
        creates and checks the tables, outside of a transaction."""
        if self._shape is None:
            self._shape = self.factory.shape(fields)
            self._transaction.table = CheckedTable(self.factory.place, self._shape)
            self._prepare_beside(self._shape)
        return columns_of(self.factory.table, self.factory.without_txid(self._shape), fields)

    def note_txid(self, batch: Checked) -> Checked:
        """Return the rows with the batch's txid, if the state keeps it in a column."""
        txid, name = self._transaction.txid, self.factory.txid
        if name is None or txid is None:
            return batch
        rows, txids = batch.rows, pa.repeat(pa.scalar(txid, pa.int64()), len(batch.rows))
        return batch._replace(rows=KeyedRows([*rows.columns, Column(name, "bigint")], [*rows.arrays, txids]))

    def _prepare_beside(self, shape: Shape) -> None:
        """Create and check the state's further tables."""
        if self._rejects is not None:
            self._rejects.prepare()

    def rollback(self, txid: int | None) -> None:
        self._transaction.rollback()

    def getTuples(self) -> Iterator[list[Any]]:
        rows = ((row, None) for row in rows_of(self.factory.place, self.factory.stored_fields))
        for row, _ in share_rows(rows, self.partition, self.of):
            yield list(row)


class TableFactory(StateFactory):
    """Base class of the factories of states in one table, which are frozen dataclasses with these fields."""

    url: str
    table: str
    _reserved: ClassVar[tuple[str, ...]] = ()  # columns of trident_py beside those of a row, in this or another table

    def __post_init__(self) -> None:
        where = parse_url(self.url).render_as_string(hide_password=False)
        object.__setattr__(self, "url", where)  # absolute: a worker may run in another folder
        self.place  # noqa: B018 (raises DefinitionError)

    def check_names(self, names: Iterable[str]) -> None:
        """Raise DefinitionError for a name that no column of a row can have."""
        reserved = {*self._reserved, *dialect_of(self.place.parsed_url).reserved}
        for name in names:
            nameable("column", name)
            if name.lower() in reserved:
                own = f"trident_py has a column {name!r} for itself"
                raise DefinitionError(f"table {self.table!r}: {own}. Choose another")

    @property
    def location(self) -> Location:
        return location_of(self.place)

    @property
    def needs(self) -> Needs:
        return needs_of_store(self.url)

    @property
    def commits_apart(self) -> bool:
        return has_server(self.url)

    @property
    def place(self) -> TablePlace:
        return TablePlace(self.url, self.table)

    @property
    def stateName(self) -> str:
        return self.table

    def check_place(self, place: StatePlace) -> None:
        check_asked_behind(place, f"table {self.table!r}")


class RowFactory(TableFactory):
    """Base class of the row states' factories."""

    columns: FieldsLike | None
    onBadRow: str = "fail"
    txid: str | None = None
    stages: ClassVar[bool] = False  # whether the state needs temporary tables
    own_updater = RowUpdater()
    state_type: ClassVar[Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "columns", self._fields)
        self.check_names([*(self._fields or ()), *self._key, *self._txid])
        self._check_choice("onBadRow", self.onBadRow, ["fail", "dead-letter"])
        if self.txid is not None and self.txid in (self._fields or ()):
            raise DefinitionError(
                f"table {self.table!r}: {self.txid!r} is the column of the txid, which the state fills itself. Leave "
                "it out of columns, or give txid another name"
            )

    @property
    def row_fields(self) -> Fields:
        return self._fields or self._key

    def shape(self, fields: Fields) -> Shape:
        """Return the table's columns; create the table if it is missing. ``fields``: the fields of the tuples."""
        fields = declare_fields(self.place, self._fields, fields)
        self.check_names(fields)
        return make_keyed_shape(self.place, fields.concat(self._txid), self._key)

    def without_txid(self, shape: Shape) -> Shape:
        """Return the columns that tuples fill."""
        return Shape(tuple(column for column in shape.columns if column.name != self.txid))

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        state = self.state_type(self, self._fence_of(conf), partitionIndex, numPartitions)
        if self._fields is not None:
            state.prepare(self._fields)
        return state

    def _fence_of(self, conf: dict) -> SqlFence | None:
        return SqlFence.of(conf)

    def participant(self) -> BatchParticipant:
        return SqlLedger(self.location, self._prepare_ledger, self.place.store, undo=self._undo)

    def open_rows(self) -> StoredRows:
        there = read_columns(self.place.store(), self.table) or {}
        declared = self._fields or Fields.of_names(there)
        types = {**there, **self._key.types, **declared.types}
        every = Fields.of_names(dict.fromkeys([*declared, *self._txid]) if there else (), types)
        return StoredRows(self._key, every, self.txid, ((None, row) for row in rows_of(self.place, every)))

    @property
    def stored_fields(self) -> Fields:
        """The declared fields, else the table's columns; the key's first. None if the table is missing."""
        stored = read_columns(self.place.store(), self.table)
        if stored is None:
            return Fields()
        fields = Fields.of_names(stored) if self._fields is None else self._fields
        keys, others = split(fields, self._key.only([name for name in self._key if name in fields]))
        return keys.concat(others)

    def stored(self) -> dict[tuple, Any]:
        """Return the rows that tuples fill: with a key, key tuple -> tuple of the other columns in the order of their
        declaration; else how often each row is stored, with json columns as text."""
        fields, width = self.stored_fields.without(self._txid), len(self._key)
        if not width:
            return dict(Counter(rows_of(self.place, fields, as_text=("json",))))
        return {row[:width]: row[width:] for row in rows_of(self.place, fields)}

    @property
    def _txid(self) -> Fields:
        """The column of the txid, if there is one."""
        return Fields() if self.txid is None else Fields.of_columns(f"{self.txid} bigint")

    @property
    def _undo(self) -> Undo:
        if self.txid is None:
            return Never("its rows do not tell their batch; with txid=COLUMN those tell it that it writes from then on")
        return RowUndo(self.table, self.txid, letters_of(self.table) if self.onBadRow == "dead-letter" else None)

    def _check_choice(self, name: str, value: str, choices: Sequence[str]) -> None:
        if value not in choices:
            raise DefinitionError(f"table {self.table!r}: {name} must be one of {choices}, got {value!r}")

    def _check_key(self) -> None:
        if self._fields is not None and (missing := [name for name in self._key if name not in self._fields]):
            raise DefinitionError(f"table {self.table!r}: the key fields {missing} are not in columns: {self.columns}")

    def __repr__(self) -> str:
        options = [(name, value) for name, value in vars(self).items() if name not in ("url", "table")]
        texts = [f"{name}={value!r}" if isinstance(value, str) else f"{name}={value}" for name, value in options]
        return f"{type(self).__name__}({', '.join([repr(redact_url(parse_url(self.url))), repr(self.table), *texts])})"

    @property
    def location(self) -> Location:
        return location_of(self.place, self._beside, self._shared if self.txid is None else "")

    @property
    def _beside(self) -> tuple[str, ...]:
        """The suffixes of the state's further tables."""
        return (SUFFIX,) if self.onBadRow == "dead-letter" else ()

    @property
    def _created(self) -> tuple[str, ...]:
        """The suffixes of the further tables that this state creates."""
        return self._beside

    @property
    def _key(self) -> Fields:
        """The key's columns; none if the rows have no key."""
        return Fields()

    @property
    def _usual(self) -> dict[str, str]:
        """The types of the key's columns whose type neither the state nor the table declares."""
        return {}

    @property
    def _shared(self) -> str:
        """States with the same value may write the table together (`trident_py.state.Location`); "" for none."""
        return ""

    @property
    def _fields(self) -> Fields | None:
        return None if self.columns is None else Fields.of_columns(self.columns)

    def check(self) -> Sequence[Finding]:
        keys, others = self._key, None
        if self._fields is not None:
            keys, others = split(self._fields.concat(self._txid), keys)
        beside = [f"{self.table}{suffix}" for suffix in self._created]
        return check(self.place, keys, others, beside, self.stages, self._usual)

    def _prepare_ledger(self) -> None:
        """Create the tables whose columns are known before the first row: the ledger's, and that of dead letters."""
        prepare_ledger(self.place)
        if self.onBadRow == "dead-letter":
            Rejects(self.table, None, self.place.store()).prepare()


def declare_fields(place: TablePlace, columns: Fields | None, fields: Fields) -> Fields:
    """Return the fields of a row: ``columns``, else those of the tuples. Raises StateError for one that the table
    lacks."""
    if columns is not None:
        return columns
    stored = describe(place.store(), place.table)
    if stored is not None and (missing := [name for name in fields if name not in stored]):
        raise StateError(f"table {place.table!r} has no columns {missing}; it has: {', '.join(stored)}")
    return fields


def make_keyed_shape(place: TablePlace, fields: Fields, key: Fields, usual: Mapping[str, str] | None = None) -> Shape:
    """Return the table with these fields, created if missing. A type comes from ``key``, else from ``fields``, else
    from ``usual``."""
    return prepare(place, shape_of(place, *split(fields, key, usual)))


def split(fields: Fields, key: Fields, usual: Mapping[str, str] | None = None) -> tuple[Fields, Fields]:
    """Return the key's columns and the others, each with the type that ``key``, ``fields`` or ``usual`` declares."""
    types = {**(usual or {}), **fields.types, **key.types}
    both = Fields.of_names(fields, types)
    return both.only(key), both.without(key)


def columns_of(table: str, shape: Shape, fields: Fields) -> list[Column]:
    """Return the columns that the tuples fill, in the order of the fields. Raises StateError for a column without a
    field."""
    by_name = {column.name: column for column in shape.columns}
    if missing := [name for name in by_name if name not in fields]:
        raise StateError(f"table {table!r} needs the columns {', '.join(missing)}; the tuples have {fields}")
    return [by_name[name] for name in fields if name in by_name]


def fields_of(tuples: Sequence[Any]) -> Fields:
    """Return the fields of a batch's tuples."""
    return tuples.fields if isinstance(tuples, TupleList) else tuples[0].getFields()


def rows_of(place: TablePlace, fields: Fields, as_text: Sequence[str] = ()) -> Iterator[tuple]:
    """Yield the rows of these fields, none if there are no fields; decoded but for the columns of the families
    ``as_text``."""
    if len(fields) == 0:
        return
    shape = prepare(place, shape_of(place, Fields(), fields))
    store = place.store()
    with store.reading() as connection, store.errors("read"):
        rows = connection.execute(f'SELECT {names(shape.columns)} FROM "{place.table}"').fetchall()
        columns = settle_types(store, connection, place.table, shape.columns)
    decoders = [None if c.family in as_text else store.dialect.decoder(c) for c in columns]
    for row in rows:
        yield decode_row(row, decoders)
