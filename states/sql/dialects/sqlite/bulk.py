"""Rows in bulk on SQLite, by the driver's executemany, since SQLite has no load command."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.schema import CreateTable

from ....columns.keyed import KeyedRows
from ....columns.values import Column
from ..base import OnConflict, check_taken, insert_text
from .table import SqliteTable


class SqliteBulk(OnConflict, SqliteTable):
    """The bulk methods of `Sqlite`."""

    temporary = "TABLE"
    aside = "temp."
    joined = "CROSS JOIN"
    same = "{0} IS {1}"
    exact = "{0} COLLATE BINARY"
    stage_order = " ORDER BY trident_row"

    def direct(self, connection: Any, table: str, rows: KeyedRows, known: float, every: bool) -> int | None:
        """Insert the rows that have a new key; return how many, or None if the table refuses one or a trigger may have
        left one out."""
        ordered = rows.take(pa.concat_arrays(list(rows.ordered())))
        connection.execute("SAVEPOINT trident_direct")
        text = f"{insert_text(table, rows.columns)}{self.unless_there(rows.keys)}"
        try:
            inserted = connection.executemany(text, ordered.python()).rowcount
        except Exception as error:
            if not self.refuses(error):
                raise
            inserted = None
        if inserted is None or (inserted < len(rows) and (every or _has_triggers(connection, table))):
            connection.execute("ROLLBACK TO SAVEPOINT trident_direct")
            return None
        connection.execute("RELEASE SAVEPOINT trident_direct")
        return int(inserted)

    def stage(self, engine: Engine, connection: Any, table: str, columns: Sequence[Column], name: str) -> None:
        """Create a temporary table that accepts every row for ``table``."""
        stored = [sa.Column(c.name, self.storage(c), primary_key=i == 0) for i, c in enumerate(columns)]
        temporary = sa.Table(name, sa.MetaData(), *stored, prefixes=["TEMPORARY"])
        connection.execute(str(CreateTable(temporary).compile(dialect=engine.dialect)))

    def fill(
        self, connection: Any, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array],
        temporary: bool = False,
    ) -> None:  # fmt: skip
        """Write all rows; a refused row is an error."""
        rows = KeyedRows(columns, arrays)
        check_taken(table, len(rows), connection.executemany(insert_text(table, columns), rows.python()).rowcount)

    def refuses(self, error: BaseException) -> bool:
        """Return whether the error is the table's refusal of a row."""
        return isinstance(error, sqlite3.IntegrityError | sqlite3.DataError)


def _has_triggers(connection: Any, table: str) -> bool:
    text = "SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND lower(tbl_name) = lower(?)"
    return connection.execute(text, (table,)).fetchone() is not None
