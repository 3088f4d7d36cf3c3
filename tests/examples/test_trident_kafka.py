"""The ports of the Kafka topologies: every record is read once, and the counts are those of the sentences."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import pytest
from ported import finished, printed
from topic_reading import read

from examples import trident_kafka_named_topics as named
from examples import trident_kafka_wildcard_topics as wildcard
from examples import trident_kafka_word_count as word_count
from examples.trident_debug_state import DebugMemoryMapState
from trident_py import LocalCluster, LocalDRPC
from trident_py.testing import stored

ASKED = "the and apple snow jumped"


def texts(broker: str, *topics: str) -> list[str]:
    """What the topics hold, read by a plain consumer; their records have no key."""
    records = [record for topic in topics for record in read(broker, topic)]
    assert {record.key for record in records} <= {None}
    return sorted(record.value.decode() for record in records if record.value is not None)


def check_topics(cluster: Any, broker: str, kind: str) -> None:
    topics = [f"{uuid.uuid4().hex}-trident", ""]
    topics[1] = topics[0] + "-1"
    for topic in topics:
        finished(cluster, named.newProducer(broker, topic), name=f"{topic}-producer")
    written = texts(broker, *topics)
    assert len({uuid.UUID(value) for value in written}) == len(written) == 10
    spouts = [named.newKafkaSpout(broker, kind == "opaque", topics),
              wildcard.newKafkaSpout(broker, kind == "opaque", topics[0] + "(-1)?")]  # fmt: skip
    for number, spout in enumerate(spouts):
        running = finished(cluster, named.newConsumer(spout), name=f"consumer-{number}")
        assert sorted(value for rows in running.collected("read").values() for (value,) in rows) == written


def check_words(cluster: Any, broker: str, kind: str) -> None:
    topic, state, drpc = f"words-{uuid.uuid4().hex}", DebugMemoryMapState.Factory(), LocalDRPC()
    finished(cluster, word_count.buildProducerTopology(broker, topic))
    written = texts(broker, topic)
    assert len(written) == 20 and {text.partition(" ")[2] for text in written} <= set(word_count.SENTENCES)
    counts = Counter(" ".join(written).split())
    spout = word_count.createKafkaSpout(broker, topic, kind, ends=True)
    running = finished(cluster, word_count.buildConsumerTopology(spout, drpc, state))
    assert {word: value.curr for (word,), value in stored(state).items()} == counts
    asked = {word: counts[word] for word in ASKED.split() if word in counts}
    assert dict(drpc.execute("words", ASKED)) == asked and asked
    assert "replay" in {event.kind for event in running.events}


@pytest.mark.parametrize("kind", ["opaque", "transactional"])
def test_every_record_of_both_topics_is_read_once(kind: str, kafka: Any) -> None:
    with LocalCluster() as cluster:
        check_topics(cluster, kafka.bootstrap, kind)


@pytest.mark.parametrize("kind", ["opaque", "transactional"])
def test_the_counts_are_those_of_the_sentences(kind: str, kafka: Any) -> None:
    with LocalCluster() as cluster:
        check_words(cluster, kafka.bootstrap, kind)


_wildcard = pytest.param("trident_kafka_wildcard_topics", marks=pytest.mark.whole)


@pytest.mark.parametrize("module", ["trident_kafka_named_topics", _wildcard])
def test_the_modules_print_what_the_topics_hold(module: str, kafka: Any) -> None:
    lines = printed(module, kafka.bootstrap, "true", "--local", warns="[rdkafka#")
    assert lines[0] == f"Running with broker url {kafka.bootstrap} and isOpaque=True"
    expected = texts(kafka.bootstrap, named.TOPIC_1, named.TOPIC_2)
    assert [line.removeprefix("READ: ") for line in lines if line.startswith("READ: ")] == expected
    shown = [line.partition(" DEBUG: ")[2].strip("[]") for line in lines if " DEBUG: " in line]
    assert sorted(shown) == expected and len(expected) >= 10


@pytest.mark.whole("test_the_counts_are_those_of_the_sentences")
def test_the_module_of_the_word_count_prints_an_answer(kafka: Any) -> None:
    last = printed("trident_kafka_word_count", kafka.bootstrap, "--local", warns="Enforced State Update Fail")[-1]
    counts = Counter(" ".join(texts(kafka.bootstrap, "test")).split())
    answer = sorted([word, counts[word]] for word in ASKED.split() if word in counts)
    assert last == f"DRPC RESULT: {answer}"


@pytest.mark.spark
@pytest.mark.whole("test_every_record_of_both_topics_is_read_once")
@pytest.mark.parametrize("check", [check_topics, check_words])
def test_the_results_are_the_same_on_spark(check: Any, kafka: Any, spark_cluster: Any) -> None:
    check(spark_cluster(), kafka.bootstrap, "opaque")
