"""Shuts the running drivers of a component out, as a start does that runs no batch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from ...checkpoints.batch_log import BatchLog
from ...engine.batch_loop import BatchLoop
from ...engine.component import take_over
from ...model.context import RunContext, with_context
from ...report.progress import RunningTopology
from ...spouts.coordination import Coordination
from .components import Component


def shut_out(component: Component, then: Callable[[BatchLog], None] | None = None) -> dict[str, int]:
    """Take the log, and raise the generation of every state. Returns the generations. Raises as a start does, and
    leaves log and states as they are if a start is refused. ``then`` gets the log while no other driver has it; it
    gives up the batch that has begun, whose hash seed does not matter then, and records what follows itself."""
    assert component.program is not None and component.open is not None
    with closing(component.open()) as log:
        program = replace(component.program, conf=with_context(component.program.conf, metadata=log.store))
        running, run = RunningTopology(component.topology, [component.name]), RunContext.of(program.conf).run
        loop = BatchLoop(program, Coordination((), program.conf, log.store), running, run)
        loop.check_owner, loop.records = log.check, then is None
        take_over(log, program if then is None else None, loop.examine, loop.open)
        if then is not None:
            then(log)
        return loop.generations or {}
