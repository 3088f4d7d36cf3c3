"""Asks the server which rows a MySQL table could refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy.dialects import mysql as types

from trident_py.errors import StateError

from ....columns.keyed import KeyedRows
from ....columns.values import Column
from ...connection import Connection

_KNOWN = 256
_KEY_LENGTH = 190
_NUMBERED = re.compile(r" AUTO_INCREMENT=\d+")
_HERE = "table_schema = database() AND table_name = ?"
_CHARACTERS = ("utf8mb4", "utf8mb3", "utf8", "latin1", "ascii", "binary")
_REASONS = {
    "foreign key": f"SELECT count(*) FROM information_schema.table_constraints WHERE {_HERE}"
    " AND constraint_type = 'FOREIGN KEY'",
    "CHECK": f"SELECT count(*) FROM information_schema.table_constraints WHERE {_HERE} AND constraint_type = 'CHECK'",
    "generated column": f"SELECT count(*) FROM information_schema.columns WHERE {_HERE}"
    " AND generation_expression <> ''",
    "partitions": f"SELECT count(*) FROM information_schema.partitions WHERE {_HERE} AND partition_name IS NOT NULL",
    "second unique index": f"SELECT count(DISTINCT index_name) - 1 FROM information_schema.statistics WHERE {_HERE}"
    " AND non_unique = 0",
}


def storage(column: Column) -> Any:
    sizes = column.sizes
    integers = {"tinyint": types.TINYINT, "byte": types.TINYINT, "smallint": types.SMALLINT,
                "short": types.SMALLINT, "int": types.INTEGER, "integer": types.INTEGER}  # fmt: skip
    made: dict[str, Callable[[], Any]] = {
        "integer": lambda: integers.get(column.base, types.BIGINT)(),
        "double": types.DOUBLE,
        "text": lambda: types.VARCHAR(*sizes[:1] or [_KEY_LENGTH]) if column.key or sizes else types.LONGTEXT(),
        "boolean": types.BOOLEAN,
        "binary": lambda: types.VARBINARY(_KEY_LENGTH) if column.key else types.LONGBLOB(),
        "date": types.DATE,
        "timestamp": lambda: types.DATETIME(fsp=6),
        "decimal": lambda: types.DECIMAL(*[*sizes, 0][:2] if sizes else (10, 0)),
        "json": types.LONGTEXT,
    }
    return made[column.family]()


def table_options(connection: Connection, keyed: bool) -> dict[str, Any]:
    version = connection.execute("SELECT version()").fetchone()[0]
    exact = "utf8mb4_nopad_bin" if "mariadb" in version.lower() else "utf8mb4_0900_bin"
    return {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": exact}


class _Definition(NamedTuple):
    """Properties that follow from a table's definition alone."""

    plain: bool
    needed: frozenset[str]
    """NOT NULL columns without a default: IGNORE would invent a value."""


_definitions: dict[str, _Definition] = {}


def takes_every_row(connection: Any, table: str, rows: KeyedRows) -> bool:
    """Whether the table can refuse nothing but a value or its one key. Holds until the transaction ends."""
    connection.execute(f'SELECT 1 FROM "{table}" LIMIT 0')  # locks the table's definition until the end
    found = connection.execute(f'SHOW CREATE TABLE "{table}"').fetchone()
    text = _NUMBERED.sub("", found[1])
    if text not in _definitions:
        if len(_definitions) >= _KNOWN:
            _definitions.clear()
        _definitions[text] = _Definition(_is_plain(connection, table), _needed(connection, table))
    definition = _definitions[text]
    if not definition.plain or definition.needed - {column.name for column in rows.columns}:
        return False
    return _shows_triggers(connection, table) and not connection.execute(
        "SHOW TRIGGERS WHERE `Table` = ?", (table,)
    ).fetchone()


def unfit(connection: Any, table: str) -> str | None:
    """Why the table cannot hold a state; None for a plain or a missing table."""
    kind, engine = _kind_and_engine(connection, table)
    if kind == "":
        return None
    if kind != "BASE TABLE":  # view, sequence, system versioned
        return f"is a {kind.lower()}; a state needs a table"
    if engine != "InnoDB":
        return (
            f"uses the engine {engine}, which has no transactions: half a batch could stay. "
            f'ALTER TABLE "{table}" ENGINE = InnoDB'
        )
    known = ", ".join(f"'{name}'" for name in _CHARACTERS)
    found = connection.execute(
        f"SELECT column_name, character_set_name FROM information_schema.columns WHERE {_HERE}"
        f" AND character_set_name NOT IN ({known}) LIMIT 1",
        (table,),
    ).fetchone()
    return None if found is None else (
        f"has the column {found[0]!r} in the character set {found[1]}, which may change or refuse a text. "
        "Make it utf8mb4"
    )


