"""Dead letters: rows that a table refused, stored beside it with the reason."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from ...columns.keyed import KeyedRows
from ...columns.values import Column
from ..connection import Connection
from ..ledger import SqlFence
from ..store import Store, retry_transient
from ..table import create

SUFFIX = "_rejected"
_REASON = 500
_KEYS = ("topology varchar(190)", "state varchar(190)", "txid bigint", "digest varchar(64)")
_OTHERS = ("count bigint", "reason string", "row string", "time varchar(40)")


class Reject(NamedTuple):
    """A refused row (field to value) and the reason."""

    row: dict[str, Any]
    reason: str

    @classmethod
    def of(cls, rows: KeyedRows, row: int, reason: str) -> Reject:
        return cls(dict(zip((column.name for column in rows.columns), rows.row(row), strict=True)), reason)


class Rejects:
    """The rejected rows of one state, in ``<table>_rejected``; a partition writes them with its data.

    On replay: a row rejected under the same txid replaces its earlier entry and is not doubled. The key is (topology,
    state, txid, digest of the row); ``count`` is how often the row occurred in the partition that wrote it last. A
    batch without a txid is written as batch 0.
    """

    def __init__(self, table: str, fence: SqlFence | None) -> None:
        self.table = f"{table}{SUFFIX}"
        self._own = ("", table) if fence is None else fence.own
        self._store: Store | None = None

    def prepare(self, store: Store) -> None:
        """Create the table if it is missing. Called outside a transaction, since MySQL commits at CREATE TABLE."""
        self._store = store
        if self.table not in store.ready:
            with store.errors(f"make table {self.table!r}"):
                retry_transient(store, lambda: self._make(store))
            store.ready[self.table] = True

    def write(self, connection: Connection, txid: int | None, rejects: Iterable[Reject]) -> int:
        """Write the rejects in the transaction that writes the batch; return how many there were."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        most = None if self._store is None else self._store.dialect.longest(connection)
        entries: dict[str, list[Any]] = {}
        for reject in rejects:
            text = _json(reject.row)
            digest = hashlib.sha256(text.encode()).hexdigest()
            if most is not None and 2 * len(text) > most:  # too long for a statement: shorten each value
                text = _json({name: _cut(value) for name, value in reject.row.items()})
            entries.setdefault(digest, [0, shorten(reject.reason), text, now])[0] += 1
        if entries and self._store is not None:
            rows = [(*self._own, txid or 0, digest, *values) for digest, values in sorted(entries.items())]
            self._store.dialect.write(connection, self.table, _columns(_KEYS, True), _columns(_OTHERS), rows)
        return sum(values[0] for values in entries.values())

    def _make(self, store: Store) -> None:
        with store.writing() as connection:
            columns = [
                sa.Column(c.name, store.dialect.storage(c), primary_key=c.key, nullable=False, autoincrement=False)
                for c in [*_columns(_KEYS, True), *_columns(_OTHERS)]
            ]
            options = store.dialect.table_options(connection, True)
            create(store, connection, sa.Table(self.table, sa.MetaData(), *columns, **options))


def shorten(text: str, length: int = _REASON) -> str:
    """Return the start and the end of a text longer than ``length``."""
    return text if len(text) <= length else f"{text[: length - 63]} ... {text[-58:]}"


def _columns(declared: Sequence[str], key: bool = False) -> list[Column]:
    return [Column(name, ddl, key) for name, ddl in map(str.split, declared)]


def _json(row: dict[str, Any]) -> str:
    """Return the row as JSON text, for reading and for `json.loads`; a value without a JSON form becomes a text."""
    try:
        return json.dumps(row, default=_show)
    except (TypeError, ValueError, RecursionError):
        return json.dumps({name: repr(value) for name, value in row.items()})


def _cut(value: Any) -> Any:
    text = value if isinstance(value, str) else _json({"": value})
    return value if len(text) <= _REASON else f"{shorten(text)} ({len(text)} characters)"


def _show(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return value.isoformat() if isinstance(value, datetime.date) else str(value)
