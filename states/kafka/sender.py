"""Puts whole blocks of records into librdkafka's queue, in order and within a limit, and waits for their delivery."""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import length_hint
from typing import Any

from trident_py.errors import FailedException, StateError
from trident_py.kafka.blocking_calls import call_client
from trident_py.kafka.clients import Cluster, describe_error, is_passing, kafka_error, librdkafka

from .advice import advice_on
from .settings import SETTINGS, UNLIMITED, Room

_WANTED = ("eos", "broker")
_TROUBLE = ("FAIL", "REQTMOUT")
_LEVELS = (50, 50, 50, 40, 30, 20, 20, 10)  # of librdkafka's log_level
_USUAL = 6
_LEFT = "(_DESTROY_BROKER)"


class Witness:
    """The logger of a transactional producer; tells from librdkafka's log whether a transaction was committed cleanly.

    When a connection breaks or an answer is late, librdkafka repeats the request, and reports nothing if that works.
    But the first request may still be in transit: a late EndTxn ends whatever transaction is open when it arrives, and
    a late TxnOffsetCommit overwrites the new mark with an old one, as long as the producer's epoch is the same. So
    after such a commit the producer is not used again: the next one has a higher epoch, and brokers refuse late
    requests.

    A clean commit needs proof in librdkafka's log (``debug`` = eos, broker): one EndTxn answered without an error, no
    lost connection and no late answer. (A request repeated because a broker asked for it is no longer in transit.)
    Unknown lines prove nothing. Only the log shows connection errors reliably: of two within 30 s librdkafka reports
    just the first, and that as information. librdkafka calls `log` from within the producer's `poll`.

    ``lost_broker``: a broker has left the cluster since the producer was made, if only for a moment. librdkafka may
    wait for it for ever, as the coordinator of a group.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Build for the user's settings, which decide what of librdkafka's log is passed on."""
        debug = str(settings.get("debug", ""))
        self.settings = {"debug": ",".join(filter(None, (debug, *_WANTED))), "log_level": 7}
        self._least = _LEVELS[min(int(settings.get("log_level", 7 if debug else _USUAL)), 7)]
        self.lost_broker = False
        self.begin()

    def begin(self) -> None:
        """Forget the previous transaction."""
        self._answers: list[str] = []
        self.trouble = ""

    @property
    def clean(self) -> bool:
        """Whether the transaction just committed has left no request in transit."""
        return not self.trouble and len(self._answers) == 1 and "returned NO_ERROR " in self._answers[0]

    def log(self, level: int, form: str, facility: str, name: str, text: str) -> None:
        if facility == "ENDTXN":
            self._answers.append(text)
        elif (facility in _TROUBLE or level > logging.DEBUG) and not _is_first_address(text):
            self.trouble = self.trouble or text
            self.lost_broker = self.lost_broker or _LEFT in text
        if level >= self._least:
            librdkafka.log(level, form, facility, name, text)


def _is_first_address(text: str) -> bool:
    """Return whether the line reports the end of a connection to a ``bootstrap`` address. It ends once the brokers are
    known, and carries nothing of a transaction."""
    return "/bootstrap: " in text and _LEFT in text


WAIT = 0.02


