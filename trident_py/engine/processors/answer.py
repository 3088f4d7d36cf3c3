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


def row_text(row: Sequence[Any], fields: Fields) -> str:
    """Return a row as a JSON array. Numbers that JSON lacks (NaN, infinities) are null, as in Storm; dates, times and
    UUIDs are texts; a Decimal is a number. Raises TridentError for any other value, naming its field."""
    try:
        return json.dumps(row, allow_nan=False, default=_plain, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return "[" + ",".join(map(_value_text, row, fields)) + "]"


def _value_text(value: Any, field: str) -> str:
    try:
        return json.dumps(_finite(value), allow_nan=False, default=_plain, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise TridentError(
            f"field {field!r} of the answer holds a {type(value).__name__}, which JSON cannot hold ({error}). "
            "Drop the field with project(...), or turn it into text or numbers with map"
        ) from None


def _finite(value: Any) -> Any:
    """Return the value with None for each NaN and infinity in it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return {key: _finite(item) for key, item in value.items()} if isinstance(value, dict) else value


def _plain(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        if not value.is_finite():
            return None
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    raise TypeError(f"{value!r:.100}")
