"""The comparison can tell results apart: a comparison that always agrees would prove nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from . import cases
from .compare import diff

RECORDED = next(r for r in cases.handmade() if r.name == "persist_opaque_group_replay_commit")


def changed(**parts: Any) -> dict[str, Any]:
    return {**copy.deepcopy(RECORDED.result), **parts}


def test_a_result_equals_itself_in_any_order() -> None:
    turned = changed(outputs={k: v[::-1] for k, v in RECORDED.result["outputs"].items()})
    assert diff(RECORDED.case, RECORDED.result, turned) == {}


@pytest.mark.parametrize("value", [2.0, True, "2", None, 3])
def test_values_of_another_type_differ(value: Any) -> None:
    other = changed()
    other["outputs"]["new"][0][1][1] = value
    assert set(diff(RECORDED.case, RECORDED.result, other)) == {"outputs"}


def test_a_missing_row_a_missing_call_and_another_attempt_differ() -> None:
    other = changed(attempts={"1": 0, "2": 0, "3": 0, "4": 0})
    other["outputs"]["new"].pop()
    other["calls"]["st"].pop()
    other["states"]["st"][0][1]["prev"] = None
    assert set(diff(RECORDED.case, RECORDED.result, other)) == {"outputs", "calls", "attempts", "states"}


def test_an_error_differs_from_a_result_and_from_an_error_of_another_phase() -> None:
    build, run, submit = ({**changed(), "error": {"phase": p}} for p in ("build", "run", "submit"))
    assert diff(RECORDED.case, RECORDED.result, run) != {}
    assert diff(RECORDED.case, build, run) != {}
    assert diff(RECORDED.case, submit, build) == {}


def test_with_several_tasks_calls_are_compared_by_key() -> None:
    one = changed(calls={"st/0": RECORDED.result["calls"]["st"]})
    calls: dict[str, list] = {"st/0": [], "st/1": []}
    for call in RECORDED.result["calls"]["st"]:
        if call[0] in ("beginCommit", "commit"):
            calls["st/0"].append(call)
            calls["st/1"].append(call)
            continue
        for i in range(len(call[1])):
            calls[f"st/{i % 2}"].append([part[i : i + 1] if isinstance(part, list) else part for part in call])
    assert diff(RECORDED.case, one, changed(calls=calls)) == {}
    calls["st/1"] = calls["st/1"][:-3]
    assert set(diff(RECORDED.case, one, changed(calls=calls))) == {"calls"}
