"""The topic of a state: checks that it exists, and creates it if the state's options say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from trident_py.errors import DefinitionError, FailedException, StateError
from trident_py.kafka import confluent
from trident_py.kafka.blocking_calls import answer, call_client, connect_admin
from trident_py.kafka.clients import Cluster, code_of, means
from trident_py.kafka.error_codes import Meaning
from trident_py.model.retry import again_for

from ..diagnostics import Finding
from .advice import kafka_errors
from .marks import ANSWER, MarkPlace

PATIENCE = 5.0
PAUSE = 0.1
T = TypeVar("T")


def reach(cluster: Cluster) -> Any:
    """Return an AdminClient whose brokers have answered. Raises FailedException if no broker answers, StateError if
    they refuse the connection."""
    with kafka_errors(cluster, "reach a broker"):
        return connect_admin(cluster)


def run_when_available(cluster: Cluster, work: Callable[[], T]) -> T:
    """Run a start's work on a topic after a broker has answered. Raises FailedException at once if none does. Repeats
    it for some seconds while brokers are busy: coordinators load, topics get their leaders."""
    reach(cluster)
    return again_for(PATIENCE, PAUSE, lambda error: isinstance(error, FailedException), work)


def check_there(place: MarkPlace, admin: Any, create: int | None = None) -> list[int]:
    """Return the topic's partitions. Creates a missing topic with ``create`` partitions; raises StateError if that is
    None."""
    partitions = _find_partitions(place, admin)
    if partitions is not None:
        return partitions
    if create is None:
        raise StateError(f"{place.label}: {_describe_missing(place.topic)}")
    make(place.cluster, admin, place.topic, create)
    return list(range(create))


def look(cluster: Cluster, topic: str, create: int | None = None, queried: bool = False) -> list[Finding]:
    """Report whether the topic exists or would be created. Called before the start; writes nothing. ``queried``: the
    start would only read it."""
    partitions = _find_partitions(MarkPlace(cluster, topic, "", topic), reach(cluster))
    if partitions is not None:
        return [Finding("ok", f"topic {topic!r} has {len(partitions)} partitions")]
    if queried:
        text = f"topic {topic!r} does not exist, and is only queried: it has no values until somebody writes them"
        return [Finding("warning", text)]
    if create is not None:
        return [look_ahead(cluster, topic, create)]
    return [Finding("error", _describe_missing(topic))]


def look_ahead(
    cluster: Cluster, topic: str, partitions: int | None, replication: int | None = None,
    config: Mapping[str, str] | None = None,
) -> Finding:  # fmt: skip
    """Report that a missing topic would be created, or why the brokers would refuse to. Creates nothing."""
    try:
        make(cluster, cluster.admin(), topic, partitions, replication, config, pretend=True)
    except StateError as error:
        return Finding("error", f"topic {topic!r} does not exist, and a start cannot create it. {error}")
    kind = ", compacted" if config and "compact" in config.get("cleanup.policy", "") else ""
    many = "the broker's default" if partitions is None else partitions
    return Finding("creates", f"topic {topic!r} does not exist; it would be created{kind}, partitions: {many}")


def _describe_missing(topic: str) -> str:
    return f"there is no topic {topic!r}. Create it, or let the state create it with partitions=<number>"


def _find_partitions(place: MarkPlace, admin: Any) -> list[int] | None:
    return unless_missing(place.cluster, place.topic, lambda: partitions_of(admin, place.topic))


def unless_missing(cluster: Cluster, topic: str, work: Callable[[], T]) -> T | None:
    """Look a topic up; return None for a missing one. Raises FailedException if the brokers are away."""
    with kafka_errors(cluster, f"look up topic {topic!r}"):
        try:
            return work()
        except confluent.KafkaException as error:
            if means(error, Meaning.MISSING):
                return None
            raise


def make(
    cluster: Cluster, admin: Any, topic: str, partitions: int | None = None, replication: int | None = None,
    config: Mapping[str, str] | None = None, pretend: bool = False,
) -> None:  # fmt: skip
    """Create a topic, unless it exists by now. ``partitions`` and ``replication`` None: the brokers' defaults.
    ``pretend``: the brokers only check whether they would."""
    wanted = confluent.NewTopic(topic, partitions or -1, replication or -1, config=dict(config or {}))
    with kafka_errors(cluster, f"create topic {topic!r}"):
        limits = {"operation_timeout": ANSWER, "request_timeout": ANSWER}
        futures = call_client(admin.create_topics, [wanted], validate_only=pretend, **limits)
        try:
            answer(futures[topic], ANSWER)
        except confluent.KafkaException as error:
            if code_of(error) != "TOPIC_ALREADY_EXISTS":
                raise


def partition_count(topic: str, value: int | None) -> int | None:
    """Check the option ``partitions`` of a state. Raises DefinitionError unless it is None or a number from 1 on."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise DefinitionError(f"topic {topic!r}: partitions must be an integer of at least 1, got {value!r}")
    return value


def partitions_of(admin: Any, topic: str) -> list[int]:
    """Return the partitions of the topic. Raises KafkaException."""
    return sorted(partition.id for partition in _description(admin, topic).partitions)


def count_partitions(consumer: Any, topic: str) -> int:
    """Return the number of partitions. Raises KafkaException. For each batch: confluent-kafka 2.16 keeps 94 bytes for
    ever of each description that `partitions_of` asks for. A consumer, unlike other clients, creates no topic."""
    found = call_client(consumer.list_topics, topic, ANSWER).topics[topic]
    if found.error is not None:
        raise confluent.KafkaException(found.error)
    return len(found.partitions)


def id_of(place: MarkPlace, admin: Any) -> str:
    """Return the id that the brokers gave the topic when it was created; "" for a missing topic. Raises FailedException
    if the brokers are away."""
    topic = place.topic
    return unless_missing(place.cluster, topic, lambda: str(_description(admin, topic).topic_id)) or ""


def _description(admin: Any, topic: str) -> Any:
    futures = call_client(admin.describe_topics, confluent.TopicCollection([topic]), request_timeout=ANSWER)
    return answer(futures[topic], ANSWER)


def settings_of(admin: Any, topic: str) -> dict[str, str]:
    """Return the topic's settings. Raises KafkaException."""
    wanted = [confluent.ConfigResource(confluent.ResourceType.TOPIC, topic)]
    (future,) = call_client(admin.describe_configs, wanted, request_timeout=ANSWER).values()
    return {name: entry.value for name, entry in answer(future, ANSWER).items()}
