"""Columnar chunks and the bytes they travel in."""

from __future__ import annotations

import datetime
import decimal
import http
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_py import Fields, TridentError
from trident_py.model.chunks import (
    CHUNK_ROWS,
    Chunk,
    TupleList,
    arrow_type,
    as_arrow,
    concat,
    convert,
    exact_cast,
    to_list,
)

ROWS = [(1, "a"), (2, "b"), (3, None)]
NUMBERS = st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False)
VALUES = st.none() | NUMBERS | st.text() | st.binary() | st.tuples(st.integers(), st.text())


def test_rows_go_in_and_come_out() -> None:
    chunk = Chunk.of_rows(Fields("n", "w"), ROWS)
    assert chunk.rows(["w", "n"]) == [("a", 1), ("b", 2), (None, 3)]
    assert chunk.rows([]) == [(), (), ()]
    assert [t.getFields() for t in chunk.tuples(Fields("w"))] == [Fields("w")] * 3
    assert chunk.tuples(Fields()) == [()] * 3


def test_only_wanted_columns_are_made() -> None:
    assert list(Chunk.of_rows(Fields("n", "w"), ROWS, ["w"]).columns) == ["w"]
    assert list(Chunk.of_rows(Fields("n", "w"), ROWS).only(["n"]).columns) == ["n"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(VALUES, VALUES), max_size=8), st.booleans())
def test_a_chunk_survives_encoding_with_the_types_of_its_values(rows: list[tuple], compressed: bool) -> None:
    chunk = Chunk.decode(Chunk.of_rows(Fields("a", "b"), rows).encode(compressed))
    assert list(map(repr, chunk.rows(["a", "b"]))) == list(map(repr, rows))


def test_compressed_numbers_take_less() -> None:
    chunk = Chunk({"n": pa.array(range(10_000))}, 10_000)
    assert len(chunk.encode(compressed=True)) < len(chunk.encode()) / 4
    assert Chunk.decode(chunk.encode(compressed=True)).columns["n"].equals(chunk.columns["n"])


def test_a_chunk_without_columns_keeps_its_length() -> None:
    assert Chunk.decode(Chunk({}, 5).encode()).length == 5
    assert Chunk({}, 5).take([0, 0, 4]).length == 3


@pytest.mark.parametrize("fields", [Fields("n bigint", "w string"), Fields("n", "w"), Fields("n bigint", "w")])
def test_take_repeats_and_reorders_rows_of_any_columns(fields: Fields) -> None:
    chunk = Chunk.of_rows(fields, ROWS).take([2, 0, 0])
    assert chunk.rows(fields) == [ROWS[2], ROWS[0], ROWS[0]]


def test_slices_cover_the_chunk_in_order() -> None:
    chunk = Chunk.of_rows(Fields("n bigint", "m"), [(i, i) for i in range(10)])
    parts = list(chunk.slices(4))
    assert [part.length for part in parts] == [4, 4, 2]
    assert [row for part in parts for row in part.rows(["n", "m"])] == [(i, i) for i in range(10)]
    assert list(chunk.slices(10)) == [chunk]


def test_concat_keeps_arrow_columns_and_mixes_others() -> None:
    one, two = (Chunk.of_rows(Fields("n bigint"), [(i,)]) for i in (1, 2))
    assert isinstance(concat([one, two]).columns["n"], pa.Array)
    mixed = concat([one, Chunk.of_rows(Fields("n"), [("x",)])])
    assert (mixed.rows(["n"]), mixed.length) == ([(1,), ("x",)], 2)
    assert concat([one]) is one


def test_s20_a_missing_value_fails_where_it_is_read_also_after_a_journey() -> None:
    chunk = Chunk.decode(Chunk.of_rows(Fields("a", "b"), [(1, 2), (3,)]).encode())
    assert chunk.rows(["a"]) == [(1,), (3,)]
    with pytest.raises(TridentError, match="none for field 'b'"):
        chunk.rows(["b"])
    with pytest.raises(TridentError, match="emitted 3 values for the 1 fields"):
        Chunk.of_rows(Fields("a"), [(1, 2, 3)])


@pytest.mark.parametrize(
    ("ddl", "value"),
    [("string", "x"), ("bigint", 2**40), ("int", 5), ("double", 1.5), ("boolean", True), ("binary", b"x"),
     ("date", datetime.date(2013, 11, 3)), ("timestamp_ntz", datetime.datetime(2013, 11, 3, 1)),
     ("decimal(10, 2)", decimal.Decimal("1.25"))],
)  # fmt: skip
def test_a_typed_column_holds_values_of_its_type_and_null(ddl: str, value: Any) -> None:
    column = convert([value, None], ddl, "f")
    assert isinstance(column, pa.Array) and column.type == arrow_type(ddl)
    assert column.to_pylist() == [value, None]


@pytest.mark.parametrize(
    ("ddl", "value"),
    [("string", 1), ("bigint", "1"), ("bigint", 1.0), ("bigint", True), ("double", 1), ("boolean", 1), ("int", 2**40)],
)
def test_a_value_that_the_type_cannot_hold_exactly_is_named(ddl: str, value: Any) -> None:
    with pytest.raises(TridentError, match=f"field 'f' is declared {ddl}"):
        convert([None, value], ddl, "f")


