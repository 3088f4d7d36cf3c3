"""A format of the Kafka spout: Avro, by fastavro."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import DefinitionError, explain_missing
from ...kafka.formats import Raw
from ...model.chunks import Column, convert
from ...model.json_text import parse_json
from ...model.requirements import Needs
from ...tuples import Fields

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

    needs = Needs(("fastavro",), "trident-py[avro]")

    def __post_init__(self) -> None:
        try:
            parsed = parse_json(self.schema) if isinstance(self.schema, str) else self.schema
        except ValueError as error:
            raise DefinitionError(f"Avro: the schema is not JSON: {error}") from error
        if not isinstance(parsed, Mapping) or parsed.get("type") != "record":
            raise DefinitionError("Avro: the schema must describe a record; its fields become the stream's fields")
        avro = _avro()
        try:
            avro.parse_schema(parsed)
            declared = [" ".join(filter(None, (each["name"], _avro_ddl(each["type"])))) for each in parsed["fields"]]
        except Exception as error:  # whatever fastavro raises
            raise DefinitionError(f"Avro: the schema is not one of Avro: {type(error).__name__}: {error}") from error
        object.__setattr__(self, "schema", json.dumps(parsed))
        object.__setattr__(self, "fields", Fields(declared))

    def declare(self, name: str) -> list[str]:
        return self.fields.declarations()

    def columns(self, name: str, raw: Raw) -> dict[str, Column]:
        values = self.objects(raw)
        columns: dict[str, Column] = {}
        for key in self.fields:
            column = [None if value is None else value[key] for value in values]
            columns[key] = convert(column, self.fields.types[key], key) if key in self.fields.types else column
        return columns

    def objects(self, raw: Raw) -> list[Any]:
        avro = _avro()
        schema = avro.parse_schema(json.loads(self.schema))
        return [None if data is None else self._object(avro, schema, data) for data in raw]

    def _object(self, avro: Any, schema: Any, data: bytes) -> Any:
        if self.confluent and data[:1] != b"\0":
            raise ValueError("it does not begin with the five-byte prefix of a schema registry")
        stream = io.BytesIO(data[5:] if self.confluent else data)
        try:
            value = avro.schemaless_reader(stream, schema)
        except Exception as error:  # whatever fastavro raises; some of its texts name only an object in memory
            raise ValueError(f"it is no whole Avro record of this schema ({type(error).__name__})") from error
        if stream.read(1):
            raise ValueError("bytes follow the Avro record; was it written with this schema?")
        return value


def _avro() -> Any:
    try:
        import fastavro
    except ImportError as error:
        raise DefinitionError(explain_missing("Avro", "fastavro", "avro")) from error
    return fastavro


def _avro_ddl(kind: Any) -> str:
    """Return the DDL type of an Avro type; "" leaves the field untyped."""
    if isinstance(kind, list):
        others = [part for part in kind if part != "null"]
        return _avro_ddl(others[0]) if len(others) == 1 else ""
    if isinstance(kind, Mapping):
        return _AVRO.get(kind["logicalType"], "") if "logicalType" in kind else _avro_ddl(kind["type"])
    return _AVRO.get(kind, "") if isinstance(kind, str) else ""