class Sender:
    """One librdkafka producer with its failed deliveries. Created, used and closed in one process.

    ``settings``: the user's, which override ``defaults``. With a ``transactional_id`` a `Witness` logs the
    transactions.
    """

    def __init__(
        self, cluster: Cluster, settings: Mapping[str, Any], defaults: Mapping[str, Any] = SETTINGS,
        transactional_id: str | None = None,
    ) -> None:  # fmt: skip
        self.failures = Failures(cluster)
        self.witness = Witness(cluster.config(settings))
        more = {"delivery.report.only.error": True, "on_delivery": self.failures.add}
        config = {**defaults, **settings, **UNLIMITED, **more}
        if transactional_id is None:
            self.producer = cluster.producer(config)
        else:
            config |= {"transactional.id": transactional_id, **self.witness.settings}
            self.producer = cluster.producer(config, self.witness)
        self._room = Room(settings)
        self._sent = 0

    def produce(self, topic: str, value: bytes | None, key: bytes | None = None, **more: Any) -> None:
        """Queue one record. Raises KafkaException."""
        self._wait_for_room(1, self._room.for_records([value]))
        call_client(self.producer.produce, topic, value, key, **more)
        self._sent += 1

    def send(
        self, topic: str, values: Sequence[bytes | None], keys: Sequence[bytes | None] | None = None,
        headers: Sequence[list] | None = None,
    ) -> None:  # fmt: skip
        """Queue many records. Raises StateError for the first refused one."""
        values = list(values)
        limit = self._room.for_records(values)
        for at in range(0, len(values), limit):
            part = slice(at, at + limit)
            self._wait_for_room(len(values[part]), limit)
            self._queue(topic, values[part], keys and keys[part], headers and headers[part])
        self._sent += len(values)

    def _queue(self, topic: str, values: Sequence, keys: Sequence | None, headers: Sequence | None) -> None:
        """Queue without a loop in Python: a third faster than produce_batch, which takes no headers either."""
        waiting = iter(values)  # the arguments before headers: partition, callback, on_delivery, timestamp
        defaults: list[Any] = [repeat(-1), repeat(None), repeat(None), repeat(0)]
        more: list[Any] = [] if headers is None else [*defaults, headers]
        calls = map(self.producer.produce, repeat(topic), waiting, keys or repeat(None), *more)
        try:
            call_client(deque, calls, 0)
        except Exception as error:
            kafka = kafka_error(error)
            if kafka is None or kafka.fatal() or is_passing(error):
                raise
            row = len(values) - length_hint(waiting) - 1
            shown = _describe_record(keys and keys[row], values[row])
            raise StateError(f"topic {topic!r} refuses a record ({shown}): {_cause(kafka)}") from None

    def _wait_for_room(self, wanted: int, limit: int) -> None:
        while len(self.producer) + wanted > limit and len(self.producer) > 0:
            call_client(self.producer.poll, WAIT)

    def confirm(self, label: str) -> None:
        """Wait until the brokers have confirmed every record. If one was not delivered, raises FailedException if a
        replay may help, else StateError. ``label`` begins the error."""
        while len(self.producer) > 0 and self.failures.count == 0:
            call_client(self.producer.flush, 0.5)
        if self.failures.count > 0:
            text = f"{label}: {self.failures.count} of {self._sent} records were not delivered. {self.failures.text}"
            if is_passing(self.failures.first):
                raise FailedException(f"{text}. The batch will be replayed")
            raise StateError(text)
        self._sent = 0

    def begin(self) -> None:
        """Begin a transaction."""
        call_client(self.producer.poll, 0)  # logs pending lines, which belong to the previous transaction
        self.witness.begin()
        call_client(self.producer.begin_transaction)

    def was_clean(self) -> bool:
        """Return whether the transaction just committed has left no request in transit."""
        call_client(self.producer.poll, 0)
        return self.witness.clean

    def has_lost_broker(self) -> bool:
        """Return whether a broker has left the cluster, so that another producer is needed."""
        call_client(self.producer.poll, 0)
        return self.witness.lost_broker

    def abort(self, seconds: float) -> None:
        call_client(self.producer.abort_transaction, seconds)
        self.failures.forget()

    def close(self) -> None:
        """Drop the queued records; nothing more is sent once librdkafka has processed this."""
        with contextlib.suppress(Exception):
            call_client(self.producer.purge)


class Failures:
    """The failed deliveries: their count, and the first one as Kafka's error and as text. (Does not refer to the
    producer.)"""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.forget()

    def forget(self) -> None:
        self.count = 0
        self.first: Any = None
        self.text = ""

    def add(self, error: Any, message: Any) -> None:
        """Called by librdkafka from within poll, flush and commit."""
        self.count += 1
        if self.first is None:
            self.first = error
            shown = _describe_record(message.key(), message.value())
            cause = self._cluster.hide_secrets(_cause(error))
            self.text = f"Topic {message.topic()!r} did not accept a record ({shown}): {cause}"


def _cause(error: Any) -> str:
    return describe_error(error) + advice_on(error.name())


def _describe_record(key: Any, value: Any) -> str:
    return ", ".join(
        f"{name} None" if data is None else f"{name} {data[:60]!r}{'...' if len(data) > 60 else ''}"
        for name, data in (("key", key), ("value", value))
    )
