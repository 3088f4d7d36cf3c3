"""KafkaSpout as a value: what fits together, what it shows of itself, and what needs no broker."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import pytest

from trident_py.errors import DefinitionError
from trident_py.kafka import Avro, Json, KafkaSpout
from trident_py.kafka.batches import TopicPosition, metadata_of, places_of, ranges_of, shares, task_metadata
from trident_py.spouts import output_fields, snapshot

BROKER = "localhost:9092"


@pytest.mark.parametrize(
    "options, told",
    [
        ({}, "set either topics or pattern="),
        ({"topics": "a", "pattern": "b"}, "set either topics or pattern="),
        ({"topics": []}, "set either topics or pattern="),
        ({"topics": "a.*"}, "for a regular expression use pattern="),
        ({"pattern": "("}, "not a regular expression"),
        ({"topics": "a", "kind": "non-transactional"}, "kind must be one of transactional, opaque"),
        ({"topics": "a", "fields": "valeu"}, "no field 'valeu'; a record has: topic, partition, offset, key, value"),
        ({"topics": "a", "value": "utf8"}, 'use "bytes", "string", Json'),
        ({"topics": "a", "value": Json}, 'use "bytes", "string", Json'),
        ({"topics": "a", "value": Json("topic string")}, "duplicate field 'topic'"),
        ({"topics": "a", "onBadRecord": "drop"}, "must be one of fail, skip"),
        ({"topics": "a", "firstPollOffsetStrategy": "earliest"}, "must be one of EARLIEST, LATEST"),
        ({"topics": "a", "firstPollOffsetStrategy": "TIMESTAMP"}, "startTimestamp"),
        ({"topics": "a", "startTimestamp": 5}, "startTimestamp"),
        ({"topics": "a", "isolationLevel": "none"}, "must be one of read_committed, read_uncommitted"),
        ({"topics": "a", "endingOffsets": "earliest"}, "must be one of None, latest"),
        ({"topics": "a", "maxRecordsPerBatch": 0}, "maxRecordsPerBatch must be an integer of at least 1, got 0"),
        ({"topics": "a", "maxRecordsPerSecond": 0.5}, "maxRecordsPerSecond must be an integer of at least 1"),
        (
            {"topics": "a", "firstPollOffsetStrategy": "TIMESTAMP", "startTimestamp": 1 << 63},
            "startTimestamp must be an integer of at most 64 bits, got 9223372036854775808",
        ),
        ({"topics": "a", "shareOffsets": True}, "shareOffsets needs groupId"),
        ({"topics": "a", "settings": {"group.id": "g"}}, "cannot be changed: use groupId"),
        ({"topics": "a", "settings": {"metadata.broker.list": "h:1"}}, "cannot be changed: use bootstrap"),
        ({"topics": "a", "settings": {"isolation.level": "x"}}, "cannot be changed: use isolationLevel"),
        ({"topics": "a", "translator": len}, "fields= must name the values that it returns"),
        ({"topics": "a", "translator": 5, "fields": "n"}, "translator must be a function"),
        ({"topics": ["a", "b"], "translator": {"a": len}, "fields": "n"}, "no translator for topic 'b'"),
    ],
    ids=str,
)
def test_what_does_not_fit_together_is_told_at_the_definition(options: dict[str, Any], told: str) -> None:
    with pytest.raises(DefinitionError) as raised:
        KafkaSpout(BROKER, **options)
    assert told in str(raised.value)


def test_a_bootstrap_that_is_none_is_told() -> None:
    with pytest.raises(DefinitionError, match="host:port"):
        KafkaSpout("localhost", "words")


def test_a_spout_is_a_value_that_can_be_compared_copied_and_sent() -> None:
    spout = KafkaSpout(BROKER, ["a", "b"], value=Json("n bigint"), settings={"security.protocol": "SSL"})
    same = KafkaSpout(BROKER, ["a", "b"], value=Json("n bigint"), settings={"security.protocol": "SSL"})
    assert spout == same and hash(spout) == hash(same)
    for copied in (pickle.loads(pickle.dumps(spout)), copy.deepcopy(spout), snapshot(spout)):
        assert copied == spout and repr(copied) == repr(spout)
        assert copied.cluster.config() == spout.cluster.config()
    with pytest.raises(AttributeError):
        spout.kind = "opaque"  # type: ignore[misc]
    assert spout != KafkaSpout(BROKER, ["a", "b"], value=Json("n bigint"), kind="opaque")


def test_no_secret_is_ever_shown() -> None:
    spout = KafkaSpout(BROKER, "a", settings={"sasl.password": "hunter2", "ssl.key.pem": "PRIVATE"})
    assert "hunter2" not in repr(spout) and "PRIVATE" not in repr(spout)
    assert spout.cluster.config()["sasl.password"] == "hunter2"


def test_the_fields_come_in_the_order_they_are_named() -> None:
    spout = KafkaSpout(BROKER, "a", fields=["offset", "value", "topic"], value=Json("s string, d decimal(10, 2)", "x"))
    declared = ["offset bigint", "s string", "d decimal(10, 2)", "x", "topic string"]
    assert output_fields(spout).declarations() == declared


def test_a_schema_that_is_none_is_told() -> None:
    with pytest.raises(DefinitionError, match="not JSON"):
        Avro("{")
    with pytest.raises(DefinitionError, match="must describe a record"):
        Avro('"string"')
    for fields in ("", ', "fields": [{"name": "a", "type": "nosuch"}]', ', "fields": [{"type": "int"}]'):
        with pytest.raises(DefinitionError, match="the schema is not one of Avro"):
            Avro(f'{{"type": "record", "name": "R"{fields}}}')


@pytest.mark.parametrize(
    "module, statement, told",
    [
        ("confluent_kafka", "KafkaSpout('h:1', 'a')", "pip install 'trident-py[kafka]'"),
        ("fastavro", "Avro({'type': 'record', 'name': 'R', 'fields': []})", "pip install 'trident-py[avro]'"),
    ],
)
def test_without_the_client_it_says_what_to_install(module: str, statement: str, told: str) -> None:
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from trident_py.kafka import Avro, KafkaSpout\n"
        "from trident_py.errors import DefinitionError\n"
        f"try:\n    {statement}\nexcept DefinitionError as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True)
    assert told in said.stdout


def test_the_clients_are_loaded_when_they_are_needed() -> None:
    code = (
        "import sys\nfrom trident_py.kafka import KafkaSpout\nKafkaSpout('h:1', 'a')\n"
        "assert 'confluent_kafka' not in sys.modules and 'fastavro' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize("limit", [1, 2, 5, 10, 99, 100])
def test_shares_fill_a_batch_and_never_more(limit: int) -> None:
    waiting = {("t", 0): 50, ("t", 1): 0, ("t", 2): 49, ("u", 0): 1}
    for turn in range(4):
        given = shares(waiting, limit, turn)
        assert sum(given.values()) == limit
        assert all(0 < count <= waiting[place] for place, count in given.items())
    served = {place for turn in range(4) for place in shares(waiting, limit, turn)}
    assert served == {("t", 0), ("t", 2), ("u", 0)}, "in turn everybody gets something"


@pytest.mark.parametrize("value", [None, ["a"], len, {"a": 1}], ids=str)
def test_a_setting_that_is_no_text_and_no_number_is_told(value: Any) -> None:
    with pytest.raises(DefinitionError, match="setting oauth_cb"):
        KafkaSpout("localhost:9092", "a", settings={"oauth_cb": value})


def test_secrets_are_hidden_in_errors_whatever_they_are_called() -> None:
    secrets = {
        "sasl.password": "p-secret", "ssl.key.password": "k-secret", "sasl.oauthbearer.client.secret": "c-secret",
        "sasl.oauthbearer.config": "principal=x secret=o-secret",
    }  # fmt: skip
    cluster = KafkaSpout("localhost:9092", "a", settings=secrets).cluster
    told = cluster.hide_secrets(" / ".join(secrets.values()))
    assert "secret" not in told


@pytest.mark.parametrize("tasks", [1, 2, 7, 40])
def test_each_partition_goes_to_one_task_and_a_batch_sends_it_once(tasks: int) -> None:
    """30 partitions of two topics, every third without a range."""
    positions = {name: TopicPosition(f"id-{name}", list(range(100, 115))) for name in ("b", "a")}
    starts = {(name, p): p for name in positions for p in range(15) if p % 3}
    metadata = metadata_of(positions, starts)
    parts = task_metadata(metadata, tasks)
    assert len(parts) == tasks
    assert sorted(place for part in parts for place in part["places"]) == places_of(metadata)
    assert sorted(r for part in parts for r in part["ranges"]) == sorted(map(list, ranges_of(metadata)))
    for part in parts:
        assert [(r[0], r[2]) for r in part["ranges"]] == [p for p in part["places"] if p in starts]
