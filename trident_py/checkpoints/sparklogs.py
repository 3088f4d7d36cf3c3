"""The logs of a query of Spark, as far as a checkpoint whose only source is ours needs them. Plain files, no Spark.

Spark writes ``offsets/n`` before batch n and ``commits/n`` after it. On a restart it reads the last of each, and the
offsets before the last (`MicroBatchExecution.populateStartOffsets`). Formats: `OffsetSeqLog`, `CommitLog`, version 1.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import LineageError
from ..spouts.metadata import make_folder, sync_folder

Offset = dict[str, Any]
NO_BACKLOG: Mapping[str, Mapping[str, int]] = {}
VERSION = "v1"


def offset_of(txid: int, metadata: dict, backlog: Mapping[str, Mapping[str, int]] = NO_BACKLOG) -> Offset:
    """The offset after this txid. The metadata is text, because Spark's offsets cannot hold lists or None.

    What waits behind it is there for listeners of the query, who see offsets in its progress.
    """
    waiting = {"backlog": sum(sum(parts.values()) for parts in backlog.values())} if backlog else {}
    return {"txid": txid, **waiting, "meta": json.dumps(metadata)}


def metadata_of(offset: Offset) -> dict:
    """The spouts' metadata in an offset."""
    metadata: dict = json.loads(offset["meta"])
    return metadata


def last_batch(folder: Path) -> int | None:
    """The highest batch id that Spark has committed."""
    return max((int(file.name) for file in (folder / "commits").glob("*") if file.name.isdigit()), default=None)


def txid_of(offsets: str | None) -> int | None:
    """The txid in a file of Spark's offset log. None without a file, or if its first source is not ours."""
    try:
        offset = json.loads((offsets or "").splitlines()[2])
        return int(offset["txid"])
    except (ValueError, IndexError, KeyError, TypeError):
        return None


def logged(folder: Path, batch: int, txid: int) -> dict | None:
    """The spouts' metadata of a batch; None if Spark has not begun it. Raises LineageError if a source is not ours.

    Empty for the batch that Spark begins a query with before a spout is ready: its offset is still that of the start.
    """
    file = folder / "offsets" / str(batch)
    if not file.exists():
        return None
    version, _, *offsets = file.read_text().splitlines()
    if version != VERSION:
        raise LineageError(f"{file} has the version {version} of Spark's offset log; only {VERSION} is known")
    if len(offsets) != 1:
        raise LineageError(
            f"{file}: the topology reads {len(offsets)} sources, so it has a SparkSpout: that runs on Spark only. "
            "Nothing was changed"
        )
    offset = json.loads(offsets[0])
    if offset["txid"] != txid and (batch, offset["txid"]) != (0, txid - 1):
        raise LineageError(f"{file} has the txid {offset['txid']} where {txid} is expected: the checkpoint is damaged")
    return metadata_of(offset)


def write_logs(folder: Path, base: int, txid: int, metadata: dict, begun: dict | None) -> None:
    """Makes the logs of a query that has committed up to this txid and, with ``begun``, has begun the next batch."""
    _write(folder / "metadata", json.dumps({"id": str(uuid.uuid4())}))
    last = txid - base - 1
    if last > 0:
        _write_offsets(folder, last - 1, txid - 1, {})  # must be there; nothing is read from it
    if last >= 0:
        _write_offsets(folder, last, txid, metadata)
        _write(folder / "commits" / str(last), f'{VERSION}\n{{"nextBatchWatermarkMs":0}}')
    if begun is not None:
        _write_offsets(folder, last + 1, txid + 1, begun)


def _write_offsets(folder: Path, batch: int, txid: int, metadata: dict) -> None:
    head = {"batchWatermarkMs": 0, "batchTimestampMs": time.time_ns() // 1_000_000, "conf": {}}
    lines = [VERSION, json.dumps(head), json.dumps(offset_of(txid, metadata))]
    _write(folder / "offsets" / str(batch), "\n".join(lines))


def _write(file: Path, text: str) -> None:
    make_folder(file.parent)
    with file.open("w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    sync_folder(file.parent)
