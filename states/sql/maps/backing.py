"""The backing map over a SQL table: many keys per statement, in key order.

The order prevents deadlocks between partitions and keeps the store's tree warm, which accounts for most of the speed
on large tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from trident_py.errors import StateError
from trident_py.model.canonical import key_of
from trident_py.model.chunks import to_list
from trident_py.state import BackingMap, OpaqueValue, StateType, TransactionalValue
from trident_py.state.keys import ColumnKeys
from trident_py.state.updates import Combination

from ...columns.arrow import KeyedRows, arrow_array, encode_column
from ...columns.values import Column, RefusedValue, decode_row, refusal, transpose
from ..dialects.base import names
from ..table import Shape, TablePlace
from ..transaction import Transaction
from .combiners import PartialResults, Recipe

_WRAP: dict[StateType, Callable[[Any], Any]] = {
    StateType.NON_TRANSACTIONAL: itemgetter(0),
    StateType.TRANSACTIONAL: partial(tuple.__new__, TransactionalValue),
    StateType.OPAQUE: partial(tuple.__new__, OpaqueValue),
}


class SqlBackingMap(BackingMap):
    """Reads and writes the rows of one state partition; inside its transaction from `beginCommit` to `commit`.

    On replay: does nothing special; the map above it compares the txids.
    """

    def __init__(
        self, place: TablePlace, shape: Shape, width: int, kind: StateType, transaction: Transaction
    ) -> None:
        self.table = place.table
        self.keys = shape.keys
        self.columns = shape.others
        self.width = width
        self.kind = kind
        self.transaction = transaction
        self.dialect = transaction.store.dialect
        self.written = 0
        self._own = self.columns[: width + (kind is not StateType.NON_TRANSACTIONAL)]
        """The columns but those of the previous values, which are of the same kinds."""
        self._recipes: dict[str, Recipe | None] = {}
        self._last_read: tuple[Any, _Sorted] | None = None
        self._folds = any(column.folds for column in self.keys)

    def multiGet(self, keys: Sequence[Sequence[Any]]) -> list[Any]:
        if len(keys) == 0:
            return []
        order = self._sort(keys)
        self._last_read = (keys, order)
        stored: list[Any] = [None] * len(keys)
        with self.transaction.using() as connection:
            encoded = [order.encoded[i] for i in order.positions]
            rows = self.dialect.read(connection, self.table, self.keys, self.columns, encoded)
        for position, value in zip(order.positions, self._values(rows), strict=True):
            stored[position] = value
        return stored

    def multiPut(self, keys: Sequence[Sequence[Any]], vals: Sequence[Any]) -> None:
        if len(keys) == 0:
            return
        last = self._last_read
        if last is None or last[0] is not keys or self._folds:
            last = keys, self._sort(keys, decides=True)
        order = last[1]
        if len(set(order.encoded)) < len(keys):
            self._refuse_folded(order.encoded, keys)
        stored = self._encode_values(keys, vals)
        rows = [order.encoded[i] + stored[i] for i in order.positions]
        with self.transaction.using() as connection:
            self.dialect.write(connection, self.table, self.keys, self.columns, rows)
        self.written += len(keys)

    def _refuse_folded(self, encoded: Sequence[tuple], keys: Sequence[Sequence[Any]]) -> None:
        """Raise StateError for two keys that the columns store as one: the value of one key would be lost."""
        first: dict[tuple, Sequence[Any]] = {}
        for held, key in zip(encoded, keys, strict=True):
            other = first.setdefault(held, key)
            if key_of(other) != key_of(key):
                columns = ", ".join(_names(self.keys))
                raise StateError(
                    f"table {self.table!r}: keys {list(other)!r} and {list(key)!r} would be one key in the columns "
                    f"({columns}). Nothing of the batch is written. Give all keys one type and one time zone"
                )

    def multiCombine(
        self, txid: int | None, keys: Sequence[Sequence[Any]], combination: Combination
    ) -> list[Any] | None:
        """Combine partial results with the stored values inside the database, under the rules of this kind of map.

        Returns the new values, or an empty list unless they are wanted. Returns None, and writes nothing, if the result
        could differ from the map's own (a type other than the column's, a key twice, several value columns), if a row
        may not be changed, or if a result does not fit its column: the map then combines, or raises the error.
        """
        recipe = self._recipe(combination.sql) if self.transaction.active else None
        if recipe is None or not recipe.takes(combination.amounts):
            return None
        batch = self._batch(recipe, txid, keys, combination.amounts)
        if batch is None:
            return None
        with self.transaction.using() as connection:
            values = self.dialect.combine(connection, recipe, batch, combination.wanted)
        if values is None:
            return None
        self.written += len(keys)
        news: list[Any] = [None] * len(keys) if combination.wanted else []
        for position, new in zip(batch.positions() if combination.wanted else (), values, strict=True):
            news[position] = new
        return news

    def _recipe(self, sql: str) -> Recipe | None:
        if sql not in self._recipes:
            self._recipes[sql] = Recipe.of(self.table, self.keys, self.columns, self.width, self.kind, sql)
        return self._recipes[sql]

    def _batch(
        self, recipe: Recipe, txid: int | None, keys: Sequence[Sequence[Any]], amounts: Any
    ) -> PartialResults | None:
        """Return the partial results in the order of the table's tree; None if a key occurs twice."""
        if len(keys) > self.dialect.listed:
            typed = self._key_columns(keys, decides=True, takes=True)
            arrays = [self._encode(c, v, keys, encode_column) for c, v in typed]
            results = KeyedRows(recipe.columns, [*arrays, arrow_array(recipe.value, amounts)])
            ordered = pa.concat_arrays(list(results.in_key_order()))
            if not pc.all(results.first(ordered)).as_py():
                return None
            return PartialResults(txid, results.take(ordered).arrays, ordered.to_pylist)
        order = self._sort(keys, decides=True)
        if len(set(order.encoded)) != len(keys):
            return None
        numbers = amounts.to_pylist() if isinstance(amounts, pa.Array | pa.ChunkedArray) else amounts
        columns = transpose([order.encoded[i] for i in order.positions], len(self.keys)) or []
        sorted_numbers = [numbers[i] for i in order.positions]
        return PartialResults(txid, [*columns, sorted_numbers], partial(list, order.positions))

    def rows(self) -> Iterable[tuple[tuple, Any]]:
        """Return the rows as (key, value)."""
        selected = names([*self.keys, *self.columns])
        decoders = self._decoders(self.keys)
        with self.transaction.using() as connection:
            rows = connection.execute(f'SELECT {selected} FROM "{self.table}"').fetchall()
        width = len(self.keys)
        values = self._values([row[width:] for row in rows])
        for row, value in zip(rows, values, strict=True):
            yield decode_row(row[:width], decoders), value

    def last_txid(self) -> int:
        """Return the highest txid in the table, 0 if there is none."""
        if self.kind is StateType.NON_TRANSACTIONAL:
            return 0
        with self.transaction.using() as connection:
            return int(connection.execute(f'SELECT max(txid) FROM "{self.table}"').fetchone()[0] or 0)

    def _sort(self, keys: Sequence[Sequence[Any]], decides: bool = False) -> _Sorted:
        """Return the keys as the database driver takes them, and their order in the table's tree."""
        asked = not decides and not self.transaction.active
        columns = self._key_columns(keys, decides)
        encoded = [self._encode(column, values, keys, asked=asked) for column, values in columns]
        rows = list(zip(*encoded, strict=True))
        by: Any = encoded[0].__getitem__ if len(encoded) == 1 else rows.__getitem__
        return _Sorted(rows, sorted(range(len(rows)), key=by))

    def _key_columns(
        self, keys: Sequence[Sequence[Any]], decides: bool = False, takes: bool = False
    ) -> list[tuple[Column, Any]]:
        """Return the values of each key column; Arrow arrays are kept if the caller ``takes`` them.

        With ``decides``, keys about to be written settle the table's kind of key where it is open, see
        `key_types.settle_types`.
        """
        arrays = keys.columns if takes and isinstance(keys, ColumnKeys) else None
        columns = transpose(keys, len(self.keys)) if arrays is None else arrays
        if columns is None or len(columns) != len(self.keys):
            there = ", ".join(_names(self.keys))
            raise StateError(f"table {self.table!r} has the key columns ({there}), got the key {list(keys[0])!r}")
        settled = self.transaction.settle_types(self.table, self.keys, columns if decides else None)
        return list(zip(settled, columns, strict=True))

    def _encode(
        self, column: Column, values: Any, keys: Sequence[Sequence[Any]], encode: Callable = Column.encode,
        asked: bool = False,
    ) -> Any:  # fmt: skip
        try:
            return encode(column, values)
        except RefusedValue as why:
            bad = to_list(values[why.index : why.index + 1])[0]
            raise refusal(self.table, self.keys, column, keys[why.index], bad, why, asked) from None

    def _values(self, rows: Sequence[tuple | None]) -> list[Any]:
        """Turn rows of columns into stored values."""
        wrap = _WRAP[self.kind]
        decoders = self._decoders(self._own)
        if self.width == 1 and not any(decoders):
            return [None if row is None else wrap(row) for row in rows]
        decoders += decoders[1:] if self.kind is StateType.OPAQUE else []
        return [None if row is None else wrap(self._group_values(decode_row(row, decoders))) for row in rows]

    def _decoders(self, columns: Sequence[Column]) -> list[Any]:
        return list(map(self.dialect.decoder, self.transaction.settle_types(self.table, columns)))

    def _group_values(self, done: tuple) -> tuple:
        """Return the txid and values of one row; several value columns become one tuple."""
        head = 0 if self.kind is StateType.NON_TRANSACTIONAL else 1
        groups = [done[i : i + self.width] for i in range(head, len(done), self.width)]
        if self.width == 1:
            return done
        return (*done[:head], *(None if all(v is None for v in group) else group for group in groups))

    def columns_of(self, keys: Sequence[Sequence[Any]], vals: Sequence[Any]) -> KeyedRows:
        """Return keys and stored values as checked columns in their Arrow types."""
        typed = self._key_columns(keys, decides=True) + self._value_columns(self._rows_of(vals))
        arrays = [self._encode(column, values, keys, encode_column) for column, values in typed]
        return KeyedRows([*self.keys, *self.columns], arrays)

    def _encode_values(self, keys: Sequence[Sequence[Any]], vals: Sequence[Any]) -> list[tuple]:
        """Return the encoded columns after the key, checked column by column."""
        rows = self._rows_of(vals)
        typed = self._value_columns(rows)
        done = [self._encode(column, values, keys) for column, values in typed]
        if all(new is old for new, (_, old) in zip(done, typed, strict=True)):
            return list(map(tuple, rows)) if type(rows[0]) is not tuple else rows
        return list(zip(*done, strict=True))

    def _rows_of(self, vals: Sequence[Any]) -> Any:
        rows: Any = [(value,) for value in vals] if self.kind is StateType.NON_TRANSACTIONAL else vals
        return rows if self.width == 1 else list(map(self._flat, rows))

    def _value_columns(self, rows: Sequence[tuple]) -> list[tuple[Column, Any]]:
        """Return the values of each column. Those about to be written settle the kind of their column; a previous value
        was read, before or after that."""
        values = transpose(rows, len(self.columns)) or []
        settled = self.transaction.settle_types(self.table, self._own, values[: len(self._own)])
        return list(zip([*settled, *self.columns[len(settled) :]], values, strict=True))

    def _flat(self, stored: tuple) -> tuple:
        head = 0 if self.kind is StateType.NON_TRANSACTIONAL else 1
        flat = list(stored[:head])
        for value in stored[head:]:
            if value is None:
                flat += [None] * self.width
            elif not isinstance(value, list | tuple) or len(value) != self.width or all(v is None for v in value):
                wanted = ", ".join(_names(self.columns[head : head + self.width]))
                raise StateError(
                    f"table {self.table!r}: a value must be a row of ({wanted}), not all null; got {value!r}"
                )
            else:
                flat += value
        return tuple(flat)


class _Sorted(NamedTuple):
    """Encoded keys, and their positions in the order of the tree."""

    encoded: list[tuple]
    positions: list[int]


def _names(columns: Sequence[Column]) -> list[str]:
    return [column.name for column in columns]
