"""Kafka: the spout, and the clients that it shares with the states of `states.kafka`."""

from typing import TYPE_CHECKING

from ..entry_points import answer, names_of
from .consumed_offsets import Consumed, consumed, partitions_of_task
from .coordinator import KafkaSpout
from .formats import Bytes, Format, Json, Text
from .records import KafkaRecord

__all__ = [
    "Avro",
    "Bytes",
    "Consumed",
    "Format",
    "Json",
    "KafkaRecord",
    "KafkaSpout",
    "Text",
    "consumed",
    "partitions_of_task",
]

if TYPE_CHECKING:
    from ..extras.avro.avro_format import Avro
else:
    __getattr__ = answer(__name__, {"Avro": names_of("Avro", "avro")})
