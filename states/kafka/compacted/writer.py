"""The writers of a state partition: a fenced transaction with its mark, or a plain idempotent producer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from trident_py.kafka.clients import Cluster

from ..advice import kafka_errors
from ..fence import TopicFence
from ..marks import ANSWER, Mark
from ..producer import TransactionalProducer
from ..sender import Sender
from .codec import Text
from .local_table import GENERATION, PREV, TXID


class KeyWriter(Protocol):
    """Call `begin`, then `send` any number of times, then `commit` or `rollback`. ``opened`` counts the producers
    opened: before a new one, another process may have written."""

    opened: int

    def begin(self, txid: int | None) -> None: ...
    def send(self, values: Sequence[Text | None], keys: Sequence[Text], prevs: Sequence[Any] | None) -> None: ...
    def commit(self, txid: int | None) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


class FencedWriter:
    """One Kafka transaction for each batch, under the fixed transactional id of the state partition."""

    def __init__(self, fence: TopicFence, part: int, of: int, settings: Mapping[str, Any]) -> None:
        self._fence = fence
        self._part = part
        self._of = of
        self._producer = TransactionalProducer(fence.place, part, settings)
        self._own = Mark()
        self._txid: int | None = None
        self.opened = 0

    def begin(self, txid: int | None) -> None:
        """Begin a transaction. Raises ZombieError for an older driver, attempt or batch; FailedException if the broker
        is away."""
        behind = txid is not None and txid < self._own.txid
        stays = self._producer.is_open and self._fence.attempt == 0 and not behind
        if not stays or not self._fence.shows(self._part, self._own):
            _, self._own = self._fence.take_over(self._producer, self._part, txid, self._own)
            self.opened += 1
        self._txid = txid
        self._producer.begin()

    def send(self, values: Sequence[Text | None], keys: Sequence[Text], prevs: Sequence[Any] | None = None) -> None:
        """Write records. ``prevs``: the previous value of each record, or None; given, the records get headers."""
        topic = self._fence.place.topic
        if prevs is None:
            self._producer.send(topic, values, keys)  # type: ignore[arg-type]
            return
        common = [(GENERATION, str(self._fence.generation).encode())]
        if self._txid is not None:
            common.append((TXID, str(self._txid).encode()))
        headers = [common if prev is None else [*common, (PREV, prev)] for prev in prevs]
        self._producer.send(topic, values, keys, headers)  # type: ignore[arg-type]

    def commit(self, txid: int | None) -> None:
        """Commit the records and the mark. Raises FailedException if the batch must be replayed."""
        mark = self._fence.mark(self._own, txid, self._of)
        self._producer.commit(mark)
        self._own = mark

    def rollback(self) -> None:
        self._producer.abort()

    def close(self) -> None:
        self._producer.close()


class PlainWriter:
    """An idempotent producer without transactions: records are visible once sent, and no older writer is shut out."""

    def __init__(self, cluster: Cluster, topic: str, settings: Mapping[str, Any]) -> None:
        self._cluster = cluster
        self._topic = topic
        self._settings = settings
        self._sender: Sender | None = None
        self.opened = 0

    def begin(self, txid: int | None) -> None:
        if self._sender is None:
            self._sender = Sender(self._cluster, self._settings)
            self.opened += 1

    def send(self, values: Sequence[Text | None], keys: Sequence[Text], prevs: Sequence[Any] | None = None) -> None:
        assert prevs is None
        with self._writing() as sender:
            sender.send(self._topic, values, keys)  # type: ignore[arg-type]

    def commit(self, txid: int | None) -> None:
        """Return once every record is confirmed. Raises FailedException if the broker is away, StateError if it refuses
        a record."""
        with self._writing() as sender:
            sender.confirm(f"Kafka at {self._cluster.bootstrap}: topic {self._topic!r}", ANSWER)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Sender]:
        """The producer, which is closed if the work fails."""
        assert self._sender is not None
        try:
            with kafka_errors(self._cluster, f"write to topic {self._topic!r}"):
                yield self._sender
        except BaseException:
            self.close()
            raise

    def rollback(self) -> None:
        """Drop the producer. Sent records stay; the replay writes the same keys again."""
        self.close()

    def close(self) -> None:
        if self._sender is not None:
            self._sender.close()
        self._sender = None
