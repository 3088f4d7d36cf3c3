"""A table in which a state of Storm keeps its values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from ...databases.options import check_options
from ...databases.sessions import driver_of, pin_engine
from ...errors import DefinitionError, TridentError
from ...model.secrets import hide, redact_url, secrets_in
from ...state import StateType
from .sources import Batch, Number, unreadable
from .storm_values import PARTS, Key, check_form, decode, other_form


class _Float(sa.types.TypeDecorator[float]):
    """A float of 32 bits: in the fewest digits that tell it from others, as PostgreSQL gives it."""

    impl = sa.Double
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Any) -> float | None:
        return None if value is None else float(str(np.float32(value)))


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

    def read(self, size: int, number: Number | None = None) -> Iterator[Batch]:
        columns = [*self.key, *([self.txid] if self.txid else []), *self.value, *self.previous]
        with self._connect() as connection:
            for part in self._select(connection, columns).partitions(size):
                yield self._split(part, number)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield all rows, by the names of all columns."""
        with self._connect() as connection:
            names = [each["name"] for each in sa.inspect(connection).get_columns(self.table)]
            yield from (dict(zip(names, row, strict=True)) for row in self._select(connection, names))

    @contextmanager
    def _connect(self) -> Iterator[sa.Connection]:
        """Give a connection; its errors inside are raised as TridentError."""
        engine = self._open()
        try:
            with engine.connect().execution_options(stream_results=True) as connection:
                yield connection
        except sa.exc.SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error  # SQLAlchemy's own name
            text = hide(str(cause), secrets_in(self.url))
            raise TridentError(f"{self.shown}: {text}. Check table and columns") from error
        finally:
            engine.dispose()

    def _select(self, connection: sa.Connection, columns: Sequence[str]) -> Any:
        table, types = sa.table(self.table, *map(sa.column, columns)), self._find_types(connection)
        return connection.execute(sa.select(*(self._read_exactly(table.c[name], types.get(name)) for name in columns)))

    def _find_types(self, connection: sa.Connection) -> dict[str, Any]:
        """Return the types of the columns; none of a table that is not there: what is selected of it says so."""
        if connection.dialect.name == "sqlite":
            return {}
        with suppress(sa.exc.NoSuchTableError):
            return {each["name"]: each["type"] for each in sa.inspect(connection).get_columns(self.table)}
        return {}

    def _read_exactly(self, column: Any, kind: Any) -> Any:
        """Return what is selected for a column: MySQL shows six digits of a FLOAT, and psycopg makes doubles of the
        numbers in JSON."""
        if isinstance(kind, mysql.FLOAT):
            return sa.type_coerce(column + sa.literal_column("0e0"), _Float()).label(column.name)
        holds_state = self.kind is not StateType.NON_TRANSACTIONAL and self.txid is None
        return sa.cast(column, sa.Text).label(column.name) if holds_state and isinstance(kind, sa.JSON) else column

    def _open(self) -> sa.Engine:
        """Return an engine. Raises DefinitionError, without a secret, for a URL that cannot be read."""
        try:
            url = sa.make_url(self.url)
            if "@" in (url.host or ""):
                raise ValueError("a part of the password")
            check_options(url)
            with driver_of(url):
                engine = sa.create_engine(url)
        except DefinitionError:
            raise
        except sa.exc.NoSuchModuleError:
            raise DefinitionError(f"{self.shown}: SQLAlchemy has no dialect {url.drivername!r}") from None
        except (sa.exc.ArgumentError, ValueError, TypeError):  # their messages show a part of the password
            raise unreadable(f"table {self.table!r}", "mysql+pymysql://me@host/database") from None
        pin_engine(engine)
        return engine

    def _split(self, rows: Sequence[Any], number: Number | None) -> Batch:
        width, wide = len(self.key), len(self.value)
        keys = [tuple(row[:width]) for row in rows]
        if self.kind is not StateType.NON_TRANSACTIONAL and self.txid is None:
            texts = [_as_bytes(self.kind, key, row[width]) for key, row in zip(keys, rows, strict=True)]
            return keys, decode(self.kind, keys, texts, number)
        parts = PARTS.get(self.kind, 1)
        starts = [width + (parts > 1) + wide * part for part in range(max(parts - 1, 1))]
        heads = [[_as_txid(row[width])] if parts > 1 else [] for row in rows]
        values = [
            [*head, *(_group(row[start : start + wide]) for start in starts)]
            for head, row in zip(heads, rows, strict=True)
        ]
        return keys, check_form(self.kind, keys, values if parts > 1 else [value[0] for value in values])


def _as_bytes(kind: StateType, key: Key, text: Any) -> bytes:
    """Return the JSON of a column, which a driver may have parsed. Raises StateError for anything else."""
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    if text is None or isinstance(text, list):
        return json.dumps(text).encode()
    if isinstance(text, str):
        return text.encode()
    raise other_form(kind, key, repr(text))


def _as_txid(txid: Any) -> Any:
    """Return the number of a NUMERIC column as a whole one, if it is that."""
    return int(txid) if isinstance(txid, Decimal) and txid.is_finite() and txid == int(txid) else txid


def _group(values: Sequence[Any]) -> Any:
    """Return one value, or a row of several; None if all of them are null."""
    if len(values) == 1:
        return values[0]
    return None if all(value is None for value in values) else tuple(values)
