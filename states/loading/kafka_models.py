"""The settings of the Kafka states in a file."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from trident_py.documents.models import Count
from trident_py.errors import DefinitionError
from trident_py.kafka.clients import Cluster
from trident_py.state import StateFactory

from .settings import FactorySettings, FieldList, FieldName


def _bootstrap(value: str) -> str:
    Cluster.of(value)
    return value


Bootstrap = Annotated[
    str, AfterValidator(_bootstrap), Field(description="Brokers as host:port, several separated by commas")
]
Settings = dict[str, str | int | float | bool]


class KafkaSettings(FactorySettings):
    """A state in a Kafka topic."""

    bootstrap: Bootstrap
    topic: str = Field(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]+$", description="Name of the topic")
    partitions: Count | None = Field(
        None,
        description="Number of partitions for creating a missing topic; default: the brokers' number for a compacted "
        "topic, any other is refused",
    )
    settings: Settings = Field(
        default={}, description="Settings of librdkafka, such as security.protocol or sasl.password: ${PW}"
    )


class RecordSettings(KafkaSettings):
    """Tuples as records."""

    value: FieldList | None = Field(
        None,
        description="Fields of the value, written as it is if one, as a JSON object if several; default: all but the "
        "key's",
    )
    key: FieldList | None = Field(None, description="Fields of the key; default: none, records without a key")
    headers: FieldList | None = Field(None, description="Fields that become headers of the same names; default: none")
    topicSelector: FieldName | None = Field(
        None, description="Field that names each record's topic, None meaning topic; default: all records go to topic"
    )
    asJson: bool = Field(False, description="Whether a single field is written as a JSON object too")


class TransactionalTopic(RecordSettings):
    """Records appended to a Kafka topic: each batch once, for read_committed readers."""

    kinds: ClassVar[tuple[str, ...]] = ("append",)
    factory: ClassVar[str] = "states.kafka:TransactionalTopicState"

    oneTransaction: bool = Field(
        False, description="Whether the state has only one partition, so that a batch is one transaction"
    )
    consumed: str | None = Field(
        None,
        description="Stream of a KafkaSpout with shareOffsets, whose consumed offsets are committed in the same "
        "transaction; default: none",
    )
    txidHeader: bool = Field(
        False,
        description="Whether records get the header trident-txid. Headers reduce throughput by about a third, and no "
        "reader needs this one",
    )


class Topic(RecordSettings):
    """Records written to a Kafka topic, at least once."""

    kinds: ClassVar[tuple[str, ...]] = ("non-transactional",)
    factory: ClassVar[str] = "states.kafka:TopicState"


class CompactedTopic(KafkaSettings):
    """A value for each key in a compacted Kafka topic, read back from a local table."""

    kinds: ClassVar[tuple[str, ...]] = ("upsert", "opaque", "transactional", "non-transactional")
    factory: ClassVar[str] = "states.kafka:CompactedTopicState"

    key: FieldList | None = Field(
        None,
        description="Fields of the key; default: none, for the one value of a global aggregate (not with plain)",
    )
    value: FieldList = Field(description="Fields of the value, each with or without a type")
    kind: Literal["plain", "non-transactional", "transactional", "opaque"] = Field(
        "plain", description="Kind of state: plain for rows that replace each other, or a kind of map, as in sql-map"
    )
    replication: Count | None = Field(
        None, description="Replication factor for creating a missing topic; default: the brokers'"
    )
    config: Settings = Field(
        default={}, description="Further settings for creating a missing topic, such as segment.ms: 60000"
    )
    restart: float = Field(3600.0, ge=0, lt=1e9, description="Longest downtime of the topology, in seconds")

    def arguments(self) -> dict[str, Any]:
        return {"key": None, **super().arguments()}

    def make(self) -> StateFactory:
        if self.key is None and self.kind == "plain":
            raise DefinitionError(
                f"topic {self.topic!r}: kind plain stores rows that replace each other by key, and 'key' is missing. "
                "Name the key's fields in 'key'; for a global aggregate choose another kind"
            )
        return super().make()
