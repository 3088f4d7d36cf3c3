"""The setters of Storm's builders, whose names translated code calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Builder = TypeVar("Builder")


def make_setter(name: str) -> Callable[[Builder, Any], Builder]:
    """Return a method that sets an attribute and returns its object, which may be a frozen dataclass."""

    def set_attribute(builder: Builder, value: Any) -> Builder:
        object.__setattr__(builder, name, value)
        return builder

    return set_attribute
