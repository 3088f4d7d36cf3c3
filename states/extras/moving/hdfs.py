"""Storm's HdfsState by its own names, for translated topologies: its options make a `FileState`."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from trident_py.tuples import FieldsLike

from ...files import formats
from ...files.formats import RecordFormat
from ...files.state import LARGEST, FileState
from ...rows import RowUpdater

__all__ = [
    "DefaultFileNameFormat", "DelimitedRecordFormat", "FileSizeRotationPolicy", "HdfsState", "HdfsStateFactory",
    "HdfsUpdater", "NoRotationPolicy", "RecordFormat",
]  # fmt: skip

HdfsUpdater = RowUpdater


@dataclass(frozen=True)
class _Delimited(formats.DelimitedRecordFormat):
    """One that is set after it is made, as Storm's."""

    def withFields(self, fields: FieldsLike) -> _Delimited:
        return self._with("fields", fields)

    def withFieldDelimiter(self, delimiter: str) -> _Delimited:
        return self._with("fieldDelimiter", delimiter)

    def withRecordDelimiter(self, delimiter: str) -> _Delimited:
        return self._with("recordDelimiter", delimiter)

    def _with(self, name: str, value: Any) -> _Delimited:
        object.__setattr__(self, name, value)
        return self


DelimitedRecordFormat = _Delimited


class DefaultFileNameFormat:
    """The folder, and the end of the files' names. The rest of a name follows from txid and partition here."""

    def __init__(self) -> None:
        self.path, self.extension = "/storm", ".txt"

    def withPath(self, path: str) -> DefaultFileNameFormat:
        self.path = path
        return self

    def withPrefix(self, prefix: str) -> DefaultFileNameFormat:
        return self

    def withExtension(self, extension: str) -> DefaultFileNameFormat:
        self.extension = extension
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

    def withFsUrl(self, fsUrl: str) -> HdfsFileOptions:
        self.url = fsUrl
        return self

    def withConfigKey(self, configKey: str) -> HdfsFileOptions:
        return self

    def withFileNameFormat(self, fileNameFormat: DefaultFileNameFormat) -> HdfsFileOptions:
        self.names = fileNameFormat
        return self

    def withRecordFormat(self, format: RecordFormat) -> HdfsFileOptions:
        self.format = format
        return self

    def withRotationPolicy(self, rotationPolicy: FileSizeRotationPolicy | NoRotationPolicy) -> HdfsFileOptions:
        self.policy = rotationPolicy
        return self


class HdfsState:
    HdfsFileOptions = HdfsFileOptions


class HdfsStateFactory:
    def withOptions(self, options: HdfsFileOptions) -> FileState:
        object.__setattr__(options.format, "suffix", options.names.extension)
        store = urlsplit(options.url)
        uri = f"{store.scheme}://{store.netloc}{options.names.path}"
        return FileState(uri, format=options.format, rotate=options.policy.bytes)
