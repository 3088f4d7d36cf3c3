"""The settings of the states in files."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from states.loading.settings import FactorySettings, FieldList

Size = Annotated[int | str, Field(examples=["128MB", 1000000])]
Time = Annotated[int | str, Field(examples=["1h", "30d", 60])]


class FileSettings(FactorySettings):
    """Rows in files: Parquet, CSV or JSON lines in a local folder, HDFS or S3, one file per batch and partition."""

    kinds: ClassVar[tuple[str, ...]] = ("batch",)
    factory: ClassVar[str] = "trident_py.extras.files:FileState"

    uri: str = Field(min_length=1, description="Folder of the files: a local path, hdfs:// or s3://")
    format: Literal["parquet", "csv", "json"] = Field("parquet", description="Format of the files")
    columns: FieldList | None = Field(
        None, description="All fields of a row with their types; default: the fields of the tuples, which must be typed"
    )
    storage: dict[str, str | int | float | bool] = Field(
        {}, description="Addresses and credentials of the store, as for FileSpout"
    )
    visible: Literal["files", "batches", "manifest"] = Field(
        "files",
        description="What a listing of the folder shows: files each file, batches a whole batch as folder txid=<n>, "
        "manifest nothing",
    )
    rotate: Size = Field("1GB", description="Size from which on a partition's file is continued in another one")
    compact: Size | None = Field(
        None, description="Size of the files that small ones are merged into; needs visible: manifest; default: never"
    )
    retention: Time | None = Field(None, description="Time after which rows are deleted; default: never")
    grace: Time = Field("1h", description="Time that replaced files stay for readers who have begun")
    sync: Literal["batch", "never"] = Field(
        "batch", description="batch: a batch counts when its files are on disk; never: the operating system decides"
    )
    shared: bool = Field(False, description="Whether a local folder is one network file system on all machines")
