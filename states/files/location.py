"""Where a FileState writes: the rules of its URI, and what they mean for guarantees, machines and Spark's readers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from trident_py.errors import DefinitionError
from trident_py.filesystems.uris import (
    HDFS,
    S3,
    Storage,
    check_storage,
    http_address,
    local_path,
    naming,
    needs_of_paths,
    parse_uri,
)
from trident_py.state import Location, Needs


def normalize_uri(uri: str, storage: Storage) -> str:
    """Return the URI as it is kept. Raises DefinitionError for one of no known store, for settings of another store,
    and for a store in which nothing can be exact."""
    with naming("FileState"):
        found = parse_uri(uri)
        check_storage([uri], storage)
        if found is None:
            return str(Path(local_path(uri)).absolute())
        if found.kind is HDFS:
            http_address(found, storage)
        if found.kind not in (HDFS, S3):
            raise DefinitionError(
                f"{found.root}: a FileState is exactly once only where a file can be made under the condition that it "
                f"does not exist, and pyarrow has no such call for {found.kind.name}. Use a local folder, hdfs:// or "
                "s3://"
            )
        if not found.rest.strip("/"):
            raise DefinitionError(f"{uri!r} is a whole store; name a folder in it: {found.root}/FOLDER")
        return f"{found.root}{found.rest.rstrip('/')}"


def can_rename_folders(uri: str) -> bool:
    found = parse_uri(uri)
    return found is None or found.kind is HDFS


def location_of(uri: str) -> Location:
    found = parse_uri(uri)
    if found is None:
        store, path = "file", str(Path(uri).resolve())
    else:  # the store in one spelling for all schemes of a kind
        host = found.authority.partition(":")[0] if found.kind is HDFS else found.authority
        store, path = f"{found.kind.name}/{host.lower()}", found.rest
    above = frozenset(map(str, PurePosixPath(path).parents))
    return Location(frozenset({store}), frozenset({path}), "", f"folder {path if found is None else uri}", above)


def needs_of(uri: str, storage: Storage, shared: bool) -> Needs:
    """Return what each machine needs. A local folder is on one, unless it is ``shared``: mounted on all of them."""
    found = parse_uri(uri)
    if found is not None:
        needs = needs_of_paths([uri], storage)
        return needs if found.kind is not S3 else replace(needs, modules=("boto3",), install="trident-py[s3]")
    if shared:
        return Needs(paths=(str(Path(uri).absolute().parent),))
    return Needs(
        one_machine=f"the folder {uri} is on one machine; use hdfs:// or s3://, or say shared=True if it is one "
        "network file system that is mounted on all machines"
    )


def spark_uri(uri: str) -> str:
    """Return the URI as Spark's readers spell it."""
    found = parse_uri(uri)
    if found is None:
        return Path(uri).as_uri()
    return f"{f's3a://{found.authority}' if found.kind is S3 else found.root}{quote(found.rest)}"
