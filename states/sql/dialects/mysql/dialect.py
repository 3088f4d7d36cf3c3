"""MySQL 8 and MariaDB, through PyMySQL: only SQL that both accept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy.engine import URL, Engine

from trident_py.databases.error_codes import is_lock_conflict_on_mysql, mysql_code_of, mysql_is_away, mysql_is_read_only
from trident_py.databases.sessions import pin_mysql
from trident_py.errors import DefinitionError, StateError

from ...connection import Connection, Statement, driver_connection, pin_session
from .maps import MySqlMaps

_DUPLICATES = {1050, 1062, 1586}
_NO_PRIVILEGE = {1142, 1143}
_SHOWN = 100  # bytes of a long statement, in an error
_SEVERAL = 1 << 16  # CLIENT_MULTI_STATEMENTS: a request may have several statements


class MySql(MySqlMaps):
    """The dialect of ``mysql+pymysql://`` and ``mariadb+pymysql://``."""

    name = "mysql"
    title = "MySQL"
    port = 3306
    shared = " LOCK IN SHARE MODE"
    exclusive = " FOR UPDATE"
    selects = 2_000

    def fold_on_server(self, connection: Connection, table: str) -> str:
        folds = connection.execute("SELECT @@lower_case_table_names").fetchone()[0]
        return table.lower() if folds else table

    def measure_table(self, connection: Any, table: str) -> int | None:
        """Return the server's estimate."""
        if connection.names_rows:  # MySQL would tell what it has told within a day
            connection.execute("SET SESSION information_schema_stats_expiry = 0")
        text = "SELECT sum(data_length + index_length) FROM information_schema.tables"
        where = "WHERE table_schema = database() AND table_name = ?"
        (size,) = connection.execute(f"{text} {where}", (table,)).fetchone()
        return None if size is None else int(size)

    def absolute(self, url: URL) -> URL:
        if url.get_driver_name() != "pymysql" or not url.database:
            raise DefinitionError("a MySQL state needs a URL such as mysql+pymysql://user:password@host:3306/database")
        return url

    def connect(self, engine: Engine) -> Connection:
        _, options = engine.dialect.create_connect_args(engine.url)
        flags = options.get("client_flag", 0) | _SEVERAL
        raw = driver_connection(
            engine, autocommit=True, charset="utf8mb4", local_infile=True, defer_connect=True, client_flag=flags
        )
        raw._local_infile = False  # only MySqlBulk.load may answer a request for a file
        raw.connect()
        takes_several = raw.server_capabilities & _SEVERAL
        connection: Any = pin_session(raw, pin_mysql, _cursor if takes_several else None)
        limits = connection.execute("SELECT @@max_allowed_packet, @@local_infile").fetchone()
        connection.packet, connection.takes_files = limits
        connection.names_rows = names_rows(raw.get_server_info())
        _refuse_longer(raw, connection.packet)
        return connection

    def alive(self, connection: Any) -> bool:
        try:
            connection.raw.ping(reconnect=False)
        except Exception:
            return False
        return True

    def begin(self, connection: Any, seconds: float, first: Sequence[Statement] = ()) -> list[Any]:
        wait = max(int(seconds), 1)  # for row and table locks: the server's default for tables is a day
        before: list[Statement] = []
        if connection.wait != wait:
            before = [(f"SET SESSION innodb_lock_wait_timeout = {wait}, lock_wait_timeout = {wait}", ())]
        answers = connection.together([*before, ("START TRANSACTION", ()), *first])
        connection.wait = wait
        return list(answers[len(before) + 1 :])

    def is_lock(self, error: BaseException) -> bool:
        return is_lock_conflict_on_mysql(mysql_code_of(error))

    def is_lost(self, error: BaseException) -> bool:
        code = mysql_code_of(error)
        broken = code is None and type(error).__name__ == "InternalError"  # PyMySQL: packets out of order
        return mysql_is_away(code) or broken or isinstance(error, OSError)

    def is_read_only(self, error: BaseException) -> bool:
        return mysql_is_read_only(error)

    def is_duplicate(self, error: BaseException) -> bool:
        return mysql_code_of(error) in _DUPLICATES

    def may_not_read(self, error: BaseException) -> bool:
        return mysql_code_of(error) in _NO_PRIVILEGE


def names_rows(version: str) -> bool:
    """Return whether this server takes ``INSERT ... VALUES (...) AS name``: MySQL from 8.0.19 on; MariaDB does not."""
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    return numbers is not None and "mariadb" not in version.lower() and tuple(map(int, numbers.groups())) >= (8, 0, 19)


def _refuse_longer(raw: Any, packet: int) -> None:
    """Raise StateError for a statement that is longer than a packet. The server ends the connection that sends one, as
    if it were gone itself, and the batch would be replayed for ever."""
    send = raw._execute_command

    def check(command: int, sql: bytes) -> None:
        if len(sql) + 1 >= packet:
            begins = sql[:_SHOWN].decode(errors="replace").partition("(")[0].strip()
            raise StateError(
                f"a statement of {len(sql)} bytes ({begins} ...) is longer than the server takes (max_allowed_packet "
                f"is {packet}). Raise that limit at the server, or make the value shorter; nothing of it is written"
            )
        send(command, sql)

    raw._execute_command = check


def _cursor(raw: Any) -> Any:
    return raw.cursor()


MYSQL = MySql()
