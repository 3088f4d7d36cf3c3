"""AppendState: the contract on every database, and what belongs to rows without a key."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from contracts.crashing import Driver, partition_of
from contracts.state import AppendContract

from states.sql import AppendState, RowUpdater
from states.sql.store import parse_url, store_of
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import DefinitionError, FailedException, StateError
from trident_py.operations.base import TridentCollector
from trident_py.state import persist
from trident_py.testing import FixedBatchSpout
from trident_py.tuples import TridentTuple

pytestmark = pytest.mark.dear


class TestAppend(AppendContract):
    def make(self, url: str) -> AppendState:
        return AppendState(url, "rows", ["word string", "n bigint"])


def rows(*values: tuple, fields: Any = ("word", "n")) -> list[TridentTuple]:
    return [TridentTuple.of(list(fields), each) for each in values]


def run(url: str, *statements: str) -> list[tuple]:
    """Statements of somebody else; the rows of the last one, if it is a SELECT."""
    with store_of(parse_url(url)).reading() as connection:
        for each in statements:
            cursor = connection.execute(each)
        return cursor.fetchall() if statements[-1].startswith("SELECT") else []


@pytest.fixture
def factory(database: str) -> AppendState:
    return AppendState(database, "rows", ["word string", "n bigint"])


WORDS = [("abcdefghijk"[i % 11] * 3, i) for i in range(20)]


def of_partition(partition: int, of: int) -> list[tuple]:
    return [row for row in WORDS if partition_of(TridentTuple.of(["word", "n"], row), of) == partition]


REMOVED = [
    ("every mark", "part >= 0"), ("all of the batch", "txid = 2"), ("how it is spread", "part = -1"),
    ("that of a partition which has written", "part = 0"), ("that of one which has not", "part = 1"),
]  # fmt: skip


@pytest.mark.parametrize("which", [where for _, where in REMOVED], ids=[name for name, _ in REMOVED])
@pytest.mark.parametrize("restarted", [True, False])
def test_marks_that_are_gone_are_told_and_nothing_is_written(
    factory: AppendState, database: str, which: str, restarted: bool
) -> None:
    """The driver's row is there and says that the batch was begun: it must not read as 'nothing written'."""
    driver = Driver(factory, RowUpdater())
    driver.batch(rows(*WORDS), 1, of=2)
    driver.run(rows(*WORDS), 2, of=2, only=[0])
    before = factory.stored()
    run(database, f"DELETE FROM trident_part WHERE {which}")
    for _ in range(2):
        with pytest.raises(StateError, match=r"batch 2 was begun, but marks of its partitions are gone.*Restore the"):
            if restarted:
                Driver(factory, RowUpdater())
            driver.batch(rows(*WORDS), 2, of=2, attempt=1)
        assert factory.stored() == before
    as_it_says = 'DELETE FROM "rows"', "DELETE FROM trident_part", "UPDATE trident_fence SET started = txid"
    run(database, *as_it_says)
    Driver(factory, RowUpdater()).batch(rows(*WORDS), 2, of=2)
    assert factory.stored() == Counter(WORDS)


def test_a_mark_that_goes_between_prepare_and_task_is_told(factory: AppendState, database: str) -> None:
    driver = Driver(factory, RowUpdater())
    driver.participant.prepare(1, 0, 2)
    run(database, "DELETE FROM trident_part WHERE part = 1")
    with pytest.raises(StateError, match="are gone from trident_part"):
        driver.tasks(rows(*WORDS), 1)
    assert factory.stored() == Counter(of_partition(0, 2))


