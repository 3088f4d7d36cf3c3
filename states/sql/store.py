"""The databases of this process: engines and connections, opened once per process, safe across a fork."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from trident_py.databases.options import check_options
from trident_py.databases.sessions import driver_of, pin_engine
from trident_py.errors import DefinitionError, FailedException, ReadOnlyStore, StateError
from trident_py.model import secrets
from trident_py.model.retry import again_for
from trident_py.state import Needs

from .connection import Statement, driver_connection
from .dialects.base import Dialect
from .dialects.registry import dialect_of

T = TypeVar("T")


class ConnectionLost(FailedException):
    """The connection or its server is gone; the last statement may or may not have taken effect."""


LOCK_SECONDS = 60.0
OPEN_STORES = 32


class Store:
    """One database (one file) in this process: a pool of connections, each used by one thread at a time."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self.shown = redact_url(url)
        with driver_of(url):
            self.dialect: Dialect = dialect_of(url)
            self.engine = sa.create_engine(url, **self.dialect.pool)
        pin_engine(self.engine)
        self._idle: list[Any] = []
        self._lock = threading.Lock()
        self.ready: dict[Any, Any] = {}
        self._runs: set[str] = set()

    def start_run(self, run: str) -> None:
        """Forget the checked tables when a further run uses this process, such as a Spark worker that outlives its
        driver: the tables may have changed."""
        if run not in self._runs:
            self._runs.add(run)
            self.ready.clear()

    def take(self) -> Any:
        """Return a connection for the caller's exclusive use, until `give` or `drop`."""
        while True:
            idle = self._pop()
            if idle is None:
                with self.errors("open"):
                    return self.dialect.connect(self.engine)
            if self.dialect.alive(idle):
                return idle
            self.drop(idle)
            self.ready.clear()  # the database may have been replaced

    def open_transaction(self, *first: Statement, doing: str = "lock") -> tuple[Any, list[Any]]:
        """Begin a transaction on a connection for the caller's exclusive use, with its ``first`` statements; return
        both the connection and their answers.

        A server is not asked before whether an idle connection still reaches it: one that does not is replaced, and
        the transaction begins again. So the statements must be such that twice is the same as once.
        """
        while True:
            idle = self._pop() if self.dialect.served else None
            connection = self.take() if idle is None else idle
            try:
                return connection, self.begin(connection, *first, doing=doing)
            except ConnectionLost:
                self.drop(connection)
                if idle is None:
                    raise
            except BaseException:
                self.drop(connection)
                raise

    def _pop(self) -> Any:
        """Return an idle connection, which may have lost its server; None if there is none."""
        with self._lock:
            return self._idle.pop() if self._idle else None

    def give(self, connection: Any) -> None:
        with self._lock:
            self._idle.append(connection)

    def drop(self, connection: Any) -> None:
        """Close a connection whose state is unknown."""
        with contextlib.suppress(Exception):
            connection.close()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Any]:
        connection = self.take()
        try:
            yield connection
        except BaseException:
            self.drop(connection)
            raise
        self.give(connection)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Any]:
        """A separate transaction: committed at the end, rolled back on an exception."""
        connection, _ = self.open_transaction()
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            self.drop(connection)  # which rolls back
            raise
        self.give(connection)

    def at_once(self, *statements: Statement, doing: str = "write") -> list[Any]:
        """Execute and commit them in a separate transaction, which is one request to a server; return their answers.
        Twice must be the same as once, see `open_transaction`."""
        connection, answers = self.open_transaction(*statements, ("COMMIT", ()), doing=doing)
        self.give(connection)
        return answers

    def begin(self, connection: Any, *first: Statement, doing: str = "lock") -> list[Any]:
        """Begin a transaction that may write, with its ``first`` statements; return their answers. Raises
        FailedException (the batch is replayed) if it stays locked."""
        with self.errors(doing):
            return self.dialect.begin(connection, LOCK_SECONDS, first)

    @contextlib.contextmanager
    def errors(self, doing: str) -> Iterator[None]:
        """Translates the database driver's errors: a lock or a lost server raises FailedException, a read-only one
        ReadOnlyStore, any other error StateError."""
        try:
            yield
        except Exception as error:
            if isinstance(error, StateError | FailedException | DefinitionError):
                raise
            cause = driver_error(error) or error
            text = f"{self.shown}: could not {doing}: {type(cause).__name__}: {hide_secrets(str(cause), self.url)}"
            if self.dialect.is_lock(cause):
                why = f"Another process holds a lock on it (waited up to {LOCK_SECONDS:g} s)"
                raise FailedException(f"{text}. {why}") from cause
            if self.dialect.is_lost(cause):
                self.ready.clear()  # the database may have been replaced
                why = "The server or the connection to it is gone, or the server cannot do this now"
                raise ConnectionLost(f"{text}. {why}") from cause
            if self.dialect.is_read_only(cause):
                self.ready.clear()
                self.close()  # the server that takes writes may be another one under the same name
                raise ReadOnlyStore(f"{text}. The server is read-only now") from cause
            advice = self.dialect.advice(self.url, cause)
            raise StateError(f"{text}: {advice}" if advice else text) from error

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            self.drop(connection)
        self.engine.dispose()


