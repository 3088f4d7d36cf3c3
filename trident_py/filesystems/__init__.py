"""Local files, HDFS, S3, Google Cloud Storage and Azure behind one interface, `base.FileSystem`."""

from .base import FileInfo, FileSystem
from .registry import open_filesystem

__all__ = ["FileInfo", "FileSystem", "open_filesystem"]