class TestAnotherNumberOfPartitions:
    """A partition's number stands for the same rows only while there are as many partitions."""

    def test_nothing_is_written_yet_the_new_number_stands(self, factory: AppendState) -> None:
        driver = Driver(factory, RowUpdater())
        driver.run(rows(*WORDS), 1, of=2, only=())
        driver.batch(rows(*WORDS), 1, of=3, attempt=1)
        assert factory.stored() == Counter(WORDS)

    def test_some_parts_are_written_the_run_ends_with_the_way_on(self, factory: AppendState) -> None:
        driver = Driver(factory, RowUpdater())
        driver.run(rows(*WORDS), 1, of=3, only={0, 1})
        written = len(of_partition(0, 3) + of_partition(1, 3))
        assert 0 < written < len(WORDS)
        before = factory.stored()
        for attempt in (1, 2):  # nothing is forgotten by being told
            with pytest.raises(StateError) as told:
                driver.batch(rows(*WORDS), 1, of=2, attempt=attempt)
            for words in ("'rows'", "batch 1", "3 partitions", f"2 of them have written {written} rows", "with 2",
                          "20 rows", "parallelismHint(3)"):  # fmt: skip
                assert words in str(told.value)
            assert factory.stored() == before
        again = Driver(factory, RowUpdater())
        again.batch(rows(*WORDS), 1, of=3)
        again.batch(rows(*WORDS), 2, of=2)
        assert factory.stored() == Counter(WORDS * 2)

    def test_all_parts_are_written_the_replay_only_counts(self, factory: AppendState) -> None:
        Driver(factory, RowUpdater()).run(rows(*WORDS), 1, of=2)
        out: list = []
        driver = Driver(factory, RowUpdater())
        driver.participant.prepare(1, 0, 1)
        state = factory.makeState(driver.conf, None, 0, 1)
        receipt = persist(state, 1, RowUpdater(), rows(*WORDS), TridentCollector(out.append))
        assert (receipt["rows"], receipt["inserted"], out) == (20, 0, [])
        driver.publish(1, 0, [receipt])
        assert factory.stored() == Counter(WORDS)

    def test_a_partition_without_rows_has_no_part_and_is_not_missed(self, factory: AppendState) -> None:
        Driver(factory, RowUpdater()).run(rows(("a", 1), ("a", 2)), 1, of=8)
        driver = Driver(factory, RowUpdater())
        driver.batch(rows(("a", 1), ("a", 2)), 1, of=2)
        driver.batch(rows(("a", 3)), 2, of=2)
        assert factory.stored() == {("a", 1): 1, ("a", 2): 1, ("a", 3): 1}

    def test_a_task_without_a_recorded_number_writes_nothing(self, factory: AppendState) -> None:
        driver = Driver(factory, RowUpdater())
        with pytest.raises(StateError, match=r"has not called prepare\(\)"):
            driver.tasks(rows(*WORDS), 1)
        driver.batch([], 1)
        with pytest.raises(FailedException, match="has no record of batch 2"):
            driver.tasks(rows(*WORDS), 2)
        assert factory.stored() == {}


def test_the_new_values_are_the_rows_written_now(factory: AppendState) -> None:
    driver = Driver(factory, RowUpdater())
    driver.participant.prepare(1, 0, 1)
    seen = []
    for _ in range(2):
        out: list = []
        state = factory.makeState(driver.conf, None, 0, 1)
        persist(state, 1, RowUpdater(), rows(("b", 1), ("a", 2), ("b", 1)), TridentCollector(out.append))
        seen.append(out)
    assert seen == [[("b", 1), ("a", 2), ("b", 1)], []]


def test_a_table_may_number_its_rows_itself(database: str) -> None:
    number = {
        "sqlite": "id INTEGER PRIMARY KEY AUTOINCREMENT", "mysql": "id BIGINT PRIMARY KEY AUTO_INCREMENT",
        "postgresql": "id BIGSERIAL PRIMARY KEY",
    }[store_of(parse_url(database)).dialect.name]  # fmt: skip
    run(database, f"CREATE TABLE numbered ({number}, word VARCHAR(20), n BIGINT)")
    for columns in (None, ["word", "n"]):
        factory = AppendState(database, "numbered", columns)
        txid = 1 if columns is None else 2
        driver = Driver(factory, RowUpdater(), **{"topology.txid.base": txid - 1})
        driver.batch(rows(("a", 1), ("a", 1)), txid, of=1)
    assert run(database, "SELECT count(DISTINCT id) FROM numbered")[0][0] == 4
    assert factory.stored() == {("a", 1): 4}


