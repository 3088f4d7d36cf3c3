"""The values of a SqlMapState outside of any run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import Any

from states.columns.arrow import KeyedRows
from states.sql.maps.backing import SqlBackingMap
from states.sql.maps.state import GLOBAL_KEY
from states.sql.rows.table_writer import Stage

from ...errors import StateError
from ...state import StateType
from ...state.base import Key
from ...tuples import Fields
from .declared_types import name_global

FEW = 2_000  # up to so many rows are written and read one by one, as in a batch


class StoredSqlValues:
    """See `trident_py.state.roles.StoredValues`. Without a key the one value is that of the global aggregate, whatever
    its key elsewhere. Many rows are loaded in bulk, and compared in the database itself, over a
    connection of its own: what was put is read while more is put."""

    def __init__(
        self, open_backing: Callable[[], SqlBackingMap], kind: StateType, key: Fields | None, value: Fields
    ) -> None:
        self.kind = kind
        self.key = key
        self.value = value
        self._open_backing = open_backing
        self._backing = open_backing()
        self._new = self.count() == 0
        self._made: list[tuple[Any, Any, KeyedRows]] = []

    @cached_property
    def _compared(self) -> SqlBackingMap:
        return self._open_backing()

    def put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        keys = self._map_keys(keys)
        if self._new and len(keys) > FEW:
            try:
                self._write(partial(self._load, self._columns_of(keys, values)))
                return
            except StateError:  # a key is there already, or a value does not fit: then the other way says so
                self._new = False
        self._write(partial(self._backing.multiPut, keys, values))

    def get(self, keys: Sequence[Key]) -> list[Any]:
        return self._backing.multiGet(self._map_keys(keys))

    def holds(self, keys: Sequence[Key], values: Sequence[Any]) -> bool:
        keys = self._map_keys(keys)
        if len(keys) > FEW:
            rows, transaction = self._columns_of(keys, values), self._compared.transaction
            transaction.begin(None)
            try:
                with transaction.using() as connection:
                    stage = Stage(transaction.store, connection, self._compared.table, rows)
                    written = stage.all_known(compare=True)
            finally:
                transaction.rollback()
            if written is not None:
                return written.conflicts == 0
        return self._compared.multiGet(keys) == list(values)

    def count(self) -> int:
        with self._backing.transaction.using() as connection:
            return int(connection.execute(f'SELECT count(*) FROM "{self._backing.table}"').fetchone()[0])

    def rows(self) -> Iterable[tuple[Key, Any]]:
        return self._backing.rows()

    def _columns_of(self, keys: Sequence[Key], values: Sequence[Any]) -> KeyedRows:
        """Return the rows as columns. Those of the last two calls are kept, since what is put is asked for next."""
        for known, of, rows in self._made:
            if known is keys and of is values:
                return rows
        made = keys, values, self._backing.columns_of(keys, values)
        self._made = [*self._made[-1:], made]
        return made[2]

    def _load(self, rows: KeyedRows) -> None:
        backing = self._backing
        with backing.transaction.using() as connection:
            for positions in rows.in_key_order():
                part = rows.take(positions)
                backing.dialect.fill(connection, backing.table, part.columns, part.arrays)

    def _write(self, work: Any) -> None:
        transaction = self._backing.transaction
        transaction.begin(None)
        try:
            work()
            transaction.commit()
        except BaseException:
            transaction.rollback()
            raise

    def _map_keys(self, keys: Sequence[Key]) -> Sequence[Key]:
        return keys if self.key is not None else name_global(f"table {self._backing.table!r}", GLOBAL_KEY, keys)
