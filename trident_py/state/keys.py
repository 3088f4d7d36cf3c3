"""Keys as people look them up: tuples that are equal only with values of the same types."""

from __future__ import annotations

from typing import Any

from ..tuples import key_of


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
        return tuple.__hash__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactKey, (tuple(self),)
