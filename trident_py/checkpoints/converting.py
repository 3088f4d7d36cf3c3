"""Makes a checkpoint of Spark one of LocalCluster, and back, in its place: `trident checkpoint convert`.

The same txids, lineage and base; the begun batch with its metadata; a decision. A component's folder is of one kind at
any moment, since one rename (to local) or one deletion (to Spark) of the file ``journal`` changes it. So no batch can
run under both, and a conversion that was killed is repeated.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import LineageError
from ..run.opening import SETTLED
from ..spouts.journal import JOURNAL, JournalMetadataStore, write_journal
from ..spouts.metadata import DRIVER, FileMetadataStore, SharedMetadataStore, occupied, sync_folder
from .following import FILE, FollowingLog, JournalFollowingLog, first_txid
from .holding import Holding
from .kinds import CLUSTERS, LOCAL, NEW, SPARKS, kind_of
from .local import BATCHES, BEGUN
from .orders import ORDER, order_of_workers
from .sparklogs import last_batch, logged, txid_of, write_logs

SPARK_ONLY = "SparkSpout"
OF_LOCAL, OF_SPARK = {SETTLED, BATCHES, BEGUN, ORDER, DRIVER}, {SETTLED, ORDER, DRIVER}
Entries = dict[str, dict[int, Any]]


@dataclass(frozen=True)
class Content:
    """What one component's checkpoint says, whichever cluster has written it. ``metadata``: of the last txid that is
    over, None before the first; ``begun``: of the one after it; ``order``: that of the process that began it."""

    record: dict
    txid: int
    metadata: dict | None
    begun: dict | None
    order: dict | None
    others: Entries

    @property
    def standing(self) -> str:
        """For people."""
        over = f"batch {self.txid} is over" if self.metadata is not None else "no batch is over"
        return over + (f", batch {self.txid + 1} has begun" if self.begun is not None else "")


def convert(topology: Path, to: str) -> list[str]:
    """Converts every component's checkpoint in the folder of a topology, and returns a line for each.

    Raises LineageError, and has changed nothing, if a driver runs on one, or if one cannot be converted.
    """
    components = [each for each in sorted(topology.glob("*")) if each.is_dir() and kind_of(each) != NEW]
    if not components:
        raise LineageError(_nothing_in(topology))
    with ExitStack() as stack:
        for folder in components:
            stack.enter_context(_alone(folder))
        others = [folder for folder in components if kind_of(folder) != to]
        for folder in others:
            _read(folder)
        return [_converted(folder, to) if folder in others else _cleaned(folder, to) for folder in components]


def _nothing_in(topology: Path) -> str:
    below = sorted(str(each) for each in topology.glob("*") if any(kind_of(inner) != NEW for inner in each.glob("*")))
    hint = f"; name the folder of one topology: {', '.join(below)}" if below else ""
    return f"there is no checkpoint of a topology in {topology}{hint}"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keeps drivers away from a component. Raises LineageError if one is there."""
    with ExitStack() as stack:
        for place in (folder, folder / "trident"):
            if place.is_dir():
                running = occupied(place, alone=True)
                if running is None:
                    raise LineageError(f"a driver runs on the checkpoint {folder}: stop it first. Nothing was changed")
                stack.enter_context(running)
        yield


def _converted(folder: Path, to: str) -> str:
    _take(folder)
    content = _read(folder)
    if to == LOCAL:
        _write_local(folder, content)
    else:
        _write_spark(folder, content)
    return f"{folder} is one of {CLUSTERS[to]} now: {content.standing}"


def _cleaned(folder: Path, to: str) -> str:
    """A conversion may have been killed behind its last step."""
    if to == LOCAL:
        _remove_sparks(folder)
    return f"{folder} was one of {CLUSTERS[to]} already"


def _take(folder: Path) -> None:
    """From now on a driver that nothing here can see, because it is on another machine, is refused."""
    store: SharedMetadataStore = (
        JournalMetadataStore(folder) if kind_of(folder) == LOCAL else FileMetadataStore(folder / "trident")
    )
    holding = Holding(store, str(folder))
    holding.take()
    store.close()
    with _following(folder) as following:
        if following is not None:
            following.take(holding.driver)


@contextmanager
def _following(folder: Path) -> Iterator[FollowingLog | None]:
    """The log of batches that follow, if there is one."""
    with ExitStack() as stack:
        yield stack.enter_context(closing(JournalFollowingLog(folder))) if (folder / FILE).exists() else None


# -- reading ----------------------------------------------------------------------------------------------------------


