"""TridentKafkaWordCount: sentences into Kafka, a word count of them, and a DRPC query of the counts.

    python -m examples.trident_kafka_word_count localhost:9092 --local      in this process, no JVM
    python -m examples.trident_kafka_word_count localhost:9092              on Spark

Producer, consumer and client of DRPC, as in Storm. The state fails now and then, and the replays change no count.

Source: TridentKafkaWordCount.java and RandomSentenceSpout.java in the examples of Storm 1 (Apache Storm).
"""

from __future__ import annotations

import datetime
import random
import sys

from examples.trident_debug_state import DebugMemoryMapState
from states.kafka import TopicState
from trident_py import Config, Fields, LocalCluster, LocalDRPC, SparkCluster, TridentTopology, Values
from trident_py.kafka import KafkaSpout
from trident_py.operations.builtin import Count, Debug, FilterNull, MapGet
from trident_py.spouts import IRichSpout
from trident_py.testing import Split

SENTENCES = (
    "the cow jumped over the moon",
    "an apple a day keeps the doctor away",
    "four score and seven years ago",
    "snow white and the seven dwarfs",
    "i am at two with nature",
)


class RandomSentenceSpout(IRichSpout):
    """Emits sentences at random, each behind the time of day. Ends after ``limit``; None: never."""

    def __init__(self, limit=20):
        self.limit = limit
        self.emitted = 0

    def open(self, conf, context, collector):
        self.collector = collector

    def nextTuple(self):
        if not self.isExhausted():
            self.emitted += 1
            self.collector.emit(Values(f"{datetime.datetime.now():%H:%M:%S} {random.choice(SENTENCES)}"))

    def isExhausted(self):
        return self.emitted == self.limit

    def declareOutputFields(self, declarer):
        declarer.declare("word")


def createKafkaSpout(brokerUrl: str, topic: str, kind: str, ends: bool) -> KafkaSpout:
    """Consumes the sentences of the topic, from its beginning; Storm's example begins at its end."""
    return KafkaSpout(
        brokerUrl,
        topic,
        kind=kind,
        value="string",
        translator=lambda record: Values(record.value),
        fields="str",
        firstPollOffsetStrategy="EARLIEST",
        endingOffsets="latest" if ends else None,
    )


def addDRPCStream(tridentTopology, state, drpc):
    return (
        tridentTopology.newDRPCStream("words", drpc)
        .each(Fields("args"), Split(), Fields("word"))
        .groupBy(Fields("word"))
        .stateQuery(state, Fields("word"), MapGet(), Fields("count"))
        .each(Fields("count"), FilterNull())
        .project(Fields("word", "count"))
    )


def addTridentState(tridentTopology, spout, factory):
    spoutStream = tridentTopology.newStream("spout1", spout).parallelismHint(1)
    return (
        spoutStream.each(spoutStream.getOutputFields(), Debug(True))
        .each(Fields("str"), Split(), Fields("word"))
        .groupBy(Fields("word"))
        .persistentAggregate(factory, Count(), Fields("count"))
    )


def buildConsumerTopology(spout: KafkaSpout, drpc: LocalDRPC | None = None, state=None) -> TridentTopology:
    tridentTopology = TridentTopology()
    factory = state or DebugMemoryMapState.Factory()
    addDRPCStream(tridentTopology, addTridentState(tridentTopology, spout, factory), drpc)
    return tridentTopology


def buildProducerTopology(brokerUrl: str, topic: str = "test", limit: int | None = 20) -> TridentTopology:
    """Random sentences into the topic, which is made if it is missing."""
    topology = TridentTopology()
    state = TopicState(brokerUrl, topic, value="word", partitions=1)
    topology.newStream("spout", RandomSentenceSpout(limit)).partitionPersist(state)
    return topology


def main() -> None:
    brokerUrl = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "localhost:9092")
    print("Using Kafka broker url:", brokerUrl)
    conf = Config()
    conf.setMaxSpoutPending(20)
    drpc = LocalDRPC()
    with LocalCluster() if "--local" in sys.argv else SparkCluster() as cluster:
        cluster.submitTopology("kafkaProducer", conf, buildProducerTopology(brokerUrl).build()).awaitTermination()
        spout = createKafkaSpout(brokerUrl, "test", kind="opaque", ends=True)
        cluster.submitTopology("wordCounter", conf, buildConsumerTopology(spout, drpc).build()).awaitTermination()
        print("DRPC RESULT:", sorted(drpc.execute("words", "the and apple snow jumped")))


if __name__ == "__main__":
    main()
