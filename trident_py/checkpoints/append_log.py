"""Append-only metadata store: one write and one fsync per entry, however many paths there are.

    <folder>/journal    a line for each write: its checksum, and JSON
    <folder>/lock       locked while a store reads or writes

The JSON is ``[durable, path, txid, value]``, without the value for a removal. ``durable`` says how long the file was
when it was last synced before this write. So an incomplete end, which a lost power supply leaves, is told from damage:
a line that ends, and has no block that the disk never took, was written whole.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import SpoutError, TridentError
from ..model.json_text import parse_json
from ..model.resources import close_all
from .metadata_store import (
    LOG,
    MemoryMetadataStore,
    SharedMetadataStore,
    make_folder,
    ownership_error,
    sync_folder,
    to_json,
)

log = logging.getLogger("trident_py")

JOURNAL = "journal"
HEADER = b"trident-journal 1\n"
LOCK_SECONDS = 10.0
FULL = {errno.ENOSPC, errno.EDQUOT}
LEAST_SIZE = 1 << 18
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.05


class _Extent(NamedTuple):
    """The file as this store knows it: which one it is, how long, and how much of it is on the disk for sure."""

    inode: int
    size: int
    durable: int


class AppendLogStore(SharedMetadataStore):
    """Keeps metadata in a folder of this machine, in one file. Made for short batches.

    A reader sees each write whole or not at all, also after a crash. Raises SpoutError for a damaged file, and
    ZombieError, which names the other driver, for a write after another one's. What it raises for the disk is
    TridentError; it writes nothing after that. But a `settle` that failed harms no later write.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__()
        self._folder = Path(folder)
        self.file = self._folder / JOURNAL
        make_folder(self._folder)
        self._lock_file = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        self._file: int | None = None
        self._failed: OSError | None = None
        self._unsure = False  # whether a sync failed of what this store has noted
        self._limit = LEAST_SIZE
        self._written = _Extent(0, 0, 0)
        self._loaded = False

    def put(self, path: str, txid: int, value: Any) -> None:
        self._put(path, txid, to_json(value, path), sync=True)

    def note(self, path: str, txid: int, value: Any) -> None:
        """Put, durable only when a later `put` or `close` returns. If the machine loses its power before that,
        the write is lost; if the process is killed, it is not."""
        self._put(path, txid, to_json(value, path), sync=False)

    def remove(self, path: str, txid: int) -> None:
        with self._lock:
            if txid in self._read(path):
                self._put(path, txid, None, sync=True)

    def seize(self, path: str, change: Callable[[dict[int, Any]], tuple[int, Any]]) -> None:
        """Replace the entries in one step: no other store writes in between."""
        with self._lock, self._lock_folder():
            self._catch_up()
            txid, value = change(self._read(path))
            self._append(path, txid, to_json(value, path), sync=True)

    def reread(self, path: str) -> None:
        with self._lock, self._lock_folder():
            self._catch_up()

    def newest(self, path: str) -> Any:
        with self._explained("read"):
            content = self._content() or HEADER
        entries = _parse(content, self.file)[1].get(path)
        return entries[max(entries)] if entries else None

    def settle(self) -> None:
        """Raise TridentError if the disk fails. It can be asked again: a second sync of the file would not tell what
        the disk has of it, so another one takes its place."""
        with self._lock:
            if self._failed is not None:
                return
            try:
                if self._unsure:
                    with self._lock_folder():
                        if not self._differs(""):
                            self._rewrite()
                elif self._file is not None and self._written.durable < self._written.size:
                    self._sync(self._file)
            except OSError as error:
                self._unsure = True
                raise TridentError(f"the checkpoint's file {self.file} cannot be made durable: {error}") from error

    def close(self) -> None:
        with self._lock:
            close_all([self.settle, self._close_file, self._close_lock])

    def _close_lock(self) -> None:
        os.close(self._lock_file)
        self._lock_file = -1

    def _put(self, path: str, txid: int, text: str | None, sync: bool) -> None:
        """Write a value as JSON, or without one removes the entry. Raises ZombieError if another driver has written
        since this store read or wrote."""
        with self._lock:
            self._read(path)
            with self._lock_folder():
                if self._failed is None and self._differs(path):
                    raise ownership_error(str(self._folder), self.newest(LOG))
                self._append(path, txid, text, sync)

    def _append(self, path: str, txid: int, text: str | None, sync: bool) -> None:
        """Append a line. The folder is locked."""
        with self._explained(f"written at txid {txid}"):
            self._append_line(path, txid, text, sync)
        _apply(self._entries, path, txid, [] if text is None else [json.loads(text)])

    @contextlib.contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        """Inside, what the disk raises becomes TridentError, which names the file and the next step."""
        try:
            yield
        except OSError as error:
            step = "Make room there" if error.errno in FULL else "Mend the disk, or what this user may do there"
            raise TridentError(
                f"the checkpoint's file {self.file} cannot be {done}: {error}. {step}, then start again: the run goes "
                "on where it stopped"
            ) from error

    def _append_line(self, path: str, txid: int, text: str | None, sync: bool) -> None:
        if self._failed is not None:
            raise self._failed
        large = sync and self._written.size > self._limit
        if self._file is None or self._unsure or large:  # a new file is durable, notes are not
            self._rewrite()
        assert self._file is not None
        inode, size, durable = self._written
        line = _line(durable, path, txid, text)
        try:
            self._write_all(line, size)
            if sync:
                os.fdatasync(self._file)
        except OSError as error:
            self._failed = error
            raise
        size += len(line)
        self._written = _Extent(inode, size, size if sync else durable)

    def _write_all(self, line: bytes, size: int) -> None:
        """Write the whole line or, if the disk is full, nothing of it."""
        assert self._file is not None
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, size)
            raise

    def _rewrite(self) -> None:
        """Put a file with the present entries alone in place of the old one. The folder is locked."""
        write_journal(self._folder, self._entries)
        self._open()
        self._unsure = False
        self._limit = max(LEAST_SIZE, 4 * self._written.size)

    def _read(self, path: str) -> dict[int, Any]:
        if not self._loaded:
            with self._lock_folder():
                self._catch_up()
        return self._entries.get(path, {})

    def _all(self) -> list[str]:
        self._read("")
        return list(self._entries)

    def _differs(self, path: str) -> bool:
        """Return whether anybody else has written anything: the file is another one, or has another length."""
        try:
            now = self.file.stat()
        except FileNotFoundError:
            return self._written.inode != 0
        except OSError as error:
            raise TridentError(f"the checkpoint's file {self.file} cannot be read: {error}") from error
        return (now.st_ino, now.st_size) != self._written[:2]

    def _catch_up(self) -> None:
        """Re-read the file if another process changed it. Truncates an incomplete last record, which was never
        acknowledged. The folder is locked."""
        self._loaded = True
        if not self._differs(""):
            return
        with self._explained("read"):
            self._read_anew()

    def _read_anew(self) -> None:
        data = self._content()
        if data is None:
            self._entries, self._written = {}, _Extent(0, 0, 0)
            self._close_file()
            return
        end, self._entries = _parse(data, self.file)
        if end < len(data):
            log.warning("%s: its end was being written when the machine or the driver stopped; dropped", self.file)
            os.truncate(self.file, end)
        self._open()

    def _content(self) -> bytes | None:
        try:
            data = self.file.read_bytes()
        except FileNotFoundError:
            return None
        _check_header(data, self.file)
        return data

    def _open(self) -> None:
        """Open the present file, whose content is known. Not all of it needs to be on the disk yet."""
        self._close_file()
        self._file = os.open(self.file, os.O_WRONLY | os.O_APPEND)
        now = os.fstat(self._file)
        self._written = _Extent(now.st_ino, now.st_size, 0)
        self._sync(self._file)

    def _sync(self, file: int) -> None:
        os.fdatasync(file)
        self._written = self._written._replace(durable=self._written.size)

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @contextlib.contextmanager
    def _lock_folder(self) -> Iterator[None]:
        """Locks the folder against all other stores, also those of this process. A dead process holds no lock."""
        deadline, pause = time.monotonic() + LOCK_SECONDS, _FIRST_PAUSE
        while True:
            try:
                fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TridentError(
                        f"the checkpoint {self._folder} is locked: another process has been writing it for "
                        f"{LOCK_SECONDS:g} s. It may be stopped (`fuser {self._folder}/lock` names it): end it, or let "
                        "it go on, then start again"
                    ) from None
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        try:
            yield
        finally:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)


