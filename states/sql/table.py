"""A state's table. A missing table is created, an existing one checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL
from sqlalchemy.schema import CreateTable

from trident_py.errors import DefinitionError, StateError
from trident_py.state import Location
from trident_py.tuples import Fields

from ..columns.values import Column, RefusedValue, build_columns, nameable
from . import key_types, ledger
from .connection import Connection, Statement
from .dialects.base import KEYS, STAGE, STAGED
from .dialects.registry import dialect_of
from .ledger import LAYOUT
from .store import Store, driver_error, parse_url, reads_only, redact_url, retry_transient, store_of

_OURS = {*(table.name for table in ledger.tables({})), KEYS, STAGE, STAGED}
"""Those of the ledger; and temporary ones, which hide a table of their name."""
_ONE_FILE = 1, "crc32-1"  # earlier versions could spread a table of SQLite over several files


@dataclass(frozen=True)
class TablePlace:
    """The place of a table: a database and a name."""

    url: str = field(repr=False)
    table: str

    def __post_init__(self) -> None:
        """Raise DefinitionError for a table that cannot be there. Opens nothing."""
        nameable("table", self.table)
        if self.table.lower() in _OURS:
            raise DefinitionError(f"table {self.table!r}: trident_py has one of that name for itself. Choose another")

    @property
    def parsed_url(self) -> URL:
        return _parse(self.url, Path.cwd())

    def store(self) -> Store:
        """Return this process's store."""
        return store_of(self.parsed_url)


@lru_cache(maxsize=256)
def _parse(url: str, here: Path) -> URL:
    """Parse the URL. ``here``: what a relative path is relative to."""
    return parse_url(url)


@dataclass(frozen=True)
class Shape:
    """The columns that a table must have, the key's first."""

    columns: tuple[Column, ...]

    @property
    def keys(self) -> list[Column]:
        return [column for column in self.columns if column.key]

    @property
    def others(self) -> list[Column]:
        return [column for column in self.columns if not column.key]


def shape_of(place: TablePlace, keys: Fields, others: Fields) -> Shape:
    """Return the columns with their types, from the declaration or, for undeclared types, from the existing table.

    Raises StateError if a type is neither declared nor known.
    """
    declared = all(name in fields.types for fields in (keys, others) for name in fields)
    store = place.store()
    type_names = {} if declared else describe(store, place.table) or {}
    types = nearest(store, type_names)
    columns: list[Column] = []
    for typed_columns in (build_columns(keys, True, types), build_columns(others, False, types)):
        if isinstance(typed_columns, str):
            why = unknown_column(typed_columns, type_names) if type_names else "does not exist"
            raise StateError(
                f"table {place.table!r} {why}, and the type of {typed_columns!r} is not declared. "
                f'Declare it, for example Fields("{typed_columns} bigint") or Fields("{typed_columns} string")'
            )
        columns += typed_columns
    return Shape(tuple(columns))


def read_columns(store: Store, table: str) -> dict[str, str] | None:
    """Return the columns of a table with the nearest DDL types; None if the table is missing."""
    type_names = describe(store, table)
    return None if type_names is None else nearest(store, type_names)


def describe(store: Store, table: str) -> dict[str, str] | None:
    """Return the columns of a table with the database's own types; None if the table is missing."""
    with store.errors(f"look at table {table!r}"):
        return retry_transient(store, lambda: _describe(store, table))


