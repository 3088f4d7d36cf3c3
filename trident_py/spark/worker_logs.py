"""What our loggers print in Python workers: on the executor's stderr, with the host, the batch and the partition.

A worker has no logging of its own, so a record would be printed bare, or not at all. Whoever sets up logging in the
workers has his way: then nothing of ours is printed beside it. The levels that the driver gave to loggers below
``trident_py`` and ``states`` hold in the workers too.
"""

from __future__ import annotations

import json
import logging
import platform
import sys

ROOTS = ("trident_py", "states")
_TEXT = logging.Formatter("%(message)s")  # and a traceback, if there is one


class TaskHandler(logging.Handler):
    """Prints the records of a worker. ``place`` says where it is: topology, txid, attempt, partition."""

    def __init__(self) -> None:
        super().__init__()
        self.place = ""

    def emit(self, record: logging.LogRecord) -> None:
        if not _set_up_by_the_user(record.name):
            head = f"{_TEXT.formatTime(record)} {record.levelname} {record.name} [host {platform.node()}{self.place}]"
            print(f"{head}: {_TEXT.format(record)}", file=sys.stderr, flush=True)


_HANDLER = TaskHandler()


def driver_levels() -> str:
    """Serialise the driver's log levels for workers. Called once per query."""
    known = logging.Logger.manager.loggerDict
    ours = {name: known[name] for name in known if name.partition(".")[0] in ROOTS}
    return json.dumps({n: each.level for n, each in ours.items() if isinstance(each, logging.Logger) and each.level})


def enter_task(levels: str, place: str) -> None:
    """Called in a worker before its part of a batch. A level that the worker has been given itself stays."""
    _HANDLER.place = f", {place}"
    for name in ROOTS:
        logger = logging.getLogger(name)
        if _HANDLER not in logger.handlers:
            logger.addHandler(_HANDLER)
    for name, level in json.loads(levels).items():
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(level)


def _set_up_by_the_user(name: str) -> bool:
    """Return whether a logger, or one above it, has a handler that is not ours."""
    logger: logging.Logger | None = logging.getLogger(name)
    while logger is not None:
        if any(handler is not _HANDLER for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False