class TestATableThatObjects:
    @pytest.fixture
    def strict(self, database: str) -> str:
        run(database, "CREATE TABLE strict (word VARCHAR(20) NOT NULL, n BIGINT UNIQUE CHECK (n < 100))")
        return database

    @pytest.mark.parametrize("bad", [(None, 5), ("x", 100), ("x", 1)])
    def test_the_row_is_named_and_nothing_is_written(self, strict: str, bad: tuple) -> None:
        factory = AppendState(strict, "strict", ["word", "n"])
        driver = Driver(factory, RowUpdater())
        with pytest.raises(StateError) as told:
            driver.run(rows(("a", 1), ("b", 2), bad, ("c", 3)), 1, of=1)
        for words in ("'strict'", "row 2", f"word={bad[0]!r}, n={bad[1]}", "Nothing of the batch is written"):
            assert words in str(told.value)
        assert factory.stored() == {}
        driver.batch(rows(("a", 1)), 1, of=1, attempt=1)
        assert factory.stored() == {("a", 1): 1}

    def test_dead_letters_are_kept_once_with_the_batch(self, strict: str) -> None:
        factory = AppendState(strict, "strict", ["word", "n"], onBadRow="dead-letter")
        batch = [("a", 1), (None, 5), ("b", "text"), ("c", 3), ("d", 100)]
        driver = Driver(factory, RowUpdater())
        driver.participant.prepare(1, 0, 1)
        for inserted, letters in ((["a", "c"], 3), ([], 0)):
            out: list = []
            state = factory.makeState(driver.conf, None, 0, 1)
            receipt = persist(state, 1, RowUpdater(), rows(*batch), TridentCollector(out.append))
            assert (receipt["rows"], receipt["rejected"]) == (5, letters)
            assert [row[0] for row in out] == inserted
        driver.publish(1, 0, [receipt])
        assert factory.stored() == {("a", 1): 1, ("c", 3): 1}
        letters = run(strict, 'SELECT "row", txid, count FROM strict_rejected')
        assert {json.loads(row)["n"] for row, _, _ in letters} == {5, "text", 100}
        assert [letter[1:] for letter in letters] == [(1, 1)] * 3


def test_without_a_driver_a_replay_with_the_same_partitions_is_told(factory: AppendState) -> None:
    for _ in range(2):
        persist(factory.makeState({}, None, 0, 1), 1, RowUpdater(), rows(("a", 1)), TridentCollector(print))
    persist(factory.makeState({}, None, 0, 1), 2, RowUpdater(), rows(("a", 1)), TridentCollector(print))
    persist(factory.makeState({}, None, 0, 1), None, RowUpdater(), rows(("a", 1)), TridentCollector(print))
    assert factory.stored() == {("a", 1): 3}


def test_in_a_topology(factory: AppendState) -> None:
    values = [("a", 1), ("b", 2), ("a", 1), ("c", 3), ("a", 1)]
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout(Fields("word string", "n bigint"), 2, *values))
    stream.partitionBy("word").partitionPersist(factory, Fields("word", "n"), RowUpdater()).parallelismHint(3)
    with LocalCluster() as cluster:
        assert cluster.submitTopology("t", {}, topology.build()).awaitTermination(60)
    assert factory.stored() == Counter(values)


def test_columns_come_from_typed_tuples_or_from_the_table(database: str) -> None:
    factory = AppendState(database, "made")
    driver = Driver(factory, RowUpdater())
    driver.batch(rows(("a", 1), fields=("word string", "n bigint")), 1, of=1)
    assert factory.stored() == {("a", 1): 1}
    with pytest.raises(StateError, match=r"no columns \['m'\]; it has: word, n"):
        driver.run(rows(("a", 1), fields=("word string", "m bigint")), 2, of=1)
    with pytest.raises(StateError, match="is not declared"):
        Driver(AppendState(database, "other"), RowUpdater()).run(rows(("a", 1)), 1, of=1)


def test_what_is_not_there_is_refused_at_birth() -> None:
    with pytest.raises(DefinitionError, match="onBadRow must be one of"):
        AppendState("sqlite:///x.db", "t", onBadRow="skip")


def test_a_decided_batch_that_was_only_counted_is_finished_by_the_next_driver(factory: AppendState) -> None:
    """It was written in two partitions, repeated and decided in four; that driver died before it published."""
    first = Driver(factory, RowUpdater())
    first.run(rows(*WORDS), 1, of=2)
    second = Driver(factory, RowUpdater())
    receipts = second.run(rows(*WORDS), 1, of=4)
    third = Driver(factory, RowUpdater())
    third.publish(1, 0, receipts)
    assert sorted(factory.stored()) == sorted(WORDS)
    third.batch(rows(("next", 1)), 2)
    assert len(list(factory.stored())) == len(WORDS) + 1
