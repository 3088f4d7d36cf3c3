"""What a MySQL table is like: its types and keys, and which rows it could refuse."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import mysql as types
from sqlalchemy.ext.compiler import compiles

from trident_py.errors import StateError

from ....columns.arrow import KeyedRows
from ....columns.values import Column
from ...connection import Connection
from ..server import ServerDialect

_DEFINITIONS = 256
_KEY_LENGTH = 190
_NUMBERED = re.compile(r" AUTO_INCREMENT=\d+")
_WANT_KEYS = ("sql_require_primary_key", "innodb_force_primary_key")
_HERE = "table_schema = database() AND table_name = ?"
_CHARACTERS = ("utf8mb4", "utf8mb3", "utf8", "latin1", "ascii", "binary")
_WIDTH = r"(?:\(\d+\))?"
_DECLARED = [
    (r"TINYINT\(1\)|BOOL", "boolean"), (rf"TINYINT{_WIDTH}", "tinyint"), (rf"SMALLINT{_WIDTH}", "smallint"),
    (rf"BIGINT{_WIDTH}", "bigint"), (rf"(?:INTEGER|INT){_WIDTH}", "int"),
    (r"(?:NATIONAL )?VARCHAR\(\d+\)|NVARCHAR\(\d+\)|(?:TINY|MEDIUM|LONG)?TEXT(?:\(\d+\))?", "string"),
    (r"VARBINARY\(\d+\)|(?:TINY|MEDIUM|LONG)?BLOB(?:\(\d+\))?", "binary"), (r"DOUBLE", "double"),
    (r"DATETIME\(6\)", "timestamp"), (r"DATE", "date"),
]  # fmt: skip

_CHANGING = [
    (r"N?CHAR\b|(?:NATIONAL )?CHARACTER(?! VARYING)\b|NATIONAL CHAR\b", "pads or drops blanks; use VARCHAR"),
    (r"BINARY\b", "pads or drops zero bytes; use VARBINARY"),
    (r"(?:ENUM|SET)\b", "may store another text; use VARCHAR"),
    (r"DATETIME(?:\([0-5]\))?$", "rounds times; use DATETIME(6)"),
    (r"TIMESTAMP\b", "ends in 2038 and may turn NULL into the current time; use DATETIME(6)"),
    (r"FLOAT\b", "rounds to 24 bits; use DOUBLE"),
    (r"DOUBLE ?\(", "rounds to its digits; use DOUBLE"),
    (r"JSON\b", "reformats JSON, which may change numbers; use LONGTEXT"),
]  # fmt: skip
_LOB = re.compile(r"(TINY|MEDIUM|LONG)?(?:TEXT|BLOB)")
_LOB_BYTES = {"TINY": 2**8 - 1, "": 2**16 - 1, "MEDIUM": 2**24 - 1, "LONG": 0}
_LIMITS = {"double": ("infinity",), "timestamp": ("zone",)}
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


class Invisible(sa.BigInteger):
    """A column that ``SELECT *`` leaves out, where the server has such."""


@compiles(Invisible)
def _invisible(*_: Any, **__: Any) -> str:
    return "BIGINT /*!80023 INVISIBLE */ /*M!100303 INVISIBLE */"


OWN_KEY = "trident_id"


class MySqlTable(ServerDialect):
    """The methods of `MySql` about tables."""

    families = _DECLARED
    changing = _CHANGING
    limits = _LIMITS
    decoded = ("boolean", "json")

    def storage(self, column: Column) -> Any:
        sizes = column.sizes
        integers = {8: types.TINYINT, 16: types.SMALLINT, 32: types.INTEGER, 64: types.BIGINT}
        by_family: dict[str, Callable[[], Any]] = {
            "integer": lambda: integers[column.bits](),
            "double": types.DOUBLE,
            "text": lambda: types.VARCHAR(*sizes[:1] or [_KEY_LENGTH]) if column.key or sizes else types.LONGTEXT(),
            "boolean": types.BOOLEAN,
            "binary": lambda: types.VARBINARY(_KEY_LENGTH) if column.key else types.LONGBLOB(),
            "date": types.DATE,
            "timestamp": lambda: types.DATETIME(fsp=6),
            "decimal": lambda: types.DECIMAL(*column.digits),
            "json": types.LONGTEXT,
        }
        return by_family[column.family]()

    def fits(self, column: Column, type_name: str) -> bool:
        return (column.family == "boolean" and self.ddl_of(type_name) == "tinyint") or super().fits(column, type_name)

    def narrow(self, column: Column, type_name: str) -> Column:
        """Limit the length of a TEXT or BLOB by its type's name. (MariaDB truncates a longer value in INSERT ...
        SELECT.)"""
        column = super().narrow(column, type_name)
        lob = _LOB.match(type_name.upper())
        most = 0 if lob is None else _LOB_BYTES[lob[1] or ""]
        if column.family == "binary" and most:
            return replace(column, ddl=f"{column.base}({min([most, *column.sizes[:1]])})")
        return replace(column, most=most or column.most)

    def inexact(self, connection: Connection, table: str, names: Sequence[str]) -> dict[str, str]:
        columns = connection.execute(
            "SELECT column_name, collation_name FROM information_schema.columns"
            " WHERE table_schema = database() AND table_name = ? AND collation_name IS NOT NULL",
            (table,),
        ).fetchall()
        good = ("utf8mb4_nopad_bin", "utf8mb4_0900_bin", "binary")
        return {
            name: f"has the collation {collation}; change it to utf8mb4_0900_bin (MySQL) or utf8mb4_nopad_bin (MariaDB)"
            for name, collation in columns
            if name in names and collation not in good and not collation.endswith("_nopad_bin")
        }

    def table_options(self, connection: Connection, keyed: bool) -> dict[str, Any]:
        version = connection.execute("SELECT version()").fetchone()[0]
        exact = "utf8mb4_nopad_bin" if "mariadb" in version.lower() else "utf8mb4_0900_bin"
        return {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": exact}

    def type_names(self, engine: sa.Engine, table: str) -> dict[str, str]:
        """Leave out the column that `own_key` adds."""
        return {name: kind for name, kind in super().type_names(engine, table).items() if name != OWN_KEY}

    def own_key(self, connection: Connection) -> sa.Column | None:
        """Return a number that nobody sees, for servers that replicate rows by their key. (MySQL can make one, too:
        then it does, if it has to.)"""
        text = f"SHOW VARIABLES WHERE variable_name IN ({', '.join(map(repr, _WANT_KEYS))}) AND value = 'ON'"
        wanted = connection.execute(text).fetchone() is not None
        return sa.Column(OWN_KEY, Invisible, primary_key=True) if wanted else None

    def unfit(self, connection: Connection, table: str) -> str | None:
        kind, engine = _kind_and_engine(connection, table)
        if kind == "":
            return None
        if kind != "BASE TABLE":  # view, sequence, system versioned
            return f"is a {kind.lower()}; a state needs a table"
        if engine != "InnoDB":
            return _without_transactions(table, engine)
        supported = ", ".join(f"'{name}'" for name in _CHARACTERS)
        other = connection.execute(
            f"SELECT column_name, character_set_name FROM information_schema.columns WHERE {_HERE}"
            f" AND character_set_name NOT IN ({supported}) LIMIT 1",
            (table,),
        ).fetchone()
        return None if other is None else (
            f"has the column {other[0]!r} in the character set {other[1]}, which may change or refuse a text. "
            "Make it utf8mb4"
        )

    def find_auto_increment(self, connection: Connection, table: str) -> set[str]:
        return _find_auto_increment(connection, table)

    def unique_keys(self, connection: Connection, table: str) -> list[set[str]]:
        """Return the columns of each unique index without prefixes or expressions."""
        keys: dict[str, set[str]] = {}
        partial: set[str] = set()
        for index, column, part in _unique_columns(connection, table):
            if part is not None or column is None:  # a prefix, an expression
                partial.add(index)
            else:
                keys.setdefault(index, set()).add(column)
        return [columns for index, columns in keys.items() if index not in partial]

    def other_unique(self, connection: Connection, table: str, keys: Sequence[Column]) -> list[str]:
        """Return the keys that lack a whole column of the key. ON DUPLICATE KEY UPDATE changes a row that conflicts in
        any."""
        columns: dict[str, set[str]] = {}
        for index, column, part in _unique_columns(connection, table):
            columns.setdefault(index, set()).update([column] if part is None and column is not None else [])
        return [index for index, names in columns.items() if not {key.name for key in keys} <= names]


class Refusing(Enum):
    """For which reasons a table may refuse a row."""

    KEY = "a value, or a key that is there"
    MORE = "also a constraint, a partition or another key"
    ANY = "also a trigger; or a refused row would leave a trace, such as a gap in the numbers that the table makes"


class _Definition(NamedTuple):
    """Properties that follow from a table's definition alone."""

    refusing: Refusing
    needed: frozenset[str]
    """NOT NULL columns without a default: IGNORE would invent a value."""


