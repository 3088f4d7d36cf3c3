"""LocalCluster gives what real Storm Trident gave, in every recorded case."""

from __future__ import annotations

from typing import Any

import pytest

from trident_py import LocalCluster

from . import cases, replays
from .compare import diff
from .deviations import DEVIATIONS, check
from .interpreter import run

pytestmark = pytest.mark.dear

PER_TEST = 50
"""Recorded cases of one test."""


@pytest.fixture(scope="module")
def cluster() -> Any:
    with LocalCluster() as cluster:
        yield cluster


@pytest.mark.parametrize("recorded", cases.handmade(), ids=lambda recorded: recorded.name)
def test_a_case_made_by_hand_gives_what_storm_gave(recorded: cases.Recorded, cluster: Any) -> None:
    ours = run(recorded.case, cluster)
    if recorded.name in DEVIATIONS:
        check(recorded, ours)
    else:
        assert diff(recorded.case, recorded.result, ours) == {}, ours["error"]


@pytest.mark.parametrize("recorded", cases.drpc(), ids=lambda recorded: recorded.name)
def test_requests_get_what_storm_answered(recorded: cases.Recorded, cluster: Any) -> None:
    ours = run(recorded.case, cluster)
    if recorded.name in DEVIATIONS:
        check(recorded, ours)
    else:
        assert diff(recorded.case, recorded.result, ours) == {}, ours["error"]


def parts(recorded: list[Any]) -> Any:
    """Numbers of `some`. Each number comes once in `make test`, in one of the tests that have it."""
    return pytest.mark.parametrize("part", range(-(-len(recorded) // PER_TEST)))


def some(recorded: list[Any], part: int) -> list[Any]:
    """One part of all cases: every so manieth, so that each part has some of all kinds."""
    return recorded[part :: -(-len(recorded) // PER_TEST)]


def _wrong(part: list[cases.Recorded], cluster: Any) -> dict[str, Any]:
    """What differs, by the names of the cases."""
    now = [r for r in part if r.name not in DEVIATIONS]
    return {r.name: found for r in now if (found := diff(r.case, r.result, run(r.case, cluster)))}


@parts(cases.random())
def test_random_cases_give_what_storm_gave(part: int, cluster: Any) -> None:
    assert _wrong(some(cases.random(), part), cluster) == {}


@parts(cases.systematic())
def test_systematic_cases_give_what_storm_gave(part: int, cluster: Any) -> None:
    assert _wrong(some(cases.systematic(), part), cluster) == {}


@parts(cases.shapes())
def test_updates_and_queries_of_states_come_in_storms_order(part: int, cluster: Any) -> None:
    assert _wrong(some(cases.shapes(), part), cluster) == {}


@parts(cases.wider())
def test_cases_of_every_operation_give_what_storm_gave_whatever_their_fields_are_called(
    part: int, cluster: Any
) -> None:
    assert _wrong(list(map(cases.renamed, some(cases.wider(), part))), cluster) == {}


def differs(recorded: cases.Everything, cluster: Any) -> dict[str, Any]:
    ours = run(recorded.case, cluster)
    if recorded.undisturbed is None:
        return diff(recorded.case, recorded.result, ours)
    return replays.differs(recorded.case, recorded.result, recorded.undisturbed, ours)


@parts(cases.everything())
def test_windows_and_requests_while_batches_are_replayed_give_what_storm_gave(part: int, cluster: Any) -> None:
    asked = some(cases.everything(), part)
    assert {r.case["name"]: found for r in asked if (found := differs(r, cluster))} == {}


@pytest.mark.parametrize(
    "recorded", [r for r in cases.systematic() if r.name in DEVIATIONS], ids=lambda recorded: recorded.name
)
def test_a_deviation_from_storm_is_what_the_table_says(recorded: cases.Recorded, cluster: Any) -> None:
    check(recorded, run(recorded.case, cluster))


def test_every_deviation_has_its_case() -> None:
    assert set(DEVIATIONS) <= {r.name for r in cases.handmade() + cases.systematic() + cases.drpc()}
