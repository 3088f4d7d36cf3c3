"""What comes out is what went in, or an error: every type in every store.

A run of many examples: ROUND_TRIPS=20000 python -m pytest tests/states/test_round_trips.py --hypothesis-seed=1
An example is one value in one column; a database gets many of them in one round trip.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
from collections.abc import Callable
from typing import Any

import pytest
from contracts.asking import is_mariadb, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from properties.values import DOUBLES, INSTANTS, INTEGERS, OF_TYPE, TEXT_EDGES, anything, is_same

from states.kafka.compacted.codec import Codec
from states.sql import AppendState, InsertIgnoreState, RowUpdater, SqlMapState
from trident_py import Fields, TridentError
from trident_py.errors import StateError
from trident_py.extras.redis.maps.state import text_of, value_of
from trident_py.model.canonical import identity
from trident_py.model.chunks import Chunk, TupleList
from trident_py.state import SILENT, StateType

EXAMPLES = int(os.environ.get("ROUND_TRIPS", max(200, settings.default.max_examples)))
AT_ONCE = 25
often = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
in_each = settings(often, max_examples=EXAMPLES // AT_ONCE)  # of three databases
TYPES = list(OF_TYPE)
INTEGRAL = ("bigint", "int", "smallint", "tinyint")


def values_of(least: int, most: int) -> st.SearchStrategy[tuple[str, list[Any]]]:
    """A type, and values of it."""
    lists = {ddl: st.tuples(st.just(ddl), st.lists(OF_TYPE[ddl], min_size=least, max_size=most)) for ddl in TYPES}
    return st.sampled_from(TYPES).flatmap(lists.__getitem__)


FEW, MANY = values_of(1, 4), values_of(AT_ONCE, 2 * AT_ONCE)


def check(ddl: str, values: list[Any], out: Callable[[list[Any]], list[Any]]) -> None:
    """All come out as they went in, or it is an error; then each half of them, down to the one that is refused."""
    try:
        found = out(values)
    except TridentError:
        if len(values) > 1:
            check(ddl, values[: len(values) // 2], out)
            check(ddl, values[len(values) // 2 :], out)
        return
    assert len(found) == len(values)
    for before, after in zip(values, found, strict=True):
        assert stored_same(ddl, before, after), (ddl, before, after)


def column(ddl: str) -> str:
    """The type of a column for values of a type: one holds times with a zone, or those without."""
    return "timestamp" if ddl == "timestamp_ntz" else ddl


def stored_same(ddl: str, before: Any, after: Any) -> bool:
    """A database's column of a float is a double; see WITHOUT_SIGN."""
    if ddl == "float" and is_same("double", before, after):
        return True
    return is_same(ddl, before, after) or (after == 0 and is_same(ddl, before, -after))


WITHOUT_SIGN = {"double": {"-0.0"}, "float": {"-0.0", "-5e-324"}}  # which is -0.0 in 32 bits
"""The one exception: of these columns a -0.0 comes back as the equal 0.0. MySQL keeps it, MariaDB does not."""


def test_only_the_sign_of_a_zero_is_lost_and_only_where_it_is_documented(database: str) -> None:
    """Each edge of each type in a row of its own: what comes back as another value, with nothing refused."""
    other: dict[str, set[str]] = {}
    for ddl in (each for each in TYPES if not each.startswith("decimal")):
        factory = AppendState(database, f"{table(ddl)}_edges", ["n bigint", f"v {column(ddl)}"])
        for number, value in enumerate(EDGES.get(ddl, [])):
            with contextlib.suppress(TridentError):
                append(factory, Fields("n bigint", f"v {ddl}"), [(number, value)])
        for number, after in factory.stored():
            before = EDGES[ddl][number]
            if not (is_same(ddl, before, after) or (ddl == "float" and is_same("double", before, after))):
                other.setdefault(ddl, set()).add(repr(before))
    keeps = database.startswith("postgresql") or ("mysql" in database and not is_mariadb(database))
    assert other == ({} if keeps else WITHOUT_SIGN)


@pytest.mark.parametrize("ddl", ["double", "float"])
def test_a_key_of_minus_zero_is_refused_by_every_store(database: str, ddl: str) -> None:
    """A key may not lose its sign: 0.0 and -0.0 are two groups."""
    for make in (SqlMapState.opaque, SqlMapState.nonTransactional):
        factory = make(database, make.__name__, f"k {ddl}")
        state = factory.makeState({}, None, 0, 1)
        for keys in ([(-0.0,)], [(0.0,), (-0.0,)]):
            with pytest.raises(StateError, match=r"cannot hold -0\.0 .*it would become 0\.0"):
                put(state, keys, [1] * len(keys))
        assert factory.stored() == {}
    rows = InsertIgnoreState(database, "i", "k", [f"k {ddl}", "n bigint"])
    with pytest.raises(StateError, match=r"cannot hold -0\.0"):
        append(rows, Fields(f"k {ddl}", "n bigint"), [(0.0, 1), (-0.0, 2)])
    assert rows.stored() == {}
    with pytest.raises(StateError, match=r"cannot hold -0\.0"):
        Codec("t", Fields(f"k {ddl}"), Fields("n bigint")).key_texts([[0.0, -0.0]])


