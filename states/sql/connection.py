"""One form of connection for every database: `execute` and `executemany` with ``?`` as the placeholder."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from sqlalchemy.engine import Engine


class Connection(Protocol):
    """A connection in autocommit until a dialect's `begin`. (sqlite3's own connection is one.)"""

    def execute(self, text: str, parameters: Sequence[Any] = ...) -> Any: ...
    def executemany(self, text: str, rows: Iterable[Sequence[Any]]) -> Any: ...
    def close(self) -> None: ...


class FormatConnection:
    """Wraps the connection of a database driver whose placeholder is ``%s``."""

    packet: int = 0
    """MySQL only: how many bytes the server takes at once, whether it takes files and temporary tables, and how many
    seconds it waits for a lock."""
    takes_files: bool = False
    stages: bool = True
    wait: int = 0

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def execute(self, text: str, parameters: Sequence[Any] = ()) -> Any:
        cursor = self.raw.cursor()
        cursor.execute(translated(text), tuple(parameters))
        return cursor

    def executemany(self, text: str, rows: Iterable[Sequence[Any]]) -> Any:
        cursor = self.raw.cursor()
        cursor.executemany(translated(text), list(rows))
        return cursor

    def close(self) -> None:
        self.raw.close()


@functools.lru_cache(maxsize=1024)
def translated(text: str) -> str:
    """The statement with ``%s`` for ``?``. No name or literal in these statements has a question mark."""
    return text.replace("%", "%%").replace("?", "%s")


def bound(connection: Connection, parts: Sequence[str], parameters: Sequence[Any]) -> Any:
    """Executes a statement of a user, with a parameter between two ``parts``. Its own ``?`` and ``%`` stay."""
    if not isinstance(connection, FormatConnection):
        return connection.execute("?".join(parts), tuple(parameters))
    cursor = connection.raw.cursor()
    cursor.execute("%s".join(part.replace("%", "%%") for part in parts), tuple(parameters))
    return cursor


def pinned(raw: Any, pin: Callable[[Any], None]) -> FormatConnection:
    """Pins the session's settings of a new connection; closes it if that fails."""
    try:
        pin(raw)
    except BaseException:
        raw.close()
        raise
    return FormatConnection(raw)


def driver_connection(engine: Engine, **more: Any) -> Any:
    """A new connection of the database driver, outside SQLAlchemy's pool, with the URL's arguments and ``more``."""
    arguments, options = engine.dialect.create_connect_args(engine.url)
    return engine.dialect.connect(*arguments, **{**options, **more})
