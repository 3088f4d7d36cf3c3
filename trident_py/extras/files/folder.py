"""The folder of a FileState: rules of its URI, and its files by relative names, with ``/`` between their parts."""

from __future__ import annotations

import io
import zlib
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from ...errors import DefinitionError, FailedException, StateError, TridentError
from ...filesystems.base import AWAY, LOCAL, LOCAL_PASSES, NAMENODE_AWAY, REFUSED, FileSystem, StorageFailure
from ...filesystems.folder import StoredFolder
from ...filesystems.registry import open_filesystem
from ...filesystems.uris import (
    HDFS,
    S3,
    Storage,
    check_storage,
    http_address,
    local_path,
    naming,
    needs_of_paths,
    parse_uri,
)
from ...state import Location, Needs


def normalize_uri(uri: str, storage: Storage) -> str:
    """Return the URI as it is kept. Raises DefinitionError for one of no known store, for settings of another store,
    and for a store in which nothing can be exact."""
    with naming("FileState"):
        found = parse_uri(uri)
        check_storage([uri], storage)
        if found is None:
            return str(Path(local_path(uri)).absolute())
        if found.kind is HDFS:
            http_address(found, storage)
        if found.kind not in (HDFS, S3):
            raise DefinitionError(
                f"{found.root}: a FileState is exactly once only where a file can be made under the condition that it "
                f"does not exist, and pyarrow has no such call for {found.kind.name}. Use a local folder, hdfs:// or "
                "s3://"
            )
        if not found.rest.strip("/"):
            raise DefinitionError(f"{uri!r} is a whole store; name a folder in it: {found.root}/FOLDER")
        return f"{found.root}{found.rest.rstrip('/')}"


def can_rename_folders(uri: str) -> bool:
    found = parse_uri(uri)
    return found is None or found.kind is HDFS


def location_of(uri: str) -> Location:
    found = parse_uri(uri)
    if found is None:
        store, path = "file", str(Path(uri).resolve())
    else:  # the store in one spelling for all schemes of a kind
        host = found.authority.partition(":")[0] if found.kind is HDFS else found.authority
        store, path = f"{found.kind.name}/{host.lower()}", found.rest
    above = frozenset(map(str, PurePosixPath(path).parents))
    return Location(frozenset({store}), frozenset({path}), "", f"folder {path if found is None else uri}", above)


def needs_of(uri: str, storage: Storage, shared: bool) -> Needs:
    """Return what each machine needs. A local folder is on one, unless it is ``shared``: mounted on all of them."""
    found = parse_uri(uri)
    if found is not None:
        needs = needs_of_paths([uri], storage)
        return needs if found.kind is not S3 else replace(needs, modules=("boto3",), install="trident-py[s3]")
    if shared:
        return Needs(paths=(str(Path(uri).absolute().parent),))
    return Needs(
        one_machine=f"the folder {uri} is on one machine; use hdfs:// or s3://, or say shared=True if it is one "
        "network file system that is mounted on all machines"
    )


def spark_uri(uri: str) -> str:
    """Return the URI as Spark's readers spell it."""
    found = parse_uri(uri)
    if found is None:
        return Path(uri).as_uri()
    return f"{f's3a://{found.authority}' if found.kind is S3 else found.root}{quote(found.rest)}"


HIDDEN = "_trident"
"""The folder of what is not data, in the state's folder."""
Settings = tuple[tuple[str, str | int | float | bool], ...]
_AWAY = (
    FailedException,
    ": the store does not answer: {text}. The batch is tried again; if this stays, check host and port in the URI and "
    "in storage={{...}}",
)
_TOLD: dict[str, tuple[type[TridentError], str]] = {
    LOCAL: (StateError, ": {text}. Check the folder and who may write it"),
    LOCAL_PASSES: (FailedException, ": {text}. The batch is tried again"),
    REFUSED: (
        StateError,
        ": the store refuses access: {text}. Check the credentials (storage={{...}}, or the environment of driver and "
        "executors) and what they may write",
    ),
    AWAY: _AWAY,
    NAMENODE_AWAY: _AWAY,
}


class StateFolder(StoredFolder):
    """One folder. Methods raise FailedException while the store is away, else StateError. ``renames``: as of the file
    system."""

    def __init__(self, files: FileSystem, root: str, where: str) -> None:
        super().__init__(files, root, where)
        self.renames = files.renames

    def check_conditional_write(self) -> None:
        """Raise StateError if `create` makes a file twice: a second driver could then write. Called at each start."""
        if self.ignores_condition(f"{HIDDEN}/conditional"):
            raise StateError(
                f"FileState: {self.where}: this S3 ignores If-None-Match, so it cannot keep an older driver from "
                "writing, and nothing is exactly once. Use a store that has conditional writes, as Amazon S3 has"
            )

    def open(self, name: str) -> Any:
        with self._explained("read", name):
            return self._files.open(self._at(name))

    def open_writer(self, name: str) -> FileWriter:
        with self._explained("write", name):
            return FileWriter(self, name, self._files.open_writer(self._at(name)))

    def rename(self, source: str, target: str) -> bool:
        with self._explained("rename" if self.renames else "copy", source):
            try:
                return self._files.rename(self._at(source), self._at(target))
            except FileExistsError:
                told = f"FileState: cannot rename {self.where}/{source} to {target}. The batch is tried again"
                raise FailedException(told) from None

    def rename_folder(self, source: str, target: str) -> bool:
        with self._explained("rename", source):
            return self._files.rename_folder(self._at(source), self._at(target))

    def sync(self, folder: str) -> None:
        with self._explained("sync", folder):
            self._files.sync(self._at(folder))

    def _error(self, doing: str, place: str, failure: StorageFailure) -> TridentError:
        raised, told = _TOLD.get(failure.kind, (StateError, ": {text}"))
        return raised(f"FileState: cannot {doing} {place}{told.format(text=failure.text)}")


class FileWriter(io.RawIOBase):
    """A new file that counts its bytes and computes their CRC-32. Whole and durable once ``close`` has returned."""

    def __init__(self, folder: StateFolder, name: str, file: Any) -> None:
        self._explained = lambda: folder._explained("write", name)
        self._file = file
        self.size = 0
        self.crc = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        with self._explained():
            self._file.write(view)
        self.crc = zlib.crc32(view, self.crc)
        self.size += len(view)
        return len(view)

    def tell(self) -> int:
        return self.size

    def close(self) -> None:
        if not self.closed:
            super().close()
            with self._explained():
                self._file.close()


@lru_cache(16)
def open_folder(uri: str, storage: Settings, sync: bool) -> StateFolder:
    """Return the folder, made once per process. Raises DefinitionError for settings that its store does not take."""
    found = parse_uri(uri)
    with naming("FileState"):
        files = open_filesystem(found, dict(storage), writes=True, sync=sync)
    return StateFolder(files, uri if found is None else found.rest, uri)
