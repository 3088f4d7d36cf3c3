"""The topology of a cell, and a driver that runs it with the product's own loop."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

from states.rows import RowUpdater
from trident_py import TridentTopology
from trident_py.checkpoints import batch_log
from trident_py.checkpoints.batch_log import BatchLog
from trident_py.engine import program as failures
from trident_py.engine import store_position, worker_cache
from trident_py.engine.component import ComponentRun
from trident_py.engine.program import AttemptOutcome, BatchInfo, Program, Row, compile_plan, descriptor_rows
from trident_py.engine.task import run_attempt
from trident_py.engine.worker_cache import end_run, task_for
from trident_py.errors import FailedException
from trident_py.extras.determinism.held_values import HeldValues
from trident_py.model.chunks import Chunk
from trident_py.model.context import with_context
from trident_py.model.user_traceback import Blame
from trident_py.operations import BaseFilter
from trident_py.report.progress import RunningTopology
from trident_py.state import BaseQueryFunction, BaseStateUpdater, ValueUpdater
from trident_py.tuples import Fields
from trident_py.windowing import MakesWindows, state

from . import knowledge, specification
from .beginnings import BEGINNINGS, Past
from .checkpoint import SimulatedCheckpoint
from .rewinds import take_back, waiting_for_nothing
from .specification import Cell
from .spouts import AGAIN, FIELDS, POSITIONS, STREAM, USUAL, WORDS, DescribedSpout, Here, PartitionedSpout, tuples
from .stores import SimulatedMap, SimulatedState, Sum
from .windows import BY_TIME, CONFIGS, PACE, RESULTS, Tokens
from .world import Beginning, Bounds, Choose, Driver, Violation, World

NAME = "t"


class _Stopping:
    """An event that nobody sets, and that waits for nothing."""

    def is_set(self) -> bool:
        return False

    def wait(self, seconds: float) -> bool:
        return False


class _Add(ValueUpdater):
    def __init__(self, weight: int) -> None:
        self.weight = weight

    def update(self, stored: Any) -> Any:
        return (stored or 0) + self.weight


class _AddInPlace(_Add):
    def update(self, stored: Any) -> Any:
        value = Sum() if stored is None else stored
        value.total += self.weight
        return value


class _AddUpdater(BaseStateUpdater):
    """Adds the weights of a word. The tuples of a partition have one word, so no exchange must bring them together."""

    def __init__(self, add: type[_Add]) -> None:
        self.add = add

    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        word, weight = tuples[0][0], sum(each[1] for each in tuples)
        for key in ([word], [word, AGAIN]):
            for new in state.multiUpdate([key], [self.add(weight)]):
                if isinstance(new, Sum):
                    new.total = 0  # it is the updater's


class _Ask(BaseQueryFunction):
    """Asks for a word. The answer is what is there now."""

    def batchRetrieve(self, state: Any, tuples: Any) -> list[Any]:
        told = Here.world.look("read", tuple(state.multiGet(tuples)))
        there = [specification.value_of(state.transaction.place.content, *each) for each in tuples]
        if told != tuple(there):
            raise Violation(f"a query is told {told}, and {there} is there")
        return list(told)

    def execute(self, tuple: Any, result: Any, collector: Any) -> None: ...


class _MayFail(BaseFilter):
    """An operation that asks for a replay when it has processed tuples already."""

    def isKeep(self, tuple: Any) -> bool:
        if Here.world.pick("operation", "a tuple", [("fail", 0), ("fail", 1)])[1]:
            raise FailedException("the operation has failed")
        return True


@dataclass(frozen=True)
class _Windows(MakesWindows):
    factory: SimulatedState

    def windowState(self, config: Any, name: str) -> SimulatedState:
        return self.factory


@cache
def programs_of(cell: Cell) -> list[Program]:
    """Return the component of the cell, and one that only queries its states, if the cell has it."""
    topology = TridentTopology()
    spout = PartitionedSpout() if cell.spout == "partitioned" else DescribedSpout(cell.spout)
    stream = topology.newStream(STREAM, spout).each(["at"], _MayFail()).parallelismHint(2)
    for number, kind in enumerate(cell.kinds):
        factory = SimulatedState(kind, cell.recording, number)
        if kind in CONFIGS:
            stream = stream.window(CONFIGS[kind], _Windows(factory), ["part", "at"], RESULTS[kind](), FIELDS)
        elif kind in SimulatedMap.KINDS:
            add = _AddUpdater(_AddInPlace if kind.endswith("in place") else _Add)
            updated = stream.partitionPersist(factory, ["word", "weight"], add)
            if cell.queried:
                asking = topology.newStream("asking", DescribedSpout("transactional")).parallelismHint(2)
                asking.stateQuery(updated, ["word"], _Ask(), ["told"])
        else:
            stream.partitionPersist(factory, ["part", "at"], RowUpdater())
    pace = PACE if BY_TIME in cell.kinds else 0
    conf = with_context({"topology.clock": partial(clock, pace)}, topology=NAME, home=None)
    return compile_plan(topology.build().plan, conf)


def clock(pace: int) -> int:
    options = [("jump", 0), ("jump", -3_600_000), ("jump", 3_600_000)]
    Here.world.now += pace + Here.world.pick("clock", "time", options)[1]
    return Here.world.now


def drive(cell: Cell, name: str, world: World, driver: Driver) -> None:
    """Run a driver until the input is done. ``name``: of the checkpoint's copy, part of the run's token."""
    run = f"{NAME}-{name}{driver.number}"
    program, *asking = (
        replace(each, conf=with_context({**each.conf, **world.beginning.conf}, run=run)) for each in programs_of(cell)
    )
    running = RunningTopology(NAME, [program.component])
    running.stopping = _Stopping()  # type: ignore[assignment]
    take_back(world, program, run, partial(_open_log, world, driver))
    try:
        batches = ComponentRun(program, program.spouts, _open_log(world, driver), running, run)
        batches.open()
        while batches.await_next():
            know(cell, world, driver, batches)
            batches.run_next(partial(execute, program, asking, partial(know, cell, world, driver, batches)))
        batches.close()
    finally:
        end_run(run)


def _open_log(world: World, driver: Driver) -> BatchLog:
    driver.checkpoint = SimulatedCheckpoint(world)
    log = BatchLog(driver.checkpoint, "checkpoint", NAME, lambda: {"order": "fixed", "seed": "0"})
    log.driver = {"host": "simulated", "pid": driver.number, "id": str(driver.number)}
    return log


def know(cell: Cell, world: World, driver: Driver, batches: ComponentRun, *held: Any) -> None:
    """Between two batches, and when tasks begin, what led the driver there no longer matters, but what it knows."""
    if world.bounds.reduced:
        tasks = worker_cache._runs.get(batches.loop.run_id)
        driver.history = knowledge.digest((cell, driver.history), batches, tasks, *held)


def execute(
    program: Program, asking: list[Program], know: Callable[..., None], batch: BatchInfo, descriptors: list[Any]
) -> AttemptOutcome:
    """Run an attempt. Before it, the components that only ask have one of their own."""
    know(batch, descriptors)
    for each in asking:
        rows = [(part, 0, Chunk.of_rows(Fields(*FIELDS), tuples(part, 0, 1))) for part in range(len(WORDS))]
        failures = _run_tasks(each, replace(batch, generations={}), rows).failures
        if failures:
            raise Here.world.broken(f"a component that only asks has failed: {failures[0].error!r}")
    return _run_tasks(program, batch, descriptor_rows(descriptors))


def _run_tasks(program: Program, batch: BatchInfo, rows: Iterable[Row]) -> AttemptOutcome:
    return run_attempt(program, lambda level, partition: task_for(program, level, partition, batch), batch, rows)


class _Names:
    """Gives each checkpoint of a schedule the same lineage each time."""

    def __init__(self, prefix: str) -> None:
        self.prefix, self.numbers = prefix, itertools.count(1)

    def uuid4(self) -> Any:
        return type("Name", (), {"hex": f"{self.prefix}-{next(self.numbers)}"})


def run_schedule(cell: Cell, choose: Choose, bounds: Bounds) -> World:
    """Run one schedule to its end. ``violation`` of what it returns says whether a rule was broken."""
    beginning = BEGINNINGS[cell.beginning](partial(run_past, cell)) if cell.beginning else Beginning()
    return _run(cell, "", choose, partial(specification.judge, cell), bounds, beginning)


def run_past(cell: Cell, past: Past) -> World:
    """Run what was before the schedule. Nothing happens to it. ``past``: see `beginnings`."""
    key = cell, past
    if key not in _PASTS:
        before = [run_past(cell, each) for each in past.after]
        stores = tuple(store.content for store in before[0].stores) if before else ({}, {})
        log = before[0].log.content if before and past.continues else {}
        Here.usual, Here.shift, Here.positions = past.size, 8 * past.foreign, past.until
        try:
            beginning = Beginning(stores, log, past.settings)
            _PASTS[key] = _run(cell, past.name, lambda *_: 0, lambda *_: None, Bounds(faults=0), beginning)
        finally:
            Here.usual, Here.shift, Here.positions = USUAL, 0, POSITIONS
    return _PASTS[key]


_PASTS: dict[Any, World] = {}


def _run(cell: Cell, name: str, choose: Choose, judge: Any, bounds: Bounds, beginning: Beginning) -> World:
    world = World(partial(drive, cell, name), choose, judge, bounds, beginning)
    Here.world = world
    with _simulated(name or "lineage"), waiting_for_nothing(_Stopping):
        return world.run()


@contextmanager
def _simulated(lineage: str) -> Iterator[None]:
    """Names of lineages are given in order, those of blocks by what a driver knows; a batch ends at no time. What no
    fault changes is left out: the lines that an error came from, what operations hold, but for the first time."""
    before = store_position.uuid, state.secrets, failures.blame, HeldValues.digests
    batch_log.time = SimpleNamespace(time=int)  # type: ignore[assignment]
    store_position.uuid, state.secrets = _Names(lineage), Tokens  # type: ignore[assignment]
    failures.blame, HeldValues.digests = _NO_LINES, _held  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        batch_log.time = time
        store_position.uuid, state.secrets, failures.blame, HeldValues.digests = before  # type: ignore[method-assign]


_NO_LINES, _HELD, _look_up = (lambda *_: Blame()), {}, HeldValues.digests


def _held(held: HeldValues) -> Any:
    return _HELD.get(id(held.plan)) or _HELD.setdefault(id(held.plan), _look_up(held))
