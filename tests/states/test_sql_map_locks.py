"""A map state that loses a deadlock or waits too long for a lock does all of its work again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import databases
import pytest
from contracts.crashing import Driver, in_attempt
from test_sql_combining import InPython

from states.sql import SqlMapState
from states.sql.store import parse_url, store_of
from states.sql.transaction import Transaction
from trident_py.errors import FailedException, LostCommits, ZombieError
from trident_py.operations.base import CombinerAggregator
from trident_py.operations.builtin import Sum
from trident_py.state import SILENT, CombinerValueUpdater, OpaqueValue, StateUpdater, ValueUpdater, persist

pytestmark = pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
ROWS = 600


@pytest.fixture
def factory(database: str) -> SqlMapState:
    """With the rows 0..599, each with the value 1 of batch 1."""
    made = SqlMapState.opaque(database, "t", "k bigint", "n bigint")
    state = made.makeState({}, None, 0, 1)
    state.beginCommit(1)
    state.multiPut([(i,) for i in range(ROWS)], [1] * ROWS)
    state.commit(1)
    return made


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The txids of the transactions that begin."""
    seen: list[int | None] = []
    inner = Transaction.begin

    def begin(self: Transaction, txid: int | None, lazily: bool = False) -> None:
        seen.append(txid)
        inner(self, txid, lazily)

    monkeypatch.setattr(Transaction, "begin", begin)
    return seen


@contextmanager
def another(database: str) -> Iterator[Any]:
    """Somebody else's transaction."""
    store = store_of(parse_url(database))
    connection = store.take()
    try:
        store.dialect.begin(connection, 30)
        yield connection
    finally:
        store.drop(connection)


def add(factory: SqlMapState, agg: CombinerAggregator, errors: list[BaseException], reads: bool = False) -> None:
    """Batch 2 adds 1 to the rows 0 and 1."""
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(2)
    try:
        if reads:
            state.multiGet([(5,)])
        state.multiUpdate([(0,), (1,)], [CombinerValueUpdater(agg, 1)] * 2)
        state.commit(2)
    except BaseException as error:
        state.rollback(2)
        errors.append(error)


def into_a_deadlock(database: str, task: Callable[[], None]) -> None:
    """The other one holds row 1 and wants row 0, which we hold while we wait for row 1; it has done more."""
    with another(database) as other:
        other.execute("UPDATE t SET prev_n = 7 WHERE k BETWEEN 100 AND 499")
        other.execute("UPDATE t SET prev_n = 7 WHERE k = 1")
        ours = threading.Thread(target=task)
        ours.start()
        time.sleep(0.4)
        other.execute("UPDATE t SET prev_n = 7 WHERE k = 0")
        other.execute("COMMIT")
        ours.join(30)
        assert not ours.is_alive()


def added_in_a_deadlock(database: str, *args: Any, **more: Any) -> list[BaseException]:
    errors: list[BaseException] = []
    into_a_deadlock(database, partial(add, *args, errors, **more))
    return errors


@pytest.mark.parametrize("agg", [Sum(), InPython(Sum())], ids=["in the database", "in Python"])
def test_a_deadlock_is_run_again_as_a_whole(database: str, factory: SqlMapState, begun: list, agg: Any) -> None:
    assert added_in_a_deadlock(database, factory, agg) == []
    assert begun == [2, 2]  # ours was the victim, and came again
    assert [factory.stored()[(k,)] for k in (0, 1, 2)] == [OpaqueValue(2, 2, 1)] * 2 + [OpaqueValue(1, 1, None)]


def test_work_that_stands_on_an_earlier_read_is_replayed_by_the_batch(
    database: str, factory: SqlMapState, begun: list
) -> None:
    (error,) = added_in_a_deadlock(database, factory, Sum(), reads=True)
    assert isinstance(error, FailedException) and "holds a lock" in str(error)
    assert begun == [2]
    assert factory.stored()[(0,)] == OpaqueValue(1, 1, 7)
    add(factory, Sum(), [])
    assert factory.stored()[(0,)] == OpaqueValue(2, 2, 1)


