"""A column of Arrow values and the same column of Python values: one answer."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from states.columns.arrow import arrow_array, encode_column, gather_columns, refusals
from states.columns.values import Column, RefusedValue
from trident_py.model.chunks import Chunk, TupleList
from trident_py.tuples import Fields

DDLS = [
    "tinyint", "smallint", "int", "bigint", "double", "string", "varchar(3)", "boolean", "binary", "date", "timestamp",
    "decimal", "decimal(5,2)", "decimal(50,4)",
]  # fmt: skip
ALWAYS = {  # the values that matter, each with Arrow types that hold it
    "integers": (
        st.sampled_from([0, 1, -1, 127, 128, -128, -129, 32768, 2**31, -(2**31), 2**62]),
        [pa.int64(), pa.decimal128(25, 0)],
    ),
    "small": (st.integers(-128, 127), [pa.int8(), pa.int16(), pa.int32(), pa.float64(), pa.float32()]),
    "floats": (
        st.floats(allow_nan=True) | st.sampled_from([0.0, -0.0, 1.5, float("inf"), float("nan")]),
        [pa.float64()],
    ),
    "texts": (
        st.text(max_size=5) | st.sampled_from(["", "\0", "abc", "abcd", "𝔘𝔘𝔘"]),
        [pa.string(), pa.large_string()],
    ),
    "booleans": (st.booleans(), [pa.bool_()]),
    "bytes": (st.binary(max_size=5), [pa.binary(), pa.large_binary()]),
    "dates": (st.dates(), [pa.date32()]),
    "times": (st.datetimes(), [pa.timestamp("us"), pa.timestamp("us", "UTC")]),
    "zoned": (
        st.datetimes(datetime.datetime(2, 1, 1), datetime.datetime(9998, 1, 1)),
        [pa.timestamp("us", "+02:00"), pa.timestamp("us", "America/New_York")],
    ),
    "decimals": (
        st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-2000, max_value=2000),
        [pa.decimal128(20, 3), pa.decimal256(60, 3)],
    ),
}  # fmt: skip


@st.composite
def cases(draw: Any) -> tuple[Column, pa.Array]:
    values, types = ALWAYS[draw(st.sampled_from(sorted(ALWAYS)))]
    without = draw(st.sampled_from([(), ("NUL",), ("infinity",), ("zone",)]))
    column = Column("c", draw(st.sampled_from(DDLS)), draw(st.booleans()), without)
    return column, pa.array(draw(st.lists(st.none() | values, max_size=5)), draw(st.sampled_from(types)))


@settings(max_examples=settings.default.max_examples * 5)
@given(cases())
def test_a_column_of_arrow_is_taken_or_refused_as_the_same_values_are(case: tuple[Column, pa.Array]) -> None:
    column, array = case
    try:
        wanted: Any = arrow_array(column, column.encode(array.to_pylist()))
    except RefusedValue as why:
        with pytest.raises(RefusedValue) as told:
            encode_column(column, array)
        assert (told.value.reason, told.value.index) == (why.reason, why.index)
        assert refusals(column, array)[why.index] == why.reason
    else:
        found = encode_column(column, array)
        assert found.type == wanted.type and repr(found.to_pylist()) == repr(wanted.to_pylist())
        assert refusals(column, array) == {}


def test_a_date_that_python_has_not_is_refused() -> None:
    for array in (pa.array([-800_000], pa.date32()), pa.array([1 << 62], pa.timestamp("us"))):
        with pytest.raises(RefusedValue, match="year"):
            encode_column(Column("c", "date" if pa.types.is_date32(array.type) else "timestamp"), array)


def test_chunks_are_gathered_whether_typed_or_not() -> None:
    fields = Fields("a", "b")
    tuples = TupleList(fields)
    tuples.append(Chunk({"a": pa.array(["x", "y"]), "b": [1, None]}, 2))
    tuples.append(Chunk({"a": pa.array(["z"]), "b": pa.array([3])}, 1))
    b, a = gather_columns(tuples, fields, ["b", "a"]) or []
    assert (b, a.to_pylist(), a.type) == ([1, None, 3], ["x", "y", "z"], pa.large_string())
    assert gather_columns([(1, 2), (3, 4)], fields, ["b"]) == [[2, 4]]
    assert gather_columns([(1, 2), (3,)], fields, ["b"]) is None


def test_every_refused_value_is_found() -> None:
    values = [datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1), None, "2026-02-31", decimal.Decimal(1)]
    assert refusals(Column("d", "date"), values) == {
        1: "it has a time of day", 3: "it is not a date", 4: "it is not a date"
    }  # fmt: skip
