"""Typed columns: which values a column holds exactly, how they are stored, and how they are read back.

A column never changes a value: it refuses values that it cannot hold exactly. So keys keep Java's identity: text, whole
numbers, floats and booleans never meet in one key column.
"""

from __future__ import annotations

import datetime
import decimal
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from trident_py.errors import DefinitionError, StateError, show
from trident_py.model.canonical import UnkeyableError, identity, to_plain
from trident_py.model.chunks import encodable
from trident_py.model.json_text import parse_json
from trident_py.tuples import Fields

_FORBIDDEN = '"`?%\0'
_SIZED = re.compile(r"[^()]*\(\s*\d+\s*(,\s*\d+\s*)?\)[^()]*")
_LONGEST = 190


def nameable(thing: str, name: str) -> None:
    """Raise DefinitionError for a name that would end its quotes or look like a placeholder."""
    if not name or set(name) & set(_FORBIDDEN):
        raise DefinitionError(
            f"{name!r} cannot name a {thing}: a name needs at least one character, and none of "
            f"{' '.join(_FORBIDDEN[:-1])} or NUL. Choose another name"
        )


def recordable(thing: str, name: str) -> None:
    """Raise DefinitionError for a topology's or state's name that is too long for the ledger."""
    if len(name) > _LONGEST:
        raise DefinitionError(
            f"{thing} {name[:40] + '...'!r}: its name has {len(name)} characters, but the ledger holds at most "
            f"{_LONGEST}. Choose a shorter name"
        )


_NONE = type(None)
_NUMBERED = "null would become the next number of this auto-increment column; pass a number, or drop the field"
_INTEGERS = {
    "tinyint": 8, "byte": 8, "smallint": 16, "short": 16, "int": 32, "integer": 32, "bigint": 64, "long": 64,
}  # fmt: skip
_FAMILIES = {
    "double": "double", "float": "double", "real": "double", "string": "text", "text": "text",
    "varchar": "text", "char": "text", "boolean": "boolean", "bool": "boolean", "binary": "binary",
    "blob": "binary", "date": "date", "timestamp": "timestamp",
    "decimal": "decimal", "numeric": "decimal", "json": "json",
    **dict.fromkeys(_INTEGERS, "integer"),
}  # fmt: skip


class RefusedValue(Exception):
    """A value that the column cannot hold exactly. Never leaves this package."""

    def __init__(self, reason: str, index: int = -1) -> None:
        super().__init__(reason)
        self.reason = reason
        self.index = index


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, its type in DDL form, whether it belongs to the key."""

    name: str
    ddl: str
    key: bool = False
    without: tuple[str, ...] = ()
    """What this column cannot hold although its type could: "NUL", "infinity", "null", "zone" (times become UTC)."""
    most: int = 0
    """How many bytes of UTF-8 a text may have; 0 means no limit."""
    zoned: bool | None = None
    """For a column that `folds`: whether the times in the table have a zone; None if that is open."""

    def __post_init__(self) -> None:
        nameable("column", self.name)
        if "(" in self.ddl and not _SIZED.fullmatch(self.ddl):
            raise DefinitionError(f"column {self.name!r}: in {self.ddl!r}, one or two whole numbers are in parentheses")
        if self.family == "json" and self.key:
            raise DefinitionError(f"column {self.name!r}: json cannot be a key; use string")

    @property
    def base(self) -> str:
        return re.split(r"[\s(]", self.ddl, maxsplit=1)[0].lower()

    @property
    def family(self) -> str:
        if self.base not in _FAMILIES:
            raise DefinitionError(
                f"column {self.name!r}: unknown type {self.ddl!r}; there are: {', '.join(sorted(_FAMILIES))}"
            )
        return _FAMILIES[self.base]

    @property
    def bits(self) -> int:
        """How many bits a whole number may have."""
        return _INTEGERS[self.base]

    @property
    def sizes(self) -> list[int]:
        """The numbers in parentheses: varchar(20), decimal(10, 2)."""
        return [int(number) for number in re.findall(r"\d+", self.ddl.partition("(")[2])]

    @property
    def limits(self) -> tuple[int, int]:
        """The least and greatest whole number."""
        return -(1 << self.bits - 1), (1 << self.bits - 1) - 1

    @property
    def digits(self) -> tuple[int, int]:
        """The precision and scale of a decimal."""
        precision, scale = [*self.sizes, 0][:2] if self.sizes else (10, 0)
        return precision, scale

    @property
    def folds(self) -> bool:
        """Whether the column would store two values as one: a time with a zone, and its UTC time without a zone."""
        return self.family == "timestamp" and "zone" in self.without

    @property
    def nullable(self) -> bool:
        return not self.key and "null" not in self.without

    @property
    def kind(self) -> str:
        """The kind of a key's values: a table stores two keys of one kind as one exactly if they are equal.

        The kind of a decimal includes its scale, since a text column stores 1 and 1.00 as two keys.
        """
        return f"decimal, scale {self.digits[1]}" if self.family == "decimal" else self.family

    def encode(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return the values as the driver takes them. Raises RefusedValue with the index of the first bad value."""
        kinds = set(map(type, values))
        if self.nullable or _NONE not in kinds:
            quick = _QUICK.get(self.family)
            if quick is not None and quick(self, values, kinds - {_NONE}):
                return values
        encode = _ENCODE[self.family]
        stored = []
        for index, value in enumerate(values):
            try:
                plain = _plain(value)
                if plain is None and not self.nullable:
                    raise RefusedValue("a key column cannot hold null" if self.key else _NUMBERED)
                stored.append(None if plain is None else encode(self, plain))
            except RefusedValue as refused:
                raise RefusedValue(refused.reason, index) from None
        for index, reason in self.strangers(values).items():
            raise RefusedValue(reason, index)
        return stored

    def strangers(self, values: Sequence[Any]) -> dict[int, str]:
        """Return where the column `folds`: the times that differ from the table's kind, or from the first one's if that
        is open; index to reason."""
        if not self.folds:
            return {}
        times = ((index, _plain(value)) for index, value in enumerate(values))
        zoned = {index: time.utcoffset() is not None for index, time in times if time is not None}
        right = next(iter(zoned.values()), None) if self.zoned is None else self.zoned
        has, others = ("no", "one") if right else ("a", "none")
        reason = f"it has {has} time zone, the others here have {others}, and the column would store both as one"
        return {index: reason for index, is_zoned in zoned.items() if is_zoned != right}