class ReadOnlyFile(Store):
    """A SQLite file, opened so that no write is possible, no journal mode changes and no file appears. A file that is
    missing is like an empty one."""

    def __init__(self, url: URL) -> None:
        super().__init__(url)
        self.engine = sa.create_engine(_read_only(url), poolclass=sa.NullPool)

    def take(self) -> Any:
        with self.errors("open"):
            return driver_connection(self.engine, isolation_level=None)

    def give(self, connection: Any) -> None:
        self.drop(connection)


def _read_only(url: URL) -> URL:
    """Return the read-only URL of a file. A log beside the file may hold its newest rows; without one no lock is
    needed."""
    path = Path(url.database or "")
    if not path.exists():
        return URL.create(url.drivername)
    log = path.with_name(f"{path.name}-wal")
    way = {} if log.exists() and log.stat().st_size > 0 else {"immutable": "1"}
    query = {"mode": "ro", **way, "uri": "true"}
    return URL.create(url.drivername, database=f"file:{quote(str(path))}", query=query)


_READS_ONLY: ContextVar[bool] = ContextVar("reads_only", default=False)


@contextlib.contextmanager
def reading_only(only: bool = True) -> Iterator[None]:
    """Inside, with ``only``, no table is made in any store, and no file of a store appears or changes."""
    before = _READS_ONLY.set(only or reads_only())
    try:
        yield
    finally:
        _READS_ONLY.reset(before)


def reads_only() -> bool:
    """Return whether this is inside of `reading_only`."""
    return _READS_ONLY.get()


_STORES: dict[str, Store] = {}
_LOCK = threading.Lock()
_INHERITED: list[Any] = []


def store_of(url: URL) -> Store:
    """Return this process's store for the URL. Closes the idle connections of all but the ``OPEN_STORES`` used last."""
    if reads_only() and not dialect_of(url).served:
        return ReadOnlyFile(url)
    name = url.render_as_string(hide_password=False)
    with _LOCK:
        store = _STORES.pop(name, None) or Store(url)
        _STORES[name] = store
        unused = [_STORES.pop(other) for other in list(_STORES)[:-OPEN_STORES]]
    for other_store in unused:
        other_store.close()  # a holder of the store reopens connections as needed
    return store


def close_stores() -> None:
    """Close the idle connections of this process."""
    with _LOCK:
        stores = list(_STORES.values())
        _STORES.clear()
    for store in stores:
        store.close()


def _reset_after_fork() -> None:
    """Start anew in a forked child, which must neither use nor close its parent's connections: they are kept alive."""
    global _LOCK
    _INHERITED.append(dict(_STORES))
    _STORES.clear()
    _LOCK = threading.Lock()


os.register_at_fork(after_in_child=_reset_after_fork)
atexit.register(close_stores)  # the last connection to a SQLite file writes its log into it, and removes the log


def parse_url(url: str) -> URL:
    """Return the URL with an absolute path. Raises DefinitionError, whose text has no secrets of the URL."""
    try:
        database_url = make_url(url)
    except Exception:
        raise DefinitionError("not a database URL; an example for SQLite is sqlite:///counts.db") from None
    dialect = dialect_of(database_url)
    check_options(database_url)
    return dialect.absolute(database_url)


def needs_of_store(url: str) -> Needs:
    """Return what each machine needs whose tasks use the database."""
    where = parse_url(url)
    return dialect_of(where).needs(where)


def has_server(url: str) -> bool:
    """Return whether a server runs the statements, so that transactions of several connections go on side by side."""
    return dialect_of(parse_url(url)).served


def redact_url(url: URL) -> str:
    """Return the URL for display and logs: without password, user secrets or tokens."""
    return secrets.redact_url(url.render_as_string())


def hide_secrets(text: str, url: URL) -> str:
    """Return a driver's message without the URL's secrets."""
    return secrets.hide(text, secrets.secrets_in(url.render_as_string(hide_password=False)))


def driver_error(error: BaseException) -> BaseException | None:
    """Return the error of the database driver that SQLAlchemy has wrapped; None if it has wrapped none."""
    return error.orig if isinstance(error, sa.exc.StatementError) else None


def retry_transient(store: Store, work: Callable[[], T]) -> T:
    """Repeat set-up work while another process holds the store or creates the same table."""

    def passes(error: Exception) -> bool:
        cause = driver_error(error) or error.__cause__ or error
        return store.dialect.is_lock(cause) or store.dialect.is_duplicate(cause)

    return again_for(LOCK_SECONDS, 0.005, passes, work)
