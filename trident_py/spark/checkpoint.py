"""The checkpoint of a component on Spark: our log and, if it has a SparkSpout, the checkpoint of its query beside it.

    <checkpoints>/<topology name>/<component>/         the log (`trident_py.checkpoints.batch_log`)
    <checkpoints>/<topology name>/<component>/spark/   what Spark has read of its own sources

The query of Python spouts has its checkpoint in a temporary folder: nothing in it counts.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from pyspark.sql import SparkSession

from ..checkpoints.batch_log import BatchLog
from ..checkpoints.hash_seed import order_of_workers
from ..checkpoints.location import inside, local_folder, open_log
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

    def close(self) -> None:
        self.batches.close()


def checkpoint_of(
    spark: SparkSession, root: str | None, topology: str, component: str, scratch: Path, streamed: bool
) -> Checkpoint:
    """Return one component's checkpoint. ``root``: a local path, or a URI of a file system that Spark's Hadoop has;
    None keeps nothing. ``scratch``: a folder for this run; ``streamed``: whether the component has a SparkSpout.

    Raises TridentError if it cannot be reached. Logs a warning if two drivers could not be told apart there.
    """
    open_folder = cache(partial(_open_folder, spark))
    batches = open_log(root, topology, component, order_of_workers, open_folder)
    if root is None or not streamed:
        return Checkpoint(batches, f"file://{scratch / inside(topology, component)}", LOCAL_CHECKPOINT)
    if local_folder(root) is not None:
        return Checkpoint(batches, f"file://{batches.where}/{SPARKS}", LOCAL_CHECKPOINT)
    return Checkpoint(batches, f"{batches.where}/{SPARKS}", open_folder(batches.where).query_settings)


def _open_folder(spark: SparkSession, uri: str) -> HadoopFolder:
    folder = HadoopFolder(spark, uri)
    folder.names()  # whether it can be read at all
    if not folder.exclusive:
        log.warning(
            "the checkpoint %s: its file system cannot make a file on the condition that it does not exist, so two "
            "drivers that run on it at once may not notice each other. See to it that only one is started",
            folder.where,
        )
    return folder
