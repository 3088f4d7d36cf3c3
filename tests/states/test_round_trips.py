"""What comes out is what went in, or an error: every type in every store.

A run of many examples: ROUND_TRIPS=20000 python -m pytest tests/states/test_round_trips.py --hypothesis-seed=1
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from typing import Any

from asking import run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from properties.values import OF_TYPE, is_same

from states.kafka.codec import Codec
from states.sql import AppendState, RowUpdater, SqlMapState
from trident_py import Fields, TridentError
from trident_py.chunks import Chunk, TupleList
from trident_py.operations.base import TridentCollector

EXAMPLES = int(os.environ.get("ROUND_TRIPS", settings.default.max_examples))
often = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
in_each = settings(often, max_examples=max(1, EXAMPLES // 4))  # of three databases
TYPES = [ddl for ddl in OF_TYPE if ddl != "timestamp_ntz"]
VALUES = st.sampled_from(TYPES).flatmap(
    lambda ddl: st.tuples(st.just(ddl), st.lists(OF_TYPE[ddl], min_size=1, max_size=4))
)


def check(ddl: str, values: list[Any], out: Callable[[list[Any]], list[Any]]) -> None:
    """All come out as they went in, or it is an error; then the same for each alone."""
    for given_values in (values, *([each] for each in values)):
        try:
            found = out(given_values)
        except TridentError:
            continue
        assert len(found) == len(given_values)
        for before, after in zip(given_values, found, strict=True):
            assert stored_same(ddl, before, after), (ddl, before, after)


def stored_same(ddl: str, before: Any, after: Any) -> bool:
    """A database's column of a float is a double, its times are in UTC; not all know -0.0."""
    if isinstance(before, datetime.datetime) and before.tzinfo is not None and after.tzinfo is None:
        after = after.replace(tzinfo=datetime.UTC)
    if ddl == "float" and is_same("double", before, after):
        return True
    return is_same(ddl, before, after) or (after == 0 and is_same(ddl, before, -after))


def table(ddl: str) -> str:
    return "t_" + "".join(each if each.isalnum() else "_" for each in ddl)


@in_each
@given(VALUES)
def test_a_value_of_a_map_in_a_database(database: str, drawn: tuple[str, list[Any]]) -> None:
    ddl, values = drawn
    factory = SqlMapState.nonTransactional(database, f"{table(ddl)}_map", "n bigint", f"v {ddl}")

    def out(rows: list[Any]) -> list[Any]:
        state = factory.makeState({}, None, 0, 1)
        keys = [(at,) for at in range(len(rows))]
        put(state, keys, rows)
        return list(state.multiGet(keys))

    check(ddl, values, out)


def put(state: Any, keys: list[tuple], values: list[Any]) -> None:
    state.beginCommit(None)
    try:
        state.multiPut(keys, values)
        state.commit(None)
    except BaseException:
        state.rollback(None)
        raise


@in_each
@given(VALUES)
def test_a_key_of_a_map_in_a_database(database: str, drawn: tuple[str, list[Any]]) -> None:
    ddl, values = drawn
    factory = SqlMapState.nonTransactional(database, f"{table(ddl)}_key", f"k {ddl}", "n bigint")

    def out(rows: list[Any]) -> list[Any]:
        state = factory.makeState({}, None, 0, 1)
        put(state, [(rows[0],)], [7])
        assert list(state.multiGet([(rows[0],)])) == [7]
        [key] = factory.stored()
        run(database, f"DELETE FROM {table(ddl)}_key")
        return [key[0], *rows[1:]]

    check(ddl, values, out)


@in_each
@given(VALUES, st.booleans())
def test_a_row_in_a_database(database: str, drawn: tuple[str, list[Any]], as_columns: bool) -> None:
    ddl, values = drawn
    name = f"{table(ddl)}_rows"
    factory = AppendState(database, name, ["n bigint", f"v {ddl}"])

    def out(rows: list[Any]) -> list[Any]:
        state = factory.makeState({}, None, 0, 1)
        fields = Fields("n bigint", f"v {ddl}") if as_columns else Fields("n", "v")
        tuples = TupleList(fields)
        tuples.append(Chunk.of_rows(fields, list(enumerate(rows))))
        state.beginCommit(None)
        try:
            RowUpdater().updateState(state, tuples, TridentCollector(lambda _: None))
            state.commit(None)
        except BaseException:
            state.rollback(None)
            raise
        found = dict(factory.stored())
        run(database, f"DELETE FROM {name}")
        return [value for _, value in sorted(found, key=lambda row: row[0])]

    check(ddl, values, out)


@often
@given(VALUES, st.booleans(), st.booleans())
def test_a_key_and_a_value_of_a_topic(drawn: tuple[str, list[Any]], as_key: bool, several: bool) -> None:
    ddl, values = drawn
    fields, other = Fields(f"v {ddl}", *(["w bigint"] if several else [])), Fields("o bigint")
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
