"""Trident states in Kafka topics."""

from typing import TYPE_CHECKING

from trident_py.entry_points import answer

from ..rows import RowUpdater
from .append.records import FieldNameBasedTupleToKafkaMapper
from .append.transactional import TopicState, TransactionalTopicState
from .compacted.state import CompactedTopicState

__all__ = [
    "CompactedTopicState",
    "FieldNameBasedTupleToKafkaMapper",
    "RowUpdater",
    "TopicState",
    "TransactionalTopicState",
]

if not TYPE_CHECKING:
    __getattr__ = answer(__name__)
