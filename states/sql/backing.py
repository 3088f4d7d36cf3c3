"""The backing map over a SQL table: many keys per statement, in the order of the keys.

The order keeps two partitions from locking each other out and the store's tree warm: it is also most of the
speed on large tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any

from trident_py.errors import StateError
from trident_py.state import BackingMap, OpaqueValue, StateType, TransactionalValue
from trident_py.state.values import behind

from .adding import Adder
from .columns import Column, Refused, decoded, refusal, transposed
from .table import Place, Shape
from .transaction import Transaction

_WRAP: dict[StateType, Callable[[Any], Any]] = {
    StateType.NON_TRANSACTIONAL: itemgetter(0),
    StateType.TRANSACTIONAL: partial(tuple.__new__, TransactionalValue),
    StateType.OPAQUE: partial(tuple.__new__, OpaqueValue),
}
_SIZES = (1, 8, 64)


class SqlBackingMap(BackingMap):
    """Reads and writes rows of one state partition, inside its transaction while a commit runs.

    On replay: nothing of its own; the map above it keeps the txids.
    """

    def __init__(
        self, place: Place, shape: Shape, width: int, kind: StateType, transaction: Transaction
    ) -> None:
        self.place = place
        self.table = place.table
        self.keys = shape.keys
        self.columns = shape.others
        self.width = width
        self.kind = kind
        self.transaction = transaction
        self.dialect = transaction.stores[0].dialect
        self.written = 0
        self._decoders = [column.decoder() for column in self.columns]
        self._upsert = self.dialect.upsert(self.table, _names(self.keys), _names(self.columns))
        self._adder = Adder.of(self.dialect, self.table, self.keys, self.columns, width, kind)
        self._asked: tuple[Any, _Sorted] | None = None

    def multiGet(self, keys: Sequence[Sequence[Any]]) -> list[Any]:
        if len(keys) == 0:
            return []
        order = self._sorted(keys)
        self._asked = (keys, order)
        found: list[Any] = [None] * len(keys)
        if self.transaction.active:
            self.transaction.touch(list(order.files))
        for index, positions in order.files.items():
            with self.transaction.using(index) as connection:
                rows = self._read(connection, [order.encoded[i] for i in positions])
            for position, value in zip(positions, self._values(rows), strict=True):
                found[position] = value
        return found

    def multiPut(self, keys: Sequence[Sequence[Any]], vals: Sequence[Any]) -> None:
        if len(keys) == 0:
            return
        asked = self._asked
        order = asked[1] if asked is not None and asked[0] is keys else self._sorted(keys)
        stored = self._stored(keys, vals)
        if self.transaction.active:
            self.transaction.touch(list(order.files))
        for index, positions in order.files.items():
            rows = [order.encoded[i] + stored[i] for i in positions]
            with self.transaction.using(index) as connection:
                connection.executemany(self._upsert, rows)
        self.written += len(keys)

    def multiAdd(
        self, txid: int | None, keys: Sequence[Sequence[Any]], amounts: Sequence[Any]
    ) -> tuple[list[Any], list[bool]] | None:
        """Adds to many keys in one step, as the map of this kind would.

        Returns the values that hold afterwards, and for each key whether it was written (a transactional map
        skips what the batch has already written).

        None, with nothing done, where that is not exactly the same: other types than the column's, a key
        twice, several values. Raises StateError if a sum does not fit; the batch is rolled back then.
        """
        adder = self._adder
        if adder is None or not self.transaction.active or not adder.takes(amounts):
            return None
        order = self._sorted(keys)
        if len(set(order.encoded)) != len(keys):
            return None
        self.transaction.touch(list(order.files))
        news: list[Any] = [None] * len(keys)
        for index, positions in order.files.items():
            mine = [order.encoded[i] for i in positions]
            with self.transaction.using(index) as connection:
                found = adder.add(connection, txid, mine, [amounts[i] for i in positions])
            if found is None:  # a row of a newer batch, or of none: the map finds the words
                self._refuse(txid, keys)
                raise StateError(f"table {self.table!r}: a sum in batch {txid} does not fit the column")
            for position, new in zip(positions, found, strict=True):
                news[position] = new
        done = [new is not None for new in news]
        if not all(done):
            skipped = [i for i, new in enumerate(news) if new is None]
            for i, stored in zip(skipped, self.multiGet([keys[i] for i in skipped]), strict=True):
                news[i] = stored.value
        self.written += sum(done)
        return news, done

    def _refuse(self, txid: int | None, keys: Sequence[Sequence[Any]]) -> None:
        """Raises for the row whose txid forbids the batch."""
        for key, value in zip(keys, self.multiGet(keys), strict=True):
            if self.kind is StateType.OPAQUE and value is not None:
                value.get(txid)
            elif self.kind is StateType.TRANSACTIONAL and txid is not None and value.txid > txid:
                raise behind(txid, value.txid, f"key {list(key)!r}")

    def rows(self) -> Iterable[tuple[tuple, Any]]:
        """All rows of all files: key, value."""
        names = ", ".join(f'"{name}"' for name in [*_names(self.keys), *_names(self.columns)])
        decoders = [column.decoder() for column in self.keys]
        for index in range(len(self.transaction.stores)):
            with self.transaction.using(index) as connection:
                found = connection.execute(f'SELECT {names} FROM "{self.table}"').fetchall()
            width = len(self.keys)
            values = self._values([(*row[:width], row[0], *row[width:]) for row in found])
            for row, value in zip(found, values, strict=True):
                yield decoded(row[:width], decoders), value

    def last_txid(self) -> int:
        """The highest txid in the table, 0 if there is none."""
        if self.kind is StateType.NON_TRANSACTIONAL:
            return 0
        highest = 0
        for index in range(len(self.transaction.stores)):
            with self.transaction.using(index) as connection:
                found = connection.execute(f'SELECT max(txid) FROM "{self.table}"').fetchone()[0]
            highest = max(highest, found or 0)
        return highest

    def _sorted(self, keys: Sequence[Sequence[Any]]) -> _Sorted:
        """The keys as the driver takes them, by file in the order of the table's tree."""
        columns = transposed(keys, len(self.keys))
        if columns is None:
            names = ", ".join(_names(self.keys))
            raise StateError(f"table {self.table!r} has the keys ({names}), got the key {list(keys[0])!r}")
        encoded = [self._encode(c, values, keys) for c, values in zip(self.keys, columns, strict=True)]
        whole = list(zip(*encoded, strict=True))
        by: Any = encoded[0].__getitem__ if len(encoded) == 1 else whole.__getitem__
        positions = sorted(range(len(whole)), key=by)
        if self.place.files == 1:
            return _Sorted(whole, {0: positions})
        files: dict[int, list[int]] = {}
        for position in positions:
            files.setdefault(self.place.file_of(whole[position]), []).append(position)
        return _Sorted(whole, dict(sorted(files.items())))

    def _encode(self, column: Column, values: Sequence[Any], keys: Sequence[Sequence[Any]]) -> Sequence[Any]:
        try:
            return column.encode(values)
        except Refused as why:
            bad = values[why.index]
            raise refusal(self.table, self.keys, column, keys[why.index], bad, why) from None

    def _read(self, connection: Any, keys: list[tuple]) -> list[tuple]:
        rows: list[tuple] = []
        start = 0
        while start < len(keys):
            part = keys[start : start + self.dialect.chunk]
            size = next((s for s in _SIZES if s >= len(part)), self.dialect.chunk)
            part += part[-1:] * (size - len(part))  # few statement texts: each is prepared once
            text = self.dialect.select(self.table, _names(self.keys), _names(self.columns), size)
            rows += connection.execute(text, list(chain.from_iterable(part))).fetchall()
            start += self.dialect.chunk
        del rows[len(keys) :]
        return rows

    def _values(self, rows: list[tuple]) -> list[Any]:
        """From rows (the key asked for, the key found, the columns) to stored values."""
        mark, first = len(self.keys), len(self.keys) + 1
        wrap = _WRAP[self.kind]
        if self.width == 1 and not any(self._decoders):
            return [None if row[mark] is None else wrap(row[first:]) for row in rows]
        return [None if row[mark] is None else wrap(self._grouped(row[first:])) for row in rows]

    def _grouped(self, columns: tuple) -> tuple:
        """txid and values of one row, each value decoded and several columns made one value."""
        done = decoded(columns, self._decoders)
        head = 0 if self.kind is StateType.NON_TRANSACTIONAL else 1
        groups = [done[i : i + self.width] for i in range(head, len(done), self.width)]
        if self.width == 1:
            return done
        return (*done[:head], *(None if all(v is None for v in group) else group for group in groups))

    def _stored(self, keys: Sequence[Sequence[Any]], vals: Sequence[Any]) -> list[tuple]:
        """The columns behind the key, checked column by column."""
        rows: Any = [(value,) for value in vals] if self.kind is StateType.NON_TRANSACTIONAL else vals
        if self.width > 1:
            rows = [self._flat(row) for row in rows]
        columns = transposed(rows, len(self.columns)) or []
        done = [self._encode(c, values, keys) for c, values in zip(self.columns, columns, strict=True)]
        if all(new is old for new, old in zip(done, columns, strict=True)):
            return list(map(tuple, rows)) if type(rows[0]) is not tuple else rows
        return list(zip(*done, strict=True))

    def _flat(self, stored: tuple) -> tuple:
        head = 0 if self.kind is StateType.NON_TRANSACTIONAL else 1
        flat = list(stored[:head])
        for value in stored[head:]:
            if value is None:
                flat += [None] * self.width
            elif not isinstance(value, list | tuple) or len(value) != self.width or set(value) == {None}:
                names = ", ".join(_names(self.columns[head : head + self.width]))
                raise StateError(
                    f"table {self.table!r}: a value must be a row of ({names}), not all null; got {value!r}"
                )
            else:
                flat += value
        return tuple(flat)


class _Sorted:
    """Encoded keys, and for each file their positions in the order of the tree."""

    __slots__ = ("encoded", "files")

    def __init__(self, encoded: list[tuple], files: dict[int, list[int]]) -> None:
        self.encoded = encoded
        self.files = files


def _names(columns: Sequence[Column]) -> list[str]:
    return [column.name for column in columns]