_definitions: dict[str, _Definition] = {}


def find_refusing(connection: Any, table: str, rows: KeyedRows) -> Refusing:
    """Return what the table may refuse of these rows. Holds until the transaction ends."""
    connection.execute(f'SELECT 1 FROM "{table}" LIMIT 0')  # locks the table's definition until the end
    text = _NUMBERED.sub("", connection.execute(f'SHOW CREATE TABLE "{table}"').fetchone()[1])
    if text not in _definitions:
        if len(_definitions) >= _DEFINITIONS:
            _definitions.clear()
        _definitions[text] = _Definition(_query_refusing(connection, table), _list_required(connection, table))
    definition = _definitions[text]
    if definition.refusing is Refusing.ANY or definition.needed - {column.name for column in rows.columns}:
        return Refusing.ANY
    heard = _shows_triggers(connection, table) and not connection.execute(
        "SHOW TRIGGERS WHERE `Table` = ?", (table,)
    ).fetchone()
    return definition.refusing if heard else Refusing.ANY


def refuse_engine(connection: Any, table: str) -> bool:
    """Return whether this is a base table (not a view). Raises StateError if its engine has no transactions."""
    kind, engine = _kind_and_engine(connection, table)
    if kind == "BASE TABLE" and engine != "InnoDB":
        raise StateError(f"table {table!r} {_without_transactions(table, engine)}")
    return kind == "BASE TABLE"


