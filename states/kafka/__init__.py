"""Trident states in Kafka topics."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..rows import RowUpdater
from .append.records import FieldNameBasedTupleToKafkaMapper
from .append.topic import TopicState
from .append.transactional import TransactionalTopicState

if TYPE_CHECKING:
    from .compacted.state import CompactedTopicState

__all__ = [
    "CompactedTopicState",
    "FieldNameBasedTupleToKafkaMapper",
    "RowUpdater",
    "TopicState",
    "TransactionalTopicState",
]


def __getattr__(name: str) -> Any:
    if name == "CompactedTopicState":
        return import_module(".compacted.state", __name__).CompactedTopicState
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
