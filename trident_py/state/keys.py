"""Keys for lookup: tuples that are equal only if their values have the same types."""

from __future__ import annotations

import datetime
import decimal
import enum
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from ..model.canonical import identity, key_of, to_plain
from ..model.chunks import Column, to_list


class ExactKey(tuple):
    """A key tuple that tells 1, 1.0 and True apart, also against plain tuples, so a dict can hold all three.

    ``{ExactKey((1,)): "a", ExactKey((1.0,)): "b"}[(1.0,)]`` is ``"b"``.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and key_of(self) == key_of(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(map(_hashable, self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactKey, (tuple(self),)


class ColumnKeys(Sequence[tuple]):
    """The keys of a batch as one column per part of the key. Makes tuples only when one is asked for."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns

    @cached_property
    def rows(self) -> list[tuple]:
        return list(zip(*map(to_list, self.columns), strict=True))

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[tuple]:
        return iter(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __eq__(self, other: object) -> bool:
        return self.rows == other

    __hash__ = None  # type: ignore[assignment]


def _hashable(value: Any) -> Any:
    """Return one hashable value per identity: a plain value as it is, so that a plain tuple finds the key."""
    plain = to_plain(value)
    if isinstance(plain, list | tuple):
        return tuple(map(_hashable, plain))
    if isinstance(plain, set | frozenset):
        return frozenset(map(_hashable, plain))
    if isinstance(plain, datetime.datetime) and plain.fold and plain.utcoffset() is not None:
        return plain.astimezone(datetime.UTC)  # Python's hash ignores the fold
    lasting = isinstance(plain, str | bytes | int | float | decimal.Decimal | datetime.date | enum.Enum | None)
    return plain if lasting and plain == plain else identity(plain)
