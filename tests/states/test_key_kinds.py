"""Two keys are two rows, or one of them is refused: in one batch, across batches and across declarations. Two values,
of which one has a zone, are not taken for one."""

from __future__ import annotations

import datetime
import enum
import itertools
import threading
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import databases
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from contracts.asking import run
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from properties.values import OF_TYPE

from states.columns.arrow import encode_column
from states.columns.values import Column, RefusedValue
from states.kafka.compacted.codec import Codec
from states.loading import look
from states.sql import AppendState, BatchState, InsertIgnoreState, RowUpdater, SequenceState, SqlMapState
from states.sql.store import close_stores, parse_url, store_of
from trident_py import Fields
from trident_py.errors import StateError, TridentError
from trident_py.model.canonical import identity
from trident_py.model.chunks import Chunk, TupleList
from trident_py.operations.base import TridentCollector
from trident_py.operations.builtin import Maximum, Sum
from trident_py.state import MapCombinerAggStateUpdater
from trident_py.tuples import TridentTuple

NOON = datetime.datetime(2026, 1, 1, 12)
ZONED = NOON.replace(tzinfo=datetime.UTC)
LATER = ZONED + datetime.timedelta(hours=1)
KINDS_OF_TIME = [(NOON, LATER), (ZONED, NOON)]


class Word(str):
    """A text of a class of its own."""


class Letter(enum.StrEnum):
    A = "a"
    ONE = "1"


class Number(enum.IntEnum):
    ONE = 1


DAY = datetime.datetime(2026, 1, 1)
# What is one thing to a reader, and one value to some column: each list holds its faces.
FACES: list[list[Any]] = [
    [NOON, ZONED, ZONED.astimezone(datetime.timezone(datetime.timedelta(hours=5))), pd.Timestamp(NOON),
     pd.Timestamp(ZONED), np.datetime64(NOON), "2026-01-01 12:00:00.000000", "2026-01-01 12:00:00.000000+00:00"],
    [DAY.date(), DAY, DAY.replace(tzinfo=datetime.UTC), np.datetime64("2026-01-01"), "2026-01-01"],
    [1, True, 1.0, Decimal(1), Decimal("1.00"), "1", "1.0", b"1", Number.ONE, Letter.ONE, np.int8(1), np.bool_(True),
     np.float32(1), Word("1")],
    [0, False, 0.0, -0.0, Decimal("0.0"), Decimal("-0"), "0", "", b"", "\0", None, pd.NaT, pd.NA, "None", "null"],
    ["a", b"a", bytearray(b"a"), memoryview(b"a"), Letter.A, Word("a"), np.str_("a"), "A", "a ", "a\0", "á", "a\u0301"],
    [0.1, Decimal("0.1"), np.float32(0.1), float(np.float32(0.1)), "0.1", Decimal("0.10")],
    [2**53, 2.0**53, 2**53 + 1, Decimal(2**53), str(2**53), float("inf"), float("nan"), Decimal("nan")],
]  # fmt: skip
TYPES = ["bigint", "tinyint", "double", "string", "varchar(40)", "boolean", "binary", "date", "timestamp",
         "decimal(20,2)", "decimal(20)"]  # fmt: skip
TWO = st.sampled_from(FACES).flatmap(lambda faces: st.tuples(st.sampled_from(faces), st.sampled_from(faces)))
PAIRS = st.sampled_from(TYPES).flatmap(
    lambda ddl: st.tuples(st.just(ddl), TWO | st.tuples(OF_TYPE.get(ddl, st.nothing()), OF_TYPE.get(ddl, st.nothing())))
)
often = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))


def apart(one: Any, other: Any) -> int:
    """How many keys these are."""
    return len({repr(identity(one)), repr(identity(other))})


def rows(fields: list[str], values: list[tuple], as_columns: bool = False) -> Any:
    if not as_columns:
        return [TridentTuple.of([each.split()[0] for each in fields], row) for row in values]
    tuples = TupleList(Fields(*fields))
    tuples.append(Chunk.of_rows(Fields(*fields), values))
    return tuples


