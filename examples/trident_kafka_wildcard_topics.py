"""TridentKafkaClientTopologyWildcardTopics of storm-kafka-client-examples: topics by a regular expression.

    python -m examples.trident_kafka_wildcard_topics localhost:9092 true --local      in this process, no JVM
    python -m examples.trident_kafka_wildcard_topics localhost:9092 true              on Spark; true: an opaque spout

Like trident_kafka_named_topics.py, but for the spout.

Source: TridentKafkaClientTopologyWildcardTopics.java in examples/storm-kafka-client-examples (Apache Storm).
"""

from __future__ import annotations

from examples.trident_kafka_named_topics import run
from trident_py import Values
from trident_py.kafka import KafkaSpout

TOPIC_WILDCARD_PATTERN = "test-trident(-1)?"


def newKafkaSpout(bootstrapServers: str, isOpaque: bool, pattern: str = TOPIC_WILDCARD_PATTERN) -> KafkaSpout:
    return KafkaSpout(
        bootstrapServers,
        pattern=pattern,
        kind="opaque" if isOpaque else "transactional",
        settings={"max.partition.fetch.bytes": 200},
        value="string",
        translator=lambda record: Values(record.value),
        fields="str",
        firstPollOffsetStrategy="EARLIEST",
        endingOffsets="latest",
    )


if __name__ == "__main__":
    run(newKafkaSpout)
