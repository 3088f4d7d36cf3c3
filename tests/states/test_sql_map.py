"""SqlMapState on SQLite: the contract, and what belongs to a table."""

from __future__ import annotations

import datetime
import decimal
import multiprocessing
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from contracts.state import MapContract

from states.sql import SqlMapState, store
from trident_py.errors import DefinitionError, FailedException, StateError
from trident_py.operations.base import CombinerAggregator
from trident_py.state import CombinerValueUpdater, MapCombinerAggStateUpdater, OpaqueValue, TransactionalValue


class Plus(CombinerAggregator):
    """A combiner of the user's own: read, combined in Python, written."""

    def init(self, tuple: Any) -> int:
        return tuple[0]

    def combine(self, val1: int, val2: int) -> int:
        return val1 + val2

    def zero(self) -> int:
        return 0


class TestOpaque(MapContract):
    updater = MapCombinerAggStateUpdater(Plus(), "word", "n")

    def make(self, url: str) -> SqlMapState:
        return SqlMapState.opaque(url, "counts", "word string", "count bigint")


class TestTransactional(MapContract):
    """Its sums are made by the database."""

    def make(self, url: str) -> SqlMapState:
        return SqlMapState.transactional(url, "counts", "word string", "count bigint")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/s.db"


def put(factory: SqlMapState, txid: int | None, rows: dict[tuple, Any]) -> Any:
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(txid)
    try:
        state.multiPut(list(rows), list(rows.values()))
        return state.commit(txid)
    except BaseException:
        state.rollback(txid)
        raise


def get(factory: SqlMapState, *keys: tuple) -> list[Any]:
    return factory.makeState({}, None, 0, 1).multiGet(list(keys))


def table(url: str, name: str) -> tuple[list[str], list[tuple]]:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    cursor = connection.execute(f"SELECT * FROM {name} ORDER BY 1")
    found = [column[0] for column in cursor.description], cursor.fetchall()
    connection.close()
    return found


def test_the_columns_are_key_value_txid_and_the_value_before(url: str) -> None:
    factory = SqlMapState.opaque(url, "t", "word string", "count bigint")
    put(factory, 1, {("a",): 1})
    put(factory, 2, {("a",): 5})
    columns, rows = table(url, "t")
    assert dict(zip(columns, rows[0], strict=True)) == {"word": "a", "count": 5, "txid": 2, "prev_count": 1}
    assert factory.stored() == {("a",): OpaqueValue(2, 5, 1)}


def test_the_three_kinds_store_what_the_memory_maps_store(url: str) -> None:
    for make, first, last in (
        (SqlMapState.nonTransactional, 1, 5),
        (SqlMapState.transactional, TransactionalValue(1, 1), TransactionalValue(2, 5)),
        (SqlMapState.opaque, OpaqueValue(1, 1, None), OpaqueValue(2, 5, 1)),
    ):
        factory = make(url, make.__name__, "word string", "count bigint")
        put(factory, 1, {("a",): 1})
        assert factory.stored() == {("a",): first}
        put(factory, 2, {("a",): 5})
        assert factory.stored() == {("a",): last}
        assert get(factory, ("a",), ("b",)) == [5, None]


def test_a_global_state_has_one_row(url: str) -> None:
    factory = SqlMapState.opaque(url, "total", value="n bigint")
    state = factory.makeState({}, None, 0, 1)
    for txid in (1, 1, 2):
        state.beginCommit(txid)
        state.update(CombinerValueUpdater(Plus(), 4))
        state.commit(txid)
    assert state.get() == 8
    assert factory.stored() == {("$GLOBAL$",): OpaqueValue(2, 8, 4)}
    assert table(url, "total")[1][0][0] == "$GLOBAL$"
    with pytest.raises(DefinitionError, match="a global aggregate needs key=None"):
        SqlMapState.opaque(url, "t", "w string", "n bigint").makeState({}, None, 0, 1).get()


def test_keys_is_an_older_name_of_key(url: str) -> None:
    for make in (SqlMapState.nonTransactional, SqlMapState.transactional, SqlMapState.opaque):
        made = make(url, "t", key="w string")
        assert make(url, "t", keys="w string") == make(url, "t", "w string") == made
        assert made.keys == made.key and "key=[w]" in repr(made)
        assert make(url, "t", keys=None) == make(url, "t")
        with pytest.raises(DefinitionError, match="give key or keys, which mean the same, but not both"):
            make(url, "t", "w string", keys="w string")


def test_several_keys_and_a_row_as_value(url: str) -> None:
    factory = SqlMapState.opaque(url, "t", ["a bigint", "b string"], ["x double", "y string"])
    rows = {(i, f"k{j}"): (i / 2, None if j else "y") for i in range(40) for j in range(40)}
    put(factory, 1, rows)
    put(factory, 2, {(1, "k1"): (9.0, "new")})
    assert factory.stored()[(1, "k1")] == OpaqueValue(2, (9.0, "new"), (0.5, None))
    assert get(factory, *rows) == [(9.0, "new") if key == (1, "k1") else value for key, value in rows.items()]
    with pytest.raises(StateError, match=r"a value must be a row of \(x, y\)"):
        put(factory, 3, {(1, "k1"): 7})
    with pytest.raises(StateError, match=r"has the key columns \(a, b\), got the key \[1\]"):
        put(factory, 3, {(1,): (1.0, "a")})