def test_an_unknown_type_is_named_with_those_that_exist() -> None:
    with pytest.raises(TridentError, match="unknown field type 'text'; known: bigint"):
        arrow_type("text")


@pytest.mark.parametrize("ddl", ["decimal(39)", "decimal(ten)", "decimal(2,5)", "decimal(10,-2)", "decimal(0)"])
def test_a_decimal_of_sizes_that_do_not_exist_is_unknown(ddl: str) -> None:
    with pytest.raises(TridentError, match="unknown field type 'decimal"):
        arrow_type(ddl)


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")], ids=str)
@pytest.mark.parametrize("day", [-719_163, 2_932_897])
def test_a_day_of_a_file_that_python_does_not_have_is_told(kind: pa.DataType, day: int) -> None:
    """Arrow has the years 0 and 10000, as CSV and Parquet may."""
    days = pa.array([None, day], pa.int32())
    column = days.cast(kind) if kind == pa.date32() else pa.array([None, day * 86_400_000_000]).cast(kind)
    with pytest.raises(TridentError, match="a date or time is outside the years 1 to 9999"):
        Chunk({"at": column}, 2).pylist("at")


@pytest.mark.parametrize(("day", "hours"), [(datetime.datetime.min, 1), (datetime.datetime.max, -1)])
def test_a_time_whose_utc_python_does_not_have_is_told(day: datetime.datetime, hours: int) -> None:
    """It was an OverflowError in whatever read it."""
    column = [None, day.replace(tzinfo=datetime.UTC)]
    assert to_list(convert(column, "timestamp", "f")) == column
    bad = day.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=hours)))
    with pytest.raises(TridentError, match="field 'f' is declared timestamp, but a time is outside the years 1 to"):
        convert([*column, bad], "timestamp", "f")


@pytest.mark.parametrize("column", [[1, "a"], [1, True], [1, 1.0], [2**70], [(1,)], ["\ud800"], [object()]])
def test_a_column_that_arrow_would_change_is_left_alone(column: list) -> None:
    assert as_arrow(column) is None


def test_a_tuple_list_reads_like_a_list() -> None:
    tuples = TupleList(Fields("n"))
    tuples.append(Chunk.of_rows(Fields("n", "x"), [(i, 0) for i in range(CHUNK_ROWS + 3)]))
    tuples.append(Chunk.of_rows(Fields("n"), [("last",)]))
    assert len(tuples) == CHUNK_ROWS + 4
    assert [tuples[0], tuples[CHUNK_ROWS], tuples[-1], tuples[-2]] == [
        (0,),
        (CHUNK_ROWS,),
        ("last",),
        (CHUNK_ROWS + 2,),
    ]
    assert tuples[1:3] == [(1,), (2,)] and list(tuples)[-1] == ("last",)
    with pytest.raises(IndexError):
        tuples[len(tuples)]


MEANT: list[tuple[str, Any, Any]] = [
    ("string", np.str_("a"), "a"), ("string", http.HTTPMethod.GET, "GET"), ("bigint", np.int8(1), 1),
    ("bigint", http.HTTPStatus.OK, 200), ("double", np.float32(0.5), 0.5), ("boolean", np.bool_(True), True),
    ("binary", bytearray(b"a"), b"a"), ("date", np.datetime64("2026-01-01"), datetime.date(2026, 1, 1)),
    ("timestamp_ntz", pd.Timestamp("2026-01-01"), datetime.datetime(2026, 1, 1)),
    ("decimal(5,2)", np.int64(1), decimal.Decimal(1)),
    ("timestamp", pd.Timestamp("2026-01-01", tz="UTC"), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)),
]  # fmt: skip


@pytest.mark.parametrize(("ddl", "value", "wanted"), MEANT)
def test_scalars_of_numpy_and_pandas_are_what_they_mean_in_a_typed_field(ddl: str, value: Any, wanted: Any) -> None:
    nulls = [None, pd.NaT, pd.NA, np.datetime64("NaT")]
    assert to_list(convert([value, *nulls], ddl, "v")) == [wanted, None, None, None, None]


STRANGE = [pd.Timestamp(1), np.array([1]), np.timedelta64(1, "ns"), np.datetime64("20000-01-01")]


@pytest.mark.parametrize("ddl", [ddl for ddl, _, _ in MEANT])
@pytest.mark.parametrize("value", STRANGE)
def test_what_a_typed_field_does_not_hold_is_refused_by_name(ddl: str, value: Any) -> None:
    with pytest.raises(TridentError, match="field 'v' is declared"):
        convert([value], ddl, "v")


@pytest.mark.parametrize("bytes_", [pa.binary(), pa.large_binary(), pa.binary(1)], ids=str)
@pytest.mark.parametrize("wanted", [pa.int64(), pa.float64(), pa.bool_(), pa.decimal128(5, 0)], ids=str)
def test_bytes_are_never_parsed_as_numbers(bytes_: pa.DataType, wanted: pa.DataType) -> None:
    with pytest.raises(TridentError, match="field 'v'"):
        exact_cast(pa.array([b"1"], bytes_), wanted, "v")
