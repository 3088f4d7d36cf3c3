"""Runs the gateway: uvicorn and its workers."""

from __future__ import annotations

import asyncio
import copy
import math
import os
import signal
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.config import LOGGING_CONFIG
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..leftovers import own_folder
from .app import CONFIG, claims
from .metrics import FOLDER
from .settings import read_settings


def serve(config: str, app: str = "trident_py.events.app:application") -> None:
    """Serves until SIGTERM or Ctrl-C, then returns. Raises DefinitionError for an invalid file, before it starts."""
    settings = read_settings(config)
    os.environ[CONFIG] = str(Path(config).resolve())
    # uvicorn ends in order at SIGTERM, and then raises the signal again for the previous handler, which must not end
    # us.
    signal.signal(signal.SIGTERM, lambda *_: None)
    with own_folder("trident-events-") if settings.workers > 1 else nullcontext() as folder:
        if folder is not None:
            os.environ.setdefault(FOLDER, str(folder))
        uvicorn.run(
            app, factory=True, host=settings.host, port=settings.port, workers=settings.workers, access_log=False,
            log_config=_logging(), timeout_graceful_shutdown=int(settings.answerSeconds) + 1, proxy_headers=False,
            server_header=False, http=PatientProtocol, timeout_keep_alive=math.ceil(settings.limits.idleSeconds),
        )  # fmt: skip


def expire(config: str) -> int:
    """Deletes the events older than ``expirySeconds`` now; returns how many."""
    settings = read_settings(config)
    store = claims(settings)
    try:
        return store.expire(settings.expirySeconds)
    finally:
        store.close()


def _logging() -> dict[str, Any]:
    """Returns uvicorn's configuration of logging, with our own log added."""
    config = copy.deepcopy(LOGGING_CONFIG)
    config["formatters"]["default"]["fmt"] = "%(asctime)s %(levelprefix)s %(message)s"
    config["loggers"]["trident_py"] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    return config


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which waits without limit for the first request of a connection and for the rest of a head.
    This one waits as long as for an idle connection (``timeout_keep_alive``). A body has its own limit (`bodies`).
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._late is None and (self.cycle is None or self.cycle.response_complete):
            self._wait()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._late = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
