"""``<table>_staged``: where the partitions of a batch stage their rows until all are shown at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.types import NullType

from trident_py.errors import StateError

from ...columns.keyed import KeyedRows
from ...columns.values import Column
from ..connection import Connection
from ..dialects.base import check_taken, marks, names
from ..ledger import SqlFence
from ..store import Store, retry_transient
from ..table import Shape, TablePlace, create, existing
from ..transaction import naming

SUFFIX = "_staged"
_OWN = [
    Column("trident_topology", "varchar(190)", True), Column("trident_state", "varchar(190)", True),
    Column("trident_txid", "bigint", True), Column("trident_token", "varchar(40)", True),
    Column("trident_row", "bigint", True), Column("trident_generation", "bigint"),
    Column("trident_attempt", "bigint"), Column("trident_partition", "bigint"),
]  # fmt: skip
_MINE = "WHERE trident_topology = ? AND trident_state = ?"


class StagedBy(NamedTuple):
    """The task that staged the rows, in the order of the columns."""

    topology: str
    state: str
    txid: int
    token: str
    generation: int
    attempt: int
    partition: int


class StagingTable:
    """``<table>_staged`` of one table. All methods but `prepare` and `exists` run in the caller's transaction."""

    def __init__(self, place: TablePlace) -> None:
        self.table = place.table
        self.name = f"{place.table}{SUFFIX}"
        self.store: Store = place.stores()[0]

    def prepare(self, shape: Shape) -> None:
        """Create the table if it is missing, with the data table's types. Raises StateError if columns are missing."""
        if (self.name, shape) in self.store.ready:
            return
        with self.store.errors(f"make table {self.name!r}"):
            retry_transient(self.store, lambda: self._make(shape))
        stored = existing(self.store, self.name) or {}
        if missing := [column.name for column in [*_OWN, *shape.columns] if column.name not in stored]:
            raise StateError(
                f"table {self.name!r} in {self.store.shown} lacks the columns {missing}: table {self.table!r} has "
                "changed since it was created, or another program created it. Drop it while the topology is stopped: "
                "it holds no committed rows"
            )
        self.store.ready[self.name, shape] = True

    def exists(self) -> bool:
        """Return whether the table exists: whether any partition has ever staged."""
        if self.name not in self.store.ready:
            if existing(self.store, self.name) is None:
                return False
            self.store.ready[self.name] = True
        return True

    def stage(self, connection: Connection, owner: StagedBy, first: int, rows: KeyedRows) -> None:
        """Stage rows of one task; ``first`` is the number of its first row."""
        arrays = [pa.repeat(pa.scalar(value, _type(value)), len(rows)) for value in owner]
        arrays.insert(4, pa.array(range(first, first + len(rows)), pa.int64()))
        self.store.dialect.fill(connection, self.name, [*_OWN, *rows.columns], [*arrays, *rows.arrays])

    def show(
        self, connection: Connection, fence: SqlFence, txid: int, stages: dict[str, int], columns: Sequence[str],
        keys: Sequence[str],
    ) -> None:  # fmt: skip
        """Move the rows of these stages (token to count) into the table.

        Raises StateError if a stage is incomplete or the table refuses a row.
        """
        which = f"{_MINE} AND trident_txid = ? AND trident_token IN ({marks(len(stages))})"
        parameters = (*fence.own, txid, *stages)
        text = f"SELECT trident_token, count(*) FROM \"{self.name}\" {which} GROUP BY trident_token"
        counts = dict(connection.execute(text, parameters).fetchall())
        if counts != stages:
            raise StateError(
                f"table {self.name!r}: batch {txid} has {sum(counts.values())} staged rows, but its tasks staged "
                f"{sum(stages.values())}: a replica that lagged has taken over, or the table was changed. Nothing of "
                "the batch is shown. Start the topology again: the batch is replayed"
            )
        shown = connection.execute(self._insert(connection, which, columns, keys), parameters).rowcount
        sent = sum(stages.values())
        if keys and shown < sent:  # one row of each key is sent; if all columns are the key, one that is there stays
            sent, there = connection.execute(self._counts(which, keys), parameters).fetchone()
            shown = there if len(keys) == len(columns) else shown
        with naming(fence, txid):
            check_taken(self.table, sent, shown)

    def sweep(self, connection: Connection, fence: SqlFence, which: str, *values: int) -> None:
        """Delete staged rows of this state. ``which``: an SQL condition that begins with a column name."""
        connection.execute(f'DELETE FROM "{self.name}" {_MINE} AND trident_{which}', (*fence.own, *values))

    def _insert(self, connection: Connection, which: str, columns: Sequence[str], keys: Sequence[str]) -> str:
        into, wanted = f'INSERT INTO "{self.table}" ({names(columns)})', names(columns)
        if not keys:
            return f'{into} SELECT {wanted} FROM "{self.name}" {which} ORDER BY trident_token, trident_row'
        last = f"PARTITION BY {names(keys)} ORDER BY trident_partition DESC, trident_row DESC"
        ranked = f'SELECT {wanted}, row_number() OVER ({last}) AS trident_rank FROM "{self.name}" {which}'
        others = [name for name in columns if name not in keys]
        chosen = f"SELECT {wanted} FROM ({ranked}) AS q WHERE trident_rank = 1 ORDER BY {names(keys)}"
        return f"{into} {chosen}{self.store.dialect.instead(connection, keys, others, 'q')}"

    def _counts(self, which: str, keys: Sequence[str]) -> str:
        """Return how many different keys the stages have, and how many of these the table has."""
        same = " AND ".join(f't."{name}" = q."{name}"' for name in keys)
        there = f'EXISTS (SELECT 1 FROM "{self.table}" AS t WHERE {same})'
        staged = f'SELECT DISTINCT {names(keys)} FROM "{self.name}" {which}'
        return f"SELECT count(*), sum(CASE WHEN {there} THEN 1 ELSE 0 END) FROM ({staged}) AS q"

    def _make(self, shape: Shape) -> None:
        columns = sa.inspect(self.store.engine).get_columns(self.table)
        types = {column["name"]: column["type"] for column in columns if not isinstance(column["type"], NullType)}
        with self.store.writing() as connection:
            stored = [sa.Column(c.name, self._storage(c), primary_key=c.key, autoincrement=False) for c in _OWN]
            for column in shape.columns:
                kind = types.get(column.name) or self._storage(Column(column.name, column.ddl))
                stored.append(sa.Column(column.name, kind, nullable=True))
            options = self.store.dialect.table_options(connection, True)
            create(self.store, connection, sa.Table(self.name, sa.MetaData(), *stored, **options))

    def _storage(self, column: Column) -> Any:
        return self.store.dialect.storage(column)


def _type(value: Any) -> pa.DataType:
    return pa.large_string() if isinstance(value, str) else pa.int64()
