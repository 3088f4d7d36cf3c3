"""MySQL 8 and MariaDB, through PyMySQL: only SQL that both accept."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from sqlalchemy.engine import URL, Engine

from trident_py.errors import DefinitionError
from trident_py.sessions import pin_mysql
from trident_py.sqlcodes import lost_a_lock_on_mysql, mysql_is_away

from ....columns.values import DECODERS, Column
from ...connection import Connection, driver_connection, pinned
from ..base import names
from ..server import ServerDialect
from .bulk import MySqlBulk, code_of
from .maps import MySqlMaps

_KEYS_PER_READ = 1_000
_DUPLICATES = {1050, 1062, 1586}
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


class MySql(ServerDialect, MySqlMaps, MySqlBulk):
    """The dialect of ``mysql+pymysql://`` and ``mariadb+pymysql://``."""

    name = "mysql"
    title = "MySQL"
    port = 3306
    families = _DECLARED
    changing = _CHANGING
    limits = _LIMITS
    shared = " LOCK IN SHARE MODE"
    exclusive = " FOR UPDATE"

    def named(self, connection: Connection, table: str) -> str:
        folds = connection.execute("SELECT @@lower_case_table_names").fetchone()[0]
        return table.lower() if folds else table

    def absolute(self, url: URL) -> URL:
        if url.get_driver_name() != "pymysql" or not url.database:
            raise DefinitionError("a MySQL state needs a URL such as mysql+pymysql://user:password@host:3306/database")
        return url

    def connect(self, engine: Engine) -> Connection:
        raw = driver_connection(engine, autocommit=True, charset="utf8mb4", local_infile=True, defer_connect=True)
        raw._local_infile = False  # only MySqlBulk.load may answer a request for a file
        raw.connect()
        connection: Any = pinned(raw, pin_mysql)
        found = connection.execute("SELECT @@max_allowed_packet, @@local_infile").fetchone()
        connection.packet, connection.takes_files = found
        return connection

    def alive(self, connection: Any) -> bool:
        try:
            connection.raw.ping(reconnect=False)
        except Exception:
            return False
        return True

    def begin(self, connection: Any, seconds: float) -> None:
        wait = max(int(seconds), 1)  # for row and table locks: the server's default for tables is a day
        if connection.wait != wait:
            connection.execute(f"SET SESSION innodb_lock_wait_timeout = {wait}, lock_wait_timeout = {wait}")
            connection.wait = wait
        connection.execute("START TRANSACTION")

    def is_lock(self, error: BaseException) -> bool:
        return lost_a_lock_on_mysql(code_of(error))

    def is_lost(self, error: BaseException) -> bool:
        code = code_of(error)
        broken = code is None and type(error).__name__ == "InternalError"  # PyMySQL: packets out of order
        return mysql_is_away(code) or broken or isinstance(error, OSError)

    def is_duplicate(self, error: BaseException) -> bool:
        return code_of(error) in _DUPLICATES

    def fits(self, column: Column, type_name: str) -> bool:
        self.refuse_changing(type_name)
        known = self.declared(type_name)
        if known is None:
            return False
        there = Column(column.name, known)
        if column.family == "boolean":
            return known in ("boolean", "tinyint")
        if column.family == "json":
            return there.family in ("json", "text")
        if column.family == there.family == "integer":
            return there.bits >= column.bits
        if column.family == "decimal":
            return there.family == "decimal" and there.sizes == ([*column.sizes, 0] if column.sizes else [10, 0])[:2]
        return column.family == there.family

    def narrowed(self, column: Column, type_name: str) -> Column:
        """A TEXT or BLOB type's name decides its length. (MariaDB truncates a longer value in INSERT ... SELECT.)"""
        made = super().narrowed(column, type_name)
        found = _LOB.match(type_name.upper())
        most = 0 if found is None else _LOB_BYTES[found[1] or ""]
        if made.family == "binary" and most:
            return replace(made, ddl=f"{made.base}({min([most, *made.sizes[:1]])})")
        return replace(made, most=most or made.most)

    def decoder(self, column: Column) -> Callable[[Any], Any] | None:
        return DECODERS[column.family] if column.family in ("boolean", "json") else None

    def inexact(self, connection: Connection, table: str, names: Sequence[str]) -> dict[str, str]:
        found = connection.execute(
            "SELECT column_name, collation_name FROM information_schema.columns"
            " WHERE table_schema = database() AND table_name = ? AND collation_name IS NOT NULL",
            (table,),
        ).fetchall()
        good = ("utf8mb4_nopad_bin", "utf8mb4_0900_bin", "binary")
        return {
            name: f"has the collation {collation}; change it to utf8mb4_0900_bin (MySQL) or utf8mb4_nopad_bin (MariaDB)"
            for name, collation in found
            if name in names and collation not in good and not collation.endswith("_nopad_bin")
        }

    def read(
        self, connection: Connection, table: str, keys: Sequence[Column], columns: Sequence[Column],
        asked: Sequence[tuple],
    ) -> list[tuple | None]:  # fmt: skip
        width = len(keys)
        one = "?" if width == 1 else f"({', '.join('?' * width)})"
        which = names(keys) if width == 1 else f"({names(keys)})"
        plain = [self.decoder(key) for key in keys]
        found: dict[tuple, tuple] = {}
        for start in range(0, len(asked), _KEYS_PER_READ):
            part = asked[start : start + _KEYS_PER_READ]
            text = f'SELECT {names([*keys, *columns])} FROM "{table}" WHERE {which} IN ({", ".join([one] * len(part))})'
            for row in connection.execute(text, list(chain.from_iterable(part))).fetchall():
                key = tuple(d(v) if d else v for d, v in zip(plain, row, strict=False))
                found[_comparable(key)] = row[width:]
        return [found.get(_comparable(key)) for key in asked]


def _comparable(key: tuple) -> tuple:
    """The key with dates, times and decimals as text, the form in which keys are asked."""
    return tuple(v if isinstance(v, str | int | float | bytes) else _text(v) for v in key)


def _text(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="microseconds")
    return str(value)


MYSQL = MySql()
