"""A folder of a checkpoint in a local one, as one in HDFS or S3 would be."""

from __future__ import annotations

from pathlib import Path

from trident_py.checkpoints.uri_folder import UriFolder
from trident_py.filesystems.local import LocalFileSystem


class LinkedFiles(UriFolder):
    def __init__(self, folder: Path) -> None:
        super().__init__(LocalFileSystem(sync=False), str(folder), str(folder))

    def names(self, folder: str = "") -> list[str]:
        """List in one step, as HDFS does: with a look at each file, one could be missed that another one replaces."""
        try:
            return [file.name for file in Path(self._at(folder)).iterdir() if file.name[0] != "."]
        except (FileNotFoundError, NotADirectoryError):
            return []
