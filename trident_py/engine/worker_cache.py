"""The tasks and state partitions that a run keeps in one process from batch to batch.

A process may serve several partitions, and may miss batches that another process served. It therefore reuses a state
only if it saw the previous attempt; otherwise the state's cached values could be stale.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from ..metrics import IMetricsContext
from ..model.context import CurrentBatch, RunContext, with_context
from ..model.plan import ProcessorNode, StateUse
from ..model.resources import close_all
from ..state.base import is_current
from ..state.roles import Closes
from ..tuples import TransactionAttempt
from .hooks import T
from .parallel_commit import start_commits
from .phases import phase
from .program import BatchInfo, Program, Row
from .task import LevelTask

log = logging.getLogger("trident_py")

_runs: dict[str, WorkerCache] = {}


StatePartition = tuple[str, str, int]
"""Component, state and partition."""


class WorkerCache:
    """What one run caches in one process: tasks by component, level, partition; states by component, partition."""

    def __init__(self) -> None:
        self.tasks: dict[tuple[str, int, int], LevelTask] = {}
        self.states: dict[StatePartition, tuple[Any, tuple[int, int]]] = {}
        self.metrics: dict[StatePartition, IMetricsContext] = {}
        self.current: dict[str, CurrentBatch] = {}
        self._kept: dict[Any, Any] = {}

    def keep(self, kind: Callable[[], T]) -> T:
        """Return what the run keeps once in this process for the watches of its tasks."""
        if kind not in self._kept:
            self._kept[kind] = kind()
        return self._kept[kind]

    def state(self, program: Program, node: ProcessorNode, index: int, count: int, batch: BatchInfo) -> Any:
        """Return the partition of a state. If other processes may serve it too, it is made anew for an attempt, unless
        this process saw the previous attempt and also runs the update, in the same level.

        Each component has its own: one that only queries a state has no generation for it, and runs in its own thread.
        """
        assert node.state is not None
        current = self.current.setdefault(program.component, CurrentBatch())
        current.transaction, current.shared = TransactionAttempt(batch.txid, batch.attempt), batch.shared
        current.time = batch.time
        key = _key(program, node.state, index)
        now = (batch.txid, batch.attempt)
        state, last = self.states.get(key, (None, None))
        seen = node.state.name in program.routes or is_current(node.state.factory)
        here = RunContext.of(program.conf).home is None and seen
        alone = here or node.state.static or node.state.in_object
        fresh = last == now or (last == batch.previous and program.updates_beside(node))
        if state is None or not (alone or fresh):
            with phase("state made", node.state.name):
                if state is not None:
                    close(state)
                metrics = self.metrics[key] = IMetricsContext()
                conf = self._conf(program, node.state.name, batch)
                state = node.state.factory.makeState(conf, metrics, index, count)
        self.states[key] = (state, now)
        return state

    def metrics_of(self, program: Program, node: ProcessorNode, index: int) -> IMetricsContext | None:
        """Return the metrics of a partition of the node's state; None if this process has not made it."""
        return None if node.state is None else self.metrics.get(_key(program, node.state, index))

    def _conf(self, program: Program, name: str, batch: BatchInfo) -> dict:
        return with_context(
            program.conf,
            state=name,
            lineage=batch.lineage,
            generation=batch.generations.get(name),
            way=program.routes.get(name, ""),
            run=batch.run,
            running=self.current[program.component],
        )

    def close(self) -> None:
        """Close everything at the end of the run, which an error does not change: it is logged."""
        states = [state for state, _ in self.states.values()]
        try:
            close_all(partial(close, each) for each in [*self._kept.values(), *self.tasks.values(), *states])
        except BaseException as error:
            log.warning("an operation failed in cleanup: %s", error)


def _key(program: Program, state: StateUse, index: int) -> StatePartition:
    """Return whose partition it is; one object serves all components if the data is in it."""
    return "" if state.in_object else program.component, state.id, index


def task_for(program: Program, level: int, partition: int, batch: BatchInfo) -> LevelTask:
    """Return the task of this partition. Reuses the one from earlier batches of the run, if any."""
    memory = _runs.setdefault(batch.run, WorkerCache())
    key = (program.component, level, partition)
    if key not in memory.tasks:
        memory.tasks[key] = LevelTask(memory, program, level, partition)
    return memory.tasks[key]


def run_level(
    program: Program, level: int, partition: int, batch: BatchInfo, rows: Iterable[tuple[int, Any]]
) -> Iterator[Row]:
    """Run one partition of one level of one attempt: executes, then commits unless there was a failure."""
    task = task_for(program, level, partition, batch)
    yield from task.execute(batch, rows)
    start_commits([task], program.conf)
    yield from task.commit()


def end_run(run: str) -> None:
    """End a run in this process: cleans up the operations, closes states and emitters."""
    memory = _runs.pop(run, None)
    if memory is not None:
        memory.close()


def close(thing: Any) -> None:
    """Close the object, if it has ``close``."""
    if isinstance(thing, Closes):
        thing.close()
