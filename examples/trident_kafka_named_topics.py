"""TridentKafkaClientTopologyNamedTopics of storm-kafka-client-examples: two producers, and a reader of both topics.

    python -m examples.trident_kafka_named_topics localhost:9092 true --local      in this process, no JVM
    python -m examples.trident_kafka_named_topics localhost:9092 true              on Spark; true: an opaque spout

The reader prints what the topics have when it starts, and ends. Storm's topologies run for ever. The producers are
core Storm there (a spout and a KafkaBolt); here they are a stream into a TopicState.

Source: TridentKafkaClientTopologyNamedTopics.java, TridentKafkaConsumerTopology.java and KafkaProducerTopology.java in
examples/storm-kafka-client-examples (Apache Storm).
"""

from __future__ import annotations

import sys
import uuid

from states.kafka import TopicState
from trident_py import Config, LocalCluster, SparkCluster, TridentTopology, Values
from trident_py.kafka import KafkaSpout
from trident_py.operations.builtin import Debug
from trident_py.spouts import IRichSpout
from trident_py.testing import collect

TOPIC_1 = "test-trident"
TOPIC_2 = "test-trident-1"
KAFKA_LOCAL_BROKER = "localhost:9092"


class LambdaSpout(IRichSpout):
    """Emits random UUIDs. Ends after ``limit``; None: never."""

    def __init__(self, limit=5):
        self.limit = limit
        self.emitted = 0

    def open(self, conf, context, collector):
        self.collector = collector

    def nextTuple(self):
        if not self.isExhausted():
            self.emitted += 1
            self.collector.emit(Values(str(uuid.uuid4())))

    def isExhausted(self):
        return self.emitted == self.limit

    def declareOutputFields(self, declarer):
        declarer.declare("lambda")


def newProducer(brokerUrl: str, topicName: str, limit: int | None = 5) -> TridentTopology:
    """Writes random UUIDs to a topic, without a key. Makes the topic if it is missing."""
    topology = TridentTopology()
    state = TopicState(brokerUrl, topicName, value="lambda", partitions=1)
    topology.newStream("spout", LambdaSpout(limit)).partitionPersist(state)
    return topology


def newKafkaSpout(bootstrapServers: str, isOpaque: bool, topics=(TOPIC_1, TOPIC_2), ends: bool = True) -> KafkaSpout:
    return KafkaSpout(
        bootstrapServers,
        topics,
        kind="opaque" if isOpaque else "transactional",
        settings={"max.partition.fetch.bytes": 200},
        value="string",
        translator=lambda record: Values(record.value),
        fields="str",
        firstPollOffsetStrategy="EARLIEST",
        endingOffsets="latest" if ends else None,
    )


def newConsumer(spout: KafkaSpout) -> TridentTopology:
    """Prints what it reads."""
    topology = TridentTopology()
    spoutStream = topology.newStream("spout", spout).parallelismHint(2)
    collect(spoutStream.each(spoutStream.getOutputFields(), Debug(False)), "read")
    return topology


def run(newSpout) -> None:
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    brokerUrl = arguments[0] if arguments else KAFKA_LOCAL_BROKER
    isOpaque = arguments[1] == "true" if len(arguments) > 1 else True
    print(f"Running with broker url {brokerUrl} and isOpaque={isOpaque}")

    tpConf = Config()
    tpConf.setMaxSpoutPending(5)

    with LocalCluster() if "--local" in sys.argv else SparkCluster() as cluster:
        for topic in (TOPIC_1, TOPIC_2):
            producer = newProducer(brokerUrl, topic).build()
            cluster.submitTopology(topic + "-producer", tpConf, producer).awaitTermination()
        consumer = newConsumer(newSpout(brokerUrl, isOpaque)).build()
        running = cluster.submitTopology("topics-consumer", tpConf, consumer)
        running.awaitTermination()
        for (value,) in sorted(row for rows in running.collected("read").values() for row in rows):
            print("READ:", value)


if __name__ == "__main__":
    run(newKafkaSpout)
