"""Random SQL expressions of known types, and rows for them. The same seed draws the same."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa

FIELDS = {
    "w": pa.string(), "v": pa.string(), "n": pa.int64(), "m": pa.int64(), "i": pa.int32(), "s": pa.int16(),
    "t": pa.int8(), "x": pa.float64(), "y": pa.float64(), "f": pa.float32(), "b": pa.bool_(), "c": pa.bool_(),
    "d": pa.date32(), "z": pa.timestamp("us"),
}  # fmt: skip
DDL = (
    "w string, v string, n bigint, m bigint, i int, s smallint, t tinyint, x double, y double, f float, b boolean, "
    "c boolean, d date, z timestamp_ntz"
)
TEXTS = [
    "", " ", "a", "A", "storm", " Storm  ", "straße", "İstanbul", "ΑΣ", "ΟΔΥΣΣΕΥΣ Σ", "ǅ", "ŉ", "日本語", "a%b_c\\d",
    "x\ny", "\t tab \t", "🙂🙃", "é", "12", " -7 ", "+3", "9223372036854775807", "9223372036854775808", "1.5", "1e3",
    ".5", "5.", "NaN", "-Infinity", "true", " No ", "1.5d", "2147483648", "0", "e", "0x1F", "\u00a0 1", "١",
]  # fmt: skip
WHOLE = [0, 1, -1, 2, 3, -3, 7, 10, 100, -100]
BORDERS = {8: [127, -128], 16: [32767, -32768], 32: [2**31 - 1, -(2**31)], 64: [2**63 - 1, -(2**63), 2**53 + 1, 2**31]}
DOUBLES = [
    0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 2.675, 1.005, 0.1, -0.4, 1e300, -1e300, 5e-324, float("nan"),
    float("inf"), float("-inf"), 9.223372036854775807e18, -9.223372036854775808e18, 2147483647.5, -2147483648.9, 1e18,
    123456.789, 4503599627370496.5,
]  # fmt: skip


def rows(draw: random.Random, count: int) -> pa.Table:
    return pa.table({name: pa.array([_value(draw, kind) for _ in range(count)], kind) for name, kind in FIELDS.items()})


def _value(draw: random.Random, kind: pa.DataType) -> Any:
    if draw.random() < 0.15:
        return None
    if pa.types.is_string(kind):
        return draw.choice(TEXTS)
    if pa.types.is_boolean(kind):
        return draw.random() < 0.5
    if pa.types.is_integer(kind):
        return draw.choice(WHOLE + BORDERS[kind.bit_width] * 2)
    if pa.types.is_floating(kind):
        drawn = draw.choice(DOUBLES) if draw.random() < 0.7 else draw.uniform(-1000, 1000)
        return drawn if kind == pa.float64() or abs(drawn) < 1e38 or drawn != drawn else 1.0
    day = datetime.date(1, 1, 1) + datetime.timedelta(days=draw.randrange(3_652_000))
    if pa.types.is_date(kind):
        return day if draw.random() < 0.5 else datetime.date(2024, draw.randrange(1, 13), draw.randrange(1, 29))
    return datetime.datetime(day.year, day.month, day.day, draw.randrange(24), draw.randrange(60), draw.randrange(60))


Maker = Callable[["Draft", int], str]


class Draft:
    """Draws expressions: ``make("boolean", 3)`` has up to three levels of calls."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def make(self, kind: str, depth: int) -> str:
        if depth == 0 or self.draw.random() < 0.1:
            return self.draw.choice(LEAVES[kind])
        return self.draw.choice(CALLS[kind])(self, depth - 1)

    def number(self, depth: int) -> str:
        return self.make(self.draw.choice(["bigint", "int", "double"]), depth)

    def same(self, depth: int, pattern: str) -> str:
        kind = self.draw.choice(["bigint", "int", "double", "string", "boolean", "date"])
        return pattern.format(self.make(kind, depth), self.make(kind, depth))

    def choice(self, kind: str, depth: int) -> str:
        values = [self.make(kind, depth) for _ in range(3)]
        conditions = [self.make("boolean", depth) for _ in range(2)]
        return self.draw.choice(
            [
                f"CASE WHEN {conditions[0]} THEN {values[0]} WHEN {conditions[1]} THEN {values[1]} END",
                f"CASE WHEN {conditions[0]} THEN {values[0]} ELSE {values[2]} END",
                f"if({conditions[0]}, {values[0]}, {values[1]})",
                f"coalesce({', '.join(values)})",
                f"nullif({values[0]}, {values[1]})",
                f"CASE {values[0]} WHEN {values[1]} THEN {values[2]} ELSE {values[1]} END",
            ]
        )


