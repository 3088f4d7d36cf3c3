"""The generator draws all of Storm's API that is here, or says why not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from trident_py.topology import ChainedAggregatorDeclarer, GroupedStream, Stream, TridentState, TridentTopology

from . import ops
from .interpreter import Interpreter
from .wider import LEFT_OUT, make

DRAWN = 2_000
API = (Stream, GroupedStream, ChainedAggregatorDeclarer, TridentState, TridentTopology)
NO_STEPS = {
    "applyAssembly": "firstN",
    "chainEnd": "chainedAgg",
    "global_": "global",
    "persist": "partitionPersist",
}
"""What a step of the oracle's cases calls by another name."""
ABOUT = {
    "build", "check", "explain", "guarantees", "plan", "getName", "getOutputFields", "getGroupFields",
    "deadLetters", "setResourceDefaults", "setMasterCoordResources", "add", "check_own", "hint", "node", "state_use",
}  # fmt: skip
"""What makes no step: it tells of a topology or ends it, serves the other methods, or is not Storm's."""


@pytest.fixture(scope="module")
def drawn() -> set[str]:
    return {word for number in range(DRAWN) for word in words(make("coverage", number))}


def words(case: dict[str, Any]) -> Iterator[str]:
    """All that a case uses, each kind of thing under its name."""
    spread = any(spout.get("partitions", 1) > 1 for spout in case["spouts"].values())
    for step in case["steps"]:
        yield step["op"]
        for part in step.get("aggs", [step]):
            yield f"agg {part['agg']['name']}" if "agg" in part else ""
        yield f"{step['op'] if step['op'] != 'each' else 'fn'} {step['fn']['name']}" if "fn" in step else ""
        yield f"updater {step['updater']['name']}" if "updater" in step else ""
        yield f"query {step['query']['name']}" if "query" in step else ""
        yield f"reducer {step['reducer']['name']}" if "reducer" in step else ""
        yield f"mode {step['mode']}" if "mode" in step else ""
        if isinstance(step.get("state"), dict):
            yield f"kind {step['state']['kind']}"
    for fail in case.get("fail", ()):
        yield f"fail {fail['where']}" + (" in several tasks" if spread else "")
        yield f"attempt {fail['attempt']}"
    yield from (key for key in ("pending", "fail") if key in case)
    yield from (key for spout in case["spouts"].values() for key in spout)


def test_every_step_is_drawn_or_left_out(drawn: set[str]) -> None:
    steps = {name for name in vars(Interpreter) if name not in NOT_STEPS and not name.startswith("_")}
    assert steps - drawn - set(LEFT_OUT) == set()


NOT_STEPS = {"build", "input", "inputs", "op", "state", "reverse"}


def test_every_method_of_the_api_is_a_step_or_left_out() -> None:
    steps = set(vars(Interpreter)) | set(LEFT_OUT) | set(NO_STEPS) | ABOUT
    methods = {name for kind in API for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}
    assert methods - steps == set()


def named(made: type) -> set[str]:
    return {name for name in vars(made) if not name.startswith("_") and name not in ("execute", "check", "prepare")}


EVERY = {
    *(f"fn {name}" for name in named(ops.Fn)),
    *(f"agg {name}" for name in (*ops.AGGREGATORS, "count", "sum", "concat", "trace", "min", "max")),
    *(f"agg {name}" for name in ("rcount", "rsum", "rconcat")),
    *(f"filter {name}" for name in ("equals", "in_set", "greater_than", "true", "false", "negate", "not_null")),
    "filter equals_fields",
    *(f"map {name}" for name in ("identity", "reverse", "first", "upper", "constant", "tuple_size")),
    *(f"flatMap {name}" for name in ("split", "repeat", "explode", "empty")),
    *(f"kind {name}" for name in ("nontransactional", "transactional", "opaque", "memory", "lru", "log")),
    *(f"updater {name}" for name in ("log", "size", "put")),
    *(f"query {name}" for name in ("MapGet", "SnapshotGet", "TupleCollectionGet")),
    *(f"reducer {name}" for name in ("tag", "count")),
    *(f"fail {name}" for name in ("commit", "beginCommit", "update", "put", "function", "batch", "spout")),
    *(f"fail {name} in several tasks" for name in ("commit", "beginCommit", "update", "put", "function", "batch")),
    "mode COMPACT", "mode PRESERVE", "pending", "partitions", "replayBatches", "attempt 1",
}  # fmt: skip


def test_every_operation_and_kind_and_failure_is_drawn_or_left_out(drawn: set[str]) -> None:
    assert EVERY - drawn - set(LEFT_OUT) == set()
    assert drawn & set(LEFT_OUT) == set()


def test_the_same_seed_gives_the_same_case() -> None:
    assert make("again", 7) == make("again", 7) != make("again", 8)
