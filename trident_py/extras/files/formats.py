"""The formats of the files: how rows are written, and how they are read back."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from states.columns.values import short

from ...errors import DefinitionError, StateError
from ...model.json_text import parse_json
from ...state.serializers import java_double
from ...tuples import Fields, FieldsLike, TridentTuple

ROWS_AT_ONCE = 65_536


class RecordFormat(ABC):
    """A format of one's own: the bytes of each tuple. Inherit it; the object must be picklable and frozen.

    Source in Storm: org.apache.storm.hdfs.trident.format.RecordFormat.
    """

    suffix: ClassVar[str] = ".txt"
    """The end of the files' names."""
    header: ClassVar[bytes] = b""
    """What each file begins with. Compaction keeps that of the first file."""

    @abstractmethod
    def format(self, tuple: TridentTuple) -> bytes:
        """Return the record of a tuple, with its end, such as a line break. Called in the task, for each tuple."""


@dataclass(frozen=True)
class DelimitedRecordFormat(RecordFormat):
    """The values of a tuple as text, with a delimiter between them. ``fields``: which values; default: all.

    Nulls, booleans and floats are written as Java writes them (``null``, ``true``, ``1.0E7``), other values as Python's
    `str`. Values are neither quoted nor escaped; for text that may hold the delimiters use the format "csv".
    Source in Storm: org.apache.storm.hdfs.trident.format.DelimitedRecordFormat.
    """

    fieldDelimiter: str = ","
    recordDelimiter: str = "\n"
    fields: FieldsLike | None = None

    def format(self, tuple: TridentTuple) -> bytes:
        values = tuple if self.fields is None else [tuple.getValueByField(name) for name in Fields.of(self.fields)]
        try:
            return (self.fieldDelimiter.join(map(_java_text, values)) + self.recordDelimiter).encode()
        except ValueError as error:  # half of a surrogate pair, a number of more than 4,300 digits
            raise StateError(
                f"DelimitedRecordFormat: {short(list(values))} has no text: {error}. Nothing of the batch is written. "
                "Convert the value before the state"
            ) from None


def _java_text(value: Any) -> str:
    """Return the text that Java writes for nulls, booleans and floats, and Python's for all others."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return java_double(value) if isinstance(value, float) else str(value)


class Rows(Protocol):
    """The rows of one file while it is written."""

    def write(self, rows: Any) -> None:
        """Write a table of checked rows, or tuples for a format of one's own. Raises StateError."""

    def close(self) -> None:
        """Write the end of the file; do not close it."""


class FileFormat(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def suffix(self) -> str:
        """The end of the files' names."""

    @property
    def typed(self) -> bool:
        """Whether the rows are columns of declared types."""

    def rows(self, file: Any, schema: pa.Schema) -> Rows:
        """Begin a file."""

    def read(self, file: Any, schema: pa.Schema) -> Iterator[tuple]:
        """Yield the rows of a file."""

    def merge(self, sources: Iterator[Any], schema: pa.Schema, target: Any) -> None:
        """Write the rows of all sources, in their order, as one file."""


class ParquetFormat:
    """Columns keep their types. A write is one row group."""

    name, suffix, typed = "parquet", ".parquet", True

    def rows(self, file: Any, schema: pa.Schema) -> Rows:
        writer = pq.ParquetWriter(file, schema, compression="snappy")
        return _Delegated(writer)

    def read(self, file: Any, schema: pa.Schema) -> Iterator[tuple]:
        return _tuples(pq.read_table(file))

    def merge(self, sources: Iterator[Any], schema: pa.Schema, target: Any) -> None:
        with pq.ParquetWriter(target, schema, compression="snappy") as writer:
            waiting: list[pa.Table] = []
            for source in sources:
                file = pq.ParquetFile(source)
                for group in range(file.num_row_groups):
                    waiting.append(file.read_row_group(group).cast(schema))
                    if sum(table.num_rows for table in waiting) >= ROWS_AT_ONCE:
                        writer.write_table(pa.concat_tables(waiting))
                        waiting = []
            if waiting:
                writer.write_table(pa.concat_tables(waiting))


class CsvFormat:
    """A header, then one row per line, as RFC 4180 has it. Text is quoted, a null is not: ``""`` and nothing differ."""

    name, suffix, typed = "csv", ".csv", True

    def rows(self, file: Any, schema: pa.Schema) -> Rows:
        return _Delegated(pc.CSVWriter(file, schema))

    def read(self, file: Any, schema: pa.Schema) -> Iterator[tuple]:
        types = {field.name: field.type for field in schema}
        convert = pc.ConvertOptions(
            column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
            true_values=["true"], false_values=["false"],
        )  # fmt: skip
        parse = pc.ParseOptions(newlines_in_values=True)
        data = file.read()
        blocks = pc.ReadOptions(block_size=min(max(len(data), 1 << 20), (1 << 31) - 1))  # a block holds whole rows
        return _tuples(pc.read_csv(pa.BufferReader(data), blocks, parse, convert).cast(schema))

    def merge(self, sources: Iterator[Any], schema: pa.Schema, target: Any) -> None:
        header = pa.BufferOutputStream()
        pc.write_csv(schema.empty_table(), header)
        head = header.getvalue().to_pybytes()
        target.write(head)
        for source in sources:
            target.write(source.read()[len(head) :])


class _Delegated:
    def __init__(self, writer: Any) -> None:
        self.write, self.close = writer.write_table, writer.close


class JsonFormat:
    """One object per line. A decimal is a text, bytes are Base64, a time is ISO 8601: as Spark reads them by type."""

    name, suffix, typed = "json", ".json", True

    def rows(self, file: Any, schema: pa.Schema) -> Rows:
        return _JsonRows(file)

    def read(self, file: Any, schema: pa.Schema) -> Iterator[tuple]:
        for line in file.read().splitlines():
            row = parse_json(line)
            yield tuple(_of_json(row[field.name], field.type) for field in schema)

    def merge(self, sources: Iterator[Any], schema: pa.Schema, target: Any) -> None:
        for source in sources:
            target.write(source.read())


class _JsonRows:
    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, rows: pa.Table) -> None:
        names = rows.column_names
        lines = [
            json.dumps(dict(zip(names, row, strict=True)), default=_to_json, ensure_ascii=False, allow_nan=False)
            for row in _tuples(rows)
        ]
        self._file.write(("\n".join(lines) + "\n").encode())

    def close(self) -> None:
        """Do nothing: a line ends itself."""


