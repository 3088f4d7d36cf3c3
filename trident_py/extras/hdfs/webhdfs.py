"""HDFS over WebHDFS: the namenode's and datanodes' HTTP, which needs no Java in the tasks."""

from __future__ import annotations

import getpass
import inspect
import os
import posixpath
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ...filesystems.base import NAMENODE_AWAY, FileInfo, FileSystem, make_hidden_path
from ...filesystems.uris import FileUri, Storage, http_address, secrets_of
from ...model.secrets import redact_url

CONNECT_SECONDS, READ_SECONDS = 5, 60
BLOCK = 4 << 20


class WebHdfsFileSystem(FileSystem):
    """One namenode (or HttpFS gateway). A file is complete when the datanodes have all of it; that its blocks have
    reached their disks is HDFS's own affair (``dfs.datanode.synconclose``). The namenode's log has a name before it
    answers."""

    renames = True

    def __init__(self, uri: FileUri, storage: Storage) -> None:
        self.secrets = secrets_of(storage)
        self._client, self._errors = client_of(*http_address(uri, storage), storage)

    def stat(self, path: str) -> FileInfo | None:
        """Identify by size, modification time and file id; a file that replaces another has a new id."""
        try:
            return _info(path, self._client.info(path or "/"))
        except FileNotFoundError:
            return None

    def list_folder(self, path: str) -> list[FileInfo]:
        try:
            found = self._client.ls(path or "/", detail=True)
        except FileNotFoundError:
            return []
        return [_info(f"{path}/{info['pathSuffix']}", info) for info in found if info["pathSuffix"]]  # a file has ""

    def open(self, path: str) -> Any:
        return self._client.open(path, "rb", block_size=BLOCK)

    def create(self, path: str, data: bytes) -> bool:
        """Write a hidden file and rename it, which fails if the name exists."""
        hidden = make_hidden_path(path)
        writer = self.open_writer(hidden)
        writer.write(data)
        writer.close()
        if made := self._rename(hidden, path):
            return made
        self.delete(hidden)
        return False

    def open_writer(self, path: str) -> Any:
        return self._client.open(path, "wb", block_size=BLOCK)

    def rename(self, source: str, target: str) -> bool:
        if self._rename(source, target):
            return True
        if self.stat(source) is None:
            return False
        self._client.mkdir(posixpath.dirname(target))
        self.delete(target)
        if not self._rename(source, target):
            raise FileExistsError(target)
        return True

    def rename_folder(self, source: str, target: str) -> bool:
        """HDFS moves a folder into one that exists; so that is looked for before."""
        if self.stat(target) is not None:
            return False
        self._client.mkdir(posixpath.dirname(target))
        return self._rename(source, target)

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._client.rm(path, recursive=True)

    def _classify(self, error: Exception, text: str) -> str:
        if isinstance(error, self._errors) or "standby" in text or "safe mode" in text.lower():
            return NAMENODE_AWAY
        return super()._classify(error, text)

    def _rename(self, source: str, target: str) -> bool:
        answer = self._client._call("RENAME", method="put", path=source, destination=target)
        return bool(answer.json()["boolean"])


def _info(path: str, info: dict[str, Any]) -> FileInfo:
    return FileInfo(path, info["type"] == "file", info["length"], info["modificationTime"] * 1_000_000, info["fileId"])


def client_of(host: str, port: int, secure: bool, storage: Storage) -> tuple[Any, tuple[type[Exception], ...]]:
    """Return fsspec's client, whose requests end after a while, and the errors of a server that is away.

    Who asks, unless ``storage`` says it, is whom Hadoop's own client takes: HADOOP_USER_NAME, or on a worker of Spark
    the driver's user (SPARK_USER), or the process's account.
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
    account = os.environ.get("HADOOP_USER_NAME") or os.environ.get("SPARK_USER") or _account()
    if account and not settings.keys() & {"user", "token", "kerberos"}:
        settings["user"] = account
    client = WebHDFS(host, port=port, use_https=secure, skip_instance_cache=True, **settings)
    client.session.headers["Connection"] = "close"
    for scheme in ("http://", "https://"):
        client.session.mount(scheme, Bounded())
    client.session.get = _check(client.session.get)
    return client, (requests.ConnectionError, requests.Timeout)


def _account() -> str | None:
    with suppress(KeyError, OSError):  # a container's account may have no name
        return getpass.getuser()
    return None


def _check(get: Callable[..., Any]) -> Callable[..., Any]:
    """Return what reads from a datanode: fsspec takes the text of a datanode's error for the file's content."""

    def content(url: str, **settings: Any) -> Any:
        answer = get(url, **settings)
        if answer.status_code == 404:
            raise FileNotFoundError(redact_url(url))
        answer.raise_for_status()
        return answer

    return content
