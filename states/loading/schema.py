"""The JSON schema of the file, for editors, derived from the settings of the installed types."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from trident_py.documents import open_to_variables

from .settings import find_types

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a file with the types installed here."""
    models = {name: entry.settings for name, entry in find_types().items() if entry.settings is not None}
    references, generated = models_json_schema(
        [(model, "validation") for model in models.values()], ref_template="#/$defs/{model}"
    )
    definitions = {name: open_to_variables(definition) for name, definition in generated.get("$defs", {}).items()}
    states = []
    for name, model in models.items():
        definition = definitions[references[model, "validation"]["$ref"].rpartition("/")[2]]
        # ``type`` comes first: its value selects the type's schema.
        states.append(definition | {
            "title": name,
            "properties": {"type": {"const": name}, **definition.get("properties", {})},
            "required": ["type", *definition.get("required", [])],
        })  # fmt: skip
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
