"""Writes to Kafka: one long-lived idempotent producer per worker, with its confirmations as asyncio futures."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...kafka.clients import code_of
from .settings import GatewayKafka

log = logging.getLogger("trident_py.events")

TOO_LARGE = ("MSG_SIZE_TOO_LARGE", "_MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")
WAIT = 0.1


@dataclass(frozen=True, slots=True)
class Message:
    """The record of an event. Its key is the fingerprint, so that it is the same on every resend."""

    key: str
    value: bytes
    payload: str


class Confirmations:
    """The confirmations of some messages: for each None, or the name of Kafka's error."""

    def __init__(self, count: int, loop: asyncio.AbstractEventLoop) -> None:
        self.codes: list[str | None] = [None] * count
        self.future: asyncio.Future[list[str | None]] = loop.create_future()
        self.open = count

    def record(self, index: int, code: str | None) -> bool:
        """Record a confirmation. Returns whether it was the last one."""
        self.codes[index] = code
        self.open -= 1
        return self.open == 0

    def finish(self) -> None:
        if not self.future.done():
            self.future.set_result(self.codes)


def client_settings(settings: GatewayKafka, most_bytes: int) -> dict[str, Any]:
    return {
        "acks": "all", "enable.idempotence": True,
        "linger.ms": settings.lingerMs, "message.timeout.ms": int(settings.deliverySeconds * 1000),
        "message.max.bytes": max(1_000_000, most_bytes + 10_000), "retry.backoff.ms": 20,
        "retry.backoff.max.ms": 500, "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500,
        "socket.keepalive.enable": True,
    }  # fmt: skip


def check_client(settings: GatewayKafka, most_bytes: int) -> None:
    """Raise DefinitionError for settings that librdkafka does not take. Waits for no broker."""
    settings.cluster.producer(client_settings(settings, most_bytes))


