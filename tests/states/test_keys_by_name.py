"""Groups and the key of a map state are matched by name; updaters, queries and states by what they call."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from states import RowUpdater
from states.kafka import CompactedTopicState, TransactionalTopicState
from states.sql import AppendState, BatchState, InsertIgnoreState, SqlMapState
from trident_py import DefinitionError, LocalCluster, TridentTopology
from trident_py.operations import ReducerAggregator
from trident_py.operations.builtin import Count, MapGet
from trident_py.state import StateFactory, StateSpec
from trident_py.testing import Crashing, FixedBatchSpout, collect, stored

ROWS = (("EWR", "05"), ("JFK", "07"), ("EWR", "05"))


class Rows(ReducerAggregator):
    def init(self) -> int:
        return 0

    def reduce(self, curr: int, tuple: Any) -> int:
        return curr + 1


def grouped(topology: TridentTopology, names: Any) -> Any:
    return topology.newStream("readings", FixedBatchSpout(["station", "month"], 3, *ROWS)).groupBy(names)


def counts(tmp_path: Path, keys: Any) -> SqlMapState:
    return SqlMapState.opaque(f"sqlite:///{tmp_path / 'counts.db'}", "counts", key=keys)


@pytest.mark.parametrize("aggregator", [Count(), Rows()], ids=["combiner", "reducer"])
@pytest.mark.parametrize("wrapped", [lambda f: f, StateSpec, lambda f: Crashing(f, at="commit", when=set())])
def test_groups_are_stored_under_the_names_of_the_key(tmp_path: Path, aggregator: Any, wrapped: Any) -> None:
    state = counts(tmp_path, ["month string", "station string"])
    topology = TridentTopology()
    kept = grouped(topology, ["station", "month"]).persistentAggregate(wrapped(state), ["station"], aggregator, "n")
    collect(kept.newValuesStream().project(["station", "month", "n"]), "values")
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", {}, topology.build())
        assert running.awaitTermination(30)
    assert {key: value.curr for key, value in stored(state).items()} == {("05", "EWR"): 2, ("07", "JFK"): 1}
    assert sorted(running.collected("values")[1]) == [("EWR", "05", 2), ("JFK", "07", 1)]


@pytest.mark.parametrize("keys", [["month string", "place string"], ["a string", "b string"], ["station string"]])
def test_a_key_of_other_fields_is_refused(tmp_path: Path, keys: list[str]) -> None:
    topology = TridentTopology()
    with pytest.raises(DefinitionError, match="matched by name") as told:
        grouped(topology, ["station", "month"]).persistentAggregate(counts(tmp_path, keys), Count(), "n")
    assert "[station, month]" in str(told.value)


def test_a_key_of_one_field_may_have_a_name_of_its_own(tmp_path: Path) -> None:
    state = counts(tmp_path, "airport string")
    topology = TridentTopology()
    grouped(topology, "station").persistentAggregate(state, Count(), "n")
    with LocalCluster() as cluster:
        assert cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)
    assert {key: value.curr for key, value in stored(state).items()} == {("EWR",): 2, ("JFK",): 1}


def rows(url: str) -> list[StateFactory]:
    return [
        AppendState(url, "a"), BatchState(url, "b"), InsertIgnoreState(url, "c", key="station"),
        TransactionalTopicState("localhost:9092", "d"),
    ]  # fmt: skip


@pytest.mark.parametrize("at", range(4))
def test_a_state_of_rows_takes_no_aggregate_and_answers_no_query(tmp_path: Path, at: int) -> None:
    state, topology = rows(f"sqlite:///{tmp_path / 'rows.db'}")[at], TridentTopology()
    with pytest.raises(DefinitionError, match=re.escape("it calls multiUpdate(), which ") + ".*RowUpdater"):
        grouped(topology, "station").persistentAggregate(state, Count(), "n")
    with pytest.raises(DefinitionError, match="MapGet does not fit"):
        stream = topology.newStream("asked", FixedBatchSpout("k", 1, ("EWR",)))
        stream.stateQuery(topology.newStaticState(state), "k", MapGet(), "n")


def test_every_state_that_ships_says_what_its_states_can_do() -> None:
    root, bases = Path(__file__).parents[2], {"TableFactory", "RowFactory", "RedisFactory"}
    ours = [*root.glob("states/**/*.py"), *root.glob("trident_py/extras/**/*.py")]
    for module in (each for each in ours if "java" not in each.parts):  # that makes states which users have written
        for node in (each for each in ast.walk(ast.parse(module.read_text())) if isinstance(each, ast.ClassDef)):
            named = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            assigned = [each.targets for each in node.body if isinstance(each, ast.Assign)]
            named |= {target.id for targets in assigned for target in targets if isinstance(target, ast.Name)}
            makes = "makeState" in named or any(ast.unparse(base) in bases for base in node.bases)
            assert not makes or node.name in bases or "state_type" in named, f"{module}: class {node.name}"


def test_a_map_takes_no_rows(tmp_path: Path) -> None:
    stream = TridentTopology().newStream("readings", FixedBatchSpout(["station", "month"], 3, *ROWS))
    with pytest.raises(DefinitionError, match=re.escape("RowUpdater does not fit") + ".*persistentAggregate"):
        stream.partitionPersist(counts(tmp_path, "station string"), ["station"], RowUpdater())


def test_a_compacted_topic_is_matched_by_name_too() -> None:
    state = CompactedTopicState.opaque("localhost:9092", "t", key=["month string", "station string"])
    with pytest.raises(DefinitionError, match="matched by name"):
        grouped(TridentTopology(), ["month"]).persistentAggregate(state, Count(), "n")
