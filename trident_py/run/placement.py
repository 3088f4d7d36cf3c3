"""Small batches in the driver process: which components may have them, which batch is over sooner there than as a job,
and when a batch is too large after all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..canonical import WORKERS_SEED
from ..config import Config
from ..errors import FailedException
from ..guarantees.table import trusted
from ..guarantees.tracing import by_hash_seed, operations_of
from ..needs import needs_of
from ..plan import Plan, ProcessorNode, SpoutNode
from ..spouts.sparkspout import SparkSpout

MAX_TUPLES = 100_000
MAX_MILLIS = 300
MAX_BYTES = 64 << 20
DECAY = 0.95  # of a duration, with each batch that runs on the other side for it


class NeedsExecutors(FailedException):
    """A batch that ran in the driver process and must run on executors: as its next attempt, which counts as no failure
    of the batch."""


def max_tuples(conf: Mapping[str, Any], default: int) -> int:
    """The tuples that a batch may have to run in the driver process; 0: none does."""
    given = conf.get(Config.TOPOLOGY_INLINE_MAX_TUPLES)
    return default if given is None else int(given)


def max_seconds(conf: Mapping[str, Any]) -> float:
    """How long a batch is expected to take at most if it runs in the driver process."""
    given = conf.get(Config.TOPOLOGY_INLINE_MAX_MILLIS)
    return float(MAX_MILLIS if given is None else given) / 1000


def needs_executors(plan: Plan, conf: Mapping[str, Any] | None = None) -> str:
    """Why the batches of a component never run in the driver process; "" if they may.

    Called when a topology is explained, without ``conf``, or submitted. With it, also looks at the process: a result
    that depends on the hash seed must be that of the workers.
    """
    for node in plan.nodes:
        if isinstance(node, SpoutNode) and isinstance(node.spout, SparkSpout):
            return f"Spark reads spout {node.spout_id!r}"
        for thing in _parts(node):
            if reason := needs_of(thing).executors:
                return reason
    if conf is not None and os.environ.get("PYTHONHASHSEED") != WORKERS_SEED:
        return by_hash_seed(plan, trusted(conf))
    return ""


def _parts(node: Any) -> list[Any]:
    """What of a node may say that it needs executors: spout, state factory, operations."""
    if isinstance(node, SpoutNode):
        return [node.spout]
    state = [node.state.factory] if isinstance(node, ProcessorNode) and node.state is not None else []
    return [*state, *operations_of(node)]


class Durations:
    """How long batches have taken, in the driver and as jobs. The first on either side is not counted: it makes
    connections and imports."""

    def __init__(self) -> None:
        self._first = {True: True, False: True}
        self._pace = 0.0  # seconds for a tuple in the driver
        self._job = 0.0  # seconds of the last job

    def saw(self, here: bool, tuples: int, seconds: float) -> None:
        """Called after each batch: where it ran, how many tuples it had, and how long it took."""
        if self._first[here]:
            self._first[here] = False
        elif not here:
            self._job = seconds
        elif tuples:
            self._pace = seconds / tuples

    def prefer_driver(self, tuples: int, most: float) -> bool:
        """Whether a batch of so many tuples is expected to take at most so many seconds in the driver, or less than the
        last job. What has lost is taken for a little faster each time, so that it is tried again."""
        expected = self._pace * tuples
        if expected <= most:
            return True
        if expected < self._job:
            self._job *= DECAY
            return True
        self._pace *= DECAY
        return False
