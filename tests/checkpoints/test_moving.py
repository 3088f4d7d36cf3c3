"""A run moves between LocalCluster and Spark by being started there: exact, whatever was killed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from trident_py import Config, LocalCluster, TopologyError
from trident_py.checkpoints.append_log import AppendLogStore
from trident_py.checkpoints.hash_seed import order_of_workers
from trident_py.checkpoints.metadata_store import LOG
from trident_py.model.context import with_context

from .both import NAME, Order, build, checkpoints, exact, obey

KILLED = -signal.SIGKILL


@dataclass(frozen=True)
class Ends:
    """A watcher: an error ends the run at a step of a batch, in the driver or in a task."""

    step: str
    name: str
    txid: int

    def at(self, step: str, name: str, partition: int, txid: int) -> None:
        if (step, name, txid) == (self.step, self.name, self.txid):
            raise RuntimeError("asked by the test")


def url_in(folder: Path) -> str:
    return f"sqlite:///{folder}/store.db"


def run(
    cluster: Any, url: str, folder: Path, last: int, ends: Ends | None = None, conf: dict[str, Any] | None = None
) -> None:
    conf = conf or {} if ends is None else with_context(conf or {}, watcher=ends)
    running = cluster.submitTopology(NAME, conf, build(url, folder, last))
    if ends is None:
        assert running.awaitTermination(200)
        return
    with pytest.raises(TopologyError, match="asked by the test"):
        running.awaitTermination(200)


def local(folder: Path, last: int, ends: Ends | None = None) -> None:
    with LocalCluster(str(checkpoints(folder))) as cluster:
        run(cluster, url_in(folder), folder, last, ends)


AS_JOBS, TOGETHER = {}, {Config.TOPOLOGY_INLINE_MAX_TUPLES: 1000, Config.TOPOLOGY_INLINE_FOLLOW_MILLIS: 60_000}


@pytest.mark.spark
@pytest.mark.parametrize("conf", [AS_JOBS, TOGETHER], ids=["jobs", "in the driver"])
def test_a_run_goes_from_one_cluster_to_the_other_in_the_middle_of_a_batch(
    spark_cluster: Callable[..., Any], tmp_path: Path, conf: dict[str, Any]
) -> None:
    url = url_in(tmp_path)
    assert obey(Order(str(tmp_path), url, "local", 9, "committed", "drift", 0, 2)) == KILLED
    with spark_cluster(checkpoints(tmp_path)) as cluster:
        run(cluster, url, tmp_path, 9, Ends("decided", "", 4), conf)
    local(tmp_path, 5)
    exact(url, 5)
    with spark_cluster(checkpoints(tmp_path)) as cluster:
        run(cluster, url, tmp_path, 6, conf=conf)
    exact(url, 6)


LEGS = [
    ("local", "committed", "drift", 0, 2), ("spark", "processed", "", -1, 3), ("local", "recorded", "", -1, 4),
    ("spark", "committed", "sums", 1, 5), ("local", "decided", "", -1, 6), ("spark", "decided", "", -1, 7),
    ("local", "over", "", -1, 8), ("spark", "over", "", -1, 9), ("local", "published", "seen", -1, 10),
]  # fmt: skip


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.whole("test_a_run_goes_from_one_cluster_to_the_other_in_the_middle_of_a_batch")
def test_a_run_that_is_killed_on_each_cluster_and_moved_every_time_is_exact(database: str, tmp_path: Path) -> None:
    for cluster, *point in LEGS:
        (tmp_path / "hit").unlink(missing_ok=True)
        assert obey(Order(str(tmp_path), database, cluster, 12, *point)) == KILLED, point  # type: ignore[arg-type]
    assert obey(Order(str(tmp_path), database, "spark", 12)) == 0
    exact(database, 12)


@pytest.mark.spark
def test_a_batch_that_spark_began_was_begun_under_the_hash_seed_of_its_workers(
    spark_cluster: Callable[..., Any], tmp_path: Path
) -> None:
    with spark_cluster(checkpoints(tmp_path)) as cluster:
        run(cluster, url_in(tmp_path), tmp_path, 9, Ends("recorded", "", 3))
    (folder,) = (checkpoints(tmp_path) / NAME).iterdir()
    assert AppendLogStore(folder).get(LOG, 0)["begun"]["order"] == order_of_workers()
    assert order_of_workers()["seed"] == "0"
