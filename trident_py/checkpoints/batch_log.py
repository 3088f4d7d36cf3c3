"""The log of a component's batches: started, committed, and owned by one driver. The only history of its Python spouts.

It is one record, replaced in one step when a batch begins and when it ends:

    driver   who owns the checkpoint: the driver that started last
    over     the last batch that is over: its txid, the spouts' metadata, the micro-batch of Spark in which it ran
    begun    the batch after it, from before its first tuple is emitted: the same, and the order of sets
    rewind   the txid to which the component is being taken back, from which one, and with which states

Beside the record, under numbers below 0, it has the last batches that are over, each with the time of its end: in a
ring, so that a batch takes the place of one that nobody goes back to.

Beside it the store has what belongs to the component: what its first start recorded, a decision, the metadata that
came with commits. So a run moves between the clusters by being started on the other one. Docs: checkpoints.md.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..engine.program import Program
from ..engine.startup import AGREEMENT
from ..engine.store_position import BASE, FORMAT, CheckpointState, Joined, Rewinding
from ..engine.two_phase import DECIDED
from ..errors import LineageError, ZombieError
from .hash_seed import find_other_seed
from .metadata_store import IMPORTED, LOG, MemoryMetadataStore, ownership_error

MicroBatch = Mapping[str, Any]
_EMPTY: dict[str, Any] = {"driver": {}, "over": None, "begun": None}
_ENDED, _LEAST, _RUN, _BACK = "ended", "least", "run", "back"


class Logged(NamedTuple):
    """What the log says of a batch. ``metadata``: that of each spout. ``micro_batch``: None on LocalCluster; on Spark
    the id of the query and the number of its micro-batch, and for sources of Spark their offsets. ``order``: that of
    sets in the processes that emit it."""

    txid: int
    metadata: dict | None
    micro_batch: MicroBatch | None = None
    order: Mapping[str, str] | None = None


class PastBatch(NamedTuple):
    """A batch to which the component can go back. ``ended``: when it was over, in seconds since 1970, None if the log
    does not have it; ``runs``: the tokens of the run that ended it, "" if the log does not have it, and of those that
    have gone back to it."""

    txid: int
    ended: int | None
    runs: tuple[str, ...] = ("",)


class BatchLog:
    """The log of one component. ``where`` names it in messages; ``order``: the order of sets in the processes that will
    emit. ``kept``: how many batches it can be taken back. In memory, it is kept for one run."""

    kept = 0

    def __init__(
        self, store: MemoryMetadataStore, where: str, topology: str, order: Callable[[], Mapping[str, str]]
    ) -> None:
        self.store = store
        self.where = where
        self.driver = {"host": socket.gethostname(), "pid": os.getpid(), "id": uuid.uuid4().hex}
        self._topology = topology
        self._order = order
        self._micro_batch: MicroBatch | None = None

    @property
    def order(self) -> Mapping[str, str]:
        """The order of sets in the processes that emit from now on."""
        return self._order()

    def read_state(self, program: Program | None) -> CheckpointState:
        """Return what the checkpoint holds before this start; without a program, nothing of a hash seed. Raises
        LineageError if a part of it is missing."""
        record = self.store.get(AGREEMENT, 0)
        if record is None and self.last() is None:
            return CheckpointState.new(self.where, self._topology)
        if record is None or self.store.get(LOG, 0) is None:
            raise LineageError(
                f"the checkpoint {self.where} has only one of the record of its first start and the log of batches: it "
                "is damaged, or of a version of trident_py before the log. Restore it from a copy, or move it away: "
                f"the next start names the {BASE} with which a new one continues"
            )
        if (written := record.get("format", 1)) != FORMAT:
            raise LineageError(
                f"the checkpoint {self.where} has format {written}, this version of trident_py reads "
                f"{FORMAT}: start it with the version that wrote it"
            )
        last = self.last()
        txid = record["base"] if last is None else last.txid
        begun = self.find_begun(txid + 1)
        decided = self.store.get(DECIDED, txid + 1) is not None
        other = None if begun is None or program is None else find_other_seed(program, begun.order, self.order["order"])
        return CheckpointState(
            self.where, self._topology, record, record["lineage"], txid, begun is not None, decided, other,
            self._find_intent(txid),
        )  # fmt: skip

    def take(self) -> None:
        """Make this driver the owner. An older one is refused when it begins its next batch, or writes anything else,
        so what is read after this stays as it is. Raises ZombieError if in HDFS or S3 another driver starts at the same
        moment; in a folder the later one owns it."""

        def enter(entries: dict[int, Any]) -> tuple[int, Any]:
            return 0, {**(entries.get(0, _EMPTY)), "driver": self.driver}

        self.store.take_over(LOG, enter)

    @property
    def owner(self) -> Mapping[str, Any]:
        """The driver that started last; empty if none has."""
        driver: Mapping[str, Any] = (self.store.get(LOG, 0) or _EMPTY)["driver"]
        return driver

    def has_moved(self) -> bool:
        """Return whether another driver has written since this one has read the log."""
        return self.store.has_changed(LOG)

    def check(self) -> None:
        """Raise ZombieError if another driver owns the checkpoint now."""
        if self.has_moved():
            raise ownership_error(self.where, self.store.newest(LOG))

    def last(self) -> Logged | None:
        """Return the last committed batch."""
        return self._read_logged("over")

    def find_over(self, txid: int) -> Logged | None:
        """Return this batch if it is over and one of those that are kept."""
        last = self.last()
        if last is None or txid >= last.txid:
            return last if last is not None and last.txid == txid else None
        batch = self._past().get(txid)
        return None if batch is None else Logged(**{name: batch[name] for name in Logged._fields})

    def find_begun(self, txid: int) -> Logged | None:
        """Return this batch if it has started and is not committed."""
        begun = self._read_logged("begun")
        return begun if begun is not None and begun.txid == txid else None

    def enter(self, micro_batch: MicroBatch) -> None:
        """Called at the begin of a micro-batch of Spark: the next batches run in it."""
        self._micro_batch = micro_batch

    def begin(self, txid: int, metadata: dict) -> None:
        """Called before a batch is emitted. Durable when it returns, because a restart must not change a batch that
        states may have written. If a state holds a batch without this record, another copy of the log wrote it. Raises
        ZombieError if another driver has taken the log."""
        record = self._record()
        begun = Logged(txid, metadata, self._micro_batch, self.order)._asdict()
        if record["begun"] == begun:
            self.check()
            return
        try:
            self.store.put(LOG, 0, {**record, "begun": begun})
        except ZombieError:
            raise ownership_error(self.where, self.store.newest(LOG)) from None

    def end(self, txid: int, metadata: dict) -> None:
        """Called after a batch. Durable with the next batch or `settle`: without it, the batch would be repeated as it
        was. If Spark's own checkpoint will have it too, this is durable first."""
        over = Logged(txid, metadata, self._micro_batch)._asdict()
        if self.kept:
            slot, before = self._slot(txid), self.store.peek(LOG, self._slot(txid - 1)) or {}
            least = max(before[_LEAST], txid - self.kept) if before.get("txid") == txid - 1 else txid
            run = (self.store.peek(AGREEMENT, 0) or {}).get("run", "")
            self.store.note(LOG, slot, {**over, _ENDED: int(time.time()), _LEAST: least, _RUN: run})
        write = self.store.put if "ends" in (self._micro_batch or {}) else self.store.note
        write(LOG, 0, {**self._record(), "over": over, "begun": None})

    def list_kept(self) -> list[PastBatch]:
        """Return the batches to which the component can go back, the last one first."""
        last, base = self.last(), (self.store.get(AGREEMENT, 0) or {}).get("base", 0)
        if last is None:
            return [PastBatch(base, None)]
        past = self._past()
        newest = past.get(last.txid, {"txid": last.txid, _ENDED: None, _LEAST: last.txid})
        kept = [_past_batch(newest)]
        while (txid := kept[-1].txid - 1) >= newest[_LEAST] and txid in past:
            kept.append(_past_batch(past[txid]))
        imported = self.store.get(IMPORTED, 0) is not None  # then spouts had positions at the base, which are gone
        return [*kept, PastBatch(base, None)] if kept[-1].txid == base + 1 and not imported else kept

    def intend(self, rewinding: Rewinding) -> None:
        """Record that the component goes back to a batch. From now on every start is refused, until `go_back`."""
        intent = {**rewinding._asdict(), "from": self.list_kept()[0].txid}
        self.store.put(LOG, 0, {**self._record(), "rewind": intent})

    def go_back(
        self, txid: int, run: str, joined: Mapping[str, Joined], forgotten: Callable[[], None] = lambda: None
    ) -> None:
        """Forget the batches after this one. ``run``: the token that the states have; ``joined``: what their stores say
        now. The last write ends what `intend` began; those before it may be made again. ``forgotten``: called before
        the last one."""
        over, record = self.find_over(txid), self.store.get(AGREEMENT, 0)
        assert over is not None or txid == record["base"]
        self._note_way_back(txid, run)
        for path in self.store.paths(""):
            for number in self.store.txids(path):
                if self._is_later(path, number, txid):
                    self.store.remove(path, number)
        states = {name: [*at[:2], min(at[2], txid), *at[3:]] for name, at in record.get("states", {}).items()}
        states |= {name: list(each) for name, each in joined.items()}
        self.store.put(AGREEMENT, 0, {**record, "run": run, "states": states})
        forgotten()
        self.store.put(LOG, 0, {**_EMPTY, "driver": self._record()["driver"], "over": over and over._asdict()})

    def settle(self) -> None:
        """Make the end of the last batch durable. Called when no other one follows at once."""
        self.store.settle()

    def close(self) -> None:
        """Called when the component ends."""
        self.store.close()

    def _slot(self, txid: int) -> int:
        return -1 - txid % (self.kept + 1)

    def _past(self) -> dict[int, dict[str, Any]]:
        """Return what the ring has, by txid."""
        numbers = [number for number in self.store.txids(LOG) if number < 0]
        return {batch["txid"]: batch for batch in (self.store.get(LOG, number) for number in numbers)}

    def _note_way_back(self, txid: int, run: str) -> None:
        """Note that the ways back from an earlier batch are those that are left now, and the run that states have."""
        last = self.last()
        now = self._past().get(last.txid, {}) if last is not None else {}
        for number in self.store.txids(LOG):
            batch = self.store.get(LOG, number)
            if number < 0 and batch["txid"] == txid:
                least, back = max(now.get(_LEAST, 0), batch[_LEAST]), [*batch.get(_BACK, ()), run]
                self.store.put(LOG, number, {**batch, _LEAST: least, _BACK: back})

    def _is_later(self, path: str, number: int, txid: int) -> bool:
        """Return whether an entry is of a batch after this one."""
        if path == LOG:
            return number < 0 and bool(self.store.peek(path, number)["txid"] > txid)
        return path != AGREEMENT and number > txid

    def _find_intent(self, committed: int) -> Rewinding | None:
        """Return what `intend` has recorded. A version without it may have gone on since: then no state went back."""
        intent = self._record().get("rewind")
        if intent is None or intent["from"] != committed:
            return None
        return Rewinding(intent["to"], tuple(intent["states"]))

    def _record(self) -> Mapping[str, Any]:
        record: Mapping[str, Any] = self.store.peek(LOG, 0) or _EMPTY
        return record

    def _read_logged(self, name: str) -> Logged | None:
        """Return a copy: a spout may change its metadata."""
        batch = (self.store.get(LOG, 0) or _EMPTY)[name]
        return None if batch is None else Logged(**batch)


def _past_batch(entry: Mapping[str, Any]) -> PastBatch:
    return PastBatch(entry["txid"], entry[_ENDED], (entry.get(_RUN, ""), *entry.get(_BACK, ())))


def describe_driver(driver: Mapping[str, Any], running: bool | None) -> str:
    """Return which process a driver is, and whether it is there."""
    there = {None: "", True: ", which is running", False: ", which is not running"}[running]
    return f"process {driver['pid']} on host {driver['host']}{there}"


def is_running(driver: Mapping[str, Any]) -> bool | None:
    """Return whether the driver's process is there; None if it is on another host. A number may have been given to
    another process since."""
    if driver.get("host") != socket.gethostname():
        return None
    try:
        os.kill(driver["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
