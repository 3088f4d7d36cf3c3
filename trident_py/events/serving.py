"""Runs the gateway: uvicorn with its workers."""

from __future__ import annotations

import copy
import math
import os
import signal
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.config import LOGGING_CONFIG

from ..leftovers import own_folder
from .app import CONFIG
from .connections import PatientProtocol
from .metrics import FOLDER
from .settings import read_settings
from .stores import store_of


def serve(config: str, app: str = "trident_py.events.app:application") -> None:
    """Serves until SIGTERM or Ctrl-C, then returns. Raises DefinitionError for a file that is wrong, before that."""
    settings = read_settings(config)
    os.environ[CONFIG] = str(Path(config).resolve())
    # uvicorn ends in order at SIGTERM, and then raises the signal again for whoever stood there before: nobody.
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
    """Forgets the events that are older than ``expirySeconds``, now; returns how many."""
    settings = read_settings(config)
    store = store_of(settings.store, settings.expirySeconds, settings.table)
    try:
        return store.expire(settings.expirySeconds)
    finally:
        store.close()


def _logging() -> dict[str, Any]:
    """uvicorn's, with our own log beside it."""
    config = copy.deepcopy(LOGGING_CONFIG)
    config["formatters"]["default"]["fmt"] = "%(asctime)s %(levelprefix)s %(message)s"
    config["loggers"]["trident_py"] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    return config
