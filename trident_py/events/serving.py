"""Runs the gateway: uvicorn with its workers."""

from __future__ import annotations

import copy
import os
import tempfile
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.config import LOGGING_CONFIG

from .app import CONFIG
from .metrics import FOLDER
from .settings import read_settings
from .stores import store_of


def serve(config: str, app: str = "trident_py.events.app:application") -> None:
    """Serves until SIGTERM or Ctrl-C. Raises DefinitionError for a file that is wrong, before anything starts."""
    settings = read_settings(config)
    os.environ[CONFIG] = str(Path(config).resolve())
    with tempfile.TemporaryDirectory(prefix="trident-events-") as folder:
        if settings.workers > 1:
            os.environ.setdefault(FOLDER, folder)
        uvicorn.run(
            app, factory=True, host=settings.host, port=settings.port, workers=settings.workers, access_log=False,
            log_config=_logging(), timeout_graceful_shutdown=int(settings.answerSeconds) + 1, proxy_headers=False,
            server_header=False,
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
