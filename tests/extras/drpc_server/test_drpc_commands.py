"""`trident drpc serve` and `trident drpc-client`, as processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from trident_py.cli import trident

ROOT = Path(__file__).parents[3]
MODULE = """
from tests.drpc.functions import word_count, words
from trident_py import TridentTopology
from trident_py.testing import FixedBatchSpout

def build():
    topology = TridentTopology()
    words(topology, word_count(topology, FixedBatchSpout("sentence", 1, ("a b",), ("a",))), None)
    return topology

def silent():
    topology = TridentTopology()
    word_count(topology, FixedBatchSpout("sentence", 1, ("a b",)))
    return topology
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "counting.py").write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{MODULE}")
    return tmp_path


@pytest.fixture
def served(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of its own process, and its port."""
    command = [sys.executable, "-m", "trident_py", "drpc", "serve", "counting:build", "--local", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env=_environment())
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if found := re.search(r"DRPC at http://127\.0\.0\.1:(\d+)/drpc", line):
            break
    assert found, "".join(lines)
    yield process, found[1]
    process.kill()
    process.communicate()


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_a_served_topology_answers_the_client_until_sigterm(served: tuple[subprocess.Popen[str], str]) -> None:
    process, port = served
    assert process.stderr is not None
    while "the spouts are exhausted" not in process.stderr.readline():
        pass
    client = ["drpc-client", "--port", port]
    answered = CliRunner().invoke(trident, [*client, "-f", "words", "a b", "b", "zz"])
    assert (answered.exit_code, answered.stdout) == (0, "[[3]]\n[[1]]\n[[0]]\n")
    answered = CliRunner().invoke(trident, [*client, "words", "a", "nobody", "x"])
    assert answered.exit_code == 1 and answered.stdout == "[[2]]\n"
    assert "FAILED_REQUEST: no running topology answers the function 'nobody'" in answered.stderr
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_a_client_needs_a_function_and_its_args() -> None:
    for arguments in ([], ["words"]):
        answered = CliRunner().invoke(trident, ["drpc-client", *arguments])
        assert answered.exit_code == 2 and "FUNCTION ARG, in pairs" in answered.stderr


def test_a_topology_without_a_drpc_stream_is_not_served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    answered = CliRunner().invoke(trident, ["drpc", "serve", "counting:silent", "--local", "--port", "0"])
    assert answered.exit_code == 2 and "has no DRPC stream, so there is nothing to serve" in answered.stderr
    assert not (folder / "checkpoints").exists(), "no batch ran"
