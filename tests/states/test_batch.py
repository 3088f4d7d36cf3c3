"""BatchState: the contract on every database, and what belongs to batches that are shown at once."""

from __future__ import annotations

import datetime
import decimal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import databases
import pytest
from contracts.crashing import Driver, in_attempt
from contracts.state import PlainContract, RowContract, StateContract

from states.sql import BatchState, RowUpdater
from states.sql.connection import FormatConnection
from states.sql.rows.batch import BatchLedger
from states.sql.store import ConnectionLost, Store, parse_url, store_of
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import DefinitionError, FailedException, StateError
from trident_py.operations.base import TridentCollector
from trident_py.state import persist
from trident_py.testing import FixedBatchSpout
from trident_py.tuples import TridentTuple

pytestmark = pytest.mark.dear


class TestBatch(PlainContract):
    inside = (BatchLedger, "_show")

    def make(self, url: str) -> BatchState:
        return BatchState(url, "rows", ["word string", "n bigint"])


class TestBatchWithKey(StateContract):
    inside = (BatchLedger, "_show")
    fields, updater, bad_row, bad_words = RowContract.fields, RowContract.updater, RowContract.bad_row, ("row 12",)
    values, expected = RowContract.values, RowContract.expected

    def make(self, url: str) -> BatchState:
        return BatchState(url, "rows", ["word string", "n bigint"], "word")


def rows(*values: tuple, fields: Any = ("word", "n")) -> list[TridentTuple]:
    return [TridentTuple.of(list(fields), each) for each in values]


def run(url: str, *statements: str) -> list[tuple]:
    """Statements of somebody else; the rows of the last one, if it is a SELECT."""
    with store_of(parse_url(url)).reading() as connection:
        for each in statements:
            cursor = connection.execute(each)
        return [tuple(row) for row in cursor.fetchall()] if statements[-1].startswith("SELECT") else []


def staged(url: str) -> int:
    return run(url, "SELECT count(*) FROM rows_staged")[0][0]


@pytest.fixture
def factory(database: str) -> BatchState:
    return BatchState(database, "rows", ["word string", "n bigint"])


def test_a_reader_never_sees_a_part_of_a_batch(factory: BatchState, database: str) -> None:
    """Each batch has 40 rows in 4 partitions: every count that a reader sees is a multiple of 40."""
    driver = Driver(factory, RowUpdater())
    over, seen = threading.Event(), []
    driver.batch(rows(*[(f"w{i}", 0) for i in range(40)]), 1, of=4)

    def poll() -> None:
        while not over.is_set():
            seen.append(run(database, "SELECT count(*), count(DISTINCT n) FROM \"rows\"")[0])

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        for txid in range(2, 8):
            batch = rows(*[(f"w{i}", txid) for i in range(40)])
            driver.run(batch, txid, of=4, only={0, 1, 2})
            driver.participant.abort(txid, 0)
            driver.batch(batch, txid, of=4, attempt=1)
    finally:
        over.set()
        reader.join()
    assert set(seen) <= {(40 * n, n) for n in range(1, 8)} and len(set(seen)) > 2
    assert len(factory.stored()) == 40 * 7 and staged(database) == 0


def test_only_the_stages_of_the_receipts_are_shown(factory: BatchState, database: str) -> None:
    driver = Driver(factory, RowUpdater())
    driver.run(rows(("dead", 1)), 1, of=1)
    driver.participant.abort(1, 0)
    assert staged(database) == 0
    driver.run(rows(("dead", 2)), 1, of=1, attempt=1)  # not even aborted
    first = driver.run(rows(("right", 1), ("right", 1)), 1, of=1, attempt=2)
    driver.tasks(rows(("twin", 1)), 1, of=1, attempt=2)  # Spark ran the task twice
    assert staged(database) == 4
    driver.publish(1, 2, first)
    assert factory.stored() == {("right", 1): 2} and staged(database) == 0


def test_what_older_drivers_left_is_swept_with_the_next_batch_that_is_shown(factory: BatchState, database: str) -> None:
    """Not before: a batch that was decided, and not shown, needs what its dead driver has staged."""
    Driver(factory, RowUpdater()).run(rows(("a", 1)), 1)
    other = Driver(factory, RowUpdater(), **{"topology.name": "other"})
    other.run(rows(("b", 1)), 1)
    driver = Driver(factory, RowUpdater())
    assert staged(database) == 2
    driver.batch(rows(("a", 1)), 1)
    assert run(database, "SELECT trident_topology, word FROM rows_staged") == [("other", "b")]


def test_a_stage_that_is_not_whole_is_not_shown(factory: BatchState, database: str) -> None:
    driver = Driver(factory, RowUpdater())
    receipts = driver.run(rows(("a", 1), ("b", 1), ("c", 1)), 1, of=1)
    run(database, "DELETE FROM rows_staged WHERE word = 'b'")
    with pytest.raises(StateError, match="has 2 staged rows, but its tasks staged 3"):
        driver.publish(1, 0, receipts)
    assert factory.stored() == {}
    with pytest.raises(StateError, match="two receipts from one partition"):
        driver.publish(1, 0, receipts * 2)
    driver.batch(rows(("a", 1)), 1, of=1, attempt=1)
    assert factory.stored() == {("a", 1): 1}


