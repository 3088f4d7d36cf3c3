"""A driver process of its own that is killed in the middle of a start: python -m faults.starts

Waits for a line of JSON on stdin (an `Order`) and starts a topology on Spark for each of `WAYS`, one after the other.
Each is held before the named step; when all of them stand there, the process and its Java process get SIGKILL.
Without a step they run to their end, and the steps that they have taken are told.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trident_py import SparkCluster
from trident_py.checkpoints.append_log import AppendLogStore
from trident_py.engine.store_position import ACCEPT, BASE
from trident_py.spark.component import SparkComponent
from trident_py.spark.internals import java_process
from trident_py.spark.session import OwnSession

from .stores import TABLES
from .worlds import TOPOLOGY, World

STATES = ("opaque", "batch")
STEPS = (
    "keep log", "open opaque", "open batched", "keep component", "keep given", "keep decided", "query", "batch",
    "keep log in a batch", "prepare opaque", "prepare batched", "keep readings", "tasks", "keep decided in a batch",
    "publish batched", "publish opaque", "over",
)  # fmt: skip
"""All that a start writes, in the checkpoint or in a store, from the question to the first batch's end, in order.

    open        older drivers are shut out of the state's store
    keep        a file of the checkpoint: what the start has settled, the decisions of a BatchState, the driver that has
                the checkpoint, the batch that begins, spouts' metadata
    query       Spark's query is started
    batch       Spark's foreachBatch call has come
    prepare     the state's store belongs to this checkpoint from now on
    tasks       the partitions of all states have committed
    publish     the state's batch is over
    over        the foreachBatch call returns
"""


@dataclass(frozen=True)
class Way:
    """A way on, and what it makes of a store: the last batch of the start, and all batches that are there then."""

    conf: dict[str, Any]
    last: int
    batches: tuple[int, ...]
    topology: str = TOPOLOGY


def tokens(sign: str, before: str = "") -> list[str]:
    return [f"{before}{TABLES[state]}{sign}" for state in STATES]


WAYS = {
    "lost": Way({BASE: 2}, 3, (1, 2, 3)),
    "behind": Way({ACCEPT: tokens("@2:3")}, 4, (1, 2, 4)),
    "owned": Way({BASE: 2, "topology.owner.replace": tokens("", f"{TOPOLOGY}/")}, 3, (1, 2, 3), "new"),
}


@dataclass(frozen=True)
class Order:
    """``folder`` has a world for each way."""

    folder: str
    step: str = ""


class Trail:
    """What one start has come through. Called by threads of the driver."""

    def __init__(self, step: str) -> None:
        self.step, self.there = step, threading.Event()
        self.steps: list[str] = []

    def comes(self, step: str) -> None:
        if step == "keep decided" and "tasks" in self.steps:
            step = "keep decided in a batch"
        if step == "keep log" and "batch" in self.steps:
            step = "keep log in a batch"
        if step.startswith("keep readings/"):
            step = "keep readings"
        if step in self.steps:
            return  # a second batch, or a second partition of the spout
        self.steps.append(step)
        if step == self.step:
            self.there.set()
            threading.Event().wait()


TRAILS: dict[str, Trail] = {}


def watch() -> None:
    """Every write of the checkpoint, and what Spark is called for, goes through the path of its world."""
    put, start, batch, outcome = (
        AppendLogStore._append, SparkComponent._start, SparkComponent._run_micro_batch, SparkComponent._outcome,
    )  # fmt: skip

    def path_of(folder: Path) -> Trail:
        return next(path for way, path in TRAILS.items() if way in folder.parts)

    def putting(store: Any, path: str, txid: int, text: str | None, sync: bool) -> None:
        path_of(store._folder).comes(f"keep {path}")
        put(store, path, txid, text, sync)

    def starting(component: Any) -> Any:
        path_of(Path(component.checkpoint.batches.where)).comes("query")
        return start(component)

    def committing(component: Any, *arguments: Any) -> None:
        path_of(Path(component.checkpoint.batches.where)).comes("batch")
        batch(component, *arguments)
        path_of(Path(component.checkpoint.batches.where)).comes("over")

    def ended(component: Any, *arguments: Any) -> Any:
        made = outcome(component, *arguments)
        path_of(Path(component.checkpoint.batches.where)).comes("tasks")
        return made

    AppendLogStore._append = putting  # type: ignore[method-assign]
    SparkComponent._start = starting  # type: ignore[method-assign]
    SparkComponent._run_micro_batch = committing  # type: ignore[method-assign]
    SparkComponent._outcome = ended  # type: ignore[method-assign]


def world(folder: Path, way: str, cluster: Callable[[str], Any]) -> World:
    """The store and the checkpoint on which a way on is taken."""
    place = folder / way
    place.mkdir(parents=True, exist_ok=True)
    made = World(f"sqlite:///{place}/trident.sqlite", place, cluster, set())
    made.states = STATES
    return made


def tell(*words: Any) -> None:
    print(json.dumps(words), flush=True)


def run(own: OwnSession, order: Order) -> None:
    """In a thread for each way, so that those that are held do not hold the others."""
    for name, way in WAYS.items():
        path = TRAILS[name] = Trail(order.step)
        here = world(Path(order.folder), name, lambda checkpoints: SparkCluster(own.spark, checkpoints))
        weak = {state: _hook(path, TABLES[state]) for state in STATES}
        arguments = (way.last, way.conf, (), weak, way.topology)
        runs = threading.Thread(target=here.start, args=arguments, daemon=True)
        runs.start()
        if order.step:
            assert path.there.wait(100), path.steps
        else:
            runs.join(100)
            tell("steps", path.steps)
    if order.step:
        tell("there")
        java = java_process(own.spark).pid
        for process in (java, os.getpid()):
            os.kill(process, signal.SIGKILL)
    tell("done")


def _hook(path: Trail, state: str) -> Callable[[str], None]:
    def comes(call: str) -> None:
        if call in ("open", "prepare", "publish"):
            path.comes(f"{call} {state}")

    return comes


def main(settings: dict[str, str]) -> None:
    own = OwnSession({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"} | settings)
    watch()
    try:
        tell("ready", os.getpid())
        for line in sys.stdin:
            run(own, Order(**json.loads(line)))
    finally:
        own.stop()


if __name__ == "__main__":
    main(dict(argument.split("=", 1) for argument in sys.argv[1:]))
