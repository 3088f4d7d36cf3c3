"""Reads JSON objects as typed columns: each value keeps what was written, or is an error. Runs in the tasks.

Two readers give one result: Arrow's reads plain types, a block at a time, and Python's reads the rest. Arrow's reader
leaves to Python's whatever the two would read differently, so results do not depend on which records share a block.
"""

from __future__ import annotations

import base64
import decimal
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from ..errors import SpoutError, TridentError
from ..model.chunks import Column, arrow_type, convert, decimals, kinds_of
from ..tuples import Fields

DescribeRecord = Callable[[int, str], str]
"""Makes the message for a record out of its number and the problem."""
TO_UTF_8 = "convert it to UTF-8"


def is_text(block: bytes) -> bool:
    """Return whether the block is UTF-8."""
    try:
        pa.array([block], pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def json_table(block: bytes, fields: Fields) -> pa.Table | None:
    """Read the block by Arrow's reader if all fields have plain types. None: Python's reader must read it.

    Python's reader accepts some values that this one refuses, and reports errors better.
    """
    types = [(name, arrow_type(ddl)) for name, ddl in fields.types.items()]
    if not types or len(types) < len(fields) or not all(map(_simple, dict(types).values())) or not block.strip():
        return None
    parse = pa_json.ParseOptions(explicit_schema=pa.schema(types), unexpected_field_behavior="ignore")
    options = pa_json.ReadOptions(use_threads=False, block_size=len(block) + 1)
    try:
        table = pa_json.read_json(pa.BufferReader(block), options, parse)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return table if all(map(_finite_column, table.columns)) else None


def _simple(kind: pa.DataType) -> bool:
    return kind in (pa.int64(), pa.int32(), pa.float64(), pa.string(), pa.bool_())


def _finite_column(column: pa.ChunkedArray) -> bool:
    return not pa.types.is_floating(column.type) or pc.all(pc.is_finite(column)).as_py() is not False


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is too large for a double")
    return value


_PLAIN = json.JSONDecoder(parse_float=_finite)
_FLOATS = json.JSONDecoder(parse_float=_finite, parse_int=_finite)  # an int would lose the sign of -0
_EXACT = json.JSONDecoder(parse_float=decimal.Decimal)


def json_value(data: bytes) -> Any:
    """Return the value of a JSON text; a number is an int or the nearest double. Raises ValueError if malformed."""
    return _decode(_PLAIN, data)


def json_columns(records: Sequence[bytes | None], fields: Fields, describe: DescribeRecord) -> dict[str, Column]:
    """Return a column per field. A missing key is None; a record that is None has None in every field.

    Raises SpoutError, described by ``describe``, for a record that is not a JSON object, and for a value that does not
    fit the type of its field.
    """
    decoders = {name: _decoder_of(fields.types.get(name)) for name in fields}
    read = {decoder: _objects(decoder, records, fields, describe) for decoder in set(decoders.values())}
    columns: dict[str, Column] = {}
    for name, decoder in decoders.items():
        values = [None if record is None else record.get(name) for record in read[decoder]]
        columns[name] = _column(values, fields.types[name], name, describe) if name in fields.types else values
    return columns


def _decoder_of(ddl: str | None) -> json.JSONDecoder:
    """Return a decoder that keeps the type's numbers exact: a float changes a decimal, an int loses the sign of -0."""
    wanted = pa.null() if ddl is None else arrow_type(ddl)
    if pa.types.is_decimal(wanted):
        return _EXACT
    return _FLOATS if pa.types.is_floating(wanted) else _PLAIN


def _objects(
    decoder: json.JSONDecoder, records: Sequence[bytes | None], fields: Fields, describe: DescribeRecord
) -> list[dict[str, Any] | None]:
    objects: list[dict[str, Any] | None] = []
    for number, record in enumerate(records):
        try:
            value = None if record is None else _decode(decoder, record)
        except ValueError as error:
            raise SpoutError(describe(number, f"not JSON: {with_advice(str(error))}")) from error
        if record is not None and not isinstance(value, dict):
            raise SpoutError(describe(number, f"expected a JSON object with the fields {fields}, got {value!r:.80}"))
        objects.append(value)
    return objects


def _decode(decoder: json.JSONDecoder, data: bytes) -> Any:
    try:
        return decoder.decode(data.decode(json.detect_encoding(data), "surrogatepass"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except decimal.InvalidOperation:
        raise ValueError("a number's exponent is too large") from None


def _column(values: list[Any], ddl: str, name: str, describe: DescribeRecord) -> Column:
    try:
        return _convert(values, ddl, name)
    except TridentError as error:
        bad = next((at for at, value in enumerate(values) if not _fits(value, ddl, name)), 0)
        raise SpoutError(describe(bad, str(error))) from error


def _convert(values: list[Any], ddl: str, name: str) -> Column:
    """Convert to the type. JSON has no dates, bytes or decimals: texts hold them, bytes as Base64; a decimal may be a
    number, too."""
    wanted = arrow_type(ddl)
    if pa.types.is_temporal(wanted) or pa.types.is_binary(wanted):
        kinds: set[type] = {str}
    elif pa.types.is_decimal(wanted):
        kinds = {str, int, decimal.Decimal}
    else:
        return convert(values, ddl, name)
    if strange := kinds_of(values) - kinds:
        value = next(value for value in values if type(value) in strange)
        raise TridentError(f"field {name!r} is declared {ddl}, but a record holds {value!r:.80}")
    try:
        if pa.types.is_binary(wanted):
            return pa.array([None if value is None else _bytes(value) for value in values], wanted)
        texts = pa.array([None if value is None else str(value) for value in values], pa.string())
        return decimals(texts, wanted) if pa.types.is_decimal(wanted) else _times(texts, wanted)
    except ValueError as error:  # so are Arrow's and those of encodings
        why = with_advice(str(error))
        raise TridentError(f"field {name!r} is declared {ddl}, but a value does not fit: {why}") from error


def _times(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    times = texts.cast(wanted)
    years = pc.min_max(pc.year(times)).as_py()
    if years["min"] is not None and not 1 <= years["min"] <= years["max"] <= 9999:  # Arrow has more than Python
        raise ValueError("its year is outside 1 to 9999" + (" in UTC" if wanted == pa.timestamp("us", "UTC") else ""))
    return times


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"{text[:40]!r} is not Base64: {error}") from error


def _fits(value: Any, ddl: str, name: str) -> bool:
    try:
        _convert([value], ddl, name)
    except TridentError:
        return False
    return True


def with_advice(message: str) -> str:
    """Return what a parser says about a value, with the next step."""
    if "expected a zone offset" in message:
        return f"{message.partition('. If these')[0]}; declare timestamp_ntz, or give the times a zone"
    if "expected no zone offset" in message:
        return f"{message.rstrip('.')}; declare timestamp"
    return f"{message}; {TO_UTF_8}" if "UTF8" in message or "utf-8" in message else message
