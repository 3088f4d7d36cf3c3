"""States in Kafka topics."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..rows import RowUpdater
from .records import FieldNameBasedTupleToKafkaMapper
from .topic import TopicState
from .transactional import TransactionalTopicState

if TYPE_CHECKING:
    from .compacted import CompactedTopicState

__all__ = [
    "CompactedTopicState",
    "FieldNameBasedTupleToKafkaMapper",
    "RowUpdater",
    "TopicState",
    "TransactionalTopicState",
]


def __getattr__(name: str) -> Any:
    if name == "CompactedTopicState":
        return import_module(".compacted", __name__).CompactedTopicState
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