VALUES: list[tuple[str, list[Any], list[Any]]] = [
    ("bigint", [0, -(2**63), 2**63 - 1, None], [2**63, 1.0, True, "1", b"1"]),
    ("int", [2**31 - 1], [2**31]),
    ("double", [0.5, 3, float("inf"), -1e300, None], [2**53 + 1, True, "1.5", float("nan")]),
    ("string", ["", "é\u2028\x00'\"", "$GLOBAL$", None], [1, b"a", "\ud800"]),
    ("varchar(3)", ["abc"], ["abcd"]),
    ("boolean", [True, False, None], [1, 0, "true"]),
    ("binary", [b"", b"\x00\xff"], ["a", 1]),
    ("date", [datetime.date(2013, 11, 3)], [datetime.datetime(2013, 11, 3), "2013-11-03"]),
    ("timestamp", [datetime.datetime(2013, 11, 3, 1, 0, 0, 5)], [datetime.date(2013, 11, 3)]),
    ("decimal(5,2)", [decimal.Decimal("123.45"), 7], [decimal.Decimal("1.005"), decimal.Decimal(1000), 1.5]),
    ("json", [[1, {"a": None}], "5", 5, 1.5, True], [{1: 2}, {1, 2}, float("nan")]),
]


@pytest.mark.parametrize(("ddl", "good", "bad"), VALUES, ids=[case[0] for case in VALUES])
def test_a_value_comes_back_as_it_was_or_is_refused(url: str, ddl: str, good: list, bad: list) -> None:
    factory = SqlMapState.transactional(url, "t", "i bigint", f"v {ddl}")
    put(factory, 1, {(i,): value for i, value in enumerate(good)})
    found = get(factory, *((i,) for i in range(len(good))))
    assert found == good
    for value in bad:
        with pytest.raises(StateError, match=r"row 1 of the batch \(i=101\): column 'v'.*cannot hold"):
            put(factory, 2, {(100,): good[0], (101,): value})
    assert (100,) not in factory.stored()


@pytest.mark.parametrize(
    ("ddl", "good", "bad"),
    [
        ("bigint", 1, [True, 1.0, "1", None]),
        ("double", 1.0, [1, True, -0.0, float("nan"), None]),
        ("string", "1", [1, None]),
        ("boolean", True, [1, None]),
    ],
)
def test_keys_keep_javas_identity(url: str, ddl: str, good: Any, bad: list) -> None:
    """S29: 1, 1.0, True and "1" never meet in one key column; null has no place in one."""
    factory = SqlMapState.opaque(url, "t", f"k {ddl}", "v bigint")
    put(factory, 1, {(good,): 1})
    for key in bad:
        with pytest.raises(StateError, match="column 'k'"):
            put(factory, 2, {(key,): 2})
    assert [(type(key[0]), key[0]) for key in factory.stored()] == [(type(good), good)]


def test_types_are_needed_only_while_the_table_is_missing(url: str) -> None:
    with pytest.raises(StateError, match="table 't' does not exist, and the type of 'word' is not declared"):
        SqlMapState.opaque(url, "t", "word", "count bigint").makeState({}, None, 0, 1)
    put(SqlMapState.opaque(url, "t", "word string", "count bigint"), 1, {("a",): 1})
    assert get(SqlMapState.opaque(url, "t", "word", "count"), ("a",)) == [1]


def test_a_table_of_another_shape_is_refused(url: str) -> None:
    put(SqlMapState.transactional(url, "t", "word string", "count bigint"), 1, {("a",): 1})
    for factory, words in (
        (SqlMapState.opaque(url, "t", "word string", "count bigint"), "no column 'prev_count'"),
        (SqlMapState.transactional(url, "t", "word string", "count string"), "cannot hold string"),
        (SqlMapState.transactional(url, "t", "count bigint", "word string"), "no primary key"),
    ):
        with pytest.raises(StateError, match=words):
            factory.makeState({}, None, 0, 1)
    with pytest.raises(DefinitionError, match="needs a file"):
        SqlMapState.opaque("sqlite://", "t")
    with pytest.raises(DefinitionError, match="unknown type 'wrod'"):
        SqlMapState.opaque(url, "u", "a wrod", "b bigint").makeState({}, None, 0, 1)


@pytest.mark.parametrize("kind", ["nonTransactional", "transactional"])
def test_another_kind_does_not_write_into_the_table_of_an_opaque_map(url: str, kind: str) -> None:
    """Its values would go back to what was before the last opaque batch."""
    put(SqlMapState.opaque(url, "t", "word string", "count bigint"), 1, {("a",): 1})
    other = getattr(SqlMapState, kind)(url, "t", "word string", "count bigint")
    with pytest.raises(StateError, match=r"columns of kind opaque \(txid, prev_count\).*drop prev_count"):
        other.participant().open({"topology.name": "t", "trident.state.name": "s", "trident.lineage": "L"})
    assert [each.level for each in other.check()] == ["error"]
    assert get(other, ("a",)) == [1] and [each.level for each in other.check_queried()] == ["ok"]


