"""The list of files that a FileSpout reads: found once, frozen with size, time and inode."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ..errors import DefinitionError, SpoutError

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


class SourceFile(NamedTuple):
    """A file as the run first saw it. In metadata it is the list of these values."""

    path: str
    size: int
    mtime: int
    inode: int

    @classmethod
    def of(cls, path: str) -> SourceFile:
        try:
            stat = Path(path).stat()
        except OSError as error:
            raise SpoutError(f"FileSpout: cannot read {path}: {error.strerror}; restore the file") from error
        return cls(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)

    def check(self, txid: int) -> None:
        """Raises SpoutError if the file has changed: the batch could not be emitted unchanged."""
        now = SourceFile.of(self.path)
        if now != self:
            change = f"from {self.size} to {now.size} bytes" if now.size != self.size else "rewritten"
            raise SpoutError(
                f"FileSpout: {self.path} has changed since this run first listed it ({change}), so txid {txid} "
                "cannot be emitted unchanged. Restore the file, or start again with a new checkpoint; "
                "put new data into new files"
            )


def find_files(paths: Iterable[str]) -> list[str]:
    """Returns the files of each path in turn: the file, all files of a folder, or all matches of a glob.

    The files of one path are sorted; each file is listed once. Skips names in folders that begin with a dot or an
    underscore. Raises SpoutError for a path without files.
    """
    files: dict[str, None] = {}
    for path in paths:
        matches = sorted(_files_of(path))
        if not matches:
            raise SpoutError(f"FileSpout: no file at {path!r} (current folder: {Path.cwd()}); check the path")
        files.update(dict.fromkeys(matches))
    return list(files)


def _files_of(path: str) -> list[str]:
    place = Path(path)
    if place.is_file():
        return [str(place.absolute())]
    if place.is_dir():
        names = (file.relative_to(place) for file in place.rglob("*") if file.is_file())
        return [str((place / name).absolute()) for name in names if not any(part[0] in "._" for part in name.parts)]
    matches = (Path(match) for match in glob.glob(path, recursive=True))  # noqa: PTH207  (absolute patterns)
    return [str(match.absolute()) for match in matches if match.is_file()]


def root_of(path: str) -> str:
    """The path up to the first pattern in it; "" for a path in another file system, such as hdfs://."""
    scheme, colon, rest = path.partition(":/")
    if colon and scheme.isalnum() and len(scheme) > 1:
        if scheme != "file":
            return ""
        path = "/" + rest.lstrip("/")
    place = Path(path)
    patterns = [number for number, part in enumerate(place.parts) if glob.has_magic(part)]
    return str(Path(*place.parts[: patterns[0]])) if patterns and not place.exists() else str(place)


def format_of(paths: Iterable[str]) -> str:
    """Returns the format by the file names. Raises DefinitionError for several formats, or a compressed file."""
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
