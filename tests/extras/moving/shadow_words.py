"""A word count of Kafka's sentences into a map, as a topology that a shadow run takes."""

from __future__ import annotations

import os

import states
from trident_py import TridentTopology
from trident_py.kafka import KafkaSpout
from trident_py.operations.builtin import Count


def build() -> TridentTopology:
    spout = KafkaSpout(
        os.environ["SHADOW_KAFKA"], os.environ["SHADOW_TOPIC"], kind="opaque", value="string", fields="value",
        endingOffsets="latest", maxRecordsPerBatch=25,
    )  # fmt: skip
    topology = TridentTopology()
    words = topology.newStream("sentences", spout).each("value", lambda value: value.split(" "), "word")
    words.groupBy("word").persistentAggregate(states.load("states.yaml")["counts"], Count(), "count")
    return topology
