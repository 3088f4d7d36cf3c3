"""The values of a SqlMapState outside of any run, for tools that move them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trident_py.errors import StateError
from trident_py.state import StateType
from trident_py.state.base import Key
from trident_py.tuples import Fields

from .backing import SqlBackingMap

GLOBAL_KEY = ("$GLOBAL$",)


class StoredSqlValues:
    """See `trident_py.state.roles.StoredValues`. Without a key the one value is that of the global aggregate, whatever
    its key elsewhere."""

    def __init__(self, backing: SqlBackingMap, kind: StateType, key: Fields | None) -> None:
        self.kind = kind
        self.key = key
        self._backing = backing

    def put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        transaction = self._backing.transaction
        transaction.begin(None)
        try:
            self._backing.multiPut(self._stored_keys(keys), values)
            transaction.commit()
        except BaseException:
            transaction.rollback()
            raise

    def get(self, keys: Sequence[Key]) -> list[Any]:
        return self._backing.multiGet(self._stored_keys(keys))

    def count(self) -> int:
        transaction = self._backing.transaction
        rows = 0
        for index in range(len(transaction.stores)):
            with transaction.using(index) as connection:
                rows += connection.execute(f'SELECT count(*) FROM "{self._backing.table}"').fetchone()[0]
        return rows

    def _stored_keys(self, keys: Sequence[Key]) -> Sequence[Key]:
        if self.key is not None:
            return keys
        if len(keys) > 1:
            raise StateError(
                f"table {self._backing.table!r} has one value, that of a global aggregate, and got {len(keys)} keys; "
                "give the state its key"
            )
        return [GLOBAL_KEY for _ in keys]
