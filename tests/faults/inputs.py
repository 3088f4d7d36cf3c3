"""What the spouts of a drawn topology read: files, a topic, and a topic behind the gateway for events."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from confluent_kafka import Producer

from .cell_topology import topic_of
from .drawn import LINES, Input, line, numbered_row
from .forks import PATIENCE
from .held import INPUT
from .readings import PARTITIONS
from .stores import ROW

KILLED = ("received", "claimed", "kept")
"""Steps of the gateway at which its death doubles no record in the topic."""
TYPES = {"string": "string", "bigint": "integer"}


def write(rows: Input, folder: Path, url: str) -> None:
    """``url``: of the states, beside whose topics that of a KafkaSpout is."""
    if rows.drawn.spout == "files":
        _write_files(rows, folder)
    elif rows.drawn.spout == "kafka":
        _write_topic(rows, *topic_of(url, INPUT))
    elif rows.drawn.spout == "gateway":
        _send(rows, folder, *topic_of(url, INPUT))


def _write_files(rows: Input, folder: Path) -> None:
    """Three, whose ends fall into batches."""
    lines = [",".join(map(str, line(number))) for number in range(rows.last * LINES)]
    for number in range(3):
        part = lines[number * len(lines) // 3 : (number + 1) * len(lines) // 3]
        (folder / f"in-{number}.csv").write_text("\n".join([",".join(ROW), *part]) + "\n")


def _events(rows: Input, partition: int) -> list[dict[str, Any]]:
    return [dict(zip(ROW, numbered_row(partition, n), strict=True)) for n in range(rows.last * LINES)]


def _write_topic(rows: Input, bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for partition in range(PARTITIONS):
        for event in _events(rows, partition):
            producer.produce(topic, json.dumps(event), partition=partition)
    assert producer.flush(PATIENCE) == 0


def _send(rows: Input, folder: Path, bootstrap: str, topic: str) -> None:
    """Devices send until they see an ACK, and some send again then; the gateway is killed once, and started again."""
    from extras.gateway.gateway_process import Gateway, send, until

    draw = random.Random(f"devices/{rows.seed}")
    made = Gateway(
        folder, SimpleNamespace(bootstrap=bootstrap), f"sqlite:///{folder}/events.db", topic,
        fingerprint={"fields": ["id"]}, event={"required": {n: TYPES[ROW.types[n]] for n in ROW}, "optional": {}},
    )  # fmt: skip
    events = [event for partition in range(PARTITIONS) for event in _events(rows, partition)]
    bodies = [events[at : at + LINES] for at in range(0, len(events), LINES)]
    bodies += draw.sample(bodies, len(bodies) // 3)
    draw.shuffle(bodies)
    made.start(kill_at=draw.choice(KILLED), call=draw.randrange(1, 6))
    try:
        with ThreadPoolExecutor(2) as devices:
            sent = [devices.submit(send, [made.url], body) for body in bodies]
            until(lambda: made.dead, made)
            made.start()
            for each in sent:
                each.result()
    finally:
        made.stop()
