"""A folder in HDFS, over WebHDFS: a rename is one step, and fails if the name exists."""

from __future__ import annotations

import posixpath
import secrets
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from trident_py.errors import DefinitionError, FailedException, missing
from trident_py.secrets import hidden
from trident_py.spouts.fileuris import FileUri, Storage, http_address, secrets_of
from trident_py.spouts.webhdfs import BLOCK, client_of

from .base import Entry
from .remote import Explained, explained


class HdfsStore:
    """A file is complete when the datanodes have all of it; that its blocks have reached their disks is HDFS's own
    affair (``dfs.datanode.synconclose``)."""

    renames = True

    def __init__(self, uri: FileUri, storage: Storage) -> None:
        self._root = uri.rest
        self._secrets = secrets_of(storage)
        self.where = f"{uri.root}{uri.rest}"
        self.shown_to_spark = f"{uri.root}{quote(uri.rest)}"
        address = http_address(uri, storage)
        try:
            self._client, errors = client_of(*address, storage)
        except ModuleNotFoundError as error:
            raise DefinitionError(missing(f"FileState: {uri.root}", error.name, "hdfs")) from None
        except (TypeError, ValueError) as error:
            told = hidden(str(error), self._secrets)
            raise DefinitionError(f"FileState: HDFS cannot be used: {told}; see storage={{...}}") from None
        self._away = errors

    def prove(self) -> None:
        """A rename to a name that exists fails."""

    def names(self, folder: str) -> list[Entry]:
        with self._explained("list", folder):
            try:
                found = self._client.ls(self._at(folder), detail=True)
            except FileNotFoundError:
                return []
        return [Entry(info["pathSuffix"], info["length"]) for info in found if info["pathSuffix"]]

    def read(self, name: str) -> bytes | None:
        with self._explained("read", name):
            try:
                return bytes(self._client.cat_file(self._at(name)))
            except FileNotFoundError:
                return None

    def create(self, name: str, data: bytes) -> bool:
        """Writes a hidden file and renames it."""
        hidden_name = posixpath.join(posixpath.dirname(name), f".{posixpath.basename(name)}.{secrets.token_hex(8)}")
        writer = self.writer(hidden_name)
        writer.write(data)
        writer.close()
        with self._explained("write", name):
            made = self._renamed(hidden_name, name)
            if not made:
                self._delete(hidden_name)
            return made

    def open(self, name: str) -> Any:
        with self._explained("read", name):
            return self._client.open(self._at(name), "rb", block_size=BLOCK)

    def writer(self, name: str) -> Any:
        with self._explained("write", name):
            file = self._client.open(self._at(name), "wb", block_size=BLOCK)
        return Explained(file, f"{self.where}/{name}", self._secrets, self._away)

    def place(self, source: str, target: str) -> bool:
        with self._explained("rename", source):
            if self._renamed(source, target):
                return True
            if not self._exists(source):
                return False
            self._make(posixpath.dirname(target))
            self._delete(target)  # of a decision that was withdrawn
            if self._renamed(source, target):
                return True
        raise FailedException(f"FileState: cannot rename {self.where}/{source} to {target}. The batch is tried again")

    def place_folder(self, source: str, target: str) -> bool:
        """HDFS moves a folder into one that exists; so that is looked for before."""
        with self._explained("rename", source):
            if self._exists(target):
                return False
            self._make(posixpath.dirname(target))
            return self._renamed(source, target)

    def settle(self, folder: str) -> None:
        """The namenode's log has the name before it answers."""

    def delete(self, name: str) -> None:
        with self._explained("delete", name):
            self._delete(name)

    def _renamed(self, source: str, target: str) -> bool:
        answer = self._client._call("RENAME", method="put", path=self._at(source), destination=self._at(target))
        return bool(answer.json()["boolean"])

    def _exists(self, name: str) -> bool:
        try:
            self._client.info(self._at(name))
        except FileNotFoundError:
            return False
        return True

    def _make(self, folder: str) -> None:
        if folder:
            self._client.mkdir(self._at(folder))

    def _delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._client.rm(self._at(name), recursive=True)

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _explained(self, doing: str, name: str) -> Any:
        return explained(doing, f"{self.where}/{name}", self._secrets, self._away)
