"""How tuples become records, in TopicState and TransactionalTopicState alike; and what TopicState does in a replay."""

from __future__ import annotations

import datetime
import decimal
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from contracts.crashing import Driver
from topic_reading import Record, read

from states.kafka import FieldNameBasedTupleToKafkaMapper, RowUpdater, TopicState, TransactionalTopicState
from states.kafka.append.records import RecordForm
from states.kafka.sender import Sender
from states.kafka.settings import Room
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import DefinitionError, FailedException, StateError
from trident_py.kafka.clients import Cluster
from trident_py.model.chunks import Chunk, TupleList
from trident_py.state import SILENT, persist
from trident_py.testing import FixedBatchSpout
from trident_py.tuples import TridentTuple


@pytest.fixture(params=[TopicState, TransactionalTopicState])
def make(request: pytest.FixtureRequest, kafka: Any) -> Iterator[Callable[..., Any]]:
    """``make(**options)``: a factory of either kind on a topic of its own."""
    yield lambda **options: request.param(kafka.bootstrap, kafka.create_topic(partitions=2), **options)


def rows(fields: Any, *values: tuple) -> list[TridentTuple]:
    return [TridentTuple.of(fields, each) for each in values]


def written(factory: Any, tuples: Any, topic: str = "") -> list[Record]:
    """One batch, and what a reader finds then, sorted."""
    state = factory.makeState({}, None, 0, 1)
    persist(state, 1, RowUpdater(), tuples, SILENT)
    state.close()
    return sorted(read(factory.bootstrap, topic or factory.topic), key=repr)


def test_a_text_and_bytes_are_written_as_they_are(make: Any) -> None:
    found = written(make(key="k", value="v"), rows(["k", "v"], ("ä", b"\x00\xff"), ("b", "text")))
    assert {(each.key, each.value) for each in found} == {("ä".encode(), b"\x00\xff"), (b"b", b"text")}


def test_several_fields_are_a_json_object_with_sorted_names(make: Any) -> None:
    day = datetime.date(2026, 2, 1)
    tuples = rows(["b", "a", "day", "price"], (1, "x\"y", day, decimal.Decimal("1.50")), (None, "ä", day, True))
    found = written(make(), tuples)
    assert Counter(each.value for each in found) == {
        b'{"a":"x\\"y","b":1,"day":"2026-02-01","price":"1.50"}': 1,
        '{"a":"ä","b":null,"day":"2026-02-01","price":true}'.encode(): 1,
    }


def test_columns_of_arrow_give_the_same_bytes_as_tuples(make: Any) -> None:
    fields = Fields("k string", "n bigint", "x double")
    values = [(f"k{n}", n if n % 3 else None, n / 4) for n in range(20)]
    batch = TupleList(fields)
    batch.append(Chunk.of_rows(fields, values))
    factory = make(key="k")
    by_columns = written(factory, batch)
    again = type(factory)(factory.bootstrap, factory.topic, key="k").form
    by_tuples = list(again.blocks(rows(["k", "n", "x"], *values)))
    assert Counter((each.key, each.value) for each in by_columns) == Counter(
        pair for block in by_tuples for pair in zip(block.keys or [], block.values, strict=True)
    )
    assert json.loads(by_tuples[0].values[3] or b"") == {"n": None, "x": 0.75}


def test_none_is_a_tombstone_and_a_record_without_a_key(make: Any) -> None:
    found = written(make(key="k", value="v"), rows(["k", "v"], ("gone", None), (None, "kept"), ("empty", "")))
    assert {(each.key, each.value) for each in found} == {(b"gone", None), (None, b"kept"), (b"empty", b"")}


def test_storms_mapper_and_a_callable_make_key_value_and_headers(make: Any) -> None:
    tuples = rows(["key", "message"], ("k", "m"))
    assert [each[1:] for each in written(make(mapper=FieldNameBasedTupleToKafkaMapper()), tuples)] == [
        (b"k", b"m", None)
    ]
    mapper = lambda row: (row[0], {"said": row[1]}, {"from": "here"})  # noqa: E731
    assert [each[1:] for each in written(make(mapper=mapper), tuples)] == [
        (b"k", b'{"said":"m"}', [("from", b"here")])
    ]