def test_a_batch_is_invisible_until_its_commit(url: str) -> None:
    factory = SqlMapState.opaque(url, "t", "word string", "count bigint")
    put(factory, 1, {("a",): 1})
    writer = factory.makeState({}, None, 0, 1)
    writer.beginCommit(2)
    writer.multiPut([("a",)], [2])
    assert writer.multiGet([("a",)]) == [2]
    assert get(factory, ("a",)) == [1]
    writer.rollback(2)
    assert get(factory, ("a",)) == [1]


def test_large_batches_in_any_order_with_duplicates(url: str) -> None:
    factory = SqlMapState.opaque(url, "t", "k bigint", "v bigint")
    keys = [((n * 7919) % 5000,) for n in range(6000)]
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(1)
    state.multiPut(keys, list(range(6000)))
    assert state.commit(1) == {"partition": 0, "written": 6000}
    last = dict(zip(keys, range(6000), strict=True))
    assert get(factory, *keys) == [last[key] for key in keys]


@pytest.mark.parametrize("kind", ["nonTransactional", "transactional", "opaque"])
def test_a_put_goes_to_the_keys_that_the_list_has_now(url: str, kind: str) -> None:
    """The order of the keys that were read just before is kept for a put of the same keys."""
    state = getattr(SqlMapState, kind)(url, "t", "k bigint", "v bigint").makeState({}, None, 0, 1)
    state.beginCommit(1)
    for changed in ([[1]], [[2], [3]]):
        keys = [[0]]
        state.multiGet(keys)
        keys[:] = changed
        state.multiPut(keys, [5] * len(keys))
    assert state.multiGet([[0], [1], [2], [3]]) == [None, 5, 5, 5]
    state.rollback(1)


def test_a_store_that_stays_locked_fails_the_batch(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("states.sql.store.LOCK_SECONDS", 0.05)
    factory = SqlMapState.opaque(url, "t", "word string", "count bigint")
    holder = factory.makeState({}, None, 0, 1)
    holder.beginCommit(1)
    with pytest.raises(FailedException, match="locked"):
        put(factory, 1, {("a",): 1})
    holder.rollback(1)
    put(factory, 1, {("a",): 1})


def test_a_generation_from_another_store_is_refused(url: str) -> None:
    factory = SqlMapState.opaque(url, "t", "word string", "count bigint")
    conf = {"topology.name": "x", "trident.state.name": "t", "trident.lineage": "l", "trident.generation": 3}
    with pytest.raises(StateError, match="the store was replaced"):
        factory.makeState(conf, None, 0, 1).beginCommit(1)
    driver = factory.participant()
    conf["trident.generation"] = driver.open(conf)
    with pytest.raises(StateError, match=r"has not called prepare\(\) yet"):
        factory.makeState(conf, None, 0, 1).beginCommit(1)
    driver.prepare(1, 0, 1)
    state = factory.makeState(conf, None, 0, 1)
    state.beginCommit(1)
    state.commit(1)
    other = factory.makeState({**conf, "trident.lineage": "other"}, None, 0, 1)
    with pytest.raises(StateError, match="belongs to another checkpoint"):
        other.beginCommit(1)


def _child(factory: SqlMapState, txid: int) -> None:
    assert store._STORES == {}  # nothing of the parent's is used or closed
    put(factory, txid, {(f"child{txid}",): txid})


def test_a_forked_child_opens_its_own_connections(url: str) -> None:
    factory = SqlMapState.opaque(url, "t", "word string", "count bigint")
    put(factory, 1, {("a",): 1})
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_child, args=(factory, txid)) for txid in (2, 3)]
    for child in children:
        child.start()
    put(factory, 4, {("b",): 4})
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert set(factory.stored()) == {("a",), ("b",), ("child2",), ("child3",)}


def test_a_non_transactional_state_counts_a_replay_twice(url: str) -> None:
    factory = SqlMapState.nonTransactional(url, "t", "word string", "count bigint")
    state = factory.makeState({}, None, 0, 1)
    for _ in range(2):
        state.beginCommit(1)
        state.multiUpdate([("a",)], [CombinerValueUpdater(Plus(), 1)])
        state.commit(1)
    assert factory.stored() == {("a",): 2}


def test_a_process_that_has_seen_many_stores_keeps_few_files_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else None
    if before is None:
        pytest.skip("this system does not list a process's open files")
    for number in range(100):
        factory = SqlMapState.opaque(f"sqlite:///{tmp_path}/{number}.db", "t", "k string", "v bigint")
        state = factory.makeState({}, None, 0, 1)
        state.beginCommit(1)
        state.multiPut([("a",)], [number])
        state.commit(1)
        assert factory.stored()[("a",)].curr == number
    assert len(list(Path("/proc/self/fd").iterdir())) - before < 150
