"""The checkpoint of a component: one folder with Spark's logs and, inside it, a folder of trident_py.

    <checkpoints>/<topology name>/<component>/          metadata, offsets, commits (Spark's)
    <checkpoints>/<topology name>/<component>/trident/  lineage and txid base, spout metadata that came with a commit
                                                        following/, or followed/ in HDFS and S3: batches that shared
                                                        a micro-batch of Spark

The second is inside the first, so that a checkpoint is copied, moved and deleted as one folder. Only the driver reads
and writes it.
"""

from __future__ import annotations

import json
import logging
import uuid
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import SparkSession

from ..checkpoints.following import (
    FILE,
    FOLLOWED,
    Followed,
    FollowingLog,
    JournalFollowingLog,
    VersionedFollowingLog,
    first_txid,
)
from ..checkpoints.holding import Holding
from ..checkpoints.kinds import LOCAL, inside, other_kind
from ..checkpoints.orders import ORDER, order_of_workers, seeded
from ..checkpoints.sparklogs import txid_of
from ..errors import LineageError
from ..run.deciding import DECIDED
from ..run.opening import SETTLED
from ..run.program import Program
from ..run.standing import BASE, Standing
from ..spouts.journal import JOURNAL
from ..spouts.metadata import DRIVER, FileMetadataStore, SharedMetadataStore
from ..spouts.versions import VersionedMetadataStore
from .hadoop_folder import HadoopFolder
from .session import LOCAL_CHECKPOINT

log = logging.getLogger("trident_py")


class Place(Protocol):
    """A folder, as far as a checkpoint reads it. ``renames``: Spark makes the files of its logs in one step there."""

    @property
    def where(self) -> str: ...

    @property
    def renames(self) -> bool: ...

    def names(self, folder: str = "") -> list[str]: ...

    def exists(self, name: str) -> bool: ...

    def read(self, name: str) -> str | None: ...

    def replace(self, name: str, text: str) -> None: ...


class LocalFolder:
    """A folder of this machine."""

    renames = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.where = str(folder)

    def names(self, folder: str = "") -> list[str]:
        return [file.name for file in (self.folder / folder).glob("*")]

    def exists(self, name: str) -> bool:
        return (self.folder / name).exists()

    def read(self, name: str) -> str | None:
        return (self.folder / name).read_text() if self.exists(name) else None

    def replace(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)


def checkpoint_of(spark: SparkSession, root: str, topology: str, component: str) -> Checkpoint:
    """One component's checkpoint. ``root``: a local path, or a URI of a file system that Spark's Hadoop has.

    Raises TridentError if it cannot be reached. Logs a warning if two drivers could not be told apart there.
    """
    name = inside(topology, component)
    if (local := local_folder(root)) is not None:
        folder = Path(local).absolute() / name
        _check_local(folder)
        store = FileMetadataStore(folder / "trident")
        return Checkpoint(LocalFolder(folder), store, f"file://{folder}", LOCAL_CHECKPOINT, JournalFollowingLog(folder))
    place = HadoopFolder(spark, f"{root.rstrip('/')}/{name}")
    place.names()  # whether it can be read at all
    if not place.exclusive:
        log.warning(
            "the checkpoint %s: its file system cannot make a file on the condition that it does not exist, so two "
            "drivers that run on it at once may not notice each other. See to it that only one is started", place.where,
        )  # fmt: skip
    versioned = VersionedMetadataStore(HadoopFolder(spark, f"{place.where}/trident"))
    following = VersionedFollowingLog(versioned, place.where, place.read(FILE))
    return Checkpoint(place, versioned, place.where, place.query_settings, following)


def _check_local(folder: Path) -> None:
    """Raises LineageError if the checkpoint has been in HDFS or S3: what was local before that is old now."""
    if (folder / "trident" / DRIVER).is_dir():
        raise LineageError(
            f"the checkpoint {folder} was copied from HDFS or S3, where its files have other names. Go on there, or "
            f"move it away: the next start names the {BASE} with which a new one continues"
        )


def local_folder(root: str) -> str | None:
    """The path on this machine that ``checkpoints=`` names: a plain path or ``file://``; None for any other URI."""
    if "://" not in root or root.startswith("file://"):
        return root.removeprefix("file://").removeprefix("file:")
    return None


