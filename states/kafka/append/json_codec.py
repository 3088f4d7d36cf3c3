"""Converts columns into bytes and JSON texts, a whole column at a time."""

from __future__ import annotations

import datetime
import decimal
import json
import math
from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa

from trident_py.errors import TridentError
from trident_py.model.canonical import UnkeyableError, plain_column, to_plain
from trident_py.model.chunks import Column, encodable, kinds_of, to_list

Bytes = bytes | None


class UnwritableError(TridentError):
    """A value that cannot be written; ``row`` is its position in the chunk."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row


def as_bytes(name: str, column: Column) -> list[Bytes]:
    """Text as UTF-8, bytes unchanged, None as None, any other value as its JSON text."""
    if not isinstance(column, list):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            return to_list(column.cast(pa.binary() if pa.types.is_string(column.type) else pa.large_binary()))
        if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
            return to_list(column)
    elif kinds_of(column) <= {bytes}:
        return column
    return [_one(name, row, value) for row, value in enumerate(plain_column(to_list(column)))]


def _one(name: str, row: int, value: Any) -> Bytes:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    try:
        return (value if isinstance(value, str) else _text(value)).encode()
    except (TypeError, ValueError, UnkeyableError) as error:
        raise UnwritableError(row, f"{name} is {value!r}, which cannot be written: {error}") from error


def json_texts(name: str, column: Column) -> list[str]:
    """Return the JSON text of every value of a column. Decimals and times are strings, to be exact."""
    values = plain_column(to_list(column))
    kinds = set(map(type, values))
    if len(kinds) == 1 and (simple := _TEXTS.get(kinds.pop())) is not None and simple is not _float:
        return list(map(simple, values))
    texts = []
    for row, value in enumerate(values):
        try:
            texts.append(_text(value))
        except (TypeError, ValueError, UnkeyableError) as error:
            raise UnwritableError(row, f"{name} is {value!r}, which has no JSON form: {error}") from error
    return texts


def json_objects(names: Sequence[str], columns: Sequence[list[str]], length: int) -> list[Bytes]:
    """Return a JSON object for each row, with ``names`` in their order; ``columns`` are their JSON texts."""
    if not names:
        return [b"{}"] * length
    form = "{" + ",".join(encode_basestring(name).replace("%", "%%") + ":%s" for name in names) + "}"
    objects = map(form.__mod__, zip(*columns, strict=True))
    try:
        return [text.encode() for text in objects]
    except UnicodeEncodeError as error:
        row = next(i for i, row in enumerate(zip(*columns, strict=True)) if not encodable("".join(row)))
        raise UnwritableError(row, f"a text is not valid UTF-8: {error}") from error


def _float(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError("JSON has no such number")
    return float.__repr__(value)


_TEXTS: dict[type, Callable[[Any], str]] = {
    str: encode_basestring, int: int.__repr__, float: _float, bool: lambda value: "true" if value else "false",
    type(None): lambda value: "null",
}  # fmt: skip


def _text(value: Any) -> str:
    simple = _TEXTS.get(type(value))
    if simple is not None:
        return simple(value)
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), default=_other
    )


def _other(value: Any) -> Any:
    plain = to_plain(value)
    if plain is None or isinstance(plain, int | float | str):
        return plain
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    raise TypeError(f"a {type(value).__name__}")