class KafkaSink:
    """Produces with acks=all. Made and used on the event loop; its callbacks run in a thread of their own.

    ``away``: the error when the last message failed or all brokers were gone; None after a confirmation.
    """

    def __init__(self, settings: GatewayKafka, most_bytes: int) -> None:
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()  # thread and loop both finish confirmations
        self._finished: list[Confirmations] = []
        self.away: str | None = None
        self._config = {**client_settings(settings, most_bytes), "error_cb": self._on_error}
        self._producer = settings.cluster.producer(self._config)
        self._fatal = False
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="trident-events-kafka", daemon=True)
        self._thread.start()

    def send(self, messages: Sequence[Message]) -> asyncio.Future[list[str | None]]:
        """Resolve when every message is confirmed or given up, with None or the error's code for each."""
        confirmations = Confirmations(len(messages), self._loop)
        for index, message in enumerate(messages):
            code = self._produce(self._producer, message, self._callback(confirmations, index))
            if code is not None:
                self._record(confirmations, index, code)
        self._flush_finished()
        return asyncio.ensure_future(self._separate(messages, confirmations.future))

    async def _separate(self, messages: Sequence[Message], first: asyncio.Future[list[str | None]]) -> list[str | None]:
        """Send what was too large once more, alone: Kafka refuses a whole batch, of small messages too."""
        began, most = self._loop.time(), self._settings.deliverySeconds / 2
        codes = await first
        large = [index for index, code in enumerate(codes) if code in TOO_LARGE]
        if large and self._loop.time() - began > most:
            codes = ["_MSG_TIMED_OUT" if code in TOO_LARGE else code for code in codes]
        elif large:
            again = await asyncio.to_thread(self._send_alone, [messages[index] for index in large], most)
            for index, code in zip(large, again, strict=True):
                codes[index] = code
        return codes

    def _send_alone(self, messages: Sequence[Message], seconds: float) -> list[str | None]:
        """Send each message in a batch of its own, and once, as its producer has no id. Blocks."""
        alone = {"batch.num.messages": 1, "enable.idempotence": False, "retries": 0, "linger.ms": 0}
        timeout = max(1, int(seconds * 1000))
        producer = self._settings.cluster.producer({**self._config, **alone, "message.timeout.ms": timeout})
        codes: dict[int, str | None] = {}
        for index, message in enumerate(messages):
            def record_delivery(error: Any, _: Any, index: int = index) -> None:
                codes[index] = None if error is None else error.name()

            if (code := self._produce(producer, message, record_delivery)) is not None:
                codes[index] = code
        while len(codes) < len(messages):
            producer.poll(WAIT)
        if (fits := list(codes.values()).count(None)):
            log.warning(
                "topic %s took %d events one by one that were too large together: set batch.size in kafka.settings "
                "below the topic's max.message.bytes", self._settings.topic, fits,
            )  # fmt: skip
        return [codes[index] for index in range(len(messages))]

    def _produce(self, producer: Any, message: Message, on_delivery: Any) -> str | None:
        """Return None, or the error's code if the message is refused before it is sent."""
        key = message.key.encode()
        headers = [("fingerprint", key), ("payload", message.payload.encode())]
        try:
            producer.produce(self._settings.topic, message.value, key, headers=headers, on_delivery=on_delivery)
        except BufferError:
            return "_QUEUE_FULL"
        except Exception as error:  # KafkaException
            return code_of(error) or type(error).__name__
        return None

    def _callback(self, confirmations: Confirmations, index: int) -> Any:
        def record_delivery(error: Any, _: Any) -> None:
            code = None if error is None else error.name()
            if code not in TOO_LARGE:
                self.away = code
            self._record(confirmations, index, code)

        return record_delivery

    def _record(self, confirmations: Confirmations, index: int, code: str | None) -> None:
        with self._lock:
            if confirmations.record(index, code):
                self._finished.append(confirmations)

    def _poll(self) -> None:
        while not self._ending.is_set():
            try:
                if self._fatal:
                    self._replace()
                if self._producer.poll(WAIT):
                    self._flush_finished()
            except Exception as error:  # without this thread no event would ever be confirmed
                self.away = type(error).__name__
                log.error("Kafka's producer failed, trying again: %s", self._hide(str(error)))
                self._ending.wait(WAIT)

    def _replace(self) -> None:
        """Replace a producer after a fatal error. Messages of the old one fail, and their senders resend them."""
        old, self._producer = self._producer, self._settings.cluster.producer(self._config)
        self._fatal = False
        old.flush(self._settings.deliverySeconds)
        self._flush_finished()

    def _flush_finished(self) -> None:
        """Wake the event loop once for all present confirmations."""
        with self._lock:
            finished, self._finished = self._finished, []
        if finished:
            try:
                self._loop.call_soon_threadsafe(_finish, finished)
            except RuntimeError:
                log.warning("the service ended before Kafka confirmed every event; sensors resend the others")

    def _on_error(self, error: Any) -> None:
        """Handle librdkafka's own errors; most pass."""
        if error.name() == "_ALL_BROKERS_DOWN":
            self.away = error.name()
        elif error.fatal():
            self._fatal = True
            log.error("Kafka's producer cannot continue and is replaced: %s", self._hide(error.str()))

    def _hide(self, text: str) -> str:
        return self._settings.cluster.hide_secrets(text)

    def problem(self, patience: float) -> str | None:
        """Query the cluster for the topic. Returns the problem, or None. Blocks."""
        try:
            metadata = self._producer.list_topics(self._settings.topic, timeout=patience)
        except Exception as error:  # KafkaException
            return code_of(error) or type(error).__name__
        problem = metadata.topics[self._settings.topic].error
        if problem is None:
            self.away = None
        return None if problem is None else f"topic {self._settings.topic!r}: {problem.name()}"

    def close(self, patience: float) -> None:
        """Wait for unconfirmed messages. Blocks."""
        self._producer.flush(patience)
        self._ending.set()
        self._thread.join()
        self._flush_finished()


def _finish(finished: list[Confirmations]) -> None:
    for confirmations in finished:
        confirmations.finish()