def write_journal(folder: Path, entries: Mapping[str, Mapping[int, Any]]) -> None:
    """Make a folder's journal anew, in one step and durable, with these entries alone."""
    lines = [_line(0, path, txid, to_json(value, path))
             for path, values in entries.items() for txid, value in values.items()]  # fmt: skip
    scratch = folder / f"{JOURNAL}.new"
    with scratch.open("wb") as out:
        out.write(b"".join([HEADER, *lines]))
        out.flush()
        os.fsync(out.fileno())
    scratch.replace(folder / JOURNAL)
    sync_folder(folder)


def read_journal(folder: Path) -> MemoryMetadataStore:
    """Return what a folder's journal says now. Changes nothing, makes nothing, and waits for no lock: a line that is
    being written does not count. Raises SpoutError if it is damaged."""
    file = folder / JOURNAL
    try:
        return MemoryMetadataStore(entries_of(file.read_bytes(), file))
    except FileNotFoundError:
        return MemoryMetadataStore()


def entries_of(data: bytes, file: object) -> dict[str, dict[int, Any]]:
    """Return what a journal's content says, by path and txid. Raises SpoutError if it is damaged."""
    _check_header(data, file)
    return _parse(data, file)[1]


def _line(durable: int, path: str, txid: int, text: str | None) -> bytes:
    value = "" if text is None else f",{text}"
    body = f"[{durable},{json.dumps(path)},{txid}{value}]".encode()
    return b"%08x %b\n" % (zlib.crc32(body), body)


