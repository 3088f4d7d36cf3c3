"""Trident states in files: Parquet, CSV, JSON lines or records of one's own, in local folders, HDFS and S3. The public
names of the extra ``files``."""

from typing import TYPE_CHECKING

from trident_py.entry_points import answer, names_of

if TYPE_CHECKING:
    from trident_py.extras.files import DelimitedRecordFormat, FileState, RecordFormat, RowUpdater

__all__ = ["DelimitedRecordFormat", "FileState", "RecordFormat", "RowUpdater"]

if not TYPE_CHECKING:
    __getattr__ = answer(__name__, dict.fromkeys(__all__, names_of(__name__, "files")))
