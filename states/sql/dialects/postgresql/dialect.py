"""PostgreSQL, through psycopg 3."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.dialects import postgresql as types
from sqlalchemy.engine import URL, Engine

from trident_py.errors import DefinitionError
from trident_py.sessions import local_postgresql, pin_postgresql
from trident_py.sqlcodes import lost_a_lock_on_postgresql, postgresql_is_away, sqlstate_of

from ....columns.values import DECODERS, Column
from ...connection import Connection, driver_connection, pinned
from ..server import ServerDialect
from .bulk import PostgreSqlBulk
from .maps import CASTS, PostgreSqlMaps
from .table import type_names, unfit, unique_keys

_DUPLICATES = {"23505", "42P07", "42710"}  # any of the three if two processes create one table at once
_PASSING = re.compile(
    "starting up|shutting down|recovery|too many|connection slots|not yet accepting|terminating connection"
    "|no more connections|try again|timeout|cannot connect"  # of a pooler
)
# A failed connection has no code, and its text is in the server's language: an unknown error counts as passing.
_FINAL = re.compile(
    r"FATAL:.*(does not exist|authentication failed|pg_hba\.conf|permission denied|not currently accepting|unrecognized"
    r"|invalid|unsupported|certificate)",
    re.DOTALL,
)
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


class PostgreSql(ServerDialect, PostgreSqlMaps, PostgreSqlBulk):
    """The dialect of ``postgresql+psycopg://``."""

    name = "postgresql"
    title = "PostgreSQL"
    port = 5432
    families = _DECLARED
    changing = _CHANGING
    limits = _LIMITS
    shared = " FOR SHARE"
    exclusive = " FOR UPDATE"

    def absolute(self, url: URL) -> URL:
        if url.get_driver_name() != "psycopg" or not url.database:
            raise DefinitionError(
                "a PostgreSQL state needs a URL such as postgresql+psycopg://user:password@host:5432/database"
            )
        return url

    def connect(self, engine: Engine) -> Connection:
        from psycopg.types.string import TextLoader

        raw = driver_connection(engine, autocommit=True, prepare_threshold=None)  # poolers keep no prepared statements
        raw.adapters.register_loader("json", TextLoader)  # JSON columns unparsed, like texts
        return pinned(raw, pin_postgresql)

    def alive(self, connection: Connection) -> bool:
        try:
            connection.execute("SELECT 1")
        except Exception:
            return False
        return True

    def begin(self, connection: Connection, seconds: float) -> None:
        connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        connection.execute(local_postgresql(max(int(seconds * 1000), 1)))

    def is_lock(self, error: BaseException) -> bool:
        return lost_a_lock_on_postgresql(sqlstate_of(error))

    def is_lost(self, error: BaseException) -> bool:
        state = sqlstate_of(error)
        if state:
            return postgresql_is_away(state)
        if _FINAL.search(str(error)) and not _PASSING.search(str(error)):
            return False  # the server answers: a wrong password, an unknown database
        return type(error).__name__ in ("OperationalError", "InterfaceError") or isinstance(error, OSError)

    def is_duplicate(self, error: BaseException) -> bool:
        return sqlstate_of(error) in _DUPLICATES

    def storage(self, column: Column) -> Any:
        sizes = column.sizes
        integers = {"tinyint": types.SMALLINT, "byte": types.SMALLINT, "smallint": types.SMALLINT,
                    "short": types.SMALLINT, "int": types.INTEGER, "integer": types.INTEGER}  # fmt: skip
        made: dict[str, Callable[[], Any]] = {
            "integer": lambda: integers.get(column.base, types.BIGINT)(),
            "double": types.DOUBLE_PRECISION,
            "text": lambda: types.VARCHAR(sizes[0], collation="C") if sizes else types.TEXT(collation="C"),
            "boolean": types.BOOLEAN,
            "binary": types.BYTEA,
            "date": types.DATE,
            "timestamp": types.TIMESTAMP,
            "decimal": lambda: types.NUMERIC(*[*sizes, 0][:2] if sizes else (10, 0)),
            "json": types.TEXT,
        }
        return made[column.family]()

    def fits(self, column: Column, type_name: str) -> bool:
        self.refuse_changing(type_name)
        known = self.declared(type_name)
        if known is None:
            return False
        there = Column(column.name, known)
        if column.family == "json":
            return there.family in ("json", "text")
        if column.family == there.family == "integer":
            return there.bits >= min(column.bits, 64)
        if column.family == "decimal":
            exact = ([*column.sizes, 0] if column.sizes else [10, 0])[:2]
            return there.family == "decimal" and there.sizes in ([], exact)
        return column.family == there.family

    def decoder(self, column: Column) -> Callable[[Any], Any] | None:
        return DECODERS["json"] if column.family == "json" else None

    def table_options(self, connection: Connection, keyed: bool) -> dict[str, Any]:
        return {}

    def inexact(self, connection: Connection, table: str, names: Sequence[str]) -> dict[str, str]:
        found = connection.execute(
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
            for name, collation in found
            if name in names
        }

    def type_names(self, engine: Engine, table: str) -> dict[str, str]:
        with engine.connect() as connection:
            return type_names(connection, table)

    def unfit(self, connection: Connection, table: str) -> str | None:
        return unfit(connection, table)

    def numbered(self, connection: Connection, table: str) -> set[str]:
        return set()  # null stays null or is an error: defaults apply to unnamed columns only

    def unique_keys(self, connection: Connection, table: str) -> list[set[str]]:
        return unique_keys(connection, table)

    def read(
        self, connection: Connection, table: str, keys: Sequence[Column], columns: Sequence[Column],
        asked: Sequence[tuple],
    ) -> list[tuple | None]:  # fmt: skip
        if not asked:
            return []
        arrays = ", ".join(f"?::{CASTS[key.family]}" for key in keys)
        same = " AND ".join(f't."{key.name}" = q.k{i}' for i, key in enumerate(keys))
        wanted = ", ".join(f't."{each.name}"' for each in [keys[0], *columns])
        columns_of_q = ", ".join([*(f"k{i}" for i in range(len(keys))), "at"])
        text = (
            f"SELECT {wanted} FROM unnest({arrays}) WITH ORDINALITY AS q({columns_of_q})"
            f' LEFT JOIN "{table}" AS t ON {same} ORDER BY q.at'
        )
        rows = connection.execute(text, [list(values) for values in zip(*asked, strict=True)]).fetchall()
        return [None if row[0] is None else row[1:] for row in rows]


POSTGRESQL = PostgreSql()
