"""Values of every type and its edges, and when a value that came out is the one that went in."""

from __future__ import annotations

import datetime
import decimal
import math
import struct
from typing import Any

from hypothesis import strategies as st

LATER = datetime.timezone(datetime.timedelta(hours=5, minutes=45))
TEXT_EDGES = [
    "",
    "\0",
    "a\0b",
    "\ud800",
    "\udfffx",
    "\r\n",
    '"',
    '","',
    "\\N",
    "NA",
    "null",
    "\ufeff",
    " x ",
    "é",
    "e\u0301",
    "𝔘",
    "\u2028",
]
INTEGERS = [0, -1, 1, 2**7, -(2**7), 2**15, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 10**40]
DOUBLES = [
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    1.7976931348623157e308,
    2.0**53 + 2,
    0.1,
    1e22,
    3.4e38,
    1e39,
    1e-46,
]
DECIMALS = [
    "0", "-0", "0.00", "1.10", "1E+2", "1E-5", "-0.005", "1234567890123456.78", "9" * 38, "9007199254740993", "1e-400",
    "123456789012345678901234567890.12345678", "0.1000000000000000055511151231257827",
]  # fmt: skip
INSTANTS = [
    datetime.datetime.min, datetime.datetime.max, datetime.datetime(1970, 1, 1), datetime.datetime(1582, 10, 10, 1),
    datetime.datetime(2013, 11, 3, 6, 0, 0, 1), datetime.datetime(1900, 1, 1),
]  # fmt: skip


def _zoned(naive: datetime.datetime) -> datetime.datetime:
    return naive.replace(tzinfo=datetime.UTC)


texts = st.sampled_from(TEXT_EDGES) | st.text(st.characters(), max_size=6)
naive = st.sampled_from(INSTANTS) | st.datetimes()
zoned = naive.map(_zoned) | st.datetimes(datetime.datetime(2, 1, 1), datetime.datetime(9998, 1, 1)).map(
    lambda t: t.replace(tzinfo=LATER)
)
numbers = (
    st.sampled_from(DECIMALS).map(decimal.Decimal)
    | st.decimals(allow_nan=False, allow_infinity=False, places=2)
    | st.decimals(-(10**9), 10**9, places=5)
)
integers = st.sampled_from(INTEGERS) | st.integers()
doubles = st.sampled_from(DOUBLES) | st.floats()

OF_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "string": texts, "bigint": integers, "int": integers, "smallint": integers, "tinyint": integers, "double": doubles,
    "float": doubles, "boolean": st.booleans(), "binary": st.binary(max_size=6),
    "date": st.sampled_from([datetime.date.min, datetime.date.max, datetime.date(1582, 10, 10)]) | st.dates(),
    "timestamp": zoned, "timestamp_ntz": naive,
    "decimal(38,18)": numbers, "decimal(18,2)": numbers, "decimal(5,5)": numbers, "decimal(10,0)": numbers,
}  # fmt: skip
anything: st.SearchStrategy[Any] = st.one_of(
    st.none(), texts, integers, doubles, st.booleans(), st.binary(max_size=4), zoned, naive, numbers
)


def is_same(ddl: str, before: Any, after: Any) -> bool:
    """Whether a field of this type ("": none) gives back what went in. A decimal is its value, an instant its moment,
    ``float`` the nearest number of 32 bits."""
    if before is None or after is None:
        return before is after
    if ddl in ("float", "double") and type(before) is int:
        before = float(before)
    if ddl == "float":
        before = struct.unpack("f", struct.pack("f", before))[0] if math.isfinite(before) else before
    if ddl.startswith("decimal"):
        return type(after) is decimal.Decimal and after == decimal.Decimal(before)
    if type(before) is float:
        return type(after) is float and repr(before) == repr(after)
    if isinstance(before, datetime.datetime):
        return (
            type(after) is datetime.datetime and (before.tzinfo is None) == (after.tzinfo is None) and before == after
        )
    return type(before) is type(after) and bool(before == after)
