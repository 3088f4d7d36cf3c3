"""Starts that fail, on LocalCluster with real stores: they change nothing, and every way on is still there."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from faults.forks import fork
from faults.weak import RAISED, Weak, dies, raises

from states.sql import AppendState, RowUpdater
from states.sql.store import close_stores
from trident_py import LocalCluster, TopologyError, TridentTopology
from trident_py.errors import LineageError
from trident_py.testing import FixedBatchSpout

ROWS = [(f"w{n}",) for n in range(40)]
STATES = ("first", "second")


def append(folder: Path, name: str) -> AppendState:
    return AppendState(f"sqlite:///{folder}/{name}.db", name, ["word string"])


def run(folder: Path, rows: list[tuple], at: str = "", how: str = "raises", **conf: Any) -> None:
    """Each of these rows is a batch; the second state may fail. ``conf`` with _ for each dot."""
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout("word string", 1, *rows))
    for name in STATES:
        factory = append(folder, name)
        fails = dies(at) if how == "dies" else raises(at)
        weak = Weak(factory, fails) if name == "second" else factory
        stream.partitionPersist(weak, "word", RowUpdater())
    with LocalCluster(str(folder / "checkpoints")) as cluster:
        settings = {key.replace("_", "."): value for key, value in conf.items()}
        cluster.submitTopology("t", settings, topology.build()).awaitTermination(60)


def stored(folder: Path) -> list[Counter]:
    return [Counter(append(folder, name).stored()) for name in STATES]


def in_child(work: Callable[[], None]) -> int:
    """The signal that ended a process that did the work, 0 if none."""
    process = fork(work)
    process.start()
    process.join()
    return -process.exitcode


POINTS = ["remembered", "open", "opened", "prepare"]


@pytest.mark.parametrize("how", ["raises", "dies"])
@pytest.mark.parametrize("at", POINTS)
class TestAfterALostCheckpoint:
    """The first start fails for another reason, told how to go on or not. Whatever is chosen then, is exact."""

    @pytest.fixture
    def lost(self, tmp_path: Path) -> Path:
        run(tmp_path, ROWS[:3])
        (tmp_path / "checkpoints").rename(tmp_path / "old")
        return tmp_path

    def fails(self, folder: Path, at: str, how: str, **conf: Any) -> None:
        failing = partial(run, folder, ROWS[:5], at, how, **conf)
        if how == "dies":
            assert in_child(failing) == signal.SIGKILL
        else:
            with pytest.raises(TopologyError, match=RAISED):
                failing()
        assert stored(folder) == [Counter(ROWS[:3])] * 2

    def test_it_goes_on_behind_the_store(self, lost: Path, at: str, how: str) -> None:
        for _ in range(2):
            self.fails(lost, at, how, topology_txid_base=3)
        run(lost, ROWS[:5], topology_txid_base=3)
        assert stored(lost) == [Counter(ROWS[:5])] * 2
        run(lost, ROWS[:6])  # from now on without the setting
        assert stored(lost) == [Counter(ROWS[:6])] * 2

    def test_the_old_checkpoint_goes_on_if_it_is_found_after_all(self, lost: Path, at: str, how: str) -> None:
        self.fails(lost, at, how, topology_txid_base=3)
        shutil.rmtree(lost / "checkpoints")
        (lost / "old").rename(lost / "checkpoints")
        if at == "prepare":  # the first state's first batch was about to begin: its store is the new one's
            with pytest.raises(TopologyError, match="written under another checkpoint"):
                run(lost, ROWS[:5])
            assert stored(lost) == [Counter(ROWS[:3])] * 2
            return
        run(lost, ROWS[:5])
        assert stored(lost) == [Counter(ROWS[:5])] * 2

    def test_the_lineage_is_abandoned(self, lost: Path, at: str, how: str) -> None:
        with pytest.raises(TopologyError, match="remembers batch 3") as told:
            run(lost, ROWS[:5])
        lineage = str(told.value).split('"topology.lineage.abandon"] = \'')[1].split("'")[0]
        self.fails(lost, at, how, topology_lineage_abandon=lineage)
        run(lost, ROWS[:2], topology_lineage_abandon=lineage)
        assert stored(lost) == [Counter(ROWS[:3]) + Counter(ROWS[:2])] * 2


def test_a_store_restored_from_a_backup_is_refused_until_told(tmp_path: Path) -> None:
    run(tmp_path, ROWS[:2])
    close_stores()  # the last connection writes all of it into the file
    shutil.copy(tmp_path / "second.db", tmp_path / "backup.db")
    run(tmp_path, ROWS[:5])
    close_stores()
    shutil.copy(tmp_path / "backup.db", tmp_path / "second.db")
    with pytest.raises(TopologyError, match=r"state 'second' .* has the batches up to 2, .* batch 5") as told:
        run(tmp_path, ROWS[:7])
    assert isinstance(told.value.__cause__, LineageError)
    run(tmp_path, ROWS[:7], topology_lineage_accept="second@2:5")
    assert stored(tmp_path) == [Counter(ROWS[:7]), Counter(ROWS[:2] + ROWS[5:7])]


@pytest.mark.parametrize("name", ["t", "renamed"])
def test_another_spout_class_or_topology_name_is_refused(tmp_path: Path, name: str) -> None:
    class Other(FixedBatchSpout):
        pass

    run(tmp_path, ROWS[:3])
    topology = TridentTopology()
    spout = Other("word string", 1, *ROWS[:5]) if name == "t" else FixedBatchSpout("word string", 1, *ROWS[:5])
    topology.newStream("s", spout).partitionPersist(append(tmp_path, "first"), "word", RowUpdater())
    if name != "t":
        (tmp_path / "checkpoints/t").rename(tmp_path / "checkpoints" / name)
    words = "as a spout of class FixedBatchSpout left it" if name == "t" else "written by topology 't'"
    with LocalCluster(str(tmp_path / "checkpoints")) as cluster, pytest.raises(TopologyError, match=words):
        cluster.submitTopology(name, {}, topology.build()).awaitTermination(60)
    assert stored(tmp_path) == [Counter(ROWS[:3])] * 2
