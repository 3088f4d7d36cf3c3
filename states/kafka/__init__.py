"""Trident states in Kafka topics."""

from ..rows import RowUpdater
from .append.records import FieldNameBasedTupleToKafkaMapper
from .append.topic import TopicState
from .append.transactional import TransactionalTopicState
from .compacted.state import CompactedTopicState

__all__ = [
    "CompactedTopicState",
    "FieldNameBasedTupleToKafkaMapper",
    "RowUpdater",
    "TopicState",
    "TransactionalTopicState",
]
