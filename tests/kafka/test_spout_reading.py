"""KafkaSpout: what is in the topics comes out, once, in batches that are the same whenever they are emitted."""

from __future__ import annotations

import datetime
import io
import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from spout_support import (
    Player,
    again,
    all_of,
    decided,
    eventually,
    flat,
    produce,
    transaction,
    transactional,
    values,
    when_ready,
)

from trident_py.errors import SpoutError
from trident_py.kafka import Avro, Json, KafkaSpout, open_transactions
from trident_py.tuples import TransactionAttempt


@pytest.fixture
def play(kafka: Any) -> Iterator[Callable[..., Player]]:
    """``play(topics, partitions=1, **options)``: a run of a spout that ends with what is there now."""
    made: list[Player] = []

    def start(topics: Any, partitions: int = 1, **options: Any) -> Player:
        options = {"endingOffsets": "latest", "fields": "value", "value": "string", **options}
        made.append(Player(KafkaSpout(kafka.bootstrap, topics, **options), partitions=partitions))
        return made[-1]

    yield start
    for player in made:
        player.close()


def numbers(count: int, start: int = 0) -> list[str]:
    return [str(n) for n in range(start, start + count)]


# Fields


def test_the_default_fields_are_those_of_storm(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic(partitions=2)
    produce(kafka, topic, [b"a", None], partition=1, key=b"k")
    player = play(topic, fields=None, value="bytes")
    assert list(player.infos[0].fields.declarations()) == [
        "topic string", "partition int", "offset bigint", "key binary", "value binary",
    ]  # fmt: skip
    assert flat(player.batch(1)) == [(topic, 1, 0, b"k", b"a"), (topic, 1, 1, b"k", None)]


def test_headers_and_timestamps_are_fields_too(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic(retention_ms=-1)
    produce(kafka, topic, ["a"], headers=[("h", b"1"), ("h", None)], timestamp=1_700_000_000_123)
    produce(kafka, topic, ["b"], timestamp=1_700_000_000_124)
    rows = flat(play(topic, fields=["value", "headers", "timestamp"]).batch(1))
    first = datetime.datetime(2023, 11, 14, 22, 13, 20, 123_000, datetime.UTC)
    assert rows == [("a", [("h", b"1"), ("h", None)], first), ("b", [], first.replace(microsecond=124_000))]


def test_typed_fields_are_arrow_columns(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic()
    produce(kafka, topic, ['{"n": 1}'], key=b"k")
    fields = ["topic", "partition", "offset", "key", "value", "timestamp"]
    player = play(topic, fields=fields, value=Json("n bigint"))
    payload = player.describe(1)[0].payload
    (chunk,) = player.tasks[0, 0].chunks(TransactionAttempt(1, 0), payload)
    assert {name: column.type for name, column in chunk.columns.items()} == {
        "topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "key": pa.binary(), "n": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }  # fmt: skip


# Formats


def test_json_becomes_typed_fields_and_what_is_missing_is_none(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic()
    records = ['{"s": "a", "t": 1.5, "x": 0}', '{"t": 2}', None, '{\n"s": "b", "t": null}']
    produce(kafka, topic, records)
    player = play(topic, fields=["offset", "value"], value=Json("s string, t double"))
    assert flat(player.batch(1)) == [(0, "a", 1.5), (1, None, 2.0), (2, None, None), (3, "b", None)]


@pytest.mark.parametrize(
    "records",
    [
        ['{"s": "a"}\n{"s": "b"}', " "],
        ['{"s": "a"}{"s": "b"}'],
        ["", '{"s": "a"}\n{"s": "b"}'],
        ['{"s":', '"a"}{"s":"b"}'],
        ['{"s": "a"}\n{"s": "b"}', '{"s":\n"c"'],
        [b'{"s": "\xff"}'],
    ],
)
def test_what_is_not_one_object_in_each_record_is_never_taken_for_it(kafka: Any, play: Any, records: list[Any]) -> None:
    topic = kafka.create_topic()
    produce(kafka, topic, records)
    with pytest.raises(SpoutError, match="cannot be read"):
        play(topic, value=Json("s string")).batch(1)


def test_json_without_fields_is_any_value(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic()
    produce(kafka, topic, ['{"a": [1]}', "7", None])
    assert values(play(topic, value=Json()).batch(1)) == [{"a": [1]}, 7, None]


SCHEMA = {
    "type": "record", "name": "Reading",
    "fields": [
        {"name": "sensor", "type": "string"}, {"name": "temp", "type": ["null", "double"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}  # fmt: skip


@pytest.mark.parametrize("confluent", [False, True])
def test_avro_records_become_fields(kafka: Any, play: Any, confluent: bool) -> None:
    topic = kafka.create_topic()
    at = datetime.datetime(2024, 1, 2, 3, 4, 5, 678_000, datetime.UTC)
    records = [
        {"sensor": "a", "temp": 1.5, "at": at, "tags": ["x"]}, {"sensor": "b", "temp": None, "at": at, "tags": []},
    ]  # fmt: skip
    produce(kafka, topic, [encoded(record, b"\0\0\0\0\7" if confluent else b"") for record in records])
    player = play(topic, value=Avro(json.dumps(SCHEMA), confluent=confluent))
    assert player.infos[0].fields.declarations() == ["sensor string", "temp double", "at timestamp", "tags"]
    assert flat(player.batch(1)) == [("a", 1.5, at, ["x"]), ("b", None, at, [])]


def encoded(record: dict, before: bytes) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(SCHEMA), record)
    return before + stream.getvalue()


BAD = {
    "string": (b"\xff", "b"),
    Json("n bigint"): ('{"n": "one"}', '{"n": 2}'),
    Json("at timestamp"): ('{"at": "0001-01-01T00:00:00+01:00"}', '{"at": "0001-01-01T00:00:00Z"}'),
    Json("day date"): ('{"day": "0000-06-01"}', '{"day": "9999-12-31"}'),  # Arrow has the year 0, Python has not
    Avro(SCHEMA): (b"\x02", encoded({"sensor": "b", "temp": None, "at": 0, "tags": []}, b"")),
}


@pytest.mark.parametrize("form", BAD, ids=str)
def test_a_record_that_cannot_be_read_is_named_by_its_place(kafka: Any, play: Any, form: Any) -> None:
    topic = kafka.create_topic()
    bad, good = BAD[form]
    produce(kafka, topic, [good, good, bad])
    with pytest.raises(SpoutError) as raised:
        play(topic, value=form).batch(1)
    assert f"topic {topic}, partition 0, offset 2: its value cannot be read" in str(raised.value)
    assert 'onBadRecord="skip"' in str(raised.value)


@pytest.mark.parametrize("form", BAD, ids=str)
def test_bad_records_are_skipped_if_told_so_and_reported(kafka: Any, play: Any, form: Any) -> None:
    topic = kafka.create_topic()
    bad, good = BAD[form]
    produce(kafka, topic, [bad, good, bad, good])
    player = play(topic, fields=["offset", "value"], value=form, onBadRecord="skip")
    reported: list[str] = []
    player.tasks[0, 0].report_to(lambda error: reported.append(str(error)))
    assert [row[0] for row in flat(player.batch(1))] == [1, 3]
    (told,) = reported
    assert "2 records were skipped" in told and f"topic {topic}, partition 0, offset 0" in told


def test_which_records_are_bad_does_not_depend_on_the_fields_that_are_read(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic()
    produce(kafka, topic, ["nonsense", '{"n": 1}'])
    player = play(topic, value=Json("n bigint"), onBadRecord="skip")
    payload = player.describe(1)[0].payload
    assert [c.length for c in player.tasks[0, 0].chunks(TransactionAttempt(1, 0), payload, [])] == [1]


# Translators


def test_a_translator_makes_the_values_and_none_makes_no_tuple(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic(retention_ms=-1)
    produce(kafka, topic, ["1", "skip", "2"], key=b"k", headers=[("h", b"x")], timestamp=1000)

    def translate(record: Any) -> Any:
        assert (record.topic, record.partition, record.headers) == (topic, 0, [("h", b"x")])
        assert record.timestamp.timestamp() == 1
        return None if record.value == "skip" else [record.key, int(record.value), record.offset]

    player = play(topic, fields=["k", "n bigint", "at"], translator=translate)
    assert flat(player.batch(1)) == [(b"k", 1, 0), (b"k", 2, 2)]


def test_each_topic_may_have_its_own_translator(kafka: Any, play: Any) -> None:
    one, two, three = (kafka.create_topic() for _ in range(3))
    for topic in (one, two, three):
        produce(kafka, topic, ["v"])
    by_topic = {
        one: lambda r: ["one", r.value], two: lambda r: ["two", r.value], None: lambda r: ["other", r.topic],
    }  # fmt: skip
    rows = flat(play([one, two, three], fields=["which", "what"], translator=by_topic).batch(1))
    assert sorted(rows) == [("one", "v"), ("other", three), ("two", "v")]


def test_an_error_of_a_translator_is_the_users_own_and_says_where(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic()
    produce(kafka, topic, ["1", "zero"])
    with pytest.raises(ValueError) as raised:
        play(topic, fields="n", translator=lambda record: [int(record.value)]).batch(1)
    assert raised.value.__notes__ == [f"in the translator, at topic {topic}, partition 0, offset 1"]


def test_a_translator_with_the_wrong_number_of_values_is_told(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic()
    produce(kafka, topic, ["1"])
    with pytest.raises(SpoutError, match="Expected 2 fields but got 1"):
        play(topic, fields=["a", "b"], translator=lambda record: [record.value]).batch(1)


# Batches


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_every_record_comes_once_and_in_order_of_its_partition(kafka: Any, play: Any, tasks: int) -> None:
    topic = kafka.create_topic(partitions=4)
    for partition in range(4):
        produce(kafka, topic, numbers(100 * partition), partition)
    player = play(topic, partitions=tasks, fields=["partition", "value"], maxRecordsPerBatch=70)
    batches = player.to_end()
    assert max(len(flat(batch)) for batch in batches) <= 70
    rows = [row for batch in batches for row in flat(batch)]
    for partition in range(4):
        assert [value for p, value in rows if p == partition] == numbers(100 * partition)
    assert len(rows) == 600


def test_a_batch_is_shared_in_proportion_to_what_waits_and_nobody_starves(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic(partitions=3)
    for partition, count in enumerate((900, 90, 3)):
        produce(kafka, topic, numbers(count), partition)
    player = play(topic, fields="partition", maxRecordsPerBatch=100)
    first = [p for (p,) in flat(player.batch(1))]
    assert len(first) == 100
    assert 88 <= first.count(0) <= 92 and 8 <= first.count(1) <= 10
    small = [[p for (p,) in flat(player.batch(txid))].count(2) for txid in range(2, 6)]
    assert sum(small) + first.count(2) >= 1


@pytest.mark.parametrize("seed", range(4))
def test_a_batch_emitted_again_from_its_metadata_is_identical(kafka: Any, play: Any, seed: int) -> None:
    """Transactions that commit and abort, in several partitions, in batches and tasks of any size."""
    choose = random.Random(seed)
    topic = kafka.create_topic(partitions=3)
    producers = [transactional(kafka, f"{topic}-{n}") for n in range(2)]
    expected: list[str] = []
    for step in range(30):
        commit = choose.random() < 0.6
        made = [f"{step}.{n}" for n in range(choose.randrange(1, 30))]
        transaction(choose.choice(producers), topic, made, commit, choose.randrange(3))
        expected += made if commit else []
    decided(kafka, topic, 3)
    tasks = choose.randrange(1, 4)
    player = play(topic, partitions=tasks, maxRecordsPerBatch=choose.randrange(5, 80))
    batches = dict(enumerate(player.to_end(), 1))
    assert sorted(values(list(batches.values()))) == sorted(expected)
    for txid in choose.sample(sorted(batches), 5):
        assert again(player, txid, tasks) == batches[txid]
        assert player.emit(txid, 1) == batches[txid], "the tasks that have gone on emit it again as well"


def test_aborted_records_and_marks_at_the_end_of_a_range_hold_nothing_up(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic()
    producer = transactional(kafka, topic)
    transaction(producer, topic, ["a", "b"])  # offsets 0 1, the mark is 2
    transaction(producer, topic, ["x", "y"], commit=False)  # 3 4, the mark is 5
    decided(kafka, topic)
    begun = time.monotonic()
    assert all_of(play(topic)) == [["a", "b"]]
    assert all_of(play(topic, maxRecordsPerBatch=1)) == [["a"], ["b"], [], [], [], []]
    assert all_of(play(topic, maxRecordsPerBatch=4)) == [["a", "b"], []]
    assert time.monotonic() - begun < 20


def test_an_open_transaction_is_waited_for_and_nothing_behind_it_is_read(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic()
    producer = transactional(kafka, topic)
    producer.begin_transaction()
    producer.produce(topic, "open")
    producer.flush()
    produce(kafka, topic, ["behind"])
    player = play(topic, endingOffsets=None)
    assert values(player.batch(1)) == []
    assert not player.coordination.ready(2)
    producer.commit_transaction()
    assert values(when_ready(player, 2)) == ["open", "behind"]


def test_a_transaction_that_does_not_end_is_told_once_with_the_way_out(
    kafka: Any, play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_transactions, "ASKED", 0.05)
    monkeypatch.setattr(open_transactions, "LONG", 0.3)
    topic = kafka.create_topic(partitions=2)
    produce(kafka, topic, ["before"])
    producer = transactional(kafka, topic)
    producer.begin_transaction()
    producer.produce(topic, "open", partition=0)
    producer.flush()
    produce(kafka, topic, ["behind"])
    player = play(topic, endingOffsets=None)
    assert values(when_ready(player, 1)) == ["before"]
    eventually(lambda: not player.coordination.ready(2) and player.reported)
    ((_, told),) = player.reported
    assert f"topic {topic}, partition 0: 2 offsets from 1 on lie behind a transaction" in told
    assert "kafka-transactions.sh" in told
    producer.commit_transaction()
    assert values(when_ready(player, 2)) == ["open", "behind"]
    assert len(player.reported) == 1


def test_transactions_that_end_are_not_told_however_many_there_are() -> None:
    told: list[str] = []
    ends: dict[tuple[str, int], int] = {}
    watched = open_transactions.OpenTransactions(lambda places: ends, told.append)
    for minute in range(60):
        ends["t", 0] = 10 * minute + 5
        watched.compare({("t", 0): 10 * (minute // 14)}, 60.0 * minute)  # another one every 14 minutes
    assert told == []
    for minute in range(60, 90):
        watched.compare({("t", 0): 40}, 60.0 * minute)
    assert len(told) == 1 and "open for 15 minutes" in told[0]


def test_uncommitted_records_are_read_if_told_so(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic()
    transaction(transactional(kafka, topic), topic, ["aborted"], commit=False)
    produce(kafka, topic, ["plain"])
    decided(kafka, topic)
    assert all_of(play(topic, isolationLevel="read_uncommitted")) == [["aborted", "plain"]]
    assert all_of(play(topic)) == [["plain"]]


def test_batches_that_follow_one_another_read_ahead_and_never_seek(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic(partitions=2)
    for partition in range(2):
        produce(kafka, topic, numbers(2_000, 2_000 * partition), partition)
    player = play(topic, maxRecordsPerBatch=1_000)
    first = player.batch(1)
    reader = player.tasks[0, 0]._emitter._reader
    consumer = reader._consumer
    rows = values([first, *(player.batch(txid) for txid in range(2, 5))])
    assert reader._consumer is consumer
    assert sorted(rows, key=int) == numbers(4_000)


def test_partitions_that_are_far_ahead_wait_for_their_turn(kafka: Any, play: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("trident_py.kafka.reader.HELD", 20_000)
    topic = kafka.create_topic(partitions=3)
    for partition in range(3):
        produce(kafka, topic, [f"{partition}.{n}.{'x' * 200}" for n in range(3_000)], partition)
    rows = values([rows for batch in play(topic, maxRecordsPerBatch=4_000).to_end() for rows in batch])
    assert sorted(rows) == sorted(f"{p}.{n}.{'x' * 200}" for p in range(3) for n in range(3_000))


def test_the_rate_is_kept(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic()
    produce(kafka, topic, numbers(1_000))
    player = play(topic, maxRecordsPerSecond=500)
    begun = time.monotonic()
    sizes = [len(batch) for batch in all_of(player)]
    assert sum(sizes) == 1_000
    assert time.monotonic() - begun > 0.9 * 1_000 / 500 - 0.1
    assert min(sizes[:-1]) >= 50, "not a batch for every record"


def test_a_spout_with_nothing_to_read_asks_seldom_and_answers_soon(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic()
    player = play(topic, endingOffsets=None)
    eventually(lambda: player.batch(1) is not None)
    looks = counted(player)
    begun = time.monotonic()
    eventually(lambda: player.coordination.ready(2) or time.monotonic() - begun > 0.5)
    assert looks() <= 60, "in half a second"
    produce(kafka, topic, ["a"])
    before = looks()
    assert values(when_ready(player, 2)) == ["a"]
    assert looks() - before <= 5, "the next look sees it"


def counted(player: Player) -> Callable[[], int]:
    """How often the cluster has been asked from now on."""
    watch = player.coordination._coordinators[0]._coordinator._watch
    asked: list[int] = []
    before = watch.ends
    watch.ends = lambda places: asked.append(1) or before(places)
    return lambda: len(asked)
