"""`trident profile`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

from test_cli import folder, trident

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
    assert "there was no batch to measure" in done.stderr


def test_a_failing_topology_ends_as_a_run_does(folder: Path) -> None:
    done = trident(folder, "profile", "good:failing", "--local")
    assert done.returncode == 1
    assert done.stderr.startswith("ValueError: cannot read 'a'")
