"""S3, Google Cloud Storage and Azure, by pyarrow; and S3 to write to, where boto3 makes the conditional requests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from ...errors import DefinitionError
from ...filesystems.base import FileInfo, FileSystem
from ...filesystems.uris import AZURE, GCS, FileUri, Storage, secrets_of

RETRY_SECONDS = 30
_ERRORS: dict[str, type[OSError]] = {
    # "Conflict": of two who make a file at the same moment, this one is to look again
    **dict.fromkeys(("PreconditionFailed", "412", "ConditionalRequestConflict"), FileExistsError),
    **dict.fromkeys(("NoSuchKey", "404", "NotFound"), FileNotFoundError),
    **dict.fromkeys(("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "403"),
                    PermissionError),
    **dict.fromkeys(("409", "SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout"), TimeoutError),
}  # fmt: skip
_PASSES = (429, 500, 502, 503, 504)  # also under the code of another server than AWS, such as MinIO's SlowDownWrite
_KEYS = {
    "access_key": "aws_access_key_id", "secret_key": "aws_secret_access_key", "session_token": "aws_session_token",
    "region": "region_name", "endpoint_override": "endpoint_url",
}  # fmt: skip


class ArrowFileSystem(FileSystem):
    """A bucket or container."""

    def __init__(self, uri: FileUri, storage: Storage) -> None:
        self.secrets = secrets_of(storage)
        self._bucket = _account_of(uri, storage)[1] if uri.kind is AZURE else uri.authority
        self._lists_files_only = uri.kind is GCS  # not the folders that stand in their names
        self._system = _connect(uri, storage)

    def stat(self, path: str) -> FileInfo | None:
        from pyarrow.fs import FileType

        info = self._system.get_file_info(self._bucket + path)
        return None if info.type == FileType.NotFound else self._info(info)

    def list_folder(self, path: str) -> list[FileInfo]:
        found = self._list(path, self._lists_files_only)
        return [info for info in found if "/" not in info.path[len(path) + 1 :]]

    def walk(self, path: str) -> list[FileInfo]:
        return self._list(path, True)

    def _list(self, path: str, deep: bool) -> list[FileInfo]:
        from pyarrow.fs import FileSelector

        selector = FileSelector(self._bucket + path, allow_not_found=True, recursive=deep)
        found = [self._info(info) for info in self._system.get_file_info(selector)]
        if not self._lists_files_only:
            return found
        return list(dict.fromkeys(each for info in found for each in (*_folders(path, info.path), info)))

    def identify(self, path: str) -> FileInfo:
        """Identify by size and ETag (Google's also changes with labels; its generation does not), new for other
        content."""
        with self.open(path) as file:
            told = {_text(name).lower(): _text(value) for name, value in file.metadata().items()}
            version = told.get("generation") or told.get("etag") or told.get("last-modified")
            if not version:
                raise OSError("the store tells no ETag, so a changed file could not be found")
            return FileInfo(path, True, file.size(), tag=version)

    def open(self, path: str) -> Any:
        return self._system.open_input_file(self._bucket + path)

    def explain_absence(self, path: str) -> str:
        return "" if self.stat("") is not None else f"there is no bucket or container {self._bucket!r}"

    def _info(self, info: Any) -> FileInfo:
        return FileInfo(info.path[len(self._bucket) :], info.is_file, info.size or 0)


class S3FileSystem(ArrowFileSystem):
    """A bucket of S3. Nothing is renamed there: a file is made by one request, and copied by one. It is whole and
    durable once the request is answered. `create` is a conditional put (``If-None-Match``); pyarrow has none, so boto3
    makes it."""

    def __init__(self, uri: FileUri, storage: Storage) -> None:
        super().__init__(uri, storage)
        self._client = _client(storage)

    def read(self, path: str) -> bytes | None:
        try:
            with _translate_errors():
                return bytes(self._client.get_object(**self._object(path))["Body"].read())
        except FileNotFoundError:
            return None

    def create(self, path: str, data: bytes) -> bool:
        try:
            with _translate_errors():
                self._client.put_object(**self._object(path), Body=data, IfNoneMatch="*")
        except FileExistsError:
            return False
        return True

    def open_writer(self, path: str) -> Any:
        return self._system.open_output_stream(self._bucket + path)

    def rename(self, source: str, target: str) -> bool:
        try:
            with _translate_errors():
                self._client.copy_object(**self._object(target), CopySource=self._object(source))
        except FileNotFoundError:
            return False
        return True

    def delete(self, path: str) -> None:
        with _translate_errors():
            self._client.delete_object(**self._object(path))

    def _object(self, path: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": path.strip("/")}


def _folders(base: str, path: str) -> list[FileInfo]:
    """Return the folders between a folder and what is somewhere below it."""
    parts = path[len(base) + 1 :].split("/")[:-1]
    return [FileInfo("/".join([base, *parts[: n + 1]]), False) for n in range(len(parts))]


def _account_of(uri: FileUri, storage: Storage) -> tuple[str, str]:
    """Return account and container of ``abfss://container@account.dfs.core.windows.net``, or of ``abfss://container``."""
    container, _, host = uri.authority.partition("@")
    account = storage.get("account_name", host.partition(".")[0])
    if not account or not container:
        raise DefinitionError(
            f"{uri.root} must name container and account: abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/, "
            "or storage={'account_name': ...}"
        )
    return str(account), container


def _connect(uri: FileUri, storage: Storage) -> Any:
    """Return pyarrow's file system. Credentials that ``storage`` lacks come from the usual environment."""
    from pyarrow import fs

    settings: dict[str, Any] = dict(storage)
    if uri.kind is GCS:
        settings["retry_time_limit"] = timedelta(seconds=float(settings.get("retry_time_limit", RETRY_SECONDS)))
        return fs.GcsFileSystem(**settings)
    if uri.kind is AZURE:
        settings["account_name"] = _account_of(uri, storage)[0]
        return fs.AzureFileSystem(**settings)
    named = os.environ.get("AWS_ENDPOINT_URL_S3", os.environ.get("AWS_ENDPOINT_URL"))
    settings.setdefault("endpoint_override", named)
    return fs.S3FileSystem(**settings)  # it reads all other variables itself


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _client(storage: Storage) -> Any:
    import boto3
    from botocore.config import Config

    if unknown := sorted(storage.keys() - _KEYS.keys()):
        raise TypeError(f"there is no setting {unknown[0]!r}; there are: {', '.join(_KEYS)}")
    settings = {_KEYS[name]: str(value) for name, value in storage.items()}
    endpoint = settings.get("endpoint_url", "")
    if endpoint and "://" not in endpoint:
        settings["endpoint_url"] = f"https://{endpoint}"
    style = {"addressing_style": "path"} if endpoint else {}
    config = Config(connect_timeout=5, read_timeout=60, retries={"max_attempts": 4, "mode": "standard"}, s3=style)
    return boto3.session.Session().client("s3", config=config, **settings)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """A context in which boto3's errors become Python's own."""
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        NoCredentialsError,
        ParamValidationError,
        PartialCredentialsError,
    )

    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        passes = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") in _PASSES
        raise _ERRORS.get(code, TimeoutError if passes else OSError)(str(error)) from error
    except (NoCredentialsError, PartialCredentialsError) as error:
        raise PermissionError(str(error)) from error
    except ParamValidationError as error:  # such as a name that no bucket can have
        raise OSError(str(error)) from error
    except BotoCoreError as error:
        raise ConnectionError(str(error)) from error
