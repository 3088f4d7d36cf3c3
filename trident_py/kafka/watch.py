"""The driver's view of the topics: their names, ids and policies, and the begin and end of their logs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..errors import FailedException, SpoutError
from .asking import Complaints, answer, asked, committed
from .batches import Place
from .clients import code_of, errors, is_passing, log, means
from .codes import Meaning
from .options import KafkaOptions

ANSWER = 2.0


class Seen(NamedTuple):
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
        self._said = Complaints()
        self._met = False
        self._unchecked = False

    @property
    def _admin(self) -> Any:
        if self._client is None:
            self._client = self._options.cluster.admin({"error_cb": self._said})
        asked(self._client.poll, 0)  # serves its log and error callbacks
        return self._client

    def close(self) -> None:
        self._client = None

    @contextlib.contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        """Turns Kafka's errors into ours; if the cluster does not answer, with the client's own reason."""
        from confluent_kafka import KafkaException

        name = ", ".join(self._options.topics or ()) or f"pattern {self._options.pattern}"
        with errors(self._options.cluster, f"{doing} ({name})", SpoutError):
            try:
                yield
            except KafkaException as error:
                raise self._why(error) from error

    def _heard(self) -> None:
        """Called when brokers have answered."""
        self._said.forget()
        self._met = True

    def _why(self, error: Any) -> Any:
        """Returns the more specific KafkaException. After a first success a refusal counts as passing."""
        from confluent_kafka import KafkaError, KafkaException

        if not is_passing(error) or self._client is None:
            return error
        asked(self._client.poll, 0)
        told = self._said.instead_of(error)
        if self._met and not is_passing(told):
            return KafkaException(KafkaError(KafkaError._TRANSPORT, f"{code_of(told)}: {told.args[0].str()}"))
        return told

    def topics(self) -> dict[str, Seen]:
        """Returns the existing topics of the spout."""
        from confluent_kafka import KafkaException, TopicCollection

        names = self._options.topics if self._options.pattern is None else self._matching(self._options.pattern)
        found: dict[str, Seen] = {}
        if not names:
            return found
        with self._errors("look at the topics"):
            answers = asked(self._admin.describe_topics, TopicCollection(list(names)), request_timeout=ANSWER)
            for name, future in answers.items():
                try:
                    told = answer(future, ANSWER)
                except KafkaException as error:
                    if not means(error, Meaning.MISSING):
                        raise
                    continue
                found[name] = Seen(str(told.topic_id), len(told.partitions))
        self._heard()
        return found

    def _matching(self, pattern: str) -> list[str]:
        with self._errors("list the topics"):
            known = asked(self._admin.list_topics, timeout=ANSWER).topics
        hidden = not pattern.startswith("__")
        return sorted(n for n in known if re.fullmatch(pattern, n) and not (hidden and n.startswith("__")))

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Returns the offsets after the last readable record; for committed records, the last stable offset."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(places, OffsetSpec.latest())

    def begins(self, places: Iterable[Place]) -> dict[Place, int]:
        """Returns the first offsets that still exist."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(places, OffsetSpec.earliest())

    def since(self, places: Iterable[Place], millis: int) -> dict[Place, int]:
        """Returns the first offset at this time or later; -1 if there is none."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(places, OffsetSpec.for_timestamp(millis))

    def _offsets(self, places: Iterable[Place], spec: Any) -> dict[Place, int]:
        """Returns the offsets by partition, without partitions whose leader is away."""
        from confluent_kafka import IsolationLevel, KafkaException, TopicPartition

        wanted = {TopicPartition(*place): spec for place in places}
        if not wanted:
            return {}
        level = IsolationLevel[self._options.isolationLevel.upper()]
        found: dict[Place, int] = {}
        away: KafkaException | None = None
        with self._errors("look up offsets"):
            answers = asked(self._admin.list_offsets, wanted, isolation_level=level, request_timeout=ANSWER)
            for partition, future in answers.items():
                try:
                    found[partition.topic, partition.partition] = answer(future, ANSWER).offset
                except KafkaException as error:
                    if not (is_passing(error) or means(error, Meaning.MISSING)):
                        raise
                    away = error
        if away is not None and not found and not means(away, Meaning.MISSING):
            told = self._said.instead_of(away)
            text = self._options.cluster.hidden(f"{code_of(told)}: {told.args[0].str()}")
            raise FailedException(f"Kafka at {self._options.bootstrap}: no partition answers: {text}")
        return found

    def committed(self, places: Iterable[Place]) -> dict[Place, int]:
        """Returns the committed offsets of the spout's group, without partitions that it has never committed."""
        from confluent_kafka import KafkaException, TopicPartition

        wanted, group = [TopicPartition(*place) for place in places], self._options.groupId
        if group is None or not wanted:
            return {}
        with self._errors(f"read the offsets of group {group}"):
            told = committed(self._options.cluster, group, wanted, ANSWER)
            for one in told:
                if one.error is not None:
                    raise KafkaException(one.error)
        return {(one.topic, one.partition): one.offset for one in told if one.offset >= 0}

    def compacted(self, names: Iterable[str]) -> list[str]:
        """Returns the topics whose cleanup.policy is compact."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource

        wanted = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in sorted(names)]
        found = []
        with self._errors("read the settings of the topics"):
            answers = asked(self._admin.describe_configs, wanted, request_timeout=ANSWER) if wanted else {}
            for resource, future in answers.items():
                try:
                    if "compact" in answer(future, ANSWER)["cleanup.policy"].value:
                        found.append(resource.name)
                except KafkaException as error:
                    self._unreadable(resource.name, error)
        return found

    def _unreadable(self, name: str, error: Any) -> None:
        """Warns once, and reads the topic, if its settings may not be read."""
        if is_passing(error):
            raise error
        if not means(error, Meaning.MISSING) and not self._unchecked:
            self._unchecked = True
            log.warning("whether topic %s is compacted cannot be checked: %s", name, code_of(error))
