"""partitionPersist without an updater: the factory brings its own, which gets the whole tuple."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from states.kafka import CompactedTopicState, TopicState, TransactionalTopicState
from states.redis import RedisMapState
from states.sql import AppendState, BatchState, InsertIgnoreState, RowUpdater, SqlMapState
from states.sql.query import SqlSourceFactory
from states.sql.rows.base import TableFactory
from states.sql.windows import SqlWindow
from trident_py import DefinitionError, LocalCluster, Stream, TridentTopology
from trident_py.extras.gateway.processed import ProcessedState, ProcessedUpdater
from trident_py.model.plan import ProcessorNode
from trident_py.state import StateFactory, StateSpec
from trident_py.testing import Crashing, FixedBatchSpout, MemoryMapState, collect

ROW = ["word string", "n bigint"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/s.db"


def words(topology: TridentTopology) -> Stream:
    return topology.newStream("s", FixedBatchSpout(ROW, 2, ("a", 1), ("b", 2), ("a", 1)))


def run(topology: TridentTopology) -> Any:
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", {}, topology.build())
        assert running.awaitTermination(30)
        return running


@pytest.mark.parametrize("wrapped", [lambda f: f, StateSpec, lambda f: Crashing(f, at="put", when={(1, 0)})])
def test_rows_are_written_whole_without_fields_and_updater(url: str, wrapped: Any) -> None:
    factory = InsertIgnoreState(url, "t", key="word", columns=ROW)
    topology = TridentTopology()
    words(topology).partitionPersist(wrapped(factory))
    run(topology)
    assert factory.stored() == {("a",): (1,), ("b",): (2,)}


def test_fields_may_be_chosen_and_new_rows_emitted_without_an_updater(url: str) -> None:
    factory = InsertIgnoreState(url, "t", key="word string")
    topology = TridentTopology()
    collect(words(topology).partitionPersist(factory, "word", functionFields="new").newValuesStream(), "new")
    assert run(topology).collected("new") == {1: [("a",), ("b",)]}
    assert factory.stored() == {("a",): (), ("b",): ()}


def test_with_an_updater_left_out_fields_are_no_fields_as_in_storm(url: str) -> None:
    stream = words(TridentTopology())
    with pytest.raises(DefinitionError, match=r"needs the field 'word', which the input fields \[\] leave out"):
        stream.partitionPersist(AppendState(url, "t", ROW), RowUpdater())
    stream.partitionPersist(AppendState(url, "t"), RowUpdater())
    node = stream.topology.plan().nodes[-1]
    assert isinstance(node, ProcessorNode) and len(node.spec.inputs) == 0


@pytest.mark.parametrize(
    "factory", [SqlMapState.opaque("sqlite:///t.db", "t", key="word string"), MemoryMapState.Factory()]
)
def test_a_map_state_has_no_updater_of_its_own_and_says_what_to_do(factory: Any) -> None:
    with pytest.raises(DefinitionError, match=r"has none of its own: pass one.* updated by persistentAggregate"):
        words(TridentTopology()).partitionPersist(factory, "word")


def kinds_of(factory: type) -> list[type]:
    return [each for child in factory.__subclasses__() for each in (child, *kinds_of(child))]


def test_every_state_that_is_not_a_map_alone_brings_its_updater() -> None:
    rooms = ("states.", "trident_py.extras.gateway", "trident_py.extras.redis", "trident_py.extras.files")
    ours = [each for each in kinds_of(StateFactory) if each.__module__.startswith(rooms)]
    assert {AppendState, BatchState, CompactedTopicState, TopicState, TransactionalTopicState} <= set(ours)
    # persistentAggregate updates maps, a window its state; nothing updates the source of a query
    without = {each for each in ours if each.own_updater is StateFactory.own_updater} - {TableFactory}
    assert without == {SqlMapState, RedisMapState, SqlWindow, SqlSourceFactory}
    assert isinstance(ProcessedState("sqlite:///e.db").own_updater, ProcessedUpdater)
