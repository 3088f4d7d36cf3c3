"""The word count of `testbed/jvm/StormWords.java`, ported: it goes on where Storm was killed."""

from __future__ import annotations

import os

import states
from trident_py import TridentTopology
from trident_py.kafka import KafkaSpout
from trident_py.operations.builtin import Count

SETTINGS: dict[str, str] = {}


def build() -> TridentTopology:
    kafka, topic, kind, file = (os.environ[f"WORDS_{name}"] for name in ("KAFKA", "TOPIC", "KIND", "STATES"))
    spout = KafkaSpout(
        kafka, topic, kind="transactional" if kind == "transactional" else "opaque", value="string", fields="value",
        endingOffsets="latest", maxRecordsPerBatch=int(os.environ.get("WORDS_MOST", 50)), settings=SETTINGS,
    )  # fmt: skip
    topology = TridentTopology()
    words = topology.newStream("sentences", spout).each("value", lambda value: value.split(" "), "word")
    words.groupBy("word").persistentAggregate(states.load(file)["counts"], Count(), "count")
    return topology
