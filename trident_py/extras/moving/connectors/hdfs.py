"""Storm's HdfsState by its own names, for translated topologies: its options make a `FileState`."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from urllib.parse import urlsplit

from states.rows import RowUpdater

from ...files import formats
from ...files.formats import RecordFormat
from ...files.state import LARGEST, FileState
from .builders import make_setter

__all__ = [
    "DefaultFileNameFormat", "DelimitedRecordFormat", "FileSizeRotationPolicy", "HdfsState", "HdfsStateFactory",
    "HdfsUpdater", "NoRotationPolicy", "RecordFormat",
]  # fmt: skip

HdfsUpdater = RowUpdater


@dataclass(frozen=True)
class _Delimited(formats.DelimitedRecordFormat):
    """One that is set after it is made, as Storm's."""

    withFields = make_setter("fields")
    withFieldDelimiter = make_setter("fieldDelimiter")
    withRecordDelimiter = make_setter("recordDelimiter")


DelimitedRecordFormat = _Delimited


class DefaultFileNameFormat:
    """The folder, and the end of the files' names. The rest of a name follows from txid and partition here."""

    def __init__(self) -> None:
        self.path, self.extension = "/storm", ".txt"

    withPath = make_setter("path")
    withExtension = make_setter("extension")

    def withPrefix(self, prefix: str) -> DefaultFileNameFormat:
        return self


class FileSizeRotationPolicy:
    """A size of files: within a batch, since each batch begins new ones."""

    class Units(enum.Enum):
        KB, MB, GB, TB = 2**10, 2**20, 2**30, 2**40

    def __init__(self, count: float, units: Units) -> None:
        self.bytes = min(max(int(count * units.value), 1), LARGEST)


class NoRotationPolicy:
    bytes = LARGEST


class HdfsFileOptions:
    """What a `FileState` is made of. Hadoop's own settings, under the config key, are none of WebHDFS."""

    url: str
    names: DefaultFileNameFormat
    format: RecordFormat
    policy: FileSizeRotationPolicy | NoRotationPolicy

    withFsUrl = make_setter("url")
    withFileNameFormat = make_setter("names")
    withRecordFormat = make_setter("format")
    withRotationPolicy = make_setter("policy")

    def withConfigKey(self, configKey: str) -> HdfsFileOptions:
        return self


class HdfsState:
    HdfsFileOptions = HdfsFileOptions


class HdfsStateFactory:
    def withOptions(self, options: HdfsFileOptions) -> FileState:
        object.__setattr__(options.format, "suffix", options.names.extension)
        store = urlsplit(options.url)
        uri = f"{store.scheme}://{store.netloc}{options.names.path}"
        return FileState(uri, format=options.format, rotate=options.policy.bytes)
