"""Trident states in files: Parquet, CSV, JSON lines or records of one's own, in local folders, HDFS and S3."""

from typing import TYPE_CHECKING

from trident_py.entry_points import answer

from ..rows import RowUpdater
from .formats import DelimitedRecordFormat, RecordFormat
from .state import FileState

__all__ = ["DelimitedRecordFormat", "FileState", "RecordFormat", "RowUpdater"]

if not TYPE_CHECKING:
    __getattr__ = answer(__name__)
