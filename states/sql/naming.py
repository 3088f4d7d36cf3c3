"""Which names a statement and the ledger can hold."""

from __future__ import annotations

from trident_py.errors import DefinitionError

_FORBIDDEN = '"`?%\0'
_LONGEST = 190


def nameable(what: str, name: str) -> None:
    """Raises DefinitionError for a name that would end its quotes, or pass for a driver's placeholder."""
    if not name or set(name) & set(_FORBIDDEN):
        raise DefinitionError(
            f"{name!r} cannot name a {what}: a name has at least one character, and none of "
            f"{' '.join(_FORBIDDEN[:-1])} or NUL. Call it something else"
        )


def recordable(what: str, name: str) -> None:
    """Raises DefinitionError for the name of a topology or state that is too long for the ledger."""
    if len(name) > _LONGEST:
        raise DefinitionError(
            f"{what} {name[:40] + '...'!r}: its name has {len(name)} characters, the ledger holds {_LONGEST}. "
            "Give it a shorter one"
        )
