"""A run moves between LocalCluster and Spark with its checkpoint: exact, whatever was killed, and never in both."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from trident_py import Config, LocalCluster, TopologyError, TridentTopology
from trident_py.checkpoints import converting
from trident_py.checkpoints.converting import convert
from trident_py.checkpoints.following import Followed, JournalFollowingLog
from trident_py.checkpoints.kinds import LOCAL, SPARK, kind_of
from trident_py.checkpoints.orders import ORDER, order_of_workers
from trident_py.checkpoints.sparklogs import last_batch, metadata_of, write_logs
from trident_py.cli import trident
from trident_py.context import with_context
from trident_py.errors import LineageError, ZombieError
from trident_py.operations.builtin import Count
from trident_py.run.deciding import DECIDED
from trident_py.run.program import Program, compile_plan
from trident_py.spark.checkpoint import Checkpoint, LocalFolder
from trident_py.spouts.journal import JOURNAL, JournalMetadataStore
from trident_py.spouts.metadata import FileMetadataStore
from trident_py.testing import FixedBatchSpout, MemoryMapState

from .both import NAME, Order, build, checkpoints, exact, obey
from .dying import killed_before

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


def component(folder: Path) -> Path:
    (found,) = (checkpoints(folder) / NAME).iterdir()
    return found


def program(folder: Path) -> Program:
    plan = build(url_in(folder), folder, 9).plan
    (found,) = compile_plan(plan, with_context({}, topology=NAME))
    return found


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


# -- exact ------------------------------------------------------------------------------------------------------------


AS_JOBS, FOLLOWING = {}, {Config.TOPOLOGY_INLINE_MAX_TUPLES: 1000, Config.TOPOLOGY_INLINE_FOLLOW_MILLIS: 60_000}


@pytest.mark.spark
@pytest.mark.parametrize("conf", [AS_JOBS, FOLLOWING], ids=["jobs", "following"])
def test_a_run_goes_from_one_cluster_to_the_other_in_the_middle_of_a_batch(
    spark_cluster: Callable[..., Any], tmp_path: Path, conf: dict[str, Any]
) -> None:
    """With batches that follow, Spark's logs know of the one that was killed first, and the journal beside them of the
    one that ended the run."""
    url = url_in(tmp_path)
    assert obey(Order(str(tmp_path), url, "local", 9, "committed", "drift", 0, 2)) == KILLED
    convert(checkpoints(tmp_path) / NAME, SPARK)
    with spark_cluster(checkpoints(tmp_path)) as cluster:
        run(cluster, url, tmp_path, 9, Ends("decided", "", 4), conf)
    assert (last_batch(component(tmp_path)) == 2) is (conf == AS_JOBS)
    convert(checkpoints(tmp_path) / NAME, LOCAL)
    local(tmp_path, 5)
    exact(url, 5)
    convert(checkpoints(tmp_path) / NAME, SPARK)
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
        if checkpoints(tmp_path).exists():
            convert(checkpoints(tmp_path) / NAME, cluster)
        (tmp_path / "hit").unlink(missing_ok=True)
        assert obey(Order(str(tmp_path), database, cluster, 12, *point)) == KILLED, point  # type: ignore[arg-type]
    convert(checkpoints(tmp_path) / NAME, SPARK)
    assert obey(Order(str(tmp_path), database, SPARK, 12)) == 0
    exact(database, 12)


def test_batches_that_followed_others_move_with_them(tmp_path: Path) -> None:
    """A micro-batch that Spark has not committed: its first batch is 3, which 4 and 5 follow."""
    local(tmp_path, 9, Ends("recorded", "", 5))
    before = converting._read(component(tmp_path))
    assert before.metadata is not None and before.begun is not None
    convert(checkpoints(tmp_path) / NAME, SPARK)
    folder = component(tmp_path)
    shutil.rmtree(folder / "offsets")
    shutil.rmtree(folder / "commits")
    write_logs(folder, base=0, txid=2, metadata={}, begun={"any": 1})
    log = JournalFollowingLog(folder)
    log.over(Followed(2, 3, 4, before.metadata, None))
    log.begun(Followed(2, 3, 4, before.metadata, before.begun))
    log.close()
    assert converting._read(folder) == before
    convert(checkpoints(tmp_path) / NAME, LOCAL)
    assert converting._read(folder) == before
    local(tmp_path, 9)
    exact(url_in(tmp_path), 9)


def test_a_driver_that_has_a_batch_in_mind_writes_nothing_into_a_converted_checkpoint(tmp_path: Path) -> None:
    local(tmp_path, 2)
    convert(checkpoints(tmp_path) / NAME, SPARK)
    older = JournalFollowingLog(component(tmp_path))
    older.over(Followed(1, 2, 2, {}, None))
    convert(checkpoints(tmp_path) / NAME, LOCAL)
    with pytest.raises(ZombieError, match="was converted"):
        older.begun(Followed(1, 2, 2, {}, {}))
    assert kind_of(component(tmp_path)) == LOCAL


PLACES = [("recorded", "", 3), ("committed", "drift", 3), ("decided", "", 3), ("publish", "sums", 3), ("over", "", 3)]


@pytest.mark.parametrize(("step", "name", "txid"), PLACES)
def test_there_and_back_again_is_the_same_checkpoint(tmp_path: Path, step: str, name: str, txid: int) -> None:
    local(tmp_path, 9, Ends(step, name, txid))
    before = converting._read(component(tmp_path))
    assert before.begun is not None
    lines = convert(checkpoints(tmp_path) / NAME, SPARK)
    assert lines == [f"{component(tmp_path)} is one of Spark now: batch 2 is over, batch 3 has begun"]
    assert converting._read(component(tmp_path)) == before
    convert(checkpoints(tmp_path) / NAME, LOCAL)
    assert converting._read(component(tmp_path)) == before
    assert (DECIDED in before.others and 3 in before.others[DECIDED]) == (step in ("decided", "publish", "over"))
    local(tmp_path, 4)
    exact(url_in(tmp_path), 4)


def test_what_spark_finds_is_what_it_would_have_written(tmp_path: Path) -> None:
    local(tmp_path, 9, Ends("recorded", "", 3))
    content = converting._read(component(tmp_path))
    convert(checkpoints(tmp_path) / NAME, SPARK)
    folder = component(tmp_path)
    assert sorted(file.name for file in (folder / "offsets").iterdir()) == ["0", "1", "2"]
    assert [file.name for file in (folder / "commits").iterdir()] == ["1"]
    offsets = [json.loads((folder / "offsets" / str(n)).read_text().splitlines()[2]) for n in (1, 2)]
    assert [(offset["txid"], metadata_of(offset)) for offset in offsets] == [(2, content.metadata), (3, content.begun)]
    store = FileMetadataStore(folder / "trident")
    assert store.get("component", 0) == content.record
    standing = Checkpoint(LocalFolder(folder), store, "", {}, JournalFollowingLog(folder)).standing(program(tmp_path))
    store.close()
    assert (standing.committed, standing.begun, standing.lineage) == (2, True, content.record["lineage"])


# -- never in both ----------------------------------------------------------------------------------------------------


def test_a_start_on_the_other_clusters_checkpoint_is_refused_with_the_command(tmp_path: Path) -> None:
    local(tmp_path, 2)
    folder = component(tmp_path)
    command = rf"`trident checkpoint convert {checkpoints(tmp_path)}/{NAME} --to"
    elsewhere = folder / "elsewhere"
    spark = Checkpoint(LocalFolder(folder), FileMetadataStore(elsewhere), "", {}, JournalFollowingLog(elsewhere))
    with pytest.raises(LineageError, match=rf"written by a run on LocalCluster \(--local\).*{command} spark`"):
        spark.standing(program(tmp_path))
    spark.close()
    shutil.rmtree(elsewhere)
    convert(checkpoints(tmp_path) / NAME, SPARK)
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    with pytest.raises(LineageError, match=rf"written by a run on Spark.*{command} local`"):
        local(tmp_path, 3)
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before


WHOLE = pytest.mark.whole


@pytest.mark.parametrize(
    ("to", "every"), [(SPARK, 12), (LOCAL, 3), *(pytest.param(to, 1, marks=WHOLE) for to in (SPARK, LOCAL))]
)
def test_a_conversion_that_is_killed_anywhere_leaves_one_checkpoint_and_is_repeated(
    tmp_path: Path, to: str, every: int
) -> None:
    """Before any call to the disk, or ``every`` so many-th, each time in a copy."""
    local(tmp_path / "first", 9, Ends("decided", "", 3))
    if to == LOCAL:
        convert(checkpoints(tmp_path / "first") / NAME, SPARK)
    before = converting._read(component(tmp_path / "first"))
    kinds, number = [], 1 - every
    while kinds[-1:] != ["done"]:
        number += every
        copy = shutil.copytree(tmp_path / "first", tmp_path / "copy")
        ended = killed_before(number, lambda: convert(checkpoints(tmp_path / "copy") / NAME, to))
        folder = component(copy)
        kinds.append("done" if ended else kind_of(folder))
        assert converting._read(folder) == before
        convert(checkpoints(copy) / NAME, to)
        assert (kind_of(folder), converting._read(folder)) == (to, before)
        left = {LOCAL: {JOURNAL}, SPARK: {"metadata", "offsets", "commits", "trident"}}[to]
        assert {file.name for file in folder.iterdir()} - {"running", "lock"} == left
        shutil.rmtree(copy)
    other = LOCAL if to == SPARK else SPARK
    assert kinds == sorted(kinds, key=[other, to, "done"].index)
    assert {other, "done"} <= set(kinds)


def test_a_driver_that_wakes_up_after_the_conversion_writes_nothing(tmp_path: Path) -> None:
    """It ran on another machine, where no lock is seen."""
    local(tmp_path, 2)
    older = JournalMetadataStore(component(tmp_path))
    older.entries()
    convert(checkpoints(tmp_path) / NAME, SPARK)
    with pytest.raises(ZombieError, match="was converted"):
        older.put("begun", 3, {})
    assert kind_of(component(tmp_path)) == SPARK
    store = FileMetadataStore(component(tmp_path) / "trident")
    spark = Checkpoint(LocalFolder(component(tmp_path)), store, "", {}, JournalFollowingLog(component(tmp_path)))
    spark.standing(program(tmp_path))
    spark.take()
    spark.close()
    convert(checkpoints(tmp_path) / NAME, LOCAL)
    with pytest.raises(ZombieError, match="another driver runs on the checkpoint"):
        spark.check()


# -- what is refused --------------------------------------------------------------------------------------------------


def test_the_checkpoint_of_a_running_driver_is_refused(tmp_path: Path) -> None:
    topology = TridentTopology()
    spout = FixedBatchSpout("v", 1, (1,)).setCycle(True)
    topology.newStream("s", spout).persistentAggregate(MemoryMapState.Factory(), Count(), "n")
    with LocalCluster(str(tmp_path)) as cluster:
        running = cluster.submitTopology("runs", {}, topology.build())
        assert running.opened(["s"], 60)
        with pytest.raises(LineageError, match=r"a driver runs on the checkpoint .*runs/s: stop it first"):
            convert(tmp_path / "runs", SPARK)
        assert running.isActive
    convert(tmp_path / "runs", SPARK)


def test_a_sparkspout_stays_on_spark(tmp_path: Path) -> None:
    local(tmp_path, 2)
    convert(checkpoints(tmp_path) / NAME, SPARK)
    folder = component(tmp_path)
    with (folder / "offsets" / "1").open("a") as file:
        file.write('\n{"rate":5}')
    with pytest.raises(LineageError, match="reads 2 sources, so it has a SparkSpout: that runs on Spark only"):
        convert(checkpoints(tmp_path) / NAME, LOCAL)
    assert kind_of(folder) == SPARK


def test_the_empty_batch_that_spark_begins_with_moves_once_it_is_committed(tmp_path: Path) -> None:
    local(tmp_path, 9, Ends("recorded", "", 1))
    convert(checkpoints(tmp_path) / NAME, SPARK)
    folder = component(tmp_path)
    write_logs(folder, base=-1, txid=-1, metadata={}, begun={})  # the offset of batch 0 is that of the start
    with pytest.raises(LineageError, match="its first batch is an empty one, and has only begun"):
        convert(checkpoints(tmp_path) / NAME, LOCAL)
    assert kind_of(folder) == SPARK
    write_logs(folder, base=-1, txid=0, metadata={}, begun=None)
    convert(checkpoints(tmp_path) / NAME, LOCAL)
    content = converting._read(folder)
    assert (content.record["base"], content.txid, content.metadata, content.begun) == (0, 1, {}, None)


def test_who_began_a_batch_under_another_hash_seed_is_known_on_spark_too(tmp_path: Path) -> None:
    local(tmp_path, 9, Ends("recorded", "", 3))
    folder, other = component(tmp_path), {"order": "another", "seed": "7"}
    store = JournalMetadataStore(folder)
    store.put(ORDER, 0, other)
    store.close()
    convert(checkpoints(tmp_path) / NAME, SPARK)
    assert FileMetadataStore(folder / "trident").get(ORDER, 3) == other
    convert(checkpoints(tmp_path) / NAME, LOCAL)
    assert JournalMetadataStore(folder).get(ORDER, 0) == other


def test_a_batch_that_spark_began_was_begun_under_the_hash_seed_of_its_workers(tmp_path: Path) -> None:
    local(tmp_path, 9, Ends("recorded", "", 3))
    convert(checkpoints(tmp_path) / NAME, SPARK)
    (component(tmp_path) / "trident" / f"{ORDER}.json").unlink()
    convert(checkpoints(tmp_path) / NAME, LOCAL)
    assert JournalMetadataStore(component(tmp_path)).get(ORDER, 0) == order_of_workers()
    if os.environ.get("PYTHONHASHSEED") == "0":
        assert order_of_workers()["order"] == f"{hash('trident'):x}"


def test_the_command_says_what_it_has_done_and_what_it_cannot(tmp_path: Path) -> None:
    def said(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(trident, ["checkpoint", "convert", *arguments])
        return result.exit_code, result.output

    local(tmp_path, 2)
    folder = checkpoints(tmp_path)
    code, text = said(str(folder / NAME), "--to", "spark")
    assert code == 0
    assert "is one of Spark now: batch 2 is over\n" in text
    assert "values of states in memory are not in a checkpoint" in text
    assert "was one of Spark already" in said(str(folder / NAME), "--to", "spark")[1]
    nothing = f"there is no checkpoint of a topology in {folder}; name the folder of one topology: {folder}/{NAME}"
    assert said(str(folder), "--to", "local") == (1, f"Error: {nothing}\n")
    assert "is not on this machine" in said("hdfs://host/x", "--to", "local")[1]
    assert said(str(folder / NAME))[0] == 2
