"""URIs of file systems: which paths are some, of which kind of store, and what ``storage`` may set."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote, urlsplit

from ..errors import DefinitionError
from ..model.requirements import Needs, address_of
from ..model.secrets import HIDDEN, is_secret, redact_url

Storage = Mapping[str, str | int | float | bool]
_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<authority>[^/]*)(?P<rest>.*)", re.DOTALL)
_FILE = re.compile(r"file:(//[^/]*)?(?=/)", re.IGNORECASE)


class StoreKind(NamedTuple):
    """A kind of store, the class whose keywords ``storage`` takes, and the schemes of its URIs."""

    name: str
    client: str
    schemes: tuple[str, ...]


S3 = StoreKind("S3", "pyarrow.fs.S3FileSystem", ("s3", "s3a", "s3n"))
GCS = StoreKind("Google Cloud Storage", "pyarrow.fs.GcsFileSystem", ("gs", "gcs"))
AZURE = StoreKind("Azure", "pyarrow.fs.AzureFileSystem", ("abfs", "abfss"))
HDFS = StoreKind("HDFS", "fsspec.implementations.webhdfs.WebHDFS", ("hdfs", "webhdfs", "swebhdfs"))
KINDS = {scheme: kind for kind in (S3, GCS, AZURE, HDFS) for scheme in kind.schemes}
HTTP_PORT, HTTPS_PORT = 9870, 9871


class FileUri(NamedTuple):
    """A URI: its store (``root``) and the path below, which begins with a slash unless it is empty."""

    kind: StoreKind
    scheme: str
    authority: str
    rest: str

    @property
    def root(self) -> str:
        return f"{self.scheme}://{self.authority}"


@contextmanager
def naming(user: str) -> Iterator[None]:
    """A context in which a DefinitionError about a URI says who uses it."""
    try:
        yield
    except DefinitionError as error:
        raise DefinitionError(f"{user}: {error}") from None


def parse_uri(path: str) -> FileUri | None:
    """Return the parts of a URI; None for a local path. Raises DefinitionError for a URI of no known store.

    The path below the store is taken as it stands, as Hadoop does: without per cent escapes, and with globs.
    """
    if _FILE.match(path) is not None:
        return None
    match = _URI.fullmatch(path)
    if match is None:
        scheme = path.partition(":/")[0]
        if scheme in KINDS and ":/" in path:
            raise DefinitionError(f"{path!r} has one slash; give a URI as text, not as a Path: {scheme}://")
        return None
    kind = KINDS.get(match["scheme"].lower())
    if kind is None:
        known = ", ".join(f"{scheme}://" for scheme in ("file", *KINDS))
        raise DefinitionError(f"no store for {redact_url(path)!r}; there are: {known}, and local paths")
    _check_authority(kind, match["authority"], path)
    return FileUri(kind, match["scheme"].lower(), match["authority"], re.sub("/+", "/", match["rest"]))


def _check_authority(kind: StoreKind, authority: str, path: str) -> None:
    user = authority.rpartition("@")[0]
    if user and (kind is not AZURE or ":" in user):
        raise DefinitionError(f"{redact_url(path)!r} has a user in it; put credentials into storage={{...}}")
    if kind is not HDFS and (not authority or glob.has_magic(authority)):
        raise DefinitionError(f"{path!r} must name one bucket or container: {path.partition('/')[0]}//NAME/")


def local_path(path: str) -> str:
    """Return the path of the local file system, also from a ``file:`` URI, in which per cent escapes are read."""
    return unquote(_FILE.sub("", path)) if _FILE.match(path) is not None else path


def root_of(path: str) -> str:
    """Return the path up to the first pattern in it; "" for a path in another file system, such as hdfs://."""
    if parse_uri(path) is not None:
        return ""
    place = Path(local_path(path))
    patterns = [number for number, part in enumerate(place.parts) if glob.has_magic(part)]
    return str(Path(*place.parts[: patterns[0]])) if patterns and not place.exists() else str(place)


def check_storage(paths: Iterable[str], storage: Storage) -> None:
    """Raise DefinitionError for a path of no known store, and for settings that are for no store, or for several."""
    kinds = list(dict.fromkeys(uri.kind for uri in map(parse_uri, paths) if uri is not None))
    if storage and len(kinds) != 1:
        there = " and ".join(kind.name for kind in kinds) or "local files only"
        raise DefinitionError(f"storage is for one kind of store; the paths are in {there}")
    for name, value in storage.items():
        if not isinstance(value, str | int | float):
            raise DefinitionError(
                f"storage[{name!r}] must be a text, a number or a boolean, not {type(value).__name__}"
            )
        if isinstance(value, str) and value.lower() in ("true", "false"):
            raise DefinitionError(
                f"storage[{name!r}] is the text {value!r}, and any text counts as true; give a boolean, in a file "
                "without quotes and variables"
            )
    try:
        needs_of_paths(paths, storage)
    except ValueError as error:  # of a port or of brackets
        raise DefinitionError(f"the address in the path or in storage={{...}} cannot be one: {error}") from None


def http_address(uri: FileUri, storage: Storage) -> tuple[str, int, bool]:
    """Return host, port and TLS of the namenode's HTTP. The port in ``hdfs://`` is another one, and is not used."""
    found = urlsplit(f"//{uri.authority}")
    secure = bool(storage.get("use_https", uri.scheme == "swebhdfs"))
    host = storage.get("host", found.hostname)
    if not host:
        raise DefinitionError(f"{uri.root}{uri.rest} names no host: {uri.scheme}://NAMENODE/path")
    given = found.port if uri.scheme != "hdfs" else None
    return str(host), int(storage.get("port", given or (HTTPS_PORT if secure else HTTP_PORT))), secure


def show_storage(storage: Storage) -> str:
    """Return the settings for a repr, without secrets."""
    told = {name: HIDDEN if is_secret(name) else redact_url(str(value)) for name, value in sorted(storage.items())}
    return "{" + ", ".join(f"{name}: {value}" for name, value in told.items()) + "}"


def secrets_of(storage: Storage) -> list[str]:
    """Return the secret values, to be hidden in texts from elsewhere: as they are, and as they stand in a URL."""
    values = [str(value) for name, value in storage.items() if is_secret(name) or name == "proxy_options"]
    return [form for value in values for form in (value, quote(value), quote_plus(value))]


def needs_of_paths(paths: Iterable[str], storage: Storage) -> Needs:
    """Return the local files and folders, the addresses of the stores as far as they are named, and the packages."""
    uris = [uri for uri in map(parse_uri, paths) if uri is not None]
    addresses = [address_of(*http_address(uri, storage)[:2]) for uri in uris if uri.kind is HDFS]
    endpoint = urlsplit(f"//{str(storage.get('endpoint_override', '')).rpartition('//')[2]}")
    if endpoint.hostname and endpoint.port:
        addresses.append(address_of(endpoint.hostname, endpoint.port))
    hdfs = any(uri.kind is HDFS for uri in uris)
    return Needs(
        modules=("fsspec", "requests") if hdfs else (),
        install="trident-py[hdfs]" if hdfs else "",
        addresses=tuple(dict.fromkeys(addresses)),
        paths=tuple(dict.fromkeys(root for root in map(root_of, paths) if root)),
    )
