"""A topology that is changed while a batch is half written: what decides which row reaches which partition counts.

A state that tells a replay by the number of its partition is exact only while that number stands for the same rows.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from states.sql import AppendState, RowUpdater
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import TopologyError
from trident_py.spouts import FileSpout
from trident_py.state import StateFactory
from trident_py.testing import Crashing

LINES = [f"line {n}" for n in range(40)]
Change = Callable[[Any], Any]


@dataclass(frozen=True)
class Shape:
    """A topology from lines to rows: the spout's tasks, and how the lines are sent on."""

    spout: int = 4
    route: str = "shuffle"
    state: int = 4

    def build(self, folder: Path, factory: Any) -> Any:
        topology = TridentTopology()
        lines = topology.newStream("lines", FileSpout([str(folder / "lines.txt")], Fields("line string"), 40))
        stream = lines.parallelismHint(self.spout)
        stream = stream.partitionBy("line") if self.route == "fields" else getattr(stream, self.route)()
        stream.partitionPersist(factory, Fields("line"), RowUpdater()).parallelismHint(self.state)
        return topology.build()


def run(folder: Path, topology: Any) -> None:
    with LocalCluster(str(folder / "checkpoints")) as cluster:
        cluster.submitTopology("t", {}, topology).awaitTermination(60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in LINES))
    return tmp_path


def half_written(folder: Path, shape: Shape, factory: Any) -> None:
    """Two of four partitions have committed batch 1 when the run ends."""
    crashing = Crashing(factory, "commit", {(1, 0)}, how="error", partition=2)
    with pytest.raises(TopologyError, match="asked by the test"):
        run(folder, shape.build(folder, crashing))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (Shape(4), Shape(1), ("lines x4", "lines x1", "parallelismHint")),
        (Shape(4), Shape(2), ("lines x4", "lines x2")),
        (Shape(4), Shape(4, "fields"), ("shuffle", "partitionBy line")),
        (Shape(4, "fields"), Shape(4, "batchGlobal"), ("partitionBy line", "batchGlobal")),
    ],
)
def test_rows_sent_another_way_are_not_mixed_with_those_of_a_half_written_batch(
    database: str, folder: Path, before: Shape, after: Shape, words: tuple[str, ...]
) -> None:
    factory = AppendState(database, "lines", "line string")
    half_written(folder, before, factory)
    written = factory.stored()
    assert 0 < sum(written.values()) < 40
    with pytest.raises(TopologyError) as told:
        run(folder, after.build(folder, factory))
    for each in ("'lines'", "batch 1", "Nothing more is written", *words):
        assert each in str(told.value)
    assert factory.stored() == written
    run(folder, before.build(folder, factory))  # the way on
    assert factory.stored() == Counter((line,) for line in LINES)


def test_every_state_that_goes_by_the_number_of_its_partition_keeps_the_contract_for_it() -> None:
    """`AppendContract` holds that such a state records the way of its rows, and what it does with another one."""
    for module in ("states.sql", "states.kafka", "states.sequence", "trident_py.extras.gateway.processed"):
        importlib.import_module(module)
    ours = [each for each in kinds_of(StateFactory) if each.__module__.startswith(("states.", "trident_py."))]
    plain = {each.__name__ for each in ours if vars(each).get("kind") == "append"}
    tests = [path.read_text() for path in Path(__file__).parent.parent.rglob("test_*.py")]
    tests = [text for text in tests if re.search(r"^class .*AppendContract\):", text, re.MULTILINE)]
    proved = {name for name in plain for text in tests if re.search(rf"\b{name}\b", text)}
    assert plain == proved == {"AppendState", "TransactionalTopicState"}


def kinds_of(factory: type) -> list[type]:
    return [each for child in factory.__subclasses__() for each in (child, *kinds_of(child))]