def stored(factory: Any, updater: Any, tuples: Any, conf: dict | None = None, txid: int | None = None) -> Any:
    """One transaction of a state: all of it, or an error and nothing."""
    state = factory.makeState(conf or {}, None, 0, 1)
    state.beginCommit(txid)
    try:
        updater.updateState(state, tuples, TridentCollector(lambda _: None))
        return state.commit(txid)
    except BaseException:
        state.rollback(txid)
        raise


def emptied(database: str, table: str) -> None:
    run(database, f"DELETE FROM {table}")
    run(database, "UPDATE trident_key SET kind = 'timestamp' WHERE kind LIKE 'timestamp%'")


@often
@example(("timestamp", (NOON, ZONED)), False, "map")
@example(("timestamp", (ZONED, NOON)), False, "combined")
@example(("timestamp", (NOON, ZONED)), False, "rows")
@given(PAIRS, st.booleans(), st.sampled_from(["map", "combined", "rows"]))
def test_two_keys_are_two_rows_or_one_is_refused(database: str, drawn: Any, together: bool, how: str) -> None:
    ddl, (one, other) = drawn
    table = f"{how}_{''.join(filter(str.isalnum, ddl))}"
    updater: Any = RowUpdater()
    factory: Any = InsertIgnoreState(database, table, "k", [f"k {ddl}", "n bigint"])
    if how != "rows":
        factory = SqlMapState.nonTransactional(database, table, f"k {ddl}", "n bigint")
        updater = MapCombinerAggStateUpdater(Sum(), "k", "n") if how == "combined" else Putting()
    emptied_first(factory, database, table)
    values = [(one, 1), (other, 2)]
    try:
        for batch in [values] if together else [[each] for each in values]:
            stored(factory, updater, rows(["k", "n"], batch))
    except TridentError:
        return
    assert len(factory.stored()) == apart(one, other), (one, other)


class Putting:
    """Puts the rows of a batch into a map, in their order."""

    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        last = {repr(identity(row[0])): row for row in tuples}
        state.multiPut([(row[0],) for row in last.values()], [row[1] for row in last.values()])


def emptied_first(factory: Any, database: str, table: str) -> None:
    factory.makeState({}, None, 0, 1)
    emptied(database, table)


@pytest.mark.parametrize("make", [SqlMapState.nonTransactional, SqlMapState.transactional, SqlMapState.opaque])
@pytest.mark.parametrize("combined", [True, False])
def test_a_map_refuses_times_of_another_kind_in_another_batch(database: str, make: Any, combined: bool) -> None:
    times = KINDS_OF_TIME[combined]
    factory = make(database, "t", ["at timestamp", "s string"], "n bigint")
    updater = MapCombinerAggStateUpdater(Sum() if combined else InPython(), ["at", "s"], "n")
    one, other = [rows(["at", "s", "n"], [(at, "x", 1)]) for at in times]
    stored(factory, updater, one, txid=1)
    before = factory.stored()
    if database.startswith("sqlite"):  # which keeps the zone as it was written
        stored(factory, updater, other, txid=2)
        assert len(factory.stored()) == 2
        return
    with pytest.raises(StateError, match=r"column 'at' .*it has (a|no) time zone.*Convert the value before the state"):
        stored(factory, updater, other, txid=2)
    assert factory.stored() == before
    with pytest.raises(StateError, match="time zone"):
        factory.makeState({}, None, 0, 1).multiGet([(times[1], "x")])
    stored(factory, updater, one, txid=2)


class InPython(Sum):
    """A sum that no database makes."""

    sql = None  # type: ignore[assignment]


MAPS = [(SqlMapState.nonTransactional, NOON), (SqlMapState.transactional, ZONED), (SqlMapState.opaque, ZONED)]


