"""The named steps of a batch, at which a test may watch, stop or end a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from .context import RunContext

DRIVER = -1
STEPS = {
    "opened": "driver: checkpoint and stores agree, older drivers are shut out, no batch has begun",
    "described": "driver: the spouts have described the batch, the checkpoint does not have it",
    "recorded": "driver: the checkpoint has the description, nothing is emitted",
    "emit": "task: a partition of a spout is about to emit",
    "begin": "task: a partition of a state is about to begin its commit",
    "begun": "task: it has begun, nothing is written",
    "written": "task: the updater has written all tuples, `commit` is not called",
    "committed": "task: `commit` has returned, the driver does not know",
    "processed": "driver: all tasks have ended well, neither spouts nor states are told",
    "decided": "driver: the checkpoint holds the decision, no row is visible (only with a state that decides)",
    "publish": "driver: about to tell a state that the batch is complete",
    "published": "driver: the state knows",
    "over": "driver: the batch is complete, the checkpoint does not have it",
}
"""Every step, in the order of a batch. Those of the driver have the partition `DRIVER`."""


class Watcher(Protocol):
    """Is told each step of a run, in the process and the thread where it happens. Picklable; it goes to the workers.

    An exception that it raises counts as one of the step's own code: a FailedException replays the batch.
    """

    def at(self, step: str, name: str, partition: int, txid: int) -> None:
        """Called at a step of a batch. ``name``: the spout or the state, "" for a step of the whole batch."""


def steps_of(conf: Mapping[str, Any]) -> Callable[[str, str, int, int], None]:
    """Return the run's watcher as a function; without one it does nothing."""
    watcher: Watcher | None = RunContext.of(conf).watcher
    return _ignore if watcher is None else watcher.at


def steps_of_driver(conf: Mapping[str, Any]) -> Callable[..., None]:
    """Return `steps_of` for (step, txid) and (step, txid, name) in the driver."""
    return partial(_in_driver, steps_of(conf))


def _in_driver(at: Callable[[str, str, int, int], None], step: str, txid: int, name: str = "") -> None:
    at(step, name, DRIVER, txid)


def _ignore(step: str, name: str, partition: int, txid: int) -> None:
    """Do nothing: nobody watches."""
