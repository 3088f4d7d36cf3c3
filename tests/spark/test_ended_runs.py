"""What a worker keeps of a run goes when the list of active runs, which every job carries, no longer has the run."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from trident_py.spark import stage
from trident_py.spark.component import ActiveRuns


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that the worker ended. It keeps the programs of two components of run a, and one of run b."""
    runs: list[str] = []
    monkeypatch.setattr(stage, "end_run", runs.append)
    monkeypatch.setattr(stage, "_programs", {})
    monkeypatch.setattr(stage, "_runs_seen", 0)
    for key in ("a/one", "a/two", "b/one"):
        stage._program(key, pickle.dumps(key))
    return runs


def test_a_run_that_is_no_longer_active_is_dropped_with_all_its_components(ended: list[str]) -> None:
    active = ActiveRuns()
    active.begin("a")
    active.begin("b")
    stage._drop_ended_runs(active.to_json())
    assert ended == []
    active.end("a")
    stage._drop_ended_runs(active.to_json())
    assert ended == ["a"]
    assert stage._programs == {"b/one": "b/one"}


def test_an_older_list_drops_nothing(ended: list[str]) -> None:
    """A job that started before run b did may have tasks after b's first ones."""
    active = ActiveRuns()
    active.begin("a")
    older = active.to_json()
    active.begin("b")
    stage._drop_ended_runs(active.to_json())
    stage._drop_ended_runs(older)
    assert ended == []
    assert sorted(stage._programs) == ["a/one", "a/two", "b/one"]


def test_the_list_has_what_began_and_did_not_end_and_its_number_rises() -> None:
    active, texts = ActiveRuns(), []
    for change, run in ((active.begin, "a"), (active.begin, "b"), (active.end, "a"), (active.end, "a")):
        change(run)
        texts.append(active.to_json())
    assert texts == ['[1, ["a"]]', '[2, ["a", "b"]]', '[3, ["b"]]', '[4, ["b"]]']


def test_a_program_is_unpickled_once(ended: list[str]) -> None:
    program: Any = stage._program("b/one", b"not read")
    assert program == "b/one"