EDGES: dict[str, list[Any]] = {
    "double": DOUBLES, "float": DOUBLES, "string": TEXT_EDGES, **dict.fromkeys(INTEGRAL, INTEGERS),
    "timestamp": [each.replace(tzinfo=datetime.UTC) for each in INSTANTS], "timestamp_ntz": INSTANTS,
}  # fmt: skip


def append(factory: Any, fields: Fields, rows: list[tuple]) -> None:
    """The rows in one transaction, or an error and none."""
    tuples = TupleList(fields)
    tuples.append(Chunk.of_rows(fields, rows))
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(None)
    try:
        RowUpdater().updateState(state, tuples, SILENT)
        state.commit(None)
    except BaseException:
        state.rollback(None)
        raise


def table(ddl: str) -> str:
    return "t_" + "".join(each if each.isalnum() else "_" for each in ddl)


TXIDS = itertools.count(1)


@in_each
@given(MANY, st.sampled_from(["nonTransactional", "transactional", "opaque"]), st.booleans())
def test_a_value_of_a_map_in_a_database(database: str, drawn: tuple[str, list[Any]], kind: str, several: bool) -> None:
    """Read by a state that has not written it, as after a restart; of an opaque one the previous value, too."""
    ddl, values = drawn
    value = [f"v {column(ddl)}", "w bigint"][: 1 + several]
    factory = getattr(SqlMapState, kind)(database, f"{table(ddl)}_{kind}_{several}", "n bigint", value)

    def out(rows: list[Any]) -> list[Any]:
        keys = [(at,) for at in range(len(rows))]
        for _ in range(2):
            put(factory.makeState({}, None, 0, 1), keys, [(row, 1) if several else row for row in rows], next(TXIDS))
        found = factory.makeState({}, None, 0, 1).multiGet(keys)
        stored = factory.stored()
        for key, read in zip(keys, found, strict=True):
            kept = (stored[key],) if kind == "nonTransactional" else stored[key][1:]
            assert {repr(identity(each)) for each in kept} == {repr(identity(read))}
        return [read[0] if several else read for read in found]

    check(ddl, values, out)


def put(state: Any, keys: list[tuple], values: list[Any], txid: int | None = None) -> None:
    state.beginCommit(txid)
    try:
        state.multiPut(keys, values)
        state.commit(txid)
    except BaseException:
        state.rollback(txid)
        raise


@in_each
@given(MANY)
def test_a_key_of_a_map_in_a_database(database: str, drawn: tuple[str, list[Any]]) -> None:
    ddl, values = drawn
    values = list({repr(identity(each)): each for each in values}.values())
    factory = SqlMapState.nonTransactional(database, f"{table(ddl)}_key", f"k {column(ddl)}", "n bigint")

    def out(rows: list[Any]) -> list[Any]:
        state = factory.makeState({}, None, 0, 1)
        keys = [(row,) for row in rows]
        put(state, keys, list(range(len(rows))))
        assert list(factory.makeState({}, None, 0, 1).multiGet(keys)) == list(range(len(rows)))
        found = sorted(factory.stored().items(), key=lambda row: row[1])
        run(database, f"DELETE FROM {table(ddl)}_key")
        return [key for (key,), _ in found]

    check(ddl, values, out)


@in_each
@given(MANY, st.booleans())
def test_a_row_in_a_database(database: str, drawn: tuple[str, list[Any]], as_columns: bool) -> None:
    ddl, values = drawn
    name = f"{table(ddl)}_rows"
    factory = AppendState(database, name, ["n bigint", f"v {column(ddl)}"])

    def out(rows: list[Any]) -> list[Any]:
        append(factory, Fields("n bigint", f"v {ddl}") if as_columns else Fields("n", "v"), list(enumerate(rows)))
        found = dict(factory.stored())
        run(database, f"DELETE FROM {name}")
        return [value for _, value in sorted(found, key=lambda row: row[0])]

    check(ddl, values, out)


@often
@given(FEW, st.booleans(), st.booleans())
def test_a_key_and_a_value_of_a_topic(drawn: tuple[str, list[Any]], as_key: bool, several: bool) -> None:
    ddl, values = drawn
    fields, other = Fields(f"v {column(ddl)}", *(["w bigint"] if several else [])), Fields("o bigint")
    codec = Codec("t", fields if as_key else other, other if as_key else fields)

    def out(rows: list[Any]) -> list[Any]:
        columns = [rows, *([list(range(len(rows)))] if several else [])]
        if as_key:
            texts = codec.key_texts(columns)
            return [codec.key(each.encode() if isinstance(each, str) else each)[0] for each in texts]
        written = [None if each is None else each.encode() for each in codec.value_texts(columns, [])]
        found = codec.values(written)
        return [each[0] for each in found] if several else found

    check(ddl, values, out)


@often
@given(st.lists(anything, max_size=3), st.booleans(), st.sampled_from(StateType))
def test_a_value_of_a_map_in_redis(parts: list[Any], nested: bool, kind: StateType) -> None:
    for value in [parts] if nested else parts:
        stored = {StateType.TRANSACTIONAL: (7, value), StateType.OPAQUE: (7, value, value)}.get(kind, value)
        with contextlib.suppress(TridentError):
            found = value_of(kind, text_of(kind, stored))
            assert repr(identity(found)) == repr(identity(stored))
