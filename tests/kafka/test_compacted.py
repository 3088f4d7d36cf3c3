"""CompactedTopicState: what stands in the topic, what is refused, what is read back."""

from __future__ import annotations

import datetime
import decimal
import itertools
import json
import os
import re
from collections.abc import Callable
from typing import Any

import pytest
from compacted_reading import folded, headers, latest
from confluent_kafka.admin import NewPartitions
from contracts.crashing import opened
from servers.waiting import soon

from states.kafka import CompactedTopicState, RowUpdater
from states.kafka.topic_admin import partitions_of
from trident_py.errors import DefinitionError, FailedException, StateError, ZombieError
from trident_py.kafka.clients import Cluster
from trident_py.operations.builtin import Sum
from trident_py.state import SILENT, CombinerValueUpdater, OpaqueValue, TransactionalValue, persist
from trident_py.tuples import TridentTuple

_COUNT = itertools.count()
Make = Callable[..., CompactedTopicState]


@pytest.fixture
def make(kafka: Any) -> Make:
    """A state in a topic of its own, which does not exist yet."""

    def made(key: Any = "word string", value: Any = "n bigint", kind: str = "plain", **more: Any) -> Any:
        topic = f"compacted-{os.getpid()}-{next(_COUNT)}"
        return CompactedTopicState(kafka.bootstrap, topic, key, value, kind, **{"partitions": 2, **more})

    return made


def put(factory: CompactedTopicState, txid: int | None, rows: dict[tuple, Any]) -> None:
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(txid)
    state.multiPut(list(rows), list(rows.values()))
    state.commit(txid)


def get(factory: CompactedTopicState, *keys: tuple) -> list[Any]:
    return factory.makeState({}, None, 0, 1).multiGet(list(keys))


def write(state: Any, txid: int, fields: list[str], *rows: tuple) -> Any:
    return persist(state, txid, RowUpdater(), [TridentTuple.of(fields, row) for row in rows], SILENT)


def driven(factory: CompactedTopicState, **conf: Any) -> tuple[Any, dict]:
    """The participant of one driver, open, and what its tasks are told."""
    participant = factory.participant()
    told = {"topology.name": "t", "trident.state.name": "s", "trident.lineage": "l", **conf}
    return participant, opened(participant, told)


# -- what stands in the topic


def test_a_row_is_a_record_that_every_consumer_reads(make: Make) -> None:
    factory = make("word string", ["n bigint", "what string"])
    state = factory.makeState({}, None, 0, 1)
    fields = ["word", "n", "what"]
    assert write(state, 1, fields, ("a", 1, "x"), ("b", 2, None), ("a", 3, 'y"%s')) == {"partition": 0, "written": 3}
    there = folded(factory.bootstrap, factory.topic)
    assert there == {("a",): {"n": 3, "what": 'y"%s'}, ("b",): {"n": 2, "what": None}}
    assert factory.stored() == {("a",): (3, 'y"%s'), ("b",): (2, None)}


def test_a_row_without_values_is_a_tombstone(make: Make) -> None:
    factory = make("word string", ["n bigint", "what string"])
    state = factory.makeState({}, None, 0, 1)
    write(state, 1, ["word", "n", "what"], ("a", 1, "x"), ("b", 2, "y"), ("c", 3, "z"))
    write(state, 2, ["word", "n", "what"], ("a", None, None))
    state.beginCommit(3)
    state.multiRemove([("b",)])
    state.commit(3)
    records = latest(factory.bootstrap, factory.topic)
    assert [records[key].value for key in (b"a", b"b")] == [None, None]
    assert factory.stored() == {("c",): (3, "z")}
    assert get(factory, ("a",), ("c",)) == [None, (3, "z")]


def test_a_map_removes_with_a_tombstone_that_still_tells_a_replay(make: Make) -> None:
    for kind, stored in (("transactional", (3, None)), ("opaque", (3, None, 5))):
        factory = make(kind=kind)
        put(factory, 2, {("a",): 5, ("b",): 6})
        put(factory, 3, {("a",): None})
        record = latest(factory.bootstrap, factory.topic)[b"a"]
        assert record.value is None
        assert headers(record)["trident-txid"] == b"3"
        assert set(factory.stored()) == {("b",)}
        state = factory.makeState({}, None, 0, 1)
        state.beginCommit(3)
        assert state.backing.multiGet([("a",)]) == [stored]
        state.rollback(3)


def test_txid_and_value_before_are_headers_beside_a_plain_value(make: Make) -> None:
    factory = make(kind="opaque")
    for txid, value in ((1, 1), (2, 5)):
        put(factory, txid, {("a",): value})
    record = latest(factory.bootstrap, factory.topic)[b"a"]
    assert record.value == b"5"
    assert headers(record) == {"trident-generation": b"0", "trident-txid": b"2", "trident-prev": b"1"}
    assert factory.stored() == {("a",): OpaqueValue(2, 5, 1)}


