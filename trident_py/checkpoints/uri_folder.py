"""A folder in HDFS or S3, for the checkpoints of `LocalCluster`: without Spark, and without Java."""

from __future__ import annotations

from ..errors import DefinitionError, TridentError
from ..filesystems.base import AWAY, NAMENODE_AWAY, REFUSED, FileSystem, StorageFailure
from ..filesystems.folder import StoredFolder
from ..filesystems.registry import open_filesystem
from ..filesystems.uris import HDFS, S3, Storage, naming, parse_uri
from ..model.secrets import redact_url

NO_ANSWER = (
    "it does not answer",
    "See that it runs and that this machine reaches it; then start the topology again, and it continues where it "
    "stopped",
)
_CASES = {
    AWAY: NO_ANSWER,
    NAMENODE_AWAY: NO_ANSWER,
    REFUSED: (
        "access is denied",
        "Give the account of this process the right to read, write and delete there, or name credentials in its "
        "environment or in storage={...}",
    ),
}
_CONDITION = ".conditional"


class UriFolder(StoredFolder):
    """A folder for a `VersionedStore`. Methods raise TridentError that names the file and the cause."""

    def names(self, folder: str = "") -> list[str]:
        return [info.name for info in self.list_folder(folder)]

    def check(self) -> None:
        """Raise TridentError if the folder cannot be read, or if two drivers could not be told apart there."""
        with self._explained("read", ""):
            absent = self._files.explain_absence(self._root)
        if absent:
            raise TridentError(f"the checkpoint {self.where}: {absent}. Make it, or correct the name")
        self.names()
        if self.ignores_condition(_CONDITION):
            raise TridentError(
                f"the checkpoint {self.where}: this S3 ignores If-None-Match, so two drivers that run on it at once "
                "could not be told apart. Use a store that has conditional writes, as Amazon S3 has"
            )

    def _error(self, doing: str, place: str, failure: StorageFailure) -> TridentError:
        if failure.kind not in _CASES:
            return TridentError(f"the checkpoint {place} cannot be used: {failure.text}")
        cause, step = _CASES[failure.kind]
        return TridentError(f"the checkpoint {place}: {cause} ({failure.text}). {step}")


def open_folder(uri: str, storage: Storage) -> UriFolder:
    """Return a folder that can be used.

    Raises what `find_folder` raises; TridentError if the store refuses, does not answer, or cannot make a file in one
    step.
    """
    folder = find_folder(uri, storage)
    folder.check()
    return folder


def find_folder(uri: str, storage: Storage) -> UriFolder:
    """Return a folder to be read. Asks no store.

    Raises DefinitionError for a URI of no such store, for settings that the store does not take, and for a missing
    package.
    """
    with naming("checkpoints"):
        found = parse_uri(uri)
        if found is None or found.kind not in (HDFS, S3):
            raise DefinitionError(
                f"{redact_url(uri)!r}: LocalCluster keeps them in a local folder, hdfs:// or s3a://, where a file can "
                "be made on the condition that it does not exist. Name one, or use SparkCluster"
            )
        files: FileSystem = open_filesystem(found, storage, writes=True)
    return UriFolder(files, found.rest.rstrip("/"), redact_url(f"{found.root}{found.rest}"))
