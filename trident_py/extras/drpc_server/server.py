"""The HTTP server of DRPC: uvicorn in a thread of the driver."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from typing import Any

import uvicorn

from ...config import Config
from ...drpc.local_drpc import LocalDRPC
from ...drpc.workers import THREADS
from ...errors import DefinitionError
from .app import access_of, application, check_host
from .client import PORT
from .web_server import PatientProtocol

HOST = "127.0.0.1"
QUEUE = 128  # requests that wait for a thread
IDLE_SECONDS = 60
_START_SECONDS = 30.0
_GRACE_SECONDS = 5


class DRPCServer:
    """Serves the functions of a LocalDRPC by Storm's HTTP interface, from `start` to `stop`. A context manager.

    ``conf``: ``drpc.http.port`` (3774; 0: any free one), ``drpc.http.host`` (127.0.0.1), ``drpc.queue.size``,
    ``drpc.authorizer.acl.filename``. Raises DefinitionError for settings that cannot be used, and if the port is taken.
    """

    def __init__(self, drpc: LocalDRPC, conf: Mapping[str, Any] | None = None) -> None:
        conf = conf or {}
        access = access_of(conf.get(Config.DRPC_AUTHORIZER_ACL_FILENAME))
        self.host = conf.get(Config.DRPC_HTTP_HOST) or HOST
        check_host(self.host, access)
        room = (conf.get(Config.DRPC_WORKER_THREADS) or THREADS) + (conf.get(Config.DRPC_QUEUE_SIZE) or QUEUE)
        port = conf.get(Config.DRPC_HTTP_PORT)
        self._socket = _listen(self.host, PORT if port is None else port)
        self.port: int = self._socket.getsockname()[1]
        self._server = uvicorn.Server(
            uvicorn.Config(
                application(drpc, access, room), http=PatientProtocol, access_log=False, log_config=None,
                log_level="warning", proxy_headers=False, server_header=False, timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=_GRACE_SECONDS, lifespan="off",
            )
        )  # fmt: skip
        name = f"trident-drpc-http-{self.port}"
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name=name, daemon=True)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/drpc"

    def start(self) -> DRPCServer:
        """Return when requests are accepted."""
        self._thread.start()
        waited = threading.Event()
        for _ in range(int(_START_SECONDS / 0.01)):
            if self._server.started or not self._thread.is_alive():
                break
            waited.wait(0.01)
        if not self._server.started:
            raise DefinitionError(f"the DRPC server at {self.url} did not start; the log says why")
        return self

    def stop(self) -> None:
        """End the server, after the requests that it has. Returns when its thread has ended."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_GRACE_SECONDS + 5)
        self._socket.close()

    def __enter__(self) -> DRPCServer:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        raise DefinitionError(
            f"the DRPC server cannot listen at {host}:{port}: {error}. Choose another drpc.http.port (0: any free "
            "one), or end what listens there"
        ) from None
