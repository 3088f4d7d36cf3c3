"""Converts keys and values of a compacted topic to text and back, whole columns at a time.

A key's bytes depend only on the key, and different keys have different bytes: 1, 1.0, True and "1" are four keys. A
single text field is written as its UTF-8, a single binary field as its bytes, any other key as a JSON array of its
fields. (A single field without a type: a text is written as it is unless it begins with "[", any other value as an
array of one.) A single value field is written as its JSON text, several as an object. A row whose values are all None
is a tombstone. Values that would not be read back unchanged are refused; see `states.columns.values` for what a typed
field holds.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa

from trident_py.errors import DefinitionError, StateError
from trident_py.model.canonical import plain_column
from trident_py.model.chunks import Column as Values
from trident_py.model.chunks import is_text, to_list
from trident_py.model.json_text import parse_json
from trident_py.state.keys import ColumnKeys
from trident_py.tuples import Fields

from ...columns.values import Column, RefusedValue, advice, position, row_text, short, transpose

GLOBAL_KEY = ("$GLOBAL$",)
NOT_IN_JSON = ("infinity",)
Text = str | bytes


@dataclass(frozen=True)
class Codec:
    """The form of one state's keys and values in its topic. ``keys`` None: a single key, "$GLOBAL$"."""

    topic: str
    keys: Fields | None
    value: Fields

    @cached_property
    def fields(self) -> Fields:
        """The fields of a row."""
        return (self.keys or Fields()).concat(self.value)

    @property
    def key_fields(self) -> Fields:
        """The fields of a key; without any, of the one text that it then is."""
        return self.keys or Fields("k string")

    def check_fields(self, fields: Fields) -> None:
        """Raise DefinitionError unless rows of these fields can be written."""
        if set(self.fields) != set(fields):
            raise DefinitionError(
                f"topic {self.topic!r} takes rows of ({', '.join(self.fields)}), got the fields {fields}; give "
                "partitionPersist these fields as its input fields"
            )

    @cached_property
    def key_columns(self) -> list[Column]:
        fields = self.key_fields
        return [Column(n, fields.types.get(n, "json"), n in fields.types, NOT_IN_JSON) for n in fields]

    @cached_property
    def value_columns(self) -> list[Column]:
        return [Column(n, self.value.types.get(n, "json"), False, NOT_IN_JSON) for n in self.value]

    def key_texts(self, columns: Sequence[Values], values: Sequence[Values] = (), row: int | None = 0) -> list[Text]:
        """Return the keys of these key columns. Raises StateError for the first invalid key; ``row``, the batch
        position of the first row (None: a query asks for the keys), and ``values`` only serve that error."""
        named = _Named([*columns, *values], row)
        columns = list(map(_as_meant, columns))
        only = self.key_columns[0]
        if len(columns) == 1 and only.family in ("text", "binary"):
            return self._texts(only, columns[0], named, _as_it_is)
        texts = [self._texts(c, v, named) for c, v in zip(self.key_columns, columns, strict=True)]
        if len(texts) > 1 or only.key:
            form = "[" + ",".join(["%s"] * len(texts)) + "]"
            return list(map(form.__mod__, zip(*texts, strict=True)))
        return [
            v if type(v) is str and not v.startswith("[") else f"[{t}]"
            for v, t in zip(to_list(columns[0]), texts[0], strict=True)
        ]  # fmt: skip

    def value_texts(self, columns: Sequence[Values], keys: Sequence[Values], row: int = 0) -> list[str | None]:
        """Return the values of these value columns, None for a tombstone. ``keys`` and ``row`` only serve the error."""
        named = _Named([*keys, *columns], row)
        columns = list(map(_as_meant, columns))
        texts: list[list[Any]] = [self._texts(c, v, named) for c, v in zip(self.value_columns, columns, strict=True)]
        if len(texts) == 1:
            return texts[0] if not any(map(_has_none, columns)) else _with_tombstones(texts[0], columns)
        names = (encode_basestring(name).replace("%", "%%") for name in self.value)
        form = "{" + ",".join(f"{name}:%s" for name in names) + "}"
        objects: list[Any] = list(map(form.__mod__, zip(*texts, strict=True)))
        return objects if not all(map(_has_none, columns)) else _with_tombstones(objects, columns)

    def split_keys(self, keys: Sequence[Sequence[Any]]) -> list[Values]:
        """Return the columns of key tuples. Raises StateError for a wrong number of fields."""
        columns = keys.columns if isinstance(keys, ColumnKeys) else transpose(keys, len(self.key_columns))
        if columns is None or len(columns) != len(self.key_columns):
            names = ", ".join(column.name for column in self.key_columns)
            raise StateError(f"topic {self.topic!r} has the keys ({names}), got the key {list(keys[0])!r}")
        return list(columns)

    def split_values(self, values: Sequence[Any]) -> list[list[Any]]:
        """Return the columns of a map's values; with several fields, a value is a row or None."""
        width = len(self.value_columns)
        if width == 1:
            return [list(values)]
        absent = (None,) * width
        rows = [absent if value is None else value for value in values]
        for row in rows:
            if not isinstance(row, list | tuple) or len(row) != width:
                names = ", ".join(self.value)
                raise StateError(f"topic {self.topic!r}: a value must be a row of ({names}); got {row!r}")
        return [list(column) for column in zip(*rows, strict=True)]

    def _texts(self, column: Column, values: Values, named: _Named, texts: Any = None) -> list[Any]:
        try:
            return (texts or json_texts)(column, values)
        except RefusedValue as refused:
            names, index = [*self.key_columns, *self.value_columns], refused.index
            shown = row_text(names, named.values(index))
            bad = to_list(values[index : index + 1])[0]
            declared = column.ddl if column.ddl != "json" else "no type"
            asked = named.row is None
            raise StateError(
                f"topic {self.topic!r}, {position((named.row or 0) + index, asked)} ({shown}): field {column.name!r} "
                f"({declared}) cannot hold {short(bad)} ({type(bad).__name__}): {refused.reason}. {advice(asked)}, or "
                "give the field another type"
            ) from None

    def key(self, data: bytes) -> tuple:
        """Return the key of a record. Raises StateError for bytes that are no key of this state."""
        only = self.key_columns[0] if len(self.key_columns) == 1 else None
        try:
            if only is not None and only.family == "binary":
                return (data,)
            text = data.decode()
            if only is not None and (only.family == "text" or (not only.key and not text.startswith("["))):
                return (text,)
            return tuple(_back(c, v) for c, v in zip(self.key_columns, parse_json(text), strict=True))
        except (ValueError, TypeError) as error:
            raise StateError(
                f"topic {self.topic!r}: the key {data[:80]!r} does not match the fields {self.keys}: {error}. Another "
                "program writes the topic, or the key's fields were declared differently before"
            ) from error

    def values(self, data: Sequence[bytes | None]) -> list[Any]:
        """Return the values of records; with several fields, each is a tuple. Raises StateError for an invalid
        value."""
        present = [text for text in data if text is not None]
        try:
            parsed = parse_json(b"[" + b",\n".join(present) + b"]")
        except ValueError:
            parsed = []
        if len(parsed) != len(present):
            parsed = [self._parse(text) for text in present]
        values = parsed if self._simple(parsed) else list(map(self._value, parsed))
        if len(values) == len(data):
            return values
        rest = iter(values)
        return [None if text is None else next(rest) for text in data]

    def _simple(self, parsed: list[Any]) -> bool:
        """Return whether the parsed values need no conversion."""
        family = self.value_columns[0].family if len(self.value_columns) == 1 else ""
        return family == "json" or (family in _KIND and set(map(type, parsed)) <= {_KIND[family], type(None)})

    def _parse(self, data: bytes) -> Any:
        try:
            return parse_json(data)
        except ValueError as error:
            raise StateError(
                f"topic {self.topic!r}: the value {data[:80]!r} is not JSON: {error}. Another program writes the topic"
            ) from error

    def _value(self, parsed: Any) -> Any:
        try:
            if len(self.value_columns) == 1:
                return _back(self.value_columns[0], parsed)
            return tuple(_back(column, parsed.get(column.name)) for column in self.value_columns)
        except (ValueError, TypeError, AttributeError) as error:
            raise StateError(
                f"topic {self.topic!r}: the value {parsed!r} does not match the fields {self.value}: {error}"
            ) from error


