"""What a user types where a store was put back: `trident txid rewind`, until it is done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from trident_py.checkpoints.batch_log import BatchLog
from trident_py.checkpoints.metadata_store import LOG
from trident_py.engine.program import Program
from trident_py.engine.startup import AGREEMENT
from trident_py.extras.txid import fence, rewind
from trident_py.extras.txid.components import Component

from .world import World


def take_back(world: World, program: Program, run: str, open_log: Callable[[], BatchLog]) -> None:
    """Take the log back, if a look at it shows that this is not done."""
    if not world.look("log read", is_back(world)):
        rewind.uuid = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=f"back-{run}"))  # type: ignore[assignment]
        assert world.beginning.back is not None
        rewind.rewind(Component("t", program.component, open_log, open_log, program), world.beginning.back)


def is_back(world: World) -> bool:
    """Return whether the log is where the user wants it. Then its record is another one."""
    if world.beginning.back is None:
        return True
    log, at = world.log.content, (AGREEMENT, 0)
    return log[at] != world.beginning.log[at] and "rewind" not in json.loads(log[LOG, 0])


@contextmanager
def waiting_for_nothing(stopping: type) -> Iterator[None]:
    """A rewind has a clock of its own."""
    before = rewind.Event, rewind.uuid, fence.RunningTopology

    def running(*names: Any) -> Any:
        made = before[2](*names)
        made.stopping = stopping()
        return made

    rewind.Event, fence.RunningTopology = stopping, running  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        rewind.Event, rewind.uuid, fence.RunningTopology = before  # type: ignore[misc]
