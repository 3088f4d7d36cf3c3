"""Joins and checks names that users choose."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import DefinitionError


def join_names(separator: str, names: Iterable[str]) -> str:
    """Join names to a text from which they can be recovered. A name without the separator (one character) and without
    a per cent sign appears unchanged."""
    return separator.join(escape(separator, name) for name in names)


def escape(separator: str, name: str) -> str:
    """Return the name with the separator and per cent signs escaped. Different names stay different."""
    return name.replace("%", "%25").replace(separator, f"%{ord(separator):02X}")


def check_folder_name(kind: str, name: str) -> None:
    """Raise DefinitionError if the name cannot name a folder; its checkpoint would be in another place."""
    if not name.strip() or name in (".", "..") or "/" in name or "\\" in name or not name.isprintable():
        raise DefinitionError(
            f"{kind} is named {name!r}; its checkpoint folder has that name, so it must not be blank, . or .., nor "
            "contain /, \\ or control characters"
        )
