"""What the pydantic models of all YAML files have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator


class Keys(BaseModel):
    """A mapping of a file: an unknown key is refused. Neither an error nor the repr shows a value, which may be
    secret."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @field_validator("*", mode="before")
    @classmethod
    def refuse_boolean(cls, value: Any, info: ValidationInfo) -> Any:
        """Raise ValueError for a boolean where a number is expected: pydantic would take it for 1 or 0."""
        kinds = list(_list_kinds(cls.model_fields[str(info.field_name)].annotation)) if isinstance(value, bool) else []
        if bool not in kinds and (int in kinds or float in kinds):
            raise ValueError(f"expected {'a number' if float in kinds else 'an integer'}")
        return value

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    __str__ = __repr__


def _list_kinds(kind: Any) -> Iterator[Any]:
    yield kind
    for part in get_args(kind):
        yield from _list_kinds(part)


def to_list(value: Any) -> Any:
    """Return a text as a list of it; anything else as it is."""
    return [value] if isinstance(value, str) else value


def _whole(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("expected an integer")
    return value


Count = Annotated[int, Field(ge=1), BeforeValidator(_whole)]
