"""Files in S3, Google Cloud Storage and Azure, by pyarrow; and what all remote stores share."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol

from ..errors import DefinitionError, FailedException, SpoutError, TridentError
from ..secrets import hidden
from .filelist import Version
from .fileuris import AZURE, GCS, FileUri, Storage, account_of, secrets_of

RETRY_SECONDS = 30
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


class StoredFile(NamedTuple):
    """A file or a folder of a store; the path below the store begins with a slash."""

    path: str
    is_file: bool


class Tree(Protocol):
    """What `find_in` asks a store. Paths begin with a slash; that of the store itself is empty."""

    def entry(self, path: str) -> StoredFile | None:
        """The file or folder at a path; None if there is none."""

    def below(self, path: str, deep: bool) -> list[StoredFile]:
        """What is in a folder, ``deep``: also in its folders. Nothing if there is no such folder."""


def find_in(tree: Tree, path: str) -> list[str]:
    """The file, all files of a folder (no name in it beginning with a dot or an underscore), or a glob's matches."""
    path = path.rstrip("/")
    entry = tree.entry(path)
    if entry is not None and entry.is_file:
        return [path]
    if entry is not None:
        files = [below.path for below in tree.below(path, deep=True) if below.is_file]
        return [file for file in files if not any(part[0] in "._" for part in file[len(path) :].split("/") if part)]
    if not glob.has_magic(path):
        return []
    matches = dict.fromkeys(_matches(tree, StoredFile("", False), path.split("/")[1:]))
    return [match.path for match in matches if match.is_file]


def _matches(tree: Tree, at: StoredFile, parts: list[str]) -> Iterator[StoredFile]:
    """As Python's ``glob``: a pattern matches no name that begins with a dot, ``**`` any number of folders."""
    if not parts:
        yield at
        return
    first, rest = parts[0], parts[1:]
    if first == "**":
        deep = [below for below in tree.below(at.path, deep=True) if "/." not in below.path[len(at.path) :]]
        for below in [at, *deep]:
            if not below.is_file or not rest:
                yield from _matches(tree, below, rest)
    elif glob.has_magic(first):
        for below in tree.below(at.path, deep=False):
            name = below.path.rpartition("/")[2]
            if fnmatchcase(name, first) and (name[0] != "." or first[0] == ".") and (not below.is_file or not rest):
                yield from _matches(tree, below, rest)
    elif any(map(glob.has_magic, rest)):
        yield from _matches(tree, StoredFile(f"{at.path}/{first}", False), rest)
    else:
        found = tree.entry("/".join([at.path, *parts]))
        yield from [found] if found is not None else []


def is_refused(error: Exception, text: str) -> bool:
    """Whether a store refuses access."""
    return isinstance(error, PermissionError) or _REFUSED.search(text) is not None


def is_away(error: Exception, text: str) -> bool:
    """Whether a store does not answer, or asks to be called again."""
    return isinstance(error, ConnectionError | TimeoutError) or _AWAY.search(text) is not None


def meaning(path: str, error: Exception, secrets: list[str]) -> TridentError:
    """What a store's error means. A store that is away fails the batch, which is then tried again."""
    text = hidden(" ".join(str(error).split()), secrets)
    if isinstance(error, FileNotFoundError):
        return SpoutError(f"FileSpout: cannot read {path}: there is no such file; restore the file")
    if is_refused(error, text):
        return SpoutError(
            f"FileSpout: {path}: the store refuses access: {text}. Check the credentials (storage={{...}}, or the "
            "environment of driver and executors) and what they may read"
        )
    if is_away(error, text):
        return FailedException(
            f"FileSpout: {path}: the store does not answer: {text}. The batch is tried again; if this stays, check "
            "host and port in the path and in storage={...}"
        )
    return SpoutError(f"FileSpout: cannot read {path}: {text}")


def unusable(uri: FileUri, text: str, secrets: list[str]) -> DefinitionError:
    """The error for settings that a store does not take."""
    settings = f"storage={{...}} has the keywords of {uri.kind.client}"
    return DefinitionError(f"FileSpout: {uri.kind.name} cannot be used: {hidden(text, secrets)}; {settings}")


class ArrowStore:
    """A bucket or container."""

    def __init__(self, uri: FileUri, storage: Storage) -> None:
        self.secrets = secrets_of(storage)
        self._bucket = account_of(uri, storage)[1] if uri.kind is AZURE else uri.authority
        self._lists_files_only = uri.kind is GCS  # not the folders that stand in their names
        try:
            self._system = file_system(uri, storage)
        except (ImportError, TypeError, ValueError) as error:
            raise unusable(uri, str(error), self.secrets) from None

    def find(self, path: str) -> list[str]:
        return find_in(self, path)

    def identify(self, path: str) -> Version:
        """By size and ETag (Google's also changes with labels; its generation does not), new for other content."""
        with self.open(path) as file:
            told = {_text(name).lower(): _text(value) for name, value in file.metadata().items()}
            version = told.get("generation") or told.get("etag") or told.get("last-modified")
            if not version:
                raise OSError("the store tells no ETag, so a changed file could not be found")
            return Version(file.size(), 0, version)

    def open(self, path: str) -> Any:
        return self._system.open_input_file(self._bucket + path)

    def failure(self, path: str, error: Exception) -> TridentError:
        return meaning(path, error, self.secrets)

    def nothing_at(self, path: str) -> str:
        return "" if self.entry("") is not None else f"there is no bucket or container {self._bucket!r}"

    def entry(self, path: str) -> StoredFile | None:
        from pyarrow.fs import FileType

        kind = self._system.get_file_info(self._bucket + path).type
        return None if kind == FileType.NotFound else StoredFile(path, kind == FileType.File)

    def below(self, path: str, deep: bool) -> list[StoredFile]:
        from pyarrow.fs import FileSelector, FileType

        whole = deep or self._lists_files_only
        found = self._system.get_file_info(FileSelector(self._bucket + path, allow_not_found=True, recursive=whole))
        entries = [StoredFile(info.path[len(self._bucket) :], info.type == FileType.File) for info in found]
        if not self._lists_files_only:
            return entries
        entries = list(dict.fromkeys(each for entry in entries for each in (*_folders(path, entry.path), entry)))
        return entries if deep else [entry for entry in entries if "/" not in entry.path[len(path) + 1 :]]


def _folders(base: str, path: str) -> list[StoredFile]:
    """The folders between a folder and what is somewhere below it."""
    parts = path[len(base) + 1 :].split("/")[:-1]
    return [StoredFile("/".join([base, *parts[: n + 1]]), False) for n in range(len(parts))]


def file_system(uri: FileUri, storage: Storage) -> Any:
    """pyarrow's file system for a URI. Credentials that ``storage`` lacks come from the usual environment."""
    from pyarrow import fs

    settings: dict[str, Any] = dict(storage)
    if uri.kind is GCS:
        settings["retry_time_limit"] = timedelta(seconds=float(settings.get("retry_time_limit", RETRY_SECONDS)))
        return fs.GcsFileSystem(**settings)
    if uri.kind is AZURE:
        settings["account_name"] = account_of(uri, storage)[0]
        return fs.AzureFileSystem(**settings)
    named = os.environ.get("AWS_ENDPOINT_URL_S3", os.environ.get("AWS_ENDPOINT_URL"))
    settings.setdefault("endpoint_override", named)
    return fs.S3FileSystem(**settings)  # it reads all other variables itself


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
