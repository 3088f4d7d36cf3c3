"""`trident profile`: what it prints, and how it ends."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

from test_cli import folder, trident

from trident_py.engine.phases import BatchPhases
from trident_py.extras.profile.cli import NO_BATCH, OTHER_TABLE, SHOWN, TAKEN, lines
from trident_py.extras.profile.report import Profile

__all__ = ["folder"]


def test_the_table_names_each_operation_and_ends_with_the_whole_batch(folder: Path) -> None:
    done = trident(folder, "profile", "good:endless", "--local", "--batches", "5", "--warm-up", "2")
    assert done.returncode == 0, done.stderr
    head, columns, *rows = done.stdout.splitlines()
    assert head == "good/words: medians of 5 batches"
    assert columns.split() == ["phase", "ms", "share", "who:", "what"]
    assert any(row.startswith("operation: aggregate Count by [word]") for row in rows)
    assert rows[-1].split()[:2] == ["whole", "batch"] and rows[-1].endswith("100%")


def test_json_has_medians_and_each_batch_whose_phases_sum_up_to_it(folder: Path) -> None:
    done = trident(folder, "profile", "good:endless", "--local", "--batches", "5", "--warm-up", "2", "--json")
    told = json.loads(done.stdout)
    (component,) = told["components"]
    assert (told["topology"], component["component"], len(component["batches"])) == ("good", "words", 5)
    assert [batch["txid"] for batch in component["batches"]] == [3, 4, 5, 6, 7]
    for batch in component["batches"]:
        assert abs(sum(batch["phases"].values()) - batch["seconds"]) < 1e-9
    emit = next(row for row in component["phases"] if row["phase"] == "emit")
    assert emit["of"] == "spout words: FixedBatchSpout" and 0 < emit["seconds"] < component["seconds"]


def test_a_topology_without_batches_says_so(folder: Path) -> None:
    (folder / "empty.py").write_text(
        "from trident_py import TridentTopology\ndef build():\n    topology = TridentTopology()\n"
        "    topology.newDRPCStream('f').map(lambda args: args)\n    return topology\n"
    )
    done = trident(folder, "profile", "empty", "--local")
    assert done.returncode == 1
    assert done.stderr == f"error: empty: {NO_BATCH}\n"


def test_a_component_without_a_new_batch_is_named(folder: Path) -> None:
    command = "profile", "good:build", "--local", "--checkpoint", "kept"
    assert trident(folder, *command).returncode == 0
    done = trident(folder, *command)
    assert (done.returncode, done.stdout) == (1, "")
    memory, error = done.stderr.splitlines()
    assert "is in memory and begins empty" in memory and error == f"error: good/words: {NO_BATCH}"


COUNTING = """
from states.sql import SqlMapState
from trident_py import TridentTopology
from trident_py.operations.builtin import Count
from trident_py.testing import FixedBatchSpout

def build():
    counts = SqlMapState.opaque("sqlite:///counts.db", "counts", "word string", "count bigint")
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word", 1, ("a",), ("b",)))
    words.groupBy("word").persistentAggregate(counts, Count(), "count")
    return topology
"""


def test_over_a_table_of_another_run_it_advises_another_table(folder: Path) -> None:
    (folder / "counting.py").write_text(COUNTING)
    assert trident(folder, "run", "counting:build", "--local", "--checkpoint", "kept").returncode == 0
    done = trident(folder, "profile", "counting:build", "--local")
    assert (done.returncode, done.stdout) == (1, "")
    assert "remembers batch 2, written under another checkpoint" in done.stderr and "txid.base" not in done.stderr
    assert done.stderr.rstrip().endswith(f"counted twice. {OTHER_TABLE}")
    named = trident(folder, "profile", "counting:build", "--local", "--checkpoint", "other")
    assert "--set topology.txid.base=2" in named.stderr


def test_a_checkpoint_of_a_driver_that_runs_is_left_to_it(folder: Path) -> None:
    command = [sys.executable, "-m", "trident_py", "run", "good:endless", "--local", "--checkpoint", "kept", "--json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        next(line for line in running.stdout if '"committed"' in line)
        done = trident(folder, "profile", "good:endless", "--local", "--checkpoint", "kept")
        assert (done.returncode, done.stdout) == (1, "")
        where = folder / "kept" / "good" / "words"
        owner = f"process {running.pid} on host {socket.gethostname()}, which is running"
        assert done.stderr == f"LineageError: the checkpoint {where} belongs to {owner}. {TAKEN}\n"
        running.terminate()
        assert running.communicate(timeout=60) and running.returncode == 0
    again = trident(folder, "profile", "good:endless", "--local", "--checkpoint", "kept", "--batches", "1")
    assert again.returncode == 0, again.stderr


def test_phases_that_are_all_too_short_to_show_leave_the_whole_batch() -> None:
    seconds = {("emit", "spout words"): SHOWN / 3, ("waiting", ""): SHOWN / 3}
    shown = lines("good", Profile("words", [BatchPhases(1, SHOWN, seconds)]))
    assert shown[0] == "good/words: medians of 1 batches"
    assert [row.split()[0] for row in shown[1:]] == ["phase", "whole"]


def content(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc"}


def test_a_new_project_says_how_it_is_profiled(folder: Path) -> None:
    assert trident(folder, "init", "shop").returncode == 0
    project = folder / "shop"
    assert trident(project, "run", "--local", "--json").returncode == 0
    kept = content(project)
    over = trident(project, "profile", "--local")  # takes nothing over from a driver that may run
    assert over.returncode == 1 and over.stderr.rstrip().endswith(OTHER_TABLE) and content(project) == kept
    (command,) = re.findall(r"#   COUNTS_URL=(\S+) trident (profile .+)", (project / "trident.yml").read_text())
    done = trident(project, *command[1].split(), COUNTS_URL=command[0])
    assert done.returncode == 0, done.stderr
    assert "shop/sentences: medians of 1 batches" in done.stdout


def test_a_failing_topology_ends_as_a_run_does(folder: Path) -> None:
    done = trident(folder, "profile", "good:failing", "--local")
    assert done.returncode == 1
    assert done.stderr.startswith("ValueError: cannot read 'a'")
