"""Names that users choose, put together to one: different names never make the same."""

from __future__ import annotations

from collections.abc import Iterable


def joined(separator: str, names: Iterable[str]) -> str:
    """The names in one text, from which they can be told again. One that holds neither the separator (a character) nor
    a per cent sign stands in it as it is."""
    return separator.join(escaped(separator, name) for name in names)


def escaped(separator: str, name: str) -> str:
    """The name without the separator, another for each name."""
    return name.replace("%", "%25").replace(separator, f"%{ord(separator):02X}")
