"""The port of TridentWordCount gives the counts that real Storm gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from examples import word_count
from trident_py import LocalCluster
from trident_py.testing import MemoryMapState, stored

ROOT = Path(__file__).parents[2]
COUNTS = {"the": 5, "to": 3, "and": 2, "be": 2}
ONCE = [
    "cow",
    "jumped",
    "over",
    "moon",
    "man",
    "went",
    "store",
    "bought",
    "some",
    "candy",
    "four",
    "score",
    "seven",
    "years",
    "ago",
    "how",
    "many",
    "apples",
    "can",
    "you",
    "eat",
    "or",
    "not",
    "person",
]


def test_two_batches_give_storms_counts() -> None:
    state = MemoryMapState.Factory()
    with LocalCluster() as cluster:
        running = cluster.submitTopology("wordCounter", {}, word_count.build(state=state).build())
        assert running.awaitTermination(timeout=30)
        counts = {word: value.curr for (word,), value in stored(state).items()}
    assert running.txid == 2
    assert counts == {**dict.fromkeys(ONCE, 1), **COUNTS}


def test_the_module_prints_its_counts() -> None:
    command = [sys.executable, "-W", "error", "-m", "examples.word_count"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    lines = done.stdout.splitlines()
    assert lines[:4] == ["  5 the", "  3 to", "  2 and", "  2 be"]
    assert lines[-1] == "DRPC RESULT: [['jumped', 1], ['the', 5]]"
    assert done.stderr == ""