@pytest.mark.parametrize("key", ["k", "k string"])
def test_a_text_key_is_its_own_bytes(make: Make, key: str) -> None:
    factory = make(key)
    rows = {("a",): 1, ("",): 2, ("é\u2028",): 3, ("a b",): 4}
    put(factory, 1, rows)
    assert set(latest(factory.bootstrap, factory.topic)) == {key.encode() for (key,) in rows}
    assert factory.stored() == rows


KEYS = [1, 1.0, True, "1", None, -0.0, 0.0, 0, "", "[1]", '["1"]', "null", [1, "a"], {"a": 2}, 2**70]


@pytest.mark.parametrize("fields", [["k"], ["k", "l"]])
def test_keys_that_differ_in_java_are_different_keys(make: Make, fields: list[str]) -> None:
    factory = make(fields, "v", "opaque")
    keys = [(key,) if len(fields) == 1 else (key, "x") for key in KEYS]
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(1)
    state.multiPut(keys, list(range(len(keys))))
    state.commit(1)
    assert get(factory, *keys) == list(range(len(keys)))
    assert len(latest(factory.bootstrap, factory.topic)) == len(keys)
    found = [(repr(key[0]), value.curr) for key, value in factory.stored().items()]
    assert sorted(found) == sorted((repr(key), value) for value, key in enumerate(KEYS))


def test_a_key_has_the_same_bytes_however_it_is_spelled(make: Make) -> None:
    factory = make("k", "v")
    put(factory, 1, {(("a",),): 1})
    state = factory.makeState({}, None, 0, 1)
    for key in ({"x": 1, "y": [2]}, {"y": [2], "x": 1}, ["a"]):
        state.beginCommit(2)
        state.multiPut([(key,)], [3])
        state.commit(2)
    assert sorted(latest(factory.bootstrap, factory.topic)) == [b'[["a"]]', b'[{"x":1,"y":[2]}]']


def test_keys_go_where_javas_producers_put_them(make: Make) -> None:
    """murmur2 of the bytes, positive, modulo the number of partitions: 21 of b"21" is known from Kafka's own tests."""
    factory = make(partitions=5)
    put(factory, 1, {("21",): 1, ("foobar",): 2, ("a-little-bit-long-string",): 3})
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    for key, record in latest(factory.bootstrap, factory.topic).items():
        assert record.partition == (known[key] & 0x7FFFFFFF) % 5


VALUES: list[tuple[str, list[Any], list[Any]]] = [
    ("bigint", [0, -(2**63), 2**63 - 1], [2**63, 1.0, True, "1"]),
    ("double", [0.5, 3, -1e300], [2**53 + 1, True, float("nan"), float("inf")]),
    ("string", ["", "é\u2028\x00'\"\\"], [1, b"a", "\ud800"]),
    ("boolean", [True, False], [1, "true"]),
    ("binary", [b"", b"\x00\xff"], ["a"]),
    ("date", [datetime.date(2013, 11, 3)], ["2013-11-03"]),
    ("timestamp", [datetime.datetime(2013, 11, 3, 1, 0, 0, 5)], [datetime.date(2013, 11, 3)]),
    ("decimal(5,2)", [decimal.Decimal("123.45")], [decimal.Decimal("1.005"), 1.5]),
    ("", [[1, {"a": None}], "5", 5, 1.5, True, 2**70], [{1: 2}, float("nan"), b"a", datetime.date(2013, 1, 1)]),
]


@pytest.mark.parametrize(("ddl", "good", "bad"), VALUES, ids=[case[0] for case in VALUES])
def test_a_value_comes_back_as_it_was_or_is_refused(make: Make, ddl: str, good: list, bad: list) -> None:
    factory = make("i bigint", f"v {ddl}".strip(), "transactional")
    put(factory, 1, {(i,): value for i, value in enumerate(good)})
    assert get(factory, *((i,) for i in range(len(good)))) == good
    state = factory.makeState({}, None, 0, 1)
    for value in bad:
        state.beginCommit(2)
        with pytest.raises(StateError, match=r"row 1 of the batch \(i=101, v=.*field 'v'.*cannot hold"):
            state.multiPut([(100,), (101,)], [good[0], value])
        state.rollback(2)
    assert (100,) not in factory.stored()


def test_a_global_state_has_one_key(make: Make) -> None:
    factory = make(None, "n bigint", "opaque")
    state = factory.makeState({}, None, 0, 1)
    for txid in (1, 1, 2):
        state.beginCommit(txid)
        state.update(CombinerValueUpdater(Sum(), 4))
        state.commit(txid)
    assert state.get() == 8
    assert factory.stored() == {("$GLOBAL$",): OpaqueValue(2, 8, 4)}
    assert list(latest(factory.bootstrap, factory.topic)) == [b"$GLOBAL$"]
    with pytest.raises(DefinitionError, match="a global aggregate needs key=None"):
        make().makeState({}, None, 0, 1).get()