def refusal(
    table: str, columns: Sequence[Column], column: Column, row: Sequence[Any], value: Any, why: RefusedValue,
    asked: bool = False,
) -> StateError:  # fmt: skip
    """Return the error that names row, column and value. ``asked``: a query has brought the row, which is a key."""
    return StateError(
        f"table {table!r}, {position(why.index, asked)} ({row_text(columns, row)}): column {column.name!r} "
        f"({column.ddl}) cannot hold {short(value)} ({type(value).__name__}): {why.reason}. {advice(asked)}, or give "
        "the column another type"
    )


def position(row: int, asked: bool) -> str:
    """Return which row of the batch has a bad value, or which key a query asks for."""
    return f"key {row} of the query" if asked else f"row {row} of the batch"


def advice(asked: bool) -> str:
    """Return what to do about a bad value."""
    if asked:
        return "Convert the value before the query"
    return "Nothing of the batch is written. Convert the value before the state"


def build_columns(fields: Fields, key: bool, types: dict[str, str]) -> list[Column] | str:
    """Return the columns of these fields; or the name of the first field whose type is unknown."""
    columns = []
    for name in fields:
        ddl = fields.types.get(name, types.get(name))
        if ddl is None:
            return name
        columns.append(Column(name, ddl, key))
    return columns


def transpose(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]] | None:
    """Return the columns of rows that all have this width, else None. (zip(*rows) is slow for many rows.)"""
    if set(map(len, rows)) != {width}:
        return None
    return [list(map(itemgetter(i), rows)) for i in range(width)]


def decoder_of(column: Column) -> Callable[[Any], Any]:
    """Return what turns a stored value into the column's. It raises StateError for another program's that is none."""
    read = DECODERS[column.family]

    def decode(value: Any) -> Any:
        try:
            return read(value)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise StateError(
                f"column {column.name!r} ({column.ddl}) holds {short(value)}, which is no such value: {error}. Another "
                "program has written it: correct it there, or declare the column as string"
            ) from error

    return decode


def decode_row(values: Sequence[Any], decoders: Sequence[Callable[[Any], Any] | None]) -> tuple:
    """Convert the values that the database driver returned."""
    return tuple(
        value if decode is None or value is None else decode(value)
        for value, decode in zip(values, decoders, strict=True)
    )


def row_text(columns: Sequence[Column], row: Sequence[Any]) -> str:
    """Return the row for an error: its columns' names and values, long ones shortened."""
    return ", ".join(f"{column.name}={short(value)}" for column, value in zip(columns, row, strict=False))


