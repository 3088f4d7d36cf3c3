"""The port of DebugMemoryMapState: failed updates are replayed, and the counts are those without failures."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ported import finished, printed

from examples import trident_debug_state, word_count
from trident_py import LocalCluster
from trident_py.testing import MemoryMapState, stored


def counted(cluster: Any, state: Any) -> tuple[dict, list[tuple]]:
    """The counts, and the replays as (txid, attempt)."""
    running = finished(cluster, word_count.build(state=state))
    replays = [(event.txid, event.attempt) for event in running.events if event.kind == "replay"]
    return {word: value.curr for (word,), value in stored(state).items()}, replays


def undisturbed() -> dict:
    with LocalCluster() as cluster:
        return counted(cluster, MemoryMapState.Factory())[0]


def test_failed_updates_change_no_count() -> None:
    with LocalCluster() as cluster:
        counts, replays = counted(cluster, trident_debug_state.DebugMemoryMapState.Factory())
    assert counts == undisturbed() and counts["the"] == 5
    assert replays == [(1, 0), (2, 0)]


def test_a_replay_brings_the_same_keys_and_partial_counts(capsys: pytest.CaptureFixture[str]) -> None:
    with LocalCluster() as cluster:
        _, replays = counted(cluster, trident_debug_state.DebugMemoryMapState.Factory())
    calls: dict[int, list[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        if found := re.fullmatch(r"updateCount = (\d), (.*)", line):
            calls.setdefault(int(found[1]), []).append(found[2])
    assert replays == [(1, 0), (2, 0)]
    assert "keys = ('the',) => updaterArgs = 4" in calls[0]
    assert sorted(calls[0]) == sorted(calls[1])  # each partition's first call fails; txid 2 has partitions of its own
    assert sorted(calls[2]) == sorted(calls[3])  # the partitions of txid 2 that did not fail come again as well


def test_the_module_prints_the_replays_and_the_counts() -> None:
    lines = printed("trident_debug_state", "--local", warns="Enforced State Update Fail")
    assert "Throwing FailedException" in lines
    assert [line for line in lines if line.startswith(" ")][:4] == ["  5 the", "  3 to", "  2 and", "  2 be"]


@pytest.mark.spark
@pytest.mark.whole("test_failed_updates_change_no_count")
def test_failed_updates_change_no_count_on_spark(spark_cluster: Any) -> None:
    counts, replays = counted(spark_cluster(), trident_debug_state.DebugMemoryMapState.Factory())
    assert counts == undisturbed() and replays == [(1, 0), (2, 0)]
