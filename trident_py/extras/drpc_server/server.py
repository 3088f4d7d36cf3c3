"""The HTTP server of DRPC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...config import Config
from ...drpc.local_drpc import LocalDRPC
from ...drpc.workers import THREADS
from .app import access_of, application, check_host
from .client import PORT
from .web_server import LOCAL, WebServer

QUEUE = 128  # requests that wait for a thread


class DRPCServer(WebServer):
    """Serves the functions of a LocalDRPC by Storm's HTTP interface, from `start` to `stop`. A context manager.

    ``conf``: ``drpc.http.port`` (3774; 0: any free one), ``drpc.http.host`` (127.0.0.1), ``drpc.queue.size``,
    ``drpc.authorizer.acl.filename``. Raises DefinitionError for settings that cannot be used, and if the port is taken.
    """

    def __init__(self, drpc: LocalDRPC, conf: Mapping[str, Any] | None = None) -> None:
        conf = conf or {}
        access = access_of(conf.get(Config.DRPC_AUTHORIZER_ACL_FILENAME))
        host = conf.get(Config.DRPC_HTTP_HOST) or LOCAL[0]
        check_host(host, access)
        room = (conf.get(Config.DRPC_WORKER_THREADS) or THREADS) + (conf.get(Config.DRPC_QUEUE_SIZE) or QUEUE)
        port = conf.get(Config.DRPC_HTTP_PORT)
        served, chosen = application(drpc, access, room), PORT if port is None else port
        super().__init__(served, "the DRPC server", Config.DRPC_HTTP_PORT, host, chosen)

    @property
    def url(self) -> str:
        return f"{super().url}/drpc"
