"""What kills workers and executors, not the driver: named, so that an order to a driver process can say it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from trident_py.state import StateFactory
from trident_py.testing import Crashing

from .hooks import STATES, wait_for

Wrap = Callable[[str, Any], Any]


@dataclass(frozen=True)
class Once:
    """For `Crashing`: true for the first task that gets here in this txid, whichever attempt or process."""

    folder: str
    name: str
    txid: int

    def __call__(self, txid: int, attempt: int) -> bool:
        if txid != self.txid:
            return False
        try:
            (Path(self.folder) / f"once-{self.name}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


@dataclass(frozen=True)
class LoseExecutor:
    """For `Crashing`, in partition 0 after its last commit: kills the executor, with its shuffle files, around
    the task of another partition that has its tuples already and commits only afterwards."""

    once: Once

    def __call__(self, txid: int, attempt: int) -> bool:
        if self.once(txid, attempt):
            wait_for(Path(self.once.folder) / "held")
            daemon = psutil.Process(os.getppid())
            executor = daemon.parent()
            (Path(self.once.folder) / "lost").touch()
            for process in (executor, daemon, psutil.Process()):
                process.kill()
        return False


@dataclass(frozen=True)
class Held(StateFactory):
    """The partition that commits after the executor of the other one is gone."""

    factory: Any
    folder: str
    txid: int

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("factory", "folder", "txid"):
            raise AttributeError(name)
        return getattr(self.factory, name)

    @property
    def location(self) -> Any:
        return self.factory.location

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        state = self.factory.makeState(conf, metrics, partitionIndex, numPartitions)
        begin = state.beginCommit

        def held_begin(txid: int | None) -> None:
            if txid == self.txid and partitionIndex == 1:
                (Path(self.folder) / "held").touch()
                wait_for(Path(self.folder) / "lost")
            begin(txid)

        state.beginCommit = held_begin
        return state


@dataclass(frozen=True)
class Overtaken(StateFactory):
    """Partition 1 of the first attempt of ``txid`` sleeps until the next attempt has committed it, and goes on."""

    name: str
    factory: Any
    folder: str
    txid: int

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("factory", "folder", "txid", "name"):
            raise AttributeError(name)
        return getattr(self.factory, name)

    @property
    def location(self) -> Any:
        return self.factory.location

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        state = self.factory.makeState(conf, metrics, partitionIndex, numPartitions)
        begin, commit, running = state.beginCommit, state.commit, conf["trident.context"]

        def here(attempt: int, at: str) -> bool:
            return (*running.transaction, partitionIndex, self.name) == (self.txid, attempt, 1, at)

        def sleepy_begin(txid: int | None) -> None:
            if here(0, STATES[0]):
                (Path(self.folder) / "asleep").touch()
                wait_for(Path(self.folder) / "overtaken")
            try:
                begin(txid)
            finally:
                if here(0, STATES[-1]):
                    (Path(self.folder) / "awake").touch()

        def told_commit(txid: int | None) -> Any:
            receipt = commit(txid)
            if here(1, STATES[-1]):
                (Path(self.folder) / "overtaken").touch()
            return receipt

        state.beginCommit, state.commit = sleepy_begin, told_commit
        return state


@dataclass(frozen=True)
class DieBeside:
    """For `Crashing` with how="kill": the first task here dies once another one is asleep."""

    once: Once

    def __call__(self, txid: int, attempt: int) -> bool:
        if not self.once(txid, attempt):
            return False
        wait_for(Path(self.once.folder) / "asleep")
        return True


def workers(folder: str) -> Wrap:
    """The Python worker of a partition of every state dies, once with its writes out in txid 1, once with them
    committed in txid 2: states 0, 2, 4 in partition 0, states 1, 3 in partition 1."""

    def wrap(name: str, factory: Any) -> Any:
        partition = STATES.index(name) % 2
        for txid, at in ((1, "commit"), (2, "afterCommit")):
            factory = Crashing(factory, at, Once(folder, f"{name}-{at}", txid), "kill", partition)
        return factory

    return wrap


def executors(folder: str) -> Wrap:
    """As `workers`; then, in txid 3, an executor dies with its shuffle files: one of two partitions has committed,
    the other does so afterwards, and Spark emits a part of the batch again for the first one's retry."""
    worker = workers(folder)

    def wrap(name: str, factory: Any) -> Any:
        if name == STATES[0]:
            factory = Held(factory, folder, 3)
        if name == STATES[-1]:
            factory = Crashing(factory, "afterCommit", LoseExecutor(Once(folder, "executor", 3)), partition=0)
        return worker(name, factory)

    return wrap


def overtaken(folder: str) -> Wrap:
    """In txid 2 a worker dies, which fails the attempt, and the task beside it sleeps through the next one."""

    def wrap(name: str, factory: Any) -> Any:
        factory = Overtaken(name, factory, folder, 2)
        if name == STATES[-1]:
            return Crashing(factory, "afterCommit", DieBeside(Once(folder, "beside", 2)), "kill", partition=0)
        return factory

    return wrap


DEATHS: dict[str, Callable[[str], Wrap]] = {"executors": executors, "overtaken": overtaken}
