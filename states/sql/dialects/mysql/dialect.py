"""MySQL 8 and MariaDB, through PyMySQL: only SQL that both accept."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import URL, Engine

from trident_py.errors import DefinitionError
from trident_py.sessions import pin_mysql
from trident_py.sqlcodes import lost_a_lock_on_mysql, mysql_code_of, mysql_is_away

from ...connection import Connection, driver_connection, pinned
from .maps import MySqlMaps

_DUPLICATES = {1050, 1062, 1586}


class MySql(MySqlMaps):
    """The dialect of ``mysql+pymysql://`` and ``mariadb+pymysql://``."""

    name = "mysql"
    title = "MySQL"
    port = 3306
    shared = " LOCK IN SHARE MODE"
    exclusive = " FOR UPDATE"
    selects = 2_000

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
        limits = connection.execute("SELECT @@max_allowed_packet, @@local_infile").fetchone()
        connection.packet, connection.takes_files = limits
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
        return lost_a_lock_on_mysql(mysql_code_of(error))

    def is_lost(self, error: BaseException) -> bool:
        code = mysql_code_of(error)
        broken = code is None and type(error).__name__ == "InternalError"  # PyMySQL: packets out of order
        return mysql_is_away(code) or broken or isinstance(error, OSError)

    def is_duplicate(self, error: BaseException) -> bool:
        return mysql_code_of(error) in _DUPLICATES


MYSQL = MySql()
