"""JSON schemas of settings files: what pydantic derives from the models, and the variables that a file may hold."""

from __future__ import annotations

from typing import Any

_VARIABLE = {"type": "string", "pattern": r"\$\{"}


def open_to_variables(definition: dict[str, Any]) -> dict[str, Any]:
    """Allow a variable of the environment where another type than text is expected."""
    properties = {name: _or_variable(value) for name, value in definition.get("properties", {}).items()}
    return definition | ({"properties": properties} if properties else {})


def _or_variable(value: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in value or any(choice.get("type") == "string" for choice in value.get("anyOf", [])):
        return value
    notes = {key: value[key] for key in ("title", "description", "default") if key in value}
    rest = {key: part for key, part in value.items() if key not in notes}
    if rest.get("type") in ("string", "array", "object") and "enum" not in rest:
        return value
    return notes | {"anyOf": [rest, _VARIABLE]}
