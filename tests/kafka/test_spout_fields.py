"""Every field of a record, whatever the client may give there: what was written comes out, or the record is named."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spout_support import PATIENCE, Player, TransactionAttempt, flat

from trident_py.errors import SpoutError
from trident_py.kafka import KafkaSpout
from trident_py.kafka.records import FIRST, LAST, KafkaRecord, PartitionMessages, RecordParser, Skipped

ALL = ["offset", "key", "value", "headers", "timestamp"]
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECONDS = 1_700_000_000_000_000
LONGEST = (1 << 63) - 1

EDGES = [-1, -2, 1, FIRST - 1, FIRST, LAST, LAST + 1, MICROSECONDS, MICROSECONDS * 1000, LONGEST, -LONGEST]
TIMES = (st.sampled_from(EDGES) | st.integers(FIRST, LAST) | st.integers(-LONGEST, LONGEST)).filter(bool)
BYTES = st.none() | st.binary(max_size=9)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4)
HEADERS = st.lists(st.tuples(NAMES, BYTES), max_size=3)
RECORDS = st.lists(st.tuples(BYTES, BYTES, HEADERS, TIMES), min_size=1, max_size=8)
EACH = {"suppress_health_check": [HealthCheck.function_scoped_fixture], "deadline": None}


@pytest.fixture
def topic(kafka: Any) -> str:
    return str(kafka.create_topic(message_timestamp_after_max_ms=LONGEST, retention_ms=-1))


@pytest.fixture
def play(kafka: Any) -> Iterator[Callable[..., Player]]:
    made: list[Player] = []

    def start(topic: str, **options: Any) -> Player:
        made.append(Player(KafkaSpout(kafka.bootstrap, topic, endingOffsets="latest", **options)))
        return made[-1]

    yield start
    for player in made:
        player.close()


def write(kafka: Any, topic: str, records: list[tuple]) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 0})
    for key, value, headers, millis in records:
        producer.produce(topic, value, key, headers=headers, timestamp=millis)
    assert producer.flush(PATIENCE) == 0


def fits(millis: int) -> bool:
    return FIRST <= millis <= LAST


def time(millis: int) -> datetime.datetime | None:
    return None if millis == -1 else EPOCH + datetime.timedelta(milliseconds=millis)


@settings(max_examples=25, **EACH)
@given(records=RECORDS)
def test_what_was_written_comes_out_and_what_cannot_is_skipped(kafka: Any, play: Any, records: list[tuple]) -> None:
    topic = kafka.create_topic(message_timestamp_after_max_ms=LONGEST, retention_ms=-1)
    write(kafka, topic, records)
    rows = flat(play(topic, fields=ALL, onBadRecord="skip").batch(1))
    wanted = [(at, k, v, headers, time(m)) for at, (k, v, headers, m) in enumerate(records) if fits(m)]
    assert rows == wanted


@settings(max_examples=25, **EACH)
@given(records=RECORDS)
def test_a_translator_gets_every_record_with_its_number(kafka: Any, play: Any, records: list[tuple]) -> None:
    topic = kafka.create_topic(message_timestamp_after_max_ms=LONGEST, retention_ms=-1)
    write(kafka, topic, records)
    spout = play(topic, fields=["key", "value", "headers", "millis"],
                 translator=lambda r: [r.key, r.value, r.headers, r.millis])  # fmt: skip
    assert flat(spout.batch(1)) == [(k, v, headers, None if m == -1 else m) for k, v, headers, m in records]


@pytest.mark.parametrize("fields", [["timestamp"], ["value", "timestamp"], ALL])
def test_a_time_stamp_in_microseconds_is_a_bad_record(kafka: Any, play: Any, topic: str, fields: list[str]) -> None:
    write(kafka, topic, [(None, b"a", [], 1), (None, b"b", [], MICROSECONDS), (None, b"c", [], 2)])
    with pytest.raises(SpoutError) as raised:
        play(topic, fields=fields).batch(1)
    for words in (f"topic {topic}, partition 0, offset 1: its timestamp", "micro- or nano", "record.millis", "skip"):
        assert words in str(raised.value)
    assert len(flat(play(topic, fields=fields, onBadRecord="skip").batch(1))) == 2


def test_a_translator_that_reads_such_a_time_has_a_bad_record(kafka: Any, play: Any, topic: str) -> None:
    write(kafka, topic, [(None, b"a", [], 1), (None, b"b", [], MICROSECONDS)])
    options: dict[str, Any] = {"fields": ["at"], "translator": lambda record: [record.timestamp]}
    with pytest.raises(SpoutError, match="offset 1: its timestamp cannot be read"):
        play(topic, **options).batch(1)
    assert flat(play(topic, onBadRecord="skip", **options).batch(1)) == [(time(1),)]


def test_whether_a_time_is_bad_does_not_depend_on_who_looks(kafka: Any, play: Any, topic: str) -> None:
    write(kafka, topic, [(None, b"a", [], MICROSECONDS), (None, b"b", [], 1)])
    player = play(topic, fields=["value", "timestamp"], onBadRecord="skip")
    payload = player.describe(1)[0].payload
    chunks = player.tasks[0, 0].chunks(TransactionAttempt(1, 0), payload, ["value"])
    assert [chunk.length for chunk in chunks] == [1]


class Message:
    """What the client gives where no broker of today can make it: a log of a format without time stamps, and a header
    whose name is not UTF-8."""

    def __init__(self, headers: Any) -> None:
        self._headers = headers

    def headers(self) -> Any:
        if isinstance(self._headers, Exception):
            raise self._headers
        return self._headers

    def timestamp(self) -> tuple[int, int]:
        return 0, -1

    def key(self) -> None:
        return None

    value = key

    def offset(self) -> int:
        return 7


def test_a_header_that_the_client_cannot_read_and_a_log_without_times() -> None:
    strange = Message(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"))
    group = [PartitionMessages(("t", 0), [Message(None), strange, Message([])])]
    spout = KafkaSpout("host:1", "t", fields=ALL, onBadRecord="skip")
    chunk = RecordParser(spout, skipped := Skipped()).chunk(group, ALL)
    assert list(chunk.rows(spout.output)) == [(7, None, None, [], None)] * 2
    assert skipped.count == 1 and "its headers cannot be read" in skipped.first
    with pytest.raises(SpoutError, match="offset 7: its headers cannot be read"):
        RecordParser(KafkaSpout("host:1", "t", fields=ALL), Skipped()).chunk(group, ["offset"])


def test_the_time_of_a_record_is_exact() -> None:
    for millis in (FIRST, -1_001, 1_700_000_000_123, LAST):
        assert KafkaRecord("t", 0, 0, None, None, [], millis).timestamp == time(millis)
