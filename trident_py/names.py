"""Names that users choose, put together to one: different names never make the same."""

from __future__ import annotations

from collections.abc import Iterable

from .errors import DefinitionError


def joined(separator: str, names: Iterable[str]) -> str:
    """The names in one text, from which they can be told again. One that holds neither the separator (a character) nor
    a per cent sign stands in it as it is."""
    return separator.join(escaped(separator, name) for name in names)


def escaped(separator: str, name: str) -> str:
    """The name without the separator, another for each name."""
    return name.replace("%", "%25").replace(separator, f"%{ord(separator):02X}")


def check_folder_name(what: str, name: str) -> None:
    """Raises DefinitionError for a name that is no name of a folder: a checkpoint would be somewhere else."""
    if not name.strip() or name in (".", "..") or "/" in name or "\\" in name or not name.isprintable():
        raise DefinitionError(
            f"{what} is named {name!r}; its checkpoint is in a folder of that name, so it is not . or .., and has no / "
            "or \\ and no control characters"
        )
