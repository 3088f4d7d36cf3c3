"""The comparison can tell results apart: a comparison that always agrees would prove nothing.

Each test changes one thing in what Storm gave and asks that just this is seen.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from . import cases
from .compare import diff, interleave
from .deviations import DEVIATIONS
from .meanings import MEANINGS, meanings

REPLAYED = "persist_opaque_group_replay_commit"
FAILED = "slip_each_reads_missing"


def recorded(name: str) -> cases.Recorded:
    every = cases.handmade() + cases.systematic() + cases.shapes() + cases.random()
    return next(r for r in every if r.name == name)


def seen(name: str, change: Callable[[dict[str, Any]], Any]) -> set[str]:
    """What differs when our result is Storm's with this change."""
    found = recorded(name)
    other = copy.deepcopy(found.result)
    change(other)
    return set(diff(found.case, found.result, other))


@pytest.mark.parametrize("value", [2.0, True, "2", None, 3])
def test_values_of_another_type_differ(value: Any) -> None:
    def change(ours: dict) -> None:
        ours["outputs"]["new"][0][1][1] = value

    assert seen(REPLAYED, change) == {"outputs"}


CHANGES: dict[str, tuple[str, Callable[[dict], Any]]] = {
    "a missing row": ("outputs", lambda r: (r["outputs"]["new"].pop(), r["sinkPartitions"]["new"].pop())),
    "a row of another batch": ("outputs", lambda r: r["outputs"]["new"][0].__setitem__(0, 2)),
    "a row in another partition": ("outputs", lambda r: r["sinkPartitions"]["new"].__setitem__(0, 1)),
    "another attempt": ("attempts", lambda r: r["attempts"].__setitem__("3", 0)),
    "another stored value": ("states", lambda r: r["states"]["st"][0][1].__setitem__("prev", None)),
    "a missing call": ("calls", lambda r: r["calls"]["st"].pop()),
    "a call twice": ("calls", lambda r: r["calls"]["st"].append(r["calls"]["st"][-1])),
    "calls in another order": ("calls", lambda r: r["calls"]["st"].insert(0, r["calls"]["st"].pop(3))),
    "a call of another task": ("calls", lambda r: r["calls"].__setitem__("st/1", r["calls"].pop("st"))),
    "a failure that did not fire": ("failsFired", lambda r: r["failsFired"].clear()),
    "a failure that fired twice": ("failsFired", lambda r: r["failsFired"].append(r["failsFired"][0])),
    "a failure at another place": ("failsFired", lambda r: r["failsFired"][0].__setitem__(2, "put")),
    "another name of a field": ("sinkFields", lambda r: r["sinkFields"]["new"].reverse()),
}


@pytest.mark.parametrize(("part", "change"), CHANGES.values(), ids=CHANGES)
def test_one_change_is_one_difference(part: str, change: Callable[[dict], Any]) -> None:
    assert seen(REPLAYED, change) == {part}


def test_groups_come_in_any_order() -> None:
    assert seen(REPLAYED, lambda r: r["outputs"]["new"].reverse()) == set()


def test_tuples_of_one_partition_come_in_order() -> None:
    assert seen(_ordered(), lambda r: next(iter(r["outputs"].values())).reverse()) == {"outputs"}


def _ordered() -> str:
    """A case that passes its tuples on, several in a batch and none like another."""
    for each in cases.handmade():
        ops = {step["op"] for step in each.case["steps"]}
        rows = list(each.result["outputs"].values())
        if ops == {"newStream", "sink", "each"} and len(rows) == 1 and len({str(row) for row in rows[0]}) > 2:
            return each.name
    raise AssertionError("no such case")


