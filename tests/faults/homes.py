"""The stores of a campaign: one server for all rounds of a process, and a fresh place in it for each round."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import databases
from confluent_kafka import KafkaException

from testbed.kafka_broker import KafkaBroker
from testbed.redis_server import RedisServer
from trident_py.testing.proxy import HOST, CuttingProxy, commit_of

from . import backups
from .held import DATABASES, HELD
from .readings import Fold, Readings
from .stores import read

_NUMBERS = itertools.count()
QUIET = 5.0
_OF_MYSQL = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> CONNECTION_ID()"
OPEN = {
    "mariadb": _OF_MYSQL, "mysql": _OF_MYSQL,
    "postgresql": "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND state <> 'idle'",
}  # fmt: skip
"""How many transactions are open."""


class Home:
    """A store. ``server``: what can be killed; ``proxy``: where connections can be cut."""

    server: Any = None
    proxy: CuttingProxy | None = None
    commit: Any = None
    """The bytes that commit, for the proxy."""
    copies = False
    """Whether the store can go back."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.restarts: list[threading.Timer] = []

    def __enter__(self) -> Self:
        if self.server is not None:
            self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.settle()
        if self.server is not None:
            self.server.close()

    @contextmanager
    def place(self, folder: Path) -> Iterator[str]:
        """The URL of an empty place, as a client of ours reaches it that needs no proxy."""
        raise NotImplementedError

    @contextmanager
    def connected(self) -> Iterator[None]:
        """A proxy before the server, for a round."""
        yield

    def through(self, url: str) -> str:
        """The same place, by way of the proxy."""
        return url

    def contents(self, url: str, states: tuple[str, ...]) -> Any:
        """Everything that the states hold, to be compared."""
        return [self._content(url, state) for state in states]

    def _content(self, url: str, state: str) -> Any:
        try:
            return [found for found, _ in HELD[self.kind][state].pairs(url, Fold(Readings(0), 0))]
        except (OSError, ValueError, KeyError, AssertionError, KafkaException):
            return None  # nothing was made yet

    def quiet(self, url: str) -> None:
        """Waits until no transaction of a dead driver is open: its COMMIT may still be on the way."""

    def crash(self, seconds: float) -> None:
        """The server is killed, and is back after a while."""
        self.settle()
        self.server.kill()
        self.restarts.append(threading.Timer(seconds, self.server.restart))
        self.restarts[-1].start()

    def settle(self) -> None:
        """Waits until the server is back."""
        while self.restarts:
            self.restarts.pop().join()


class Files(Home):
    """A folder for FileState, which is copied as a whole."""

    copies = True

    @contextmanager
    def place(self, folder: Path) -> Iterator[str]:
        yield f"{folder}/files-{next(_NUMBERS)}"

    def dump(self, url: str, file: Path) -> Path:
        return Path(shutil.copytree(url, file))

    def restore(self, url: str, file: Path) -> None:
        shutil.rmtree(url)
        shutil.copytree(file, url)


class Database(Home):
    """SQLite, or a server with a database for each round."""

    copies = True

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        if kind in databases.OWN:
            self.server = databases.OWN[kind]()

    @contextmanager
    def place(self, folder: Path) -> Iterator[str]:
        if self.server is None:
            yield f"sqlite:///{folder}/store-{next(_NUMBERS)}.db"
            return
        with databases.fresh(self.server) as url:
            yield url
            self.settle()

    @contextmanager
    def connected(self) -> Iterator[None]:
        if self.server is None:
            yield
            return
        self.commit = commit_of(self.server.url)
        with CuttingProxy(HOST, self.server.port) as self.proxy:
            yield

    def through(self, url: str) -> str:
        return url if self.proxy is None else self.proxy.through(url)

    def contents(self, url: str, states: tuple[str, ...]) -> Any:
        return backups.contents(url)

    def quiet(self, url: str) -> None:
        until = time.monotonic() + QUIET
        while self.kind in OPEN and read(url, OPEN[self.kind]) != [(0,)] and time.monotonic() < until:
            time.sleep(0.01)

    dump, restore = staticmethod(backups.dump), staticmethod(backups.restore)


class Redis(Home):
    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.server = RedisServer()

    @contextmanager
    def connected(self) -> Iterator[None]:
        self.commit = b"EVALSHA"
        with CuttingProxy(HOST, self.server.port) as self.proxy:
            yield

    @contextmanager
    def place(self, folder: Path) -> Iterator[str]:
        yield f"{self.server.url}#round-{os.getpid()}-{next(_NUMBERS)}"

    def through(self, url: str) -> str:
        assert self.proxy is not None
        return url.replace(f":{self.server.port}/", f":{self.proxy.port}/")


class Kafka(Home):
    """All clients reach the broker through the proxy, whose address it tells them."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.proxy = self._proxy = CuttingProxy(HOST, 0)
        self.server = KafkaBroker(**{"advertised.listeners": f"PLAINTEXT://{HOST}:{self.proxy.port}"})

    def __enter__(self) -> Self:
        super().__enter__()
        self._proxy.target = (HOST, self.server.port)
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._proxy.close()

    @contextmanager
    def place(self, folder: Path) -> Iterator[str]:
        prefix = f"round-{os.getpid()}-{next(_NUMBERS)}"
        self.server.create_topic(f"{prefix}-topic", partitions=2)
        yield f"{self.server.bootstrap}#{prefix}"


def home(kind: str) -> Home:
    return {"files": Files, "redis": Redis, "kafka": Kafka}.get(kind, Database)(kind)


STORES = (*DATABASES, "redis", "kafka", "files")
