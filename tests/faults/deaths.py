"""What kills workers and executors, not the driver: named, so that an order to a driver process can say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trident_py.testing import Crashing

from .hooks import STATES, DieBeside, Held, LoseExecutor, Once, Overtaken

Wrap = Callable[[str, Any], Any]


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
