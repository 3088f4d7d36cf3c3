"""A driver of a state: runs batches as the engine does, also in a process that kills itself where a plan says.

``checkpoint`` stands for Spark's: the last finished txid; its name is the lineage.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

from faults.forks import fork

from states.sql.ledger import SqlLedgerStore
from trident_py.engine.recovery import agree
from trident_py.engine.store_position import CheckpointState
from trident_py.errors import FailedException
from trident_py.model.retry import again_for
from trident_py.operations import TridentOperationContext
from trident_py.state import SILENT, persist
from trident_py.tuples import TransactionAttempt, TridentTuple

POINTS = [
    "before the batch", "after prepare", "before beginCommit", "after beginCommit", "after updateState",
    "after one of two", "after all commits", "inside publish", "after publish",
]  # fmt: skip


IN_LEDGER = (SqlLedgerStore, "change")


@dataclass
class Plan:
    factory: Any
    updater: Any
    fields: Any
    batches: list[list[tuple]]
    checkpoint: Path
    point: str = ""
    at: int = 0
    partitions: int = 2
    inside: tuple[type, str] = IN_LEDGER


@dataclass(frozen=True)
class Tasks:
    """What a driver's tasks are told."""

    factory: Any
    updater: Any
    conf: dict

    def run(
        self, rows: list, txid: int, of: int = 2, attempt: int = 0, only: Any = None, point: str = ""
    ) -> list[Any]:
        """The commits of one attempt: the receipts."""
        conf = self.conf | {"trident.context": in_attempt(txid, attempt)}
        return run_tasks(self.factory, self.updater, rows, txid, of, conf, only, point)


class Driver:
    """The participant of one driver, and the tasks that it runs, here and now."""

    def __init__(
        self, factory: Any, updater: Any, lineage: str = "first", standing: CheckpointState | None = None, **more: Any
    ) -> None:
        self.factory = factory
        self.updater = updater
        self.participant = factory.participant()
        self.conf = {"topology.name": "contract", "trident.state.name": "s", "trident.lineage": lineage, **more}
        self.conf = opened(self.participant, self.conf, standing)

    @property
    def generation(self) -> int:
        return self.conf["trident.generation"]

    def batch(
        self, rows: list, txid: int, of: int = 2, attempt: int = 0, point: str = "",
        inside: tuple[type, str] = IN_LEDGER,
    ) -> None:  # fmt: skip
        """One whole attempt."""
        receipts = self.run(rows, txid, of, attempt, point=point)
        with dying_in(*inside) if point == "inside publish" else _nothing():
            self.publish(txid, attempt, receipts)
        die_if(point == "after publish")

    def run(
        self, rows: list, txid: int, of: int = 2, attempt: int = 0, only: Any = None, point: str = ""
    ) -> list[Any]:
        """One attempt up to its commits: the receipts."""
        die_if(point == "before the batch")
        self.participant.prepare(txid, attempt, of)
        die_if(point == "after prepare")
        return self.tasks(rows, txid, of, attempt, only, point)

    def tasks(self, *given: Any, **more: Any) -> list[Any]:
        return Tasks(self.factory, self.updater, self.conf).run(*given, **more)

    def publish(self, txid: int, attempt: int, receipts: list[Any]) -> None:
        self.participant.publish(txid, attempt, [each for each in receipts if each is not None])


def opened(participant: Any, conf: dict, standing: CheckpointState | None = None) -> dict:
    """What its tasks are told, once the participant has been opened as a cluster does. Without a ``standing`` the
    checkpoint is a new one, or, if the store has its lineage, one that knows nothing of the store's last batch but that
    it has begun. Raises LineageError."""
    found = participant.remembered(conf)
    topology, lineage, state = conf["topology.name"], conf["trident.lineage"], conf["trident.state.name"]
    if standing is None:
        record = {"base": 0} if found is not None and found.lineage == lineage else None
        committed = 0 if found is None else max(0, min(found.least, found.highest - 1))
        standing = CheckpointState("checkpoint", topology, record, lineage, committed, begun=True, decided=True)
    agreed = agree(conf, standing, {state: found}, [state] if participant.decides else [])
    joined = agreed.joined.get(state)
    told = {**conf, "trident.txid": agreed.txid, "trident.forget": joined is not None and joined.forget}
    return {**conf, "trident.generation": participant.open(told)}