def _record(line: bytes) -> list[Any] | None:
    """Return the JSON of a line; None if the line is not what was written."""
    checksum, _, body = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(body):
        return None
    record: list[Any] = parse_json(body)
    return record


def _check_header(data: bytes, file: object) -> None:
    if not data.startswith(HEADER):
        raise _damage_error(file, f"it does not begin with {HEADER.decode().strip()!r}")


def _parse(data: bytes, file: object) -> tuple[int, dict[str, dict[int, Any]]]:
    """Return how long the content is without an incomplete end, and what it says. Raises SpoutError if something is
    damaged that was durable."""
    found: dict[str, dict[int, Any]] = {}
    at = len(HEADER)
    while at < len(data):
        end = data.find(b"\n", at)
        record = _record(data[at:end]) if end >= 0 else None
        if record is None:
            _check_end(data, at, file)
            break
        _, path, txid, *value = record
        _apply(found, path, txid, value)
        at = end + 1
    return at, found


def _check_end(data: bytes, at: int, file: object) -> None:
    """Raise SpoutError if the unreadable line at this byte was written whole: a bit of it, or of its end, is another
    one now. Or if a line behind it says that it was durable."""
    line, end, behind = data[at:].partition(b"\n")
    whole = not _has_hole(line) if end else not line.endswith(b"\0") and _record(line[:-1]) is not None
    later = (_record(other) for other in behind.split(b"\n"))
    if whole or any(record is not None and record[0] > at for record in later):
        raise _damage_error(file, f"what stands at byte {at} is not what was written there")


def _has_hole(line: bytes) -> bool:
    """Return whether the disk has never taken a block of the line: it reads as zeros then, which no JSON has."""
    return line.startswith(b"\0") or b"\0\0" in line


def _apply(entries: dict[str, dict[int, Any]], path: str, txid: int, value: list[Any]) -> None:
    """Apply an entry. ``value``: a list with the value; empty for a removal."""
    of_path = entries.setdefault(path, {})
    if value:
        of_path[txid] = value[0]
    else:
        of_path.pop(txid, None)


def _damage_error(file: object, why: str) -> SpoutError:
    return SpoutError(f"the checkpoint's file {file} is damaged: {why}; restore the file from a copy")
