"""The named steps of a batch in a driver process, and what happens there: SIGKILL, or a word with the test.

    begin       a partition of a state is about to begin its commit
    begun       it has begun
    half        half of its rows are written
    written     all of its rows are written, COMMIT is not sent
    committed   COMMIT is answered, in this partition
    publish     all partitions have committed, the driver is about to tell the state
    published   the driver has told the state
    described   the batch is described, the checkpoint has not got it
    recorded    the checkpoint has the description, nothing is emitted
    over        the batch is over, the checkpoint has not got it
    statement   before the n-th request of a partition's transaction, or of `publish` (partition -1)
"""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from states.sql.connection import FormatConnection
from states.sql.dialects.sqlite.table import FileConnection
from trident_py.operations import deterministic
from trident_py.state import StateFactory, StateUpdater
from trident_py.state.participants import participant_of

STEPS = ("begin", "begun", "half", "written", "committed", "publish", "published")
DRIVER = -1
ANY = -2  # the partition that comes first
REQUEST = threading.Lock()
"""Held while a request is answered."""
OF_REQUESTS = "trident-drpc"
"""Threads that answer requests, beside the batches."""
ONE_BY_ONE = ("execute", "executemany")  # SQLite has no requests: each statement counts


@dataclass(frozen=True)
class Fault:
    """What is to happen, once, in one start of a driver. ``action``: kill; die, and say so; ask the test, which does
    something and says go on; rest, the same while no request is being answered; full, no file grows any more; jump,
    the clock jumps by ``number`` seconds."""

    step: str
    state: str
    txid: int
    partition: int = 0
    action: str = "kill"
    number: int = 0


def _fill_disk(fault: Fault) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


def _jump(fault: Fault) -> None:
    clock = time.time
    time.time = lambda: clock() + fault.number


def _die(fault: Fault) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


SELF_HELP = {"die": _die, "full": _fill_disk, "jump": _jump}
"""What a process says that it does to itself, and does."""


class Hook:
    """What a driver process knows of its faults, each of which comes once. `pipe` leads to the test."""

    def __init__(self, faults: Sequence[Fault] = (), pipe: Any = None) -> None:
        self.faults, self.pipe = list(faults), pipe
        self.place: tuple[str, int, int | None] | None = None
        self.statements = 0

    def at(self, step: str, state: str, partition: int, txid: int | None) -> None:
        if step in ("begin", "publish"):
            self.place, self.statements = (state, partition, txid), 0
        for fault in self.faults:
            there = partition == DRIVER or fault.partition in (partition, ANY)
            if (step == "over" or (there and state == fault.state)) and (step, txid) == (fault.step, fault.txid):
                self.act(fault)
                return

    def statement(self) -> None:
        """Before each request to a database."""
        self.statements += 1
        for fault in self.faults:
            if fault.step == "statement" and self.place is not None and self._is_here(fault):
                self.act(fault)
                return

    def _is_here(self, fault: Fault) -> bool:
        assert self.place is not None
        state, partition, txid = self.place
        here = fault.partition == partition or (fault.partition == ANY and partition != DRIVER)
        return here and (state, txid, self.statements) == (fault.state, fault.txid, fault.number)

    def act(self, fault: Fault) -> None:
        self.faults.remove(fault)
        if fault.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault.action in SELF_HELP:
            self.pipe.send(("did", fault.step, fault.txid))
            SELF_HELP[fault.action](fault)
            return
        with REQUEST if fault.action == "rest" else nullcontext():
            self.pipe.send(("at", fault.step, fault.txid))
            self.pipe.recv()

    def halves(self, state: str, txid: int | None) -> bool:
        """Whether this batch of this state is to be hurt half-way."""
        return any((f.step, f.state, f.txid) == ("half", state, txid) for f in self.faults)


HOOK = Hook()


def use(hook: Hook) -> None:
    """Makes this process live through the hook's fault."""
    global HOOK
    HOOK = hook
    for owner, requests in ((FormatConnection, ("execute", "executemany", "together")), (FileConnection, ONE_BY_ONE)):
        for name in requests:
            count(owner, name)


class DriverSteps:
    """The watcher of a run (`trident_py.model.fault_points`): passes on what the driver does around a batch."""

    def at(self, step: str, name: str, partition: int, txid: int) -> None:
        if step in ("described", "recorded"):
            HOOK.at(step, "", DRIVER, txid)


def count(owner: type, name: str) -> None:
    """From now on in this process, a method of a connection or a store tells the hook first."""
    request = getattr(owner, name)
    if hasattr(request, "counted"):
        return

    def telling(*arguments: Any) -> Any:
        if not threading.current_thread().name.startswith(OF_REQUESTS):
            HOOK.statement()
        return request(*arguments)

    telling.counted = True  # type: ignore[attr-defined]
    setattr(owner, name, telling)


@dataclass(frozen=True)
class Stepped(StateFactory):
    """A state factory whose states and participant pass through the hook; everything else is the factory's own."""

    name: str
    factory: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("factory", "name"):
            raise AttributeError(name)
        return getattr(self.factory, name)

    def participant(self) -> Any:
        inner = participant_of(self.factory)
        publish = inner.publish

        def stepped(txid: int, attempt: int, receipts: Any) -> None:
            HOOK.at("publish", self.name, DRIVER, txid)
            publish(txid, attempt, receipts)
            HOOK.at("published", self.name, DRIVER, txid)

        inner.publish = stepped  # type: ignore[method-assign, union-attr]
        return inner

    @property
    def location(self) -> Any:
        return self.factory.location

    @property
    def reading(self) -> Any:
        return self.factory.reading

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        state = self.factory.makeState(conf, metrics, partitionIndex, numPartitions)
        begin, commit = state.beginCommit, state.commit

        def stepped_begin(txid: int | None) -> None:
            HOOK.at("begin", self.name, partitionIndex, txid)
            state.now = (self.name, partitionIndex, txid)
            begin(txid)
            HOOK.at("begun", self.name, partitionIndex, txid)

        def stepped_commit(txid: int | None) -> Any:
            HOOK.at("written", self.name, partitionIndex, txid)
            receipt = commit(txid)
            HOOK.at("committed", self.name, partitionIndex, txid)
            return receipt

        state.beginCommit, state.commit = stepped_begin, stepped_commit
        return state


@deterministic
@dataclass(frozen=True)
class InHalves(StateUpdater):
    """Where the batch at hand is to be hurt half-way, the updater gets its rows in two calls, to write the same."""

    inner: StateUpdater

    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        name, partition, txid = getattr(state, "now", ("", 0, None))
        if len(tuples) < 2 or not HOOK.halves(name, txid):
            self.inner.updateState(state, tuples, collector)
            return
        half = len(tuples) // 2
        self.inner.updateState(state, tuples[:half], collector)
        HOOK.at("half", name, partition, txid)
        self.inner.updateState(state, tuples[half:], collector)
