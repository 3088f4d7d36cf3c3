"""A server that is killed, and comes back with an older backup, under a running driver: it is told, nothing is lost."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import databases
import pytest

from trident_py import LocalCluster, TopologyError
from trident_py.errors import StateError

from .test_recovery import CLUSTERS, Make, world
from .weak import RAISED, raises
from .worlds import World

pytestmark = pytest.mark.dear

__all__ = ["world"]  # the fixture
WORDS = "its last complete batch is 2, and this driver has completed batch 5"


class ColdBackup:
    """Called before each `prepare` of a state: copies the server's folder before one batch, and puts it back before
    another. The driver waits meanwhile, as it does in a fail-over."""

    def __init__(self, server: Any, folder: Path, copied: int, back: int) -> None:
        self.server, self.copy, self.copied, self.back = server, folder / "cold", copied, back
        self.batches = 0

    def __call__(self, call: str) -> None:
        if call != "prepare":
            return
        self.batches += 1
        if self.batches == self.copied:
            self.server.stop()
            _copy(self.data, self.copy)
            self.server.start()
        elif self.batches == self.back:
            self.server.kill()
            _copy(self.copy, self.data)
            self.server.start()

    @property
    def data(self) -> Path:
        return Path(self.server.folder) / "data"


def _copy(source: Path, target: Path) -> None:
    """With owners and rights."""
    subprocess.run(["rm", "-rf", str(target)], check=True)
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


@pytest.mark.parametrize("kind", list(databases.OWN))
def test_a_server_restarted_on_a_cold_backup(own_server: Callable[..., Any], tmp_path: Path, kind: str) -> None:
    server = own_server(kind)
    made = World(server.create_database(), tmp_path, LocalCluster, set())
    weak = {made.states[0]: ColdBackup(server, tmp_path, 3, 6)}
    with pytest.raises(TopologyError, match=WORDS) as told:
        made.start(8, weak=weak)
    assert isinstance(told.value.__cause__, StateError)
    made.holds(1, 2)
    made.refused("has the batches up to 2, the checkpoint .* has committed batch 5", 8)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_backup_restored_under_a_driver_of_each_cluster(world: Make, cluster: str) -> None:
    made = world(cluster)
    kept: list[Path] = []

    def restored(call: str) -> None:
        if call == "prepare":
            kept.append(made.dump())
            if len(kept) == 6:
                made.restore(kept[2])

    with pytest.raises(TopologyError, match=WORDS):
        made.start(8, weak={made.states[0]: restored})
    made.holds(1, 2)
    made.restore(kept[5])
    made.start(8)
    made.holds(*range(1, 9))


@pytest.mark.parametrize("cluster", ["local"])
def test_a_log_that_lost_its_end_is_told_by_the_batch_that_the_store_has_begun(world: Make, cluster: str) -> None:
    """The store has batch 3, and has begun batch 4; the log has begun batch 3. It was told by no start, and each ended
    in batch 3 as if another driver were there."""
    made = world(cluster)
    publishes: list[Path] = []

    def copied(call: str) -> None:
        if call == "publish":
            publishes.append(made.copy(f"log-{len(publishes)}"))

    only = ("rows", "opaque")
    made.start(3, only=only, weak={"rows": copied})
    with pytest.raises(TopologyError, match=RAISED):
        made.start(4, only=only, weak={"opaque": raises("prepare")})
    newest = made.copy("newest")
    made.put_back(publishes[2])
    made.refused("has begun batch 4; the checkpoint .* has committed batch 2", 5, only=only)
    made.put_back(newest)
    made.start(5, only=only)
    made.holds(1, 2, 3, 4, 5, only=only)