class Dying:
    """A state that kills this process around its own calls; everything else passes through."""

    def __init__(self, inner: Any, point: str) -> None:
        self.inner = inner
        self.point = point

    def beginCommit(self, txid: int | None) -> None:
        die_if(self.point == "before beginCommit")
        self.inner.beginCommit(txid)
        die_if(self.point == "after beginCommit")

    def commit(self, txid: int | None) -> Any:
        die_if(self.point == "after updateState")
        return self.inner.commit(txid)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def die_if(now: bool) -> None:
    if now:
        os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def dying_in(owner: type, name: str) -> Iterator[None]:
    """Kills this process at the end of a method: inside the transaction that called it, if one did."""
    method = getattr(owner, name)

    def last(*args: Any) -> None:
        method(*args)
        die_if(True)

    with mock.patch.object(owner, name, last):
        yield


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def in_attempt(txid: int, attempt: int) -> TridentOperationContext:
    context = TridentOperationContext(0, 1)
    context.transaction = TransactionAttempt(txid, attempt)
    return context


def partition_of(row: TridentTuple, of: int) -> int:
    return zlib.crc32(str(row[0]).encode()) % of


def run_tasks(
    factory: Any, updater: Any, rows: list, txid: int | None, of: int, conf: dict, only: Any = None, point: str = ""
) -> list[Any]:
    """The commits of a batch's partitions, one after the other: their receipts."""
    receipts = []
    for partition in range(of) if only is None else sorted(only):
        mine = [row for row in rows if partition_of(row, of) == partition]
        state = Dying(factory.makeState(conf, None, partition, of), point if partition == of - 1 else "")
        receipts.append(persist(state, txid, updater, mine, SILENT))  # type: ignore[arg-type]
        die_if(point == "after one of two" and partition == 0)
    die_if(point == "after all commits")
    return receipts


def main(plan: Plan) -> None:
    """A driver on the plan's checkpoint, from where it stands to the end. It waits for a store that is busy, as a start
    does."""
    driver = again_for(
        60, 0.5, lambda error: isinstance(error, FailedException),
        lambda: Driver(plan.factory, plan.updater, str(plan.checkpoint)),
    )  # fmt: skip
    done = int(plan.checkpoint.read_text()) if plan.checkpoint.exists() else 0
    for txid in range(done + 1, len(plan.batches) + 1):
        rows = [TridentTuple.of(plan.fields, row) for row in plan.batches[txid - 1]]
        driver.batch(rows, txid, plan.partitions, point=plan.point if txid == plan.at else "", inside=plan.inside)
        plan.checkpoint.write_text(str(txid))


def in_child(work: Callable[[], None]) -> int:
    """Runs the work in a process of its own; returns the signal that ended it, 0 if none. Errors are raised here."""
    child = Child(work)
    assert child.heard() is None, "the work says nothing"
    return child.ended()


class Child:
    """A process that is forked from a server without threads or connections: a fork of the test's own process would
    have the locks that its threads (librdkafka's, Arrow's) held just then. Its work travels by pickle. What the work
    says is heard here, and an error of it is raised here."""

    def __init__(self, work: Callable[..., None], *more: Any) -> None:
        self._said, theirs = multiprocessing.Pipe(duplex=False)
        self.process = fork(_work, work, more, theirs)
        self.process.start()
        theirs.close()

    def heard(self) -> Any:
        """The next thing it says; None if it has ended."""
        try:
            said = self._said.recv()
        except EOFError:
            return None
        assert not isinstance(said, _Error), said.text
        return said

    def ended(self) -> int:
        self._said.close()
        self.process.join()
        assert self.process.exitcode <= 0, f"the work ended with exit code {self.process.exitcode}"
        return -self.process.exitcode


@dataclass
class _Error:
    text: str


def _work(work: Callable[..., None], more: tuple, out: Connection) -> None:
    """All that a child does."""
    try:
        work(*more, *([out.send] if more else []))
    except BaseException:
        out.send(_Error(traceback.format_exc()))


class Worker:
    """A worker process: runs the tasks that it is told, one after the other; says their receipts."""

    def __init__(self, driver: Driver, fields: Any) -> None:
        told, self._told = multiprocessing.Pipe(duplex=False)
        self.child = Child(_worker, Tasks(driver.factory, driver.updater, driver.conf), fields, told)
        told.close()

    def tell(self, values: list[tuple], txid: int, of: int, only: int) -> None:
        self._told.send((values, txid, of, only))

    def receipts(self) -> list[Any]:
        return self.child.heard()

    def close(self) -> None:
        """Also of one that does not end by itself: what it had to say was heard."""
        self._told.close()
        self.child.process.kill()
        self.child.ended()


def _worker(tasks: Tasks, fields: Any, told: Connection, say: Callable[[Any], None]) -> None:
    with suppress(EOFError):
        while True:
            values, txid, of, only = told.recv()
            say(tasks.run([TridentTuple.of(fields, row) for row in values], txid, of, only={only}))
