"""A state's table: its columns, its file or files, made when missing and checked when there."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL
from sqlalchemy.schema import CreateTable

from trident_py.errors import StateError
from trident_py.tuples import Fields

from . import ledger
from .columns import Column, typed
from .store import Store, parsed, patiently, store_of

ROUTING = "crc32-1"
LAYOUT = sa.Table(
    "trident_layout",
    sa.MetaData(),
    sa.Column("name", sa.String(190), primary_key=True),
    sa.Column("files", sa.Integer, nullable=False),
    sa.Column("routing", sa.String(40), nullable=False),
)


@dataclass(frozen=True)
class Place:
    """Where a table is: a database, or a fixed number of files of one."""

    url: str
    table: str
    files: int = 1

    def urls(self) -> list[URL]:
        first = parsed(self.url)
        return [store_of(first).dialect.part(first, index) for index in range(self.files)]

    def stores(self) -> list[Store]:
        """The stores of this process, by file."""
        return [store_of(url) for url in self.urls()]

    def file_of(self, key: Sequence[Any]) -> int:
        """The file of an encoded key: a function of the key alone, recorded in trident_layout."""
        return 0 if self.files == 1 else zlib.crc32(repr(tuple(key)).encode()) % self.files


@dataclass(frozen=True)
class Shape:
    """What the table must look like; ``columns`` are all of them, the key's first."""

    columns: tuple[Column, ...]

    @property
    def keys(self) -> list[Column]:
        return [column for column in self.columns if column.key]

    @property
    def others(self) -> list[Column]:
        return [column for column in self.columns if not column.key]


def shape_of(place: Place, keys: Fields, others: Fields) -> Shape:
    """The columns with their types, from the declaration or from the table that is there.

    Raises StateError if a type is neither declared nor known.
    """
    known = existing(place.stores()[0], place.table) or {}
    made = [typed(keys, True, known), typed(others, False, known)]
    for each in made:
        if isinstance(each, str):
            why = f"has no column {each!r}" if known else "does not exist"
            raise StateError(
                f"table {place.table!r} {why}, and the type of {each!r} is not declared. "
                f'Declare it, for example Fields("{each} bigint") or Fields("{each} string")'
            )
    return Shape(tuple(column for each in made for column in each if isinstance(column, Column)))


def existing(store: Store, table: str) -> dict[str, str] | None:
    """The columns of a table with the nearest DDL types; None if there is no such table."""
    with store.errors(f"look at table {table!r}"):
        found = patiently(store, lambda: _described(store, table))
    if found is None:
        return None
    return {name: ddl for name, kind in found.items() if (ddl := store.dialect.declared(kind)) is not None}


def _described(store: Store, table: str) -> dict[str, str] | None:
    inspector = sa.inspect(store.engine)
    if not inspector.has_table(table):
        return None
    return {column["name"]: str(column["type"]) for column in inspector.get_columns(table)}


def prepare(place: Place, shape: Shape) -> None:
    """Makes and checks the table in every file, once per process and shape. Safe in several processes."""
    for index, store in enumerate(place.stores()):
        if (place, shape) in store.ready:
            continue
        with store.errors(f"prepare table {place.table!r}"):
            patiently(store, lambda s=store, i=index: _make(s, place, shape, i))  # type: ignore[misc]
            _check(store, place, shape)
        store.ready.add((place, shape))


def prepare_ledger(place: Place) -> None:
    """The ledger alone, for a table whose columns the first rows will decide."""
    for store in place.stores():
        with store.errors("prepare the ledger"), store.writing() as connection:
            connection.execute(_ddl(store, ledger.TABLE))


def _make(store: Store, place: Place, shape: Shape, index: int) -> None:
    data = sa.Table(
        place.table,
        sa.MetaData(),
        *(
            sa.Column(
                each.name, store.dialect.storage(each),
                primary_key=each.key, nullable=not each.key, autoincrement=False,
            )
            for each in shape.columns
        ),
        **store.dialect.table_options(),
    )
    with store.writing() as connection:
        if index == 0:
            connection.execute(_ddl(store, LAYOUT))
            _check_layout(connection, place)
        connection.execute(_ddl(store, ledger.TABLE))
        connection.execute(_ddl(store, data))


def _ddl(store: Store, table: sa.Table) -> str:
    return str(CreateTable(table, if_not_exists=True).compile(dialect=store.engine.dialect))


def _check_layout(connection: Any, place: Place) -> None:
    connection.execute(
        "INSERT INTO trident_layout (name, files, routing) SELECT ?, ?, ?"
        " WHERE NOT EXISTS (SELECT 1 FROM trident_layout WHERE name = ?)",
        (place.table, place.files, ROUTING, place.table),
    )
    found = connection.execute(
        "SELECT files, routing FROM trident_layout WHERE name = ?", (place.table,)
    ).fetchone()
    if tuple(found) != (place.files, ROUTING):
        raise StateError(
            f"table {place.table!r} lies in {found[0]} file(s) with routing {found[1]!r}, asked for are "
            f"{place.files} with {ROUTING!r}. The number is fixed when a table is made: use files={found[0]}"
        )


def _check(store: Store, place: Place, shape: Shape) -> None:
    found = _described(store, place.table) or {}
    for column in shape.columns:
        if column.name not in found:
            raise StateError(
                f"table {place.table!r} in {store.shown} has no column {column.name!r}; "
                f"it has: {', '.join(found)}"
            )
        if not store.dialect.fits(column, found[column.name]):
            raise StateError(
                f"table {place.table!r} in {store.shown}: column {column.name!r} is {found[column.name]}, "
                f"which does not hold {column.ddl}. Change the declaration, or use another table"
            )
    inspector = sa.inspect(store.engine)
    keys = {column.name for column in shape.keys}
    unique = [inspector.get_pk_constraint(place.table)["constrained_columns"]]
    unique += [each["column_names"] for each in inspector.get_unique_constraints(place.table)]
    if not any(set(each) == keys for each in unique):
        raise StateError(
            f"table {place.table!r} in {store.shown} has no primary key or unique constraint on exactly "
            f"({', '.join(sorted(keys))}); without it a replay would write rows twice"
        )
