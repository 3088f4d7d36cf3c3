"""Claims in one SQL table: SQLite, MySQL / MariaDB, PostgreSQL.

Every step is one statement that decides alone (an insert that skips existing rows, a conditional update). So no
transaction spans two steps, and a crash between them leaves a claim with a lease.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ...databases.error_codes import (
    is_lock_conflict_on_mysql,
    is_lock_conflict_on_postgresql,
    is_lock_conflict_on_sqlite,
    mysql_code_of,
    mysql_is_away,
    mysql_is_read_only,
    postgresql_has_it,
    postgresql_is_lost,
    postgresql_is_read_only,
    sqlite_code_of,
    sqlstate_of,
)
from ...databases.sessions import driver_of, pin_engine
from ...errors import DefinitionError
from ...model.retry import again_for
from ...model.secrets import hide, redact_url, secrets_in
from .claims import NEW, PROCESSED, PRODUCED, TABLE, Claim, ClaimAnswer, ClaimEntry, by_outcome, store_error

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
        arguments = dict(self.arguments)
        if "options" in arguments and "options" in url.query:  # what the URL says has precedence
            arguments["options"] += f" {url.query['options']}"
        with driver_of(url):
            engine = create_engine(
                url, pool_size=4, max_overflow=4, pool_timeout=PATIENCE, isolation_level="AUTOCOMMIT",
                pool_pre_ping=False, connect_args=arguments,
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

    def place_marks(self, text: str) -> str:
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
        if error.connection_invalidated or code == _TOOK_LONG or postgresql_is_lost(error.orig):
            return True
        return is_lock_conflict_on_postgresql(code) or postgresql_is_read_only(code)


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
        return is_lock_conflict_on_mysql(code) or mysql_is_away(code) or mysql_is_read_only(error.orig)


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
        return isinstance(error, DBAPIError) and is_lock_conflict_on_sqlite(sqlite_code_of(error.orig))


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


AT_ONCE = 500
EXPIRED_AT_ONCE = 5_000
CREATING = 1.0


class SqlClaims:
    """A ClaimStore in the table ``table``, which is created if it is missing. Connects at the first call."""

    def __init__(self, url: URL, table: str = "trident_events") -> None:
        if not re.fullmatch(TABLE, table):
            raise DefinitionError(f"a table of claims has a plain name (letters, digits and _), got {table!r}")
        self.url, self.table = url, table
        self._dialect: SqlDialect = dialect_of(url)
        self.threads = self._dialect.threads
        self._engine: Engine | None = None
        self._opening = threading.Lock()
        # Threads that wait for SQLite's own lock sleep longer and longer; a Python lock wakes them at once.
        self._turn: AbstractContextManager[Any] = threading.Lock() if self.threads == 1 else nullcontext()

    def claim(
        self, claims: Sequence[Claim], owner: str, lease: float, likely: Collection[str] = ()
    ) -> list[ClaimAnswer]:
        answers: dict[str, ClaimAnswer] = {}
        for start in range(0, len(claims), AT_ONCE):
            part = sorted(claims[start : start + AT_ONCE], key=lambda claim: claim.fingerprint)  # sorted: no deadlocks
            with self._connection("claim events") as connection:
                answers |= self._answers(connection, part, owner, lease, likely)
        return [answers[claim.fingerprint] for claim in claims]

    def _answers(
        self, connection: Connection, claims: list[Claim], owner: str, lease: float, likely: Collection[str]
    ) -> dict[str, ClaimAnswer]:
        answers = self._read(connection, [claim.fingerprint for claim in claims if claim.fingerprint in likely], owner)
        unread = [claim for claim in claims if claim.fingerprint not in answers]
        if unread:
            self._dialect.begin(connection)
            if self._insert(connection, unread, owner, lease) == len(unread):
                answers |= {claim.fingerprint: ClaimAnswer(True, claim.payload) for claim in unread}
            else:
                answers |= self._read(connection, [claim.fingerprint for claim in unread], owner)
        payloads = {claim.fingerprint: claim.payload for claim in claims}
        expired = [key for key, stored in answers.items() if stored.expired and stored.payload == payloads[key]]
        if expired:
            answers |= self._take_over(connection, expired, owner, lease)
        for fingerprint in payloads.keys() - answers.keys():  # deleted as an old event just now
            answers[fingerprint] = ClaimAnswer(False, payloads[fingerprint], NEW, 1.0)
        return answers

    def _insert(self, connection: Connection, claims: list[Claim], owner: str, lease: float) -> int:
        now = self._dialect.now
        row = f"(?, ?, '{NEW}', ?, {now} + {int(lease * 1000)}, {now}, {now})"
        text = self._dialect.insert(
            f"{self.table} (fingerprint, payload, status, owner, lease, created, changed) "
            f"VALUES {', '.join([row] * len(claims))}"
        )
        values = [part for claim in claims for part in (claim.fingerprint, claim.payload, owner)]
        return int(self._run(connection, text, values).rowcount)

    def _read(self, connection: Connection, fingerprints: list[str], owner: str) -> dict[str, ClaimAnswer]:
        if not fingerprints:
            return {}
        text = f"SELECT fingerprint, payload, status, owner, lease - {self._dialect.now} FROM {self.table} WHERE "
        rows = self._run(connection, text + self._among(fingerprints), fingerprints).fetchall()
        read = self._dialect.text
        return {
            read(key): ClaimAnswer(status == NEW and holder == owner, payload, status, max(0.0, float(lease) / 1000))
            for key, payload, status, holder, lease in rows
        }

    def _take_over(
        self, connection: Connection, fingerprints: list[str], owner: str, lease: float
    ) -> dict[str, ClaimAnswer]:
        """Take over expired leases. The update is conditional, so one of several owners wins."""
        now = self._dialect.now
        self._dialect.begin(connection)
        text = (
            f"UPDATE {self.table} SET owner = ?, lease = {now} + {int(lease * 1000)}, changed = {now} "
            f"WHERE status = '{NEW}' AND lease <= {now} AND "
        )
        self._run(connection, text + self._among(fingerprints), [owner, *fingerprints])
        answers = self._read(connection, fingerprints, owner)
        return {key: replace(answer, taken=answer.won) for key, answer in answers.items()}

    def release(self, fingerprints: Sequence[str], owner: str) -> None:
        self._update("lease = 0", f"status = '{NEW}' AND owner = ?", fingerprints, [owner])

    def drop(self, fingerprints: Sequence[str], owner: str) -> None:
        self._write(f"DELETE FROM {self.table}", f"status = '{NEW}' AND owner = ?", fingerprints, [owner])

    def produced(self, fingerprints: Sequence[str]) -> None:
        now = self._dialect.now
        self._update(f"status = '{PRODUCED}', changed = {now}", f"status = '{NEW}'", fingerprints, [])

    def processed(self, outcomes: Sequence[tuple[str, str]]) -> None:
        for outcome, fingerprints in by_outcome(outcomes).items():
            change = f"status = '{PROCESSED}', outcome = ?, changed = {self._dialect.now}"
            self._update(change, f"status <> '{PROCESSED}'", fingerprints, [outcome])

    def _update(self, change: str, where: str, fingerprints: Sequence[str], values: list[str]) -> None:
        self._write(f"UPDATE {self.table} SET {change}", where, fingerprints, values)

    def _write(self, change: str, where: str, fingerprints: Sequence[str], values: list[str]) -> None:
        ordered = sorted(set(fingerprints))
        for start in range(0, len(ordered), AT_ONCE):
            part = ordered[start : start + AT_ONCE]
            text = f"{change} WHERE {where} AND {self._among(part)}"
            with self._connection("store the status of events") as connection:
                self._dialect.begin(connection)
                self._run(connection, text, [*values, *part])

    def get(self, fingerprint: str) -> ClaimEntry | None:
        text = (
            f"SELECT payload, status, owner, lease, created, changed, outcome FROM {self.table} WHERE fingerprint = ?"
        )
        with self._connection("read an event") as connection:
            row = self._run(connection, text, [fingerprint]).fetchone()
        if row is None:
            return None
        payload, status, owner, lease, created, changed, outcome = row
        return ClaimEntry(fingerprint, payload, status, owner, lease / 1000, created / 1000, changed / 1000, outcome)

    def expire(self, seconds: float) -> int:
        """Delete in parts, so that other calls never wait long."""
        total, deleted = 0, EXPIRED_AT_ONCE
        old = f"changed < {self._dialect.now} - {int(seconds * 1000)}"
        text = self._dialect.delete(self.table, old, EXPIRED_AT_ONCE)
        while deleted == EXPIRED_AT_ONCE:
            with self._connection("delete expired events") as connection:
                self._dialect.begin(connection)
                deleted = int(self._run(connection, text, []).rowcount)
            total += deleted
        return total

    def close(self) -> None:
        if self._engine is not None:
            self._engine.dispose()

    def _among(self, fingerprints: Sequence[str]) -> str:
        return f"fingerprint IN ({', '.join(['?'] * len(fingerprints))})"

    def _run(self, connection: Connection, text: str, values: Sequence[str]) -> Any:
        return connection.exec_driver_sql(self._dialect.place_marks(text), tuple(values))

    @contextmanager
    def _connection(self, doing: str) -> Iterator[Connection]:
        """Yields a connection on which each statement is its own transaction; turns the database's errors into ours."""
        try:
            with self._turn, self._open().connect() as connection:
                yield connection
                self._dialect.commit(connection)
        except (SQLAlchemyError, OSError, UnicodeError) as error:  # the last one: of a name that no host can have
            cause = error.orig if isinstance(error, DBAPIError) else error
            text = hide(str(cause), secrets_in(self.url.render_as_string(hide_password=False)))
            check = f"the URL, table {self.table!r} and the permissions of its user"
            name = redact_url(self.url.render_as_string())
            passes = not isinstance(error, UnicodeError) and self._dialect.is_passing(error)
            raise store_error(name, doing, text, passes, check) from error

    def _open(self) -> Engine:
        """Return the engine. The first call makes it, and the table; several processes may do so at once."""
        with self._opening:
            if self._engine is None:
                engine = self._dialect.engine(self.url)
                try:
                    again_for(CREATING, 0.005, self._dialect.is_race, partial(self._create, engine))
                except BaseException:
                    engine.dispose()
                    raise
                self._engine = engine
            return self._engine

    def _create(self, engine: Engine) -> None:
        with engine.connect() as connection:
            for text in self._dialect.tables(self.table):
                connection.exec_driver_sql(text)