@pytest.mark.parametrize(("make", "time"), MAPS)
def test_a_value_has_its_zone_in_the_next_batch_and_after_a_restart(database: str, make: Any, time: Any) -> None:
    factory = make(database, "t", "s string", ["at timestamp"])
    other = ZONED if time is NOON else NOON
    for txid in (1, 2, 3):  # Maximum compares with the stored value
        time += datetime.timedelta(hours=1)
        stored(factory, MapCombinerAggStateUpdater(Maximum(), "s", "at"), rows(["s", "at"], [("x", time)]), txid=txid)
        close_stores()
        assert factory.makeState({}, None, 0, 1).multiGet([("x",), ("y",)]) == [time, None]
        assert [row[1] for row in factory.makeState({}, None, 0, 1).getTuples()] == [time]
    if database.startswith("sqlite"):
        stored(factory, Putting(), rows(["s", "at"], [("x", other)]), txid=4)
        assert factory.makeState({}, None, 0, 1).multiGet([("x",)]) == [other]
        return
    with pytest.raises(StateError, match=r"column 'at' .*it has (a|no) time zone.*Convert the value before the state"):
        stored(factory, Putting(), rows(["s", "at"], [("x", other)]), txid=4)
    assert factory.makeState({}, None, 0, 1).multiGet([("x",)]) == [time]


@pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
@pytest.mark.parametrize(("make", "time"), MAPS)
def test_a_table_that_notes_nothing_of_its_values_goes_on(database: str, make: Any, time: Any) -> None:
    """As older versions have left it: the first batch decides, and the values before it are of its kind."""
    factory, hour = make(database, "t", "s string", ["at timestamp"]), datetime.timedelta(hours=1)
    stored(factory, Putting(), rows(["s", "at"], [("x", time), ("y", time)]), txid=1)
    run(database, "DELETE FROM trident_key WHERE field <> 's'")
    for txid in (2, 3):
        close_stores()
        stored(factory, Putting(), rows(["s", "at"], [("x", time + txid * hour)]), txid=txid)
    last = {"transactional": (3, time + 3 * hour), "opaque": (3, time + 3 * hour, time + 2 * hour)}
    assert factory.stored()["x",] == last.get(factory.kind, time + 3 * hour)
    assert factory.makeState({}, None, 0, 1).multiGet([("y",)]) == [time]


def test_rows_of_one_key_whose_times_have_a_zone_and_none_are_not_equal(database: str) -> None:
    factory = InsertIgnoreState(database, "t", "n", ["n bigint", "at timestamp", "s string"], "report")
    stored(factory, RowUpdater(), rows(["n", "at", "s"], [(1, ZONED, "x"), (2, None, "x")]))
    other = rows(["n", "at", "s"], [(1, NOON, "x")])
    if database.startswith("sqlite"):
        assert stored(factory, RowUpdater(), other)["conflicts"] == 1
    else:
        with pytest.raises(StateError, match=r"column 'at' .*it has no time zone"):
            stored(factory, RowUpdater(), other)
    close_stores()
    assert factory.stored() == {(1,): (ZONED, "x"), (2,): (None, "x")}


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize(("key", "kept"), [("at", "fail"), ("at", "dead-letter"), ("n", "dead-letter")])
def test_rows_refuse_times_of_another_kind_in_another_batch(database: str, typed: bool, key: str, kept: str) -> None:
    times = KINDS_OF_TIME[kept == "fail"]
    factory = InsertIgnoreState(database, "t", key, ["at timestamp", "n bigint"], onBadRow=kept)
    fields = [["at timestamp" if typed and at.tzinfo else "at", "n bigint"] for at in times]
    stored(factory, RowUpdater(), rows(fields[0], [(times[0], 1)], typed))
    before = factory.stored()
    mixed = rows(fields[1], [(times[1], 2)], typed)
    if database.startswith("sqlite"):
        stored(factory, RowUpdater(), mixed)
        assert len(factory.stored()) == 2
        return
    if kept == "fail":
        with pytest.raises(StateError, match="time zone"):
            stored(factory, RowUpdater(), mixed)
    else:
        assert stored(factory, RowUpdater(), mixed)["rejected"] == 1
    assert factory.stored() == before


