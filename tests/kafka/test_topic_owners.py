"""A topic has one owner across topologies, and deployments with equal names do not shut out each other."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from contracts.crashing import Driver
from topic_reading import read

from states.kafka import CompactedTopicState, RowUpdater, TopicState, TransactionalTopicState
from states.kafka.owner import TopicOwner
from states.ledger.owner import Owner
from trident_py.errors import FailedException, LineageError, StateError, ZombieError
from trident_py.operations.builtin import Sum
from trident_py.state import MapCombinerAggStateUpdater
from trident_py.tuples import TridentTuple

REPLACE = "topology.owner.replace"


@pytest.fixture
def topic(kafka: Any) -> Iterator[str]:
    yield kafka.create_topic(partitions=1, **{"cleanup.policy": "compact", "min.compaction.lag.ms": 0,
                                              "max.compaction.lag.ms": 86_400_000})  # fmt: skip
    gc.collect()


def counts(kafka: Any, topic: str, **more: Any) -> CompactedTopicState:
    return CompactedTopicState.transactional(kafka.bootstrap, topic, "word string", "n bigint", **more)


def driver(factory: Any, topology: str, state: str = "s", lineage: str = "", **more: Any) -> Driver:
    counting = getattr(factory, "type", "") == "transactional"
    updater: Any = MapCombinerAggStateUpdater(Sum(), "word", "n") if counting else RowUpdater()
    names = {"topology.name": topology, "trident.state.name": state}
    return Driver(factory, updater, lineage or f"lineage-{topology}-{state}", **names, **more)


def rows(*values: tuple) -> list[TridentTuple]:
    return [TridentTuple.of(["word", "n"], each) for each in values]


def held(factory: Any) -> dict[tuple, int]:
    return {key: value.value for key, value in factory.stored().items()}


@pytest.mark.parametrize("kind", ["transactional", "plain"])
def test_a_topic_of_another_topology_is_refused_before_anything_is_written(kafka: Any, topic: str, kind: str) -> None:
    factory: Any = counts(kafka, topic)
    if kind != "transactional":
        factory = CompactedTopicState(kafka.bootstrap, topic, "word string", "n bigint")
    one = driver(factory, "one")
    assert factory.participant().find_owner({}) is None
    one.batch(rows(("a", 1)), 1, of=1)
    assert factory.participant().find_owner({}) == ("one", "s")
    before = factory.stored()
    for name in (("two", "s"), ("one", "other")):
        with pytest.raises(StateError) as told:
            driver(factory, *name)
        setting = f"conf[\"{REPLACE}\"] = 'one/s'"
        for words in (f"topic {topic!r}", "'s' of topology 'one'", "merge", setting):
            assert words in str(told.value)
    assert factory.stored() == before
    one.batch(rows(("a", 1)), 2, of=1)
    driver(factory, "one").batch(rows(("b", 1)), 3, of=1)
    for adding in (TransactionalTopicState, TopicState):
        with pytest.raises(StateError, match="'s' of topology 'one'"):
            driver(adding(kafka.bootstrap, topic), "two")


@pytest.mark.parametrize("made", ["before", "by the states"])
def test_of_two_topologies_that_start_together_on_a_new_topic_one_writes(kafka: Any, topic: str, made: str) -> None:
    factory = counts(kafka, topic if made == "before" else f"{topic}-new", restart=1.0)
    one, two = driver(factory, "one"), driver(factory, "two")
    one.batch(rows(("a", 1)), 1, of=1)
    with pytest.raises(StateError, match="'s' of topology 'one'"):
        two.run(rows(("a", 1)), 1, of=1)
    one.batch(rows(("a", 2)), 2, of=1)
    assert held(factory) == {("a",): 3}


def test_an_owner_may_be_replaced_and_writes_no_more(kafka: Any, topic: str) -> None:
    factory = CompactedTopicState(kafka.bootstrap, topic, "word string", "n bigint")
    old = driver(factory, "one")
    old.batch(rows(("a", 1)), 1, of=1)
    driver(factory, "two", **{REPLACE: "one/s"}).batch(rows(("a", 2)), 1, of=1)
    with pytest.raises(ZombieError, match="newer one with generation"):
        old.run(rows(("a", 3)), 2, of=1)
    with pytest.raises(StateError, match="'s' of topology 'two'"):
        driver(factory, "one")
    assert factory.stored() == {("a",): 2}


@pytest.mark.parametrize("other", [TransactionalTopicState, TopicState])
def test_states_that_only_add_records_may_share_a_topic(kafka: Any, other: Any) -> None:
    topic = kafka.create_topic()
    one = driver(TransactionalTopicState(kafka.bootstrap, topic), "one")
    two = driver(other(kafka.bootstrap, topic), "two")
    for txid in (1, 2):
        one.batch(rows(("a", txid)), txid, of=1)
        two.batch(rows(("b", txid)), txid, of=1)
    assert len(read(kafka.bootstrap, topic)) == 4


def test_a_topic_that_records_are_added_to_is_refused_to_a_map(kafka: Any, topic: str) -> None:
    driver(TopicState(kafka.bootstrap, topic, key="word"), "one").batch(rows(("a", 1)), 1, of=1)
    with pytest.raises(StateError, match="'s' of topology 'one'"):
        driver(CompactedTopicState(kafka.bootstrap, topic, "word string", "n bigint"), "two")


def test_the_note_is_written_again_with_the_drivers_mark(kafka: Any, topic: str) -> None:
    """Brokers forget the offsets of idle groups; the note is never older than the mark."""
    factory = counts(kafka, topic)
    one = driver(factory, "one")
    one.batch(rows(("a", 1)), 1, of=1)
    owner: TopicOwner = one.participant._owner
    owner._write_plainly(Owner("other", "s"))
    one.participant.prepare(2, 1, 1)  # a second attempt writes the driver's mark
    found = owner._place.owner(True)
    assert found is not None
    assert found.name == "one/s"


# -- two deployments with equal names


def test_deployments_of_equal_names_on_two_topics_do_not_disturb_each_other(kafka: Any) -> None:
    """Their topics are what differs; neither shuts out the other, however often they take turns."""
    made = [TransactionalTopicState(kafka.bootstrap, kafka.create_topic()) for _ in range(2)]
    drivers = [driver(factory, "t", lineage=f"deployment {n}") for n, factory in enumerate(made)]
    for txid in (1, 2, 3):
        for each in drivers:
            each.batch(rows(("a", txid)), txid, of=1)
    assert [len(read(factory.bootstrap, factory.topic)) for factory in made] == [3, 3]


def test_a_second_deployment_of_equal_names_on_one_topic_is_told_so_and_the_first_goes_on(kafka: Any) -> None:
    factory = TransactionalTopicState(kafka.bootstrap, kafka.create_topic())
    first = driver(factory, "t", lineage="first")
    first.batch(rows(("a", 1)), 1, of=1)
    for _ in range(2):
        with pytest.raises(LineageError, match="'first'"):
            driver(factory, "t", lineage="second")
        first.batch(rows(("a", 2)), 2, of=1)
    assert len(read(factory.bootstrap, factory.topic)) == 2


def test_a_restart_shuts_out_the_driver_before_it_also_after_a_lost_checkpoint(kafka: Any) -> None:
    factory = TransactionalTopicState(kafka.bootstrap, kafka.create_topic())
    old = driver(factory, "t", lineage="first")
    old.batch(rows(("a", 1)), 1, of=1)
    restarted = driver(factory, "t", lineage="first")
    with pytest.raises((ZombieError, FailedException)):
        old.run(rows(("a", 2)), 2, of=1, attempt=1)
    continued = driver(factory, "t", lineage="second", **{"topology.txid.base": 1})
    continued.batch(rows(("b", 2)), 2, of=1)
    with pytest.raises((ZombieError, FailedException)):
        restarted.run(rows(("a", 2)), 2, of=1, attempt=1)
    assert len(read(factory.bootstrap, factory.topic)) == 2