def _call(pattern: str, *kinds: str) -> Maker:
    return lambda draft, depth: pattern.format(*(draft.make(kind, depth) for kind in kinds))


def _same(pattern: str) -> Maker:
    return lambda draft, depth: draft.same(depth, pattern)


def _numbers(pattern: str) -> Maker:
    return lambda draft, depth: pattern.format(draft.number(depth), draft.number(depth))


LEAVES = {
    "string": ["w", "v", "w", "v", "'a'", "'Straße '", "'it\\'s'", "NULL"],
    "bigint": ["n", "m", "n", "m", "7L", "-9223372036854775808L", "3000000000"],
    "int": ["i", "s", "t", "1", "0", "-3", "2147483647", "10S", "5Y"],
    "double": ["x", "y", "x", "y", "f", "2.5D", "1e3", "-0.0D", "0.0D"],
    "boolean": ["b", "c", "b", "c", "true", "false", "CAST(NULL AS BOOLEAN)"],
    "date": ["d", "DATE '2024-02-29'"],
}
LIKES = (
    "LIKE '%a%'", "LIKE '_t%'", "LIKE 'a\\\\%b\\\\_c%'", "NOT LIKE '%'", "LIKE ''", "LIKE '__'", "LIKE '%.%'",
)  # fmt: skip
_ARITHMETIC = ["({} + {})", "({} - {})", "({} * {})", "({} % {})", "mod({}, {})"]
CALLS: dict[str, list[Maker]] = {
    "string": [
        *[_call(f"{name}({{}})", "string") for name in ("upper", "lower", "trim", "ltrim", "rtrim", "ucase", "lcase")],
        *[_call(f"substring({{}}, {at})", "string") for at in ("1, 2", "0, 2", "-3", "-3, 2", "-5, 3", "2")],
        _call("substring({}, 3, -1)", "string"), _call("substring({}, 2, 0)", "string"),
        _call("substr({}, 4)", "string"),
        _call("concat({}, {}, '-')", "string", "string"),
        _call("({} || {})", "string", "string"),
        _call("replace({}, 'a', 'bb')", "string"), _call("replace({}, '', 'x')", "string"),
        _call("replace({}, 'St')", "string"),
        _call("CAST({} AS STRING)", "bigint"), _call("CAST({} AS STRING)", "boolean"),
        _call("greatest({}, {})", "string", "string"),
        lambda draft, depth: draft.choice("string", depth),
    ],
    "bigint": [
        *[_call(pattern, "bigint", "int") for pattern in _ARITHMETIC],
        *[_call(pattern, "bigint", "bigint") for pattern in _ARITHMETIC],
        _call("({} div {})", "bigint", "int"), _call("({} div {})", "int", "int"),
        _call("(- {})", "bigint"), _call("abs({})", "bigint"),
        _call("floor({})", "double"), _call("ceil({})", "double"),
        _call("CAST({} AS BIGINT)", "double"), _call("CAST({} AS BIGINT)", "string"),
        _call("CAST({} AS BIGINT)", "int"), _call("CAST({} AS BIGINT)", "boolean"),
        _call("greatest({}, {}, {})", "bigint", "int", "bigint"), _call("least({}, {})", "bigint", "int"),
        _call("round({})", "bigint"),
        lambda draft, depth: draft.choice("bigint", depth),
    ],
    "int": [
        *[_call(pattern, "int", "int") for pattern in _ARITHMETIC],
        _call("length({})", "string"), _call("char_length({})", "string"), _call("(- {})", "int"),
        _call("abs({})", "int"), _call("negative({})", "int"),
        *[_call(f"CAST({{}} AS {kind})", "double") for kind in ("INT", "SMALLINT", "TINYINT")],
        *[_call(f"CAST({{}} AS {kind})", "bigint") for kind in ("INT", "SMALLINT", "TINYINT")],
        _call("CAST({} AS INT)", "string"), _call("CAST({} AS SMALLINT)", "string"),
        *[_call(f"{part}({{}})", "date") for part in ("year", "quarter", "month", "day", "dayofyear", "dayofweek")],
        *[_call(f"{part}(z)") for part in ("year", "month", "dayofmonth", "hour", "minute", "second", "dayofweek")],
        lambda draft, depth: draft.choice("int", depth),
    ],
    "double": [
        *[_call(pattern, "double", "double") for pattern in _ARITHMETIC],
        _call("({} + {})", "double", "bigint"), _call("(f * {})", "int"), _call("(f - f)"),
        _call("({} * 2.5)", "double"),
        _numbers("({} / {})"), _call("(- {})", "double"), _call("abs({})", "double"), _call("sqrt({})", "double"),
        _call("sqrt({})", "bigint"), _call("round(CAST({} AS DOUBLE), 2)", "double"), _call("round(x)"),
        _call("round(x + y, 1)"),
        _call("CAST({} AS DOUBLE)", "string"), _call("CAST({} AS DOUBLE)", "bigint"),
        _call("CAST({} AS FLOAT)", "bigint"),
        _call("CAST({} AS FLOAT)", "double"), _call("CAST({} AS DOUBLE)", "boolean"),
        _call("greatest({}, {})", "double", "double"), _call("least({}, {}, 0.5)", "double", "double"),
        lambda draft, depth: draft.choice("double", depth),
    ],
    "boolean": [
        *[_numbers(f"({{}} {sign} {{}})") for sign in ("=", "<", "<=", ">", ">=", "<>", "!=", "<=>", "==")],
        *[_same(f"({{}} {sign} {{}})") for sign in ("=", "<", ">=", "<=>", "IS DISTINCT FROM")],
        *[_call(f"({{}} {word} {{}})", "boolean", "boolean") for word in ("AND", "OR", "AND", "OR")],
        _call("(NOT {})", "boolean"), _call("(! {})", "boolean"),
        _same("(({0}) IS NULL)"), _same("(({0}) IS NOT NULL)"),
        _call("(({}) IS TRUE)", "boolean"), _call("(({}) IS NOT FALSE)", "boolean"),
        _call("isnull({})", "bigint"), _call("isnotnull({})", "string"), _call("isnan({})", "double"),
        _call("({} IN (1, 7, -3, 3000000000))", "bigint"), _call("({} IN (1, NULL))", "int"),
        _call("({} NOT IN ('a', 'storm'))", "string"), _call("({} IN (0.0, 2.5, 1.5D))", "double"),
        _call("({} BETWEEN {} AND {})", "bigint", "int", "int"), _call("({} NOT BETWEEN 'a' AND 'b')", "string"),
        *[_call(f"({{}} {like})", "string") for like in LIKES],
        _call("contains({}, 'a')", "string"), _call("startswith({}, 'st')", "string"),
        _call("endswith({}, ' ')", "string"), _call("contains({}, '')", "string"),
        _call("CAST({} AS BOOLEAN)", "bigint"), _call("CAST({} AS BOOLEAN)", "string"),
        _call("CAST({} AS BOOLEAN)", "double"), _call("greatest({}, {})", "boolean", "boolean"),
        lambda draft, depth: draft.choice("boolean", depth),
    ],
    "date": [_call("greatest({}, {})", "date", "date"), lambda draft, depth: draft.choice("date", depth)],
}  # fmt: skip
