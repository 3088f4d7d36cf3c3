"""The port of TridentMapExample gives the counts and answers that real Storm gives."""

from __future__ import annotations

from typing import Any

import pytest
from ported import finished, printed, until

from examples import trident_map
from trident_py import LocalCluster, LocalDRPC
from trident_py.testing import MemoryMapState, stored


def counted(cluster: Any) -> tuple[dict, list, list]:
    """The stored counts, the answer for several words, and for a word that was never seen."""
    state, drpc = MemoryMapState.Factory(), LocalDRPC()
    assert finished(cluster, trident_map.build(state=state, drpc=drpc)).txid == 2
    counts = {word: value.curr for (word,), value in stored(state).items()}
    return counts, drpc.execute("words", "CAT THE DOG JUMPED"), drpc.execute("words", "CAT")


def test_one_cycle_gives_storms_counts() -> None:
    with LocalCluster() as cluster:
        assert counted(cluster) == ({"THE": 5}, [[5]], [[0]])


def test_the_answers_grow_with_each_batch() -> None:
    drpc, seen = LocalDRPC(), {}

    def ask(txid: int) -> None:
        seen[txid] = drpc.execute("words", "CAT THE DOG JUMPED")

    with LocalCluster() as cluster:
        until(cluster, trident_map.build(cycle=True, drpc=drpc), 4, then=ask)
    assert 4 in seen
    assert seen == {txid: [[5 * (txid // 2) + 4 * (txid % 2)]] for txid in seen}


def test_the_module_prints_the_words_and_the_answer() -> None:
    assert printed("trident_map", "--local") == ["THE"] * 5 + ["DRPC RESULT: [[5]]"]


@pytest.mark.spark
@pytest.mark.whole("test_one_cycle_gives_storms_counts")
def test_the_counts_are_the_same_on_spark(spark_cluster: Any) -> None:
    assert counted(spark_cluster()) == ({"THE": 5}, [[5]], [[0]])
