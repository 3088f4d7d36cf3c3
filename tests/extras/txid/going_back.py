"""Topologies whose states can go back, and a rewind that is killed at one of its steps."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from faults.forks import Start, fork
from faults.readings import PARTITIONS, Readings
from faults.steps import Stepped
from faults.stores import ROW, Source, build

from states.files import FileState
from states.sql import RowUpdater
from states.sql.undo import OpaqueUndo, RowUndo
from trident_py import TridentTopology
from trident_py.engine.program import compile_plan
from trident_py.extras.txid.components import Component, component_of
from trident_py.extras.txid.rewind import rewind
from trident_py.model.context import with_context


def noting(name: str, factory: Any) -> Any:
    """A row state keeps the txid of each row."""
    keeps = "txid" in {each.name for each in fields(factory)} and name in ("append", "rows", "batch")
    return Stepped(name, replace(factory, txid="batch") if keeps else factory)


@dataclass(frozen=True)
class Noting(Start):
    """A start of a topology whose row states keep the txids."""

    def topology(self) -> Any:
        return build(self.url, Readings(self.seed), self.last, self.partitions, self.only, wrap=noting)


@dataclass(frozen=True)
class Filing(Start):
    """A start of a topology whose rows go into files."""

    visible: str = "files"

    @property
    def files(self) -> Path:
        return self.folder / "files"

    def state(self) -> FileState:
        return FileState(str(self.files), format="json", columns=ROW, visible=self.visible)

    def topology(self) -> Any:
        topology = TridentTopology()
        stream = topology.newStream("readings", Source(Readings(self.seed), self.last)).parallelismHint(PARTITIONS)
        stepped = Stepped("files", self.state())
        stream.partitionPersist(stepped, ROW.names, RowUpdater(), stateName="files").parallelismHint(self.partitions)
        return topology.build()


def component(start: Start, watcher: Any = None, topology: Any = None, name: str = "faults") -> Component:
    conf = with_context(dict(start.conf), topology=name, run=f"{name}-asks", home=None, watcher=watcher)
    (program,) = compile_plan((topology or start.topology()).plan, conf)
    return component_of(start.place, program, dict(start.storage))


@dataclass(frozen=True)
class Death:
    """Dies at a step of a rewind, as the state with this name goes back."""

    step: str
    name: str = ""

    def at(self, step: str, name: str, partition: int, txid: int) -> None:
        if (step, name) == (self.step, self.name):
            os.kill(os.getpid(), signal.SIGKILL)


def die_undone(undo: Any) -> None:
    """From now on this process dies when a table has gone back, before COMMIT."""
    done = undo.undo

    def dying(self: Any, *args: Any) -> None:
        done(self, *args)
        os.kill(os.getpid(), signal.SIGKILL)

    undo.undo = dying


def killed(start: Start, txid: int, step: str, name: str = "") -> bool:
    """Whether a rewind in a process of its own was killed at the step; else it is done."""
    return dies(_take_back, start, txid, step, name)


def _take_back(start: Start, txid: int, step: str, name: str) -> None:
    if step == "undone":
        die_undone(OpaqueUndo if name in ("opaque", "general") else RowUndo)
    rewind(component(start, Death(step, name)), txid)


def dies(action: Callable[..., Any], *given: Any) -> bool:
    """Whether the action kills its process."""
    process = fork(action, *given)
    process.start()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
    return process.exitcode != 0
