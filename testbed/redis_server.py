"""A real Redis for tests: one process on loopback, killed and restarted at will.

    with RedisServer() as server:
        store = store_of(server.url)
        ...
        server.kill()       # SIGKILL
        server.restart()    # same data (an append-only file, flushed for every write), same port
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from trident_py.errors import TridentError

from .service import HOST, Service, find, free_port

__all__ = ["RedisReplica", "RedisServer"]


class RedisServer(Service):
    """Debian's ``redis-server``. ``options`` are its settings: ``RedisServer(**{"appendfsync": "everysec"})``."""

    name = "Redis"

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    def _programs(self) -> Path:
        return find("redis-server", ["/usr/bin", "/usr/local/bin"], "redis-server")

    def _command(self) -> list[str]:
        fixed = {"appendonly": "yes", "appendfsync": "always", "save": "", "daemonize": "no"}
        settings = [part for name, value in {**fixed, **self.options}.items() for part in (f"--{name}", str(value))]
        where = ["--bind", HOST, "--port", str(self.port), "--dir", f"{self.folder}/data"]
        return [str(self._programs() / "redis-server"), *where, *self._bus(), *settings]

    def _bus(self) -> list[str]:
        """The port of a cluster's bus. By default it is 10,000 above the other, where any client's socket may be."""
        return ["--cluster-port", str(free_port())] if self.options.get("cluster-enabled") == "yes" else []

    def _answer(self) -> None:
        self._ask("PING", "PONG")  # it may still be loading its data

    def _ask(self, command: str, wanted: str) -> None:
        with socket.create_connection((HOST, self.port), 1) as connection:
            connection.sendall(f"{command}\r\n".encode())
            answer = connection.recv(100)
        if not answer.startswith(f"+{wanted}".encode()):
            raise TridentError(f"Redis answers {answer!r}")

    def _no_answer(self) -> tuple[type[BaseException], ...]:
        return (OSError, TridentError)


class RedisReplica(RedisServer):
    """A replica of a running Redis, read at ``port``: of the primary itself, or of a proxy before it, so that the
    replica can be made to lag. Read-only until `promote`."""

    def __init__(self, port: int, **options: Any) -> None:
        super().__init__(**options)
        self.primary_port = port

    def promote(self) -> None:
        """It stops following, and takes writes."""
        self._ask("REPLICAOF NO ONE", "OK")

    def _first_started(self) -> None:
        self._ask(f"REPLICAOF {HOST} {self.primary_port}", "OK")
