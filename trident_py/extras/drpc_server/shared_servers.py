"""The HTTP servers that start with a run: those of one address are one, shared by the runs of this process."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from ...config import Config
from ...drpc.local_drpc import LocalDRPC
from .server import DRPCServer

_lock = threading.Lock()
_shared: dict[tuple[Any, Any], SharedServer] = {}


class SharedServer:
    """A server of this process and the functions that it serves; ends with the last run that uses it."""

    def __init__(self, address: tuple[Any, Any], conf: Mapping[str, Any]) -> None:
        self.drpc = LocalDRPC()
        self.address = address
        self.users: set[object] = set()
        self._server = DRPCServer(self.drpc, conf).start()

    @property
    def url(self) -> str:
        return self._server.url

    def leave(self, user: object) -> None:
        """Called when a run ends, once or more."""
        with _lock:
            if user not in self.users:
                return
            self.users.remove(user)
            if self.users:
                return
            _shared.pop(self.address, None)
        self._server.stop()


def server_of(conf: Mapping[str, Any], user: object) -> SharedServer:
    """Return the server of a run's conf, which sets ``drpc.http.port``. The first run starts it, with its settings.
    ``user``: who leaves it in the end.

    Raises DefinitionError for settings that cannot be used, and if the port is taken.
    """
    port = conf[Config.DRPC_HTTP_PORT]
    address = (conf.get(Config.DRPC_HTTP_HOST), port or object())  # a free port is another one each time
    with _lock:
        server = _shared.get(address)
        if server is None:
            server = _shared[address] = SharedServer(address, conf)
        server.users.add(user)
        return server
