"""The JSON schema of a topology file, for editors, derived from the models that read it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from ...documents import open_to_variables
from ...topology.user_modules import states_loading
from .calls import OPERATIONS, SOURCES, Call, MethodKeys, ObjectKeys, SourceKeys, TopologyKeys, WindowKeys
from .objects import BUILT_IN, UNITS

_TEXT = {"type": "string"}
_DIGITS = {"type": "string", "pattern": r"^\d+$|\$\{"}
_NUMBER = {"anyOf": [{"type": "integer"}, _DIGITS]}
_TIME = {
    "type": "object",
    "properties": dict.fromkeys(UNITS, _NUMBER),
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a topology file, with the types of states installed here."""
    states = states_loading().schema()
    properties = _model(TopologyKeys)["properties"] | {
        "components": {"type": "object", "additionalProperties": _ref("object")},
        "states": {"anyOf": [_TEXT, {"type": "object", "additionalProperties": _ref("state")}]},
        "streams": {"type": "object", "additionalProperties": _ref("stream")},
        "topologySource": _model(SourceKeys),
    }
    return {
        "$schema": states["$schema"],
        "title": "A topology of trident_py",
        "type": "object",
        "required": ["name"],
        "properties": properties,
        "patternProperties": {"^x-": {}},
        "additionalProperties": False,
        "anyOf": [{"required": ["streams"]}, {"required": ["topologySource"]}, {"required": ["includes"]}],
        "not": {"required": ["streams", "topologySource"]},
        "$defs": states["$defs"] | _definitions(states["properties"]["states"]["additionalProperties"]),
    }


def _definitions(settings: dict[str, Any]) -> dict[str, Any]:
    path = {"anyOf": [{"type": "string", "pattern": r":|\$\{"}, {"enum": sorted(BUILT_IN)}]}
    made = _model(ObjectKeys)
    made["properties"] |= {
        "className": path,
        "configMethods": {"type": "array", "items": _model(MethodKeys)},
    }
    reference = {"type": "object", "properties": {"ref": _TEXT}, "required": ["ref"], "additionalProperties": False}
    return {
        "object": {"anyOf": [path, made, reference]},
        "state": {"anyOf": [_TEXT, made, reference, settings]},
        "length": {"anyOf": [_NUMBER, _TIME]},
        "window": {"anyOf": [path, made, reference, _window()]},
        "stream": _stream(),
        "operation": _operation(),
    }


def _window() -> dict[str, Any]:
    model = _model(WindowKeys)
    lengths = {key: _ref("length") for key in ("windowLength", "slideLength")}
    model["properties"] |= lengths | {"lag": _TIME}
    return model


def _stream() -> dict[str, Any]:
    sources = {name: _arguments(model) for name, model in SOURCES.items()}
    return {
        "type": "object",
        "properties": sources | {"operations": {"type": "array", "items": _ref("operation")}},
        "additionalProperties": False,
        "oneOf": [{"required": [name]} for name in SOURCES],
    }


def _operation() -> dict[str, Any]:
    alone = [name for name, model in OPERATIONS.items() if not model.model_json_schema().get("required")]
    named = [
        {"type": "object", "properties": {name: _arguments(model)}, "required": [name], "additionalProperties": False}
        for name, model in OPERATIONS.items()
    ]
    return {"anyOf": [{"enum": alone}, *named]}


def _arguments(model: type[Call]) -> dict[str, Any]:
    """Return what stands behind the name of a call: a mapping, or the value of its one argument."""
    mapping = _model(model)
    choices = [mapping] if model.alone is None else [mapping["properties"][model.alone], mapping]
    return {"anyOf": [*choices, {"type": "null"}]} if not mapping.get("required") else {"anyOf": choices}


def _model(model: type[BaseModel]) -> dict[str, Any]:
    filled: dict[str, Any] = _fill(model.model_json_schema())
    return open_to_variables(filled)


_KINDS: dict[str, dict[str, Any]] = {
    "object": {"$ref": "#/$defs/object"},
    "state": {"$ref": "#/$defs/state"},
    "length": {"$ref": "#/$defs/length"},
    "window": {"$ref": "#/$defs/window"},
    "stream": _TEXT,
    "streams": {"type": "array", "items": _TEXT},
    "argument": {},
}


def _fill(part: Any) -> Any:
    """Return the schema with what stands for each kind of value. An argument that may be missing may also be null."""
    if isinstance(part, list):
        return [_fill(item) for item in part]
    if not isinstance(part, dict):
        return part
    filled = {key: _fill(value) for key, value in part.items() if key != "x-kind" and key != "title"}
    kind = part.get("x-kind")
    if kind is None:
        return filled
    if "default" in filled:
        return {"description": filled.get("description", ""), "anyOf": [_KINDS[kind], {"type": "null"}]}
    return _KINDS[kind] | filled


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}