class Checkpoint:
    """One component's folder. ``location`` is its address for Spark: not escaped, as Hadoop takes the text as it is.

    ``settings`` are those of a query on it; ``following`` is the log of batches that share a micro-batch.
    """

    def __init__(
        self,
        place: Place,
        store: SharedMetadataStore,
        location: str,
        settings: dict[str, str],
        following: FollowingLog,
    ) -> None:
        self.store = store
        self.location = location
        self.settings = settings
        self.following = following
        self._place = place
        self._holding = Holding(store, place.where)

    @property
    def where(self) -> str:
        """The folder, for messages."""
        return self._place.where

    @property
    def is_new(self) -> bool:
        """Whether no query was ever started here."""
        return not self._place.exists("metadata")

    def last_batch(self) -> int | None:
        """The highest batch id that Spark has committed here."""
        return max((int(name) for name in self._place.names("commits") if name.isdigit()), default=None)

    def is_committed(self, batch_id: int) -> bool:
        """Whether Spark has recorded this batch as committed."""
        return self._place.exists(f"commits/{batch_id}")

    def require_kind(self) -> None:
        """Raises LineageError if it is a checkpoint of LocalCluster."""
        if self._place.exists(JOURNAL):
            raise other_kind(self.where, LOCAL)

    def standing(self, program: Program) -> Standing:
        """The content of the checkpoint before this start. Raises LineageError if a part of it is missing, or if it is
        one of LocalCluster."""
        self._holding.begin()
        self.require_kind()
        self.store.reread_but(DRIVER, FOLLOWED)  # until this driver has the checkpoint, another one may write
        topology = program.conf["topology.name"]
        record = self.store.get(SETTLED, 0)
        if record is None:
            if not self.is_new:
                raise LineageError(
                    f"the checkpoint {self.where} has Spark's logs, but the file {SETTLED}.json in its folder "
                    "'trident' is missing, so the txids of its batches are unknown. Restore it from a copy, or move "
                    f"the whole checkpoint away: the next start names the {BASE} with which a new one continues"
                )
            return Standing.new(self.where, topology)
        txid, begun = self._reached(record["base"])
        decided = self.store.get(DECIDED, txid + 1) is not None
        lineage = record.get("lineage") or self._query_id()
        order = self.store.get(ORDER, txid + 1) if begun else None  # if LocalCluster has begun it
        other = None if order is None else seeded(program, order, order_of_workers()["order"])
        return Standing(self.where, topology, record, lineage, txid, begun, decided, other)

    def _reached(self, base: int) -> tuple[int, bool]:
        """The last txid that is over, and whether the next one has begun."""
        batch, offsets, followed = self._logs()
        if followed is not None and followed.tells_of(batch):
            return followed.txid, followed.begun is not None
        return first_txid(batch, base, followed) - 1, offsets is not None

    def followed(self) -> Followed | None:
        """How far the newest micro-batch got in which batches followed."""
        return self._logs()[2]

    def _logs(self) -> tuple[int, str | None, Followed | None]:
        """The micro-batch behind the last that Spark has committed, its offsets, and what the log of those that follow
        says."""
        last = self.last_batch()
        batch = 0 if last is None else last + 1
        offsets = self._place.read(f"offsets/{batch}")
        return batch, offsets, self.following.read(last, txid_of(offsets))

    def take(self) -> None:
        """Called once by a driver that is about to open its states: see `Holding`. Corrects offsets that an older
        driver has written too late."""
        newest = self._holding.take()
        self.following.take(self._holding.driver)
        if not self._place.renames:
            for batch in (newest["batch"] - 1, newest["batch"]):
                self._correct(batch)

    def check(self) -> None:
        """Called before a batch is planned. Raises ZombieError if another driver has taken the checkpoint since."""
        self._holding.check()

    def close(self) -> None:
        """Called when the component ends."""
        self.following.close()
        self.store.close()

    def begin(self, batch_id: int, offsets: Any) -> None:
        """Called when Spark has logged a batch, before anything is emitted. ``offsets()`` is the text that it logged.

        Where Spark's log is not made in one step, another driver's text may replace it at any time. The text that
        counts is kept here, by the one driver that `VersionedMetadataStore` lets write. Raises ZombieError for others.
        """
        if not self._place.renames:
            record = {"batch": batch_id, "driver": self._holding.driver, "offsets": offsets()}
            self.store.put(DRIVER, batch_id + 1, record)
            self.store.cleanup_before(DRIVER, batch_id)

    def _correct(self, batch_id: int) -> None:
        """Restores the offsets of a batch that was begun, if another driver's have replaced them."""
        offsets = (self.store.get(DRIVER, batch_id + 1) or {}).get("offsets")
        if offsets is not None and self._place.read(f"offsets/{batch_id}") not in (None, offsets):
            log.warning("the checkpoint %s: batch %d has the offsets of another driver; restored", self.where, batch_id)
            self._place.replace(f"offsets/{batch_id}", offsets)

    def _query_id(self) -> str:
        """The lineage of a checkpoint made by an older version."""
        text = self._place.read("metadata")
        return uuid.uuid4().hex if text is None else str(json.loads(text)["id"])
