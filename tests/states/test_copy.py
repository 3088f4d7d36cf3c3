"""Both forms of COPY: a table gets the same rows from either, and the binary one only where it can hold them."""

from __future__ import annotations

import time
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from contracts.asking import POSTGRES, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from properties.values import OF_TYPE

from states.columns.arrow import arrow_array, arrow_type
from states.columns.values import _FAMILIES, Column, RefusedValue
from states.sql import AppendState, InsertIgnoreState, RowUpdater
from states.sql.dialects.postgresql import binary
from states.sql.dialects.postgresql.dialect import POSTGRESQL
from states.sql.store import parse_url, store_of
from trident_py import Fields
from trident_py.errors import StateError
from trident_py.model.chunks import Chunk, TupleList
from trident_py.state import SILENT, persist

DDLS = {
    "integer": ("bigint", "int", "smallint", "tinyint"), "double": ("double", "float"), "boolean": ("boolean",),
    "date": ("date",), "timestamp": ("timestamp",), "text": ("string", "varchar(5)"), "json": ("json",),
    "binary": ("binary",),
}  # fmt: skip
PAIRS = [
    (ddl, kind) for family, kinds in binary.KINDS.items() for ddl in DDLS[family] for kind in kinds
    if family != "integer" or Column("v", ddl).bits <= 8 * int(kind[-1])
]  # fmt: skip
TEXTS = OF_TYPE["string"]
OBJECTS = st.dictionaries(st.text(max_size=4), st.none() | st.integers() | st.text(max_size=6), max_size=3)
VALUES = {**OF_TYPE, "varchar(5)": TEXTS, "json": OBJECTS}
few = settings(
    max_examples=settings.default.max_examples // 4, deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
"""For each of many pairs; an example has up to 40 values."""


@pytest.fixture
def forms(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The form of each COPY; however few the rows, it may be the binary one."""
    chosen: list[str] = []
    whole = binary.binary_kinds

    def asked(*given: Any) -> list[str] | None:
        kinds = whole(*given)
        chosen.append("text" if kinds is None else "binary")
        return kinds

    monkeypatch.setattr(binary, "_FEW", 0)
    monkeypatch.setattr("states.sql.dialects.postgresql.bulk.binary_kinds", asked)
    return chosen


def test_every_family_but_decimal_has_a_binary_form() -> None:
    assert set(binary.KINDS) == set(_FAMILIES.values()) - {"decimal"}


def test_a_column_of_each_type_is_created_as_one_that_is_written_in_binary_form() -> None:
    for ddl, kinds in ((ddl, binary.KINDS[family]) for family, ddls in DDLS.items() for ddl in ddls):
        stored = str(POSTGRESQL.storage(Column("v", ddl)).compile(dialect=_dialect())).lower()
        names = {"bigint": "int8", "integer": "int4", "smallint": "int2", "double precision": "float8",
                 "boolean": "bool", "timestamp without time zone": "timestamp"}  # fmt: skip
        stored = stored.partition(" collate")[0].partition("(")[0]
        assert names.get(stored, stored) in kinds, ddl


def _dialect() -> Any:
    from sqlalchemy.dialects import postgresql

    return postgresql.dialect()


@POSTGRES
@pytest.mark.parametrize(("ddl", "kind"), PAIRS)
def test_a_value_is_the_same_in_both_forms(database: str, forms: list[str], ddl: str, kind: str) -> None:
    store = store_of(parse_url(database))
    columns = [Column("n", "bigint"), Column("v", ddl)]
    run(database, f"CREATE TABLE t (n bigint, v {kind})", f"CREATE TABLE u (n bigint, v {kind})")

    @few
    @given(st.lists(st.none() | VALUES[ddl], min_size=1, max_size=40))
    def check(values: list[Any]) -> None:
        kept = [value for value in values if _holds(columns[1], value)]
        arrays = [pa.array(range(len(kept)), pa.int64()), arrow_array(columns[1], columns[1].encode(kept))]
        cut = [[array.slice(0, 3) for array in arrays], [array.slice(3) for array in arrays]]
        if not kept:
            return
        is_text = ddl == "timestamp" and not pa.types.is_timestamp(arrays[1].type)
        with store.writing() as connection:
            connection.execute("TRUNCATE t, u")
            assert POSTGRESQL.load(connection, "t", columns, cut) == len(kept)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(binary, "_FEW", 10_000)
                assert POSTGRESQL.load(connection, "u", columns, cut) == len(kept)
            assert forms[-2:] == ["text" if is_text else "binary", "text"]
            stored = [connection.execute(f"SELECT n, v, v::text FROM {t} ORDER BY n").fetchall() for t in ("t", "u")]
        assert repr(stored[0]) == repr(stored[1])

    check()


def _holds(column: Column, value: Any) -> bool:
    try:
        column.encode([value])
    except RefusedValue:
        return False
    return not (isinstance(value, str) and ("\0" in value or len(value) > (column.sizes or [40])[0]))


@POSTGRES
@pytest.mark.parametrize(
    ("ddl", "kind"),
    [("bigint", "int"), ("bigint", "numeric"), ("string", "char(40)"), ("string", "uuid"), ("double", "real"),
     ("timestamp", "timestamptz"), ("json", "jsonb"), ("string", "word"), ("decimal(9,2)", "numeric")],
)  # fmt: skip
def test_a_table_with_another_type_gets_text(database: str, forms: list[str], ddl: str, kind: str) -> None:
    run(database, "CREATE DOMAIN word AS text", f"CREATE TABLE t (v {kind})")
    column = Column("v", ddl)
    with store_of(parse_url(database)).writing() as connection:
        nothing = [[pa.nulls(3, arrow_type(column))]]
        assert POSTGRESQL.load(connection, "t", [column], nothing) == 3
    assert forms == ["text"]


@POSTGRES
def test_a_type_of_the_same_name_in_another_schema_gets_text(database: str, forms: list[str]) -> None:
    run(database, "CREATE SCHEMA s", "CREATE DOMAIN s.int8 AS text", "CREATE TABLE t (v s.int8)")
    with store_of(parse_url(database)).writing() as connection:
        assert POSTGRESQL.load(connection, "t", [Column("v", "bigint")], [[pa.array([5])]]) == 1
    assert forms == ["text"] and run(database, "SELECT v FROM t") == [("5",)]


@POSTGRES
def test_times_of_which_only_some_have_a_zone_get_text(database: str, forms: list[str]) -> None:
    run(database, "CREATE TABLE t (v timestamp)")
    column = Column("v", "timestamp")
    times = arrow_array(column, ["2026-01-02 03:04:05", "2026-01-02 03:04:05+00:00"])
    with store_of(parse_url(database)).writing() as connection:
        assert POSTGRESQL.load(connection, "t", [column], [[times]]) == 2
    assert forms == ["text"] and run(database, "SELECT count(DISTINCT v) FROM t") == [(1,)]


@POSTGRES
def test_a_table_that_is_altered_meanwhile_gets_the_values_and_not_the_bytes(database: str, forms: list[str]) -> None:
    """A bigint's eight bytes would be a double, another one."""
    run(database, "CREATE TABLE t (v bigint)")
    loading = Thread(target=_load_five, args=(database,))
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 't'::regclass"
    with store_of(parse_url(database)).writing() as connection:
        connection.execute("ALTER TABLE t ALTER v TYPE double precision")
        loading.start()
        deadline = time.monotonic() + 30
        while run(database, waiting) == [(0,)] and time.monotonic() < deadline:
            time.sleep(0.01)
    loading.join()
    assert forms == ["text"] and run(database, "SELECT v FROM t") == [(5.0,)]


def _load_five(database: str) -> None:
    with store_of(parse_url(database)).writing() as connection:
        POSTGRESQL.load(connection, "t", [Column("v", "bigint")], [[pa.array([5])]])


@POSTGRES
def test_a_user_who_may_only_insert_and_read_can_copy(database: str, forms: list[str]) -> None:
    """The lock asks for no right that COPY does not ask for."""
    run(database, "CREATE TABLE t (v bigint)")
    with store_of(parse_url(database)).writing() as connection:
        for text in ("CREATE ROLE clerk", "GRANT INSERT, SELECT ON t TO clerk", "SET LOCAL ROLE clerk"):
            connection.execute(text)
        assert POSTGRESQL.load(connection, "t", [Column("v", "bigint")], [[pa.array([5])]]) == 1
        for text in ("RESET ROLE", "DROP OWNED BY clerk", "DROP ROLE clerk"):
            connection.execute(text)
    assert forms == ["binary"] and run(database, "SELECT v FROM t") == [(5,)]


@POSTGRES
def test_no_parts_are_no_rows(database: str) -> None:
    run(database, "CREATE TABLE t (v bigint)")
    with store_of(parse_url(database)).writing() as connection:
        assert POSTGRESQL.load(connection, "t", [Column("v", "bigint")], []) == 0


def _tuples(fields: Fields, rows: list[tuple]) -> TupleList:
    made = TupleList(fields)
    made.append(Chunk.of_rows(fields, rows))
    return made


@POSTGRES
def test_thousands_of_rows_of_a_state_go_in_binary_form(database: str, forms: list[str]) -> None:
    """Whole states, in many blocks: both what goes past the table's keys and what goes to the table."""
    fields = Fields("k string", "v double", "b binary")
    rows = [(f"key {i}", i / 3, None if i % 7 == 0 else bytes([i % 256]) * 900) for i in range(5_000)]
    factory = InsertIgnoreState(database, "t", "k", ["k string", "v double", "b binary"])
    for txid, part in ((1, rows[::2]), (2, rows)):
        persist(factory.makeState({}, None, 0, 1), txid, RowUpdater(), _tuples(fields, part), SILENT)
    stored = run(database, "SELECT k, v, b FROM t")
    assert sorted(stored, key=str) == sorted(rows, key=str)
    assert set(forms) == {"binary"} and len(forms) >= 3


@POSTGRES
def test_a_row_that_the_table_refuses_is_named_in_either_form(database: str, forms: list[str]) -> None:
    fields = Fields("v bigint")
    run(database, "CREATE TABLE t (v bigint CHECK (v <> 1234))")
    state = AppendState(database, "t", ["v bigint"]).makeState({}, None, 0, 1)
    with pytest.raises(StateError, match="row 1234 of the batch"):
        persist(state, 1, RowUpdater(), _tuples(fields, [(i,) for i in range(2_000)]), SILENT)
    assert "binary" in forms and run(database, "SELECT count(*) FROM t") == [(0,)]
