"""Combining inside the database stores exactly what the maps store that read, combine in Python and write."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import databases
import pyarrow as pa
import pytest

from states.sql import SqlMapState
from states.sql.maps.backing import SqlBackingMap
from states.sql.store import parse_url, store_of
from trident_py import LocalCluster, TridentTopology
from trident_py.errors import DefinitionError, StateError, TridentError, ZombieError
from trident_py.operations.base import CombinerAggregator
from trident_py.operations.builtin import Count, Maximum, Minimum, Sum
from trident_py.spouts import FixedBatchSpout
from trident_py.state import (
    CombinerValueUpdater,
    MemoryBackingMap,
    MemoryMapState,
    NonTransactionalMap,
    OpaqueMap,
    TransactionalMap,
)
from trident_py.state.keys import ColumnKeys
from trident_py.state.updates import Combines, sql_of

pytestmark = pytest.mark.dear

KINDS: dict[str, Any] = {
    "nonTransactional": NonTransactionalMap, "transactional": TransactionalMap, "opaque": OpaqueMap,
}  # fmt: skip
CASES = 210
WORDS = ["a", "A", "a ", "", "ok", "OK", "ok ", "é", "tab\tnewline\n", "\\N", "back\\slash", "'quo\"te", "%s ?", "日本"]


class InPython(CombinerAggregator):
    """The same combiner without its SQL: the general path."""

    def __init__(self, agg: CombinerAggregator) -> None:
        self.agg = agg

    def combine(self, val1: Any, val2: Any) -> Any:
        return self.agg.combine(val1, val2)


AGGREGATORS: list[CombinerAggregator] = [Count(), Sum(), Minimum(), Maximum()]
NUMBERS: dict[str, Callable[[random.Random], Any]] = {
    "bigint": lambda draw: draw.choice([1, 2, draw.randrange(-99, 99), draw.choice([2**63 - 1, -(2**63), 2**62])]),
    "int": lambda draw: draw.choice([1, draw.randrange(-99, 99), draw.choice([2**31 - 1, -(2**31), 2**30])]),
    "double": lambda draw: draw.choice([0.1, -0.0, 0.0, draw.uniform(-9, 9), 10.0 ** draw.randrange(-300, 300), 1e308]),
}  # fmt: skip
ODD = [None, True, 1, 1.5, float("inf"), float("-inf"), float("nan"), 2**70, 2**40]


def step(state: Any, txid: int | None, calls: list[Callable[[Any], Any]], undo: Any = None) -> Any:
    """One commit; the answers, or the kind of error (after which nothing is written)."""
    before = None if undo is None else dict(undo.items())
    state.beginCommit(txid)
    try:
        done = [call(state) for call in calls]
        state.commit(txid)
    except TridentError as error:
        getattr(state, "rollback", state.commit)(txid)
        if before is not None:
            undo.multiPut(list(before), list(before.values()))
            undo.multiRemove([key for key, _ in undo.items() if key not in before])
        return type(error)
    return done


def updating(agg: Any, rows: list[tuple[tuple, Any]], form: str = "updaters") -> Callable[[Any], Any]:
    """One multiUpdate, told in one of the forms that updaters use."""
    keys: Any = [key for key, _ in rows]
    numbers: Any = [number for _, number in rows]
    if form == "updaters":
        return lambda state: state.multiUpdate(keys, [CombinerValueUpdater(agg, number) for number in numbers])
    if form == "columns":
        kinds = set(map(type, numbers))
        keys = ColumnKeys([pa.array(column) for column in zip(*keys, strict=True)])
        whole = kinds == {float} or (kinds == {int} and all(-(2**63) <= number < 2**63 for number in numbers))
        numbers = pa.array(numbers) if whole else numbers
    if form == "wanted":
        return lambda state: state.multiUpdate(keys, Combines(agg, numbers))
    return lambda state: unread(state.multiUpdate(keys, Combines(agg, numbers, False)))


def unread(news: Any) -> None:
    """Nobody asked for these."""


class Case:
    """A random sequence of batches for keys that no other case has."""

    def __init__(self, number: int, ddl: str) -> None:
        self.draw = random.Random(number)
        self.number = number
        self.ddl = ddl
        self.agg = self.draw.choice(AGGREGATORS)
        self.txid = 1

    def key(self) -> tuple:
        return (f"{self.draw.choice(WORDS)}{self.draw.choice(['', '', self.draw.randrange(20)])}", self.number)

    def rows(self) -> list[tuple[tuple, Any]]:
        draw = self.draw
        rows = [(self.key(), NUMBERS[self.ddl](draw)) for _ in range(draw.choice([1, 3, 12, 60]))]
        if draw.random() < 0.9:
            rows = list(dict(rows).items())
        if draw.random() < 0.1:
            rows[-1] = (rows[-1][0], draw.choice(ODD))
        return rows

    def steps(self) -> Any:
        draw = self.draw
        calls: list[Any] = []
        for _ in range(draw.choice([3, 5])):
            change = draw.choice(["next", "next", "replay", "changed", "older"])
            self.txid += {"next": draw.choice([1, 2]), "older": -1}.get(change, 0)
            if change != "replay" or not calls:
                calls = [self.call() for _ in range(draw.choice([1, 1, 1, 2]))]
            yield (None if draw.random() < 0.05 else max(self.txid, 1)), calls

    def call(self) -> Callable[[Any], Callable[[Any], Any]]:
        rows, form = self.rows(), self.draw.choice(["updaters", "wanted", "silent", "columns"])
        if self.draw.random() < 0.15 and form == "updaters":
            keys, values = [key for key, _ in rows], [NUMBERS[self.ddl](self.draw) for _ in rows]
            return lambda agg: lambda state: state.multiPut(keys, values)
        if self.draw.random() < 0.1:
            return lambda agg: lambda state: state.multiGet([key for key, _ in rows])
        return lambda agg: updating(agg, rows, form)


def shown(value: Any) -> Any:
    """With the sign of zero and with types."""
    return repr(value)


def table_of(database: str, name: str, number: int) -> list[tuple]:
    with store_of(parse_url(database)).reading() as connection:
        cursor = connection.execute(f'SELECT * FROM "{name}" WHERE i = ? ORDER BY w', (number,))
        return [tuple(row) for row in cursor.fetchall()]


@pytest.mark.one_of_each
@pytest.mark.parametrize("kind", KINDS)
def test_random_batches_store_what_the_general_path_stores(
    database: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    combined: list[bool] = []
    inner = SqlBackingMap.multiCombine

    def watched(self: Any, *args: Any) -> Any:
        combined.append((found := inner(self, *args)) is not None)
        return found

    monkeypatch.setattr(SqlBackingMap, "multiCombine", watched)
    states = {}
    for ddl in NUMBERS:
        names = [f"{side}_{ddl}" for side in ("ours", "plain")]
        made = [getattr(SqlMapState, kind)(database, name, ["w string", "i bigint"], f"n {ddl}") for name in names]
        states[ddl] = [(each.makeState({}, None, 0, 1), name) for each, name in zip(made, names, strict=True)]
    for number in range(CASES // len(KINDS)):
        for module in ("mysql.maps", "postgresql.dialect"):
            for limit in ("_ROWS_TO_STAGE", "_ROWS_TO_WRITE_STAGED"):
                monkeypatch.setattr(f"states.sql.dialects.{module}.{limit}", random.Random(number).choice([4, 10**6]))
        ddl = list(NUMBERS)[number % len(NUMBERS)]
        (ours, name), (plain, other) = states[ddl]
        case = Case(number, ddl)
        for txid, calls in case.steps():
            found = step(ours, txid, [call(case.agg) for call in calls])
            assert shown(found) == shown(step(plain, txid, [call(InPython(case.agg)) for call in calls])), number
            assert shown(table_of(database, name, number)) == shown(table_of(database, other, number)), number
    assert sum(combined) > len(combined) * 0.4 > 20  # the database did combine


@pytest.mark.one_of_each
@pytest.mark.parametrize("kind", KINDS)
def test_random_batches_end_like_the_map_over_memory(database: str, kind: str) -> None:
    draw = random.Random(7)
    factory = getattr(SqlMapState, kind)(database, "t", "k string", "n bigint")
    backing = MemoryBackingMap()
    ours, plain = factory.makeState({}, None, 0, 1), KINDS[kind].build(backing)
    txid = 1
    for _ in range(40):
        txid += draw.choice([0, 0, 1, 1, 2, -1])
        now = None if draw.random() < 0.05 else max(txid, 1)
        calls = [
            [((f"k{draw.randrange(30)}",), draw.randrange(9)) for _ in range(draw.choice([1, 5, 150]))]
            for _ in range(draw.choice([1, 1, 2]))
        ]
        if draw.random() < 0.7:
            calls = [list(dict(call).items()) for call in calls]  # no key twice: the database adds
        done = [updating(Sum(), call) for call in calls]
        assert step(ours, now, done) == step(plain, now, done, backing)
        assert factory.stored() == dict(backing.items())


@pytest.mark.parametrize("size", [3, 6000])
@pytest.mark.parametrize("kind", ["transactional", "opaque"])
def test_an_older_txid_is_refused_and_nothing_written(database: str, kind: str, size: int) -> None:
    factory = getattr(SqlMapState, kind)(database, "t", "k bigint", "n bigint")
    state = factory.makeState({}, None, 0, 1)
    step(state, 5, [updating(Sum(), [((size // 2,), 1)])])
    before = factory.stored()
    assert step(state, 4, [updating(Sum(), [((i,), 1) for i in range(size)])]) == ZombieError
    assert factory.stored() == before


@pytest.mark.parametrize("size", [3, 6000])
@pytest.mark.parametrize(("ddl", "most"), [("bigint", 2**63 - 1), ("int", 2**31 - 1), ("smallint", 2**15 - 1)])
def test_a_sum_that_does_not_fit_is_refused_by_name_and_nothing_written(
    database: str, size: int, ddl: str, most: int
) -> None:
    factory = SqlMapState.opaque(database, "t", "k bigint", f"n {ddl}")
    state = factory.makeState({}, None, 0, 1)
    step(state, 1, [updating(Sum(), [((size // 2,), most)])])
    before = factory.stored()
    state.beginCommit(2)
    with pytest.raises(StateError, match=rf"\(k={size // 2}\): column 'n' .*cannot hold {most + 1}"):
        updating(Sum(), [((i,), 1) for i in range(size)])(state)
    state.rollback(2)
    assert factory.stored() == before


def test_a_declared_type_narrower_than_the_tables_own_is_kept(database: str) -> None:
    wide = SqlMapState.opaque(database, "t", "k string", "n bigint")
    step(wide.makeState({}, None, 0, 1), 1, [updating(Sum(), [(("a",), 2**31 - 1)])])
    narrow = SqlMapState.opaque(database, "t", "k string", "n int").makeState({}, None, 0, 1)
    assert step(narrow, 2, [updating(Sum(), [(("a",), 1)])]) == StateError
    assert step(narrow, 2, [updating(Sum(), [(("a",), -1)])]) == [[2**31 - 2]]


def test_a_value_written_without_a_txid_is_not_combined_with(database: str) -> None:
    factory = SqlMapState.opaque(database, "t", "k string", "n bigint")
    state = factory.makeState({}, None, 0, 1)
    step(state, None, [updating(Sum(), [(("a",), 1)])])
    assert step(state, 1, [updating(Sum(), [(("a",), 1)])]) == StateError
    assert factory.stored() == {("a",): (None, 1, None)}


class Product(CombinerAggregator):
    sql = "{old} * {new}"

    def combine(self, val1: Any, val2: Any) -> Any:
        return val1 * val2


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)  # the others have no NaN
@pytest.mark.parametrize(("stored", "agg", "number"), [("inf", Product(), 0.0), ("NaN", Minimum(), 1.0)])
def test_a_result_that_is_no_number_is_refused(database: str, stored: str, agg: Any, number: float) -> None:
    factory = SqlMapState.opaque(database, "t", "k string", "n double")
    state = factory.makeState({}, None, 0, 1)
    step(state, 1, [updating(agg, [(("a",), 1.0)])])
    with store_of(parse_url(database)).writing() as connection:
        connection.execute("UPDATE t SET n = ?", (stored,))
    for one in (agg, InPython(agg)):
        assert step(state, 2, [updating(one, [(("a",), number)])]) == StateError
    assert repr(factory.stored()[("a",)]) == f"OpaqueValue(currTxid=1, curr={stored.lower()}, prev=None)"


def reads_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The SELECTs of the table t from now on."""
    from states.sql.connection import FormatConnection

    asked: list[str] = []
    inner = FormatConnection.execute

    def execute(self: Any, text: str, *args: Any) -> Any:
        if text.startswith("SELECT") and '"t"' in text:
            asked.append(text)
        return inner(self, text, *args)

    monkeypatch.setattr(FormatConnection, "execute", execute)
    return asked


