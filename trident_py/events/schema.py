"""What an event has to look like: typed fields, checked without conversion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import SchemaValidator, ValidationError
from pydantic_core import core_schema as core

from .settings import EventSettings

_KINDS: dict[str, Any] = {
    "string": core.str_schema(strict=True),
    "integer": core.int_schema(strict=True),
    "number": core.float_schema(strict=True),  # an integer is a number too; true is none
    "boolean": core.bool_schema(strict=True),
    "object": core.dict_schema(strict=True),
    "array": core.list_schema(strict=True),
    "any": core.any_schema(),
}
SHOWN = 5


class Schema:
    """The check of one event."""

    def __init__(self, settings: EventSettings) -> None:
        required = {name: core.typed_dict_field(_KINDS[kind]) for name, kind in settings.required.items()}
        optional = {
            name: core.typed_dict_field(core.nullable_schema(_KINDS[kind]), required=False)
            for name, kind in settings.optional.items()
        }
        others: Any = "allow" if settings.others == "allow" else "forbid"
        self._validator = SchemaValidator(core.typed_dict_schema({**optional, **required}, extra_behavior=others))

    def problem(self, event: Any) -> str | None:
        """What is wrong with an event, or None."""
        if not isinstance(event, Mapping):
            return f"an event is a JSON object, found {_json_name(event)}"
        try:
            self._validator.validate_python(event)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False, include_context=False)
            told = [f"{'.'.join(map(str, each['loc']))}: {_words(dict(each))}" for each in found[:SHOWN]]
            more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
            return "; ".join([*told, *more])
        return None


def _words(each: dict[str, Any]) -> str:
    fixed = {"missing": "is missing", "extra_forbidden": "is no field of an event"}
    told = str(each["msg"])
    return fixed.get(each["type"], told[:1].lower() + told[1:])


def _json_name(value: Any) -> str:
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "text", list: "an array"}
    return names.get(type(value), type(value).__name__)
