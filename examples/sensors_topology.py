"""The topology of the sensors: events from Kafka into a table of readings and a compacted topic, each once.

    python -m examples.sensors_topology '{"bootstrap": ..., "url": ..., "events": ..., "checkpoints": ...}'

runs it on Spark until it is stopped. `examples.sensors` starts, kills and restarts it as a separate process.

A gateway that dies between producing an event and storing its status writes the event to Kafka twice. The fingerprint
is the record's key and the key of the table, so INSERT IGNORE stores the event once. A second copy does not change the
highest temperature of a station. It would change a count: count the rows of the table instead.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from states import RowUpdater
from states.kafka import CompactedTopicState
from states.sql import InsertIgnoreState
from trident_py import Fields, SparkCluster, Stream, TridentTopology
from trident_py.events import ProcessedState, ProcessedUpdater
from trident_py.kafka import Json, KafkaSpout
from trident_py.operations.builtin import Maximum

TOPIC, HOTTEST = "readings", "hottest"
EVENT = ["origin string", "time_hour string", "temperature int", "rain int"]
READING = Fields("fingerprint string", *EVENT)


def spout(bootstrap: str, topic: str = TOPIC, maxRecordsPerBatch: int = 1_000, **options: Any) -> KafkaSpout:
    """The events as the gateway wrote them: the key is the fingerprint, the value the event in JSON."""
    written: dict[str, Any] = {"fields": ["key", "value"], "key": "string", "value": Json(*EVENT)}
    return KafkaSpout(bootstrap, topic, maxRecordsPerBatch=maxRecordsPerBatch, **written, **options)


def events_of(topology: TridentTopology, spout: KafkaSpout) -> Stream:
    """The stream of events, with their fingerprints in a field of that name."""
    return topology.newStream("readings", spout).each("key", lambda key: [key], "fingerprint string")


def reading(url: str) -> InsertIgnoreState:
    return InsertIgnoreState(url, "reading", key="fingerprint", columns=READING)


def hottest(bootstrap: str) -> CompactedTopicState:
    return CompactedTopicState(bootstrap, HOTTEST, "origin string", "temperature bigint", kind="opaque", partitions=1)


def build(bootstrap: str, url: str, events: str) -> TridentTopology:
    """``url`` is the database of the readings; ``events`` is the gateway's store, which gets the processed events."""
    topology = TridentTopology()
    readings = events_of(topology, spout(bootstrap))
    readings.partitionPersist(reading(url), READING, RowUpdater())
    measured = readings.filter("temperature", lambda temperature: temperature is not None)
    measured.groupBy("origin").persistentAggregate(hottest(bootstrap), "temperature", Maximum(), "highest")
    readings.partitionPersist(ProcessedState(events), "fingerprint", ProcessedUpdater())
    return topology


def main(settings: dict[str, Any]) -> None:
    topology = build(settings["bootstrap"], settings["url"], settings["events"]).build()
    with SparkCluster(checkpoints=settings["checkpoints"]) as cluster:
        running = cluster.submitTopology("sensors", {}, topology)
        signal.signal(signal.SIGTERM, lambda *_: running.stop())
        Path(settings["checkpoints"], "pid").write_text(str(os.getpid()))
        while not running.awaitTermination(1.0):
            pass


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