# ---------------------------------------------------------------- several tasks
def spread(placed: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """A case with a state of two tasks that were called three times, each partition of a tuple defined or drawn."""
    op = {"op": "partitionBy", "fields": ["v"]} if placed else {"op": "shuffle"}
    case: dict[str, Any] = {
        "spouts": {"sp": {"fields": ["v"], "batches": [[["a"], ["a"], ["b"]]]}},
        "steps": [
            {"id": "s", "op": "newStream", "spout": "sp"},
            {"id": "x", "in": "s", **op},
            {"op": "partitionPersist", "in": "x", "state": {"name": "st", "kind": "log", "partitions": 2}},
        ],
    }
    begin, commit = ["beginCommit", 1], ["commit", 1]
    one, two = ["update", [["a"], ["a"]]], ["update", [["b"]]]
    calls = {"st/0": [begin, one, commit], "st/1": [begin, two, commit]}
    nothing: dict[str, Any] = {"outputs": {}, "sinkFields": {}, "states": {}, "drpc": [], "error": None}
    return case, {**nothing, "calls": calls, "attempts": {"1": 0}}


def moved(result: dict[str, Any], *changes: tuple[str, int, list]) -> dict[str, Any]:
    """The result with other calls."""
    other = copy.deepcopy(result)
    for task, at, call in changes:
        other["calls"][task][at] = call
    return other


@pytest.mark.parametrize("placed", [True, False])
def test_what_is_called_once_differs_from_what_is_called_twice(placed: bool) -> None:
    case, storm = spread(placed)
    assert set(diff(case, storm, moved(storm, ("st/0", 1, ["update", [["a"]]])))) == {"calls"}


@pytest.mark.parametrize("placed", [True, False])
def test_the_task_of_a_tuple_is_compared_where_storm_does_not_draw_it(placed: bool) -> None:
    case, storm = spread(placed)
    ours = moved(storm, ("st/0", 1, ["update", [["a"]]]), ("st/1", 1, ["update", [["b"], ["a"]]]))
    assert set(diff(case, storm, ours)) == ({"calls"} if placed else set())


def test_each_task_has_its_order() -> None:
    case, storm = spread(True)
    ours = moved(storm, ("st/0", 1, ["commit", 1]), ("st/0", 2, ["update", [["a"], ["a"]]]))
    assert set(diff(case, storm, ours)) == {"calls"}


# ---------------------------------------------------------------- peeks
def peeked(partitions: int, theirs: list, own: list, fired: str = "") -> set[str]:
    case = {
        "spouts": {"sp": {"fields": ["v"], "partitions": partitions}},
        "steps": [{"id": "s", "op": "newStream", "spout": "sp"}, {"id": "p", "op": "peek", "in": "s"}],
    }
    nothing: dict[str, Any] = {"outputs": {}, "sinkFields": {}, "states": {}, "drpc": [], "error": None, "calls": {}}
    nothing |= {"attempts": {"1": int(bool(fired))}, "failsFired": [[1, 0, fired, "x"]] if fired else []}
    return set(diff(case, {**nothing, "peeks": {"p": theirs}}, {**nothing, "peeks": {"p": own}}))


def test_what_was_peeked_at_is_compared_in_the_order_of_each_task() -> None:
    alone = [[1, 0, 0, ["a"]], [1, 0, 0, ["b"]], [2, 0, 0, ["a"]]]
    assert peeked(1, [["a"], ["b"], ["a"]], alone) == set()
    assert peeked(1, [["b"], ["a"], ["a"]], alone) == {"peek p"}
    assert peeked(1, [["a"], ["b"]], alone) == {"peek p"}
    two = [[1, 0, 0, ["a"]], [1, 0, 0, ["b"]], [1, 0, 1, ["c"]]]
    assert peeked(2, [["a"], ["c"], ["b"]], two) == set()
    assert peeked(2, [["b"], ["a"], ["c"]], two) == {"peek p"}


def test_a_peek_in_a_batch_that_failed_half_way_may_have_seen_a_part() -> None:
    own = [[1, 0, 0, ["a"]], [1, 0, 0, ["b"]], [1, 1, 0, ["a"]], [1, 1, 0, ["b"]]]
    assert peeked(1, [["a"], ["a"], ["b"]], own, "function") == set()
    assert peeked(1, [["a"], ["a"]], own, "function") == {"peek p"}
    assert peeked(1, [["a"]], own[:2], "function") == set()  # the replay was another batch, without tuples
    assert peeked(1, [["a"], ["a"], ["b"]], own, "commit") == {"peek p"}


def test_lists_interleave_each_in_its_own_order() -> None:
    assert interleave(list("abcd"), [list("ac"), list("bd")])
    assert not interleave(list("abdc"), [list("ac"), list("db"), []])


# ---------------------------------------------------------------- errors
OURS = {
    "class": "MissingValueError",
    "message": "a tuple was emitted with too few values: it has none for field 'v'",
    "phase": "run",
    "txid": 1,
    "operation": "each Fn",
    "text": "",
}
ERRORS: dict[str, tuple[set[str], dict[str, Any]]] = {
    "the same": (set(), {}),
    "another phase": ({"error"}, {"phase": "build"}),
    "another meaning": ({"error"}, {"class": "RuntimeError", "message": "thrown by the function"}),
    "another operation": ({"error"}, {"operation": "aggregate Fn"}),
    "other code": ({"error"}, {"operation": "each Flt"}),
    "no operation": ({"error"}, {"operation": "start"}),
    "another batch": ({"batch"}, {"txid": 2}),
}


@pytest.mark.parametrize(("differs", "change"), ERRORS.values(), ids=ERRORS)
def test_errors_are_compared_by_phase_meaning_place_and_batch(differs: set[str], change: dict[str, Any]) -> None:
    found = seen(FAILED, lambda r: r.__setitem__("error", {**OURS, **change}))
    assert found - {"calls", "outputs"} >= differs and bool(found) == bool(differs)


def test_an_error_differs_from_a_result() -> None:
    assert "error" in seen(FAILED, lambda r: r.__setitem__("error", None))
    assert "error" in seen(REPLAYED, lambda r: r.__setitem__("error", OURS))


def test_what_the_batches_before_an_error_did_is_compared() -> None:
    storm = recorded(REPLAYED).result
    error = {"class": "java.lang.IllegalStateException", "message": "thrown by the function", "phase": "run"}
    ended = {**storm, "error": error, "attempts": {"1": 0, "2": 0, "3": 1, "4": 0}}
    own = {**OURS, "class": "RuntimeError", "message": "thrown by the function", "txid": 4}

    def found(**parts: Any) -> set[str]:
        return set(diff(recorded(REPLAYED).case, ended, {**ended, "error": own, **parts}))

    assert found() == found(states={}) == set()
    for where, batch in ((0, "before"), (5, "of the error")):
        rows, partitions = (list(storm[part]["new"]) for part in ("outputs", "sinkPartitions"))
        del rows[where], partitions[where]
        lacks = found(outputs={"new": rows}, sinkPartitions={"new": partitions})
        assert lacks == ({"outputs"} if batch == "before" else set())


def test_a_field_that_is_named_otherwise_is_another_error() -> None:
    ours = {**OURS, "phase": "build", "class": "DefinitionError", "message": "duplicate field 'b'"}
    storm = {"class": "java.lang.IllegalArgumentException", "message": "duplicate field 'a'", "phase": "build"}
    assert meanings(ours).keys() == meanings(storm).keys() and meanings(ours) != meanings(storm)


def test_every_recorded_error_has_one_meaning_and_every_meaning_an_error() -> None:
    every = cases.handmade() + cases.systematic() + cases.shapes() + cases.random() + cases.drpc()
    failed = [r for r in every if r.result["error"] and r.name not in DEVIATIONS]
    told = {r.name: meanings(r.result["error"]) for r in failed}
    assert [name for name, found in told.items() if not found] == []
    assert {name for found in told.values() for name in found} == {meaning.name for meaning in MEANINGS}
