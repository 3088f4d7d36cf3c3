"""A run for programs: a line of JSON for each event, on stdout or in a file, and for all else that a command prints."""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from io import TextIOBase
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, TextIO

from ...cli.display import is_no_event, now
from ...errors import DefinitionError
from ...model.json_text import parse_json, write_json
from ...model.secrets import hide
from ...report.guarantees import Guarantees
from ...report.progress import Event, Progress

FILE_BYTES, OLDER_FILES = 10_000_000, 5
FAILED = ("replay", "poison", "failed")
Write = Callable[[str], Any]


_files: dict[str, Path] = {}
"""Where the events of the topologies of this process are written."""


def past(topology: str, component: str | None, txid: int) -> list[dict[str, Any]] | None:
    """Return what the file of a topology has of one batch, oldest first; None if it has no file."""
    file = _files.get(topology)
    if file is None:
        return None
    files = [file.with_name(f"{file.name}.{number}") for number in range(OLDER_FILES, 0, -1)]
    found = []
    for each in [*files, file]:
        with suppress(OSError), each.open(encoding="utf-8") as lines:
            found += [event for line in lines if f'"txid": {txid},' in line and (event := _read(line)) is not None]
    found = [event for event in found if event.get("txid") == txid and event.get("topology") == topology]
    return [event for event in found if component in (None, event.get("component"))]


def _read(line: str) -> dict[str, Any] | None:
    """Return an event; None for a line that a crash has cut."""
    try:
        return dict(parse_json(line))
    except ValueError:
        return None


def line_of(event: str, time: datetime | None = None, **more: Any) -> str:
    """Return an event as one JSON object in one line, with its time in ISO 8601."""
    moment = (time or now()).isoformat(timespec="milliseconds")
    return write_json({"event": event, "time": moment, **more})


class EventLines:
    """Writes one JSON object per event to each of ``writes``; what all have besides is in ``more``. A committed batch
    includes counts and seconds. A display of `trident_py.cli.display`, entered before the topology is loaded.

    ``as_json``: on stdout; ``file``: there; ``log``: on stderr, and all that is printed else is JSON too.
    """

    def __init__(self, as_json: bool, file: str | None, log: bool) -> None:
        self._as_json, self._log = as_json, log
        self._file = None if file is None else Path(file).absolute()  # a topology file is loaded in its own folder
        self._writes: list[tuple[Write, Mapping[str, Any]]] = []
        self._topology: dict[str, str] = {}
        self._opened = ExitStack()

    def __enter__(self) -> EventLines:
        if self._log:
            more = {"host": socket.gethostname()}
            self._writes.append((_printer(sys.stderr), more))
            self._log_as_json(sys.stderr, more)
        if self._as_json:
            self._writes.append((_printer(sys.stdout), {}))
        if self._log:
            self._opened.enter_context(redirect_stdout(self._stream(sys.stdout, "stdout", more)))
            self._opened.enter_context(redirect_stderr(self._stream(sys.stderr, "stderr", more)))
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def begin(self, name: str, guarantees: Guarantees) -> None:
        """Called before the run starts. Raises DefinitionError if the file cannot be written."""
        self._topology["topology"] = name
        if self._file is not None:
            self._writes.append((self._opened.enter_context(file_of_events(self._file)), {}))
            _files[name] = self._file
            self._opened.callback(_files.pop, name)
        moment = now()
        for guarantee in guarantees:
            self.tell("guarantee", moment, **asdict(guarantee))

    def tell(self, event: str, time: datetime | None = None, **more: Any) -> None:
        """Write an object."""
        for write, besides in self._writes:
            write(line_of(event, time, **self._topology, **besides, **more))

    def event(self, time: datetime, event: Event, progress: Progress | None) -> None:
        record: dict[str, Any] = {"txid": event.txid, "attempt": event.attempt}
        if event.reason:
            record["reason"] = hide(event.reason)
        if progress is not None:
            record["component"] = progress.component
        if progress is not None and event.kind in FAILED and progress.failed_partition is not None:
            record["partition"] = progress.failed_partition
        if progress is not None and event.kind == "committed":
            record |= {"emitted": progress.emitted, "persisted": progress.persisted, "seconds": progress.seconds}
            if progress.backlog:
                record["backlog"] = progress.backlog
            if progress.metrics:
                record["metrics"] = progress.metrics
        self.tell(event.kind, time, **record)

    def _log_as_json(self, stream: TextIO, more: Mapping[str, Any]) -> None:
        """Make the log of this process lines of JSON. It has no event again."""
        handler = logging.StreamHandler(stream)
        handler.setFormatter(_JsonFormatter(lambda: {**self._topology, **more}))
        handler.addFilter(is_no_event)
        logging.getLogger().addHandler(handler)
        self._opened.callback(logging.getLogger().removeHandler, handler)

    def _stream(self, stream: TextIO, name: str, more: Mapping[str, Any]) -> Any:
        write = _printer(stream)

        def tell(text: str) -> None:
            write(line_of(name, None, **self._topology, **more, message=hide(text)))

        made = _JsonStream(stream, tell)
        self._opened.callback(made.end)
        return made


@contextmanager
def file_of_events(path: Path) -> Iterator[Write]:
    """Give what adds a line to a file. It is replaced when it is full; the last ones are kept as FILE.1 and so on.

    Raises DefinitionError if it cannot be written.
    """
    try:
        cut = path.is_file() and not (path.read_bytes() or b"\n").endswith(b"\n")  # its driver was killed
        handler = RotatingFileHandler(path, maxBytes=FILE_BYTES, backupCount=OLDER_FILES, encoding="utf-8")
    except OSError as error:
        raise DefinitionError(f"--events {path}: the events cannot be written there: {error}") from None
    with closing(handler):
        write: Write = lambda line: handler.emit(logging.makeLogRecord({"msg": line}))  # noqa: E731
        if cut:
            write("")
        yield write


class _JsonFormatter(logging.Formatter):
    """Formats a record of the log as one JSON object. ``more``: returns what each object has besides."""

    def __init__(self, more: Callable[[], Mapping[str, Any]]) -> None:
        super().__init__()
        self._more = more

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {**self._more(), "level": record.levelname, "logger": record.name}
        if record.exc_info:
            told["trace"] = hide(self.formatException(record.exc_info))
        return line_of("log", datetime.fromtimestamp(record.created, UTC), **told, message=hide(record.getMessage()))


class _JsonStream(TextIOBase):
    """Stands in place of ``stream``: tells the text of each `print` as one."""

    def __init__(self, stream: TextIO, tell: Callable[[str], Any]) -> None:
        self._stream, self._tell = stream, tell
        self._begun: dict[int, str] = {}  # by thread

    def write(self, text: str) -> int:
        thread = threading.get_ident()
        begun = self._begun.pop(thread, "") + text
        if begun.endswith("\n"):
            self._tell(begun.rstrip("\n"))
        elif begun:
            self._begun[thread] = begun
        return len(text)

    def end(self) -> None:
        """Tell what has no end of a line."""
        while self._begun:
            self._tell(self._begun.popitem()[1])

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()


def _printer(stream: TextIO) -> Write:
    def write(line: str) -> None:
        stream.write(f"{line}\n")  # at once: there are other threads
        stream.flush()

    return write
