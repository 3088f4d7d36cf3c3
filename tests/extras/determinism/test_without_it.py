"""A topology without the extras of this package: it runs, and the guarantees say that nothing was checked."""

from __future__ import annotations

import random
from typing import Any

import pytest

from trident_py import DefinitionError, LocalCluster, TridentTopology, entry_points
from trident_py.operations import Function, deterministic, expr, nondeterministic
from trident_py.operations.builtin import Count, Equals, FilterNull, MaxWithComparator
from trident_py.operations.determinism import CHANGING, DETERMINISTIC, UNCHECKED, follows_hash_seed, judge
from trident_py.testing import FixedBatchSpout, MemoryMapState, collect


@pytest.fixture(autouse=True)
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """No extra is installed."""
    monkeypatch.setattr(entry_points, "_points", lambda group: {})


class Half(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([tuple[0] // 2])


@deterministic
class Same(Half):
    pass


class Other(Same):
    def prepare(self, conf: Any, context: Any) -> None:
        self.n = random.random()


def topology(*functions: Any, key: str = "n") -> TridentTopology:
    made = TridentTopology()
    stream = made.newStream("numbers", FixedBatchSpout("n", 2, (1,), (2,), (3,)))
    for number, function in enumerate(functions):
        stream = stream.each("n", function, f"f{number}")
    stream = collect(stream, "rows")
    stream.groupBy(key).persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    return made


def test_a_topology_runs_as_with_them() -> None:
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", {}, topology(Half(), lambda n: [n * 2]).build())
        running.awaitTermination()
        assert running.collected("rows") == {1: [(1, 0, 2), (2, 1, 4)], 2: [(3, 1, 6)]}


def test_undeclared_functions_are_unchecked_and_count_as_changing() -> None:
    built = topology(Half(), lambda n: [n]).build()
    (guarantee,) = built.guarantees()
    assert guarantee.verdict == UNCHECKED == "unchecked"
    assert "Half is unchecked: the extra 'determinism' is missing" in guarantee.functions
    assert guarantee.spout_kind == "transactional" and guarantee.guarantee == "exactly once"
    lines = str(built.guarantees()).splitlines()
    assert lines[1].split("  ")[-2:] == ["unchecked", "exactly once"] and "Half is unchecked" in lines[2]
    assert any("it counts as not deterministic, unless it is declared" in note for note in built.guarantees().notes())


def test_a_guarantee_that_needs_a_deterministic_function_is_refused_unless_it_is_declared() -> None:
    conf = {"topology.guarantee": "exactly-once"}
    with LocalCluster() as cluster, pytest.raises(DefinitionError, match="Half is unchecked") as caught:
        cluster.submitTopology("t", conf, topology(Half(), key="f0").build())
    assert "declare Half @deterministic if it is" in str(caught.value)
    with LocalCluster() as cluster:
        declared = topology(Same(), key="f0").build()
        cluster.submitTopology("t", conf, declared).awaitTermination()


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        (Count(), DETERMINISTIC),
        (FilterNull(), DETERMINISTIC),
        (Equals(), DETERMINISTIC),
        (MaxWithComparator("n", lambda a, b: a - b), UNCHECKED),
        (Half(), UNCHECKED),
        (len, UNCHECKED),
        (Same(), DETERMINISTIC),
        (Other(), UNCHECKED),
        (deterministic(lambda n: [n]), DETERMINISTIC),
        (nondeterministic(lambda n: [n]), CHANGING),
        (type("Late", (nondeterministic(type("Clock", (Half,), {})),), {})(), CHANGING),
    ],
)
def test_the_verdict_follows_the_declaration(operation: Any, kind: str) -> None:
    assert judge(operation).kind == kind
    assert judge(operation, ("*",)).kind == (DETERMINISTIC if kind == UNCHECKED else kind)
    assert follows_hash_seed(operation) == ""


def test_the_second_run_is_refused() -> None:
    with LocalCluster() as cluster, pytest.raises(DefinitionError) as caught:
        cluster.submitTopology("t", {"topology.determinism.check": 1}, topology(Half()).build())
    assert str(caught.value) == (
        "topology.determinism.check needs determinism, which this installation lacks: "
        "pip install --force-reinstall trident-py"
    )


def test_an_expression_says_what_is_missing() -> None:
    with pytest.raises(DefinitionError, match=r"^expr needs expressions, which this installation lacks: "):
        topology().newStream("more", FixedBatchSpout("n", 2, (1,))).filter(expr("n > 1"))
