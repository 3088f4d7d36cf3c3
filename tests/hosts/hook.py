"""In the processes on the hosts: a state stands still at a named step, tells the test, and goes on when it is told to.

Each order has a list of places (`faults.steps.Fault`, action "ask" or "hold"); each is told once, by whichever process
gets there first. The test may answer at once, kill the process, or let it wait while something happens to its host.
Where one is to be held, the end of every commit is told too: by it, and by those that run its task again.

The hook is the state of a module: executors must import these modules, not have them by value. The lab sends them with
``--py-files``.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection
from typing import Any

from faults import steps
from faults.steps import Fault, Hook, Stepped

LOOPBACK = "127.0.0.1"
KEY = b"hosts"
HOLD = "hold"


def connect(port: int) -> Connection:
    """A connection to the test, through the gate of this host."""
    return Client((LOOPBACK, port), authkey=KEY)


@dataclass(frozen=True)
class Caller:
    """Who stands at a place: a process of a host, by its id there."""

    host: str
    pid: int


class HostHook(Hook):
    """What this process knows of the places of one order."""

    def __init__(self, order: str, port: int, faults: tuple[Fault, ...]) -> None:
        super().__init__(faults)
        self.order, self.port = order, port
        self.holding = [fault for fault in faults if fault.action == HOLD]

    def act(self, fault: Fault) -> None:
        self.faults.remove(fault)
        self.ask("at", fault)

    def ask(self, *words: Any) -> None:
        """Tells the test, and stands still until it answers."""
        with connect(self.port) as test:
            test.send(("hook", self.order, Caller(socket.gethostname(), os.getpid()), *words))
            test.recv()

    def ended(self, state: str, partition: int, txid: int | None, error: str) -> None:
        """A commit where one process is held has ended, in that process or another: with this error, or well."""
        for fault in self.holding:
            if (fault.state, fault.txid, fault.partition) == (state, txid, partition):
                self.ask("ended", fault, error)


@dataclass(frozen=True)
class Standing(Stepped):
    """A state factory whose states stand still where the order says so, in whichever process they are made."""

    order: str = ""
    port: int = 0
    faults: tuple[Fault, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name in ("order", "port", "faults"):
            raise AttributeError(name)
        return super().__getattr__(name)

    def hook(self) -> HostHook:
        """The hook of the order in this process."""
        if not isinstance(steps.HOOK, HostHook) or steps.HOOK.order != self.order:
            steps.HOOK = HostHook(self.order, self.port, self.faults)
        return steps.HOOK

    def participant(self) -> Any:
        self.hook()
        return super().participant()

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        hook = self.hook()
        state = super().makeState(conf, metrics, partitionIndex, numPartitions)
        state.beginCommit = _told(state.beginCommit, hook, self.name, partitionIndex, only_refused=True)
        state.commit = _told(state.commit, hook, self.name, partitionIndex)
        return state


def _told(call: Any, hook: HostHook, state: str, partition: int, only_refused: bool = False) -> Any:
    """``call(txid)``, and then the test is told how it ended, if one is held there."""

    def told(txid: int | None) -> Any:
        try:
            answer = call(txid)
        except Exception as error:
            hook.ended(state, partition, txid, f"{type(error).__name__}: {error}")
            raise
        if not only_refused:
            hook.ended(state, partition, txid, "")
        return answer

    return told
