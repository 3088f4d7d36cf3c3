"""Measures what is lost or doubled without the gateway, and with spouts and states that promise less.

    python -m examples.sensors_table

The same events from the same sensors, which resend them: once through the gateway, once straight into Kafka. From there
a topology of five states reads them, and its process dies by SIGKILL twice: once when all states have committed a batch
that is not reported yet, once before any state has written one. It is started again each time. For every state the
table shows what was promised before the start, and what is lost and doubled against the file at the end.

The promises begin in Kafka: without the gateway a resent event is in Kafka twice, and each copy is counted exactly
once. "Wrong" means that a replay may have other tuples; here Kafka lost nothing, so the opaque spout repeated them.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from confluent_kafka import Consumer, Producer, TopicPartition
from rich.console import Console
from rich.progress import track
from rich.table import Table

from states import RowUpdater
from states.sql import AppendState, InsertIgnoreState, SqlMapState
from testbed.kafka_broker import KafkaBroker
from testbed.service import free_port
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.events import Fingerprint
from trident_py.operations.builtin import Count
from trident_py.spouts import IBatchSpout
from trident_py.testing import Crashing

from .sensors_chain import FINGERPRINT, answers, gateway, query, wait_for
from .sensors_fleet import Fleet, readings
from .sensors_topology import EVENT, READING, events_of
from .sensors_topology import spout as kafka_spout

BATCH = 200
RESENT = 0.05
# Which state the driver dies in, at which batch, and where; the third start runs to the end.
DEATHS = (("opaque map", 3, "afterCommit"), ("insert-ignore", 5, "update"), None)
SOURCES = ("gateway", "no gateway")
SPOUTS = ("transactional", "opaque", "non-transactional")


class AutoCommitSpout(IBatchSpout):
    """A simple first consumer: commits the group's offsets as it reads the records. Non-transactional."""

    ended = False

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap, self.topic = bootstrap, topic

    def open(self, conf: dict, context: Any) -> None:
        first = {"auto.offset.reset": "earliest", "enable.partition.eof": True, "enable.auto.commit": False}
        self.consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "sensors", **first})
        self.consumer.assign([TopicPartition(self.topic, 0)])  # continues at the group's offset
        self.ended = False

    def emitBatch(self, batchId: int, collector: Any) -> None:
        for message in self.consumer.consume(BATCH, 5.0):
            self.ended = self.ended or message.error() is not None
            if message.error() is None:
                event = json.loads(message.value() or b"")
                collector.emit([(message.key() or b"").decode(), *(event[name] for name in Fields.of(EVENT))])
        if not self.ended:
            self.consumer.commit(asynchronous=False)

    def isExhausted(self) -> bool:
        return self.ended

    def getOutputFields(self) -> Fields:
        return READING

    def close(self) -> None:
        self.consumer.close()


def states(url: str) -> dict[str, Any]:
    """Five states by kind; the maps count the events of each station."""
    counted: dict[str, Any] = {"keys": "origin string", "value": "events bigint"}
    return {
        "insert-ignore": InsertIgnoreState(url, "unique_reading", key="fingerprint", columns=READING),
        "append": AppendState(url, "appended", columns=READING),
        "non-transactional map": SqlMapState.nonTransactional(url, "plain_count", **counted),
        "transactional map": SqlMapState.transactional(url, "transactional_count", **counted),
        "opaque map": SqlMapState.opaque(url, "opaque_count", **counted),
    }


def build(bootstrap: str, topic: str, spout: str, url: str, death: tuple | None) -> TridentTopology:
    topology = TridentTopology()
    if spout == "non-transactional":
        stream = topology.newStream("readings", AutoCommitSpout(bootstrap, topic))
    else:
        reader = kafka_spout(bootstrap, topic, BATCH, kind=spout, endingOffsets="latest")
        stream = events_of(topology, reader)
    for kind, state in states(url).items():
        if death is not None and kind == death[0]:
            state = Crashing(state, at=death[2], when={(death[1], 0)}, how="kill")
        if kind.endswith("map"):
            stream.groupBy("origin").persistentAggregate(state, Count(), "events")
        else:
            stream.partitionPersist(state, READING, RowUpdater())
    return topology


def child(settings: dict[str, Any]) -> None:
    """One start of the driver."""
    checkpoints = settings.pop("checkpoints")
    topology = build(**settings)
    with LocalCluster(checkpoints) as cluster:
        cluster.submitTopology("table", {}, topology.build()).awaitTermination()


