"""Records of Kafka whose bytes no format expects: named with topic, partition and offset, or skipped and counted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident_py.errors import SpoutError
from trident_py.kafka import Avro, Json, KafkaSpout
from trident_py.kafka.records import KafkaRecord, PartitionMessages, RecordParser, Skipped

from .drawing import VALUES, damaged, often, refusal

SCHEMA = {"type": "record", "name": "r", "fields": [
    {"name": "n", "type": "long"}, {"name": "s", "type": ["null", "string"]},
    {"name": "xs", "type": {"type": "array", "items": "double"}}, {"name": "m", "type": {"type": "map",
    "values": "bytes"}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}, {"name": "e",
    "type": {"type": "enum", "name": "e", "symbols": ["A"]}},
]}  # fmt: skip
OBJECT = {"n": 5, "t": 1.5, "d": "1.25", "s": "é", "b": "AAE=", "at": "2013-11-03T06:00:00", "x": [1, {"a": None}]}


def avro() -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(
        out, fastavro.parse_schema(SCHEMA), {"n": 1, "s": "a", "xs": [1.5], "m": {"k": b"v"}, "at": 0, "e": "A"}
    )
    return out.getvalue()


FORMATS: dict[str, tuple[Any, bytes]] = {
    "string": ("string", "text é".encode()), "bytes": ("bytes", b"\xff\x00"),
    "json": (Json(), json.dumps(OBJECT).encode()), "fields": (Json("n bigint, t double, s string"),
    json.dumps(OBJECT).encode()),
    "types": (Json("n int, t float, d decimal(9,2), s string, b binary, at timestamp_ntz, x"),
    json.dumps(OBJECT).encode()),
    "avro": (Avro(json.dumps(SCHEMA)), avro()), "registry": (Avro(json.dumps(SCHEMA), confluent=True),
    b"\0\0\0\0\1" + avro()),
}  # fmt: skip


@dataclass(frozen=True)
class Message:
    """What the client gives of a record."""

    at: int
    data: bytes | None
    millis: int = 1

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes | None:
        return self.data

    def value(self) -> bytes | None:
        return self.data

    def headers(self) -> list[tuple[str, bytes | None]]:
        return [("h", self.data)]

    def timestamp(self) -> tuple[int, int]:
        return 1, self.millis

    def __len__(self) -> int:
        return len(self.data or b"")


def contents(form: str) -> st.SearchStrategy[bytes | None]:
    made = VALUES.map(lambda value: json.dumps(value, default=str).encode())
    wrong = st.fixed_dictionaries(dict.fromkeys("ntdsb", VALUES) | {"at": VALUES}).map(
        lambda value: json.dumps(value).encode()
    )
    return st.one_of(damaged(FORMATS[form][1]), st.binary(max_size=20), made, wrong, st.none())


def read(options: Any, messages: list[Message]) -> tuple[list[Any], Skipped]:
    skipped = Skipped()
    fields = options.output
    chunk = RecordParser(options, skipped).chunk([PartitionMessages(("events", 3), messages)], fields)
    return list(chunk.rows(fields)), skipped


@pytest.mark.parametrize("form", FORMATS)
@often(25, 400)
@given(data=st.data())
def test_any_bytes_in_a_record(form: str, data: st.DataObject) -> None:
    option, fine = FORMATS[form]
    drawn = data.draw(st.lists(contents(form), min_size=1, max_size=3))
    times = data.draw(st.lists(st.sampled_from([1, -1, 2**62, -(2**62)]), min_size=len(drawn), max_size=len(drawn)))
    bad = [Message(10 + at, *each) for at, each in enumerate(zip(drawn, times, strict=True))]
    messages = [Message(9, fine), *bad, Message(20, fine)]
    for part in ("key", "value"):
        more = {"fields": ["offset", part, "timestamp"], part: option}
        options = KafkaSpout("nowhere:1", "events", **more)
        error = refusal(lambda options=options: read(options, messages), "topic events, partition 3, offset 1")
        assert error is None or isinstance(error, SpoutError)
        rows, skipped = read(KafkaSpout("nowhere:1", "events", onBadRecord="skip", **more), messages)
        assert (error is None) == (skipped.count == 0)
        assert [row[0] for row in rows][:: max(1, len(rows) - 1)] == [9, 20], "the good records around them"
        assert len(rows) + skipped.count == len(messages)
        mended = [Message(message.at, fine) for message in messages]
        assert [row[0] for row in read(options, mended)[0]] == [message.at for message in messages]


@often(25, 200)
@given(drawn=st.lists(contents("types"), min_size=1, max_size=3))
def test_a_translator_gets_every_record_that_can_be_read(drawn: list[bytes | None]) -> None:
    fine = FORMATS["json"][1]
    messages = [Message(9, fine), *(Message(10 + at, each) for at, each in enumerate(drawn))]
    seen: list[KafkaRecord] = []
    options = KafkaSpout("nowhere:1", "events", fields=["n"], value=Json(), onBadRecord="skip",
                         translator=lambda record: seen.append(record) or [record.offset])  # fmt: skip
    rows, skipped = read(options, messages)
    assert [record.offset for record in seen] == [row[0] for row in rows] and len(rows) + skipped.count == len(messages)
