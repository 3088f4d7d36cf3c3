"""The producer of a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from confluent_kafka import KafkaError
from gateway_process import records

from trident_py.extras.gateway.producer import KafkaSink, Message
from trident_py.extras.gateway.settings import GatewayKafka


def with_sink(kafka: Any, topic: str, use: Callable[[KafkaSink], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        given = {"bootstrap": kafka.bootstrap, "topic": topic, **settings}
        sink = KafkaSink(GatewayKafka.model_validate(given), 1_000_000)
        try:
            await use(sink)
        finally:
            await asyncio.to_thread(sink.close, 5)

    asyncio.run(run())


def test_every_message_of_a_call_is_confirmed_by_itself(kafka: Any) -> None:
    topic = kafka.create_topic(max_message_bytes=2_000)

    async def use(sink: KafkaSink) -> None:
        messages = [Message("a", b"{}", "1"), Message("b", b"x" * 5_000, "2")]
        assert await sink.send(messages[:1]) == [None]
        assert await sink.send(messages[1:]) == ["MSG_SIZE_TOO_LARGE"]
        assert sink.away is None  # Kafka is well; the message is not
        assert await sink.send([Message("c", b"x" * 3_000_000, "3"), messages[0]]) == ["MSG_SIZE_TOO_LARGE", None]

    with_sink(kafka, topic, use)
    assert [(each.key, each.headers) for each in records(kafka.bootstrap, topic)] == [
        ("a", {"fingerprint": "a", "payload": "1"})
    ] * 2


def test_small_messages_that_are_too_large_together_are_sent_one_by_one(kafka: Any) -> None:
    topic = kafka.create_topic(max_message_bytes=2_000)
    many = [Message(str(number), b"[%s]" % (b" " * 300), "1") for number in range(20)]

    async def use(sink: KafkaSink) -> None:
        assert await sink.send([*many, Message("large", b"x" * 5_000, "2")]) == [*[None] * 20, "MSG_SIZE_TOO_LARGE"]

    with_sink(kafka, topic, use)
    assert sorted(each.key for each in records(kafka.bootstrap, topic)) == sorted(message.key for message in many)


def test_a_producer_that_cannot_go_on_is_replaced(kafka: Any) -> None:
    topic = kafka.create_topic()

    async def use(sink: KafkaSink) -> None:
        assert await sink.send([Message("a", b"{}", "1")]) == [None]
        first = sink._producer
        sink._on_error(KafkaError(KafkaError._FATAL, "out of order", fatal=True))
        while sink._producer is first:
            await asyncio.sleep(0)
        assert await sink.send([Message("b", b"{}", "2")]) == [None]

    with_sink(kafka, topic, use)
    assert [each.key for each in records(kafka.bootstrap, topic)] == ["a", "b"]
