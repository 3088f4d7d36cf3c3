"""What `/api` answers, as an OpenAPI document. A test compares it with the routes and with what they answer."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
TIME: Schema = {"type": "string", "format": "date-time", "description": "On the driver's clock, with its offset."}
KIND: Schema = {"type": "string", "description": "docs/monitor.md lists them."}
ID = "{id}"
CALLED = {"id": ("path", "That of the summary; a new one at each start."), "wait": ("path", "Has no effect.")}
ASKED = {
    "component": ("query", "Of this component only."), "txid": ("query", "Of this batch only."),
    "limit": ("query", "The last ones only."), "event": ("query", "Of this kind only."),
}  # fmt: skip


def _or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _by_name(of: Schema) -> Schema:
    return {"type": "object", "additionalProperties": of}


def _object(optional: tuple[str, ...] = (), /, **fields: Schema) -> Schema:
    """Return an object with these fields and no others."""
    required = [name for name in fields if name not in optional]
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


MAYBE_WHOLE, MAYBE_TIME = _or_null(WHOLE), _or_null(TIME)
PHASE = _object(phase=TEXT, state={**TEXT, "description": 'The state of a commit, else "".'}, seconds=NUMBER)
ATTEMPT = _object(
    attempt=MAYBE_WHOLE, began=MAYBE_TIME, ended=MAYBE_TIME, reason=TEXT, phases=_list(PHASE),
    outcome={"type": "string", "enum": ["running", "committed", "replay", "moved", "failed", "checked"]},
    where={"type": "string", "enum": ["driver", "job", ""]},
)  # fmt: skip
BATCH = _object(
    component=TEXT, txid=WHOLE, began=MAYBE_TIME, ended=MAYBE_TIME, waited=_or_null(NUMBER), seconds=_by_name(NUMBER),
    emitted=_by_name(WHOLE), persisted=_by_name(WHOLE), backlog=_by_name(WHOLE), attempts=_list(ATTEMPT),
)  # fmt: skip
EVENT = _object(
    number=WHOLE, time=TIME, event=KIND, component=TEXT, txid=MAYBE_WHOLE, attempt=MAYBE_WHOLE, reason=TEXT
)
HEAD = {
    "id": TEXT, "name": TEXT, "status": {"type": "string", "enum": ["ACTIVE", "INACTIVE", "KILLED"]}, "uptime": TEXT,
    "uptimeSeconds": WHOLE, "tasksTotal": WHOLE, "time": TIME, "driver": _object(host=TEXT, pid=WHOLE),
}  # fmt: skip
STATS = _object(
    windowPretty=TEXT, window=TEXT, emitted=WHOLE, acked=WHOLE, failed=WHOLE, batches=WHOLE, completeLatency=TEXT
)
COMPONENT = _object(
    component=TEXT, txid=MAYBE_WHOLE, attempts=WHOLE, outcomes=_by_name(WHOLE), deadLetters=WHOLE,
    lastCommit=MAYBE_TIME, phase=_list(TEXT), phaseSince=TIME, runs=MAYBE_WHOLE, metrics={"type": "object"}, kind=KIND,
    sentence=TEXT,
)  # fmt: skip
SPOUT = _object(
    ("backlog", "backlogByPartition", "oldestSeconds"), spoutId=TEXT, component=TEXT, type=TEXT, tasks=WHOLE,
    emitted=WHOLE, rate=NUMBER, backlog=WHOLE, backlogByPartition=_by_name(WHOLE), oldestSeconds=_or_null(NUMBER),
)  # fmt: skip
STATE = _object(
    ("guarantee", "reason"), state=TEXT, component=TEXT, kind=TEXT, guarantee=TEXT, reason=TEXT, rows=WHOLE,
    newValues=WHOLE, lastTxid=MAYBE_WHOLE, generation=MAYBE_WHOLE, owner=_or_null(TEXT),
    size={**MAYBE_WHOLE, "description": "In bytes, as the store tells it."},
)  # fmt: skip
OPERATION = _object(
    operationId=WHOLE, name=TEXT, component=TEXT, stage=WHOLE, tasks=WHOLE, fields=TEXT, rate=_or_null(NUMBER),
    seconds=_by_name(NUMBER), partitions=_by_name(WHOLE), skew=_or_null(NUMBER),
    errors=_list(_object(number=WHOLE, event=KIND, txid=MAYBE_WHOLE, attempt=MAYBE_WHOLE, reason=TEXT)),
)  # fmt: skip
TOPOLOGY = {
    **HEAD, "diagnosis": _object(kind=KIND, sentence=TEXT), "topologyStats": _list(STATS),
    "components": _list(COMPONENT), "spouts": _list(SPOUT),
    "bolts": _list(_object(boltId=TEXT, tasks=WHOLE, steps=_list(TEXT))), "states": _list(STATE),
    "operations": _list(OPERATION), "arrows": _list(_object(**{"from": TEXT, "to": TEXT, "rate": _or_null(NUMBER)})),
    "drpc": _list(_object(function=TEXT, asked=WHOLE, answered=WHOLE, waiting=WHOLE)),
    "configuration": {"type": "object"},
}  # fmt: skip
DONE = _object(topologyOperation=TEXT, topologyId=TEXT, status=TEXT)
FAILED = _object(error=WHOLE, errorMessage=TEXT)
LEVELS = _object(namedLoggerLevels=_by_name(_object(target_level=TEXT)))
STORM = "/api/v1/topology"

SEEN: dict[str, tuple[str, str, Schema | None, tuple[str, ...]]] = {
    f"{STORM}/summary": ("This topology, in Storm's list", "json", _object(topologies=_list(_object(**HEAD))), ()),
    f"{STORM}/{ID}": ("The topology as it stands", "json", _object(**TOPOLOGY), ()),
    "/api/batches": ("Batches, oldest first; one of long ago from the file of events", "json",
                     _object(batches=_list(BATCH), note=TEXT), ("component", "txid", "limit")),
    "/api/events": ("Events, oldest first", "json", _object(events=_list(EVENT)),
                    ("event", "component", "txid", "limit")),
    "/api/stream": ("The topology with its last batches and events, at each change", "event-stream",
                    _object(**TOPOLOGY, over={"type": "boolean"}, batches=_list(BATCH), events=_list(EVENT)), ()),
    "/api/topology.svg": ("The topology as a picture", "svg", None, ()),
    "/api/topology.txt": ("The topology as text", "plain", None, ()),
    "/api/openapi.json": ("This document", "json", {"type": "object"}, ()),
}  # fmt: skip
DONE_AT = {
    f"{STORM}/{ID}/activate": "Go on after a pause", f"{STORM}/{ID}/deactivate": "Pause: begin no further batch",
    f"{STORM}/{ID}/kill/{{wait}}": "Stop after the batch", f"{STORM}/{ID}/logconfig": "Set levels of loggers",
}  # fmt: skip
TYPES = {"json": "application/json", "event-stream": "text/event-stream", "svg": "image/svg+xml", "plain": "text/plain"}


def document() -> dict[str, Any]:
    """Return the document."""
    paths: dict[str, Any] = {}
    for path, (summary, kind, schema, asked) in SEEN.items():
        content = {TYPES[kind]: {} if schema is None else {"schema": schema}}
        paths[path] = {"get": _operation(path, summary, content, asked)}
    for path, summary in DONE_AT.items():
        paths[path] = {"post": _operation(path, summary, {TYPES["json"]: {"schema": DONE}})}
    paths[f"{STORM}/{ID}/logconfig"]["post"]["requestBody"] = {"content": {TYPES["json"]: {"schema": LEVELS}}}
    token = {"bearer": {"type": "http", "scheme": "bearer"}, "basic": {"type": "http", "scheme": "basic"}}
    return {
        "openapi": "3.1.0", "info": {"title": "A run of trident_py", "version": "1"}, "paths": paths,
        "components": {"securitySchemes": token}, "security": [{}, {"bearer": []}, {"basic": []}],
    }  # fmt: skip


def _operation(path: str, summary: str, content: Schema, asked: tuple[str, ...] = ()) -> dict[str, Any]:
    named = [(name, *where) for name, where in CALLED.items() if f"{{{name}}}" in path]
    named += [(name, *ASKED[name]) for name in asked]
    parameters = [
        {"name": name, "in": where, "required": where == "path", "description": text,
         "schema": WHOLE if name in ("txid", "limit") else TEXT}
        for name, where, text in named
    ]  # fmt: skip
    failed = {"description": "Refused", "content": {TYPES["json"]: {"schema": FAILED}}}
    return {
        "summary": summary, "parameters": parameters,
        "responses": {"200": {"description": summary, "content": content}, "default": failed},
    }  # fmt: skip
