"""What cannot be sent to a worker is told by its name: the operation, the variable, the next step."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from trident_py import DefinitionError, TridentTopology
from trident_py.engine.program import compile_plan
from trident_py.operations import BaseFunction
from trident_py.spark.program_pickle import pickle_program
from trident_py.testing import FixedBatchSpout


class Counting(BaseFunction):
    def __init__(self) -> None:
        self.guards = {"lock": threading.Lock()}

    def execute(self, tuple: Any, collector: Any) -> None: ...


PICKLED: list[str] = []


class Noting(BaseFunction):
    """Notes in this process how often it is pickled."""

    def __getstate__(self) -> dict:
        PICKLED.append("once more")
        return {}

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([1])


LOCAL: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))


def refused(operation: Any) -> str:
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("n", 1, (1,))).each("n", operation, "x")
    (program,) = compile_plan(topology.build().plan, {"topology.name": "t"})
    with pytest.raises(DefinitionError) as told:
        pickle_program(program, LOCAL)
    return str(told.value)


def test_the_variable_of_a_closure_is_named() -> None:
    connection = threading.Lock()

    def ask(n: int) -> list:
        return [n, connection][:1]

    told = refused(ask)
    assert "ask" in told and "connection holds a lock" in told and "prepare()" in told


def test_the_attribute_of_an_object_is_named() -> None:
    told = refused(Counting())
    assert "each Counting" in told and "guards.lock holds a lock" in told


@pytest.mark.spark
def test_it_is_told_before_anything_starts(spark_cluster: Any) -> None:
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("n", 1, (1,))).each("n", Counting(), "x")
    with spark_cluster() as cluster, pytest.raises(DefinitionError, match=r"guards\.lock holds a lock"):
        cluster.submitTopology("t", {}, topology.build())


@pytest.mark.spark
def test_a_program_is_pickled_once_to_be_checked_and_to_be_sent(spark_cluster: Any) -> None:
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("n", 1, (1,), (2,))).each("n", Noting(), "x")
    built = topology.build()
    PICKLED.clear()
    with spark_cluster() as cluster:
        assert cluster.submitTopology("t", {}, built).awaitTermination(120)
    assert PICKLED == ["once more"]
