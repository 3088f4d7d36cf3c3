"""Where a FileState writes: its URI, the store behind it, and what cannot be exact there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePosixPath

from trident_py.errors import DefinitionError
from trident_py.spouts import fileuris
from trident_py.spouts.fileuris import HDFS, S3, FileUri, Storage
from trident_py.state import Location, Needs

from .stores.base import FileStore
from .stores.hdfs import HdfsStore
from .stores.local import LocalStore
from .stores.s3 import S3Store

Settings = tuple[tuple[str, str | int | float | bool], ...]


@contextmanager
def ours() -> Iterator[None]:
    """A context in which an error about a URI names FileState; the rules of URIs are FileSpout's."""
    try:
        yield
    except DefinitionError as error:
        raise DefinitionError(str(error).replace("FileSpout", "FileState")) from None


def checked(uri: str, storage: Storage) -> str:
    """The URI as it is kept. Raises DefinitionError for one of no known store, for settings of another store, and for
    a store in which nothing can be exact."""
    with ours():
        found = fileuris.uri_of(uri)
        fileuris.check_storage([uri], storage)
        if found is not None and found.kind is HDFS:
            fileuris.http_address(found, storage)
    if found is None:
        return str(Path(fileuris.local_path(uri)).absolute())
    if found.kind not in (HDFS, S3):
        raise DefinitionError(
            f"FileState: {found.root}: a FileState is exactly once only where a file can be made under the condition "
            f"that it does not exist, and pyarrow has no such call for {found.kind.name}. Use a local folder, hdfs:// "
            "or s3://"
        )
    if not found.rest.strip("/"):
        raise DefinitionError(f"FileState: {uri!r} is a whole store; name a folder in it: {found.root}/FOLDER")
    return f"{found.root}{found.rest.rstrip('/')}"


@lru_cache(16)
def store_of(uri: str, storage: Settings, sync: bool) -> FileStore:
    """The store of a folder, made once per process. Raises DefinitionError for settings that it does not take."""
    found = fileuris.uri_of(uri)
    if found is None:
        return LocalStore(uri, sync)
    return HdfsStore(found, dict(storage)) if found.kind is HDFS else S3Store(found, dict(storage))


def renames(uri: str) -> bool:
    """Whether the store gives a folder its name in one step."""
    found = fileuris.uri_of(uri)
    return found is None or found.kind is HDFS


def location_of(uri: str) -> Location:
    found = fileuris.uri_of(uri)
    if found is None:
        path = str(Path(uri).resolve())
        return _folder("file", path, f"folder {path}")
    return _folder(_root(found), found.rest, f"folder {uri}")


def _folder(store: str, path: str, shown: str) -> Location:
    return Location(frozenset({store}), frozenset({path}), "", shown, frozenset(map(str, PurePosixPath(path).parents)))


def needs_of(uri: str, storage: Storage, shared: bool) -> Needs:
    """A local folder is on one machine, unless it is ``shared``: mounted on all of them."""
    found = fileuris.uri_of(uri)
    if found is not None:
        with ours():
            needs = fileuris.needs_of_paths([uri], storage)
        if found.kind is not S3:
            return needs
        return replace(needs, modules=("boto3",), install="trident-py[s3]")
    if shared:
        return Needs(paths=(str(Path(uri).absolute().parent),))
    return Needs(
        one_machine=f"the folder {uri} is on one machine; use hdfs:// or s3://, or say shared=True if it is one "
        "network file system that is mounted on all machines"
    )


def _root(uri: FileUri) -> str:
    """The store in one spelling for all schemes of a kind."""
    host = uri.authority.partition(":")[0] if uri.kind is HDFS else uri.authority
    return f"{uri.kind.name}/{host.lower()}"