def _read(folder: Path) -> Content:
    """What the checkpoint says. Raises LineageError if the other cluster could not go on from it."""
    content = _read_local(folder) if kind_of(folder) == LOCAL else _read_spark(folder)
    for stream, kind in content.record["spouts"].items():
        if kind == SPARK_ONLY:
            raise LineageError(
                f"the checkpoint {folder} cannot be converted: stream {stream!r} is read by a {SPARK_ONLY}, which runs "
                "on Spark only. Nothing was changed"
            )
    return content


def _read_local(folder: Path) -> Content:
    store = JournalMetadataStore(folder)
    try:
        entries = store.entries()
    finally:
        store.close()
    record = _record(folder, entries)
    batches = entries.get(BATCHES, {})
    txid = max(batches, default=record["base"])
    begun, last = entries.get(BEGUN, {}).get(txid + 1), batches.get(txid)
    order = None if begun is None else entries.get(ORDER, {}).get(0)
    return Content(record, txid, last and last["metadata"], begun, order, _without(entries, OF_LOCAL))


def _read_spark(folder: Path) -> Content:
    store = FileMetadataStore(folder / "trident")
    entries = {path: store.entries(path) for path in store.paths("")}
    record = _record(folder, entries)
    with _following(folder) as following:
        txid, metadata, begun = _reached(folder, record["base"], following)
    if begun == {}:
        raise LineageError(
            f"the checkpoint {folder} cannot be converted now: its first batch is an empty one, and has only begun. "
            "Start the topology on Spark once more, and convert then. Nothing was changed"
        )
    order = None if begun is None else entries.get(ORDER, {}).get(txid + 1, order_of_workers())
    return Content(record, txid, metadata, begun, order, _without(entries, OF_SPARK))


def _reached(folder: Path, base: int, following: FollowingLog | None) -> tuple[int, dict | None, dict | None]:
    """The last txid that is over in a checkpoint of Spark, its metadata, and those of the next one."""
    last, followed = last_batch(folder), None
    batch = 0 if last is None else last + 1
    if following is not None:
        file = folder / "offsets" / str(batch)
        followed = following.read(last, txid_of(file.read_text() if file.exists() else None))
    if followed is not None and followed.tells_of(batch):
        return followed.txid, followed.metadata if followed.txid > base else None, followed.begun
    txid = first_txid(batch, base, followed) - 1
    begun = logged(folder, batch, txid + 1)
    if followed is not None and followed.txid == txid:
        return txid, followed.metadata, begun
    metadata = None if last is None else logged(folder, last, txid)
    if last is not None and metadata is None:
        raise LineageError(f"the checkpoint {folder} has committed batch {last}, but lacks the file offsets/{last}")
    return txid, metadata, begun


def _record(folder: Path, entries: Entries) -> dict:
    """What the first start has recorded. Raises LineageError if that is missing."""
    record: dict | None = entries.get(SETTLED, {}).get(0)
    if record is None or "lineage" not in record:
        raise LineageError(
            f"the checkpoint {folder} cannot be converted: it has no record of its first start. If no batch has run on "
            "it, delete the folder; else restore it from a copy"
        )
    return record


def _without(entries: Entries, paths: set[str]) -> Entries:
    return {path: values for path, values in entries.items() if path not in paths and values}


# -- writing ----------------------------------------------------------------------------------------------------------


def _write_local(folder: Path, content: Content) -> None:
    """The journal appears whole, in one step; what is Spark's is deleted after that."""
    entries = {SETTLED: {0: content.record}, **content.others}
    if content.metadata is not None:
        entries[BATCHES] = {content.txid: {"txid": content.txid, "metadata": content.metadata}}
    if content.begun is not None:
        entries |= {BEGUN: {content.txid + 1: content.begun}, ORDER: {0: content.order}}
    write_journal(folder, entries)
    _remove_sparks(folder)


def _write_spark(folder: Path, content: Content) -> None:
    """Everything of Spark's is there before the journal goes."""
    _remove_sparks(folder)
    store = FileMetadataStore(folder / "trident")
    order = {ORDER: {content.txid + 1: content.order}} if content.order is not None else {}
    for path, values in ({SETTLED: {0: content.record}} | order | content.others).items():
        for txid, value in values.items():
            store.put(path, txid, value)
    write_logs(folder, content.record["base"], content.txid, content.metadata or {}, content.begun)
    (folder / JOURNAL).unlink()
    sync_folder(folder)
    (folder / "lock").unlink(missing_ok=True)


def _remove_sparks(folder: Path) -> None:
    for name in (*SPARKS, "sources", "state"):
        place = folder / name
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
    (folder / ".metadata.crc").unlink(missing_ok=True)
