"""The stores on which a topology is tried: each case gets an empty one."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from ...errors import DefinitionError
from ..servers.databases import create_database, drop_database
from ..servers.redis_server import RedisServer
from ..servers.sql_servers import MariaDb, MySql, PostgreSql

StorePlace = str | Callable[[Path], AbstractContextManager[str]]
"""A store's kind, the URL of a database server, or a function that gives an empty store to a folder."""
MEMORY, ROOM = "/dev/shm", 1 << 30
KINDS = ("sqlite", "files", "memory", "mariadb", "mysql", "postgresql", "redis")
_SERVERS: dict[str, Any] = {"mariadb": MariaDb, "mysql": MySql, "postgresql": PostgreSql, "redis": RedisServer}


class Places:
    """The stores of one `everywhere`: starts each server once. A context manager."""

    def __init__(self) -> None:
        self._servers: dict[str, Any] = {}
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def start(self, kind: str) -> None:
        """Starts a server now: "mariadb", "mysql", "postgresql" or "redis". Raises ServiceMissing."""
        self._server(kind)

    @contextmanager
    def empty(self, store: StorePlace, folder: Path) -> Iterator[str]:
        """The URL of an empty store for one case, gone afterwards. Raises DefinitionError for an unknown kind."""
        if not isinstance(store, str):
            with store(folder) as url:
                yield url
        elif store == "sqlite":
            yield f"sqlite:///{folder}/store.sqlite"
        elif store == "files":
            yield f"file://{folder}/store"
        elif store == "memory":
            yield ""
        elif store == "redis":
            yield self._flushed()
        elif store in _SERVERS or _is_server(store):
            yield from self._database(store)
        else:
            raise DefinitionError(f"stores: {store!r} is none; it is one of {', '.join(KINDS)}, or a server's URL")

    def _database(self, store: str) -> Iterator[str]:
        url = create_database(store if "://" in store else self._server(store).url)
        try:
            yield url
        finally:
            drop_database(url)

    def _server(self, kind: str) -> Any:
        """The server of a kind, started at its first use."""
        if kind not in self._servers:
            self._servers[kind] = self._closing.enter_context(_SERVERS[kind]())
        return self._servers[kind]

    def _flushed(self) -> str:
        """Our own Redis, emptied."""
        server = self._server("redis")
        with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
            connection.sendall(b"FLUSHALL\r\n")
            connection.recv(100)
        return str(server.url)


def scratch(prefix: str) -> tempfile.TemporaryDirectory[str]:
    """A folder for checkpoints and stores: in memory where there is room, unless TMPDIR names a place. What survives
    SIGKILL does so there, too, and a run syncs its files dozens of times."""
    room = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM
    return tempfile.TemporaryDirectory(prefix=prefix, dir=MEMORY if room and "TMPDIR" not in os.environ else None)


def name_of(store: StorePlace) -> str:
    """The store in reports and in --trident-point; without secrets."""
    if not isinstance(store, str):
        return store.__name__
    return store if "://" not in store else store.split("://")[0].split("+")[0] + "-url"


def has_proxy(url: str) -> bool:
    """Whether connections to this store can be cut and its COMMIT be held."""
    return url.startswith(("mysql", "mariadb", "postgresql"))


def _is_server(store: str) -> bool:
    return store.startswith(("mysql+", "mysql:", "mariadb", "postgresql")) and "://" in store