def nearest(store: Store, type_names: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that have a DDL type, with that type."""
    return {name: ddl for name, kind in type_names.items() if (ddl := store.dialect.ddl_of(kind)) is not None}


def unknown_column(name: str, type_names: Mapping[str, str]) -> str:
    """Return why the type of this column of an existing table is unknown."""
    if name not in type_names:
        return f"has no column {name!r}; it has: {', '.join(type_names)}"
    if not type_names[name]:
        return f"has the column {name!r} without a type"
    return f"has the column {name!r} as {type_names[name]}, which matches no type of a state"


def _describe(store: Store, table: str) -> dict[str, str] | None:
    if not sa.inspect(store.engine).has_table(table):
        _refuse_unfit(store, table)  # a table that another look-up sees
        return None
    return store.dialect.type_names(store.engine, table)


def prepare(place: TablePlace, shape: Shape) -> Shape:
    """Create and check the table, once per process and shape. Safe in several processes.

    Returns the shape with the limits of the existing table, such as the length of its texts.
    """
    store = place.store()
    checked = store.ready.get((place, shape))
    if checked is None:
        with store.errors(f"prepare table {place.table!r}"):
            if not reads_only():
                retry_transient(store, lambda: _make_missing(store, place, shape))
            now = _columns_before(store, place, shape)
            checked = store.ready[place, shape] = _check(store, place, shape)
            store.ready[CheckedTable(place, checked)] = now
    return checked


@dataclass(frozen=True)
class CheckedTable:
    """A table that was checked. Its columns may be altered while a topology runs: each transaction that writes asks."""

    place: TablePlace
    shape: Shape

    def question(self, store: Store) -> list[Statement]:
        """Return what a transaction asks; nothing if this user may not read the table."""
        if self not in store.ready:  # forgotten with a lost connection
            self.check(store)
        known = store.ready.get(self)
        return [] if known is None else [store.dialect.columns_now(self.place.table, self.shape.columns)]

    def is_as_checked(self, store: Store, answer: Any) -> bool:
        return store.ready.get(self) == _read_answer(answer)

    def check(self, store: Store) -> None:
        """Check the table again. Raises StateError if a column no longer keeps its values."""
        with store.errors(f"look at table {self.place.table!r}"):
            now = _columns_now(store, self.place.table, self.shape)
        try:
            with store.errors(f"look at table {self.place.table!r}"):
                _check(store, self.place, self.shape)
        except StateError as error:
            raise StateError(
                f"{error}. It was altered while the topology ran; nothing more of the batch is written. Change it "
                "back, and start the topology again"
            ) from error
        store.ready[self] = now


def _columns_now(store: Store, table: str, shape: Shape) -> Any:
    """Return what `Dialect.columns_now` says now; None if this user may not ask."""
    with store.reading() as connection:
        try:
            return _read_answer(connection.execute(*store.dialect.columns_now(table, shape.columns)))
        except Exception as error:
            if store.dialect.may_not_read(error):
                return None
            raise


def _columns_before(store: Store, place: TablePlace, shape: Shape) -> Any:
    """Read `_columns_now` before the check: what is altered later differs from it. If it fails, the check says why."""
    try:
        return _columns_now(store, place.table, shape)
    except Exception:
        _check(store, place, shape)
        raise


def _read_answer(answer: Any) -> tuple:
    return tuple(map(tuple, answer.fetchall())), tuple(map(tuple, answer.description or ()))


def prepare_ledger(place: TablePlace) -> None:
    """Create only the ledger's tables; the first rows decide the columns of the state's table."""
    store = place.store()
    with store.errors("prepare the ledger"):
        retry_transient(store, lambda: _make_ledger(store))


def create(store: Store, connection: Connection, table: sa.Table) -> bool:
    """Create a missing table. (On MySQL this commits the open transaction.) Who may not create tables can use one that
    is there. Returns whether it was missing.

    Raises StateError for a name that the database would cut: it may be the name of another table then.
    """
    for name in (table.name, *table.columns.keys()):
        if why := store.dialect.cuts(name):
            raise StateError(f"table {table.name!r} in {store.shown} cannot be made: {name!r} {why}")
    inspector = sa.inspect(store.engine)
    if inspector.has_table(table.name, schema=inspector.default_schema_name):
        return False
    own_key = None if table.primary_key else store.dialect.own_key(connection)
    if own_key is not None:
        table.append_column(own_key)
    connection.execute(str(CreateTable(table, if_not_exists=True).compile(dialect=store.engine.dialect)))
    return True


def data_table(store: Store, connection: Connection, name: str, columns: Sequence[Column], keyed: bool) -> sa.Table:
    """Return the definition of a table with these columns; if ``keyed``, the key's columns are the primary key."""
    stored = [
        sa.Column(
            column.name, store.dialect.storage(column),
            primary_key=keyed and column.key, nullable=not column.key, autoincrement=False,
        )
        for column in columns
    ]  # fmt: skip
    return sa.Table(name, sa.MetaData(), *stored, **store.dialect.table_options(connection, keyed))


def _refuse_unfit(store: Store, table: str) -> None:
    if problems := table_problems(store, table):
        raise StateError(f"table {table!r} in {store.shown} {problems[0]}")


def _make_missing(store: Store, place: TablePlace, shape: Shape) -> None:
    """Create what is missing. Who only reads needs no server that takes writes, if nothing is."""
    try:
        _make(store, place, shape)
    except Exception as error:
        there = sa.inspect(store.engine).has_table
        if not store.dialect.is_read_only(driver_error(error) or error) or not (there(LAYOUT) and there(place.table)):
            raise


def _make(store: Store, place: TablePlace, shape: Shape) -> None:
    _refuse_unfit(store, place.table)
    _make_ledger(store)
    with store.writing() as connection:
        has_layout = _has_layout(store, connection, place)
        new = create(store, connection, data_table(store, connection, place.table, shape.columns, bool(shape.keys)))
        if not has_layout:  # after CREATE TABLE, so that a note without a table means a dropped table
            values = (place.table, *_ONE_FILE)
            connection.execute(f"INSERT INTO {LAYOUT} (name, files, routing) VALUES (?, ?, ?)", values)
        key_types.note(store, connection, place.table, shape.columns, new)


def _make_ledger(store: Store) -> None:
    """Create the ledger's tables, once per process, since the driver asks in every batch."""
    if "ledger" in store.ready:
        return
    with store.writing() as connection:
        for table in ledger.tables(store.dialect.table_options(connection, True)):
            create(store, connection, table)
    if not ledger.has_run(store.engine):
        _add_run(store)
    store.ready["ledger"] = True


def _add_run(store: Store) -> None:
    """Add the column to a ledger of the first version, unless another driver does so at this moment."""
    try:
        with store.errors("add the column run to trident_fence"), store.writing() as connection:
            connection.execute(f"ALTER TABLE trident_fence ADD COLUMN {ledger.RUN} varchar(190) NOT NULL DEFAULT ''")
    except StateError:
        if not ledger.has_run(store.engine):
            raise


def _has_layout(store: Store, connection: Connection, place: TablePlace) -> bool:
    """Return whether trident_layout has this table. Raises StateError if the table is gone or in several files."""
    layout = connection.execute(f"SELECT files, routing FROM {LAYOUT} WHERE name = ?", (place.table,)).fetchone()
    if problem := layout_problem(place, layout, sa.inspect(store.engine).has_table(place.table)):
        raise StateError(problem)
    return layout is not None


def layout_problem(place: TablePlace, layout: Sequence[Any] | None, there: bool) -> str | None:
    """Return what is wrong with a row of trident_layout (files, routing). ``there``: whether the table is."""
    if layout is None:
        return None
    if not there:
        return (
            f"table {place.table!r} in {redact_url(place.parsed_url)} is gone: {LAYOUT} has a row for it, and its rows "
            "will not be sent again. Restore the table; or, to begin with an empty one, delete its row from "
            f"{LAYOUT} and the state's row from trident_fence"
        )
    if tuple(layout) == _ONE_FILE:
        return None
    return (
        f"table {place.table!r} lies in {layout[0]} files with routing {layout[1]!r}: an earlier version has spread it "
        "with the option files. Copy the rows of all files into a new table"
    )


def _check(store: Store, place: TablePlace, shape: Shape) -> Shape:
    type_names = _describe(store, place.table) or {}
    problems = column_problems(store, place.table, shape, type_names)
    if problems := problems or key_problems(store, place.table, shape):
        raise StateError(f"table {place.table!r} in {store.shown} {problems[0]}")
    with store.reading() as connection:
        numbered = store.dialect.find_auto_increment(connection, place.table)
    columns = [store.dialect.narrow(column, type_names[column.name]) for column in shape.columns]
    return Shape(tuple(replace(c, without=(*c.without, "null")) if c.name in numbered else c for c in columns))


def table_problems(store: Store, table: str) -> list[str]:
    """Return the problems of an existing table apart from its columns."""
    with store.reading() as connection:
        why = store.dialect.cuts(table) or store.dialect.unfit(connection, table)
    return [] if why is None else [why]


def column_problems(store: Store, table: str, shape: Shape, type_names: dict[str, str]) -> list[str]:
    """Return the problems of an existing table's columns."""
    problems = []
    for column in shape.columns:
        if column.name not in type_names:
            problems.append(unknown_column(column.name, type_names))
        elif why := _unfit(store, column, type_names[column.name]):
            problems.append(f"has the column {column.name!r} as {type_names[column.name]}, which {why}")
    return problems


def _unfit(store: Store, column: Column, type_name: str) -> str | None:
    try:
        if store.dialect.fits(column, type_name):
            return None
    except RefusedValue as refused:
        return refused.reason
    return f"cannot hold {column.ddl}. Change the declaration, or use another table"


def kind_problems(foreign: Collection[str], type_names: Mapping[str, str]) -> list[str]:
    """Return why a map of another kind may not write into the table of an opaque one, which has all columns of
    ``foreign``."""
    if not foreign or not type_names.keys() >= set(foreign):
        return []
    return [
        f"has the columns of kind opaque ({', '.join(foreign)}), and another kind would not move them on: an "
        "opaque map would later take old values for those before its last batch. Use kind opaque; or, to leave it for "
        f"good, drop {', '.join(name for name in foreign if name != 'txid')}"
    ]


def key_problems(store: Store, table: str, shape: Shape) -> list[str]:
    """Return the problems of an existing table's key: no unique index, or texts that fold."""
    keys = {column.name for column in shape.keys}
    if not keys:
        return []
    problems = []
    texts = [column.name for column in shape.keys if column.family == "text"]
    with store.reading() as connection:
        if keys not in store.dialect.unique_keys(connection, table):
            problems.append(
                f"has no primary key or unique constraint on exactly ({', '.join(sorted(keys))}) that covers whole "
                "columns and all rows; without it a replay would write rows twice"
            )
        folded = store.dialect.inexact(connection, table, texts) if texts else {}
    for name, why in folded.items():
        problems.append(f"treats different keys as equal ('ok' and 'OK ', for example): column {name!r} {why}")
    return problems


def location_of(place: TablePlace, beside: Sequence[str] = (), shared: str = "") -> Location:
    """Return the location of a state's tables. Opens nothing. ``beside``: the suffixes of the state's further
    tables."""
    url = place.parsed_url
    names = (place.table, *(f"{place.table}{suffix}" for suffix in beside))
    dialect, where = dialect_of(url), f"table {place.table!r} in {redact_url(url)}"
    return Location(frozenset([dialect.address(url)]), frozenset(map(dialect.fold_name, names)), shared, where)


def one_key(place: TablePlace, shape: Shape) -> Shape:
    """Return the shape after checking that an upsert can only hit the row of its key.

    Called when the table is prepared; checks once per process and shape. Raises StateError for a further unique index.
    """
    store = place.store()
    question = ("one key", place, shape)
    if not shape.keys or question in store.ready:
        return shape
    with store.errors(f"look at the indexes of table {place.table!r}"), store.reading() as connection:
        others = store.dialect.other_unique(connection, place.table, shape.keys)
    if others:
        keys = ", ".join(column.name for column in shape.keys)
        raise StateError(
            f"table {place.table!r} in {store.shown} has another unique index, {', '.join(map(repr, others))}, besides "
            f"the key ({keys}): a row with the same values in it would silently overwrite another row, whatever their "
            "keys. Drop the index or make it non-unique, or use another table"
        )
    store.ready[question] = True
    return shape
