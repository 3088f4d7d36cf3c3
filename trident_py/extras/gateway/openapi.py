"""The descriptions in /openapi.json and /docs."""

from __future__ import annotations

from typing import Any

DESCRIPTION = """Accepts each event once, however often a sensor sends it: claims its fingerprint, writes it to Kafka,
then acknowledges it. 201 and 200 are ACKs. 503 means that the result is unknown: send it again after Retry-After."""

_ANSWER: dict[str, Any] = {
    "type": "object",
    "required": ["status"],
    "properties": {
        "status": {"enum": ["accepted", "duplicate", "conflict", "invalid", "retry"]},
        "fingerprint": {"type": "string"},
        "reason": {"type": "string"},
    },
}
_MANY: dict[str, Any] = {
    "type": "object",
    "required": ["results"],
    "properties": {
        "results": {"type": "array", "items": _ANSWER},
        **{name: {"type": "integer"} for name in _ANSWER["properties"]["status"]["enum"]},
    },
}
_REASON: dict[str, Any] = {"type": "object", "required": ["reason"], "properties": {"reason": {"type": "string"}}}


def _json(description: str, *schemas: dict[str, Any]) -> dict[str, Any]:
    schema = schemas[0] if len(schemas) == 1 else {"oneOf": list(schemas)}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


_LATER = _json("The result is unknown: send it again", _ANSWER, _MANY, _REASON)
_LATER["headers"] = {"Retry-After": {"description": "seconds", "schema": {"type": "integer"}}}

POST: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]}
            }
        },
    },
    "responses": {
        "200": _json("The event was in Kafka already (duplicate), or the answers for many events", _ANSWER, _MANY),
        "201": _json("The event is in Kafka now (accepted)", _ANSWER),
        "400": _json("The body is not JSON", _REASON),
        "409": _json("Another event has this fingerprint (conflict)", _ANSWER),
        "408": _json("The body did not arrive in time", _REASON),
        "413": _json("Too many bytes, or too many events", _REASON),
        "415": _json("The Content-Encoding is not supported", _REASON),
        "422": _json("The event is refused (invalid)", _ANSWER, _REASON),
        "503": _LATER,
    },
}
EVENT: dict[int | str, dict[str, Any]] = {
    200: _json("Status new, produced or processed", {"type": "object"}),
    404: _json("No event has this fingerprint", _REASON),
    503: _json("The claim store is unavailable", _REASON),
}
HEALTH: dict[int | str, dict[str, Any]] = {
    200: _json("Store and Kafka answer", {"type": "object"}),
    503: _json("The store or Kafka does not answer", {"type": "object"}),
}
METRICS: dict[int | str, dict[str, Any]] = {200: {"description": "Text", "content": {"text/plain": {}}}}
