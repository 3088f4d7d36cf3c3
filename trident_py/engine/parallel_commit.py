"""Commits partitions concurrently when a commit only waits for its store."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any, Protocol

from ..config import Config
from ..model.plan import Plan, ProcessorNode
from ..state import StateFactory, StateUpdater
from .lowering import TaskStage
from .processors.states import PartitionPersist

THREADS = 8


def can_commit_concurrently(plan: Plan, stage: TaskStage) -> bool:
    """Return whether the stage ends with the update of a state that only waits for its store, and that no other node
    reads or uses. The updater then calls no code of the topology's author."""
    nodes = [plan.by_id[node_id] for node_id in stage.nodes]
    using = [node for node in nodes if isinstance(node, ProcessorNode) and node.state is not None]
    last = nodes[-1]
    if using != [last] or not isinstance(last, ProcessorNode) or not isinstance(last.spec, PartitionPersist):
        return False
    assert last.state is not None
    factory, updater = last.state.factory, last.spec.updater
    waits = isinstance(factory, StateFactory) and factory.commits_apart
    alone = last.state.id not in {
        node.state.id for node in plan.nodes if isinstance(node, ProcessorNode) and node.state and node is not last
    }
    own = isinstance(updater, StateUpdater) and updater.calls_only_states
    return waits and own and alone and not plan.children(last)


class CommitTask(Protocol):
    """A task in its commit phase."""

    def concurrent_stages(self) -> list[TaskStage]:
        """Return the stages that may commit beside others."""

    def begin_commit(self, stage: TaskStage, pool: Executor) -> None: ...


def start_commits(tasks: Sequence[CommitTask], conf: Mapping[str, Any]) -> None:
    """Begin the commits that may run beside others, but for the first: the calling thread does that one itself."""
    apart = [(task, stage) for task in tasks for stage in task.concurrent_stages()]
    threads = (conf.get(Config.TOPOLOGY_COMMIT_THREADS) or THREADS) if len(apart) > 1 else 1
    for task, stage in apart[1:] if threads > 1 else ():
        task.begin_commit(stage, _pool(threads - 1))


def await_commit(begun: Future[None]) -> None:
    """Wait for the commit to end, even if interrupted, and raise its error: the
    next attempt uses the same state."""
    try:
        begun.result()
    finally:
        wait([begun])


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "trident-commit")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of its parent's threads