def test_fields_become_headers(make: Any) -> None:
    found = written(make(value="v", headers=["h", "n"]), rows(["v", "h", "n"], ("x", "text", 5), ("y", None, 6)))
    assert {(each.value, tuple(each.headers or ())) for each in found} == {
        (b"x", (("h", b"text"), ("n", b"5"))), (b"y", (("h", None), ("n", b"6"))),
    }  # fmt: skip


@pytest.mark.parametrize("how", ["a field", "a callable", "getTopic"])
def test_a_selector_sends_each_record_to_its_topic(kafka: Any, make: Any, how: str) -> None:
    other = kafka.create_topic()

    class Selector:
        def getTopic(self, row: Any) -> Any:
            return row[0]

    selector = {"a field": "to", "a callable": lambda row: row[0], "getTopic": Selector()}[how]
    factory = make(value="v", topicSelector=selector)
    tuples = rows(["to", "v"], (other, "1"), (None, "2"), (other, "3"))
    assert [each.value for each in written(factory, tuples)] == [b"2"]
    assert [each.value for each in read(kafka.bootstrap, other)] == [b"1", b"3"]


@pytest.mark.parametrize(
    ("options", "row", "words"),
    [
        ({"key": "v"}, ("x", float("inf")), ["row 1", "inf"]),
        ({"value": ["t", "v"]}, ("x", object()), ["row 1", "no JSON form"]),
        ({"value": "v", "topicSelector": "v"}, ("x", 7), ["row 1", "names 7, which is not a topic"]),
        ({"mapper": lambda row: row[0]}, ("x", "y"), ["row 0", "it must return (key, value)"]),
        ({"value": "v"}, ("x", "v" * 2_000_000), ["MSG_SIZE_TOO_LARGE", "message.max.bytes"]),
        ({"value": "v"}, ("x", "\ud800"), ["row 1", "cannot be written"]),
    ],
)
def test_a_row_that_is_no_record_is_named_and_nothing_is_written(
    make: Any, options: dict, row: tuple, words: list[str]
) -> None:
    factory = make(**options)
    with pytest.raises(StateError) as told:
        written(factory, rows(["t", "v"], (factory.topic, factory.topic), row))
    for word in [factory.topic, *words]:
        assert word in str(told.value)
    if isinstance(factory, TransactionalTopicState):
        assert read(factory.bootstrap, factory.topic) == []


@pytest.mark.parametrize("value", [["v"], ["v", "w"]])
@pytest.mark.parametrize("bad", ["nested", 1 << 20_000], ids=["nested", "long"])
def test_a_value_that_json_cannot_be_made_of_is_named_with_its_row(value: list[str], bad: Any) -> None:
    good: Any = 1
    if bad == "nested":
        bad = good = []
        for _ in range(3000):
            bad = [bad]
    form = RecordForm.of("t", value)
    with pytest.raises(StateError, match="topic 't', row 1 of the batch: v is <"):
        list(form.blocks(rows(["v", "w"], (good, 1), (bad, 1))))


@pytest.mark.parametrize("factory", [TopicState, TransactionalTopicState])
def test_records_that_are_too_large_together_are_told_the_setting_that_writes_them(kafka: Any, factory: Any) -> None:
    """A broker refuses a batch as a whole, and librdkafka does not send its records again in smaller ones."""
    tuples = rows(["v"], *(("v" * 300,) for _ in range(20)))
    with pytest.raises(StateError, match=r"MSG_SIZE_TOO_LARGE.*set batch.size in the settings below"):
        written(factory(kafka.bootstrap, kafka.create_topic(max_message_bytes=2_000)), tuples)
    small = factory(kafka.bootstrap, kafka.create_topic(max_message_bytes=2_000), settings={"batch.size": 1_000})
    assert len(written(small, tuples)) == 20


