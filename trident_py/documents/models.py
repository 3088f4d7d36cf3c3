"""What the pydantic models of all YAML files have in common."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class Keys(BaseModel):
    """A mapping of a file: an unknown key is refused. Neither an error nor the repr shows a value, which may be
    secret."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    __str__ = __repr__


def to_list(value: Any) -> Any:
    """Return a text as a list of it; anything else as it is."""
    return [value] if isinstance(value, str) else value


def _whole(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("expected an integer")
    return value


Count = Annotated[int, Field(ge=1), BeforeValidator(_whole)]
