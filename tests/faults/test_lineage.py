"""A checkpoint that is not the one that wrote the store: lost, or an older copy of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from trident_py import LocalCluster, TopologyError
from trident_py.errors import LineageError

from .conftest import Runs
from .evidence import drifted_prefix, evidence
from .hooks import Kill
from .test_replays import holds_exactly
from .topology import Shape, build


@pytest.mark.spark
def test_a_lost_checkpoint_stops_with_the_choices_until_one_is_made(runs: Runs) -> None:
    runs(Shape(3))
    before = runs.evidence()
    shutil.rmtree(runs.checkpoint)
    consumed = drifted_prefix(before.stored["drift"], 4)
    rest = Shape(6, skipped=3, drifted=tuple(consumed))
    for _ in range(2):
        with pytest.raises(TopologyError) as told:
            runs(rest)
        assert isinstance(told.value.__cause__, LineageError)
        for words in ("remembers batch 3", "restore the checkpoint", 'conf["topology.txid.base"]', "new table"):
            assert words in str(told.value)
        assert runs.evidence().stored == before.stored
    running = runs(rest, topology_txid_base=3)
    assert list(running.attempts) == [4, 5, 6]
    holds_exactly(runs.evidence(), 6)
    runs(Shape(7, skipped=3, drifted=tuple(consumed)))  # from now on without the setting
    holds_exactly(runs.evidence(), 7)


@pytest.mark.spark
@pytest.mark.whole("test_a_row_of_the_table_comes_about_and_does_what_it_says")
def test_an_older_copy_of_the_checkpoint_is_refused_and_nothing_is_written(runs: Runs) -> None:
    runs(Shape(2))
    copy = runs.folder / "copy"
    shutil.copytree(runs.checkpoint, copy)
    runs(Shape(4))
    before = runs.evidence()
    shutil.rmtree(runs.checkpoint)
    copy.rename(runs.checkpoint)
    with pytest.raises(TopologyError, match=r"has batch 4; the checkpoint .* has committed batch 2") as told:
        runs(Shape(5))
    assert isinstance(told.value.__cause__, LineageError)
    assert "checkpoint is older than the store" in str(told.value)
    assert runs.evidence().stored == before.stored


def test_a_lost_checkpoint_of_a_local_cluster_leaves_the_choice_open_too(tmp_path: Path) -> None:
    def run(shape: Shape, **conf: str) -> None:
        with LocalCluster(str(tmp_path / "checkpoints")) as cluster:
            running = cluster.submitTopology("faults", conf, build(tmp_path, shape, Kill(str(tmp_path))))
            running.awaitTermination(60)

    run(Shape(3))
    shutil.rmtree(tmp_path / "checkpoints")
    rest = Shape(5, skipped=3, drifted=tuple(drifted_prefix(evidence(tmp_path).stored["drift"], 4)))
    for _ in range(2):
        with pytest.raises(TopologyError, match="remembers batch 3"):
            run(rest)
    run(rest, **{"topology.txid.base": 3})
    holds_exactly(evidence(tmp_path), 5)
