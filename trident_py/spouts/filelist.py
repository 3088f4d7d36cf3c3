"""What a FileSpout knows of its files: found once, frozen with size, time and inode; their formats."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ..errors import DefinitionError

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


class Version(NamedTuple):
    """What tells whether a file is still the same.

    ``tag``: the inode of a local file, the file id of HDFS, the ETag of an object. ``mtime`` in nanoseconds; 0 where
    the ETag says it all.
    """

    size: int
    mtime: int
    tag: int | str


class SourceFile(NamedTuple):
    """A file as the run first saw it. In metadata it is the list of these values."""

    path: str
    size: int
    mtime: int
    tag: int | str


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
