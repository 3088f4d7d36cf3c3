"""Keys and values of Storm in the fields and types that our state declares: texts and JSON numbers as numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from ...errors import StateError
from ...state import StateType
from ...tuples import Fields
from .storm_values import WRAP, Key

Parse = Callable[[str], Any]


def _parse_whole(text: str) -> int:
    number = int(text)
    if str(number) != text:
        raise ValueError(f"{text!r} is another text than {number}, and would be the same key")
    return number


def _parse_date(text: str) -> date:
    day = date.fromisoformat(text)
    if day.isoformat() != text:
        raise ValueError(f"{text!r} is another text than {day}, and would be the same key")
    return day


_PARSE: dict[str, Parse] = {
    **dict.fromkeys(("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"), _parse_whole),
    **dict.fromkeys(("float", "real", "double"), float),
    **dict.fromkeys(("decimal", "numeric"), Decimal),
    **dict.fromkeys(("bool", "boolean"), {"true": True, "false": False}.__getitem__),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), datetime.fromisoformat),
    "date": _parse_date,
}
"""What makes a key's field of the text that it is in Storm, by the base of the declared type."""


def key_fields(keys: Sequence[Key], declared: Fields | None, split: str | None) -> list[Key]:
    """Return the keys with the fields and types that our state declares: a text is parsed if it declares another type.
    Raises StateError for a key that does not fit."""
    if split is not None:
        keys = [_split(key, split) for key in keys]
    if declared is None:
        return list(keys)
    width = len(declared)
    if (bad := next((key for key in keys if len(key) != width), None)) is not None:
        raise StateError(
            f"key {list(bad)!r} has {len(bad)} fields, and our state has {width} ({', '.join(declared)}): name "
            "what stands between the fields with --split"
        )
    parsers = [_PARSE.get(_base(declared, name)) for name in declared]
    if not any(parsers):
        return list(keys)
    return [tuple(map(_parse, parsers, key, declared)) for key in keys]


def name_global(shown: str, own: Key, keys: Sequence[Any]) -> list[Key]:
    """Return ``own``, the key of a global aggregate in our state, for the one that it has elsewhere. Raises StateError
    for several."""
    if len(keys) > 1:
        raise StateError(
            f"{shown} has one value, that of a global aggregate, and got {len(keys)} keys; give the state its key"
        )
    return [own for _ in keys]


def _split(key: Key, split: str) -> Key:
    if len(key) != 1 or not isinstance(key[0], str) or not split:
        raise StateError(f"key {list(key)!r} cannot be cut at {split!r}: --split cuts a key that is one text")
    return tuple(key[0].split(split))


def fit_row(row: Mapping[str, Any], types: Fields) -> dict[str, Any]:
    """Return the row with its texts parsed as the types say. Raises StateError for one that does not fit."""
    return {name: _parse(_PARSE.get(_base(types, name)), part, name, "a value") for name, part in row.items()}


def _parse(parse: Parse | None, part: Any, name: str, what: str = "a key") -> Any:
    if parse is Decimal and type(part) in (int, float):
        return Decimal(str(part))
    if parse is float and isinstance(part, Decimal):
        return float(part)
    if parse is None or not isinstance(part, str):
        return part
    try:
        if "_" in part or part != part.strip():
            raise ValueError(f"{part!r} is no number")
        return parse(part)
    except (ValueError, KeyError, ArithmeticError) as error:
        cause = str(error) if isinstance(error, ValueError) else f"{part!r} is none"
        raise StateError(f"{what} does not fit the declared types ({name}): {cause}") from error


def _base(declared: Fields, name: str) -> str:
    return declared.types.get(name, "string").partition("(")[0].strip().lower()


def exact_numbers(*declared: Fields | None) -> Parse | None:
    """Return what JSON's numbers with a fraction become: decimals, if one is declared; None: floats."""
    bases = {_base(fields, name) for fields in declared if fields is not None for name in fields}
    return Decimal if bases & {"decimal", "numeric"} else None


def fit_decimals(row: Mapping[str, Any], types: Fields) -> dict[str, Any]:
    """Return a row that was read with exact numbers, with floats where no decimal is declared."""
    exact = {name for name in row if _PARSE.get(_base(types, name)) is Decimal}
    return {name: part if name in exact else _as_floats(part) for name, part in row.items()}


def fit_values(kind: StateType, values: Sequence[Any], declared: Fields | None) -> list[Any]:
    """Return stored values, read with exact numbers, with decimals where they are declared, and floats elsewhere."""
    bases = ["json"] if declared is None else [_base(declared, name) for name in declared]
    converters = [_as_decimal if _PARSE.get(base) is Decimal else _as_floats for base in bases]

    def convert(value: Any) -> Any:
        if len(converters) == 1:
            return converters[0](value)
        if isinstance(value, (list, tuple)) and len(value) == len(converters):
            return tuple(convert(part) for convert, part in zip(converters, value, strict=True))
        return value  # our state says what it lacks

    if kind is StateType.NON_TRANSACTIONAL:
        return [convert(value) for value in values]
    return [WRAP[kind]((txid, *map(convert, rest))) for txid, *rest in values]


def _as_decimal(value: Any) -> Any:
    return Decimal(value) if type(value) is int else value


def _as_floats(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_as_floats(part) for part in value]
    return {name: _as_floats(part) for name, part in value.items()} if isinstance(value, Mapping) else value