def short(value: Any) -> str:
    """Return the value for an error, at most 60 characters of it."""
    text = show(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _some(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _quick_integer(column: Column, values: Sequence[Any], kinds: set[type]) -> bool:
    if kinds != {int}:
        return not kinds
    present = values if None not in values else _some(values)
    low, high = column.limits
    return low <= min(present) and max(present) <= high


def _quick_text(column: Column, values: Sequence[Any], kinds: set[type]) -> bool:
    if kinds != {str}:
        return not kinds
    text = "".join(_some(values))
    if (not text.isascii() and not encodable(text)) or ("NUL" in column.without and "\0" in text):
        return False
    if column.most and len(text) > column.most // 4:
        return False
    return not column.sizes or max(map(len, _some(values))) <= column.sizes[0]


def _quick_double(column: Column, values: Sequence[Any], kinds: set[type]) -> bool:
    if column.key or kinds != {float}:
        return not kinds
    total = sum(_some(values))  # not finite if any value is not
    return total - total == 0


_QUICK: dict[str, Callable[[Column, Sequence[Any], set[type]], bool]] = {
    "integer": _quick_integer, "text": _quick_text, "double": _quick_double,
}  # fmt: skip


def _plain(value: Any) -> Any:
    """Return the plain Python value: converts scalars of NumPy and pandas, and NaT to None. Raises RefusedValue."""
    try:
        return to_plain(value)
    except UnkeyableError as error:
        raise RefusedValue(error.reason) from None


def _want(value: Any, kind: type | tuple[type, ...], noun: str) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise RefusedValue(f"it is not {noun}")


def _integer(column: Column, value: Any) -> Any:
    _want(value, int, "a whole number")
    if not column.limits[0] <= value <= column.limits[1]:
        raise RefusedValue(f"it has more than {column.bits} bits")
    return int(value)


def _double(column: Column, value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and not column.key:
        try:
            if int(float(value)) == value:
                return float(value)
        except OverflowError:
            pass
        raise RefusedValue("a double has only 53 bits")
    _want(value, float, "a double")
    if value != value:
        raise RefusedValue("NaN would become NULL")
    if "infinity" in column.without and value in (float("inf"), float("-inf")):
        raise RefusedValue("this database cannot store infinity")
    if column.key and str(value) == "-0.0":
        raise RefusedValue("it would become 0.0")
    return float(value)


def _text(column: Column, value: Any) -> Any:
    _want(value, str, "text")
    if not encodable(value):
        raise RefusedValue("it contains half of a surrogate pair, which is not text")
    if "NUL" in column.without and "\0" in value:
        raise RefusedValue("a text of this database cannot contain NUL")
    if column.sizes and len(value) > column.sizes[0]:
        raise RefusedValue(f"it is longer than {column.sizes[0]} characters")
    return _short_enough(column, str(value))


def _short_enough(column: Column, text: str) -> str:
    if column.most and len(text) > column.most // 4 and len(text.encode()) > column.most:
        raise RefusedValue(f"it is longer than {column.most} bytes")
    return text


def _boolean(column: Column, value: Any) -> Any:
    _want(value, bool, "a boolean")
    return bool(value)


def _binary(column: Column, value: Any) -> Any:
    _want(value, (bytes, bytearray, memoryview), "bytes")
    if column.sizes and len(value) > column.sizes[0]:
        raise RefusedValue(f"it is longer than {column.sizes[0]} bytes")
    return bytes(value)


def _date(column: Column, value: Any) -> Any:
    _want(value, datetime.date, "a date")
    if isinstance(value, datetime.datetime):
        raise RefusedValue("it has a time of day")
    return value.isoformat()


def _timestamp(column: Column, value: Any) -> Any:
    _want(value, datetime.datetime, "a timestamp")
    if value.tzinfo is not None:
        try:
            value = value.astimezone(datetime.UTC)
        except OverflowError:
            raise RefusedValue("its year is outside 1 to 9999") from None
        if "zone" in column.without:
            value = value.replace(tzinfo=None)
    return value.isoformat(sep=" ", timespec="microseconds")


def _decimal(column: Column, value: Any) -> Any:
    _want(value, (decimal.Decimal, int), "a decimal")
    if column.key and isinstance(value, int):
        raise RefusedValue("it is a whole number: 1 and Decimal(1) are two keys, but this column would store one")
    precision, scale = column.digits
    number = decimal.Decimal(value)
    if not number.is_finite():
        raise RefusedValue("it is not a number")
    most, exact = max(precision, scale), None
    if not number or number.adjusted() < most - scale:  # others may have too many digits to write out
        exact = number.quantize(decimal.Decimal(1).scaleb(-scale), context=decimal.Context(prec=most + 1))
    if exact is None or exact != number:
        raise RefusedValue(f"it has more digits than {column.ddl} holds")
    return str(exact if exact else exact.copy_abs())  # -0 is stored as 0


def _json(column: Column, value: Any) -> Any:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise RefusedValue(f"it cannot be written as JSON: {error}") from None
    try:
        same = identity(json.loads(text)) == identity(value)
    except UnkeyableError:
        raise RefusedValue("it is nested too deeply") from None
    if not same or not encodable(text):
        raise RefusedValue("it would change in JSON")
    return _short_enough(column, text)


_ENCODE: dict[str, Callable[[Column, Any], Any]] = {
    "integer": _integer, "double": _double, "text": _text, "boolean": _boolean, "binary": _binary,
    "date": _date, "timestamp": _timestamp, "decimal": _decimal, "json": _json,
}  # fmt: skip
DECODERS: dict[str, Callable[[Any], Any]] = {
    "boolean": bool, "date": datetime.date.fromisoformat, "timestamp": datetime.datetime.fromisoformat,
    "decimal": decimal.Decimal, "json": parse_json,
}  # fmt: skip