def through_gateway(bootstrap: str, topic: str, events: list[dict], folder: Path, seed: int) -> None:
    """A fleet that resends, against a real gateway."""
    port = free_port()
    settings = {
        "kafka": {"bootstrap": bootstrap, "topic": topic}, "fingerprint": {"fields": FINGERPRINT},
        "store": f"sqlite:///{folder}/events.db", "port": port,
    }  # fmt: skip
    running = gateway(folder, settings)
    running.start()
    try:
        wait_for(lambda: answers(f"http://127.0.0.1:{port}/healthz"), "the gateway does not answer")
        fleet = Fleet(f"http://127.0.0.1:{port}", events, sensors=10, rate=1e6, seed=seed)
        asyncio.run(fleet.run(lambda acked: None))
    finally:
        running.stop()


def straight(bootstrap: str, topic: str, events: list[dict], seed: int) -> None:
    """The same sensors without a gateway: a resent event is in Kafka twice."""
    draw, fingerprint = random.Random(seed), Fingerprint(FINGERPRINT)
    producer = Producer({"bootstrap.servers": bootstrap})
    for event in events:
        for _ in range(2 if draw.random() < RESENT else 1):
            producer.produce(topic, json.dumps(event).encode(), fingerprint.of(event))
    producer.flush()


def difference(kind: str, url: str, events: list[dict]) -> tuple[int, int]:
    """Returns the numbers of lost and doubled events of a state."""
    state = states(url)[kind]
    if kind.endswith("map"):
        stored = Counter(dict(query(url, f"SELECT origin, events FROM {state.table}")))
        sent = Counter(event["origin"] for event in events)
    else:
        stored = Counter(query(url, f"SELECT origin, time_hour, temperature, rain FROM {state.table}"))
        sent = Counter(tuple(event.values()) for event in events)
    return (sent - stored).total(), (stored - sent).total()


def measure(bootstrap: str, source: str, spout: str, events: list[dict], folder: Path) -> Iterable[tuple]:
    """Runs one line of the table and yields a row for each state."""
    line = Path(tempfile.mkdtemp(dir=folder))
    url, topic = f"sqlite:///{line}/table.sqlite", source.replace(" ", "-")
    setup = {"bootstrap": bootstrap, "topic": topic, "spout": spout, "url": url, "checkpoints": f"{line}/checkpoints"}
    codes = []
    for death in DEATHS:
        command = [sys.executable, "-m", "examples.sensors_table", "--child", json.dumps({**setup, "death": death})]
        codes.append(subprocess.run(command, stdin=subprocess.DEVNULL).returncode)
    if codes != [-9, -9, 0]:
        raise click.ClickException(f"the driver ended with {codes}; expected SIGKILL twice, then 0")
    promised = build(bootstrap, topic, spout, url, None).guarantees()
    by_state = {guarantee.state: guarantee.guarantee for guarantee in promised}
    for kind, state in states(url).items():
        yield source, spout, kind, by_state[state.table], *difference(kind, url, events)


def run(events: list[dict], seed: int) -> list[tuple]:
    with KafkaBroker() as broker, tempfile.TemporaryDirectory(prefix="sensors-") as temporary:
        folder = Path(temporary)
        for source in SOURCES:
            broker.create_topic(source.replace(" ", "-"), partitions=1)
        through_gateway(broker.bootstrap, "gateway", events, folder, seed)
        straight(broker.bootstrap, "no-gateway", events, seed)
        pairs = [(source, spout) for source in SOURCES for spout in SPOUTS]
        shown = track(pairs, "measuring", console=Console(stderr=True))
        return [row for source, spout in shown for row in measure(broker.bootstrap, source, spout, events, folder)]


def show(rows: list[tuple]) -> None:
    table = Table(title="lost and doubled after two kills of the driver")
    for heading in ("sensors through", "spout", "state", "promised, from Kafka on", "lost", "doubled"):
        table.add_column(heading, justify="right" if heading in ("lost", "doubled") else "left")
    for row in rows:
        table.add_row(*map(str, row), end_section=row[2] == "opaque map")
    Console(width=110).print(table)


@click.command()
@click.option("--readings", "count", default=2_000, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--child", "settings", hidden=True)
def main(count: int, seed: int, settings: str | None) -> None:
    """Measure the table."""
    if settings is not None:
        child(json.loads(settings))
    else:
        show(run(readings(count), seed))


if __name__ == "__main__":
    main()
