"""Plans of a thousand steps and of hundreds of states: what walks them nests no call for each step, and the work of
building one grows with the plan, not with its square. Work is counted, not timed."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from semantics.support import Batches, current, run

import trident_py
from trident_py import LocalCluster, TridentTopology
from trident_py.errors import FailedException
from trident_py.model.pickling import dumps
from trident_py.operations.builtin import Count, MapGet, Sum
from trident_py.report.guarantees import EXACTLY
from trident_py.testing import MemoryMapState, collect, stored

DEEP = 1_000
FEW, MANY = 100, 400
MODULES = str(Path(trident_py.__file__).parent)


def chain(topology: TridentTopology, batches: Any, length: int = DEEP, last: Callable[..., Any] | None = None) -> Any:
    """A stream behind so many `each`, each of which adds 1. ``last``: the function in place of the last one's."""
    stream: Any = topology.newStream("s", Batches("x0", batches))
    for number in range(length):
        function = last if last and number == length - 1 else lambda x: [x + 1]
        stream = stream.each(f"x{number}", function, f"x{number + 1}")
    return stream.project(f"x{length}")


def test_a_chain_of_a_thousand_functions_runs() -> None:
    topology, sums = TridentTopology(), MemoryMapState.Factory()
    last = chain(topology, [[(1,), (5,)], [(7,)]])
    last.persistentAggregate(sums, f"x{DEEP}", Sum(), "sum")
    collect(last, "out")
    with LocalCluster() as cluster:
        assert run(cluster, topology).collected("out") == {1: [(1 + DEEP,), (5 + DEEP,)], 2: [(7 + DEEP,)]}
    assert current(stored(sums)) == {("$GLOBAL$",): 13 + 3 * DEEP}


def test_a_chain_of_a_thousand_functions_is_explained_and_pickled() -> None:
    topology = TridentTopology()
    chain(topology, []).persistentAggregate(MemoryMapState.Factory(), f"x{DEEP}", Sum(), "sum")
    built = topology.build()
    (row,) = built.guarantees()
    assert row.guarantee == EXACTLY and row.functions == ()
    assert f"#{DEEP} each " in built.explain() and f"n{DEEP}" in built.explain("mermaid")
    again = pickle.loads(dumps(built.plan))
    assert [node.parents for node in again.nodes] == [node.parents for node in built.plan.nodes]


def test_a_failure_far_down_a_chain_names_its_function_and_leaves_nothing_to_the_next_attempt() -> None:
    attempts: list[int] = []

    def fails_once(x: int) -> list[int]:
        attempts.append(x)
        if len(attempts) == 2:
            raise FailedException("the second tuple")
        return [x]

    topology, counts = TridentTopology(), MemoryMapState.Factory()
    rows = [(0,)] * 10_000  # several chunks, so that some still wait when one fails
    last = chain(topology, [rows, [(0,)]], 100, fails_once)
    last.persistentAggregate(counts, Count(), "n")
    with LocalCluster() as cluster:
        running = run(cluster, topology)
    assert running.attempts == {1: 1, 2: 0}
    assert current(stored(counts)) == {("$GLOBAL$",): 10_001} and len(attempts) == 10_003


def test_the_tuples_of_a_deep_chain_keep_their_order() -> None:
    topology = TridentTopology()
    rows = [(number,) for number in range(20_000)]
    collect(chain(topology, [rows], 100), "out")
    with LocalCluster() as cluster:
        assert run(cluster, topology).collected("out") == {1: [(number + 100,) for (number,) in rows]}


def branches(topology: TridentTopology, states: int) -> None:
    words = topology.newStream("s", Batches("w", [])).each("w", lambda w: [w], "v")
    for number in range(states):
        words.groupBy("w").persistentAggregate(MemoryMapState.Factory(), Count(), f"n{number}")


def spouts(topology: TridentTopology, states: int) -> None:
    for number in range(states):
        words = topology.newStream(f"s{number}", Batches("w", []))
        words.groupBy("w").persistentAggregate(MemoryMapState.Factory(), Count(), "n")


def line(topology: TridentTopology, states: int) -> None:
    stream: Any = topology.newStream("s", Batches("w", []))
    for number in range(states):
        state = stream.groupBy("w").persistentAggregate(MemoryMapState.Factory(), Count(), f"n{number}")
        stream = state.newValuesStream().project("w").parallelismHint(2)


def queries(topology: TridentTopology, states: int) -> None:
    stream: Any = topology.newStream("s", Batches("w", []))
    asked: Any = topology.newStream("t", Batches("w", []))
    for number in range(states):
        state = stream.groupBy("w").persistentAggregate(MemoryMapState.Factory(), Count(), "n")
        asked = asked.stateQuery(state, "w", MapGet(), f"n{number}").project("w")


@pytest.mark.parametrize("shape", [branches, spouts, line, queries])
def test_the_work_of_building_grows_with_the_states(shape: Callable[[TridentTopology, int], None]) -> None:
    few, many = (work(shape, states) for states in (FEW, MANY))
    assert many < few * MANY / FEW * 1.3, f"{few:,} and {many:,} lines: {many / few:.1f} times"


def work(shape: Callable[[TridentTopology, int], None], states: int) -> int:
    """How many lines of trident_py `build` runs; a line counts again with each round of a loop in it."""
    topology, lines = TridentTopology(), 0
    shape(topology, states)

    def count(frame: Any, event: str, argument: Any) -> Any:
        nonlocal lines
        if not frame.f_code.co_filename.startswith(MODULES):
            return None
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        topology.build()
    finally:
        sys.settrace(before)
    return lines
