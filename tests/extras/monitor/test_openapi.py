"""/api/openapi.json describes each route, and each key of each answer: no more, and no less."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from trident_py import LocalCluster, LocalDRPC, TridentTopology
from trident_py.extras.monitor.app import RunPage, routes_of
from trident_py.extras.monitor.openapi import SEEN, document
from trident_py.testing import FeederBatchSpout

from .runs import FIELDS, counting, get, until

STORM = "/api/v1/topology"


def test_each_route_of_the_interface_is_described_and_nothing_else() -> None:
    routes = routes_of(RunPage(None))  # type: ignore[arg-type]
    there = {(each.path, method) for each in routes for method in (each.methods or set()) - {"HEAD"}}
    told = {(path, method.upper()) for path, methods in document()["paths"].items() for method in methods}
    assert told == {(path, method) for path, method in there if path.startswith("/api/")}
    schemas = [schema for _, _, schema, _ in SEEN.values() if schema is not None]
    for schema in schemas:
        Draft202012Validator.check_schema(schema)


def properties(schema: dict[str, Any], way: str = "") -> Iterator[str]:
    """The way to each key that the schema describes."""
    for name, each in schema.get("properties", {}).items():
        yield f"{way}.{name}"
        yield from properties(each, f"{way}.{name}")
    if "items" in schema:
        yield from properties(schema["items"], way)


def keys(schema: dict[str, Any], answer: Any, way: str = "") -> Iterator[str]:
    """The way to each key of an answer that the schema describes."""
    for item in answer if isinstance(answer, list) else []:
        yield from keys(schema["items"], item, way)
    for name, value in answer.items() if isinstance(answer, dict) else []:
        if name in schema.get("properties", {}):
            yield f"{way}.{name}"
            yield from keys(schema["properties"][name], value, f"{way}.{name}")


@pytest.fixture
def answers() -> Iterator[dict[str, Any]]:
    """What each path answers of a run that has committed, failed once, and has been asked."""
    feeder, drpc = FeederBatchSpout(FIELDS), LocalDRPC()
    topology: TridentTopology = counting(feeder)
    topology.newDRPCStream("shout", drpc).each("args", lambda args: [args.upper()], "loud").project("loud")
    with LocalCluster() as cluster:
        running = cluster.submitTopology("words", {"topology.http": 0}, topology.build())
        feeder.feed([("a",), ("bad",)])
        assert drpc.execute("shout", "a") == [["A"]]
        until(lambda: running.txid == 1)
        running.progress["words"].backlog = {"words": {"0": 3}}
        (head,) = get(running.http, f"{STORM}/summary")[1]["topologies"]
        run = f"{STORM}/{head['id']}"
        found = {path: get(running.http, path.replace("{id}", head["id"]))[1] for path in SEEN if "stream" not in path}
        found["done"] = get(running.http, f"{run}/activate", "POST")[1]
        found["failed"] = get(running.http, "/api/batches?txid=x")[1]
        feeder.close()
        assert until(lambda: not running.isActive)
        yield found


def test_each_key_of_each_answer_is_described_and_each_that_is_described_is_there(answers: dict[str, Any]) -> None:
    shout = answers[f"{STORM}/{{id}}"]["drpc"]
    assert shout == [{"function": "shout", "asked": 1, "answered": 1, "waiting": 0}]
    described = {path: schema for path, (_, _, schema, _) in SEEN.items() if schema is not None and path in answers}
    post = document()["paths"][f"{STORM}/{{id}}/activate"]["post"]["responses"]
    described |= {name: post[code]["content"]["application/json"]["schema"] for name, code in
                  {"done": "200", "failed": "default"}.items()}  # fmt: skip
    for name, schema in described.items():
        Draft202012Validator(schema).validate(answers[name])
        assert set(properties(schema)) == set(keys(schema, answers[name])), name
    assert answers["/api/openapi.json"] == json.loads(json.dumps(document()))
