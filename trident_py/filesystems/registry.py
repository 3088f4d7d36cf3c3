"""Finds the file system of a URI."""

from __future__ import annotations

from ..entry_points import load
from ..errors import DefinitionError, explain_missing
from ..model.secrets import hide
from .base import FileSystem
from .local import LocalFileSystem
from .uris import HDFS, S3, FileUri, Storage, secrets_of

FILESYSTEMS = "trident_py.filesystems"
"""The group of entry points that refer to a class of file systems: of HDFS, of object stores, and of S3 to write to."""


def open_filesystem(uri: FileUri | None, storage: Storage, writes: bool = False, sync: bool = True) -> FileSystem:
    """Return the file system of a URI, of this machine for None; one to write to if ``writes`` (local, HDFS and S3).

    Raises DefinitionError for a missing package, and for settings that it does not take. Asks no store.
    """
    if uri is None:
        return LocalFileSystem(sync)
    name = "hdfs" if uri.kind is HDFS else "s3" if writes else "object_stores"
    kind = load(uri.root, name, FILESYSTEMS)
    try:
        found: FileSystem = kind(uri, storage)
        return found
    except ModuleNotFoundError as error:
        raise DefinitionError(explain_missing(uri.root, error.name, "s3" if uri.kind is S3 else "hdfs")) from None
    except DefinitionError:
        raise
    except (ImportError, TypeError, ValueError) as error:
        told = hide(str(error), secrets_of(storage))
        see = "see storage={...}" if writes else f"storage={{...}} has the keywords of {uri.kind.client}"
        raise DefinitionError(f"{uri.kind.name} cannot be used: {told}; {see}") from None
