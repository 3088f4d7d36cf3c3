"""The port of TridentWordCount gives the counts that real Storm gives."""

from __future__ import annotations

from typing import Any

import pytest
from ported import finished, printed

from examples import word_count
from trident_py import LocalCluster
from trident_py.testing import MemoryMapState, stored

COUNTS = {"the": 5, "to": 3, "and": 2, "be": 2}
REST = "cow jumped over moon man went store bought some candy four score seven years ago how many apples can you eat"
ONCE = [*REST.split(), "or", "not", "person"]


def check(cluster: Any) -> None:
    state = MemoryMapState.Factory()
    assert finished(cluster, word_count.build(state=state)).txid == 2
    counts = {word: value.curr for (word,), value in stored(state).items()}
    assert counts == {**dict.fromkeys(ONCE, 1), **COUNTS}


def test_two_batches_give_storms_counts() -> None:
    with LocalCluster() as cluster:
        check(cluster)


def test_the_module_prints_its_counts() -> None:
    lines = printed("word_count", "--local")
    assert lines[:4] == ["  5 the", "  3 to", "  2 and", "  2 be"]
    assert lines[-1] == "DRPC RESULT: [['jumped', 1], ['the', 5]]"


@pytest.mark.spark
@pytest.mark.whole("test_two_batches_give_storms_counts")
def test_the_counts_are_the_same_on_spark(spark_cluster: Any) -> None:
    check(spark_cluster())
