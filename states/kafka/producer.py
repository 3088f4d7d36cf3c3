"""A producer with a fixed transactional id: one transaction at a time, each with its mark.

`init_transactions` shuts out the previous producer with this id, aborts its open transaction and waits for a commit in
progress. A mark read afterwards therefore shows for certain what is committed: the outcome of no COMMIT stays unknown.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Any

from trident_py.errors import FailedException, StateError
from trident_py.kafka.blocking_calls import call_client
from trident_py.kafka.clients import is_fenced, is_passing, kafka_error, means
from trident_py.kafka.error_codes import Meaning
from trident_py.model.retry import again_for

from .advice import kafka_errors
from .marks import ANSWER, GroupNote, MarkPlace
from .sender import Sender
from .settings import TRANSACTIONAL

PATIENCE = 10.0
LONGEST = 20.0
ALONE = 2.0  # seconds after a broker has left the cluster
LOOK = 0.1


class TransactionalProducer:
    """The producer of one state partition, or of a driver. Created, used and closed in one process.

    Call `open` first; then for each transaction `begin`, any number of `produce` or `send`, and `commit`. An error in
    any of them ends the transaction (aborted, or with an outcome that the next `open` settles), and the object must be
    opened again.
    """

    def __init__(self, place: MarkPlace, part: int | str, settings: Mapping[str, Any]) -> None:
        self.place = place
        self.part = part
        self._settings = settings
        self._sender: Sender | None = None
        self._metadata: Any = None
        self._consumer: Any = None
        self._active = False

    @property
    def is_open(self) -> bool:
        """Whether the next transaction can use this producer."""
        return self._sender is not None and not self._sender.has_lost_broker()

    def shows(self, txid: int) -> bool:
        """Called before each batch but the first of an open producer. Return whether the brokers have the mark that it
        has written last. If not, take over anew: they have gone back, and would take records of a producer of which
        they know no sequence number."""
        if not txid or self.place.is_told(self.part, txid, self.consumer):
            return True
        self._close_consumer()  # it may be stuck
        return self.place.has(self.part, txid)

    @property
    def producer(self) -> Any:
        """librdkafka's producer, for `produce` and `poll` inside a transaction; None if closed."""
        return None if self._sender is None else self._sender.producer

    def open(self) -> None:
        """Shut out the previous producer with this id. Raises FailedException if the broker is away."""
        self.close()
        place = self.place
        sender = Sender(place.cluster, self._settings, TRANSACTIONAL, place.transactional_id(self.part))
        with kafka_errors(place.cluster, f"begin transactions as {place.name(self.part)!r}"):
            call_client(sender.producer.init_transactions, ANSWER)
        if self._metadata is None:
            self._metadata = place.metadata(self.part)
        self._sender = sender

    @property
    def consumer(self) -> Any:
        """A consumer that names the group, kept until the producer is closed."""
        if self._consumer is None:
            self._consumer = self.place.consumer(self.part)
        return self._consumer

    def begin(self) -> None:
        if not self._active:
            with self._over_if_it_fails("begin a transaction"):
                self._open_sender.begin()
            self._active = True

    def produce(self, topic: str, value: bytes | None, key: bytes | None = None, **more: Any) -> None:
        """Queue one record in the open transaction; wait while the queue is full."""
        with self._over_if_it_fails(f"write to topic {topic!r}"):
            self._open_sender.produce(topic, value, key, **more)

    def send(
        self, topic: str, values: Sequence[bytes | None], keys: Sequence[bytes | None] | None = None,
        headers: Sequence[list] | None = None,
    ) -> None:  # fmt: skip
        """Queue records in the open transaction, in order; wait while the queue is full."""
        with self._over_if_it_fails(f"write to topic {topic!r}"):
            self._open_sender.send(topic, values, keys, headers)

    def commit(self, mark: GroupNote, others: Sequence[tuple[list[Any], Any]] = ()) -> None:
        """Commit the transaction with its mark, and with further offsets: pairs of offsets and group metadata.

        Unless the commit was clean (`states.kafka.sender`), the producer is closed, so that the next `open` gets a new
        epoch. Raises FailedException if the batch must be replayed, StateError if a replay would not help.
        """
        self.begin()
        with self._over_if_it_fails(f"commit batch {mark.txid}"):
            sender = self._open_sender
            for offsets, metadata in [(self.place.offsets(mark), self._metadata), *others]:
                _in_time(sender, partial(sender.producer.send_offsets_to_transaction, offsets, metadata, PATIENCE))
            _retry(partial(sender.producer.commit_transaction, ANSWER))
            clean = self._open_sender.was_clean()
        self._active = False
        if not clean:
            self.close()

    def abort(self) -> None:
        """Abort the open transaction, if any, and close, so that a late abort meets a newer epoch. If the abort fails,
        the next `open` ends the transaction."""
        if self._active:
            self._active = False
            with contextlib.suppress(Exception):
                self._open_sender.abort(ANSWER)
            self.close()

    def close(self) -> None:
        """Close the producer; an open transaction is aborted by the next `open`, or times out."""
        if self._sender is not None:
            self._sender.close()
        self._close_consumer()
        self._sender, self._active = None, False

    def _close_consumer(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    @property
    def _open_sender(self) -> Sender:
        if self._sender is None:
            raise FailedException(f"{self.place.label}: its producer is closed; the batch will be replayed")
        return self._sender

    @contextlib.contextmanager
    def _over_if_it_fails(self, doing: str) -> Iterator[None]:
        try:
            with kafka_errors(self.place.cluster, f"{doing} as {self.place.name(self.part)!r}"):
                yield
        except FailedException as error:  # a record refused during the call may be the cause
            refusal, first = self._refusal()
            self.close()
            if first is None or _why_again(first, first):
                raise
            raise StateError(f"{self.place.label}: could not {doing}. {refusal}") from error.__cause__
        except StateError as error:
            refusal, first = self._refusal()
            cause = error.__cause__
            self._give_up(cause)
            again = "" if cause is None else _why_again(cause, first)
            if again:
                raise FailedException(f"{error}. {again}; the batch will be replayed") from cause
            raise (StateError(f"{error}. {refusal}") if refusal else error) from cause

    def _refusal(self) -> tuple[str, Any]:
        """Return the first refused record as text, and its error. Polls first: librdkafka may not have reported it
        yet."""
        if self._sender is None:
            return "", None
        with contextlib.suppress(Exception):
            call_client(self._sender.producer.poll, 0)
        return self._sender.failures.text, self._sender.failures.first

    def _give_up(self, cause: BaseException | None) -> None:
        kafka = kafka_error(cause)
        if cause is None or (kafka is not None and kafka.txn_requires_abort()):
            self.abort()
        else:
            self.close()


_FENCED = (
    "Another process took over this partition, or the transaction was open for longer than transaction.timeout.ms "
    "(raise it in the state's settings if that happens again)"
)


def _why_again(cause: Any, first: Any) -> str:
    """Return why a replay may help after this error, or "". ``first``: the error of the first refused record."""
    if is_fenced(cause):
        return _FENCED
    if means(cause, Meaning.ENDED) or means(first, Meaning.ENDED):
        return "The transaction was ended by the broker, by an administrator, or by a request that came late"
    return "The broker is unreachable or busy" if is_passing(first) else ""


def _retry(call: Callable[[], Any]) -> None:
    """Repeat the call while the broker reports a retriable error, for at most ``ANSWER`` seconds."""

    def passes(error: Exception) -> bool:
        kafka = kafka_error(error)
        return kafka is not None and kafka.retriable()

    again_for(ANSWER, 0, passes, partial(call_client, call))


def _in_time(sender: Sender, call: Callable[[], Any]) -> None:
    """Run the call for at most ``LONGEST`` seconds. librdkafka's own limit fails if the group's coordinator has left
    the cluster (librdkafka issues 5456 and 5511): then the call and its thread are abandoned."""
    outcome: Future[None] = Future()

    def work() -> None:
        try:
            _retry(call)
            outcome.set_result(None)
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=work, name="trident-offsets", daemon=True).start()
    began, limit = time.monotonic(), LONGEST
    while not wait([outcome], LOOK).done:
        waited = time.monotonic() - began
        if sender.has_lost_broker():
            limit = min(limit, waited + ALONE)
        if waited > limit:
            threading.Thread(target=_drain, args=(sender, outcome), name="trident-abandoned", daemon=True).start()
            raise FailedException(
                f"librdkafka gave no answer within {limit:.0f} s, perhaps because a broker has left the cluster; the "
                "batch will be replayed with a new producer"
            )
    call_client(outcome.result)


def _drain(sender: Sender, outcome: Future[None]) -> None:
    """Take what an abandoned producer logs, about a thousand lines a second, or it would fill the memory."""
    while not outcome.done():
        with contextlib.suppress(Exception):
            call_client(sender.producer.poll, 1.0)
