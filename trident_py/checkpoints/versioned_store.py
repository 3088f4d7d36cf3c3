"""A metadata store in a folder that cannot replace a file and compare it in one step, such as one in HDFS or S3.

What such a folder can do in one step, also between machines, is make a file that did not exist. So each write of a path
makes a new file, whose name is the next number: who has not seen the last one finds its number taken.

    <folder>/<path>/7.json      the newest version; older ones are deleted
"""

from __future__ import annotations

import contextlib
import json
import uuid
import zlib
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import quote, unquote

from ..errors import SpoutError, TridentError
from ..filesystems.base import is_number
from ..model.json_text import parse_json
from .metadata_store import SharedMetadataStore, other_driver_error, overwrite_error, to_json

TRIES = 5
_SUFFIX = ".json"


class Folder(Protocol):
    """A folder of small files. Names are relative and may have one ``/``. Methods raise TridentError if the store of
    the files does not answer or refuses."""

    @property
    def where(self) -> str:
        """The folder's address, for messages."""

    def names(self, folder: str = "") -> list[str]:
        """Return the names in the folder or in a folder inside it; none if there is no such folder."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none."""

    def create(self, name: str, data: bytes) -> bool:
        """Make a whole, durable file, and the folder around it. False, without a change, if it exists: of several
        callers on several machines, one gets True."""

    def delete(self, name: str) -> None:
        """Delete a file. It may be gone already."""


class VersionedStore(SharedMetadataStore):
    """Keeps metadata in a `Folder`, a few small files per path. One write costs a listing, a file, and a deletion.

    A reader sees the old entries or the new ones, also after a crash. Raises SpoutError for a damaged file, and
    ZombieError for a write over one that another driver has made since: it would drop that driver's batches, and
    they would be emitted again. Only if the other writes in the same moment, it may have read what the refused one
    wrote.
    """

    def __init__(self, folder: Folder) -> None:
        super().__init__()
        self._folder = folder
        self._id = uuid.uuid4().hex
        self._versions: dict[str, int] = {}
        self._noted: set[str] = set()

    def note(self, path: str, txid: int, value: Any) -> None:
        """Put in memory until a later `put` to the path or `close`: a file costs several requests."""
        text = to_json(value, path)
        with self._lock:
            self._entries[path] = self._read(path) | {txid: json.loads(text)}
            self._noted.add(path)

    def put_all(self, txid: int, values: dict[str, Any]) -> None:
        for path, value in values.items():
            self.put(path, txid, value)

    def take_over(self, path: str, change: Callable[[dict[int, Any]], tuple[int, Any]]) -> None:
        """Seize every path: who has read one of them before finds its number taken."""
        self.seize(path, change)
        for other in self._all():
            if other == path:
                continue
            self.reread(other)
            if self._read(other):
                self.seize(other, lambda entries: (max(entries), entries[max(entries)]))

    def settle(self) -> None:
        with self._lock:
            for path in sorted(self._noted):
                self._write(path, self._entries[path])

    def close(self) -> None:
        with contextlib.suppress(TridentError):  # then the next start repeats the batch as it was
            self.settle()

    def newest(self, path: str) -> Any:
        """Do not count as read: after another driver's write this store stays refused."""
        entries = self._parse(path, *self._newest(path))
        return entries[max(entries)] if entries else None

    def _differs(self, path: str) -> bool:
        return self._last(path) > self._versions[path]

    def _read(self, path: str) -> dict[int, Any]:
        if path not in self._entries:
            version, data = self._newest(path)
            self._entries[path] = self._parse(path, version, data)
            self._versions[path] = version
        return self._entries[path]

    def _parse(self, path: str, version: int, data: bytes | None) -> dict[int, Any]:
        if data is None:
            return {}
        try:
            found = parse_json(data)
            entries = found["entries"]
            if found.keys() != {"by", "entries"} and found["sum"] != _sum(json.dumps(entries)):
                raise ValueError("its content is not what was written")
            return {int(txid): value for txid, value in entries.items()}
        except (ValueError, AttributeError, KeyError, TypeError) as error:
            name = f"{self._folder.where}/{_file(path, version)}"
            raise SpoutError(f"spout metadata {name} is damaged: {error}; restore the file from a copy") from error

    def _newest(self, path: str) -> tuple[int, bytes | None]:
        """Return the newest version and its content. It may be deleted for a newer one between the listing and the
        reading."""
        for _ in range(TRIES):
            version = self._last(path)
            data = self._folder.read(_file(path, version)) if version else None
            if data is not None or version == 0:
                return version, data
        raise overwrite_error(f"{self._folder.where}/{quote(path, safe='')}")

    def _write(self, path: str, entries: dict[int, Any]) -> None:
        kept = json.dumps({str(txid): entries[txid] for txid in sorted(entries)})
        text = f'{{"by": "{self._id}", "entries": {kept}, "sum": {_sum(kept)}}}'
        version = self._make(path, self._versions.get(path, 0) + 1, text.encode())
        stored = self._list_versions(path)
        if max(stored, default=version) > version:
            # A driver that has missed several writes may find its number free again, deleted as an old one. Or the
            # other has read this write and gone on from it: then it counts, and ends this driver all the same.
            self._folder.delete(_file(path, version))
            raise other_driver_error(f": it has gone on after {self._folder.where}/{_file(path, version)}")
        self._entries[path], self._versions[path] = entries, version
        self._noted.discard(path)
        for old in stored:
            if old < version:
                self._folder.delete(_file(path, old))

    def _make(self, path: str, version: int, data: bytes) -> int:
        """Make the next version and return its number. An answer that was lost leaves a version of ours behind."""
        for _ in range(TRIES):
            name = _file(path, version)
            if self._folder.create(name, data):
                return version
            found = self._folder.read(name)
            if found is None and self._last(path) <= version:
                continue  # two stores made it at the same moment, and this one was asked to try again
            if found == data:
                return version
            if found is None or f'"by": "{self._id}"'.encode() not in found:
                raise overwrite_error(f"{self._folder.where}/{name}")
            version += 1
        raise TridentError(f"{self._folder.where}/{_file(path, version)} cannot be made, and does not exist")

    def _last(self, path: str) -> int:
        """Return the newest version; 0 if there is none."""
        return max(self._list_versions(path), default=0)

    def _list_versions(self, path: str) -> list[int]:
        """Return the versions of a path, in order."""
        names = self._folder.names(quote(path, safe=""))
        numbers = [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]
        return sorted(int(number) for number in numbers if is_number(number))

    def _all(self) -> list[str]:
        return sorted(unquote(name) for name in self._folder.names() if name[0] != ".")


def _file(path: str, version: int) -> str:
    return f"{quote(path, safe='')}/{version}{_SUFFIX}"


def _sum(entries: str) -> int:
    """Return the checksum of a file's entries. Files of older versions have none."""
    return zlib.crc32(entries.encode())