def test_rows_into_a_map_replace_its_values(make: Make) -> None:
    factory = make("k", "n bigint", "opaque")
    state = factory.makeState({}, None, 0, 1)
    write(state, 1, ["n", "k"], (1, 1), (2, True), (3, 1))
    write(state, 2, ["n", "k"], (9, 1), (None, True))
    assert [(type(key[0]), value) for key, value in factory.stored().items()] == [(int, OpaqueValue(2, 9, 3))]


# -- what is refused


def test_a_plain_topic_is_written_and_not_updated(make: Make) -> None:
    state = make().makeState({}, None, 0, 1)
    with pytest.raises(DefinitionError, match='For persistentAggregate choose kind="opaque"'):
        state.multiUpdate([("a",)], [CombinerValueUpdater(Sum(), 1)])


def test_what_does_not_fit_together_is_told_at_definition(make: Make) -> None:
    for words, more in (
        ("kind must be one of plain", {"kind": "upset"}),
        ("duplicate field", {"value": "word"}),
        ("at least one field", {"key": []}),
        ("unknown type 'wrod'", {"value": "n wrod"}),
        ("partitioner is murmur2", {"settings": {"partitioner": "random"}}),
        ("partitions must be an integer", {"partitions": 0}),
    ):
        with pytest.raises(DefinitionError, match=words):
            make(**more)


def test_rows_with_other_fields_are_refused(make: Make) -> None:
    state = make().makeState({}, None, 0, 1)
    with pytest.raises(DefinitionError, match=r"takes rows of \(word, n\), got the fields \[word, m\]"):
        write(state, 1, ["word", "m"], ("a", 1))


def test_a_key_that_no_field_holds_is_that_of_the_query(make: Make) -> None:
    state = make("n bigint", "v", "opaque").makeState({}, None, 0, 1)
    with pytest.raises(StateError, match=r"key 1 of the query \(n='b'\): .*Convert the value before the query"):
        state.multiGet([[1], ["b"]])


def test_a_missing_topic_is_made_compacted(make: Make, kafka: Any) -> None:
    factory = make(partitions=3, config={"segment.ms": 5000})
    assert [each.level for each in factory.check()] == ["creates"]
    assert factory.stored() == {}
    driven(factory)
    assert [each.text for each in factory.check()] == [f"topic {factory.topic!r} is compacted and has 3 partitions"]
    again = CompactedTopicState(kafka.bootstrap, factory.topic, "word string", "n bigint", partitions=4)
    with pytest.raises(StateError, match=r"has 3 partitions, but the state declares 4.*live in two partitions"):
        driven(again)


BAD = [
    ({"cleanup_policy": "delete"}, "cleanup.policy=delete: it is not compacted", "cleanup.policy=compact"),
    ({"cleanup_policy": "compact,delete"}, "keys that are not written again are dropped", "cleanup.policy=compact"),
    (
        {"cleanup_policy": "compact", "delete_retention_ms": 1000},
        "delete.retention.ms=1000: a tombstone.*must survive a stop of 3600 s", "delete.retention.ms=3600000",
    ),
    (
        {"cleanup_policy": "compact", "max_compaction_lag_ms": 500},
        "max.compaction.lag.ms=500: records may be compacted away", "max.compaction.lag.ms=3600000",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("config", "words", "remedy"), BAD, ids=[str(case[0]) for case in BAD])
def test_a_topic_that_would_lose_keys_is_refused(make: Make, kafka: Any, config: dict, words: str, remedy: str) -> None:
    topic = kafka.create_topic(**config)
    factory = CompactedTopicState(kafka.bootstrap, topic, "word string", "n bigint")
    with pytest.raises(StateError, match=words) as told:
        driven(factory)
    assert topic in str(told.value) and f"--add-config {remedy}" in str(told.value)
    assert [(each.level, each.text) for each in factory.check()] == [("error", str(told.value))]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"replication": 3}, "a start cannot create it. Kafka at .*INVALID_REPLICATION_FACTOR"),
        ({"config": {"segment.size": 1}}, "a start cannot create it. Kafka at .*INVALID_CONFIG.*segment.size"),
        ({"config": {"cleanup.policy": "compacted"}}, "a start cannot create it. Kafka at .*INVALID_CONFIG"),
        ({"config": {"delete.retention.ms": 1000}}, "by the state's config: .*delete.retention.ms=1000: a tombstone"),
    ],
)
def test_a_topic_that_a_start_cannot_create_is_told_before(make: Make, more: dict, words: str) -> None:
    factory = make(**more)
    (found,) = factory.check()
    assert found.level == "error" and re.search(words, found.text), found.text
    assert factory._compaction.find_topic() is None
    with pytest.raises(StateError):
        driven(factory)