@pytest.mark.parametrize("agg", [Sum(), InPython(Sum())], ids=["in the database", "in Python"])
def test_a_lock_that_is_waited_for_too_long_is_asked_for_again(
    database: str, factory: SqlMapState, begun: list, agg: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("states.sql.store.LOCK_SECONDS", 1.0)
    errors: list[BaseException] = []
    with another(database) as other:
        other.execute("UPDATE t SET prev_n = 7 WHERE k = 1")
        ours = threading.Thread(target=add, args=(factory, agg, errors))
        ours.start()
        until = time.monotonic() + 20
        while len(begun) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        other.execute("COMMIT")
        ours.join(30)
    assert errors == [] and len(begun) >= 2
    assert [factory.stored()[(k,)] for k in (0, 1)] == [OpaqueValue(2, 2, 1)] * 2


class Adding(ValueUpdater):
    """Adds one. ``between``: what happens between the read and the write."""

    def __init__(self, between: Callable[[], Any] = lambda: None) -> None:
        self.between = between

    def update(self, stored: Any) -> Any:
        self.between()
        return (stored or 0) + 1


class Catching(StateUpdater):
    """Adds one to row 500, then to the rows 0 and 1, and goes on if that fails."""

    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        state.multiUpdate([(500,)], [Adding()])
        with suppress(FailedException):
            state.multiUpdate([(0,), (1,)], [Adding()] * 2)
        state.multiUpdate([(501,)], [Adding()])


def test_an_updater_that_catches_a_lost_deadlock_commits_nothing(database: str, factory: SqlMapState) -> None:
    """MySQL has rolled back what the batch had written, and would commit the mark, and what is written behind it."""
    errors: list[BaseException] = []

    def task() -> None:
        state = factory.makeState({}, None, 0, 1)
        try:
            persist(state, 2, Catching(), [("one",)], SILENT)
        except BaseException as error:
            errors.append(error)

    into_a_deadlock(database, task)
    assert [type(error) for error in errors] == [FailedException] and "holds a lock" in str(errors[0])
    assert [factory.stored()[(k,)] for k in (500, 501)] == [OpaqueValue(1, 1, None)] * 2


@pytest.mark.parametrize("repeated", [False, True])
def test_a_task_that_outlives_its_batch_does_not_write_over_the_next_one(database: str, repeated: bool) -> None:
    """It reads after its batch is complete, and would write when the next batch has written. ``repeated``: its driver
    has only repeated what an earlier one had completed."""
    factory = SqlMapState.opaque(database, "t", "k string", "n bigint")
    driver = Driver(factory, None)
    second: list[Any] = []

    def task(txid: int, updater: ValueUpdater) -> Any:
        state = factory.makeState(driver.conf | {"trident.context": in_attempt(txid, 0)}, None, 0, 1)
        state.beginCommit(txid)
        try:
            state.multiUpdate([("a",)], [updater])
            return state.commit(txid)
        except BaseException:
            state.rollback(txid)
            raise

    driver.participant.prepare(1, 0, 1)
    driver.participant.publish(1, 0, [task(1, Adding())])
    if repeated:
        driver = Driver(factory, None)
        driver.participant.prepare(1, 0, 1)
        driver.participant.publish(1, 0, [task(1, Adding())])
    driver.participant.prepare(2, 0, 1)
    late: BaseException | None = None
    try:
        task(1, Adding(lambda: second.append(task(2, Adding()))))
    except ZombieError as error:
        late = error
    driver.participant.publish(2, 0, second or [task(2, Adding())])
    assert factory.stored() == {("a",): OpaqueValue(2, 2, 1)}
    assert late is not None and ("batch 1 is behind batch 2" if repeated else "batch 1 was given up") in str(late)


def test_marks_from_before_a_refused_end_do_not_count_for_the_repetition(database: str) -> None:
    """The log says that three partitions have committed, the store has two: so the batch runs again, as attempt 0."""
    factory = SqlMapState.opaque(database, "t", "k string", "n bigint")

    def written(driver: Driver) -> list[Any]:
        receipts = []
        for part in range(2):
            state = factory.makeState(driver.conf | {"trident.context": in_attempt(1, 0)}, None, part, 2)
            state.beginCommit(1)
            state.multiUpdate([(f"k{part}",)], [Adding()])
            receipts.append(state.commit(1))
        return receipts

    older = Driver(factory, None)
    older.participant.prepare(1, 0, 2)
    receipts = written(older)
    newer = Driver(factory, None)
    with pytest.raises(LostCommits):
        newer.participant.publish(1, 0, [*receipts, receipts[0]])
    newer.participant.prepare(1, 0, 2)
    with pytest.raises(LostCommits):
        newer.participant.publish(1, 0, receipts)
    newer.participant.publish(1, 0, written(newer))
    assert factory.stored() == {("k0",): OpaqueValue(1, 1, None), ("k1",): OpaqueValue(1, 1, None)}
