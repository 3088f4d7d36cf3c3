"""Keys and values of topics: enums and scalars of NumPy and pandas are written as what they mean."""

from __future__ import annotations

import datetime
import http
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from states.kafka.append.records import UnwritableError, as_bytes, json_texts
from states.kafka.compacted.codec import Codec
from trident_py import Fields
from trident_py.errors import StateError
from trident_py.extras.redis.maps.state import text_of, value_of
from trident_py.state import OpaqueValue, StateType

GET = http.HTTPMethod.GET


def test_equal_keys_have_one_record_in_a_compacted_topic() -> None:
    for declared in ("k", "k string"):
        codec = Codec("t", Fields(declared), Fields("v"))
        assert set(codec.key_texts([["GET", GET, np.str_("GET")]])) == {"GET"}
    untyped = Codec("t", Fields("k"), Fields("v"))
    assert set(untyped.key_texts([[200, http.HTTPStatus.OK, np.int16(200)]])) == {"[200]"}
    assert set(untyped.key_texts([[None, pd.NaT, pd.NA]])) == {"[null]"}
    assert untyped.value_texts([[1, pd.NaT, np.float32(0.5)]], []) == ["1", None, "0.5"]


@pytest.mark.parametrize("key", [1, np.int64(1)])
def test_a_whole_number_is_no_key_beside_decimals(key: Any) -> None:
    with pytest.raises(StateError, match="are two keys"):
        Codec("t", Fields("k decimal(5,2)"), Fields("v")).key_texts([[Decimal(2), key]])


def test_a_number_that_python_does_not_write_is_refused_with_its_row() -> None:
    codec, long = Codec("t", Fields("k"), Fields("v")), 1 << 20_000
    with pytest.raises(StateError, match=r"row 1 of the batch .*: field 'k' .*cannot be written as JSON"):
        codec.key_texts([[1, long]])
    with pytest.raises(StateError, match=r"row 1 of the batch .*: field 'v' .*cannot be written as JSON"):
        codec.value_texts([[1, long]], [["a", "b"]])
    with pytest.raises(StateError, match=r"value <int: a number of 20,001 bits> .*4300 digits"):
        text_of(StateType.OPAQUE, OpaqueValue(1, long, None))
    assert value_of(StateType.OPAQUE, text_of(StateType.OPAQUE, OpaqueValue(1, 1 << 80, None))).curr == 1 << 80


def test_records_hold_what_the_values_mean() -> None:
    values = [pd.NaT, pd.NA, np.int64(1), np.float32(0.5), GET, np.bool_(True), [np.int8(1), pd.NaT]]
    assert json_texts("v", values) == ["null", "null", "1", "0.5", '"GET"', "true", "[1,null]"]
    assert as_bytes("v", [pd.NaT, GET, np.int64(1)]) == [None, b"GET", b"1"]
    assert as_bytes("v", [pd.Timestamp("2026-01-01")]) == [f'"{datetime.datetime(2026, 1, 1).isoformat()}"'.encode()]


@pytest.mark.parametrize("value", [pd.Timestamp(1), [pd.Timestamp(1)], np.array([1])])
def test_what_has_no_exact_text_is_refused_with_its_row(value: Any) -> None:
    with pytest.raises(UnwritableError, match=r"v is .*(nanoseconds|ndarray)") as refused:
        json_texts("v", [1, value])
    assert refused.value.row == 1
