"""Files in HDFS, over WebHDFS: the namenode's and datanodes' HTTP, which needs no Java in the tasks."""

from __future__ import annotations

import inspect
from typing import Any

from ..errors import DefinitionError, FailedException, TridentError, missing
from ..secrets import hidden
from .filelist import Version
from .fileuris import FileUri, Storage, http_address, secrets_of
from .remotestores import StoredFile, find_in, meaning, unusable

CONNECT_SECONDS, READ_SECONDS = 5, 60
BLOCK = 4 << 20


class WebHdfsStore:
    """One namenode (or HttpFS gateway)."""

    def __init__(self, uri: FileUri, storage: Storage) -> None:
        self.secrets = secrets_of(storage)
        address = http_address(uri, storage)
        try:
            self._client, self._errors = client_of(*address, storage)
        except ModuleNotFoundError as error:
            raise DefinitionError(missing(f"FileSpout: {uri.root}", error.name, "hdfs")) from None
        except (TypeError, ValueError) as error:
            raise unusable(uri, str(error), self.secrets) from None

    def find(self, path: str) -> list[str]:
        return find_in(self, path)

    def identify(self, path: str) -> Version:
        """By size, modification time and file id; a file that replaces another has a new id."""
        info = self._client.info(path)
        return Version(info["length"], info["modificationTime"] * 1_000_000, info["fileId"])

    def open(self, path: str) -> Any:
        return self._client.open(path, "rb", block_size=BLOCK)

    def failure(self, path: str, error: Exception) -> TridentError:
        text = hidden(" ".join(str(error).split()), self.secrets)
        if isinstance(error, self._errors) or "standby" in text or "safe mode" in text:
            return FailedException(
                f"FileSpout: {path}: the HTTP of the namenode or of a datanode does not answer: {text}. The batch is "
                "tried again; if this stays, name the address of WebHDFS (the namenode's dfs.namenode.http-address) "
                "in storage={'host': ..., 'port': ...}"
            )
        return meaning(path, error, self.secrets)

    def nothing_at(self, path: str) -> str:
        return ""

    def entry(self, path: str) -> StoredFile | None:
        try:
            return StoredFile(path, self._client.info(path or "/")["type"] == "file")
        except FileNotFoundError:
            return None

    def below(self, path: str, deep: bool) -> list[StoredFile]:
        try:
            found = self._client.ls(path or "/", detail=True)
        except FileNotFoundError:
            return []
        if [info["pathSuffix"] for info in found] == [""]:  # of a file: itself
            return []
        entries = [StoredFile(f"{path}/{info['pathSuffix']}", info["type"] == "file") for info in found]
        folders = [entry.path for entry in entries if not entry.is_file] if deep else []
        return entries + [entry for folder in folders for entry in self.below(folder, deep)]


def client_of(host: str, port: int, secure: bool, storage: Storage) -> tuple[Any, tuple[type[Exception], ...]]:
    """fsspec's client, whose requests end after a while, and the errors of a server that is away.

    Each request has a connection of its own: HDFS ends one that was idle for a second
    (``hadoop.http.idle_timeout.ms``), and a request that is under way then is never answered.
    """
    import requests
    from fsspec.implementations.webhdfs import WebHDFS
    from requests.adapters import HTTPAdapter

    class Bounded(HTTPAdapter):
        def send(self, request: Any, *args: Any, **settings: Any) -> Any:
            return super().send(request, *args, **{**settings, "timeout": (CONNECT_SECONDS, READ_SECONDS)})

    settings = {name: value for name, value in storage.items() if name not in ("host", "port", "use_https")}
    for name in settings.keys() - inspect.signature(WebHDFS.__init__).parameters.keys():
        raise TypeError(f"there is no keyword {name!r}")  # it ignores what it does not know
    client = WebHDFS(host, port=port, use_https=secure, skip_instance_cache=True, **settings)
    client.session.headers["Connection"] = "close"
    for scheme in ("http://", "https://"):
        client.session.mount(scheme, Bounded())
    return client, (requests.ConnectionError, requests.Timeout)
