"""A folder in S3. Nothing is renamed there: a file is made by one request, and copied by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from trident_py.errors import DefinitionError, StateError, missing
from trident_py.secrets import hidden
from trident_py.spouts.fileuris import FileUri, Storage, secrets_of
from trident_py.spouts.remotestores import file_system

from .base import HIDDEN, Entry
from .remote import Explained, explained

_TAKEN = ("PreconditionFailed", "412")
_BUSY = ("ConditionalRequestConflict", "409", "SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout")
_REFUSED = ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "403")
_GONE = ("NoSuchKey", "404", "NotFound")
_KEYS = {
    "access_key": "aws_access_key_id", "secret_key": "aws_secret_access_key", "session_token": "aws_session_token",
    "region": "region_name", "endpoint_override": "endpoint_url",
}  # fmt: skip


class S3Store:
    """Whole and durable once the request is answered. `create` is a conditional put (``If-None-Match``); pyarrow has
    none, so boto3 makes it."""

    renames = False

    def __init__(self, uri: FileUri, storage: Storage) -> None:
        self._bucket, self._root = uri.authority, uri.rest.strip("/")
        self._secrets = secrets_of(storage)
        self.where = f"{uri.root}{uri.rest}"
        self.shown_to_spark = f"s3a://{uri.authority}/{quote(self._root)}"
        try:
            self._system = file_system(uri, storage)
            self._client, self._refusal, self._away = _client(storage)
        except ModuleNotFoundError as error:
            raise DefinitionError(missing(f"FileState: {uri.root}", error.name, "s3")) from None
        except (TypeError, ValueError) as error:
            told = hidden(str(error), self._secrets)
            raise DefinitionError(f"FileState: S3 cannot be used: {told}; see storage={{...}}") from None

    def prove(self) -> None:
        """Asks the store to make one file twice. Raises StateError if it does: a second driver could then write."""
        name = f"{HIDDEN}/conditional"
        self.create(name, b"")
        if self.create(name, b""):
            raise StateError(
                f"FileState: {self.where}: this S3 ignores If-None-Match, so it cannot keep an older driver from "
                "writing, and nothing is exactly once. Use a store that has conditional writes, as Amazon S3 has"
            )

    def names(self, folder: str) -> list[Entry]:
        from pyarrow.fs import FileSelector

        with self._explained("list", folder):
            found = self._system.get_file_info(FileSelector(self._path(folder), allow_not_found=True))
        return [Entry(info.base_name, max(info.size or 0, 0)) for info in found]

    def read(self, name: str) -> bytes | None:
        with self._explained("read", name):
            try:
                return bytes(self._client.get_object(Bucket=self._bucket, Key=self._key(name))["Body"].read())
            except self._refusal as error:
                if _code(error) in _GONE:
                    return None
                raise

    def create(self, name: str, data: bytes) -> bool:
        with self._explained("write", name):
            try:
                self._client.put_object(Bucket=self._bucket, Key=self._key(name), Body=data, IfNoneMatch="*")
            except self._refusal as error:
                if _code(error) in _TAKEN:
                    return False
                raise
        return True

    def open(self, name: str) -> Any:
        with self._explained("read", name):
            return self._system.open_input_file(self._path(name))

    def writer(self, name: str) -> Any:
        with self._explained("write", name):
            file = self._system.open_output_stream(self._path(name))
        return Explained(file, f"{self.where}/{name}", self._secrets, ())

    def place(self, source: str, target: str) -> bool:
        with self._explained("copy", source):
            try:
                self._client.copy_object(
                    Bucket=self._bucket, Key=self._key(target),
                    CopySource={"Bucket": self._bucket, "Key": self._key(source)},
                )  # fmt: skip
            except self._refusal as error:
                if _code(error) in _GONE:
                    return False
                raise
        return True

    def place_folder(self, source: str, target: str) -> bool:
        raise StateError(f"FileState: {self.where}: S3 cannot rename a folder")

    def settle(self, folder: str) -> None:
        """What S3 has answered is durable."""

    def delete(self, name: str) -> None:
        with self._explained("delete", name):
            self._client.delete_object(Bucket=self._bucket, Key=self._key(name))

    def _key(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _path(self, name: str) -> str:
        return f"{self._bucket}/{self._key(name)}"

    @contextmanager
    def _explained(self, doing: str, name: str) -> Iterator[None]:
        with explained(doing, f"{self.where}/{name}", self._secrets, (self._away,)):
            try:
                yield
            except self._refusal as error:
                code = _code(error)
                kind = TimeoutError if code in _BUSY else PermissionError if code in _REFUSED else OSError
                raise kind(str(error)) from error


def _client(storage: Storage) -> tuple[Any, type[Exception], type[Exception]]:
    """boto3's client, and its errors: for an answer that refuses, and for none."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    if unknown := sorted(storage.keys() - _KEYS.keys()):
        raise TypeError(f"there is no setting {unknown[0]!r}; there are: {', '.join(_KEYS)}")
    settings = {_KEYS[name]: str(value) for name, value in storage.items()}
    endpoint = settings.get("endpoint_url", "")
    if endpoint and "://" not in endpoint:
        settings["endpoint_url"] = f"https://{endpoint}"
    style = {"addressing_style": "path"} if endpoint else {}
    config = Config(connect_timeout=5, read_timeout=60, retries={"max_attempts": 4, "mode": "standard"}, s3=style)
    return boto3.session.Session().client("s3", config=config, **settings), ClientError, BotoCoreError


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
