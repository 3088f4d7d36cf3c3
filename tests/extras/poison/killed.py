"""A driver process that kills itself at a named step of a batch with poison tuples.

    dry        an attempt that commits nothing has passed or failed
    search     the search for tuples is about to begin
    probe      the n-th dry attempt of the search is over
    found      the tuples are known, the checkpoint does not know them
    fixed      the checkpoint knows them, nothing is committed
    finish     before the n-th node of a stage that commits finishes: a state, or what feeds one
    committed  every partition has committed, nothing is published
    published  the states were told
    saved      the checkpoint has the batch
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from trident_py import LocalCluster, TopologyError
from trident_py.checkpoints.batch_log import BatchLog
from trident_py.engine.batch_loop import BatchLoop
from trident_py.engine.task import LevelTask
from trident_py.engine.two_phase import Publisher
from trident_py.extras.poison.bisection import Bisection, Poison

from .support import CONF, Row, build

TESTS = Path(__file__).parents[2]
_CONTEXT = multiprocessing.get_context("forkserver")
BATCHES = [
    [[Row("r1", "a", 1), Row("r2", "b", 2)], [Row("r3", "c", 4)]],
    [
        [Row("r4", "a", 8), Row("r5", "b", 16, 1, "first"), Row("r6", "c", 32)],
        [Row("r7", "d", 64, 1, "second"), Row("r8", "a", 128), Row("r9", "b", 256, 1, "side")],
    ],
    [[Row("r10", "a", 512)], [Row("r11", "d", 1024, 1, "second"), Row("r12", "d", 2048)]],
]


class Step(NamedTuple):
    name: str
    number: int = 1
    txid: int = 2


def die(step: Step) -> None:
    """Makes this process kill itself at the step."""
    numbers = itertools.count(1)

    def here(name: str, txid: int) -> None:
        if (name, txid) == (step.name, step.txid) and next(numbers) == step.number:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrap(owner: Any, name: str, before: str, after: str, txid_of: Callable[..., int]) -> None:
        inner = getattr(owner, name)

        def wrapped(self: Any, *args: Any) -> Any:
            here(before, txid_of(self, *args))
            result = inner(self, *args)
            here(after, txid_of(self, *args))
            return result

        setattr(owner, name, wrapped)

    wrap(BatchLoop, "dry_attempt", "", "dry", lambda self, work, *more: work.txid)
    wrap(Bisection, "_probe", "", "probe", lambda self, work, *more: work.txid)
    wrap(Poison, "search", "search", "found", lambda self, *more: self.txid)
    wrap(Poison, "fix", "", "fixed", lambda self, excluded: self.txid)
    wrap(Publisher, "publish", "committed", "published", lambda self, batch, *more: batch.txid)
    wrap(BatchLog, "end", "", "saved", lambda self, txid, metadata: txid)
    guard = LevelTask._guard

    def guarded(self: LevelTask, node: Any, action: Any) -> bool:
        committing = not self.batch.dry and any(stage.commits and node.id in stage.nodes for stage in self.stages)
        if committing and getattr(action, "__name__", "") == "finish":
            here("finish", self.batch.txid)
        return guard(self, node, action)

    LevelTask._guard = guarded  # type: ignore[method-assign]


def drive(kind: str, folder: Path, step: Step | None, conf: dict, told: Any) -> None:
    """A driver process, from its start to its end or its death."""
    if step is not None:
        die(step)
    built = build(kind, folder, BATCHES)
    with LocalCluster(str(folder / "checkpoints")) as cluster:
        running = cluster.submitTopology("t", conf, built.topology)
        try:
            running.awaitTermination()
            told.send("done")
        except TopologyError as error:
            told.send(str(error))


def start(kind: str, folder: Path, step: Step | None = None, conf: dict | None = None) -> str:
    """Runs a driver; returns what it told at its end, "" if it was killed."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")])
    _CONTEXT.set_forkserver_preload([__name__])
    ours, theirs = _CONTEXT.Pipe()
    driver = _CONTEXT.Process(target=drive, args=(kind, folder, step, CONF if conf is None else conf, theirs))
    driver.start()
    theirs.close()
    driver.join(120)
    try:
        told = ours.recv()
    except EOFError:
        told = ""
    assert driver.exitcode == (0 if told else -signal.SIGKILL)
    return str(told)
