"""Folders in Hadoop's file systems, through Spark's Java process: where a checkpoint is that is not a local folder."""

from __future__ import annotations

import posixpath
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

from ..errors import TridentError
from .failures import chain_of, find_gone
from .internals import checkpoint_files, hadoop_settings, java_classes
from .storage import storage_error

CONDITIONAL = "fs.option.create.conditional.overwrite"
ABORTABLE = "fs.capability.outputstream.abortable"
ABORTING = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
# In these a rename to a name that exists fails, in one step, whoever else renames to it.
RENAMING = ("hdfs", "viewfs", "webhdfs", "swebhdfs", "ofs", "abfs", "abfss", "file")
# A file is complete when a datanode has reported it, mostly a few ms later; HDFS's client asks again only after 400 ms.
# The retries reach as far as its own. A namenode that is out of reach would be tried for 15 minutes.
HDFS = {
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "5",
    "dfs.client.block.write.locateFollowingBlock.retries": "12",
    "ipc.client.connect.max.retries.on.timeouts": "3",
}
_EXISTS = (
    "FileAlreadyExistsException", "RemoteFileChangedException", "ConditionalRequestConflict", "PreconditionFailed",
)  # fmt: skip
_ABSENT = "java.io.FileNotFoundException"


class HadoopFolder:
    """A folder given by any URI for which Spark's Hadoop has a file system. Used on the driver.

    Files are made by Spark's own CheckpointFileManager, as Spark makes its logs; where the file system can make a file
    under the condition that it does not exist, by that. Methods raise TridentError that names the folder and the cause.
    """

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self.where = uri.rstrip("/")
        self._spark = spark
        self._java = java_classes(spark)
        self._path = self._call(lambda: self._java.org.apache.hadoop.fs.Path(self.where))
        self._settings = hadoop_settings(spark)
        for key, value in HDFS.items():
            self._settings.set(key, value)
        self._made: set[str] = set()

    @property
    def query_settings(self) -> dict[str, str]:
        """The settings of a query whose logs are here."""
        return {**HDFS, **({MANAGER: ABORTING} if self.aborting else {})}

    @cached_property
    def aborting(self) -> bool:
        """Whether Spark's manager for object stores is installed, and this file system is one for it."""
        if self._settings.get(MANAGER) is not None or not self._can(ABORTABLE):
            return False
        try:
            self._java.java.lang.Class.forName(ABORTING, False, self._settings.getClassLoader())
        except Exception:
            return False
        return True

    @cached_property
    def exclusive(self) -> bool:
        """Whether `create` is one step, so that of two drivers one is told."""
        return self._conditional or str(self._files.getUri().getScheme()) in RENAMING

    def names(self, folder: str = "") -> list[str]:
        try:
            return [str(status.getPath().getName()) for status in self._manager.list(self._at(folder))]
        except Exception as error:
            if _is(error, _ABSENT):
                return []
            raise self._translate(error) from error

    def read(self, name: str) -> bytes | None:
        try:
            stream = self._manager.open(self._at(name))
            try:
                return bytes(self._java.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()
        except Exception as error:
            if _is(error, _ABSENT):
                return None
            raise self._translate(error) from error

    def create(self, name: str, data: bytes) -> bool:
        try:
            if self._conditional:
                self._create_if_absent(self._at(name), data)
            else:
                self._create(name, data)
        except Exception as error:
            if _is(error, *_EXISTS):
                return False
            raise self._translate(error) from error
        return True

    def delete(self, name: str) -> None:
        self._call(lambda: self._manager.delete(self._at(name)))

    @cached_property
    def _files(self) -> Any:
        return self._call(lambda: self._path.getFileSystem(self._settings))

    @cached_property
    def _manager(self) -> Any:
        self._files  # noqa: B018 - its errors are plainer than the manager's
        if self.aborting:
            self._settings.set(MANAGER, ABORTING)
        return self._call(lambda: checkpoint_files(self._spark, self._path, self._settings))

    @cached_property
    def _conditional(self) -> bool:
        return self._can(CONDITIONAL)

    def _can(self, capability: str) -> bool:
        return bool(self._call(lambda: self._files.hasPathCapability(self._path, capability)))

    def _create_if_absent(self, path: Any, data: bytes) -> None:
        builder = self._files.createFile(path)
        builder.must(CONDITIONAL, True)
        builder.recursive()
        self._write(builder.build(), data)

    def _create(self, name: str, data: bytes) -> None:
        folder = posixpath.dirname(name)
        if folder not in self._made:
            self._manager.mkdirs(self._at(folder))
            self._made.add(folder)
        self._write(self._manager.createAtomic(self._at(name), False), data)

    def _write(self, stream: Any, data: bytes) -> None:
        try:
            stream.write(data)
        except BaseException:
            cancel = stream.cancel if "Cancellable" in stream.getClass().getName() else stream.abort
            cancel()
            raise
        stream.close()

    def _at(self, name: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(f"{self.where}/{name}") if name else self._path

    def _call(self, call: Any) -> Any:
        try:
            return call()
        except Exception as error:
            raise self._translate(error) from error

    def _translate(self, error: BaseException) -> TridentError:
        if isinstance(error, TridentError):
            return error
        if (gone := find_gone(self._spark, error)) is not None:
            return gone
        version = self._java.org.apache.hadoop.util.VersionInfo.getVersion()
        return storage_error(chain_of(error), self.where, str(version))


def _is(error: BaseException, *marks: str) -> bool:
    return any(mark in text for text in chain_of(error) for mark in marks)
