"""The driver's view of the cluster: the topics with their ids and policies, the begin and end of their logs, and
whether the brokers answer."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ..errors import FailedException, SpoutError
from ..model.retry import START_WAIT, back_off_seconds
from . import confluent
from .batches import Place
from .blocking_calls import Complaints, answer, call_client, fetch_committed
from .clients import code_of, describe_error, errors, is_passing, log, means
from .error_codes import Meaning
from .options import KafkaOptions

ANSWER = 2.0
SILENT = 5.0  # seconds; in a run, shorter absences are not reported
AGAIN = 60.0


class Absence:
    """Tracks whether one spout's cluster answers, in one run: absences are reported, waited for up to a limit at a
    start, and without a limit in a run. Driver only.

    At a start a wrong address or password is the likelier cause, and a person is watching; the limit is that of all
    stores (`trident_py.model.retry`). In a run there are no batches until the cluster is back.
    """

    def __init__(self, spout_id: str, limit: float, tell: Callable[[str], object]) -> None:
        self._id = spout_id
        self._limit = limit
        self._tell = tell
        self._started = False  # the cluster has answered in this run
        self._since: float | None = None
        self._reports = 0
        self._next = 0.0

    def record_answer(self) -> None:
        if self._reports and self._started:
            self._tell("Kafka answers again")
        self._started, self._since, self._reports = True, None, 0

    def record_silence(self, error: FailedException) -> SpoutError | None:
        """Record a failed contact. Returns the error that ends the run: at a start, when the limit is over."""
        now = time.monotonic()
        if self._since is None:
            self._since, self._next = now, now + (SILENT if self._started else 0.0)
        remaining = self._since + self._limit - now
        if not self._started and remaining <= 0:
            return SpoutError(
                f"KafkaSpout {self._id!r}: Kafka is unreachable: {error}. The start waited {self._limit:g} s for it "
                f"({START_WAIT}). Correct the cause, or raise that setting. No batch was begun"
            )
        if now >= self._next:
            self._reports += 1
            self._next = now + (AGAIN if self._started else back_off_seconds(self._reports + 4))
            wait = f"up to {remaining:.0f} s more ({START_WAIT})"
            until = "until it answers there are no batches" if self._started else wait
            self._tell(f"waiting for Kafka, {until}: {error}")
        return None


class ExistingTopic(NamedTuple):
    """An existing topic: its id and number of partitions."""

    id: str
    partitions: int


class Watch:
    """Queries the cluster, each question with one request for all partitions. Driver only.

    Every method raises FailedException while the brokers are away, SpoutError for an error that will not pass.
    """

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._client: Any = None
        self._complaints = Complaints()
        self._reached = False
        self._unchecked = False

    @property
    def _admin(self) -> Any:
        if self._client is None:
            self._client = self._options.cluster.admin({"error_cb": self._complaints})
        call_client(self._client.poll, 0)  # serves its log and error callbacks
        return self._client

    def close(self) -> None:
        self._client = None

    @contextlib.contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        """Turns Kafka's errors into ours; if the cluster does not answer, with the client's own reason."""
        name = ", ".join(self._options.topics or ()) or f"pattern {self._options.pattern}"
        with errors(self._options.cluster, f"{doing} ({name})", SpoutError):
            try:
                yield
            except confluent.KafkaException as error:
                raise self._more_specific(error) from error

    def _more_specific(self, error: Any) -> Any:
        """Return the more specific KafkaException. After a first success a refusal counts as passing."""
        if not is_passing(error) or self._client is None:
            return error
        call_client(self._client.poll, 0)
        complaint = self._complaints.instead_of(error)
        if self._reached and not is_passing(complaint):
            kafka = confluent.KafkaError(confluent.KafkaError._TRANSPORT, describe_error(complaint))
            return confluent.KafkaException(kafka)
        return complaint

    def topics(self) -> dict[str, ExistingTopic]:
        """Return the existing topics of the spout."""
        names = self._options.topics if self._options.pattern is None else self._list_matching(self._options.pattern)
        topics: dict[str, ExistingTopic] = {}
        if not names:
            return topics
        with self._errors("look up the topics"):
            asked = confluent.TopicCollection(list(names))
            answers = call_client(self._admin.describe_topics, asked, request_timeout=ANSWER)
            for name, future in answers.items():
                try:
                    description = answer(future, ANSWER)
                except confluent.KafkaException as error:
                    if not means(error, Meaning.MISSING):
                        raise
                    continue
                topics[name] = ExistingTopic(str(description.topic_id), len(description.partitions))
        self._complaints.forget()
        self._reached = True
        return topics

    def _list_matching(self, pattern: str) -> list[str]:
        with self._errors("list the topics"):
            names = call_client(self._admin.list_topics, timeout=ANSWER).topics
        hidden = not pattern.startswith("__")
        return sorted(n for n in names if re.fullmatch(pattern, n) and not (hidden and n.startswith("__")))

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offsets after the last readable record; for committed records, the last stable offset."""
        return self._offsets(places, confluent.OffsetSpec.latest())

    def log_ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offsets after the last record, with those that open transactions hold back."""
        return self._offsets(places, confluent.OffsetSpec.latest(), "read_uncommitted")

    def begins(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the first offsets that still exist."""
        return self._offsets(places, confluent.OffsetSpec.earliest())

    def since(self, places: Iterable[Place], millis: int) -> dict[Place, int]:
        """Return the first offset at this time or later; -1 if there is none."""
        return self._offsets(places, confluent.OffsetSpec.for_timestamp(millis))

    def _offsets(self, places: Iterable[Place], spec: Any, isolation: str | None = None) -> dict[Place, int]:
        """Return the offsets by partition, without partitions whose leader is away."""
        wanted = {confluent.TopicPartition(*place): spec for place in places}
        if not wanted:
            return {}
        level = confluent.IsolationLevel[(isolation or self._options.isolationLevel).upper()]
        offsets: dict[Place, int] = {}
        away: confluent.KafkaException | None = None
        with self._errors("look up offsets"):
            answers = call_client(self._admin.list_offsets, wanted, isolation_level=level, request_timeout=ANSWER)
            for partition, future in answers.items():
                try:
                    offsets[partition.topic, partition.partition] = answer(future, ANSWER).offset
                except confluent.KafkaException as error:
                    if not (is_passing(error) or means(error, Meaning.MISSING)):
                        raise
                    away = error
        if away is not None and not offsets and not means(away, Meaning.MISSING):
            text = self._options.cluster.hide_secrets(describe_error(self._complaints.instead_of(away)))
            raise FailedException(f"Kafka at {self._options.bootstrap}: no partition answers: {text}")
        return offsets

    def fetch_committed(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the committed offsets of the spout's group, without partitions that it has never committed."""
        wanted, group = [confluent.TopicPartition(*place) for place in places], self._options.groupId
        if group is None or not wanted:
            return {}
        with self._errors(f"read the offsets of group {group}"):
            positions = fetch_committed(self._options.cluster, group, wanted, ANSWER)
            for position in positions:
                if position.error is not None:
                    raise confluent.KafkaException(position.error)
        return {(at.topic, at.partition): at.offset for at in positions if at.offset >= 0}

    def list_compacted(self, names: Iterable[str]) -> list[str]:
        """Return the topics whose cleanup.policy is compact."""
        wanted = [confluent.ConfigResource(confluent.ConfigResource.Type.TOPIC, name) for name in sorted(names)]
        compacted = []
        with self._errors("read the settings of the topics"):
            answers = call_client(self._admin.describe_configs, wanted, request_timeout=ANSWER) if wanted else {}
            for resource, future in answers.items():
                try:
                    if "compact" in answer(future, ANSWER)["cleanup.policy"].value:
                        compacted.append(resource.name)
                except confluent.KafkaException as error:
                    self._unreadable(resource.name, error)
        return compacted

    def _unreadable(self, name: str, error: Any) -> None:
        """Warn once, and read the topic, if its settings may not be read."""
        if is_passing(error):
            raise error
        if not means(error, Meaning.MISSING) and not self._unchecked:
            self._unchecked = True
            log.warning("cannot check whether topic %s is compacted: %s", name, code_of(error))
