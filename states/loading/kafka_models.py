"""The settings of the Kafka states in a file."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from trident_py.errors import DefinitionError
from trident_py.kafka.clients import Cluster
from trident_py.state import StateFactory

from .settings import Count, FieldList, StateSettings


def _bootstrap(value: str) -> str:
    Cluster.of(value)
    return value


Bootstrap = Annotated[
    str, AfterValidator(_bootstrap), Field(description="Brokers: host:port, or several with commas between")
]
TopicName = Annotated[str, Field(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]+$", description="The topic")]
Partitions = Annotated[Count | None, Field(description="A missing topic is made with so many partitions")]
Settings = Annotated[
    dict[str, str | int | float | bool],
    Field(description="librdkafka's settings, such as security.protocol or compression.type"),
]
Config = dict[str, str | int | float | bool]
Selector = Annotated[str | None, Field(description="The field that names each record's topic, in place of the one")]


class KafkaSettings(StateSettings):
    """A state in a Kafka topic."""

    factory: ClassVar[str]

    bootstrap: Bootstrap
    topic: TopicName
    partitions: Partitions = None
    settings: Settings = Field(default={}, description="librdkafka's settings, such as security.protocol")

    def make(self) -> StateFactory:
        return self._made()

    def _made(self, **more: Any) -> StateFactory:
        given = {name: getattr(self, name) for name in type(self).model_fields}
        given = {name: value for name, value in given.items() if value is not None}
        made: StateFactory = resolve_name(self.factory)(**{**more, **given})
        return made


class Records(KafkaSettings):
    """Tuples as records."""

    value: FieldList | None = Field(None, description="The fields of the value. Without it: all but those of the key")
    key: FieldList | None = Field(None, description="The fields of the key. Without it: records have none")
    headers: FieldList | None = Field(None, description="Fields that become headers of their names")
    topicSelector: Selector = None
    asJson: bool = Field(False, description="A single field as a JSON object too")


class TransactionalTopic(Records):
    """Records appended to a Kafka topic: each batch once, for read_committed readers."""

    kinds: ClassVar[tuple[str, ...]] = ("append",)
    factory: ClassVar[str] = "states.kafka:TransactionalTopicState"

    oneTransaction: bool = Field(False, description="One state partition, so that a batch becomes visible at once")
    consumed: str | None = Field(None, description="The stream of a Kafka spout whose offsets are committed with it")
    txidHeader: bool = Field(False, description="Adds the header trident-txid to every record")


class Topic(Records):
    """Records written to a Kafka topic, at least once."""

    kinds: ClassVar[tuple[str, ...]] = ("non-transactional",)
    factory: ClassVar[str] = "states.kafka:TopicState"


class CompactedTopic(KafkaSettings):
    """A value for each key in a compacted Kafka topic, read back from a local table."""

    kinds: ClassVar[tuple[str, ...]] = ("upsert", "opaque", "transactional", "non-transactional")
    factory: ClassVar[str] = "states.kafka:CompactedTopicState"

    key: FieldList | None = Field(None, description="The key's fields. Without it: one value, a global aggregate's")
    value: FieldList = Field(description="The value's fields, with their types, or one without")
    kind: Literal["plain", "non-transactional", "transactional", "opaque"] = Field(
        "plain", description="plain: rows that replace each other; else a map that keeps this beside a value"
    )
    fence: bool = Field(True, description="Transactions that shut out an older driver; only plain can do without")
    replication: Count | None = Field(None, description="A missing topic is made with so many replicas")
    config: Config = Field(default={}, description="A missing topic's settings, such as segment.ms")
    restart: float = Field(3600.0, ge=0, description="Seconds that the topology may be down; the topic outlives them")

    def make(self) -> StateFactory:
        if self.key is None and self.kind == "plain":
            raise DefinitionError(
                f"topic {self.topic!r}: rows of kind plain replace each other under a key; name its fields with 'key'. "
                "(Without a key all rows are one; a global aggregate has another kind)"
            )
        return self._made(key=self.key)
