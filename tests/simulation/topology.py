"""The topology of a cell, and a driver that runs it with the product's own loop."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache, partial
from typing import Any

from states.rows import RowUpdater
from trident_py import TridentTopology
from trident_py.checkpoints.batch_log import BatchLog
from trident_py.engine import store_position
from trident_py.engine.component import ComponentRun
from trident_py.engine.program import AttemptOutcome, BatchInfo, Program, compile_plan, descriptor_rows
from trident_py.engine.task import run_attempt
from trident_py.engine.worker_cache import end_run, task_for
from trident_py.model.context import with_context
from trident_py.report.progress import RunningTopology
from trident_py.state import BaseStateUpdater, ValueUpdater

from . import specification
from .checkpoint import SimulatedCheckpoint
from .specification import Cell
from .spouts import STREAM, DescribedSpout, Here, PartitionedSpout
from .stores import SimulatedMap, SimulatedState
from .world import Bounds, Choose, Driver, World

NAME = "t"
STATE = "s"


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


class _AddUpdater(BaseStateUpdater):
    """Adds the weights of a word. The tuples of a partition have one word, so no exchange must bring them together."""

    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        state.multiUpdate([[tuples[0][0]]], [_Add(sum(each[1] for each in tuples))])


@cache
def program_of(cell: Cell) -> Program:
    topology = TridentTopology()
    spout = PartitionedSpout() if cell.spout == "partitioned" else DescribedSpout(cell.spout)
    stream = topology.newStream(STREAM, spout).parallelismHint(2)
    factory = SimulatedState(cell.kind, cell.recording)
    if cell.kind in SimulatedMap.KINDS:
        stream.partitionPersist(factory, ["word", "weight"], _AddUpdater())
    else:
        stream.partitionPersist(factory, ["part", "at"], RowUpdater())
    conf = with_context({"topology.clock": clock}, topology=NAME, home=None)
    return compile_plan(topology.build().plan, conf)[0]


def clock() -> int:
    options = [("jump", 0), ("jump", -3_600_000), ("jump", 3_600_000)]
    Here.world.now += 1 + Here.world.pick("clock", "time", options)[1]
    return Here.world.now


def drive(cell: Cell, world: World, driver: Driver) -> None:
    """Run a driver until the input is done."""
    run = f"{NAME}-{driver.number}"
    program = program_of(cell)
    program = replace(program, conf=with_context(program.conf, run=run))
    running = RunningTopology(NAME, [program.component])
    running.stopping = _Stopping()  # type: ignore[assignment]
    driver.checkpoint = SimulatedCheckpoint(world)
    log = BatchLog(driver.checkpoint, "checkpoint", NAME, lambda: {"order": "fixed", "seed": "0"})
    log.driver = {"host": "simulated", "pid": driver.number, "id": str(driver.number)}
    try:
        batches = ComponentRun(program, program.spouts, log, running, run)
        batches.open()
        while batches.await_next():
            batches.run_next(partial(execute, program))
        batches.close()
    finally:
        end_run(run)


def execute(program: Program, batch: BatchInfo, descriptors: list[Any]) -> AttemptOutcome:
    return run_attempt(
        program,
        lambda level, partition: task_for(program, level, partition, batch),
        batch,
        descriptor_rows(descriptors),
    )


class _Names:
    """Gives each checkpoint of a schedule the same lineage each time."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)

    def uuid4(self) -> Any:
        return type("Name", (), {"hex": f"lineage-{next(self.numbers)}"})


def run_schedule(cell: Cell, choose: Choose, bounds: Bounds) -> World:
    """Run one schedule to its end. ``violation`` of what it returns says whether a rule was broken."""
    store_position.uuid = _Names()  # type: ignore[assignment]
    world = World(partial(drive, cell), choose, partial(specification.judge, cell), bounds)
    Here.world = world
    world.run()
    return world
