"""Runs the gateway: uvicorn and its workers."""

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

from ...errors import TridentError
from ...filesystems.tempdirs import own_folder
from ..drpc_server.web_server import PatientProtocol
from .app import CONFIG, FAILED, claims
from .metrics import FOLDER
from .producer import check_client
from .settings import read_settings


def serve(config: str, app: str = "trident_py.extras.gateway.app:application") -> None:
    """Serve until SIGTERM or Ctrl-C, then return. Raises DefinitionError for an invalid file, before it starts, and
    TridentError if it does not start; the log has said why."""
    settings = read_settings(config)
    check_client(settings.kafka, settings.limits.bodyBytes)
    os.environ[CONFIG] = str(Path(config).resolve())
    # uvicorn ends in order at SIGTERM, and then raises the signal again for the previous handler, which must not end
    # us.
    signal.signal(signal.SIGTERM, lambda *_: None)
    with own_folder("trident-events-") if settings.workers > 1 else nullcontext() as folder:
        if folder is not None:
            os.environ.setdefault(FOLDER, str(folder))
            os.environ[FAILED] = str(folder / "failed")
        _run(
            app, factory=True, host=settings.host, port=settings.port, workers=settings.workers, access_log=False,
            log_config=make_log_settings(), timeout_graceful_shutdown=int(settings.answerSeconds) + 1,
            proxy_headers=False, server_header=False, http=PatientProtocol,
            timeout_keep_alive=math.ceil(settings.limits.idleSeconds),
        )  # fmt: skip


def _run(app: str, **settings: Any) -> None:
    """Run uvicorn, which ends as if all were well if one of several workers does not start."""
    try:
        uvicorn.run(app, **settings)
        started = not Path(os.environ.get(FAILED, "")).is_file()
    except SystemExit:
        started = False
    if not started:
        raise TridentError("the gateway did not start; the log says why")


def expire(config: str) -> int:
    """Delete the events older than ``expirySeconds`` now; returns how many."""
    settings = read_settings(config)
    store = claims(settings)
    try:
        return store.expire(settings.expirySeconds)
    finally:
        store.close()


def make_log_settings() -> dict[str, Any]:
    """Return uvicorn's configuration of logging, with our own log added."""
    config = copy.deepcopy(LOGGING_CONFIG)
    config["formatters"]["default"]["fmt"] = "%(asctime)s %(levelprefix)s %(message)s"
    config["loggers"]["trident_py"] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    return config
