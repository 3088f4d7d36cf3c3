"""Keys as people look them up: tuples that are equal only with values of the same types."""

from __future__ import annotations

from typing import Any

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


def _frozen(value: Any) -> Any:
    """With a hash; a list has that of the tuple that it equals."""
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    return identity(value) if isinstance(value, dict | set | bytearray) else value