@dataclass(frozen=True)
class _Named:
    """Names a bad row: the columns of keys and values, and the batch position of their first row."""

    columns: Sequence[Values]
    row: int | None

    def values(self, index: int) -> list[Any]:
        return [to_list(column[index : index + 1])[0] for column in self.columns]


def _as_meant(column: Values) -> Values:
    return plain_column(column) if isinstance(column, list) else column


def _as_it_is(column: Column, values: Values) -> list[Any]:
    """Check text and bytes, which are written unchanged."""
    if isinstance(values, pa.Array) and values.null_count == 0 and not column.sizes and is_text(values.type):
        return values.to_pylist()  # Arrow texts are valid UTF-8
    return list(column.encode(to_list(values)))


def _fits(column: Column, values: pa.Array) -> bool:
    """Return whether the array's type alone shows that the column holds all values."""
    return bool(values.type == pa.int64() and values.null_count == 0 and column.bits == 64)


def _has_none(values: Values) -> bool:
    return None in values if isinstance(values, list) else values.null_count > 0


def json_texts(column: Column, column_values: Values) -> list[str]:
    """Return the JSON text of every value, ``null`` for None. Raises RefusedValue for the first value that would not be
    read back unchanged."""
    family = column.family
    if isinstance(column_values, pa.Array) and family == "integer" and _fits(column, column_values):
        return column_values.cast(pa.string()).to_pylist()
    values = to_list(column_values)
    if family == "json":
        kinds = set(map(type, values))
        simple = _PLAIN.get(kinds.pop()) if len(kinds) == 1 else None
        if simple is not None:
            with suppress(ValueError):  # a number of more than 4,300 digits: refused below, with its index
                return simple(column, values)
        return ["null" if value is None else _check_json(column, i, value) for i, value in enumerate(values)]
    text = _FORMS.get(family, _quote)
    encoded = column.encode(values)
    if None in encoded:
        return ["null" if value is None else text(value) for value in encoded]
    return list(map(text, encoded))


