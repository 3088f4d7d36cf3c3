"""Rows in bulk on PostgreSQL, by COPY."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy.engine import Engine

from trident_py.sqlcodes import sqlstate_of

from ....columns.keyed import KeyedRows
from ....columns.values import Column
from ..base import OnConflict, names
from ..bulk import Loaded, blocks, packets
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
        self, connection: Any, table: str, columns: Sequence[Column], data: Iterable[bytes],
        ignore: bool = False, temporary: bool = False,
    ) -> Loaded:  # fmt: skip
        """Sends text in the form of `bulk.blocks` by COPY; a refused row is an error. ``ignore`` is not supported."""
        if ignore:
            raise NotImplementedError("COPY ignores no rows; load into a temporary table")
        where = self.aside if temporary else ""
        quoted = f'"{table}"'
        with connection.raw.cursor() as cursor:
            with cursor.copy(f"COPY {where}{quoted} ({names(columns)}) FROM STDIN (ENCODING 'UTF8')") as copy:
                for packet in packets(data):
                    copy.write(packet)
            return Loaded(cursor.rowcount, 0, 0)

    def direct(self, connection: Any, table: str, rows: KeyedRows, known: float, every: bool) -> int | None:
        """Copies the rows into the table. COPY fails at an existing key, but only after it was sent all rows: then,
        and if a key is ``known``, looks up the keys first and copies the rows whose key is missing.
        """
        for look in (False,) if every else (True,) if known else (False, True):
            connection.execute("SAVEPOINT trident_direct")
            try:
                data = _missing_lines(self, connection, table, rows) if look else _unique_lines(rows)
                inserted = self.load(connection, table, rows.columns, data).records
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
        """Creates a temporary table with the column types of ``table`` and without its constraints."""
        first, *others = columns
        connection.execute(
            f'CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS SELECT 0::bigint AS "{first.name}", {names(others)}'
            f' FROM "{table}" WITH NO DATA'
        )

    def fill(
        self, connection: Any, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array],
        temporary: bool = False,
    ) -> None:  # fmt: skip
        """Writes all rows; a refused row is an error."""
        self.load(connection, table, columns, blocks(columns, arrays), temporary=temporary)

    def refuses(self, error: BaseException) -> bool:
        """Whether the error is the table's refusal of a row, rather than a failure of the server."""
        state = sqlstate_of(error)
        return state[:2] in _OBJECTIONS or state in (_RAISED, _LIMIT)


def _unique_lines(rows: KeyedRows) -> Iterator[bytes]:
    for positions in rows.ordered():
        part = rows.take(positions.filter(rows.first(positions)))
        yield from blocks(part.columns, part.arrays)


def _missing_lines(dialect: PostgreSqlBulk, connection: Any, table: str, rows: KeyedRows) -> Iterator[bytes]:
    """The rows whose key is missing in the table; of equal keys, the first."""
    unique = rows.unique()
    keys = [Column("trident_row", "bigint"), *rows.keys]
    arrays = [pa.array(range(len(unique)), pa.int64()), *(rows.arrays[i].take(unique) for i in rows.at)]
    connection.execute(f"DROP TABLE IF EXISTS pg_temp.{_KEYS}")
    connection.execute(
        f"CREATE TEMPORARY TABLE {_KEYS} ON COMMIT DROP AS"
        f' SELECT 0::bigint AS trident_row, {names(rows.keys)} FROM "{table}" WITH NO DATA'
    )
    dialect.load(connection, _KEYS, keys, blocks(keys, arrays), temporary=True)
    same = " AND ".join(f't."{key.name}" = k."{key.name}"' for key in rows.keys)
    packed = connection.execute(
        f"SELECT string_agg(int8send(trident_row), ''::bytea) FROM pg_temp.{_KEYS} AS k"
        f' WHERE NOT EXISTS (SELECT 1 FROM "{table}" AS t WHERE {same})'
    ).fetchone()[0]
    numbers = array("q", bytes(packed or b""))
    if sys.byteorder == "little":
        numbers.byteswap()
    missing = pa.array(numbers, pa.int64())
    part = rows.take(unique.take(missing.take(pc.array_sort_indices(missing))))
    return blocks(part.columns, part.arrays)