@pytest.mark.parametrize("factory", [TopicState, TransactionalTopicState])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mapper": print, "value": "v"}, "a mapper makes key, value and headers"),
        ({"mapper": 5}, "a mapper is a callable"),
        ({"topicSelector": 5}, "a topic selector is a field's name"),
        ({"value": []}, "name at least one field"),
        ({"partitions": 0}, "partitions must be an integer of at least 1"),
        ({"settings": {"group.id": "x"}}, "'group.id' cannot be changed"),
        ({"settings": {"metadata.broker.list": "h:1"}}, "'metadata.broker.list' cannot be changed: it is another name"),
        ({"settings": {"isolation.level": "read_uncommitted"}}, "'isolation.level' cannot be changed"),
    ],
)
def test_what_does_not_fit_is_refused_at_birth(factory: Any, options: dict, words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        factory("host:9092", "t", **options)


@pytest.mark.parametrize("factory", [TopicState, TransactionalTopicState])
def test_fields_that_a_mapper_reads_are_refused_at_definition(factory: Any) -> None:
    stream = TridentTopology().newStream("s", FixedBatchSpout(Fields("word", "n"), 1, ("a", 1)))
    state = factory("host:9092", "t", mapper=FieldNameBasedTupleToKafkaMapper("wrod", "n"))
    with pytest.raises(DefinitionError, match=r"needs the field 'wrod', .* Did you mean 'word'"):
        stream.partitionPersist(state)


def test_a_missing_topic_is_refused_or_made(kafka: Any, make: Any) -> None:
    factory = make()
    name = f"{factory.topic}-not"
    with pytest.raises(StateError, match=f"there is no topic '{name}'. Create it, or let the state create it"):
        written(type(factory)(kafka.bootstrap, name), rows(["a"], ("x",)))
    assert len(written(type(factory)(kafka.bootstrap, name, partitions=3), rows(["a"], ("x",)))) == 1


def test_a_small_queue_keeps_the_order_and_loses_nothing(make: Any) -> None:
    factory = make(key="k", value="v", settings={"queue.buffering.max.messages": 7, "linger.ms": 0})
    found = written(factory, rows(["k", "v"], *[("one", str(n)) for n in range(500)]))
    state_order = [each.value for each in read(factory.bootstrap, factory.topic)]
    assert len(found) == 500
    assert state_order == [str(n).encode() for n in range(500)]


def test_no_more_waits_in_the_process_than_there_is_room_for() -> None:
    """Nobody answers: the records before must have timed out before the next ones are queued."""
    settings = {"message.timeout.ms": 300, "linger.ms": 0, "queue.buffering.max.messages": "7"}
    sender = Sender(Cluster.of("127.0.0.1:1"), settings)
    sender.send("t", [b"x"] * 30)
    assert sender.failures.count >= 30 - 7
    assert "_MSG_TIMED_OUT" in sender.failures.text
    sender.close()
    assert Room({"queue.buffering.max.kbytes": 10}).for_records([b"x" * 924] * 5) == 10
    assert Room({"queue.buffering.max.kbytes": 1}).for_records([b"x" * 9000, None]) == 1
    assert Room({"queue.buffering.max.messages": "0"}).for_records([b""]) == 2_684_354  # by their size alone


def test_in_a_topology_each_new_value_goes_on(make: Any) -> None:
    factory, values = make(), [("a", 1), ("b", 2), ("a", 3)]
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout(Fields("word string", "n bigint"), 2, *values))
    stream.partitionPersist(factory, Fields("word", "n"), RowUpdater(), Fields("word", "n"))
    with LocalCluster() as cluster:
        assert cluster.submitTopology("t", {}, topology.build()).awaitTermination(60)
    found = [json.loads(each.value or b"") for each in read(factory.bootstrap, factory.topic)]
    assert Counter((each["word"], each["n"]) for each in found) == Counter(values)


# -- TopicState


def test_a_replay_writes_again_and_nothing_is_lost(kafka: Any) -> None:
    factory = TopicState(kafka.bootstrap, kafka.create_topic(), value="v")
    state = factory.makeState({}, None, 0, 1)
    for txid in (1, 2, 2):
        persist(state, txid, RowUpdater(), rows(["v"], (f"{txid}",)), SILENT)
    state.close()
    assert [each.value for each in read(kafka.bootstrap, factory.topic)] == [b"1", b"2", b"2"]
    assert factory.kind == "non-transactional"


