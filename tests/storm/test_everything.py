"""The generator of windows and requests draws all of them, and a window that takes a batch twice is seen."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from trident_py import LocalCluster

from . import cases, oracle, replays
from .compare import key
from .everything import WINDOW_AGGREGATORS, make
from .interpreter import run
from .live import subjects, unanswered

DRAWN = 1_500
WINDOWED = {
    *(f"{op} {name}" for op in replays.WINDOWS for name in WINDOW_AGGREGATORS),
    *(f"{op} {store}" for op in replays.WINDOWS for store in ("in memory", "without a store", "durable")),
    *(f"{op} in several partitions" for op in replays.WINDOWS),
}
ASKED = {
    *("MapGet", "SnapshotGet", "static", "join", "merge", "aggregate", "chainedAgg", "firstN", "filter", "project"),
    *("shuffle", "batchGlobal", "partitionBy", "global", "two functions", "between batches", "after all"),
}
TOGETHER = "windows, DRPC requests and failures in one"


@pytest.fixture(scope="module")
def drawn() -> list[dict[str, Any]]:
    return [make("coverage", number) for number in range(DRAWN)]


def windowed(case: dict[str, Any]) -> Iterator[str]:
    spread = case["spouts"]["sp"].get("partitions", 1) > 1
    for step in case["steps"]:
        if step["op"] in replays.WINDOWS:
            yield f"{step['op']} {step['agg']['name']}"
            stores = {True: "in memory", False: "without a store"}
            yield f"{step['op']} {'durable' if step.get('durable') else stores[step['store']]}"
            yield f"{step['op']} in several partitions" if spread else ""


def asked(case: dict[str, Any]) -> Iterator[str]:
    first = next((n for n, step in enumerate(case["steps"]) if step["op"] == "newDRPCStream"), None)
    steps = case["steps"][first:] if first is not None else []
    static = {step["id"] for step in case["steps"] if step["op"] == "newStaticState"}
    for step in steps:
        yield step["op"]
        if step["op"] == "stateQuery":
            yield "static" if step["state"] in static else step["query"]["name"]
    yield "two functions" if sum(step["op"] == "newDRPCStream" for step in steps) > 1 else ""
    yield from ("between batches" if "afterTxid" in request else "after all" for request in case.get("drpc", ()))


def test_every_window_is_drawn(drawn: list[dict[str, Any]]) -> None:
    assert WINDOWED - {word for case in drawn for word in windowed(case)} == set()


def test_every_kind_of_request_is_drawn(drawn: list[dict[str, Any]]) -> None:
    assert ASKED - {word for case in drawn for word in asked(case)} == set()


def test_windows_requests_and_failures_meet_in_one_case(drawn: list[dict[str, Any]]) -> None:
    together = [case for case in drawn if TOGETHER in subjects(case)]
    assert len(together) > DRAWN // 20
    assert any(spout.get("replayBatches") for case in together for spout in case["spouts"].values())


def test_the_same_seed_gives_the_same_case() -> None:
    assert make("again", 7) == make("again", 7) != make("again", 8)


# ---------------------------------------------------------------- the comparison
def test_a_window_that_takes_a_replayed_batch_twice_is_seen() -> None:
    """Storm's is such a window: where a replay fills it otherwise, its rows must not pass for ours."""
    with LocalCluster() as cluster:
        seen = [name for recorded in cases.everything() for name in swapped(recorded, cluster)]
    assert len(seen) > 10


def swapped(recorded: cases.Everything, cluster: LocalCluster) -> Iterator[str]:
    """The sinks behind windows in which Storm has other rows because of the replay; each is put into our result."""
    case, storm, undisturbed = recorded
    if undisturbed is None or storm["error"]:
        return
    ours = run(case, cluster)
    behind = replays.Parts(case, storm, ours).as_calm()
    for name, rows in storm["outputs"].items():
        if f"sink {name}" in behind and sorted(map(key, rows)) != sorted(map(key, undisturbed["outputs"][name])):
            other = copy.deepcopy(ours)
            other["outputs"][name], other["sinkPartitions"][name] = rows, storm["sinkPartitions"][name]
            assert set(replays.differs(case, storm, undisturbed, other)) == {"outputs, undisturbed"}
            yield name


def test_the_undisturbed_case_has_no_failures_and_the_tuples_of_the_last_attempts() -> None:
    replays_of = {"2": [[20]], "3": [[30]]}
    spout = {"fields": ["v"], "batches": [[[1]], [[2]], [[3]]], "replayBatches": replays_of}
    case = {"name": "c", "steps": [], "fail": [{"txid": 2}], "spouts": {"sp": spout}}
    quiet = replays.calm(case, {"attempts": {"1": 0, "2": 1, "3": 0}})
    assert quiet == {
        "name": "c", "steps": [], "spouts": {"sp": {"fields": ["v"], "batches": [[[1]], [[20]], [[3]]]}}
    }  # fmt: skip


def test_what_storm_cannot_answer_is_named() -> None:
    assert unanswered({"error": None}) is None
    assert unanswered({"error": {"class": "timeout", "message": ""}}) == "Storm waits for ever"
    assert str(unanswered({"error": {"class": "x", "message": "no such vertex in graph"}})).startswith("no such vertex")


def test_the_oracle_is_found_from_a_worktree_too() -> None:
    assert oracle.PLACES[1] == oracle.PLACES[0].parents[2] / "shared" / "oracle"


ASKED_BESIDE_A_WINDOW: dict[str, Any] = {
    "name": "asked_beside_a_window",
    "spouts": {"sp": {"fields": ["k", "v"], "batches": [[["b", 2], ["b", 4]], [["a", 2], ["c", 3]]]}},
    "steps": [
        {"id": "x1", "op": "newStream", "spout": "sp"},
        {"id": "x2", "op": "tumblingWindow", "in": "x1", "count": 2, "fields": ["k", "v"], "out": ["n"],
         "agg": {"name": "complete_count"}, "store": False},
        {"id": "x3", "op": "each", "in": "x2", "fields": ["n"], "out": ["key"],
         "fn": {"name": "append_constant", "value": "b"}},
        {"id": "x4", "op": "partitionPersist", "in": "x1", "state": {"name": "log", "kind": "log"}, "fields": ["v"],
         "updater": {"name": "size"}, "out": ["size"]},
        {"id": "x5", "op": "newValuesStream", "in": "x4"},
        {"id": "x6", "op": "each", "in": "x5", "fields": ["size"], "out": ["key"],
         "fn": {"name": "append_constant", "value": "b"}},
        {"id": "x7", "op": "partitionPersist", "in": "x3", "state": {"name": "last", "kind": "memory"},
         "fields": ["key", "n"], "updater": {"name": "put"}},
        {"id": "x8", "op": "stateQuery", "in": "x6", "state": "x7", "fields": ["key"], "query": {"name": "MapGet"},
         "out": ["was"]},
        {"op": "sink", "in": "x8", "name": "out"},
    ],
}  # fmt: skip


def test_a_query_in_a_windows_bolt_comes_before_an_update_two_steps_behind_the_window() -> None:
    """As in Storm, where the window projects its results: that is one step more (the live oracle says the same)."""
    with LocalCluster() as cluster:
        ours = run(ASKED_BESIDE_A_WINDOW, cluster)
    assert ours["outputs"]["out"] == [[1, [2, "b", None]], [2, [2, "b", 2]]]
