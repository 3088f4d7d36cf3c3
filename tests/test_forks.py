"""A process of a test is forked from the server of forks (`faults.forks`), which has no threads.

A fork of the test's own process has the locks that its threads (librdkafka's, Arrow's) held at that moment, and nobody
releases them.
"""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
FORKS = re.compile(r"\bos\.fork\(|get_context\((?!.(spawn|forkserver)\b)|multiprocessing\.(Process|Pool)\(")
LISTED = {
    "states/test_sql_map.py": "that a fork opens connections of its own",
    "test_parallel_commit.py": "that a fork has threads of its own",
    "test_install.py": "by a program of its own",
    "simulation/planted.py": "a program of its own, before it has threads",
    "simulation/random.py": "a program of its own, before it has threads",
}


def test_only_those_that_are_listed_fork_themselves() -> None:
    texts = {str(path.relative_to(TESTS)): path.read_text() for path in TESTS.rglob("*.py")}
    assert {name for name, text in texts.items() if FORKS.search(text)} - {"test_forks.py"} == {*LISTED}