def test_a_batch_and_a_sequence_refuse_times_of_another_kind(database: str) -> None:
    conf = {"topology.name": "t", "trident.state.name": "s", "trident.lineage": "l"}
    batch: Any = BatchState(database, "b", ["at timestamp", "n bigint"], key="at")
    participant = batch.participant()
    told = conf | {"trident.generation": participant.open(conf)}
    participant.prepare(1, 0, 1)
    states: list[Any] = [
        AppendState(database, "a", ["at timestamp", "n bigint"]),
        SequenceState(database, "q", ["at"], "n", ["at timestamp", "n bigint"]),
        SequenceState(database, "v", "s string", "n", ["at timestamp", "n bigint", "s string"]),
    ]
    for factory, *given_conf in ((batch, told, 1), *((state, {}, None) for state in states)):
        stored(factory, RowUpdater(), rows(["at", "n", "s"], [(ZONED, 1, "x")]), *given_conf)
        other = rows(["at", "n", "s"], [(NOON, 1, "x")])
        if database.startswith("sqlite"):
            stored(factory, RowUpdater(), other, *given_conf)
            continue
        with pytest.raises(StateError, match="time zone"):
            stored(factory, RowUpdater(), other, *given_conf)
    if not database.startswith("sqlite"):
        assert [state.stored() for state in states] == [{(ZONED, 1): 1}, {(ZONED, 1): ()}, {("x", 1): (ZONED,)}]
    new: list[Any] = []  # a row that has waited comes with its zone
    for number in (3, 2):
        state = states[2].makeState({}, None, 0, 1)
        state.beginCommit(number)
        new += state.insert(rows(["at", "n", "s"], [(ZONED, number, "x")]), True)
        state.commit(number)
        held = states[2].held()
        assert held == ({("x", 3): (ZONED,)} if number == 3 else {})
    assert [row[0] for row in new] == [ZONED, ZONED]


@pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
def test_what_a_batch_decides_goes_with_its_rows(database: str) -> None:
    """A batch that is not written says nothing of the table's times; one that is says it to every process."""
    factory = InsertIgnoreState(database, "t", "at", ["at timestamp", "n tinyint"])
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(None)
    with pytest.raises(StateError, match="8 bits"):
        state.insert(rows(["at", "n"], [(NOON, 1000)]), False)
    state.rollback(None)
    state.beginCommit(None)
    state.insert(rows(["at", "n"], [(ZONED, 1)]), False)
    state.commit(None)
    store_of(parse_url(database)).ready.clear()  # as in another process
    with pytest.raises(StateError, match="time zone"):
        stored(factory, RowUpdater(), rows(["at", "n"], [(NOON, 1)]))


@pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
def test_of_two_partitions_that_decide_at_once_one_does(database: str) -> None:
    """The second waits for the first, and finds what that one has decided."""
    factory = InsertIgnoreState(database, "t", "at", ["at timestamp", "n bigint"])
    first, second = factory.makeState({}, None, 0, 2), factory.makeState({}, None, 1, 2)
    first.beginCommit(1)
    RowUpdater().updateState(first, rows(["at", "n"], [(NOON, 1)]), TridentCollector(lambda _: None))
    found: list[Any] = []

    def come_later() -> None:
        second.beginCommit(1)
        try:
            RowUpdater().updateState(second, rows(["at", "n"], [(LATER, 1)]), TridentCollector(lambda _: None))
        except StateError as error:
            found.append(error)

    thread = threading.Thread(target=come_later)
    thread.start()
    first.commit(1)
    thread.join(60)
    second.rollback(1)
    assert len(found) == 1 and "time zone" in str(found[0])
    assert len(factory.stored()) == 1


