"""Roles: an object plays one if it has the methods, whatever it inherits from, or passes its calls on to."""

from __future__ import annotations

from typing import Any, TypeVar, cast

C = TypeVar("C", bound=type)


def role(protocol: C) -> C:
    """Makes isinstance ask the object for the members of a runtime-checkable protocol. Since Python 3.12 it looks for
    them without asking, so an object that passes calls on (``__getattr__``) would play no role."""
    kind = cast(Any, type(protocol))
    names = [name for name in vars(protocol) if not name.startswith("_")]

    class Asked(kind):  # type: ignore[misc,valid-type]
        def __instancecheck__(cls, thing: object) -> bool:
            return all(hasattr(thing, name) for name in names) if cls is protocol else super().__instancecheck__(thing)

    protocol.__class__ = Asked
    return protocol
