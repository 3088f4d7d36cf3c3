"""Rows in bulk on PostgreSQL, by COPY."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy.engine import Engine

from trident_py.databases.error_codes import sqlstate_of

from ....columns.keyed import KeyedRows
from ....columns.values import Column
from ..base import OnConflict, check_taken, names
from ..bulk import blocks, packets
from .binary import binary_blocks, binary_kinds
from .table import PostgreSqlTable

_OBJECTIONS = ("22", "23", "44")
_RAISED = "P0001"
_LIMIT = "54000"  # a key too long for its index, for example
_DUPLICATE = "23505"
_KEYS = "trident_keys"
_UNSUPPORTED = "0A000"


class PostgreSqlBulk(OnConflict, PostgreSqlTable):
    """The bulk methods of `PostgreSql`."""

    temporary = "TABLE"
    aside = "pg_temp."
    joined = "JOIN"
    same = "{0} IS NOT DISTINCT FROM {1}"
    exact = '{0}::text COLLATE "C"'
    stage_order = ""  # a temporary table is read in insertion order

    def load(
        self, connection: Any, table: str, columns: Sequence[Column], parts: Iterable[Sequence[pa.Array]],
        temporary: bool = False,
    ) -> int:  # fmt: skip
        """Send rows, given in parts of columns, by COPY and return their number. A refused row is an error, and so is
        one that is left out."""
        sent = 0

        def counted() -> Iterator[Sequence[pa.Array]]:
            nonlocal sent
            for part in parts:
                sent += len(part[0])
                yield part

        others = counted()
        first = next(others, None)
        if first is None:
            return 0
        rows = chain([first], others)
        where = f'{self.aside if temporary else ""}"{table}"'
        kinds = binary_kinds(connection, where, columns, first)
        form = "ENCODING 'UTF8'" if kinds is None else "FORMAT BINARY"
        data = _text(columns, rows) if kinds is None else binary_blocks(kinds, rows)
        with connection.raw.cursor() as cursor:
            with cursor.copy(f"COPY {where} ({names(columns)}) FROM STDIN ({form})") as copy:
                for packet in packets(data):
                    copy.write(packet)
            check_taken(table, sent, cursor.rowcount)
        return sent

    def direct(self, connection: Any, table: str, rows: KeyedRows, known: float, every: bool) -> int | None:
        """Copy the rows into the table. COPY fails at an existing key, but only after it was sent all rows: then, and
        if a key is ``known``, looks up the keys first and copies the rows whose key is missing."""
        for look in (False,) if every else (True,) if known else (False, True):
            connection.execute("SAVEPOINT trident_direct")
            try:
                parts = _missing(self, connection, table, rows) if look else _unique(rows)
                inserted = self.load(connection, table, rows.columns, parts)
            except Exception as error:
                if not self.refuses(error) and sqlstate_of(error) != _UNSUPPORTED:
                    raise
                connection.execute("ROLLBACK TO SAVEPOINT trident_direct")
                if sqlstate_of(error) != _DUPLICATE:
                    return None
            else:
                taken = inserted == len(rows) or not every
                connection.execute(f"{'RELEASE' if taken else 'ROLLBACK TO'} SAVEPOINT trident_direct")
                return inserted if taken else None
        return None

    def stage(self, engine: Engine, connection: Any, table: str, columns: Sequence[Column], name: str) -> None:
        """Create a temporary table with the column types of ``table`` and without its constraints."""
        first, *others = columns
        connection.execute(
            f'CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS SELECT 0::bigint AS "{first.name}", {names(others)}'
            f' FROM "{table}" WITH NO DATA'
        )

    def fill(
        self, connection: Any, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array],
        temporary: bool = False,
    ) -> None:  # fmt: skip
        """Write all rows; a refused row is an error."""
        self.load(connection, table, columns, [arrays], temporary)

    def refuses(self, error: BaseException) -> bool:
        """Return whether the error is the table's refusal of a row, rather than a failure of the server."""
        state = sqlstate_of(error)
        return state[:2] in _OBJECTIONS or state in (_RAISED, _LIMIT)


def _text(columns: Sequence[Column], parts: Iterable[Sequence[pa.Array]]) -> Iterator[bytes]:
    for part in parts:
        yield from blocks(columns, part)


def _unique(rows: KeyedRows) -> Iterator[list[pa.Array]]:
    """Yield the first row of each key, in key order, part by part."""
    for positions in rows.ordered():
        yield rows.take(positions.filter(rows.first(positions))).arrays


def _missing(dialect: PostgreSqlBulk, connection: Any, table: str, rows: KeyedRows) -> Iterator[list[pa.Array]]:
    """Yield the rows whose key is missing in the table, as `_unique` has them. Only these are sorted."""
    keys = [Column("trident_row", "bigint"), *rows.keys]
    arrays = [pa.array(np.arange(len(rows), dtype=np.int64)), *(rows.arrays[i] for i in rows.at)]
    connection.execute(f"DROP TABLE IF EXISTS pg_temp.{_KEYS}")
    connection.execute(
        f"CREATE TEMPORARY TABLE {_KEYS} ON COMMIT DROP AS"
        f' SELECT 0::bigint AS trident_row, {names(rows.keys)} FROM "{table}" WITH NO DATA'
    )
    dialect.load(connection, _KEYS, keys, [arrays], True)
    same = " AND ".join(f't."{key.name}" = k."{key.name}"' for key in rows.keys)
    packed = connection.execute(
        f"SELECT string_agg(int8send(trident_row), ''::bytea) FROM pg_temp.{_KEYS} AS k"
        f' WHERE NOT EXISTS (SELECT 1 FROM "{table}" AS t WHERE {same})'
    ).fetchone()[0]
    numbers = array("q", bytes(packed or b""))
    if sys.byteorder == "little":
        numbers.byteswap()
    missing = pa.array(numbers, pa.int64())
    return _unique(rows.take(missing.take(pc.array_sort_indices(missing))))
