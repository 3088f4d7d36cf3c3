"""The checkpoint of a component on Spark: our log and, if it has a SparkSpout, the checkpoint of its query beside it.

    <checkpoints>/<topology name>/<component>/         the log (`trident_py.checkpoints.batch_log`)
    <checkpoints>/<topology name>/<component>/spark/   what Spark has read of its own sources

The query of Python spouts has its checkpoint in a temporary folder: nothing in it counts.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from ..checkpoints.append_log import JOURNAL, entries_of
from ..checkpoints.batch_log import BatchLog, inside, local_log
from ..checkpoints.hash_seed import order_of_workers
from ..checkpoints.metadata_store import LOG
from ..checkpoints.versioned_store import VersionedStore
from ..engine.startup import AGREEMENT
from ..engine.store_position import BASE
from ..errors import LineageError
from .hadoop_folder import HadoopFolder
from .session import LOCAL_CHECKPOINT

log = logging.getLogger("trident_py")

SPARKS = "spark"


@dataclass(frozen=True)
class Checkpoint:
    """One component's checkpoint. ``location``: where its query keeps its own, as Hadoop takes the text; ``settings``:
    those of a query that does."""

    batches: BatchLog
    location: str
    settings: dict[str, str]


def checkpoint_of(
    spark: SparkSession, root: str | None, topology: str, component: str, scratch: Path, streamed: bool
) -> Checkpoint:
    """Return one component's checkpoint. ``root``: a local path, or a URI of a file system that Spark's Hadoop has;
    None keeps nothing. ``scratch``: a folder for this run; ``streamed``: whether the component has a SparkSpout.

    Raises TridentError if it cannot be reached. Logs a warning if two drivers could not be told apart there.
    """
    temporary = f"file://{scratch / inside(topology, component)}"
    local = None if root is None else local_folder(root)
    if root is None or local is not None:
        _refuse_copied_back(None if local is None else Path(local) / inside(topology, component))
        batches = local_log(local, topology, component, order_of_workers)
        kept = streamed and local is not None
        return Checkpoint(batches, f"file://{batches.where}/{SPARKS}" if kept else temporary, LOCAL_CHECKPOINT)
    folder = HadoopFolder(spark, f"{root.rstrip('/')}/{inside(topology, component)}")
    folder.names()  # whether it can be read at all
    if not folder.exclusive:
        log.warning(
            "the checkpoint %s: its file system cannot make a file on the condition that it does not exist, so two "
            "drivers that run on it at once may not notice each other. See to it that only one is started",
            folder.where,
        )
    store = VersionedStore(folder)
    _adopt(folder, store)
    batches = BatchLog(store, folder.where, topology, order_of_workers)
    if not streamed:
        return Checkpoint(batches, temporary, LOCAL_CHECKPOINT)
    return Checkpoint(batches, f"{folder.where}/{SPARKS}", folder.query_settings)


def _adopt(folder: HadoopFolder, store: VersionedStore) -> None:
    """Continue a checkpoint that was copied from a local folder. Its first record is written last: a copy that is
    interrupted is repeated."""
    copied = folder.read(JOURNAL)
    if copied is None or store.get(AGREEMENT, 0) is not None:
        return
    entries = entries_of(copied.encode(), f"{folder.where}/{JOURNAL}")
    for path in sorted(entries, key=lambda path: path == AGREEMENT):
        for txid, value in entries[path].items():
            store.put(path, txid, value)


def _refuse_copied_back(folder: Path | None) -> None:
    """Raise LineageError if the checkpoint has been in HDFS or S3: what was local before that is old now."""
    if folder is not None and (folder / LOG).is_dir():
        raise LineageError(
            f"the checkpoint {folder} was copied from HDFS or S3, where its files have other names. Go on there, or "
            f"move it away: the next start names the {BASE} with which a new one continues"
        )


def local_folder(root: str) -> str | None:
    """Return the path on this machine that ``checkpoints=`` names: a plain path or ``file://``; None for any other
    URI."""
    if "://" not in root or root.startswith("file://"):
        return root.removeprefix("file://").removeprefix("file:")
    return None
