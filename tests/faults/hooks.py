"""Where a run is killed: SIGKILL of the driver, its Java process and this process, at a named point of one txid.

The points, in the order of a batch:

    log         the batch is described, the log has not got it
    function    a function has begun to see its tuples
    begun       a state has begun its commit in one partition (another state, in the other partition, too)
    updated     its rows are written, the store's commit has not come
    one         one of two partitions has committed every state, the other has begun none
    all         every state has committed in every partition, the driver does not know
    published   the driver has noted the batch as complete in every ledger
    over        the batch is committed, the log has not got that it is over
"""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trident_py.operations import Function
from trident_py.state import BatchParticipant, Remembered, StateFactory

POINTS = ("log", "function", "begun", "updated", "one", "all", "published", "over")
STATES = ("rows", "trans", "opaque", "plain", "drift")
DEADLINE = 120


@dataclass(frozen=True)
class Kill:
    """Made in the driver that is to die; travels to its workers. ``states``: the two that are caught at a
    point at the same time, the first in partition 0, the second in partition 1."""

    folder: str
    point: str = ""
    txid: int = 0
    states: tuple[str, str] = ("", "")
    partitions: int = 2
    processes: tuple[int, ...] = field(default=())

    def at(self, point: str, txid: int | None) -> None:
        """Dies here, if this is the place."""
        if self.wants(point, txid):
            self.now()

    def wants(self, point: str, txid: int | None) -> bool:
        return (point, txid) == (self.point, self.txid)

    def now(self) -> None:
        """No process of the driver does anything after this."""
        for process in (*self.processes, os.getpid()):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue  # it was quicker

    # -- in a state's partition

    def before_begin(self, state: str, partition: int, txid: int | None) -> None:
        if self.wants("one", txid) and partition == 1:
            wait_for(self._mark("never"))
        if self._caught(txid) and (state, partition) == (self.states[0], 0):
            wait_for(self._mark("held"))

    def in_commit(self, point: str, state: str, partition: int, txid: int | None) -> None:
        if not self.wants(point, txid):
            return
        if (state, partition) == (self.states[1], 1):
            self._mark("held").touch()
            wait_for(self._mark("never"))
        if (state, partition) == (self.states[0], 0):
            self.now()

    def committed(self, state: str, partition: int, txid: int | None) -> None:
        if state == STATES[-1]:
            self.at("one", txid)
        if self.wants("all", txid):
            self._mark(f"done-{state}-{partition}").touch()
            done = Path(self.folder).glob(f"{self._mark('done').name}-*")
            if len(list(done)) == self.partitions * len(STATES):
                self.now()

    def _caught(self, txid: int | None) -> bool:
        return self.wants("begun", txid) or self.wants("updated", txid)

    def _mark(self, name: str) -> Path:
        return Path(self.folder) / f"mark-{self.txid}-{name}"


def wait_for(file: Path) -> None:
    """Until it is there, or this process is killed. Raises after a while: a hung test must end."""
    until = time.monotonic() + DEADLINE
    while not file.exists():
        if time.monotonic() > until:
            raise TimeoutError(f"{file.name} did not come")
        time.sleep(0.005)


@dataclass(frozen=True)
class Watched(StateFactory):
    """A state factory that writes down every commit and refusal of its partitions, and is killed where it is
    told. Everything else is the factory's own."""

    name: str
    factory: Any
    kill: Kill

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("factory", "kill", "name"):
            raise AttributeError(name)
        return getattr(self.factory, name)

    @property
    def location(self) -> Any:
        return self.factory.location

    def participant(self) -> Any:
        return Publishing(self.factory.participant(), self)

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        state = self.factory.makeState(conf, metrics, partitionIndex, numPartitions)
        begin, commit, running = state.beginCommit, state.commit, conf["trident.context"]

        def watched_begin(txid: int | None) -> None:
            self.kill.before_begin(self.name, partitionIndex, txid)
            try:
                begin(txid)
            except Exception as error:
                self._write("refused", partitionIndex, running.transaction, numPartitions, str(error))
                raise
            self.kill.in_commit("begun", self.name, partitionIndex, txid)

        def watched_commit(txid: int | None) -> Any:
            self.kill.in_commit("updated", self.name, partitionIndex, txid)
            receipt = commit(txid)
            self._write("committed", partitionIndex, running.transaction, numPartitions)
            self.kill.committed(self.name, partitionIndex, txid)
            return receipt

        state.beginCommit, state.commit = watched_begin, watched_commit
        return state

    def _write(self, what: str, partition: int, running: Any, of: int, error: str = "") -> None:
        line = {"what": what, "state": self.name, "txid": running.txid, "attempt": running.attemptId,
                "partition": partition, "of": of, "error": error}  # fmt: skip
        with (Path(self.kill.folder) / "log").open("a") as file:
            file.write(json.dumps(line) + "\n")


class Publishing(BatchParticipant):
    """The driver's side of a watched state."""

    def __init__(self, inner: Any, watched: Watched) -> None:
        self.inner, self.watched = inner, watched

    def open(self, conf: dict) -> int:
        return self.inner.open(conf)

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        self.inner.prepare(txid, attempt, numPartitions)

    def publish(self, txid: int, attempt: int, receipts: Any) -> None:
        self.inner.publish(txid, attempt, receipts)
        if self.watched.name == STATES[-1]:
            self.watched.kill.at("published", txid)

    def abort(self, txid: int, attempt: int) -> None:
        self.inner.abort(txid, attempt)

    def remembered(self, conf: dict) -> Remembered | None:
        return self.inner.remembered(conf)


@dataclass(frozen=True)
class Wait:
    """Lets a batch wait for a file: at ``place`` ("spout" or "function") of ``txid``."""

    place: str = ""
    txid: int = 0
    file: str = ""

    def at(self, place: str, txid: int) -> None:
        if (place, txid) == (self.place, self.txid):
            Path(f"{self.file}.reached").touch()
            wait_for(Path(self.file))


class Passing(Function):
    """A function that changes nothing. It is where a batch is killed, or waits."""

    def __init__(self, kill: Kill, wait: Wait) -> None:
        self.kill, self.wait = kill, wait
        self.context: Any = None

    def prepare(self, conf: dict, context: Any) -> None:
        self.context = context

    def execute(self, tuple: Any, collector: Any) -> None:
        txid = self.context.transaction.txid
        self.kill.at("function", txid)
        self.wait.at("function", txid)
        collector.emit((tuple[0],))
