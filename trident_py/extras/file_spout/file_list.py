"""The files of a FileSpout, found once and frozen with size, time and inode; their formats, and their errors."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import DefinitionError, FailedException, SpoutError, TridentError
from ...filesystems.base import ABSENT, AWAY, LOCAL, LOCAL_PASSES, NAMENODE_AWAY, OTHER, REFUSED, FileSystem
from ...filesystems.registry import open_filesystem
from ...filesystems.uris import FileUri, Storage, local_path, naming, parse_uri

AT_ONCE = 16
FIRST_BLOCK, FIRST_REMOTE_BLOCK = 64 << 10, 1 << 20  # a request to a store takes as long as reading a megabyte

FORMATS = ("lines", "csv", "json", "parquet")
_SUFFIXES = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "lines",
    ".log": "lines",
    "": "lines",
}
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".lz4", ".snappy")
_TOLD: dict[str, tuple[type[TridentError], str]] = {
    LOCAL: (SpoutError, "cannot read {path}: {text}; restore the file"),
    LOCAL_PASSES: (FailedException, "cannot read {path}: {text}. The batch is tried again"),
    ABSENT: (SpoutError, "cannot read {path}: there is no such file; restore the file"),
    REFUSED: (
        SpoutError,
        "{path}: the store refuses access: {text}. Check the credentials (storage={{...}}, or the environment of "
        "driver and executors) and what they may read",
    ),
    AWAY: (
        FailedException,
        "{path}: the store does not answer: {text}. The batch is tried again; if this stays, check host and port in "
        "the path and in storage={{...}}",
    ),
    NAMENODE_AWAY: (
        FailedException,
        "{path}: the HTTP of the namenode or of a datanode does not answer: {text}. The batch is tried again; if this "
        "stays, name the address of WebHDFS (the namenode's dfs.namenode.http-address) in storage={{'host': ..., "
        "'port': ...}}",
    ),
    OTHER: (SpoutError, "cannot read {path}: {text}"),
}


class SourceFile(NamedTuple):
    """A file as the run first saw it. In metadata it is the list of these values. ``mtime`` and ``tag``: as in
    `FileInfo`."""

    path: str
    size: int
    mtime: int
    tag: int | str


def format_of(paths: Iterable[str]) -> str:
    """Return the format by the file names. Raises DefinitionError for several formats, or a compressed file."""
    formats: dict[str, str] = {}
    for path in paths:
        suffix = Path(path).suffix.lower()
        if suffix in _COMPRESSED:
            raise DefinitionError(
                f"FileSpout: {path} is compressed and cannot be read in parts; decompress it, or use Parquet"
            )
        formats.setdefault(_SUFFIXES.get(suffix, "lines"), path)
    if len(formats) > 1:
        shown = ", ".join(f"{path} ({kind})" for kind, path in sorted(formats.items()))
        raise DefinitionError(f"FileSpout: the files have several formats: {shown}; set format=...")
    return next(iter(formats))


class Files:
    """The files of a spout, wherever they are. Its methods raise TridentErrors only."""

    def __init__(self, storage: Storage) -> None:
        self._storage = tuple(sorted(storage.items()))

    def find(self, paths: Iterable[str]) -> list[SourceFile]:
        """Return the files of each path in turn: the file, all files of a folder, or all matches of a glob.

        The files of one path are sorted; each file is listed once. Skips names in folders that begin with a dot or an
        underscore. Raises SpoutError for a path without files.
        """
        files: dict[str, None] = {}
        for path in paths:
            store, root, below = self._locate(path)
            with _Explained(store, path):
                matches = sorted(root + found for found in store.find(below))
                why = store.explain_absence(below) if not matches else ""
            if not matches:
                raise SpoutError(f"FileSpout: no file at {path!r}{f' ({why})' if why else ''}; check the path")
            files.update(dict.fromkeys(matches))
        with ThreadPoolExecutor(AT_ONCE) as several:  # each takes a request
            return list(several.map(self.identify, files))

    def prepare(self, paths: Iterable[str]) -> None:
        """Raise DefinitionError for a store that cannot be used: its settings, a missing package. Asks no store."""
        for path in paths:
            self._locate(path)

    def identify(self, path: str) -> SourceFile:
        """Return the file as it is now."""
        store, _, below = self._locate(path)
        with _Explained(store, path):
            return SourceFile(path, *store.identify(below)[2:])

    def check(self, file: SourceFile, txid: int) -> None:
        """Raise SpoutError if the file has changed: the batch could not be emitted unchanged."""
        now = self.identify(file.path)
        if now != file:
            change = f"from {file.size} to {now.size} bytes" if now.size != file.size else "rewritten"
            raise SpoutError(
                f"FileSpout: {file.path} has changed since this run first listed it ({change}), so txid {txid} "
                "cannot be emitted unchanged. Restore the file with its time of change; or list the files anew, with "
                "`trident txid rewind --to 0` or a new checkpoint; put new data into new files"
            )

    def open(self, path: str) -> Any:
        """Return an open file. Read it inside of `reading`."""
        store, _, below = self._locate(path)
        with _Explained(store, path):
            return store.open(below)

    def explain_errors(self, path: str) -> _Explained:
        """Return a context in which errors of the file's store become ours."""
        return _Explained(self._locate(path)[0], path)

    def _locate(self, path: str) -> tuple[FileSystem, str, str]:
        """Return the store, the beginning of its URIs, and the path below."""
        uri = parse_uri(path)
        if uri is None:
            return _open(None, ()), "", local_path(path)
        return _open(uri._replace(rest=""), self._storage), uri.root, uri.rest


class _Explained:
    """A context in which a store's errors become ours. A class, as it is entered several times for each range."""

    __slots__ = ("_path", "_store")

    def __init__(self, store: FileSystem, path: str) -> None:
        self._store, self._path = store, path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OSError | RuntimeError):  # fsspec raises the latter for Java exceptions it does not know
            failure = self._store.explain(error)
            raised, told = _TOLD[failure.kind]
            raise raised(f"FileSpout: {told.format(path=self._path, text=failure.text)}") from failure.cause


@lru_cache(16)
def _open(uri: FileUri | None, storage: tuple[tuple[str, str | int | float | bool], ...]) -> FileSystem:
    """Return the store of a URI, made once per process."""
    with naming("FileSpout"):
        return open_filesystem(uri, dict(storage))


def first_block(path: str) -> int:
    """Return how much to read where a row's end may be near."""
    return FIRST_BLOCK if parse_uri(path) is None else FIRST_REMOTE_BLOCK
