"""A run for programs: a line of JSON for each event, on stdout or in a file, and for each record of the log."""

from __future__ import annotations

import json
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from typing import Any

from ..errors import DefinitionError
from ..model.secrets import hide
from ..report.progress import Event, Progress

FILE_BYTES, OLDER_FILES = 10_000_000, 5
Write = Callable[[str], Any]


def print_line(line: str) -> None:
    print(line, flush=True)


def now() -> datetime:
    return datetime.now(UTC)


def line_of(event: str, time: datetime | None = None, **more: Any) -> str:
    """Return an event as one JSON object in one line, with its time in ISO 8601."""
    moment = (time or now()).isoformat(timespec="milliseconds")
    return json.dumps({"event": event, "time": moment, **more}, default=str)


def print_record(event: str, time: datetime | None = None, **more: Any) -> None:
    """Print an event as one JSON object in one line of stdout."""
    print_line(line_of(event, time, **more))


class JsonLines:
    """Writes one JSON object per event; by default on stdout. A committed batch includes counts and seconds. ``more``:
    what each object has besides."""

    def __init__(self, name: str, write: Write = print_line, **more: Any) -> None:
        self._more = {"topology": name, **more}
        self._write = write

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *_: object) -> None: ...

    def tell(self, event: str, time: datetime | None = None, **more: Any) -> None:
        """Write an object."""
        self._write(line_of(event, time, **self._more, **more))

    def event(self, time: datetime, event: Event, progress: Progress | None) -> None:
        record: dict[str, Any] = {"txid": event.txid, "attempt": event.attempt}
        if event.reason:
            record["reason"] = event.reason
        if progress is not None:
            record["component"] = progress.component
        if progress is not None and event.kind == "committed":
            record |= {"emitted": progress.emitted, "persisted": progress.persisted, "seconds": progress.seconds}
            if progress.backlog:
                record["backlog"] = progress.backlog
            if progress.metrics:
                record["metrics"] = progress.metrics
        self.tell(event.kind, time, **record)


@contextmanager
def file_of_events(path: str) -> Iterator[Write]:
    """Give what adds a line to a file. It is replaced when it is full; the last ones are kept as FILE.1 and so on.

    Raises DefinitionError if it cannot be written.
    """
    try:
        handler = RotatingFileHandler(path, maxBytes=FILE_BYTES, backupCount=OLDER_FILES, encoding="utf-8")
    except OSError as error:
        raise DefinitionError(f"--events {path}: the events cannot be written there: {error}") from None
    with closing(handler):
        yield lambda line: handler.emit(logging.makeLogRecord({"msg": line}))


class JsonFormatter(logging.Formatter):
    """Formats a record of the log as one JSON object. ``more``: what each object has besides."""

    def __init__(self, **more: Any) -> None:
        super().__init__()
        self._more = more

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {**self._more, "level": record.levelname, "logger": record.name}
        if record.exc_info:
            told["trace"] = hide(self.formatException(record.exc_info))
        return line_of("log", datetime.fromtimestamp(record.created, UTC), **told, message=hide(record.getMessage()))


def log_as_json(name: str) -> None:
    """Make the log of this process lines of JSON on stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter(topology=name, host=socket.gethostname()))
    logging.getLogger().addHandler(handler)


def events_in_log(name: str) -> JsonLines:
    """Return what writes the events of a run beside the log."""
    return JsonLines(name, lambda line: print(line, file=sys.stderr, flush=True), host=socket.gethostname())