def _without_transactions(table: str, engine: str) -> str:
    return (
        f"uses the engine {engine}, which has no transactions: half a batch could stay. "
        f'ALTER TABLE "{table}" ENGINE = InnoDB'
    )


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


def _query_refusing(connection: Any, table: str) -> Refusing:
    if not refuse_engine(connection, table):
        return Refusing.ANY
    text = f"SELECT {', '.join(f'({query})' for query in _REASONS.values())}"
    if not any(connection.execute(text, (table,) * len(_REASONS)).fetchone()):
        return Refusing.KEY
    return Refusing.ANY if _find_auto_increment(connection, table) else Refusing.MORE


def _find_auto_increment(connection: Any, table: str) -> set[str]:
    text = f"SELECT column_name FROM information_schema.columns WHERE {_HERE} AND extra LIKE '%auto_increment%'"
    return {row[0] for row in connection.execute(text, (table,)).fetchall()}


def _list_required(connection: Any, table: str) -> frozenset[str]:
    columns = connection.execute(
        f"SELECT column_name FROM information_schema.columns WHERE {_HERE} AND is_nullable = 'NO'"
        " AND column_default IS NULL AND extra NOT LIKE '%auto_increment%'",
        (table,),
    )
    return frozenset(row[0] for row in columns.fetchall())


def _shows_triggers(connection: Any, table: str) -> bool:
    """Return whether the server shows this user the table's triggers: it needs the privilege TRIGGER. Asked once for
    each connection."""
    tables = connection.__dict__.setdefault("shows_triggers", {})
    if table not in tables:
        tables[table] = _may_see_triggers(connection, table)
    return bool(tables[table])


def _may_see_triggers(connection: Any, table: str) -> bool:
    user, _, host = connection.execute("SELECT current_user()").fetchone()[0].rpartition("@")
    grantee = f"'{user}'@'{host}'"
    text = (
        "SELECT (SELECT count(*) FROM information_schema.user_privileges WHERE grantee = ?"
        " AND privilege_type = 'TRIGGER')"
        " + (SELECT count(*) FROM information_schema.schema_privileges WHERE grantee = ?"
        " AND privilege_type = 'TRIGGER' AND database() LIKE table_schema)"
        f" + (SELECT count(*) FROM information_schema.table_privileges WHERE grantee = ?"
        f" AND privilege_type = 'TRIGGER' AND {_HERE})"
    )
    return bool(connection.execute(text, (grantee, grantee, grantee, table)).fetchone()[0])
