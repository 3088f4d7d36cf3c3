"""Folders in the stores that FileSpout reads: a local one, one in S3, one in HDFS."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import S3FileSystem

from testbed.hdfs import HdfsServer
from testbed.s3 import S3Server
from trident_py.extras.hdfs.webhdfs import client_of


class Place(Protocol):
    """A folder with its ``root`` as a path of FileSpout. Paths in it begin with a slash."""

    root: str
    storage: dict[str, Any]

    def put(self, path: str, data: bytes) -> None: ...

    def remove(self, path: str) -> None: ...

    def folder(self, name: str) -> Place: ...


class LocalPlace:
    def __init__(self, folder: Path) -> None:
        self._folder, self.root = folder, str(folder)
        self.storage: dict[str, Any] = {}

    def put(self, path: str, data: bytes) -> None:
        file = Path(self.root + path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def remove(self, path: str) -> None:
        Path(self.root + path).unlink()

    def folder(self, name: str) -> Place:
        return LocalPlace(self._folder / name)


class S3Place:
    def __init__(self, server: S3Server, name: str, bucket: str = "files") -> None:
        self._server, self._name, self._bucket = server, name, bucket
        self.root, self.storage = f"s3://{bucket}/{name}", dict(server.storage)
        self.client = S3FileSystem(**self.storage, allow_bucket_creation=True)

    def put(self, path: str, data: bytes) -> None:
        self.client.create_dir(self._bucket)
        with self.client.open_output_stream(f"{self._bucket}/{self._name}{path}") as file:
            file.write(data)

    def remove(self, path: str) -> None:
        self.client.delete_file(f"{self._bucket}/{self._name}{path}")

    def folder(self, name: str) -> Place:
        return S3Place(self._server, f"{self._name}/{name}", self._bucket)


class HdfsPlace:
    def __init__(self, server: HdfsServer, name: str) -> None:
        self._server, self._name = server, name
        self.folder_path = f"/{name}"
        self.root, self.storage = f"{server.url}/{name}", dict(server.storage)
        self.client, _ = client_of("127.0.0.1", int(self.storage["port"]), False, {"user": self.storage["user"]})

    def put(self, path: str, data: bytes) -> None:
        self.client.makedirs((self.folder_path + path).rpartition("/")[0], exist_ok=True)
        self.client.pipe_file(self.folder_path + path, data)

    def remove(self, path: str) -> None:
        self.client.rm(self.folder_path + path)

    def folder(self, name: str) -> Place:
        return HdfsPlace(self._server, f"{self._name}/{name}")


def table(kind: str, numbers: Iterable[int]) -> bytes:
    """A file with the columns n and s (n as text); of format lines, with n only."""
    rows = [(number, str(number)) for number in numbers]
    if kind == "parquet":
        file = io.BytesIO()
        columns = {"n": pa.array([n for n, _ in rows], pa.int64()), "s": pa.array([s for _, s in rows], pa.string())}
        pq.write_table(pa.table(columns), file, row_group_size=7)
        return file.getvalue()
    if kind == "csv":
        return ("n,s\n" + "".join(f"{n},{s}\n" for n, s in rows)).encode()
    if kind == "json":
        return "".join(json.dumps({"n": n, "s": s}) + "\n" for n, s in rows).encode()
    return "".join(f"{n}\n" for n, _ in rows).encode()
