"""An expression as data, and its type: the common type of two of them is as in Spark's ANSI mode."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa

from ...errors import DefinitionError

_MOST_DIGITS = 38
_INFIX = frozenset(("+", "-", "*", "/", "div", "%", "||", "=", "<=>", "<", "<=", ">", ">=", "and", "or"))
_POSTFIX = frozenset(("is null", "is true", "is false"))


@dataclass(frozen=True)
class Constant:
    """A literal. ``text``: its digits, its text, "true" or ""; so 0.0 and -0.0 differ. ``kind``: a type of `types`."""

    text: str
    kind: str

    def __str__(self) -> str:
        if self.kind in ("string", "date"):
            quoted = "'" + self.text.replace("\\", "\\\\").replace("'", "\\'") + "'"
            return quoted if self.kind == "string" else f"DATE {quoted}"
        return "NULL" if self.kind == "void" else self.text


@dataclass(frozen=True)
class SqlField:
    """An input field."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class SqlCall:
    """An operator or a function. ``detail``: the type of a cast."""

    name: str
    args: tuple[Tree, ...]
    detail: str = ""

    def __str__(self) -> str:
        shown = [f"({arg})" if isinstance(arg, SqlCall) and arg.name in _INFIX else str(arg) for arg in self.args]
        if self.name in _INFIX and len(shown) == 2:
            return f"{shown[0]} {self.name.upper()} {shown[1]}"
        if self.name in _POSTFIX:
            return f"{shown[0]} {self.name.upper()}"
        if self.name == "cast":
            return f"CAST({self.args[0]} AS {self.detail.upper()})"
        if self.name == "case":
            return _case(self.args)
        if self.name == "in":
            return f"{shown[0]} IN ({', '.join(shown[1:])})"
        if self.name == "like":
            return f"{shown[0]} LIKE {shown[1]}"
        if self.name == "not":
            return f"NOT {shown[0]}"
        return f"{self.name}({', '.join(map(str, self.args))})"


Tree = Constant | SqlField | SqlCall


def _case(args: tuple[Tree, ...]) -> str:
    """Format CASE. ``args``: condition, value, condition, value ..., and the value of ELSE."""
    pairs = zip(args[:-1:2], args[1::2], strict=True)
    return " ".join(["CASE", *(f"WHEN {when} THEN {then}" for when, then in pairs), f"ELSE {args[-1]} END"])


def columns_of(tree: Tree) -> Iterator[str]:
    """Return the names of the fields that it reads, with repetitions."""
    if isinstance(tree, SqlField):
        yield tree.name
    elif isinstance(tree, SqlCall):
        for arg in tree.args:
            yield from columns_of(arg)


INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
FLOATS = (pa.float32(), pa.float64())
NUMBERS = INTEGERS + FLOATS
STRING = pa.string()
BOOLEAN = pa.bool_()
DOUBLE = pa.float64()
VOID = pa.null()
DATE = pa.date32()
TIMESTAMP_NTZ = pa.timestamp("us")

_NAMES = {
    "void": VOID, "boolean": BOOLEAN, "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(),
    "bigint": pa.int64(), "float": pa.float32(), "double": DOUBLE, "string": STRING, "binary": pa.binary(),
    "date": DATE, "timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ntz": TIMESTAMP_NTZ,
}  # fmt: skip
_OF = {kind: name for name, kind in _NAMES.items()}


def sql_name(kind: pa.DataType) -> str:
    """Return the name of a type in SQL."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _OF.get(kind, str(kind))


def kind_of(name: str) -> pa.DataType:
    return _NAMES[name]


def value_of(constant: Constant) -> tuple[Any, pa.DataType]:
    """Return the value of a literal and its type. Raises DefinitionError if the type cannot hold it."""
    text, name = constant.text, constant.kind
    if name == "decimal":
        value = decimal.Decimal(text)
        scale = -int(value.as_tuple().exponent)
        if (precision := max(len(value.as_tuple().digits), scale, 1)) > _MOST_DIGITS:
            raise DefinitionError(f"expr: {text:.80} has more than {_MOST_DIGITS} digits; write a double, as 1e40")
        return value, pa.decimal128(precision, scale)
    kind = _NAMES[name]
    if name == "date":
        return _date(text), kind
    if kind in INTEGERS:
        return _whole(int(text), name), kind
    if kind in FLOATS:
        if math.isinf(float(text)):
            raise DefinitionError(f"expr: {text:.80} does not fit {name}")
        return float(text), kind
    return (text == "true" if name == "boolean" else text if name == "string" else None), kind


def _date(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise DefinitionError(f"expr: DATE '{text}' is no date: {error}") from None


def _whole(value: int, name: str) -> int:
    bits = _NAMES[name].bit_width
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise DefinitionError(f"expr: {value} does not fit {name}")
    return value


def common(where: Any, *kinds: pa.DataType) -> pa.DataType:
    """Return the type in which these meet: Spark's least common type. Raises DefinitionError if they need a CAST."""
    return reduce(lambda a, b: _meet(where, a, b), kinds)


def _meet(where: Any, a: pa.DataType, b: pa.DataType) -> pa.DataType:
    if a == b or b == VOID:
        return a
    if a == VOID:
        return b
    if a in INTEGERS and b in INTEGERS:
        return max(a, b, key=lambda kind: kind.bit_width)
    if a in NUMBERS and b in NUMBERS:  # a bigint and a float meet in a double, in ANSI mode
        return DOUBLE
    if {a, b} & set(FLOATS) and any(map(pa.types.is_decimal, (a, b))):
        return DOUBLE
    hint = "write a fraction as 2.5D" if any(map(pa.types.is_decimal, (a, b))) else "use CAST"
    raise DefinitionError(f"expr: {where} brings {sql_name(a)} and {sql_name(b)} together; {hint}")
