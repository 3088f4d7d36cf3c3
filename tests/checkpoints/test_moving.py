"""A run moves between LocalCluster and Spark by being started there: exact, whatever was killed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from remotes import Remote

from trident_py import Config, LocalCluster, TopologyError
from trident_py.checkpoints.append_log import AppendLogStore
from trident_py.checkpoints.hash_seed import order_of_workers
from trident_py.checkpoints.metadata_store import LOG
from trident_py.model.context import with_context

from .both import NAME, Order, build, exact, obey

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


def order_in(folder: Path, **more: Any) -> Order:
    return Order(str(folder), f"sqlite:///{folder}/store.db", "local", 9, **more)


def run(cluster: Any, order: Order, last: int, ends: Ends | None = None, conf: dict[str, Any] | None = None) -> None:
    conf = conf or {} if ends is None else with_context(conf or {}, watcher=ends)
    running = cluster.submitTopology(NAME, conf, build(order.url, order.folder, last))
    if ends is None:
        assert running.awaitTermination(200)
        return
    with pytest.raises(TopologyError, match="asked by the test"):
        running.awaitTermination(200)


AS_JOBS, TOGETHER = {}, {Config.TOPOLOGY_INLINE_MAX_TUPLES: 1000, Config.TOPOLOGY_INLINE_FOLLOW_MILLIS: 60_000}


@pytest.mark.spark
@pytest.mark.parametrize("conf", [AS_JOBS, TOGETHER], ids=["jobs", "in the driver"])
def test_a_run_goes_from_one_cluster_to_the_other_in_the_middle_of_a_batch(
    spark_cluster: Callable[..., Any], tmp_path: Path, conf: dict[str, Any]
) -> None:
    goes_on(spark_cluster, order_in(tmp_path), conf)


@pytest.mark.spark
@pytest.mark.whole("test_a_run_goes_from_one_cluster_to_the_other_in_the_middle_of_a_batch")
def test_a_run_in_hdfs_or_s3_goes_from_one_cluster_to_the_other_in_the_middle_of_a_batch(
    remote: Remote, spark_cluster: Callable[..., Any], tmp_path: Path
) -> None:
    goes_on(spark_cluster, order_in(tmp_path, uri=remote.uri, storage=remote.storage), TOGETHER)


def goes_on(spark_cluster: Callable[..., Any], order: Order, conf: dict[str, Any]) -> None:
    assert obey(replace(order, step="committed", name="drift", partition=0, txid=2)) == KILLED
    with spark_cluster(order.checkpoints) as cluster:
        run(cluster, order, 9, Ends("decided", "", 4), conf)
    with LocalCluster(order.checkpoints, order.storage) as cluster:
        run(cluster, order, 5)
    exact(order.url, 5)
    with spark_cluster(order.checkpoints) as cluster:
        run(cluster, order, 6, conf=conf)
    exact(order.url, 6)


LEGS = [
    ("local", "committed", "drift", 0, 2), ("spark", "processed", "", -1, 3), ("local", "recorded", "", -1, 4),
    ("spark", "committed", "sums", 1, 5), ("local", "decided", "", -1, 6), ("spark", "decided", "", -1, 7),
    ("local", "over", "", -1, 8), ("spark", "over", "", -1, 9), ("local", "published", "seen", -1, 10),
]  # fmt: skip


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.whole("test_a_run_goes_from_one_cluster_to_the_other_in_the_middle_of_a_batch")
def test_a_run_that_is_killed_on_each_cluster_and_moved_every_time_is_exact(database: str, tmp_path: Path) -> None:
    is_killed_on_each(Order(str(tmp_path), database, "", 12))


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.whole("test_a_run_goes_from_one_cluster_to_the_other_in_the_middle_of_a_batch")
def test_a_run_in_hdfs_or_s3_that_is_killed_on_each_cluster_and_moved_every_time_is_exact(
    remote: Remote, tmp_path: Path
) -> None:
    more = {"uri": remote.uri, "storage": remote.storage, "settings": remote.of_session}
    is_killed_on_each(replace(order_in(tmp_path, **more), last=12))


def is_killed_on_each(order: Order) -> None:
    for cluster, step, name, partition, txid in LEGS:
        (Path(order.folder) / "hit").unlink(missing_ok=True)
        leg = replace(order, cluster=cluster, step=step, name=name, partition=partition, txid=txid)
        assert obey(leg) == KILLED, leg
    assert obey(replace(order, cluster="spark")) == 0
    exact(order.url, 12)


@pytest.mark.spark
def test_a_batch_that_spark_began_was_begun_under_the_hash_seed_of_its_workers(
    spark_cluster: Callable[..., Any], tmp_path: Path
) -> None:
    order = order_in(tmp_path)
    with spark_cluster(order.checkpoints) as cluster:
        run(cluster, order, 9, Ends("recorded", "", 3))
    (folder,) = (Path(order.checkpoints) / NAME).iterdir()
    assert AppendLogStore(folder).get(LOG, 0)["begun"]["order"] == order_of_workers()
    assert order_of_workers()["seed"] == "0"
