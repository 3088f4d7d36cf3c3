"""Keys as people look them up: tuples that are equal only with values of the same types."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ..chunks import Column, to_list
from ..tuples import identity, key_of


class ExactKey(tuple):
    """A key tuple for which 1, 1.0 and True differ, also against plain tuples, so a dict can hold all three.

    ``{ExactKey((1,)): "a", ExactKey((1.0,)): "b"}[(1.0,)]`` is ``"b"``.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and key_of(self) == key_of(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        try:
            return tuple.__hash__(self)
        except TypeError:  # a list or a dict among the values
            return hash(_frozen(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactKey, (tuple(self),)


class ColumnKeys(Sequence[tuple]):
    """The keys of a batch as columns, one for each part of the key; they become tuples when one is asked for."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns

    @cached_property
    def rows(self) -> list[tuple]:
        return list(zip(*map(to_list, self.columns), strict=True))

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __eq__(self, other: object) -> bool:
        return self.rows == other

    __hash__ = None  # type: ignore[assignment]


def _frozen(value: Any) -> Any:
    """With a hash; a list has that of the tuple that it equals."""
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    return identity(value) if isinstance(value, dict | set | bytearray) else value