def test_other_content_of_a_batch_that_is_shown_changes_nothing(factory: BatchState, database: str) -> None:
    """The crash between the flip and Spark's commit log: the batch comes again, to a new driver."""
    Driver(factory, RowUpdater()).batch(rows(("a", 1), ("b", 1)), 1)
    out: list = []
    driver = Driver(factory, RowUpdater())
    driver.participant.prepare(1, 0, 1)
    state = factory.makeState(driver.conf | {"trident.context": in_attempt(1, 0)}, None, 0, 1)
    receipt = persist(state, 1, RowUpdater(), rows(("c", 1)), TridentCollector(out.append))
    assert (receipt["count"], out, staged(database)) == (0, [], 0)
    assert driver.participant.newest().txid == 1
    driver.publish(1, 0, [receipt])
    assert factory.stored() == {("a", 1): 1, ("b", 1): 1}


@contextmanager
def losing(when: Callable[[str], bool], after: bool) -> Iterator[list[str]]:
    """The next request with a statement that ``when`` names loses its connection: before it is sent, or its answer."""
    lost: list[str] = []
    execute, together = FormatConnection.execute, FormatConnection.together

    def cut(connection: Any, statements: Any, send: Callable[[], Any]) -> Any:
        found = [] if lost else [text for text, _ in statements if when(text)]
        if not found:
            return send()
        lost.extend(found)
        if after:
            send()
        connection.close()
        raise OSError("the line is cut")

    def one(self: Any, text: str, parameters: Any = ()) -> Any:
        return cut(self, [(text, parameters)], lambda: execute(self, text, parameters))

    def several(self: Any, statements: Any) -> Any:
        return cut(self, statements, lambda: together(self, statements))

    with mock.patch.multiple(FormatConnection, execute=one, together=several):
        yield lost


@pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    "statement", ["UPDATE trident_fence", 'INSERT INTO "rows"', "DELETE", "COMMIT"]
)
def test_a_connection_lost_at_any_statement_of_the_flip(
    factory: BatchState, database: str, statement: str, after: bool
) -> None:
    driver = Driver(factory, RowUpdater())
    receipts = driver.run(rows(("a", 1), ("a", 1), ("b", 2)), 1)
    with losing(lambda text: text.startswith(statement), after) as lost:
        driver.publish(1, 0, receipts)
    assert lost
    driver.publish(1, 0, receipts)
    driver.batch(rows(("a", 1)), 2)
    assert factory.stored() == {("a", 1): 3, ("b", 2): 1} and staged(database) == 0


def test_a_store_that_stays_away_fails_the_batch_and_says_so(factory: BatchState) -> None:
    driver = Driver(factory, RowUpdater())
    receipts = driver.run(rows(("a", 1)), 1)

    def gone(self: Store, *_: Any, **__: Any) -> Any:
        raise ConnectionLost("no way there")

    with mock.patch("states.sql.rows.batch._SETTLE_SECONDS", 0.3), mock.patch.multiple(
        Store, take=gone, open_transaction=gone
    ):
        with pytest.raises(FailedException, match="no way there"):
            driver.publish(1, 0, receipts)
        driver.participant.abort(1, 0)  # which cannot sweep, and does not mind
    driver.batch(rows(("a", 1)), 1, attempt=1)
    assert factory.stored() == {("a", 1): 1}


def test_an_abort_does_not_wait_for_a_task_that_still_writes(factory: BatchState, database: str) -> None:
    driver = Driver(factory, RowUpdater())
    driver.participant.prepare(1, 0, 1)
    conf = driver.conf | {"trident.context": in_attempt(1, 0)}
    state = factory.makeState(conf, None, 0, 1)
    state.beginCommit(1)
    state.insert(rows(("a", 1)), tell=False)
    started = time.monotonic()
    driver.participant.abort(1, 0)
    assert time.monotonic() - started < 10
    state.commit(1)
    driver.batch(rows(("b", 1)), 1, attempt=1)
    assert factory.stored() == {("b", 1): 1} and staged(database) == 0


