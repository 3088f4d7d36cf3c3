"""One form of connection for every database: `execute`, `executemany` and `together` with ``?`` as the placeholder."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from sqlalchemy.engine import Engine

Statement = tuple[str, Sequence[Any]]
"""A statement and its parameters."""


class Connection(Protocol):
    """A connection in autocommit until a dialect's `begin`. (sqlite3's own connection is one, but for `together`.)"""

    def execute(self, text: str, parameters: Sequence[Any] = ...) -> Any: ...
    def executemany(self, text: str, rows: Iterable[Sequence[Any]]) -> Any: ...
    def close(self) -> None: ...

    def together(self, statements: Sequence[Statement]) -> list[Any]:
        """Execute the statements in their order, as one request to a server. Returns an answer for each, with
        ``fetchone``, ``fetchall``, ``rowcount`` and ``description``.

        Raises the driver's error of the first that fails; those behind it are not executed. What those before it did
        is the transaction's.
        """


class QueryResult(NamedTuple):
    """What a server answered to one of several statements."""

    rows: Sequence[tuple]
    rowcount: int
    description: Sequence[Sequence[Any]] | None = None

    def fetchone(self) -> tuple | None:
        return self.rows[0] if self.rows else None

    def fetchall(self) -> Sequence[tuple]:
        return self.rows


class FormatConnection:
    """Wraps the connection of a database driver whose placeholder is ``%s``."""

    packet: int = 0
    """MySQL only: how many bytes the server takes at once, whether it takes files and temporary tables, whether it has
    the engine Aria (None: not asked yet), and how many seconds it waits for a lock."""
    takes_files: bool = False
    stages: bool = True
    aria: bool | None = None
    wait: int = 0
    names_rows: bool = False
    """MySQL only: whether the rows of an INSERT may have a name."""
    saved: bool = False
    """PostgreSQL only: whether the transaction has a savepoint that is no longer needed."""

    def __init__(self, raw: Any, quoting: Callable[[Any], Any] | None = None) -> None:
        """Connect. ``quoting``: makes the driver's cursor that puts quoted values into the text (``mogrify``); None if
        the server takes no more than one statement in a request."""
        self.raw = raw
        self.quoting = quoting

    def execute(self, text: str, parameters: Sequence[Any] = ()) -> Any:
        cursor = self.raw.cursor()
        cursor.execute(translate_placeholders(text), tuple(parameters))
        return cursor

    def executemany(self, text: str, rows: Iterable[Sequence[Any]]) -> Any:
        cursor = self.raw.cursor()
        cursor.executemany(translate_placeholders(text), list(rows))
        return cursor

    def together(self, statements: Sequence[Statement]) -> list[Any]:
        if self.quoting is None or len(statements) < 2:
            return [self.execute(text, parameters) for text, parameters in statements]
        cursor = self.quoting(self.raw)
        cursor.execute(";\n".join(_quote_parameters(cursor, text, parameters) for text, parameters in statements))
        answers = list(_answers(cursor))
        if len(answers) != len(statements):
            raise RuntimeError(f"the server gave {len(answers)} answers to {len(statements)} statements")
        return answers

    def close(self) -> None:
        self.raw.close()


def _quote_parameters(cursor: Any, text: str, parameters: Sequence[Any]) -> str:
    """Return the statement with each value in it, escaped and quoted by the database driver for this connection."""
    if len(parameters) == 0:
        return text
    quoted: str = cursor.mogrify(translate_placeholders(text), tuple(parameters))
    return quoted


def _answers(cursor: Any) -> Iterator[QueryResult]:
    """Return all answers: none may stay unread on the connection. Raises the error of the statement that failed."""
    while True:
        rows = cursor.fetchall() if cursor.description else ()
        yield QueryResult(rows, cursor.rowcount, cursor.description)
        if not cursor.nextset():
            return


@functools.lru_cache(maxsize=1024)
def translate_placeholders(text: str) -> str:
    """Return the statement with ``%s`` for ``?``. No name or literal in these statements has a question mark."""
    return text.replace("%", "%%").replace("?", "%s")


def execute_bound(connection: Connection, parts: Sequence[str], parameters: Sequence[Any]) -> Any:
    """Execute a statement of a user, with a parameter between two ``parts``. Its own ``?`` and ``%`` stay."""
    if not isinstance(connection, FormatConnection):
        return connection.execute("?".join(parts), tuple(parameters))
    cursor = connection.raw.cursor()
    cursor.execute("%s".join(part.replace("%", "%%") for part in parts), tuple(parameters))
    return cursor


def pin_session(raw: Any, pin: Callable[[Any], None], quoting: Callable[[Any], Any] | None) -> FormatConnection:
    """Pin the session's settings of a new connection; close it if that fails."""
    try:
        pin(raw)
    except BaseException:
        raw.close()
        raise
    return FormatConnection(raw, quoting)


def driver_connection(engine: Engine, **more: Any) -> Any:
    """Return a new connection of the database driver, outside SQLAlchemy's pool, with the URL's arguments and
    ``more``."""
    arguments, options = engine.dialect.create_connect_args(engine.url)
    return engine.dialect.connect(*arguments, **{**options, **more})
