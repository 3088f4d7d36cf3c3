"""Count and Sum inside the database: one statement reads, adds and writes many keys."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from trident_py.state import StateType

from .columns import Column, Refused
from .dialect import Dialect

_SIZES = (100, 10, 1)
_KINDS: dict[str, type] = {"integer": int, "double": float}


class Adder:
    """The statements that add to one value column of one table."""

    def __init__(self, dialect: Dialect, table: str, keys: list[Column], value: Column, kind: StateType) -> None:
        names = [column.name for column in keys]
        self.value = value
        self.width = len(keys)
        self.kind = _KINDS[value.family]
        self._texts = {size: dialect.add(table, names, value.name, kind, size) for size in _SIZES}

    @classmethod
    def of(
        cls, dialect: Dialect, table: str, keys: list[Column], columns: list[Column], width: int, kind: StateType
    ) -> Adder | None:
        """The adder of a map with one number as value; None for other maps and databases."""
        value = columns[0 if kind is StateType.NON_TRANSACTIONAL else 1]
        if width != 1 or value.family not in _KINDS:
            return None
        made = cls(dialect, table, keys, value, kind)
        return made if all(made._texts.values()) else None

    def takes(self, amounts: Sequence[Any]) -> bool:
        """Whether these are all numbers of the column's own type."""
        return set(map(type, amounts)) == {self.kind} and self._fits(amounts)

    def add(
        self, connection: Any, txid: int | None, keys: list[tuple], amounts: list[Any]
    ) -> list[Any] | None:
        """The sums in the order of the keys, None for a row that was skipped.

        None as a whole if a row is of another batch than allowed, or did not fit.
        """
        rows: list[tuple] = []
        start = 0
        while start < len(keys):
            size = next(each for each in _SIZES if each <= len(keys) - start)
            parameters: list[Any] = [txid]
            for key, amount in zip(keys[start : start + size], amounts[start : start + size], strict=True):
                parameters += key
                parameters.append(amount)
            rows += connection.execute(self._texts[size], parameters).fetchall()
            start += size
        sums = list(map(itemgetter(self.width), rows))
        if not set(map(type, sums)) <= {self.kind} or not self._fits(sums):
            return None
        if not set(map(itemgetter(-1), rows)) <= {txid}:
            return None
        until = slice(self.width)
        if len(rows) == len(keys) and all(row[until] == key for row, key in zip(rows, keys, strict=True)):
            return sums
        by_key = {row[until]: total for row, total in zip(rows, sums, strict=True)}  # SQL promises no order
        return [by_key.get(key) for key in keys]

    def _fits(self, numbers: Sequence[Any]) -> bool:
        try:
            return self.value.encode(numbers) is numbers
        except Refused:
            return False
