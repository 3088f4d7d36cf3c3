"""A driver of a state: runs batches as the engine does, also in a process that kills itself where a plan says.

``checkpoint`` stands for Spark's: the last finished txid; its name is the lineage.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import threading
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from states.sql.ledger import SqlLedgerStore
from states.sql.rows.batch import BatchLedger
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


FORKS, LOOKUP = 5, 5.0  # tries, seconds
ABLE = b"+"
INSIDE: dict[str, tuple[type, str]] = {"BatchState": (BatchLedger, "_show")}
"""The method at whose end a driver dies "inside publish", by the name of the factory's class. Others publish with one
request: they die behind it."""


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

    def batch(self, rows: list, txid: int, of: int = 2, attempt: int = 0, point: str = "") -> None:
        """One whole attempt."""
        receipts = self.run(rows, txid, of, attempt, point=point)
        inside = INSIDE.get(type(self.factory).__name__, (SqlLedgerStore, "change"))
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

    def tasks(
        self, rows: list, txid: int, of: int = 2, attempt: int = 0, only: Any = None, point: str = ""
    ) -> list[Any]:
        conf = self.conf | {"trident.context": in_attempt(txid, attempt)}
        return run_tasks(self.factory, self.updater, rows, txid, of, conf, only, point)

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
        driver.batch(rows, txid, plan.partitions, point=plan.point if txid == plan.at else "")
        plan.checkpoint.write_text(str(txid))


def in_child(work: Callable[[], None]) -> int:
    """Runs the work in a forked process; returns the signal that ended it, 0 if none. Errors are raised here."""
    child = Child(work)
    assert child.heard() is None, "the work says nothing"
    return child.ended()


class Child:
    """A forked process; what its work says is heard here, an error of it is raised here."""

    def __init__(self, work: Callable[..., None], *more: Any) -> None:
        for _ in range(FORKS):
            read, write = os.pipe()
            self.pid = os.fork()
            if self.pid == 0:
                _work(work, more, write)
            os.close(write)
            self._said = os.fdopen(read, "rb")
            if self._said.read(1) == ABLE:
                return
            self.ended()
        raise AssertionError(f"no child of {FORKS} can look up a name")

    def heard(self) -> Any:
        """The next thing it says; None if it has ended."""
        try:
            said = pickle.load(self._said)
        except EOFError:
            return None
        assert not isinstance(said, _Error), said.text
        return said

    def ended(self) -> int:
        self._said.close()
        _, status = os.waitpid(self.pid, 0)
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


@dataclass
class _Error:
    text: str


def _looks_up() -> bool:
    """Whether this process can look up names. A thread of its parent (librdkafka's) may have held glibc's lock for that
    at the moment of the fork; then nobody ever releases it here."""
    looking = {"target": socket.getaddrinfo, "args": ("127.0.0.1", 1), "kwargs": {"flags": socket.AI_ADDRCONFIG}}
    thread = threading.Thread(**looking, daemon=True)  # type: ignore[arg-type]
    thread.start()
    thread.join(LOOKUP)
    return not thread.is_alive()


def _work(work: Callable[..., None], more: tuple, write: int) -> None:
    """All that a child does."""
    signal.setitimer(signal.ITIMER_REAL, 0)  # the test's own timeout is the parent's
    with os.fdopen(write, "wb") as out:
        if not _looks_up():
            os._exit(1)
        out.write(ABLE)
        out.flush()
        try:
            work(*more, *([lambda said: (pickle.dump(said, out), out.flush())] if more else []))
        except BaseException:
            pickle.dump(_Error(traceback.format_exc()), out)
            out.flush()
        finally:
            os._exit(0)


class Worker:
    """A worker process: runs the tasks that it is told, one after the other; says their receipts."""

    def __init__(self, driver: Driver, fields: Any) -> None:
        read, self._write = os.pipe()
        self.child = Child(_worker, driver, fields, read, self._write)
        os.close(read)

    def tell(self, values: list[tuple], txid: int, of: int, only: int) -> None:
        os.write(self._write, pickle.dumps((values, txid, of, only)))

    def receipts(self) -> list[Any]:
        return self.child.heard()

    def close(self) -> None:
        """Also of one that does not end by itself: what it had to say was heard."""
        os.close(self._write)
        os.kill(self.child.pid, signal.SIGKILL)
        self.child.ended()


def _worker(driver: Driver, fields: Any, read: int, other: int, say: Callable[[Any], None]) -> None:
    os.close(other)
    with os.fdopen(read, "rb") as told:
        while True:
            try:
                values, txid, of, only = pickle.load(told)
            except EOFError:
                return
            say(driver.tasks([TridentTuple.of(fields, row) for row in values], txid, of, only={only}))
