"""The stores of a campaign: one server for all rounds of a process, and a fresh place in it for each round."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import databases
from confluent_kafka import KafkaException

from states.kafka.marks import MarkPlace
from testbed.kafka_broker import KafkaBroker
from testbed.kafka_cluster import GROUPS, KafkaCluster
from testbed.redis_server import RedisServer
from trident_py.kafka.clients import Cluster
from trident_py.testing.proxy import HOST, CuttingProxy, commit_of

from . import backups
from .cell_topology import topic_of
from .forks import TOPOLOGY
from .held import DATABASES, HELD, INPUT, TOPICS
from .read_only import limited, read_only
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
    refuses_writes = False
    """Whether the store can be read-only."""

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

    def crash(self, seconds: float, server: Any = None) -> None:
        """The server is killed, and is back after a while."""
        server = server or self.server
        self.settle()
        server.kill()
        self.schedule(seconds, server.restart)

    def freeze(self, seconds: float, server: Any) -> None:
        """The server stands still for a while."""
        self.settle()
        server.freeze()
        self.schedule(seconds, server.thaw)

    def refuse_writes(self, seconds: float) -> None:
        """The server is read-only for a while."""
        self.settle()
        read_only(self.server.url, True)
        self.schedule(seconds, partial(read_only, self.server.url, False))

    def schedule(self, seconds: float, back: Callable[[], Any]) -> None:
        self.restarts.append(threading.Timer(seconds, back))
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
            self.server, self.refuses_writes = databases.OWN[kind](), True

    @contextmanager
    def place(self, folder: Path) -> Iterator[str]:
        if self.server is None:
            yield f"sqlite:///{folder}/store-{next(_NUMBERS)}.db"
            return
        self.settle()
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
        return url if self.proxy is None else self.proxy.through(limited(url))

    def contents(self, url: str, states: tuple[str, ...]) -> Any:
        """An older driver deletes the rows that it has staged itself; no reader sees those."""
        return {name: rows for name, rows in backups.contents(url).items() if not name.endswith("_staged")}

    def quiet(self, url: str) -> None:
        until = time.monotonic() + QUIET
        while self.kind in OPEN and read(url, OPEN[self.kind]) != [(0,)] and time.monotonic() < until:
            time.sleep(0.01)

    dump = staticmethod(backups.dump)

    def restore(self, url: str, file: Path) -> None:
        self.settle()
        backups.restore(url, file)


class Redis(Home):
    refuses_writes = True

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
        self.server, self.behind = self._make()
        self.behind.options["advertised.listeners"] = f"PLAINTEXT://{HOST}:{self.proxy.port}"

    def _make(self) -> tuple[Any, KafkaBroker]:
        """What is started, and the broker behind the proxy."""
        broker = KafkaBroker()
        return broker, broker

    def __enter__(self) -> Self:
        super().__enter__()
        self._proxy.target = (HOST, self.behind.port)
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._proxy.close()

    @contextmanager
    def place(self, folder: Path) -> Iterator[str]:
        prefix = f"round-{os.getpid()}-{next(_NUMBERS)}"
        for name in ("topic", INPUT):
            self.server.create_topic(f"{prefix}-{name}", partitions=2)
        yield f"{self.server.bootstrap}#{prefix}"


class Brokers(Kafka):
    """Three brokers with replication 3. The proxy stands before the first; the other two reach it that way, too."""

    def _make(self) -> tuple[Any, KafkaBroker]:
        cluster = KafkaCluster()
        return cluster, cluster.brokers[0]

    def broker(self, which: str, url: str, state: str, partition: int) -> KafkaBroker:
        """The leader of a partition of the state's topic, or the coordinator of its transactions or of its marks."""
        self.settle()
        bootstrap, topic = topic_of(url, state)
        if which == "leader":
            return self.server.leader(topic, partition)
        place = MarkPlace(Cluster(bootstrap), topic, TOPOLOGY, state)
        if which == "coordinator":
            return self.server.coordinator(place.transactional_id(partition))
        return self.server.coordinator(place.name(partition), GROUPS)


def home(kind: str) -> Home:
    return {"files": Files, "redis": Redis, "kafka": Kafka, "brokers": Brokers}.get(kind, Database)(kind)


STORES = (*DATABASES, "redis", *TOPICS, "files")