def unique_keys(connection: Any, table: str) -> list[set[str]]:
    """The columns of each unique index without prefixes or expressions."""
    whole: dict[str, set[str]] = {}
    partial: set[str] = set()
    for index, column, part in _unique_columns(connection, table):
        if part is not None or column is None:  # a prefix, an expression
            partial.add(index)
        else:
            whole.setdefault(index, set()).add(column)
    return [columns for index, columns in whole.items() if index not in partial]


def numbered(connection: Any, table: str) -> set[str]:
    """The auto-increment columns, in which NULL becomes the next number."""
    text = f"SELECT column_name FROM information_schema.columns WHERE {_HERE} AND extra LIKE '%auto_increment%'"
    return {row[0] for row in connection.execute(text, (table,)).fetchall()}


def refuse_engine(connection: Any, table: str) -> bool:
    """Whether this is a base table (not a view). Raises StateError if its engine has no transactions."""
    kind, engine = _kind_and_engine(connection, table)
    if kind == "BASE TABLE" and engine != "InnoDB":
        raise StateError(
            f"table {table!r} uses the engine {engine}, which has no transactions: half a batch could stay. "
            f"ALTER TABLE {table} ENGINE = InnoDB"
        )
    return kind == "BASE TABLE"


def other_unique(connection: Any, table: str, keys: set[str]) -> list[str]:
    """Unique indexes in which rows of different keys can conflict: those that lack a whole column of the key."""
    whole: dict[str, set[str]] = {}
    for index, column, part in _unique_columns(connection, table):
        whole.setdefault(index, set()).update([column] if part is None and column is not None else [])
    return [index for index, columns in whole.items() if not keys <= columns]


def _unique_columns(connection: Any, table: str) -> list[tuple[str, str | None, int | None]]:
    """Index, column and prefix length of each part of each unique index."""
    text = (
        "SELECT index_name, column_name, sub_part FROM information_schema.statistics"
        f" WHERE {_HERE} AND non_unique = 0 ORDER BY index_name"
    )
    return list(connection.execute(text, (table,)).fetchall())


def _kind_and_engine(connection: Any, table: str) -> tuple[str, str]:
    text = f"SELECT table_type, engine FROM information_schema.tables WHERE {_HERE}"
    return connection.execute(text, (table,)).fetchone() or ("", "")


def _is_plain(connection: Any, table: str) -> bool:
    if not refuse_engine(connection, table):
        return False
    text = f"SELECT {', '.join(f'({each})' for each in _REASONS.values())}"
    return not any(connection.execute(text, (table,) * len(_REASONS)).fetchone())


def _needed(connection: Any, table: str) -> frozenset[str]:
    found = connection.execute(
        f"SELECT column_name FROM information_schema.columns WHERE {_HERE} AND is_nullable = 'NO'"
        " AND column_default IS NULL AND extra NOT LIKE '%auto_increment%'",
        (table,),
    )
    return frozenset(row[0] for row in found.fetchall())


def _shows_triggers(connection: Any, table: str) -> bool:
    """Whether the server shows this user the table's triggers: it needs the privilege TRIGGER. Asked once for each
    connection."""
    known = connection.__dict__.setdefault("shows_triggers", {})
    if table not in known:
        known[table] = _may_see_triggers(connection, table)
    return bool(known[table])


def _may_see_triggers(connection: Any, table: str) -> bool:
    user, _, host = connection.execute("SELECT current_user()").fetchone()[0].rpartition("@")
    who = f"'{user}'@'{host}'"
    text = (
        "SELECT (SELECT count(*) FROM information_schema.user_privileges WHERE grantee = ?"
        " AND privilege_type = 'TRIGGER')"
        " + (SELECT count(*) FROM information_schema.schema_privileges WHERE grantee = ?"
        " AND privilege_type = 'TRIGGER' AND database() LIKE table_schema)"
        f" + (SELECT count(*) FROM information_schema.table_privileges WHERE grantee = ?"
        f" AND privilege_type = 'TRIGGER' AND {_HERE})"
    )
    return bool(connection.execute(text, (who, who, who, table)).fetchone()[0])
