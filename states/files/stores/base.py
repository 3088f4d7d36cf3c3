"""What a FileState needs of a file system. Names are relative to the state's folder, with ``/`` between their parts."""

from __future__ import annotations

import io
import zlib
from typing import Any, NamedTuple, Protocol

HIDDEN = "_trident"
"""The folder of what is not data, in the state's folder."""


class Entry(NamedTuple):
    """A file or folder in a listing; ``size`` in bytes."""

    name: str
    size: int


class FileStore(Protocol):
    """One folder. Methods raise FailedException while the store is away, else StateError.

    ``where``: the folder's address for messages, without secrets. ``shown_to_spark``: its URI as Spark's readers spell
    it. ``renames``: whether `place` and `place_folder` are one step, so that a reader who lists
    the folder sees all or nothing of what was placed.
    """

    where: str
    shown_to_spark: str
    renames: bool

    def prove(self) -> None:
        """Called once per start of a driver. Raises StateError if `create` does not refuse a name that exists."""

    def names(self, folder: str) -> list[Entry]:
        """The files and folders in a folder, unsorted; none if there is no such folder."""

    def read(self, name: str) -> bytes | None:
        """The content of a small file; None if there is none."""

    def create(self, name: str, data: bytes) -> bool:
        """Makes a whole, durable file. False, without a change, if it exists: of several callers, one gets True."""

    def open(self, name: str) -> Any:
        """A binary file to read and seek in."""

    def writer(self, name: str) -> Any:
        """A new binary file. It is whole and durable once ``close()`` has returned."""

    def place(self, source: str, target: str) -> bool:
        """Gives a whole file its final name, in the place of another file with that name. False if there is no file
        ``source``. Where the store copies (``renames`` is False), ``source`` stays until it is deleted."""

    def place_folder(self, source: str, target: str) -> bool:
        """Gives a folder its final name in one step. False if there is no such folder. Only where it ``renames``."""

    def settle(self, folder: str) -> None:
        """Makes the names in a folder durable."""

    def delete(self, name: str) -> None:
        """Deletes a file or a folder with all its files. It may be gone already."""


class Counting(io.RawIOBase):
    """A file that counts its bytes and computes their CRC-32 while they are written. ``close`` closes the file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.size = 0
        self.crc = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._file.write(view)
        self.crc = zlib.crc32(view, self.crc)
        self.size += len(view)
        return len(view)

    def tell(self) -> int:
        return self.size

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._file.close()