def _check_json(column: Column, index: int, value: Any) -> str:
    """Return the JSON text of an untyped value, equal for equal values. Raises RefusedValue if JSON would change the
    value."""
    try:
        column.encode([value])
    except RefusedValue as refused:
        raise RefusedValue(refused.reason, index) from None
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _plain(ddl: str, text: Callable[[Any], str]) -> Callable[[Column, list[Any]], list[str]]:
    like = Column("value", ddl, without=NOT_IN_JSON)

    def texts(column: Column, values: list[Any]) -> list[str]:
        like.encode(values)
        return list(map(text, values))

    return texts


def _quote(text: str) -> str:
    return f'"{text}"'


def _base64(data: bytes) -> str:
    return f'"{base64.b64encode(data).decode()}"'


_FORMS: dict[str, Callable[[Any], str]] = {
    "integer": int.__repr__, "double": float.__repr__, "text": encode_basestring, "binary": _base64,
    "boolean": lambda value: "true" if value else "false",
}  # fmt: skip
_PLAIN: dict[type, Callable[[Column, list[Any]], list[str]]] = {
    str: _plain("string", encode_basestring), float: _plain("double", float.__repr__),
    int: lambda column, values: list(map(int.__repr__, values)),
}  # fmt: skip
_BACK: dict[str, Callable[[Any], Any]] = {
    "date": datetime.date.fromisoformat, "timestamp": datetime.datetime.fromisoformat,
    "decimal": decimal.Decimal, "binary": base64.b64decode, "double": float,
}  # fmt: skip
_KIND: dict[str, type] = {"integer": int, "text": str, "boolean": bool}


def _back(column: Column, value: Any) -> Any:
    """Convert a parsed JSON value to the field's type. Raises TypeError or ValueError."""
    family = column.family
    if value is None or family == "json":
        return value
    wanted = _KIND.get(family)
    if wanted is None:
        return _BACK[family](value)
    if type(value) is not wanted:
        raise TypeError(f"field {column.name!r} ({column.ddl}) holds {value!r}")
    return value


def _with_tombstones(texts: list[str], columns: Sequence[Values]) -> list[str | None]:
    """Return the texts, with None for each row whose values are all None."""
    rows = zip(*map(to_list, columns), strict=True)
    return [None if all(value is None for value in row) else text for row, text in zip(rows, texts, strict=True)]


def as_bytes(texts: Sequence[Text]) -> list[bytes]:
    return [text.encode() if type(text) is str else text for text in texts]  # type: ignore[misc]
