"""All calls that wait for Kafka: a client's call, the answer of a future, the first contact.

Every failure here becomes a KafkaException, which `errors` (`trident_py.kafka.clients`) turns into an error with
cluster, topic and next step. Without this, a future without an answer in time raises an empty TimeoutError, a full
queue a BufferError, a closed client a RuntimeError. A test checks that no other code makes a client's call that waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from ..model.retry import again_for
from . import confluent
from .clients import ASKING, Cluster, is_passing, means
from .error_codes import Meaning

T = TypeVar("T")
REACH = 10.0
ELECTION = 5.0
SPARE = 5.0
_PAUSE = 0.02
_PATIENCE = 0.1  # with the first question; twice as long with each further one
_DOWN = "_ALL_BROKERS_DOWN"


def call_client(call: Callable[..., T], *arguments: Any, **more: Any) -> T:
    """Call a client. Raises KafkaException."""
    try:
        return call(*arguments, **more)
    except (TimeoutError, CancelledError) as error:
        raise _failure(confluent.KafkaError._TIMED_OUT, error, "no answer in time") from error
    except BufferError as error:
        raise _failure(confluent.KafkaError._QUEUE_FULL, error, "the queue is full") from error
    except ValueError as error:
        raise _failure(confluent.KafkaError._INVALID_ARG, error, "refused") from error
    except RuntimeError as error:
        raise _failure(confluent.KafkaError._STATE, error, "the client is closed") from error


def _failure(code: int, error: BaseException, otherwise: str) -> Any:
    return confluent.KafkaException(confluent.KafkaError(code, str(error) or otherwise))


def answer(future: Any, seconds: float) -> Any:
    """Return the result of an AdminClient's future; ``seconds`` is the timeout of its request. Raises KafkaException.

    Waits a little longer than that: the client's own error says more than a timeout here.
    """
    return call_client(future.result, seconds + SPARE)


def offsets_of(admin: Any, wanted: Mapping[Any, Any], isolation: Any, seconds: float) -> dict[Any, int]:
    """Return the offset that each TopicPartition's OffsetSpec asks for. Raises KafkaException.

    Asks again for some seconds while a leader is being chosen: a new topic has its partitions before these have their
    leaders, and librdkafka hands such an answer of this one request on.
    """

    def offsets() -> dict[Any, int]:
        futures = call_client(admin.list_offsets, wanted, isolation_level=isolation, request_timeout=seconds)
        return {place: answer(future, seconds).offset for place, future in futures.items()}

    return again_for(ELECTION, _PAUSE, lambda error: means(error, Meaning.ELECTING), offsets)


class Complaints:
    """The errors that a client reports (``error_cb``). Keeps the last one that names a cause."""

    def __init__(self) -> None:
        self.last: Any = None
        self.down = False

    def __call__(self, error: Any) -> None:
        """Called by librdkafka from within `poll`."""
        if error.name() == _DOWN:
            self.down = True
        elif not self.refused:
            self.last = error

    @property
    def refused(self) -> bool:
        """Whether the brokers answer, but refuse this user."""
        return means(self.last, Meaning.SHUT)

    @property
    def final(self) -> bool:
        """Whether it is known why nobody answers: this user is refused, or all addresses have failed."""
        return self.refused or (self.down and self.last is not None)

    def forget(self) -> None:
        """Called when the brokers have answered."""
        self.last, self.down = None, False

    def instead_of(self, error: Any) -> Any:
        """Return the more specific KafkaException: the client's own error if there is one."""
        return error if self.last is None else confluent.KafkaException(self.last)


def connect_admin(cluster: Cluster, seconds: float = REACH) -> Any:
    """Return an AdminClient whose brokers have answered.

    Raises KafkaException if none answers, or if they refuse this user; soon after all addresses have failed. Asks for
    the topics: librdkafka's ``describe_cluster`` ends the process by SIGABRT if an answer names no broker, as that of a
    broker does that starts.
    """
    complaints = Complaints()
    admin = cluster.admin({"error_cb": complaints})
    began, patience = time.monotonic(), _PATIENCE
    while True:
        try:
            call_client(admin.list_topics, timeout=patience)
            return admin
        except confluent.KafkaException as error:
            call_client(admin.poll, 0)
            left = began + seconds - time.monotonic()
            if complaints.final or left <= 0 or not is_passing(error):
                raise complaints.instead_of(error) from error
            patience = min(2 * patience, left)


def fetch_committed(
    cluster: Cluster, group: str, partitions: list[Any], seconds: float, settled: bool = True
) -> list[Any]:
    """Return the committed offsets of a group in these partitions. ``settled``: waits for open transactions on them,
    instead of ignoring them. Raises KafkaException.

    Asks through a consumer: librdkafka's AdminClient ends the process by SIGSEGV if the coordinator has moved.
    """
    level = "read_committed" if settled else "read_uncommitted"
    consumer = cluster.consumer({**ASKING, "group.id": group, "isolation.level": level})
    try:
        offsets: list[Any] = call_client(consumer.committed, partitions, seconds)
        return offsets
    finally:
        consumer.close()