class TestWithKey:
    @pytest.fixture
    def factory(self, database: str) -> BatchState:
        return BatchState(database, "rows", ["a string", "v bigint", "b bigint"], ["a", "b"])

    def test_a_row_takes_the_place_of_the_one_with_its_key(self, factory: BatchState) -> None:
        fields = ("v", "b", "a")
        driver = Driver(factory, RowUpdater())
        driver.batch(rows((1, 1, "x"), (2, 2, "x"), (3, 1, "X"), fields=fields), 1)
        driver.batch(rows((9, 2, "x"), (8, 3, "x"), fields=fields), 2)
        assert factory.stored() == {("x", 1): (1,), ("x", 2): (9,), ("X", 1): (3,), ("x", 3): (8,)}

    def test_of_one_batch_the_last_by_partition_and_row_stands(self, factory: BatchState) -> None:
        driver = Driver(factory, RowUpdater())
        driver.participant.prepare(1, 0, 12)
        receipts = []
        for partition in (11, 2, 10):
            state = factory.makeState(driver.conf, None, partition, 12)
            values = [("k", partition * 10 + row, 1) for row in range(3)] + [("k", partition, 2)]
            batch = rows(*values, fields=("a", "v", "b"))
            receipts.append(persist(state, 1, RowUpdater(), batch, TridentCollector(print)))
        driver.publish(1, 0, receipts)
        assert factory.stored() == {("k", 1): (112,), ("k", 2): (11,)}

    def test_all_columns_may_be_the_key(self, database: str) -> None:
        factory = BatchState(database, "keys", "k string", "k")
        driver = Driver(factory, RowUpdater())
        for txid in (1, 2):
            driver.batch(rows(("a",), ("b",), ("a",), fields=("k",)), txid)
        assert factory.stored() == {("a",): (), ("b",): ()}

    def test_a_table_without_that_key_is_refused(self, database: str) -> None:
        run(database, "CREATE TABLE plain (a VARCHAR(20), v BIGINT)")
        with pytest.raises(StateError, match="no primary key or unique constraint"):
            BatchState(database, "plain", ["a", "v"], "a").makeState({}, None, 0, 1)


def test_types_of_the_table_pass_unchanged(database: str) -> None:
    columns = ["t string", "i int", "d double", "b boolean", "x binary", "day date", "at timestamp", "m decimal(20, 3)"]
    row = ("t\t\\\n'", -5, 1.5, True, b"\x00\xff\\", datetime.date(2026, 2, 3),
           datetime.datetime(2026, 2, 3, 4, 5, 6, 789), decimal.Decimal("12345678901234567.125"))  # fmt: skip
    factory = BatchState(database, "types", columns)
    driver = Driver(factory, RowUpdater())
    batch = rows(row, (None,) * 8, fields=[each.split()[0] for each in columns])
    driver.batch(batch, 1, of=1)
    assert factory.stored() == {row: 1, (None,) * 8: 1}


@pytest.mark.parametrize("bad", [(None, 5), ("x", 100), ("x", 1)])
def test_what_the_table_refuses_is_told_when_the_batch_is_shown(database: str, bad: tuple) -> None:
    run(database, "CREATE TABLE strict (word VARCHAR(20) NOT NULL, n BIGINT UNIQUE CHECK (n < 100))")
    factory = BatchState(database, "strict", ["word", "n"])
    driver = Driver(factory, RowUpdater())
    receipts = driver.run(rows(("a", 1), ("b", 2), bad), 1)
    with pytest.raises(StateError, match="could not show the batch"):
        driver.publish(1, 0, receipts)
    assert factory.stored() == {}
    driver.batch(rows(("a", 1), ("b", 2)), 1, attempt=1)
    assert factory.stored() == {("a", 1): 1, ("b", 2): 1}


def test_a_table_that_has_changed_is_told(database: str) -> None:
    driver = Driver(BatchState(database, "rows", ["word string", "n bigint"]), RowUpdater())
    driver.batch(rows(("a", 1)), 1)
    run(database, "ALTER TABLE rows ADD COLUMN more BIGINT".replace("rows", '"rows"'))
    with pytest.raises(StateError, match=r"'rows_staged' .* lacks the columns \['more'\]"):
        BatchState(database, "rows", ["word", "n", "more"]).makeState({}, None, 0, 1)


def test_without_a_driver_or_a_txid_nothing_can_be_shown(factory: BatchState) -> None:
    driver = Driver(factory, RowUpdater())
    for conf, txid in (({}, 1), (driver.conf, None)):
        with pytest.raises(StateError, match="no driver or no txid here"):
            persist(factory.makeState(conf, None, 0, 1), txid, RowUpdater(), rows(("a", 1)), TridentCollector(print))
    assert factory.stored() == {}


def test_in_a_topology(factory: BatchState) -> None:
    values = [("a", 1), ("b", 2), ("a", 1), ("c", 3), ("a", 1)]
    topology, out = TridentTopology(), []
    stream = topology.newStream("s", FixedBatchSpout(Fields("word string", "n bigint"), 2, *values))
    state = stream.partitionBy("word").partitionPersist(factory, Fields("word", "n"), RowUpdater(), Fields("word", "n"))
    state.parallelismHint(3).newValuesStream().peek(lambda row: out.append(tuple(row)))
    with LocalCluster() as cluster:
        assert cluster.submitTopology("t", {}, topology.build()).awaitTermination(60)
    assert factory.stored() == Counter(values) == Counter(out)


def test_what_cannot_be_is_refused_at_birth() -> None:
    with pytest.raises(DefinitionError, match=r"the key fields \['k'\] are not in columns"):
        BatchState("sqlite:///x.db", "t", "v bigint", "k")
