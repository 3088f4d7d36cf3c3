"""Execution in the driver or as a Spark job: which components may or must run where, which is faster for a batch, and
when a batch turns out too large for the driver."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..config import Config
from ..errors import DefinitionError, FailedException
from ..model.canonical import WORKERS_SEED
from ..model.plan import Plan, ProcessorNode, SpoutNode, StateUse, operations_of
from ..model.requirements import needs_of
from ..operations.base import short_name
from ..operations.determinism import follows_hash_seed, is_trusted
from ..spouts.sparkspout import SparkSpout

MAX_MILLIS = 300
MAX_BYTES = 256 << 20  # of the tuples and exchanges of a batch in the driver
WEIGHT = 0.95  # of older batches, with each that is seen
DOUBT = 0.98  # of an expected duration, with each batch that runs on the other side for it
LEAST_DOUBT = 0.6  # what is far slower is never tried again
JOB_SECONDS = 0.25  # of a job without work, as long as none was seen
EXCHANGED = 0.2  # the part of the driver's time that a job adds for rows between processes, as long as none was seen


class NeedsExecutors(FailedException):
    """A batch that ran in the driver process and must run on executors: as its next attempt, which counts as no failure
    of the batch."""


def max_tuples(conf: Mapping[str, Any], default: int | None) -> int | None:
    """Return the tuples that a batch may have to run in the driver process; 0: none does; None: any number."""
    given = conf.get(Config.TOPOLOGY_INLINE_MAX_TUPLES)
    return default if given is None else int(given)


def max_seconds(conf: Mapping[str, Any]) -> float:
    """Return how long a batch is expected to take at most if it runs in the driver process."""
    given = conf.get(Config.TOPOLOGY_INLINE_MAX_MILLIS)
    return float(MAX_MILLIS if given is None else given) / 1000


def needs_executors(plan: Plan, conf: Mapping[str, Any] | None = None) -> str:
    """Return why the batches of a component never run in the driver process; "" if they may.

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
        return by_hash_seed(plan, conf)
    return ""


def by_hash_seed(plan: Plan, conf: Mapping[str, Any]) -> str:
    """Return the first operation of a plan whose output depends on the hash seed, and why; "" if there is none."""
    operations = [operation for node in plan.nodes for operation in operations_of(node)]
    reasons = ((short_name(operation), follows_hash_seed(operation, is_trusted(conf))) for operation in operations)
    return next((f"{name} {why}" for name, why in reasons if why), "")


def needs_driver(plan: Plan) -> str:
    """Return why every batch of a component runs in the driver process; "" if it need not."""
    return next((f"{_unsaid(state)}, and one object has to serve all batches" for state in _in_objects(plan)), "")


def check_execution_mode(plan: Plan, conf: Mapping[str, Any]) -> None:
    """Called at submit to Spark. Raises DefinitionError if a state that counts as kept in its object cannot have one
    object for all batches."""
    users: dict[str, Plan] = {}
    for component in plan.components():
        reason, step = needs_executors(component, conf), "or use a state that keeps it in a store (docs/states.md)"
        if reason and not needs_executors(component):
            step = f"or start the driver with PYTHONHASHSEED={WORKERS_SEED}"
        for state in _in_objects(component):
            if users.setdefault(state.id, component) is not component:
                reason = "another stream, whose batches run apart, asks it too"
            if reason:
                raise DefinitionError(
                    f"{_unsaid(state)}, so on Spark one object in the driver process has to serve all batches; but "
                    f"{reason}. Say in the factory where the data is (docs/porting.md#where-the-data-is), {step}"
                )


def _in_objects(plan: Plan) -> list[StateUse]:
    """Return the states of a component whose factories do not say where the data is, each once."""
    nodes = [node for node in plan.nodes if isinstance(node, ProcessorNode)]
    states = {node.state.id: node.state for node in nodes if node.state is not None and node.state.in_object}
    return list(states.values())


def _unsaid(state: StateUse) -> str:
    return f"the factory of state {state.name!r} does not say where the data is (location)"


def _parts(node: Any) -> list[Any]:
    """Return what of a node may say that it needs executors: spout, state factory, operations."""
    if isinstance(node, SpoutNode):
        return [node.spout]
    state = [node.state.factory] if isinstance(node, ProcessorNode) and node.state is not None else []
    return [*state, *operations_of(node)]


class _Line:
    """The seconds of a batch by its tuples: a line through those seen, of which older ones weigh less. The first is not
    counted: it makes connections and imports."""

    def __init__(self) -> None:
        self._sums = [0.0] * 5  # of 1, tuples, seconds, tuples squared, tuples times seconds
        self._first = True
        self.doubt = 1.0

    def add(self, n: int, seconds: float) -> None:
        if self._first:
            self._first = False
            return
        seen = (1, n, seconds, n * n, n * seconds)
        self._sums = [WEIGHT * old + new for old, new in zip(self._sums, seen, strict=True)]
        self.doubt = 1.0

    @property
    def is_known(self) -> bool:
        """Whether a batch was counted."""
        return self._sums[0] > 0

    def at(self, n: int) -> float:
        """Return what a batch of so many tuples is expected to take; 0 if nothing is known. Batches of one size say
        nothing of others: then it is theirs."""
        if not self.is_known:
            return 0.0
        tuples, seconds, squares, products = (each / self._sums[0] for each in self._sums[1:])
        spread = squares - tuples * tuples
        slope = max(0.0, (products - tuples * seconds) / spread) if spread > 1e-6 * squares else 0.0
        return max(0.0, seconds + slope * (n - tuples)) * self.doubt


class Durations:
    """How long batches have taken, in the driver and as jobs. ``slots``: the tasks of a job that run at a time.

    No job is run only to see how long one takes: until then it is expected to share the driver's time among its tasks.
    """

    def __init__(self, slots: int = 2) -> None:
        self._driver, self._job = _Line(), _Line()
        self._share = 1 / max(1, slots) + EXCHANGED

    def saw(self, here: bool, tuples: int, seconds: float) -> None:
        """Called after each batch: where it ran, how many tuples it had, and how long it took."""
        (self._driver if here else self._job).add(tuples, seconds)

    def prefer_driver(self, tuples: int, most: float) -> bool:
        """Return whether a batch of so many tuples is expected to take at most so many seconds in the driver, or less
        than as a job. What has lost is taken for a little faster each time, so that it is tried again."""
        expected = self._driver.at(tuples)
        if expected <= most:
            return True
        if not self._job.is_known:
            return expected < JOB_SECONDS + self._share * expected
        prefer = expected < self._job.at(tuples)
        loser = self._job if prefer else self._driver
        loser.doubt = max(LEAST_DOUBT, loser.doubt * DOUBT)
        return prefer
