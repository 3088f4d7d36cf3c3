"""A table in which a state of Storm keeps its values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ...databases.sessions import driver_of, pin_engine
from ...errors import TridentError
from ...model.secrets import hide, redact_url
from ...state import StateType
from .sources import Batch
from .storm_values import PARTS, check_form, decode


@dataclass(frozen=True)
class TableSource:
    """A table of a database. ``txid`` and ``previous`` name their columns; without ``txid`` the one column ``value``
    holds the JSON text that Storm's serializers make."""

    url: str
    table: str
    kind: StateType
    key: tuple[str, ...]
    value: tuple[str, ...]
    txid: str | None = None
    previous: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        return f"table {self.table!r} at {redact_url(self.url)}"

    def read(self, size: int) -> Iterator[Batch]:
        columns = [*self.key, *([self.txid] if self.txid else []), *self.value, *self.previous]
        table = sa.table(self.table, *map(sa.column, columns))
        try:
            with driver_of(sa.make_url(self.url)):
                engine = sa.create_engine(self.url)
            pin_engine(engine)
            with engine.connect().execution_options(stream_results=True) as connection:
                rows = connection.execute(sa.select(*(table.c[name] for name in columns)))
                for part in rows.partitions(size):
                    yield self._split(part)
            engine.dispose()
        except sa.exc.SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error  # SQLAlchemy's own name
            text = f"{type(cause).__name__}: {hide(str(cause))}"
            raise TridentError(f"{self.shown}: {text}. Check table and columns") from error

    def _split(self, rows: Sequence[Any]) -> Batch:
        width, wide = len(self.key), len(self.value)
        keys = [tuple(row[:width]) for row in rows]
        if self.kind is not StateType.NON_TRANSACTIONAL and self.txid is None:
            return keys, decode(self.kind, keys, [_as_bytes(row[width]) for row in rows])
        parts = PARTS.get(self.kind, 1)
        starts = [width + (parts > 1) + wide * part for part in range(max(parts - 1, 1))]
        heads = [[row[width]] if parts > 1 else [] for row in rows]
        values = [
            [*head, *(_group(row[start : start + wide]) for start in starts)]
            for head, row in zip(heads, rows, strict=True)
        ]
        return keys, check_form(self.kind, keys, values if parts > 1 else [value[0] for value in values])


def _as_bytes(text: Any) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text or b"null")


def _group(values: Sequence[Any]) -> Any:
    """Return one value, or a row of several; None if all of them are null."""
    if len(values) == 1:
        return values[0]
    return None if all(value is None for value in values) else tuple(values)
