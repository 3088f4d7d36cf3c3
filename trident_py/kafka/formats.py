"""Deserialisers: turn the bytes of keys and values into columns, a whole chunk at a time.

A format of your own is a frozen value with the methods of `Format`.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from ..chunks import Column, arrow_type, typed
from ..errors import DefinitionError, TridentError
from ..spouts.filereaders import single
from ..spouts.jsonvalues import is_text, json_columns, json_table, json_value
from ..tuples import Fields, FieldsLike

Raw = Sequence[bytes | None]


class Format(Protocol):
    """How bytes become values. `columns` and `objects` are called in tasks. They raise any error for bytes that they
    cannot read; each record is then tried alone."""

    def declared(self, name: str) -> list[str]:
        """Returns the fields that replace ``name`` ("key" or "value"), with their types."""

    def columns(self, name: str, raw: Raw) -> dict[str, Column]:
        """Returns a column for each declared field."""

    def objects(self, raw: Raw) -> list[Any]:
        """Returns a Python object for each record, for a translator."""


@dataclass(frozen=True)
class Bytes:
    """The bytes unchanged: a field of type binary."""

    def declared(self, name: str) -> list[str]:
        return [f"{name} binary"]

    def columns(self, name: str, raw: Raw) -> dict[str, Column]:
        return {name: pa.array(raw, pa.binary())}

    def objects(self, raw: Raw) -> list[Any]:
        return list(raw)


@dataclass(frozen=True)
class Text:
    """UTF-8 text: a field of type string."""

    def declared(self, name: str) -> list[str]:
        return [f"{name} string"]

    def columns(self, name: str, raw: Raw) -> dict[str, Column]:
        return {name: pa.array(raw, pa.binary()).cast(pa.string())}

    def objects(self, raw: Raw) -> list[Any]:
        return [None if one is None else one.decode() for one in raw]


@dataclass(frozen=True)
class Json:
    """JSON. ``Json("sensor string", "temp double")``: an object whose keys become these fields. A missing key is None;
    a record without a value has None in all of them. ``Json()``: one untyped field that holds any value."""

    fields: Fields

    def __init__(self, *fields: FieldsLike) -> None:
        given = [part for one in fields for part in ([one] if isinstance(one, str) else Fields.of(one).declarations())]
        declared = [part for one in given for part in re.split(r",(?![^(]*\))", one)]
        object.__setattr__(self, "fields", Fields(declared))
        try:
            for ddl in self.fields.types.values():
                arrow_type(ddl)
        except TridentError as error:
            raise DefinitionError(f"Json: {error}") from error

    def declared(self, name: str) -> list[str]:
        return self.fields.declarations() if len(self.fields) else [name]

    def columns(self, name: str, raw: Raw) -> dict[str, Column]:
        table = self._table(raw) if len(self.fields) else None
        if table is not None:
            return {field: single(table.column(field)) for field in self.fields}
        if not len(self.fields):
            return {name: self.objects(raw)}
        return json_columns(raw, self.fields, lambda _, what: f"JSON: {what}")

    def objects(self, raw: Raw) -> list[Any]:
        return [None if one is None else json_value(one) for one in raw]

    def _table(self, raw: Raw) -> pa.Table | None:
        """Reads all records at once if each is an object in one line. None: Python's reader must read them.

        Arrow's reader takes the lines as one stream, so a value that begins in one record must not end in another.
        """
        if None in raw or not all(one.startswith(b"{") and one.endswith(b"}") for one in raw if one is not None):
            return None
        block = b"\n".join(raw)  # type: ignore[arg-type]
        if block.count(b"\n") != len(raw) - 1 or not is_text(block):
            return None
        table = json_table(block, self.fields)
        return table if table is not None and table.num_rows == len(raw) else None


_AVRO = {
    "string": "string", "int": "int", "long": "bigint", "float": "float", "double": "double", "boolean": "boolean",
    "bytes": "binary", "enum": "string", "date": "date",
    "timestamp-millis": "timestamp", "timestamp-micros": "timestamp",
}  # fmt: skip


@dataclass(frozen=True)
class Avro:
    """Avro by fastavro (``pip install 'trident-py[avro]'``): a record, whose fields become the fields.

    ``schema`` is the writer's, as JSON text or in parsed form. ``confluent=True``: records begin with the five bytes of
    a schema registry, which are dropped; the schema is always ``schema``.
    """

    schema: Any = field(repr=False)
    confluent: bool = False
    fields: Fields = field(init=False)

    def __post_init__(self) -> None:
        try:
            parsed = json.loads(self.schema) if isinstance(self.schema, str) else self.schema
        except ValueError as error:
            raise DefinitionError(f"Avro: the schema is not JSON: {error}") from error
        if not isinstance(parsed, Mapping) or parsed.get("type") != "record":
            raise DefinitionError("Avro: the schema must be that of a record, whose fields become the fields")
        _avro()
        declared = [" ".join(filter(None, (one["name"], _avro_ddl(one["type"])))) for one in parsed["fields"]]
        object.__setattr__(self, "schema", json.dumps(parsed))
        object.__setattr__(self, "fields", Fields(declared))

    def declared(self, name: str) -> list[str]:
        return self.fields.declarations()

    def columns(self, name: str, raw: Raw) -> dict[str, Column]:
        values = self.objects(raw)
        columns: dict[str, Column] = {}
        for own in self.fields:
            column = [None if value is None else value[own] for value in values]
            columns[own] = typed(column, self.fields.types[own], own) if own in self.fields.types else column
        return columns

    def objects(self, raw: Raw) -> list[Any]:
        avro = _avro()
        schema = avro.parse_schema(json.loads(self.schema))
        return [None if one is None else self._object(avro, schema, one) for one in raw]

    def _object(self, avro: Any, schema: Any, one: bytes) -> Any:
        if self.confluent and one[:1] != b"\0":
            raise ValueError("it does not begin with the bytes of a schema registry")
        stream = io.BytesIO(one[5:] if self.confluent else one)
        value = avro.schemaless_reader(stream, schema)
        if stream.read(1):
            raise ValueError("there are bytes behind the Avro record; is it of this schema?")
        return value


def _avro() -> Any:
    try:
        import fastavro
    except ImportError as error:
        raise DefinitionError("Avro needs fastavro: pip install 'trident-py[avro]'") from error
    return fastavro


def _avro_ddl(kind: Any) -> str:
    """Returns the DDL type of an Avro type; "" leaves the field untyped."""
    if isinstance(kind, list):
        others = [one for one in kind if one != "null"]
        return _avro_ddl(others[0]) if len(others) == 1 else ""
    if isinstance(kind, Mapping):
        return _AVRO.get(kind["logicalType"], "") if "logicalType" in kind else _avro_ddl(kind["type"])
    return _AVRO.get(kind, "") if isinstance(kind, str) else ""


def format_of(given: Any, name: str) -> Format:
    """Returns the format that ``key=`` or ``value=`` names. Raises DefinitionError."""
    if isinstance(given, str) and given in _NAMED:
        return _NAMED[given]
    # A user's own format may be of any class that has the methods.
    if not isinstance(given, type) and all(callable(getattr(given, one, None)) for one in _METHODS):
        found: Format = given
        return found
    raise DefinitionError(
        f'KafkaSpout: {name}={given!r} is no format; there are "bytes", "string", Json(...), Avro(...), and values '
        f"with the methods {', '.join(_METHODS)}"
    )


_METHODS = ("declared", "columns", "objects")
_NAMED: dict[str, Format] = {"bytes": Bytes(), "string": Text()}
