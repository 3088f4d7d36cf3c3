"""The last step of a DRPC function: its rows as JSON."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import TridentError
from ...model.canonical import UnkeyableError, to_plain
from ...model.chunks import Chunk
from ...tuples import Fields
from .base import NodeContext, Processor, Spec


@dataclass(frozen=True)
class Answer(Spec):
    """Reports the rows of a DRPC stream's last statement to the caller."""

    function: str
    fields: Fields

    @property
    def operation(self) -> str:
        return f"answer of {self.function}"

    def reads(self, port: int) -> Iterable[str]:
        return self.fields

    def make(self, context: NodeContext) -> Processor:
        return AnswerProcessor(self, context)


class AnswerProcessor(Processor[Answer]):
    """Reports the rows of its partition, each as one JSON array."""

    def execute(self, port: int, chunk: Chunk) -> None:
        fields = self.spec.fields
        self.context.report("answer", [row_text(row, fields) for row in chunk.rows(fields)])


_DIGITS = 4_000
_UNFIT = (TypeError, ValueError, RecursionError, UnkeyableError)


def row_text(row: Sequence[Any], fields: Fields) -> str:
    """Return a row as a JSON array. Numbers that JSON lacks (NaN, infinities) are null, as in Storm; dates, times and
    UUIDs are texts; a Decimal is a number with all its digits. Raises TridentError for any other value, naming its
    field."""
    try:
        return _dump(row)
    except _UNFIT:
        return "[" + ",".join(map(_value_text, row, fields)) + "]"


def _dump(value: Any) -> str:
    return json.dumps(value, allow_nan=False, default=_plain, separators=(",", ":"))


def _value_text(value: Any, field: str) -> str:
    try:
        return _exact_text(value)
    except _UNFIT as error:
        raise TridentError(
            f"field {field!r} of the answer holds a {type(value).__name__}, which JSON cannot hold ({error}). "
            "Drop the field with project(...), or turn it into text or numbers with map"
        ) from None


def _exact_text(value: Any) -> str:
    """Return the value as JSON, with null for each NaN and infinity in it, and all digits of each Decimal."""
    value = to_plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "null"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_exact_text, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_dump({key: 0})[1:-3]}:{_exact_text(item)}" for key, item in value.items()) + "}"
    is_fraction = isinstance(value, decimal.Decimal) and value.is_finite() and value != value.to_integral_value()
    return str(value) if is_fraction else _dump(value)


def _plain(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return _number(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if (plain := to_plain(value)) is not value:
        return plain
    raise TypeError(f"{value!r:.100}")


def _number(value: decimal.Decimal) -> int | float | None:
    if not value.is_finite():
        return None
    if value.adjusted() > _DIGITS:  # written out, 1E+1000000 takes minutes
        raise ValueError(f"it has more than {_DIGITS:,} digits before the point")
    if value == value.to_integral_value():
        return int(value)
    if decimal.Decimal(repr(float(value))) != value:
        raise ValueError("a double does not have all its digits")
    return float(value)
