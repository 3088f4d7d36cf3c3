"""Storm's TridentKafkaState by its own names, for translated topologies: its factory is a `TopicState`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from states.kafka import FieldNameBasedTupleToKafkaMapper, TopicState
from states.rows import RowUpdater

from ....errors import DefinitionError
from ....tuples import TridentTuple

__all__ = [
    "DefaultTopicSelector", "FieldNameBasedTupleToKafkaMapper", "TridentKafkaStateFactory", "TridentKafkaStateUpdater",
    "TridentKafkaUpdater", "TridentTupleToKafkaMapper",
]  # fmt: skip

TridentKafkaStateUpdater = TridentKafkaUpdater = RowUpdater
_SERIALIZERS = {"key.serializer", "value.serializer"}
_OURS = {"acks", "batch.size", "buffer.memory", "enable.idempotence", "max.block.ms", "retries"}
"""Settings of Java's producer that a `TopicState` decides: it waits for all replicas, and sends nothing twice."""
_SAME = {"client.id", "compression.type", "linger.ms"}


class TridentTupleToKafkaMapper(ABC):
    @abstractmethod
    def getKeyFromTuple(self, tuple: TridentTuple) -> Any: ...

    @abstractmethod
    def getMessageFromTuple(self, tuple: TridentTuple) -> Any: ...


class DefaultTopicSelector:
    def __init__(self, topicName: str) -> None:
        self.topicName = topicName


class TridentKafkaStateFactory(TopicState):
    """One that is set after it is made, as Storm's: a state once it has properties, a selector and a mapper. Raises
    DefinitionError for properties that mean something else here."""

    def __init__(self) -> None:
        object.__setattr__(self, "said", {})

    def withProducerProperties(self, props: Mapping[str, Any]) -> TridentKafkaStateFactory:
        return self._say(**_arguments_of(props))

    def withKafkaTopicSelector(self, selector: DefaultTopicSelector) -> TridentKafkaStateFactory:
        return self._say(topic=selector.topicName)

    def withTridentTupleToKafkaMapper(self, mapper: Any) -> TridentKafkaStateFactory:
        return self._say(mapper=mapper)

    def _say(self, **more: Any) -> TridentKafkaStateFactory:
        said = {**vars(self)["said"], **more}
        object.__setattr__(self, "said", said)
        if {"bootstrap", "topic", "mapper"} <= said.keys():
            super().__init__(**said)
        return self


def _arguments_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    props = dict(properties)
    for name in sorted(_SERIALIZERS & props.keys()):
        if not str(props[name]).endswith((".StringSerializer", ".ByteArraySerializer")):
            raise DefinitionError(f"{name} {props[name]!r} has no counterpart: a record is text or bytes")
    if unknown := sorted(props.keys() - _SERIALIZERS - _OURS - _SAME - {"bootstrap.servers"}):
        raise DefinitionError(f"no certain counterpart for {', '.join(unknown)}: name librdkafka's in a TopicState")
    settings = {name: props[name] for name in sorted(_SAME & props.keys())}
    return {"bootstrap": props["bootstrap.servers"], "settings": settings}
