"""The Kafka states in a file of `states.load`."""

from __future__ import annotations

import inspect
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

import states
from states.kafka import CompactedTopicState, TopicState, TransactionalTopicState
from states.loading import find_types, look
from states.loading.kafka_models import CompactedTopic, Topic, TransactionalTopic
from trident_py import LocalCluster, TridentTopology
from trident_py.cli.check import looks_of
from trident_py.errors import DefinitionError
from trident_py.kafka.clients import Cluster
from trident_py.operations.builtin import MapGet
from trident_py.testing import FixedBatchSpout

OURS: dict[str, Any] = {"compacted-topic": CompactedTopic, "topic": Topic, "transactional-topic": TransactionalTopic}


def written(folder: Path, text: str) -> Path:
    path = folder / "states.yaml"
    path.write_text(text)
    return path


def test_a_file_makes_the_factories_that_code_would_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "hush")
    made = states.load(
        written(
            tmp_path,
            """
states:
  out:
    type: transactional-topic
    bootstrap: "localhost:9092"
    topic: readings
    key: device
    value: [device string, celsius double]
    oneTransaction: true
    consumed: events
    partitions: 4
    settings: {security.protocol: SASL_SSL, sasl.password: "${KAFKA_PASSWORD}", compression.type: lz4}
  copy: {type: topic, bootstrap: "localhost:9092", topic: copies, topicSelector: where}
""",
        )
    )
    settings = {"security.protocol": "SASL_SSL", "sasl.password": "hush", "compression.type": "lz4"}
    assert made == {
        "out": TransactionalTopicState(
            "localhost:9092", "readings", ["device string", "celsius double"], "device", oneTransaction=True,
            consumed="events", partitions=4, settings=settings,
        ),
        "copy": TopicState("localhost:9092", "copies", topicSelector="where"),
    }  # fmt: skip
    assert "hush" not in repr(made)


def test_a_file_makes_a_compacted_topic(tmp_path: Path) -> None:
    text = "{type: compacted-topic, bootstrap: 'h:1', topic: t, key: word string, value: count bigint, kind: opaque}"
    made = states.load(written(tmp_path, f"states:\n  counts: {text}"))["counts"]
    assert made == states.kafka.CompactedTopicState("h:1", "t", "word string", "count bigint", kind="opaque")


def test_a_file_makes_a_global_aggregate_and_the_topic_as_it_is_wanted(tmp_path: Path) -> None:
    text = """
states:
  total:
    type: compacted-topic
    bootstrap: 'h:1'
    topic: t
    value: count bigint
    kind: opaque
    replication: 3
    config: {segment.ms: 60000}
    restart: 7200
"""
    made = states.load(written(tmp_path, text))["total"]
    more = {"replication": 3, "config": {"segment.ms": 60000}, "restart": 7200}
    assert made == states.kafka.CompactedTopicState.opaque("h:1", "t", value="count bigint", **more)
    with pytest.raises(DefinitionError, match="kind plain stores rows that replace each other by key"):
        states.load(written(tmp_path, text.replace("opaque", "plain")))


def test_a_look_at_the_topics_writes_nothing(kafka: Any, tmp_path: Path) -> None:
    there, missing = kafka.create_topic(partitions=3), "not-there"
    line = "  {name}: {{type: {type}, bootstrap: '%s', topic: {topic}{more}}}\n" % kafka.bootstrap  # noqa: UP031
    text = "states:\n"
    for type in ("topic", "transactional-topic"):
        for topic, more in ((there, ""), (missing, ", partitions: 2"), (missing, "")):
            text += line.format(name=f"s{len(text)}", type=type, topic=topic, more=more)
    for _ in range(2):
        found = [each.findings[0] for each in look(written(tmp_path, text))]
        assert [each.level for each in found] == ["ok", "creates", "error"] * 2
    assert "has 3 partitions" in found[0].text
    assert "there is no topic 'not-there'. Create it" in found[2].text


def test_a_topic_that_is_only_queried_is_not_created(kafka: Any, tmp_path: Path) -> None:
    topics, found = ("missing-one", kafka.create_topic(partitions=3)), []
    for topic in topics:
        topology = TridentTopology()
        counts = topology.newStaticState(CompactedTopicState.opaque(kafka.bootstrap, topic, "word string"))
        words = topology.newStream("words", FixedBatchSpout("word string", 1, ("a",)))
        words.stateQuery(counts, "word", MapGet(), "count")
        found += [finding for each in looks_of(topology.build().plan, str) for finding in each.findings]
        with LocalCluster(str(tmp_path / topic)) as cluster:  # a start says the same
            cluster.submitTopology(topic, {}, topology.build()).awaitTermination(60)
    assert [each.level for each in found] == ["warning", "ok"]
    assert "'missing-one' does not exist, and is only queried" in found[0].text and "3 partitions" in found[1].text
    assert "missing-one" not in Cluster.of(kafka.bootstrap).admin().list_topics().topics


@pytest.mark.parametrize("type", ["topic", "transactional-topic"])
def test_a_topic_that_the_brokers_would_refuse_is_told(kafka: Any, tmp_path: Path, type: str) -> None:
    """Kafka takes a point and an underscore for the same sign."""
    like = f"{kafka.create_topic()}.x"
    kafka.create_topic(like)
    place = f"bootstrap: '{kafka.bootstrap}', topic: {like.replace('.x', '_x')}, partitions: 2"
    ((found,),) = [each.findings for each in look(written(tmp_path, f"states:\n  out: {{type: {type}, {place}}}"))]
    assert found.level == "error" and "a start cannot create it. Kafka at" in found.text, found.text


@pytest.mark.parametrize("name", OURS)
def test_the_settings_of_a_type_fit_its_factory(name: str) -> None:
    model = OURS[name]
    assert find_types()[name].settings is model
    assert set(model.model_fields) <= set(inspect.signature(resolve_name(model.factory)).parameters)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bootstrap: nowhere, topic: t", "bootstrap must list brokers as 'host:port,host:port'"),
        ("bootstrap: 'h:1', topic: 'no topic'", "topic"),
        ("bootstrap: 'h:1', topic: t, partitions: 0", "partitions"),
        ("bootstrap: 'h:1', topic: t, consume: events", "consume"),
        ("bootstrap: 'h:1', topic: t, settings: {acks: 1}", "'acks' cannot be less than 'all'"),
        (
            "bootstrap: 'h:1', topic: t, settings: {queue.buffering.max.messages: many}",
            "the setting 'queue.buffering.max.messages' must be a whole number, got 'many'",
        ),
        ("bootstrap: 'h:1', topic: t, settings: {log_level: -1}", "the setting 'log_level' must be a whole number"),
        ("bootstrap: 'h:1', topic: t, settings: {transactional.id: x}", "'transactional.id' cannot be changed"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DefinitionError) as told:
        states.load(written(tmp_path, f"states:\n  out: {{type: transactional-topic, {text}}}"))
    assert words in str(told.value)
    assert "states.out" in str(told.value) or "states.yaml" in str(told.value)
