"""``_spark_metadata``: the list of a folder's files in the form that Spark's own streaming sink keeps.

`spark.read` looks for it, and reads exactly the files in it: the newest list is one file, so it sees whole batches, and
compacted files or those before them. Each list is complete (``<n>.compact``), and the numbers have no gap: then Spark
takes the newest list alone. Source in Spark: CompactibleFileStreamLog, FileStreamSinkLog, MetadataLogFileIndex.
"""

from __future__ import annotations

import json
from urllib.parse import quote

from ...filesystems.base import is_number
from .folder import StateFolder, spark_uri
from .ledger import KEPT, Record

FOLDER = "_spark_metadata"


def write(folder: StateFolder, record: Record) -> None:
    """Write the list of this version, unless it exists, and those that a driver that died has left out."""
    if record.listing < 0:
        return
    numbers = _numbers(folder)
    if record.listing in numbers:
        return
    text = _text(folder, record).encode()
    for number in range(max(numbers, default=record.listing - 1) + 1, record.listing + 1):
        folder.create(_name(number), text)
    for number in numbers:
        if number <= record.listing - KEPT:
            folder.delete(_name(number))


def _text(folder: StateFolder, record: Record) -> str:
    root = spark_uri(folder.where)
    lines = [
        json.dumps({
            "path": f"{root}/{quote(file.name, safe='/=')}", "size": file.bytes, "isDir": False,
            "modificationTime": int(file.time * 1000), "blockReplication": 1, "blockSize": 134217728, "action": "add",
        })
        for file in record.files
    ]  # fmt: skip
    return "\n".join(["v1", *lines])


def _numbers(folder: StateFolder) -> list[int]:
    names = [entry.name.removesuffix(".compact") for entry in folder.list_folder(FOLDER)]
    return [int(name) for name in names if is_number(name)]


def _name(number: int) -> str:
    return f"{FOLDER}/{number}.compact"