def test_commit_returns_when_every_record_is_there(kafka: Any) -> None:
    factory = TopicState(kafka.bootstrap, kafka.create_topic(partitions=2), value="v", settings={"linger.ms": 200})
    state = factory.makeState({}, None, 0, 1)
    assert persist(state, 1, RowUpdater(), rows(["v"], *[(str(n),) for n in range(1000)]), SILENT) == {"rows": 1000}
    assert len(read(kafka.bootstrap, factory.topic)) == 1000
    state.close()


def test_a_dead_broker_fails_the_batch_and_the_replay_writes_it(own_kafka: Callable[..., Any]) -> None:
    broker = own_kafka()
    factory = TopicState(broker.bootstrap, broker.create_topic(), value="v", settings={"message.timeout.ms": 4000})
    state = factory.makeState({}, None, 0, 1)
    persist(state, 1, RowUpdater(), rows(["v"], ("a",)), SILENT)
    broker.kill()
    with pytest.raises(FailedException, match="1 of 1 records were not delivered"):
        persist(state, 2, RowUpdater(), rows(["v"], ("b",)), SILENT)
    broker.restart()
    persist(state, 2, RowUpdater(), rows(["v"], ("b",)), SILENT)
    state.close()
    assert [each.value for each in read(broker.bootstrap, factory.topic)] == [b"a", b"b"]


def test_a_record_that_the_topic_refuses_is_no_case_for_a_replay(kafka: Any) -> None:
    compacted = kafka.create_topic(cleanup_policy="compact")
    for kind in (TopicState, TransactionalTopicState):
        with pytest.raises(StateError, match=r"INVALID_RECORD.*takes records with a key only"):
            written(kind(kafka.bootstrap, compacted, value="v"), rows(["v"], ("no key",)))
    assert read(kafka.bootstrap, compacted) == []


# -- TransactionalTopicState


def test_a_record_is_refused_for_good_whenever_in_the_commit_that_is_told(kafka: Any) -> None:
    factory = TransactionalTopicState(kafka.bootstrap, kafka.create_topic(cleanup_policy="compact"), value="v")
    state = factory.makeState({}, None, 0, 1)
    for tried in range(60):  # the refusal comes before, between and behind the requests of the commit
        state.beginCommit(1)
        state.insert(rows(["v"], ("no key",)), tell=False)
        state._producer.producer.flush(tried % 15 / 500)
        with pytest.raises(StateError, match=r"INVALID_RECORD.*takes records with a key only"):
            state.commit(1)


def test_a_header_tells_the_txid_if_it_is_wanted(kafka: Any) -> None:
    factory = TransactionalTopicState(kafka.bootstrap, kafka.create_topic(), value="v", headers="h", txidHeader=True)
    driver = Driver(factory, RowUpdater())
    for txid in (1, 2):
        driver.batch(rows(["v", "h"], (f"{txid}", "x")), txid, of=1)
    assert [each.headers for each in read(kafka.bootstrap, factory.topic)] == [
        [("h", b"x"), ("trident-txid", b"1")], [("h", b"x"), ("trident-txid", b"2")],
    ]  # fmt: skip


def test_records_of_several_topics_are_one_transaction(kafka: Any) -> None:
    first, second = kafka.create_topic(), kafka.create_topic()
    factory = TransactionalTopicState(kafka.bootstrap, first, value="v", topicSelector="to")
    driver = Driver(factory, RowUpdater())
    driver.batch(rows(["v", "to"], ("1", first), ("1", second)), 1, of=1)
    with pytest.raises(StateError):
        driver.run(rows(["v", "to"], ("2", second), ("2", 7)), 2, of=1)
    driver.batch(rows(["v", "to"], ("3", second)), 2, of=1, attempt=1)
    assert [each.value for each in read(kafka.bootstrap, first)] == [b"1"]
    assert [each.value for each in read(kafka.bootstrap, second)] == [b"1", b"3"]
