"""The differences between the databases that keep claims."""

from __future__ import annotations

from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from ...databases.error_codes import (
    lost_a_lock_on_mysql,
    lost_a_lock_on_postgresql,
    lost_a_lock_on_sqlite,
    mysql_code_of,
    mysql_is_away,
    mysql_is_read_only,
    postgresql_has_it,
    postgresql_is_away,
    postgresql_is_read_only,
    sqlite_code_of,
    sqlstate_of,
)
from ...databases.sessions import driver_of, pin_engine
from ...errors import DefinitionError

PATIENCE = 5.0
_TOOK_LONG = "57014"  # our own statement_timeout has expired


class SqlDialect:
    """PostgreSQL, and the common ground of most databases. Times are ms since 1970 on the database's clock."""

    now = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
    key = 'TEXT COLLATE "C"'
    driver = "psycopg"
    mark = "%s"
    threads = 2
    arguments: dict[str, Any] = {"connect_timeout": 3, "options": f"-c statement_timeout={int(PATIENCE * 1000)}"}  # noqa: RUF012

    def engine(self, url: URL) -> Engine:
        with driver_of(url):
            engine = create_engine(
                url, pool_size=4, max_overflow=4, pool_timeout=PATIENCE, isolation_level="AUTOCOMMIT",
                pool_pre_ping=False, connect_args=self.arguments,
            )  # fmt: skip
        pin_engine(engine)
        return engine

    def tables(self, table: str) -> list[str]:
        return [
            f"CREATE TABLE IF NOT EXISTS {table} ({self.columns()})",
            f"CREATE INDEX IF NOT EXISTS {table}_changed ON {table} (changed)",
        ]

    def columns(self) -> str:
        return (
            f"fingerprint {self.key} NOT NULL PRIMARY KEY, payload VARCHAR(128) NOT NULL, status VARCHAR(10) NOT NULL, "
            "owner VARCHAR(100) NOT NULL, lease BIGINT NOT NULL, created BIGINT NOT NULL, changed BIGINT NOT NULL, "
            "outcome VARCHAR(20)"
        )

    def insert(self, into: str) -> str:
        """Return an insert that skips rows whose fingerprint exists; its row count excludes them."""
        return f"INSERT INTO {into} ON CONFLICT (fingerprint) DO NOTHING"

    def delete(self, table: str, where: str, most: int) -> str:
        return (
            f"DELETE FROM {table} WHERE fingerprint IN "
            f"(SELECT fingerprint FROM {table} WHERE {where} ORDER BY fingerprint LIMIT {most})"
        )

    def marked(self, text: str) -> str:
        return text.replace("?", self.mark)

    def text(self, value: Any) -> str:
        return str(value)

    def begin(self, connection: Connection) -> None:
        """Called before a write."""

    def commit(self, connection: Connection) -> None:
        """Called after each operation."""

    def is_race(self, error: Exception) -> bool:
        """Return whether another process made the table at the same moment."""
        return isinstance(error, DBAPIError) and postgresql_has_it(sqlstate_of(error.orig))

    def is_passing(self, error: Exception) -> bool:
        """Return whether the database is unavailable or busy."""
        if not isinstance(error, DBAPIError):
            return True  # no connection in time: the pool's TimeoutError, a socket's OSError
        code = sqlstate_of(error.orig)
        if error.connection_invalidated or code in ("", _TOOK_LONG):
            return True
        return lost_a_lock_on_postgresql(code) or postgresql_is_away(code) or postgresql_is_read_only(code)


class MySqlDialect(SqlDialect):
    """MySQL and MariaDB. A fingerprint is stored as bytes, so that no collation makes two of them equal."""

    now = "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)"
    key = "VARBINARY(700)"
    driver = "pymysql"
    arguments = {"connect_timeout": 3, "read_timeout": PATIENCE, "write_timeout": PATIENCE, "charset": "utf8mb4"}  # noqa: RUF012

    def tables(self, table: str) -> list[str]:
        columns = f"{self.columns()}, KEY {table}_changed (changed)"
        return [f"CREATE TABLE IF NOT EXISTS {table} ({columns}) ENGINE = InnoDB CHARACTER SET utf8mb4"]

    def insert(self, into: str) -> str:
        return f"INSERT IGNORE INTO {into}"  # lengths are checked before, so only the key can be ignored

    def delete(self, table: str, where: str, most: int) -> str:
        return f"DELETE FROM {table} WHERE {where} ORDER BY changed LIMIT {most}"

    def text(self, value: Any) -> str:
        return value.decode() if isinstance(value, bytes) else str(value)

    def is_passing(self, error: Exception) -> bool:
        if not isinstance(error, DBAPIError) or error.connection_invalidated:
            return True
        code = mysql_code_of(error.orig)
        return lost_a_lock_on_mysql(code) or mysql_is_away(code) or mysql_is_read_only(error.orig)


class SqliteDialect(SqlDialect):
    """SQLite: one file, one writer at a time, several processes of one machine. A commit is on disk when it returns."""

    now = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
    key = "TEXT"
    driver = "sqlite3"
    mark = "?"
    threads = 1

    def engine(self, url: URL) -> Engine:
        if url.database in (None, "", ":memory:"):
            raise DefinitionError("claims need a file that outlives the gateway, such as sqlite:///events.db")
        arguments = {"timeout": PATIENCE, "isolation_level": None, "check_same_thread": False}
        engine = create_engine(url, connect_args=arguments)

        @event.listens_for(engine, "connect")
        def prepare(raw: Any, _: Any) -> None:
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 4000"):
                raw.execute(f"PRAGMA {pragma}").close()

        return engine

    def insert(self, into: str) -> str:
        return f"INSERT OR IGNORE INTO {into}"

    def begin(self, connection: Connection) -> None:
        if not connection.connection.driver_connection.in_transaction:  # type: ignore[union-attr]
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    def commit(self, connection: Connection) -> None:
        if connection.connection.driver_connection.in_transaction:  # type: ignore[union-attr]
            connection.exec_driver_sql("COMMIT")

    def is_passing(self, error: Exception) -> bool:
        return isinstance(error, DBAPIError) and lost_a_lock_on_sqlite(sqlite_code_of(error.orig))


def dialect_of(url: URL) -> SqlDialect:
    """Return the dialect of a URL. Raises DefinitionError for an unknown database."""
    dialects: dict[str, type[SqlDialect]] = {
        "sqlite": SqliteDialect, "mysql": MySqlDialect, "mariadb": MySqlDialect, "postgresql": SqlDialect,
    }  # fmt: skip
    name = url.get_backend_name()
    if name not in dialects:
        raise DefinitionError(
            f"no store for {name!r}; a store's URL begins with sqlite:///, mysql+pymysql://, postgresql+psycopg://, "
            "or redis://"
        )
    return dialects[name]()
