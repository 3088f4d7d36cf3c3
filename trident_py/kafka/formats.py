"""Deserialisers: turn the bytes of keys and values into columns, a whole chunk at a time.

A format of your own is a frozen value with the methods of `Format`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from ..errors import DefinitionError, TridentError
from ..model.chunks import Column, arrow_type, single
from ..model.requirements import role
from ..spouts.json_values import is_text, json_columns, json_table, json_value
from ..tuples import Fields, FieldsLike

Raw = Sequence[bytes | None]


@role
@runtime_checkable
class Format(Protocol):
    """How bytes become values. `columns` and `objects` are called in tasks. They raise any error for bytes that they
    cannot read; each record is then tried alone."""

    def declare(self, name: str) -> list[str]:
        """Return the fields that replace ``name`` ("key" or "value"), with their types."""

    def columns(self, name: str, raw: Raw) -> dict[str, Column]:
        """Return a column for each declared field."""

    def objects(self, raw: Raw) -> list[Any]:
        """Return a Python object for each record, for a translator."""


@dataclass(frozen=True)
class Bytes:
    """The bytes unchanged: a field of type binary."""

    def declare(self, name: str) -> list[str]:
        return [f"{name} binary"]

    def columns(self, name: str, raw: Raw) -> dict[str, Column]:
        return {name: pa.array(raw, pa.binary())}

    def objects(self, raw: Raw) -> list[Any]:
        return list(raw)


@dataclass(frozen=True)
class Text:
    """UTF-8 text: a field of type string."""

    def declare(self, name: str) -> list[str]:
        return [f"{name} string"]

    def columns(self, name: str, raw: Raw) -> dict[str, Column]:
        return {name: pa.array(raw, pa.binary()).cast(pa.string())}

    def objects(self, raw: Raw) -> list[Any]:
        return [None if data is None else data.decode() for data in raw]


@dataclass(frozen=True)
class Json:
    """JSON. ``Json("sensor string", "temp double")``: an object whose keys become these fields. A missing key is None;
    a record without a value has None in all of them. ``Json()``: one untyped field that holds any value."""

    fields: Fields

    def __init__(self, *fields: FieldsLike) -> None:
        declared: list[str] = []
        for some in fields:
            if isinstance(some, str):
                declared += [part.strip() for part in re.split(r",(?![^(]*\))", some)]
            else:
                declared += Fields.of(some).declarations()
        object.__setattr__(self, "fields", Fields(declared))
        try:
            for ddl in self.fields.types.values():
                arrow_type(ddl)
        except TridentError as error:
            raise DefinitionError(f"Json: {error}") from error

    def declare(self, name: str) -> list[str]:
        return self.fields.declarations() if len(self.fields) else [name]

    def columns(self, name: str, raw: Raw) -> dict[str, Column]:
        table = self._table(raw) if len(self.fields) else None
        if table is not None:
            return {field: single(table.column(field)) for field in self.fields}
        if not len(self.fields):
            return {name: self.objects(raw)}
        return json_columns(raw, self.fields, lambda _, problem: f"JSON: {problem}")

    def objects(self, raw: Raw) -> list[Any]:
        return [None if data is None else json_value(data) for data in raw]

    def _table(self, raw: Raw) -> pa.Table | None:
        """Read all records at once if each is an object in one line. None: Python's reader must read them.

        Arrow's reader takes the lines as one stream, so a value that begins in one record must not end in another.
        """
        if not all(data is not None and data.startswith(b"{") and data.endswith(b"}") for data in raw):
            return None
        block = b"\n".join(raw)  # type: ignore[arg-type]
        if block.count(b"\n") != len(raw) - 1 or not is_text(block):
            return None
        table = json_table(block, self.fields)
        return table if table is not None and table.num_rows == len(raw) else None


def format_of(option: Any, name: str) -> Format:
    """Return the format that ``key=`` or ``value=`` names. Raises DefinitionError."""
    if isinstance(option, str) and option in _NAMED:
        return _NAMED[option]
    if isinstance(option, Format) and not isinstance(option, type):
        return option
    raise DefinitionError(
        f'KafkaSpout: {name}={option!r} is not a format; use "bytes", "string", Json(...), Avro(...), or an object '
        "with the methods declared, columns and objects"
    )


_NAMED: dict[str, Format] = {"bytes": Bytes(), "string": Text()}
