"""A folder of a checkpoint in a local one, as one in HDFS or S3 would be."""

from __future__ import annotations

from pathlib import Path

from trident_py.checkpoints.uri_folder import UriFolder
from trident_py.filesystems.local import LocalFileSystem


class LinkedFiles(UriFolder):
    def __init__(self, folder: Path) -> None:
        super().__init__(LocalFileSystem(sync=False), str(folder), str(folder))
