"""Sensors to tables, each event exactly once, while everything between them is killed.

    python -m examples.sensors                 26,115 real readings; gateway, broker, driver and database die in turn
    python -m examples.sensors --readings 3000 --kills 4

Sensors replay real weather readings over HTTP: they lose ACKs, resend, come twice and late. The gateway
(`trident_py.events`) takes each event once and writes it to Kafka; a topology on Spark (`examples.sensors_topology`)
brings it into MariaDB and into a compacted topic. A broker and a database of their own are started for that, and end
with it. The report at the end is checked against the file, row by row; the exit code is 0 only if nothing is lost or
doubled. `examples.sensors_table` shows what happens without the gateway, and with spouts and states that promise less.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from confluent_kafka import Consumer
from rich.console import Console
from rich.table import Table

from trident_py.testing import stored

from .sensors_chain import TURNS, Chain, Killer, query, wait_for
from .sensors_fleet import Fleet, readings
from .sensors_topology import TOPIC, hottest

console = Console(stderr=True)


@dataclass
class Result:
    """The contents of Kafka and of the stores at the end."""

    records: Counter[bytes]
    rows: list[tuple]
    hottest: dict[str, int]
    statuses: Counter[str]


def records_of(bootstrap: str, topic: str) -> Counter[bytes]:
    """Returns how often each key is in a topic, read to its end."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "report", "enable.partition.eof": True,
                         "auto.offset.reset": "earliest", "enable.auto.commit": False})  # fmt: skip
    consumer.subscribe([topic])
    keys: Counter[bytes] = Counter()
    ended: set[int | None] = set()
    partitions = len(consumer.list_topics(topic, 10).topics[topic].partitions)
    while len(ended) < partitions:
        for message in consumer.consume(10_000, 1.0):
            if message.error() is None:
                keys[message.key() or b""] += 1
            else:
                ended.add(message.partition())
    consumer.close()
    return keys


def look(chain: Chain) -> Result:
    rows = query(chain.url, "SELECT origin, time_hour, temperature, rain FROM reading")
    statuses = query(chain.events, "SELECT status, COUNT(*) FROM trident_events GROUP BY status")
    highest = {key[0]: value.curr for key, value in stored(hottest(chain.broker.bootstrap)).items()}
    return Result(records_of(chain.broker.bootstrap, TOPIC), rows, highest, Counter(dict(statuses)))


async def drive(fleet: Fleet, killer: Killer) -> None:
    """Runs the fleet and the kills. A killed link is back before the next one is killed. Raises what a kill raised."""
    waiting: set[asyncio.Task[None]] = set()

    def step(acked: int) -> None:
        for task in [task for task in waiting if task.done()]:
            waiting.discard(task)
            task.result()
        if not waiting and killer.due(acked):
            waiting.add(asyncio.create_task(asyncio.to_thread(killer.strike)))

    await fleet.run(step)
    await asyncio.gather(*waiting)


def settle(chain: Chain, events: int, seconds: float) -> None:
    """Waits until every event is processed. Starts a driver that has ended again, as a supervisor does."""

    def processed() -> bool:
        chain.look_after()
        [(count,)] = query(chain.events, "SELECT COUNT(*) FROM trident_events WHERE status = 'processed'")
        return bool(count >= events)

    wait_for(processed, "the topology has not processed all events", seconds)


def expected_highest(events: Sequence[dict[str, Any]]) -> dict[str, int]:
    highest: dict[str, int] = {}
    for event in events:
        if event["temperature"] is not None:
            highest[event["origin"]] = max(event["temperature"], highest.get(event["origin"], event["temperature"]))
    return highest


def report(chain: Chain, fleet: Fleet, result: Result, seconds: float) -> bool:
    """Prints what was sent and stored. Returns whether nothing is lost or doubled, and every value is right."""
    sent, rows = Counter(tuple(event.values()) for event in fleet.events), Counter(result.rows)
    lost, doubled = (sent - rows).total(), (rows - sent).total()
    table = Table(title=f"{len(fleet.events):,} events, {seconds:.0f} s", show_header=False)
    for name, count in sorted(fleet.counts.items()):
        table.add_row(f"fleet: {name}", f"{count:,}")
    table.add_row("killed", ", ".join(f"{link} {chain.kills[link]}" for link in TURNS))
    table.add_row("driver started", str(chain.driver.starts))
    table.add_row("records in Kafka", f"{result.records.total():,} of {len(result.records):,} events")
    table.add_row("rows in MariaDB", f"{len(result.rows):,}")
    for origin, count in sorted(Counter(row[0] for row in result.rows).items()):
        events = sum(event["origin"] == origin for event in fleet.events)
        table.add_row(f"  {origin}", f"{count:,} of {events:,}; highest {result.hottest.get(origin)}")
    for status, count in sorted(result.statuses.items()):
        table.add_row(f"gateway: {status}", f"{count:,}")
    table.add_row("lost", f"{lost:,}", style="bold")
    table.add_row("doubled", f"{doubled:,}", style="bold")
    Console().print(table)
    return lost == doubled == 0 and result.hottest == expected_highest(fleet.events)


def run(folder: Path, events: list[dict[str, Any]], sensors: int, rate: float, kills: int, seed: int) -> bool:
    began = time.monotonic()
    console.print("starting the broker, the database, the gateway and the Spark driver")
    with Chain(folder) as chain:
        fleet = Fleet(chain.address, events, sensors, rate, seed)
        asyncio.run(drive(fleet, Killer(chain, len(events), kills, seed, console.print)))
        console.print(f"{len(events):,} events acknowledged; waiting until all are processed")
        settle(chain, len(events), 300)
        return report(chain, fleet, look(chain), time.monotonic() - began)


@click.command()
@click.option("--readings", "count", type=int, help="Number of readings (default: all 26,115).")
@click.option("--sensors", default=30, show_default=True)
@click.option("--rate", default=400.0, show_default=True, help="Events per second of the whole fleet.")
@click.option("--kills", default=8, show_default=True, help="Kills of gateway, broker, driver, database in turn.")
@click.option("--seed", default=1, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Keep logs and checkpoint in this folder.")
def main(count: int | None, sensors: int, rate: float, kills: int, seed: int, out: Path | None) -> None:
    """Run the whole chain and report."""
    with tempfile.TemporaryDirectory(prefix="sensors-") as temporary:
        folder = out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not run(folder, readings(count), sensors, rate, kills, seed):
            raise SystemExit(1)


if __name__ == "__main__":
    main()
