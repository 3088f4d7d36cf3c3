"""What a PostgreSQL table is like: its types and keys; and rows in bulk, by COPY."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy.dialects import postgresql as types
from sqlalchemy.engine import Engine

from trident_py.databases.error_codes import sqlstate_of

from ....columns.arrow import KeyedRows
from ....columns.values import Column
from ...connection import Connection
from ..base import KEYS, check_taken, names
from ..bulk import blocks, packets
from ..server import ServerDialect
from .binary import binary_blocks, binary_kinds

_DECLARED = [
    (r"BOOLEAN", "boolean"), (r"SMALLINT", "smallint"), (r"BIGINT", "bigint"), (r"INTEGER", "int"),
    (r"TEXT|(?:VARCHAR|CHARACTER VARYING)(?:\(\d+\))?", "string"), (r"BYTEA", "binary"),
    (r"DOUBLE PRECISION", "double"), (r"TIMESTAMP(?:\(6\))?(?: WITHOUT TIME ZONE)?", "timestamp"), (r"DATE", "date"),
    (r"JSON", "json"),
]  # fmt: skip

_CHANGING = [
    (r"N?CHAR\b|CHARACTER(?! VARYING)\b", "pads or drops blanks; use VARCHAR"),
    (r"TIMESTAMP ?\([0-5]\)", "rounds times; use TIMESTAMP"),
    (r"CITEXT\b", "treats texts as equal that differ only in case; use TEXT"),
    (r"JSONB\b", "changes numbers such as 1e30 and -0.0; use JSON or TEXT"),
    (r"REAL\b", "rounds to 24 bits; use DOUBLE PRECISION"),
    (r"NUMERIC\(\d+, ?-", "rounds to tens or hundreds; use another scale"),
]
_LIMITS = {"text": ("NUL",), "timestamp": ("zone",)}
_NAME = 63  # NAMEDATALEN - 1
_KINDS = {
    "v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence", "c": "a type",
    "i": "an index", "I": "an index", "t": "a TOAST table",
}  # fmt: skip
_PROPERTIES = (
    "SELECT (SELECT nspname FROM pg_namespace AS n WHERE n.oid = relnamespace), current_schema(),"
    " relkind, relpersistence, EXISTS (SELECT 1 FROM pg_rewrite WHERE ev_class = c.oid),"
    " relkind = 'r' AND EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = c.oid), row_security_active(c.oid)"
    " FROM pg_class AS c WHERE oid = to_regclass(?)"
)
_OBJECTIONS = ("22", "23", "44")
_RAISED = "P0001"
_LIMIT = "54000"  # a key too long for its index, for example
_DUPLICATE = "23505"
_UNSUPPORTED = "0A000"


class PostgreSqlBulk(ServerDialect):
    """The methods of `PostgreSql` about tables, and about rows in bulk."""

    families = _DECLARED
    changing = _CHANGING
    limits = _LIMITS
    decoded = ("json",)
    holds_any_decimal = True
    temporary = "TABLE"
    aside = "pg_temp."
    joined = "JOIN"
    same = "{0} IS NOT DISTINCT FROM {1}"
    exact = '{0}::text COLLATE "C"'
    stage_order = ""  # a temporary table is read in insertion order

    def storage(self, column: Column) -> Any:
        sizes = column.sizes
        integers = {8: types.SMALLINT, 16: types.SMALLINT, 32: types.INTEGER, 64: types.BIGINT}
        by_family: dict[str, Callable[[], Any]] = {
            "integer": lambda: integers[column.bits](),
            "double": types.DOUBLE_PRECISION,
            "text": lambda: types.VARCHAR(sizes[0], collation="C") if sizes else types.TEXT(collation="C"),
            "boolean": types.BOOLEAN,
            "binary": types.BYTEA,
            "date": types.DATE,
            "timestamp": types.TIMESTAMP,
            "decimal": lambda: types.NUMERIC(*column.digits),
            "json": types.TEXT,
        }
        return by_family[column.family]()

    def inexact(self, connection: Connection, table: str, names: Sequence[str]) -> dict[str, str]:
        columns = connection.execute(
            "SELECT a.attname, c.collname FROM"
            " (SELECT attname, attcollation FROM pg_attribute WHERE attrelid = ?::regclass"
            " UNION SELECT k.attname, u.id FROM pg_index i CROSS JOIN LATERAL"
            " unnest(i.indkey::int2[], i.indcollation::oid[]) AS u(number, id)"
            " JOIN pg_attribute k ON k.attrelid = i.indrelid AND k.attnum = u.number"
            " WHERE i.indisunique AND i.indrelid = ?::regclass) AS a(attname, attcollation)"
            " JOIN pg_collation c ON c.oid = a.attcollation WHERE NOT c.collisdeterministic",
            (f'"{table}"',) * 2,
        ).fetchall()
        return {
            name: f'has the non-deterministic collation {collation}; change it to "C"'
            for name, collation in columns
            if name in names
        }

    def type_names(self, engine: Engine, table: str) -> dict[str, str]:
        with engine.connect() as connection:
            rows = connection.exec_driver_sql(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
                " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                (f'"{table}"',),
            ).fetchall()
        columns = {name: kind if kind.startswith('"') else kind.upper() for name, kind in rows}
        for long, short in (("CHARACTER VARYING", "VARCHAR"), (" WITHOUT TIME ZONE", "")):
            columns = {name: kind.replace(long, short) for name, kind in columns.items()}
        return columns

    def cuts(self, name: str) -> str | None:
        size = len(name.encode())
        return None if size <= _NAME else f"has {size} bytes as a name, of which PostgreSQL keeps {_NAME}; shorten it"

    def unfit(self, connection: Connection, table: str) -> str | None:
        properties = connection.execute(_PROPERTIES, (f'"{table}"',)).fetchone()
        if properties is None:
            return None
        schema, current, kind, persistence, has_rules, has_children, hides_rows = properties
        if kind not in ("r", "p"):
            return f"is {_KINDS.get(kind, 'something else')}; a state needs a table"
        if schema != current and persistence != "t":
            return (
                f"is in the schema {schema!r}, while this user's tables are created in {current!r} (search_path): "
                "another user would have another ledger for it. Name the one schema in the URL: "
                f"?options=-csearch_path%3D{schema}"
            )
        reasons = {
            "is UNLOGGED: a crash of the server empties it, while the ledger still has its batches as complete. "
            f'ALTER TABLE "{table}" SET LOGGED': persistence == "u",
            "is temporary; a state needs a permanent table": persistence == "t",
            "has rules, which may do something other than write the row. Drop them, or use a trigger": has_rules,
            "has child tables, whose rows would be read as its own. Make it a partitioned table": has_children,
            "hides rows from this user by row-level security. Grant BYPASSRLS, or turn it off": hides_rows,
        }
        return next((why for why, is_so in reasons.items() if is_so), None)

    def unique_keys(self, connection: Connection, table: str) -> list[set[str]]:
        keys = connection.execute(
            "SELECT array_agg(a.attname::text) FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indrelid"
            " AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])"
            " WHERE i.indrelid = to_regclass(?) AND i.indisunique AND i.indisvalid AND i.indimmediate"
            " AND NOT i.indisexclusion AND i.indpred IS NULL AND i.indexprs IS NULL GROUP BY i.indexrelid",
            (f'"{table}"',),
        ).fetchall()
        return [set(row[0]) for row in keys]

    def load(
        self, connection: Any, table: str, columns: Sequence[Column], parts: Iterable[Sequence[pa.Array]],
        temporary: bool = False,
    ) -> int:  # fmt: skip
        """Send rows, given in parts of columns, by COPY and return their number. A refused row is an error, and so is
        one that is left out."""
        sent = 0

        def count() -> Iterator[Sequence[pa.Array]]:
            nonlocal sent
            for part in parts:
                sent += len(part[0])
                yield part

        others = count()
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
                parts = _select_missing(self, connection, table, rows) if look else _unique(rows)
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
        self.load(connection, table, columns, [arrays], temporary)

    def refuses(self, error: BaseException) -> bool:
        state = sqlstate_of(error)
        return state[:2] in _OBJECTIONS or state in (_RAISED, _LIMIT)


def _text(columns: Sequence[Column], parts: Iterable[Sequence[pa.Array]]) -> Iterator[bytes]:
    for part in parts:
        yield from blocks(columns, part)


def _unique(rows: KeyedRows) -> Iterator[list[pa.Array]]:
    """Yield the first row of each key, in key order, part by part."""
    for positions in rows.in_key_order():
        yield rows.take(positions.filter(rows.first(positions))).arrays


def _select_missing(dialect: PostgreSqlBulk, connection: Any, table: str, rows: KeyedRows) -> Iterator[list[pa.Array]]:
    """Yield the rows whose key is missing in the table, as `_unique` has them. Only these are sorted."""
    keys = [Column("trident_row", "bigint"), *rows.keys]
    arrays = [pa.array(np.arange(len(rows), dtype=np.int64)), *(rows.arrays[i] for i in rows.at)]
    connection.execute(f"DROP TABLE IF EXISTS pg_temp.{KEYS}")
    connection.execute(
        f"CREATE TEMPORARY TABLE {KEYS} ON COMMIT DROP AS"
        f' SELECT 0::bigint AS trident_row, {names(rows.keys)} FROM "{table}" WITH NO DATA'
    )
    dialect.load(connection, KEYS, keys, [arrays], True)
    same = " AND ".join(f't."{key.name}" = k."{key.name}"' for key in rows.keys)
    packed = connection.execute(
        f"SELECT string_agg(int8send(trident_row), ''::bytea) FROM pg_temp.{KEYS} AS k"
        f' WHERE NOT EXISTS (SELECT 1 FROM "{table}" AS t WHERE {same})'
    ).fetchone()[0]
    numbers = array("q", bytes(packed or b""))
    if sys.byteorder == "little":
        numbers.byteswap()
    missing = pa.array(numbers, pa.int64())
    return _unique(rows.take(missing.take(pc.array_sort_indices(missing))))