@dataclass(frozen=True)
class CustomFormat:
    """A `RecordFormat` of the user's own."""

    format: RecordFormat
    name: ClassVar[str] = "records"
    typed: ClassVar[bool] = False

    @property
    def suffix(self) -> str:
        return self.format.suffix

    def rows(self, file: Any, schema: pa.Schema) -> Rows:
        return _RecordRows(self.format, file)

    def read(self, file: Any, schema: pa.Schema) -> Iterator[tuple]:
        """Yield the lines behind the header, which end with LF or CR LF."""
        body = file.read()[len(self.format.header) :]
        for line in body.removesuffix(b"\n").split(b"\n") if body else ():
            yield (line.removesuffix(b"\r"),)

    def merge(self, sources: Iterator[Any], schema: pa.Schema, target: Any) -> None:
        target.write(self.format.header)
        for source in sources:
            target.write(source.read()[len(self.format.header) :])


class _RecordRows:
    def __init__(self, format: RecordFormat, file: Any) -> None:
        self._format, self._file = format, file
        file.write(format.header)

    def write(self, rows: Sequence[TridentTuple]) -> None:
        records = [self._format.format(row) for row in rows]
        if wrong := {type(record).__name__ for record in records if not isinstance(record, bytes)}:
            name = type(self._format).__name__
            raise StateError(f"FileState: {name}.format returned {min(wrong)}, not bytes. Encode the record")
        self._file.write(b"".join(records))

    def close(self) -> None:
        """Do nothing: a record ends itself."""


FORMATS: dict[str, FileFormat] = {each.name: each for each in (ParquetFormat(), CsvFormat(), JsonFormat())}


def format_of(given: str | RecordFormat) -> FileFormat:
    """Raise DefinitionError for a format that does not exist."""
    if isinstance(given, RecordFormat):
        if set(given.suffix) & set("/\0"):
            where = f"FileState: {type(given).__name__}.suffix"
            raise DefinitionError(f"{where} ends the names of files, and {given.suffix!r} has / or NUL")
        return CustomFormat(given)
    if given not in FORMATS:
        raise DefinitionError(f"FileState: no format {given!r}; there are: {', '.join(FORMATS)}, or a RecordFormat")
    return FORMATS[given]


def explain_refusal(format: FileFormat, schema: pa.Schema) -> str:
    """Return why a format cannot hold these columns; "" if it can."""
    if isinstance(format, CsvFormat):
        for field in schema:
            if pa.types.is_binary(field.type):
                return f"csv cannot hold the binary column {field.name!r}; use parquet or json"
    return ""


def strange(format: FileFormat, array: pa.Array, alone: bool) -> str:
    """Return why a format cannot hold a value of this column, which may be alone in its rows; "" if it can."""
    if isinstance(format, CsvFormat) and alone and array.null_count:
        return "in csv the row of a null alone is a blank line, which readers skip"
    numbers = array.to_pylist() if isinstance(format, JsonFormat) and pa.types.is_floating(array.type) else []
    return "" if all(each is None or math.isfinite(each) for each in numbers) else "json has no such number"


def _tuples(table: pa.Table) -> Iterator[tuple]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return text if value.tzinfo is None else f"{text}Z"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    return base64.b64encode(value).decode()


def _of_json(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return datetime.datetime.fromisoformat(value)
    if pa.types.is_date(kind):
        return datetime.date.fromisoformat(value)
    if pa.types.is_decimal(kind):
        return decimal.Decimal(value)
    return base64.b64decode(value) if pa.types.is_binary(kind) else value