DECLARED = [ddl for ddl in TYPES if ddl not in ("tinyint", "varchar(40)")]
WAYS = ["made", "TEXT", "INT", "DATE", ""]


@pytest.mark.parametrize("way", WAYS)
def test_a_table_declared_otherwise_takes_no_key_for_another(database: str, way: str) -> None:
    """Of all pairs of declarations: an equal key is one row, another one a second row, or the state does not open."""
    if way != "made" and not database.startswith("sqlite"):
        return  # their columns have types
    taken = 0
    for number, (before, after) in enumerate(itertools.product(DECLARED, DECLARED)):
        if way != "made":
            run(database, f"CREATE TABLE t{number} (k {way} PRIMARY KEY, n BIGINT)")
        for one, other in alike(before, after):
            taken += declared_twice(database, f"t{number}", (before, one), (after, other))
    assert taken > 0


def alike(before: str, after: str) -> list[tuple[Any, Any]]:
    """Some faces of one thing that both columns hold, as one text."""
    found = []
    for faces in FACES:
        held = [[(each, text) for each in faces if (text := held_as(ddl, each))] for ddl in (before, after)]
        found += [(a, b) for (a, text), (b, same) in itertools.product(*held) if text == same or apart(a, b) == 1][:3]
    return found


def held_as(ddl: str, value: Any) -> str:
    try:
        return str(Column("k", ddl, True).encode([value])[0])
    except RefusedValue:
        return ""


def declared_twice(database: str, table: str, first: tuple[str, Any], second: tuple[str, Any]) -> bool:
    """Whether both were taken; the table is empty afterwards."""
    taken = False
    try:
        for ddl, key in (first, second):
            factory = SqlMapState.nonTransactional(database, table, f"k {ddl}", "n bigint")
            stored(factory, Putting(), rows(["k", "n"], [(key, 1)]))
        taken = True
    except TridentError:
        return False
    finally:
        found = len(run(database, f"SELECT n FROM {table}")) if taken else 0
        if store_of(parse_url(database)).ready:
            run(database, f"DELETE FROM {table}")
    assert found == apart(first[1], second[1]), (first, second)
    return True


def test_a_check_before_the_start_tells_of_a_key_that_is_declared_otherwise(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    stored(SqlMapState.nonTransactional(url, "t", "k string", "n bigint"), Putting(), rows(["k", "n"], [("a", 1)]))
    file, state = tmp_path / "states.yaml", f"type: sql-map, kind: non-transactional, url: '{url}', table: t"
    file.write_text(f"states: {{t: {{{state}, key: k date, value: n bigint}}}}")
    [found] = [each for each in look(file)[0].findings if each.level == "error"]
    assert "holds values of the kind 'text'" in found.text and "Declare it as before" in found.text


@often
@given(PAIRS, st.booleans(), st.booleans())
def test_two_keys_of_a_topic_are_two_texts_or_one_is_refused(drawn: Any, typed: bool, beside: bool) -> None:
    """The text is a function of the key alone: what holds in one batch holds across them."""
    ddl, (one, other) = drawn
    fields = Fields(f"k {ddl}" if typed else "k", *(["m bigint"] if beside else []))
    codec = Codec("t", fields, Fields("n bigint"))
    try:
        texts = [codec.key_texts([[each], *([[1]] if beside else [])])[0] for each in (one, other)]
        together = codec.key_texts([[one, other], *([[1, 1]] if beside else [])])
    except TridentError:
        return
    assert len(set(texts)) == apart(one, other) and together == texts


def test_arrow_columns_of_another_kind_are_refused_by_the_column() -> None:
    column = Column("at", "timestamp", True, ("zone",))
    for value, zone in ((NOON, True), (ZONED, False)):
        assert encode_column(replace(column, zoned=not zone), pa.array([value])).to_pylist() == [NOON]
        with pytest.raises(RefusedValue, match="time zone"):
            encode_column(replace(column, zoned=zone), pa.array([value]))