def test_keys_that_expire_never_may_have_a_delete_policy(kafka: Any) -> None:
    topic = kafka.create_topic(cleanup_policy="compact,delete", retention_ms=-1, delete_retention_ms=2000)
    factory = CompactedTopicState(kafka.bootstrap, topic, "word string", "n bigint", restart=2)
    assert [each.level for each in factory.check()] == ["ok"]


def test_another_number_of_partitions_is_refused_while_running_and_afterwards(make: Make) -> None:
    factory = make()
    participant, _ = driven(factory)
    participant.prepare(1, 0, 1)
    admin = Cluster.of(factory.bootstrap).admin()
    admin.create_partitions([NewPartitions(factory.topic, 4)])[factory.topic].result(30)
    assert soon(lambda: len(partitions_of(admin, factory.topic)) == 4)  # a broker tells it a moment later
    now = CompactedTopicState(factory.bootstrap, factory.topic, "word string", "n bigint")
    for attempt in (lambda: participant.prepare(2, 0, 1), lambda: driven(now)):
        with pytest.raises(StateError, match=r"had 2 partitions and has 4.*a key would live in two partitions") as told:
            attempt()
    assert [(each.level, each.text) for each in now.check()] == [("error", str(told.value))]


def test_a_record_without_a_key_is_found(kafka: Any) -> None:
    topic = kafka.create_topic()
    producer = Cluster.of(kafka.bootstrap).producer({})
    producer.produce(topic, b"5")
    assert producer.flush(30) == 0
    admin = Cluster.of(kafka.bootstrap).admin()
    _altered(admin, topic, "cleanup.policy", "compact")
    factory = CompactedTopicState(kafka.bootstrap, topic, "word string", "n bigint")
    with pytest.raises(StateError, match="partition 0, offset 0: a record without a key"):
        factory.stored()


def _altered(admin: Any, topic: str, name: str, value: str) -> None:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    (done,) = admin.incremental_alter_configs([asked]).values()
    done.result(30)


def test_what_another_program_wrote_is_told_with_the_topic(make: Make) -> None:
    factory = make("k bigint", "n bigint")
    put(factory, 1, {(1,): 1})
    producer = Cluster.of(factory.bootstrap).producer({})
    for key, value, words in (
        (b"[2]", b"oops", "value b'oops' is not JSON"), (b"[2]", b'"a"', "value 'a' does not match"),
        (b"two", b"5", "key b'two' does not match"),
    ):  # fmt: skip
        producer.produce(factory.topic, value, key)
        assert producer.flush(30) == 0
        with pytest.raises(StateError, match=words):
            factory.stored()
        producer.produce(factory.topic, None, key)


# -- fences


def test_an_open_producer_of_an_older_driver_writes_nothing_any_more(make: Make) -> None:
    """It was in the middle of a batch when the newer one began."""
    factory = make()
    participant, conf = driven(factory)
    participant.prepare(1, 0, 1)
    old = factory.makeState(conf, None, 0, 1)
    write(old, 1, ["word", "n"], ("a", 1))
    participant, conf = driven(factory)
    participant.prepare(1, 0, 1)
    new = factory.makeState(conf, None, 0, 1)
    write(new, 2, ["word", "n"], ("a", 2))
    with pytest.raises(FailedException):
        write(old, 2, ["word", "n"], ("a", 99))
    with pytest.raises(ZombieError):
        write(old, 2, ["word", "n"], ("a", 99))
    assert factory.stored() == {("a",): 2}


def test_a_batch_is_invisible_until_its_commit_and_gone_after_a_rollback(make: Make) -> None:
    factory = make(kind="transactional")
    put(factory, 1, {("a",): 1})
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(2)
    state.multiPut([("a",)], [2])
    assert state.multiGet([("a",)]) == [2]
    assert get(factory, ("a",)) == [1]
    state.rollback(2)
    assert state.multiGet([("a",)]) == get(factory, ("a",)) == [1]
    state.beginCommit(2)
    state.multiPut([("a",)], [3])
    state.commit(2)
    assert factory.stored() == {("a",): TransactionalValue(2, 3)}


def test_a_queue_that_is_smaller_than_the_batch_is_no_limit(make: Make) -> None:
    factory = make(settings={"queue.buffering.max.messages": 1000})
    state = factory.makeState({}, None, 0, 1)
    rows = [(f"k{n % 20_000}", n) for n in range(30_000)]
    write(state, 1, ["word", "n"], *rows)
    assert factory.stored() == {(word,): n for word, n in rows}
    assert json.loads(latest(factory.bootstrap, factory.topic)[b"k0"].value or b"") == 20_000
