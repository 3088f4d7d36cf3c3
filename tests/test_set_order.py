"""The order of sets is the same in every process that emits a batch again."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trident_py import TridentTopology
from trident_py.testing import FixedBatchSpout, collect

ROOT = Path(__file__).parent.parent
WORDS = "to be or not to be that is the question whether tis nobler in the mind to suffer"

LOCAL = f"""
import sys
from states.rows import RowUpdater
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.testing import Crashing, FixedBatchSpout, MemoryMapState, collect
from trident_py.operations.builtin import Count

def build(made, kill=()):
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout("s", 1, ({WORDS!r},)))
    words = made(stream).shuffle().each([], lambda: [(0,)], "x").parallelismHint(4)
    state = Crashing(MemoryMapState.Factory(), "commit", set(kill), "kill")
    collect(words, "out").groupBy("w").persistentAggregate(state, [], Count(), "n")
    return topology.build()

MADE = {{
    "each": lambda stream: stream.each("s", lambda s: set(s.split()), "w").project("w"),
    "flatMap": lambda stream: stream.flatMap(lambda t: {{(w,) for w in t[0].split()}}, "w"),
    "list": lambda stream: stream.each("s", lambda s: list(set(s.split())), "w").project("w"),
    "sorted": lambda stream: stream.each("s", lambda s: sorted(set(s.split())), "w").project("w"),
}}

def lines(folder, kill=(), made="list"):
    from states.sql import AppendState
    topology = TridentTopology()
    store = AppendState(f"sqlite:///{{folder}}.db", "lines", Fields("w string"))
    state = Crashing(store, "afterCommit", set(kill), "kill")
    words = MADE[made](topology.newStream("s", FixedBatchSpout("s", 1, ({WORDS!r},))))
    words.shuffle().partitionPersist(state, "w", RowUpdater()).parallelismHint(4)
    return topology.build()

def append(folder, kill=(), made="list", conf=None):
    with LocalCluster(folder) as cluster:
        assert cluster.submitTopology("lines", conf, lines(folder, kill, made)).awaitTermination(60)

def run(made, folder=None, kill=()):
    with LocalCluster(folder) as cluster:
        running = cluster.submitTopology("order", None, build(MADE[made], kill))
        assert running.awaitTermination(60)
        return running
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "order.py").write_text(LOCAL)
    return tmp_path


def process(folder: Path, seed: str, code: str, check: bool = True) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT}:{folder}"}
    command = [sys.executable, "-c", f"from order import *\n{code}"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=check)


@pytest.mark.parametrize("made", ["each", pytest.param("flatMap", marks=pytest.mark.whole)])
def test_a_set_that_a_function_returns_is_emitted_in_one_order_by_every_process(folder: Path, made: str) -> None:
    code = f"print(run({made!r}).collected('out'))"
    found = {process(folder, seed, code).stdout for seed in ("0", "1", "2", "random")}
    assert len(found) == 1 and "nobler" in found.pop()


def test_a_batch_begun_under_another_hash_seed_is_told(folder: Path) -> None:
    dead = process(folder, "1", "run('list', 'kept', [(1, 0)])", check=False)
    assert dead.returncode == -9, dead.stderr
    code = "print([e for e in run('list', 'kept').events if e[0] == 'reported'])"
    assert "a process with another hash seed may have begun batch 1" in process(folder, "2", code).stdout
    process(folder, "3", "run('list', 'other')")
    assert "hash seed" not in process(folder, "4", code.replace("kept", "other")).stdout


def stored(folder: Path) -> list[str]:
    with sqlite3.connect(folder / "kept.db") as store:
        return sorted(word for (word,) in store.execute("SELECT w FROM lines"))


@pytest.mark.parametrize("seed", ["1", pytest.param("random", marks=pytest.mark.whole)])
def test_a_batch_half_written_under_another_hash_seed_is_refused(folder: Path, seed: str) -> None:
    dead = process(folder, seed, "append('kept', [(1, 0)])", check=False)
    assert dead.returncode == -9 and 0 < len(stored(folder)) < len(set(WORDS.split())), dead.stderr
    half = stored(folder)
    refused = process(folder, "2", "append('kept')", check=False).stderr
    assert "LineageError: state 'lines'" in refused and "depends on the order of a set: list(set(s.split()))" in refused
    assert ("start once with PYTHONHASHSEED=1" in refused) == (seed == "1") and stored(folder) == half
    if seed == "1":
        process(folder, "1", "append('kept')")
        assert stored(folder) == sorted(set(WORDS.split()))
    else:
        process(folder, "2", "append('kept', conf={'topology.lineage.accept': 'lines@1:0'})")


def test_a_batch_whose_rows_follow_no_hash_seed_goes_on_under_another(folder: Path) -> None:
    dead = process(folder, "1", "append('kept', [(1, 0)], 'sorted')", check=False)
    assert dead.returncode == -9 and 0 < len(stored(folder)) < len(set(WORDS.split())), dead.stderr
    went_on = process(folder, "2", "append('kept', made='sorted')", check=False)
    assert went_on.returncode == 0, went_on.stderr
    assert stored(folder) == sorted(set(WORDS.split()))


@pytest.mark.parametrize("command", [["-m", "trident_py"], ["-c", "from trident_py.cli import main; main()"]])
def test_local_runs_of_the_command_line_have_one_order_of_sets(folder: Path, command: list[str]) -> None:
    (folder / "shown.py").write_text("from order import *\ndef topology():\n"
        "    print('order', hash('a'), list(set('abcdefgh')))\n    return build(MADE['list'])\n")  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    environment["PYTHONPATH"] = f"{ROOT}:{folder}"
    found = set()
    for _ in range(2):
        ran = subprocess.run([sys.executable, *command, "run", "shown:topology", "--local"],
                             cwd=folder, env=environment, capture_output=True, text=True, check=True)  # fmt: skip
        found.add(next(line for line in ran.stdout.splitlines() if line.startswith("order")))
    assert len(found) == 1


@pytest.mark.spark
def test_workers_of_spark_have_one_order_of_sets_whatever_the_drivers_is(spark: Any, spark_cluster: Any) -> None:
    workers, found = spark.sparkContext.environment, []
    before = dict(workers)
    for seed in ("1", "2", "random"):
        workers["PYTHONHASHSEED"] = seed
        topology = TridentTopology()
        stream = topology.newStream("s", FixedBatchSpout("s", 1, (WORDS,)))
        collect(stream.each("s", lambda s: list(set(s.split())), "w").project("w"), "out")
        running = spark_cluster().submitTopology(f"order-{seed}", None, topology.build())
        assert running.awaitTermination(120)
        found.append(running.collected("out"))
        assert workers["PYTHONHASHSEED"] == seed, "a session that was given stays as it was"
        workers.update(before)
    assert found[0] == found[1] == found[2] and len(found[0][1]) > 10
