"""The JSON schema of the file, for editors, derived from the settings of the installed types."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from .installed import installed

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_VARIABLE = {"type": "string", "pattern": r"\$\{"}


def schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a file with the types installed here."""
    models = {name: each.settings for name, each in installed().items() if each.settings is not None}
    by_model, whole = models_json_schema(
        [(model, "validation") for model in models.values()], ref_template="#/$defs/{model}"
    )
    definitions = {name: _open(each) for name, each in whole.get("$defs", {}).items()}
    states = []
    for name, model in models.items():
        own = definitions[by_model[model, "validation"]["$ref"].rpartition("/")[2]]
        states.append(own | {"title": name, **_typed(name, own)})
    return {
        "$schema": DRAFT,
        "title": "States of trident_py",
        "type": "object",
        "required": ["states"],
        "properties": {"states": {"type": "object", "additionalProperties": {"oneOf": states}}},
        "patternProperties": {"^x-": {}},
        "additionalProperties": False,
        "$defs": definitions,
    }


def _typed(name: str, own: dict[str, Any]) -> dict[str, Any]:
    """The properties, preceded by ``type``, whose value selects the type's schema."""
    return {
        "properties": {"type": {"const": name}, **own.get("properties", {})},
        "required": ["type", *own.get("required", [])],
    }


def _open(model: dict[str, Any]) -> dict[str, Any]:
    """Allows a variable of the environment where another type than text is expected."""
    properties = {name: _or_variable(each) for name, each in model.get("properties", {}).items()}
    return model | ({"properties": properties} if properties else {})


def _or_variable(own: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in own or any(each.get("type") == "string" for each in own.get("anyOf", [])):
        return own
    told = {key: own[key] for key in ("title", "description", "default") if key in own}
    rest = {key: value for key, value in own.items() if key not in told}
    if rest.get("type") in ("string", "array", "object") and "enum" not in rest:
        return own
    return told | {"anyOf": [rest, _VARIABLE]}
