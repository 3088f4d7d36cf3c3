"""The way of a state's tuples: equal where they are sent alike, another where anything differs that decides it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.engine.program import compile_plan
from trident_py.operations.builtin import Count
from trident_py.spouts import FileSpout
from trident_py.state import BatchParticipant, Location, State, StateFactory, StateUpdater
from trident_py.testing import MemoryMapState

WORD = Fields("word string", "n bigint")


class Modulo:
    def __init__(self, by: int) -> None:
        self.by = by
        self.memory: list[Any] = [object()]

    def chooseTasks(self, taskId: int, values: Any) -> list[int]:
        return [values[1] % self.by]


def modulo(values: Any) -> int:
    return int(values[1])


def keep(values: Any) -> bool:
    return bool(values)


def spout(fields: Fields = WORD) -> FileSpout:
    return FileSpout(["never read.csv"], fields, 3)


def way(route: Callable[[Any], Any], *, hint: int = 2, state: int = 3, name: str = "s", fields: Fields = WORD) -> str:
    topology = TridentTopology()
    stream = topology.newStream(name, spout(fields)).parallelismHint(hint)
    made = route(stream).groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count", stateName="x")
    made.parallelismHint(state)
    (program,) = compile_plan(topology.build().plan, {})
    return program.routes["x"]


def shuffled(stream: Any) -> Any:
    return stream.shuffle().filter("n", keep).parallelismHint(4)


USUAL = way(shuffled)
OTHERS = {
    "another number of spout partitions": way(shuffled, hint=1),
    "another stream": way(shuffled, name="other"),
    "another type": way(shuffled, fields=Fields("word string", "n int")),
    "another number of state partitions": way(shuffled, state=2),
    "another number in between": way(lambda s: s.shuffle().filter("n", keep).parallelismHint(3)),
    "another grouping": way(lambda s: s.localOrShuffle().filter("n", keep).parallelismHint(4)),
    "other fields": way(lambda s: s.partitionBy("n").filter("n", keep).parallelismHint(4)),
    "all fields": way(lambda s: s.partitionBy(["word", "n"]).filter("n", keep).parallelismHint(4)),
    "one more step": way(lambda s: s.filter("n", keep).shuffle().filter("n", keep).parallelismHint(4)),
    "a grouping of one's own": way(lambda s: s.partition(modulo).filter("n", keep).parallelismHint(4)),
    "with an option": way(lambda s: s.partition(Modulo(4)).filter("n", keep).parallelismHint(4)),
    "with another option": way(lambda s: s.partition(Modulo(3)).filter("n", keep).parallelismHint(4)),
    "no grouping": way(lambda s: s.filter("n", keep)),
}


def test_whatever_decides_where_a_tuple_goes_makes_another_way() -> None:
    ways = [USUAL, *OTHERS.values()]
    assert len({each.partition(" ")[0] for each in ways}) == len(ways)
    assert all(len(each) <= 190 for each in ways)


def test_another_version_of_the_hash_makes_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trident_py.engine.program.ROUTING_VERSION", -1)
    assert way(shuffled) != USUAL


def test_the_words_name_spouts_groupings_and_partitions() -> None:
    assert USUAL.partition(" ")[2] == "s x2, shuffle, x4, partitionBy word, x3, state x3"
    long = way(lambda s: s.partitionBy("word").partitionBy("n").partitionBy("word").partitionBy(["n", "word"]))
    assert "..." in long
    assert len(long) <= 190


def test_what_stands_beside_is_no_part_of_the_way() -> None:
    topology = TridentTopology()
    topology.newStream("first", spout()).filter("n", keep)
    stream = topology.newStream("s", spout()).parallelismHint(2)
    stream.each("n", keep)
    made = shuffled(stream).groupBy("word")
    made = made.persistentAggregate(MemoryMapState.Factory(), Count(), "count", stateName="x").parallelismHint(3)
    made.newValuesStream().filter("count", keep)
    assert {"x": USUAL} in [program.routes for program in compile_plan(topology.build().plan, {})]


def test_other_processes_with_other_hash_seeds_find_the_same_way() -> None:
    text = "import test_routing_digest as ways; print([ways.USUAL, *ways.OTHERS.values()])"
    for seed in ("1", "2"):
        path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
        made = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
        assert made.stdout.strip() == str([USUAL, *OTHERS.values()])


# -- what participants and tasks are told, on both clusters


class Told(State):
    def __init__(self, folder: str, way: str) -> None:
        self.folder, self.way = folder, way

    def beginCommit(self, txid: int | None) -> None:
        """Nothing is held open."""

    def commit(self, txid: int | None) -> Any:
        (Path(self.folder) / f"task-{os.getpid()}-{txid}").write_text(self.way)


class Telling(StateFactory):
    """Writes down which way its driver and its tasks are told."""

    kind = "append"

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    @property
    def location(self) -> Location:
        return Location(frozenset([self.folder]), frozenset(["told"]))

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Told:
        return Told(self.folder, conf["trident.way"])

    def participant(self) -> Any:
        return Listening(self.folder)


class Listening(BatchParticipant):
    def __init__(self, folder: str) -> None:
        self.folder = folder

    def open(self, conf: dict) -> int:
        (Path(self.folder) / "driver").write_text(conf["trident.way"])
        return 1

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None: ...
    def publish(self, txid: int, attempt: int, receipts: Any) -> None: ...
    def abort(self, txid: int, attempt: int) -> None: ...


class Nothing(StateUpdater):
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None: ...


def told(folder: Path, cluster: Any) -> set[str]:
    folder.mkdir()
    topology = TridentTopology()
    lines = folder.parent / "lines.csv"
    lines.write_text("word,n\na,1\nb,2\nc,3\n")
    stream = topology.newStream("s", FileSpout([str(lines)], WORD, 3)).parallelismHint(2).shuffle()
    stream.partitionPersist(Telling(folder), WORD, Nothing()).parallelismHint(2)
    assert cluster.submitTopology("t", {}, topology.build()).awaitTermination(120)
    assert {"driver"} < {each.name for each in folder.iterdir()}
    return {each.read_text() for each in folder.iterdir()}


def test_driver_and_tasks_are_told_the_same_way_on_both_clusters(tmp_path: Path, spark_cluster: Any) -> None:
    with LocalCluster() as local:
        (here,) = told(tmp_path / "local", local)
    (there,) = told(tmp_path / "spark", spark_cluster())
    assert here == there
    assert here.endswith(" s x2, shuffle, state x2")


def test_a_way_and_a_plan_show_no_secret_of_a_grouping() -> None:
    class Lookup(Modulo):
        def __init__(self, password: str) -> None:
            super().__init__(2)
            self.password = password

    ways = {word: way(lambda s, word=word: s.partition(Lookup(word))) for word in ("s3cret", "s4cret")}  # type: ignore[misc]
    assert ways["s3cret"] != ways["s4cret"]
    assert "partition Lookup(by=2, password=***)" in ways["s3cret"]
    topology = TridentTopology()
    topology.newStream("s", spout()).partition(Lookup("s3cret")).filter("n", keep).parallelismHint(2)
    assert "s3cret" not in topology.explain()
