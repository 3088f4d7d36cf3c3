"""PostgreSQL, through psycopg 3."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy.engine import URL, Engine

from trident_py.databases.error_codes import (
    lost_a_lock_on_postgresql,
    postgresql_has_it,
    postgresql_is_away,
    postgresql_is_read_only,
    sqlstate_of,
)
from trident_py.databases.sessions import local_postgresql, pin_postgresql
from trident_py.errors import DefinitionError

from ...connection import Connection, Statement, driver_connection, pin_session
from .maps import PostgreSqlMaps

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

_NO_PRIVILEGE = "42501"


class PostgreSql(PostgreSqlMaps):
    """The dialect of ``postgresql+psycopg://``."""

    name = "postgresql"
    title = "PostgreSQL"
    port = 5432
    shared = " FOR SHARE"
    exclusive = " FOR UPDATE"
    selects = 2_000

    def absolute(self, url: URL) -> URL:
        if url.get_driver_name() != "psycopg" or not url.database:
            raise DefinitionError(
                "a PostgreSQL state needs a URL such as postgresql+psycopg://user:password@host:5432/database"
            )
        return url

    def connect(self, engine: Engine) -> Connection:
        from psycopg import ClientCursor
        from psycopg.types.string import TextLoader

        raw = driver_connection(engine, autocommit=True, prepare_threshold=None)  # poolers keep no prepared statements
        raw.adapters.register_loader("json", TextLoader)  # JSON columns unparsed, like texts
        return pin_session(raw, pin_postgresql, ClientCursor)

    def alive(self, connection: Connection) -> bool:
        try:
            connection.execute("SELECT 1")
        except Exception:
            return False
        return True

    def begin(self, connection: Any, seconds: float, first: Sequence[Statement] = ()) -> list[Any]:
        """Ask the server once, or twice if a value is not plain ASCII: the server reads all of a request in the
        encoding of the session, which is pinned only when the first request is over."""
        pinning = local_postgresql(max(int(seconds * 1000), 1))
        opening: list[Statement] = [("BEGIN ISOLATION LEVEL READ COMMITTED", ()), (pinning, ())]
        connection.saved = False
        if all(str(value).isascii() for _, parameters in first for value in parameters):
            return list(connection.together([*opening, *first])[len(opening) :])
        connection.together(opening)
        return list(connection.together(first))

    def is_lock(self, error: BaseException) -> bool:
        return lost_a_lock_on_postgresql(sqlstate_of(error))

    def is_lost(self, error: BaseException) -> bool:
        state = sqlstate_of(error)
        if state:
            return postgresql_is_away(state)
        if _FINAL.search(str(error)) and not _PASSING.search(str(error)):
            return False  # the server answers: a wrong password, an unknown database
        return type(error).__name__ in ("OperationalError", "InterfaceError") or isinstance(error, OSError)

    def is_read_only(self, error: BaseException) -> bool:
        return postgresql_is_read_only(sqlstate_of(error))

    def is_duplicate(self, error: BaseException) -> bool:
        return postgresql_has_it(sqlstate_of(error))

    def may_not_read(self, error: BaseException) -> bool:
        return sqlstate_of(error) == _NO_PRIVILEGE


POSTGRESQL = PostgreSql()