@pytest.mark.parametrize("database", databases.SERVERS, indirect=True)  # SQLite's statement returns them
@pytest.mark.parametrize("size", [100, 6000])
def test_new_values_are_read_once_or_not_at_all(database: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    factory = SqlMapState.opaque(database, "t", "k bigint", "n bigint")
    state = factory.makeState({}, None, 0, 1)
    asked = reads_of(monkeypatch)
    rows = [((i * 7919 % size,), i) for i in range(size)]
    for txid in (1, 2):
        assert step(state, txid, [updating(Count(), rows, "silent")]) == [None]
    assert asked == []
    assert step(state, 3, [updating(Count(), rows, "wanted")]) == [[3 * i for i in range(size)]]
    assert len(asked) == 1


def test_the_databases_own_values_are_combined_in_a_global_aggregate(database: str) -> None:
    for kind in KINDS:
        factory = getattr(SqlMapState, kind)(database, kind, value="n bigint")
        state = factory.makeState({}, None, 0, 1)
        for txid in (1, 2):
            state.beginCommit(txid)
            assert state.update(CombinerValueUpdater(Sum(), 4)) == 4 * txid
            state.commit(txid)
        assert state.get() == 8


def test_a_subclass_with_a_combine_of_its_own_has_no_sql_of_its_parent() -> None:
    class Biggest(Sum):
        def combine(self, val1: Any, val2: Any) -> Any:
            return max(val1, val2)

    class Named(Sum):
        """The same combine under another name."""

    class Renamed(Biggest):
        sql = "greatest({old}, {new})"

    own = Sum()
    own.combine = max  # type: ignore[method-assign]
    assert [sql_of(agg) for agg in (Count(), Sum(), Named(), Biggest(), own)] == ["{old} + {new}"] * 3 + [None] * 2
    assert sql_of(Renamed()) == "greatest({old}, {new})"


def test_only_numbers_of_the_columns_own_type_are_combined_there(database: str) -> None:
    class Biggest(Sum):
        def combine(self, val1: Any, val2: Any) -> Any:
            return max(val1, val2)

    factory = SqlMapState.transactional(database, "t", "k string", "x double")
    state = factory.makeState({}, None, 0, 1)
    for txid, (agg, n, expected) in enumerate(
        [(Sum(), 1.5, 1.5), (Sum(), 2, 3.5), (Biggest(), 3.0, 3.5), (Count(), 0.25, 3.75)], 1
    ):
        assert step(state, txid, [updating(agg, [(("a",), n)])]) == [[expected]]


def test_sql_without_its_two_places_is_refused(database: str) -> None:
    class Wrong(Minimum):
        sql = "{old} + 1"

    state = SqlMapState.opaque(database, "t", "k string", "n bigint").makeState({}, None, 0, 1)
    state.beginCommit(1)
    with pytest.raises(DefinitionError, match=r"needs \{old\} and \{new\}"):
        updating(Wrong(), [(("a",), 1)])(state)
    state.rollback(1)


@pytest.mark.parametrize("database", databases.MYSQLS, indirect=True)
@pytest.mark.parametrize("why", ["files", "tables"])
def test_a_server_that_takes_no_files_or_no_temporary_tables_gets_rows(
    database: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pymysql

    factory = SqlMapState.opaque(database, "t", "k bigint", "n bigint")
    state = factory.makeState({}, None, 0, 1)
    rows = [((i,), i) for i in range(12_000)]
    refused = pymysql.err.OperationalError(3948 if why == "files" else 1044, "not allowed")
    name = "MySqlMaps.load" if why == "files" else "temporary_like"

    def refuse(*args: Any) -> Any:
        raise refused

    monkeypatch.setattr(f"states.sql.dialects.mysql.maps.{name}", refuse)
    for txid in (1, 2):
        assert step(state, txid, [updating(Sum(), rows, "silent")]) == [None]
    assert factory.stored() == {(i,): (2, 2 * i, i) for i in range(12_000)}
    state.beginCommit(3)
    state.multiPut([key for key, _ in rows], [7] * len(rows))
    state.commit(3)
    assert factory.stored()[(4999,)] == (3, 7, 2 * 4999)


@pytest.mark.parametrize("agg", [Minimum(), Maximum()])
@pytest.mark.parametrize(
    ("ddl", "numbers"),
    [
        ("bigint", lambda draw: draw.choice([None, 2**62, draw.randrange(-99, 99), draw.randrange(-99, 99)])),
        ("bigint", lambda draw: draw.randrange(-99, 99)),
        ("double", lambda draw: draw.choice([0.0, -0.0, draw.uniform(-1, 1), 10.0 ** draw.randrange(-300, 300)])),
    ],
)
@pytest.mark.parametrize("partitions", [1, 3])
def test_minimum_and_maximum_of_a_topology_are_those_in_memory(
    database: str, agg: Any, ddl: str, numbers: Any, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[bool] = []
    inner = SqlBackingMap.multiCombine
    monkeypatch.setattr(
        SqlBackingMap, "multiCombine",
        lambda self, *args: (found := inner(self, *args), done.append(found is not None))[0],
    )  # fmt: skip
    draw = random.Random(partitions)
    rows = [(draw.choice("abcdefgh"), numbers(draw)) for _ in range(120)]
    topology = TridentTopology()
    stream = topology.newStream("rows", FixedBatchSpout(["k", "n"], 30, *rows)).shuffle().parallelismHint(partitions)
    grouped = [SqlMapState.opaque(database, "t", "k string", f"n {ddl}"), MemoryMapState.Factory()]
    single = [SqlMapState.opaque(database, "one", None, f"n {ddl}"), MemoryMapState.Factory()]
    for factory in grouped:
        stream.groupBy("k").persistentAggregate(factory, "n", agg, "best").parallelismHint(partitions)
    for factory in single:
        stream.persistentAggregate(factory, "n", agg, "best")
    with LocalCluster() as cluster:
        assert cluster.submitTopology("best", {}, topology.build()).awaitTermination(60)
    for ours, memory in (grouped, single):
        assert shown(sorted(ours.stored().items())) == shown(sorted(memory.stored().items()))
    pick = min if isinstance(agg, Minimum) and not isinstance(agg, Maximum) else max
    best = {(key,): pick(n for k, n in rows if k == key and n is not None) for key in {k for k, _ in rows}}
    assert {key: value.curr for key, value in grouped[0].stored().items()} == best
    assert any(done)  # the database did choose
