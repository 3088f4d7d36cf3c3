"""Finds the store of each file that a FileSpout reads: the local file system, or the one that a URI names.

The coordinator lists and identifies files on the driver, the emitters open them in the tasks. Both go through `Files`.
A task has no JVM at hand, so nothing of Hadoop's Java is used.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from ..errors import SpoutError, TridentError
from ..secrets import hidden
from .filelist import SourceFile, Version
from .fileuris import HDFS, FileUri, Storage, local_path, uri_of
from .remotestores import ArrowStore
from .webhdfs import WebHdfsStore

AT_ONCE = 16
FIRST_BLOCK, FIRST_REMOTE_BLOCK = 64 << 10, 1 << 20  # a request to a store takes as long as reading a megabyte


class FileStore(Protocol):
    """One place with files. Paths are those below it; of the local file system, the paths themselves."""

    secrets: list[str]

    def find(self, path: str) -> list[str]:
        """The files at a path, unsorted: the file, all files of a folder, or all matches of a glob."""

    def nothing_at(self, path: str) -> str:
        """Why there is no file at a path; "" if that is all to be said."""

    def identify(self, path: str) -> Version:
        """The file as it is now. Raises what `failure` explains."""

    def open(self, path: str) -> Any:
        """A binary file to read and seek in. It and its methods raise what `failure` explains."""

    def failure(self, path: str, error: Exception) -> TridentError:
        """What an error means for the file, named in full: FailedException while the store is away, else SpoutError."""


class LocalStore:
    """The file system of the machine, as this process sees it."""

    def __init__(self) -> None:
        self.secrets: list[str] = []

    def find(self, path: str) -> list[str]:
        place = Path(path)
        if place.is_file():
            return [str(place.absolute())]
        if place.is_dir():
            names = (file.relative_to(place) for file in place.rglob("*") if file.is_file())
            return [str((place / name).absolute()) for name in names if not any(part[0] in "._" for part in name.parts)]
        matches = (Path(match) for match in glob.glob(path, recursive=True))  # noqa: PTH207  (absolute patterns)
        return [str(match.absolute()) for match in matches if match.is_file()]

    def nothing_at(self, path: str) -> str:
        return f"current folder: {Path.cwd()}"

    def identify(self, path: str) -> Version:
        stat = os.stat(path)  # noqa: PTH116  (three times for each range: a Path would double its cost)
        return Version(stat.st_size, stat.st_mtime_ns, stat.st_ino)

    def open(self, path: str) -> Any:
        return pa.OSFile(path, "rb")

    def failure(self, path: str, error: Exception) -> TridentError:
        told = error.strerror if isinstance(error, OSError) and error.strerror else error
        return SpoutError(f"FileSpout: cannot read {path}: {told}; restore the file")


LOCAL = LocalStore()


class Files:
    """The files of a spout, wherever they are. Its methods raise TridentErrors only."""

    def __init__(self, storage: Storage) -> None:
        self._storage = tuple(sorted(storage.items()))

    def find(self, paths: Iterable[str]) -> list[SourceFile]:
        """The files of each path in turn: the file, all files of a folder, or all matches of a glob.

        The files of one path are sorted; each file is listed once. Skips names in folders that begin with a dot or an
        underscore. Raises SpoutError for a path without files.
        """
        files: dict[str, None] = {}
        for path in paths:
            store, root, below = self._place(path)
            with _Explained(store, path):
                matches = sorted(root + found for found in store.find(below))
                why = store.nothing_at(below) if not matches else ""
            if not matches:
                raise SpoutError(f"FileSpout: no file at {path!r}{f' ({why})' if why else ''}; check the path")
            files.update(dict.fromkeys(matches))
        with ThreadPoolExecutor(AT_ONCE) as several:  # each takes a request
            return list(several.map(self.identify, files))

    def prepare(self, paths: Iterable[str]) -> None:
        """Raises DefinitionError for a store that cannot be used: its settings, a missing package. Asks no store."""
        for path in paths:
            self._place(path)

    def identify(self, path: str) -> SourceFile:
        """The file as it is now."""
        store, _, below = self._place(path)
        with _Explained(store, path):
            return SourceFile(path, *store.identify(below))

    def check(self, file: SourceFile, txid: int) -> None:
        """Raises SpoutError if the file has changed: the batch could not be emitted unchanged."""
        now = self.identify(file.path)
        if now != file:
            change = f"from {file.size} to {now.size} bytes" if now.size != file.size else "rewritten"
            raise SpoutError(
                f"FileSpout: {file.path} has changed since this run first listed it ({change}), so txid {txid} "
                "cannot be emitted unchanged. Restore the file, or start again with a new checkpoint; "
                "put new data into new files"
            )

    def open(self, path: str) -> Any:
        """An open file. Read it inside of `reading`."""
        store, _, below = self._place(path)
        with _Explained(store, path):
            return store.open(below)

    def reading(self, path: str) -> _Explained:
        """A context in which errors of the file's store become ours."""
        return _Explained(self._place(path)[0], path)

    def _place(self, path: str) -> tuple[FileStore, str, str]:
        """The store, the beginning of its URIs, and the path below."""
        uri = uri_of(path)
        if uri is None:
            return LOCAL, "", local_path(path)
        return store_of(uri._replace(rest=""), self._storage), uri.root, uri.rest


class _Explained:
    """A context in which a store's errors become ours. A class, as it is entered several times for each range."""

    __slots__ = ("_path", "_store")

    def __init__(self, store: FileStore, path: str) -> None:
        self._store, self._path = store, path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OSError | RuntimeError):  # fsspec raises the latter for Java exceptions it does not know
            secret = hidden(str(error), self._store.secrets) != str(error)
            raise self._store.failure(self._path, error) from (None if secret else error)


@lru_cache(16)
def store_of(uri: FileUri, storage: tuple[tuple[str, str | int | float | bool], ...]) -> FileStore:
    """The store of a URI, made once per process. Raises DefinitionError for settings that it does not take."""
    kind = WebHdfsStore if uri.kind is HDFS else ArrowStore
    return kind(uri, dict(storage))


def first_block(path: str) -> int:
    """How much to read where a row's end may be near."""
    return FIRST_BLOCK if uri_of(path) is None else FIRST_REMOTE_BLOCK
