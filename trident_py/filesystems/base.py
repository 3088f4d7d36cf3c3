"""The interface of a file system: what `FileSpout` reads from and `FileState` writes to."""

from __future__ import annotations

import glob
import io
import posixpath
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, ClassVar, NamedTuple

from ..model.secrets import hide

ABSENT, REFUSED, AWAY, NAMENODE_AWAY, OTHER = "absent", "refused", "away", "namenode away", "other"
LOCAL_PASSES, LOCAL = "local, passes", "local"
_AWAY = re.compile(
    r"NETWORK_CONNECTION|SLOW_DOWN|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|REQUEST_TIMEOUT|REQUEST_TIME_TOO|THROTTLING|"
    r"status:? 5\d\d|\b50[0234] |timed out|UNAVAILABLE|DEADLINE_EXCEEDED|CURL error|curlCode|"
    r"Could ?n[o']t (connect|resolve)"
)
_REFUSED = re.compile(
    r"ACCESS_DENIED|INVALID_(ACCESS|CLIENT)_|SIGNATURE|EXPIRED|AuthenticationFailed|PERMISSION_DENIED|"
    r"UNAUTHENTICATED|status:? 40[13]|\b40[13] |Permission denied",
    re.IGNORECASE,
)


class FileInfo(NamedTuple):
    """A file or folder. ``mtime`` in nanoseconds; ``tag``: the inode of a local file, the file id of HDFS, the ETag of
    an object. Only `FileSystem.identify` promises both."""

    path: str
    is_file: bool
    size: int = 0
    mtime: int = 0
    tag: int | str = 0

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class StorageFailure(NamedTuple):
    """What an error of a file system means; ``cause`` is None if the error shows a secret."""

    kind: str
    text: str
    cause: Exception | None


class FileSystem(ABC):
    """Methods raise the errors that `explain` explains. Paths begin with a slash; that of the whole store is empty.

    ``renames``: whether a rename is one step, so that a reader of the folder sees all of the file or nothing. Where it
    copies, the source stays until it is deleted.
    """

    renames: ClassVar[bool] = False
    secrets: list[str]

    @abstractmethod
    def stat(self, path: str) -> FileInfo | None:
        """Return the file or folder at a path; None if there is none."""

    @abstractmethod
    def list_folder(self, path: str) -> list[FileInfo]:
        """Return what is in a folder, unsorted; nothing if there is no such folder."""

    @abstractmethod
    def open(self, path: str) -> Any:
        """Open a binary file to read and seek in."""

    def walk(self, path: str) -> list[FileInfo]:
        """Return what is in a folder and in its folders."""
        found = self.list_folder(path)
        return found + [below for info in found if not info.is_file for below in self.walk(info.path)]

    def identify(self, path: str) -> FileInfo:
        """Return the file with what changes whenever its content does. Raises FileNotFoundError."""
        if (info := self.stat(path)) is None:
            raise FileNotFoundError(path)
        return info

    def find(self, path: str) -> list[str]:
        """Return the file, a folder's files (no name in it beginning with a dot or underscore), or a glob's matches."""
        path = path.rstrip("/")
        info = self.stat(path)
        if info is not None and info.is_file:
            return [path]
        if info is not None:
            files = [below.path for below in self.walk(path) if below.is_file]
            return [file for file in files if not any(part[0] in "._" for part in file[len(path) :].split("/") if part)]
        if not glob.has_magic(path):
            return []
        return list(dict.fromkeys(i.path for i in _match(self, FileInfo("", False), path.split("/")[1:]) if i.is_file))

    def explain_absence(self, path: str) -> str:
        """Return why `find` found nothing; "" if that is all to be said."""
        return ""

    def read(self, path: str) -> bytes | None:
        """Return the content of a small file; None if there is none."""
        try:
            with self.open(path) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def create(self, path: str, data: bytes) -> bool:
        """Make a whole, durable file. False, without a change, if it exists: of several callers, one gets True."""
        raise io.UnsupportedOperation("this store is only read")

    def open_writer(self, path: str) -> Any:
        """Open a new binary file. It is whole and durable once ``close()`` has returned."""
        raise io.UnsupportedOperation("this store is only read")

    def rename(self, source: str, target: str) -> bool:
        """Give a whole file another name, replacing a file there. False if there is no source. Raises FileExistsError
        if the target stays in the way."""
        raise io.UnsupportedOperation("this store is only read")

    def rename_folder(self, source: str, target: str) -> bool:
        """Give a folder another name in one step. False if there is no source. Only where the store ``renames``."""
        raise io.UnsupportedOperation("this store cannot rename a folder")

    def sync(self, folder: str) -> None:  # noqa: B027  (most stores have nothing to do)
        """Make the names in a folder durable, where the calls that made them have not."""

    def delete(self, path: str) -> None:
        """Delete a file or a folder with all its files. It may be gone already."""
        raise io.UnsupportedOperation("this store is only read")

    def explain(self, error: Exception) -> StorageFailure:
        """Say what an error means, without secrets."""
        plain = " ".join(str(error).split())
        text = hide(plain, self.secrets)
        return StorageFailure(self._classify(error, text), text, error if text == plain else None)

    def _classify(self, error: Exception, text: str) -> str:
        if isinstance(error, FileNotFoundError):
            return ABSENT
        if isinstance(error, PermissionError) or _REFUSED.search(text) is not None:
            return REFUSED
        return AWAY if isinstance(error, ConnectionError | TimeoutError) or _AWAY.search(text) is not None else OTHER


def is_number(name: str) -> bool:
    """Return whether a name is a number that `int` reads: `str.isdigit` takes "²" for one, too."""
    return name.isascii() and name.isdigit()


def make_hidden_path(path: str) -> str:
    """Return a new hidden name beside a path, for a file that is not yet whole."""
    folder, name = posixpath.split(path)
    return f"{folder}/.{name}.{secrets.token_hex(8)}"


def _match(files: FileSystem, at: FileInfo, parts: list[str]) -> Iterator[FileInfo]:
    """Match as Python's ``glob``: a pattern matches no name that begins with a dot, ``**`` any number of folders."""
    if not parts:
        yield at
        return
    first, rest = parts[0], parts[1:]
    if first == "**":
        deep = [below for below in files.walk(at.path) if "/." not in below.path[len(at.path) :]]
        for below in [at, *deep]:
            if not below.is_file or not rest:
                yield from _match(files, below, rest)
    elif glob.has_magic(first):
        for below in files.list_folder(at.path):
            shown = below.name[0] != "." or first[0] == "."
            if fnmatchcase(below.name, first) and shown and (not below.is_file or not rest):
                yield from _match(files, below, rest)
    elif any(map(glob.has_magic, rest)):
        yield from _match(files, FileInfo(f"{at.path}/{first}", False), rest)
    elif (found := files.stat("/".join([at.path, *parts]))) is not None:
        yield found
