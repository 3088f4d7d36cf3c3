"""Group end_to_end: events from Kafka into MariaDB as users run it, against a foreachBatch by hand.

Events are offered at a rate for a while. A latency is the time from the producer's call to the moment when a look at
the table finds the event; the rate is that from the first call to the last such moment. A pipeline that keeps up has
the rate of what is offered, so its throughput is measured with a backlog: events that were there before it started.
Behind each run the table is compared with what was offered.
"""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from sqlalchemy.engine import make_url

from testbed.kafka_broker import KafkaBroker
from testbed.sql_servers import MariaDb
from trident_py.testing.databases import connection

from .end_to_end_runs import PARTITIONS
from .measure import ROOT, MeasurementFailed, command, end_of, measure
from .offered import Events, seen
from .report import Figure, at_least, at_most

GROUP = "end_to_end"
RATES = (1_000, 10_000, 100_000)
SECONDS, WARM_UP = 20, 20
START = 90  # seconds until the first events are there
PATIENCE = 120
BACKLOG, PACE = 3_000_000, 150_000  # events, and how many of them are produced in a second
CONSUMER = "consumer without Spark"
SIDES = ("SparkCluster", "LocalCluster", "by hand", CONSUMER)
MOST = 1.5  # a 99th percentile of SparkCluster, as a multiple of that of LocalCluster
KEYS = {"sums": ("sums", "sensor"), "rows": ("events", "id")}  # the table of a pipeline, and its key


class Measured(NamedTuple):
    """Events in a second, and the latencies of the probes in seconds, in order."""

    rate: float
    latencies: list[float]

    def at(self, share: float) -> float:
        return self.latencies[min(len(self.latencies) - 1, int(share * len(self.latencies)))]


def figures() -> Iterator[Figure]:
    with KafkaBroker() as broker, MariaDb(innodb_buffer_pool_size="512M") as server:
        for pipeline in KEYS:
            yield from throughput(pipeline, {side: drained(broker, server, pipeline, side) for side in SIDES})
            for rate in RATES:
                found = {side: run(broker, server, pipeline, side, rate) for side in SIDES}
                yield from compared(pipeline, rate, found)


def compared(pipeline: str, rate: int, found: dict[str, Measured]) -> Iterator[Figure]:
    hand, local = found["by hand"], found["LocalCluster"]
    for side, measured in found.items():
        name, asked = f"{pipeline}, {rate:,} offered/s, {side}", side == "SparkCluster"
        yield rated(f"{name}: seen", side, measured.rate, hand.rate)
        for share in (0.5, 0.99):
            ratio = measured.at(share) / local.at(share)
            bar: Any = at_most(ratio, MOST) if asked and share == 0.99 else {}
            against = None if measured is local else "LocalCluster"
            yield Figure(GROUP, f"{name}: p{share * 100:.0f}", 1000 * measured.at(share), "ms", against, ratio, **bar)


def throughput(pipeline: str, found: dict[str, float]) -> Iterator[Figure]:
    for side, rate in found.items():
        yield rated(f"{pipeline}, a backlog, {side}", side, rate, found["by hand"])


def rated(name: str, side: str, rate: float, hand: float) -> Figure:
    bar: Any = at_least(rate / hand, 1.5) if side == "SparkCluster" else {}
    return Figure(GROUP, name, rate, "events/s", None if side == "by hand" else "by hand", rate / hand, **bar)


def drained(broker: KafkaBroker, server: MariaDb, pipeline: str, side: str) -> float:
    """Events in a second, over the second half of a backlog."""
    topic, url = broker.create_topic(partitions=PARTITIONS), server.create_database()
    events = Events(0, BACKLOG, PACE)
    offer(broker.bootstrap, topic, events)
    with pipeline_of(pipeline, side, broker.bootstrap, topic, url), connection(url) as database:
        found = watched(database, pipeline, events, START + PATIENCE)
        check(database, pipeline, events)
    middle = max(seen_at for number, seen_at in found.items() if number < BACKLOG / 2)
    return BACKLOG / 2 / (max(found.values()) - middle)


def run(broker: KafkaBroker, server: MariaDb, pipeline: str, side: str, rate: int) -> Measured:
    """A few events until the pipeline runs, then the rate; the first seconds of it are not counted."""
    topic, url = broker.create_topic(partitions=PARTITIONS), server.create_database()
    first, begin, end = rate // 10, rate // 10 + rate * WARM_UP, rate // 10 + rate * (WARM_UP + SECONDS)
    with pipeline_of(pipeline, side, broker.bootstrap, topic, url), connection(url) as database:
        probed(database, pipeline, broker.bootstrap, topic, Events(0, first, rate), START)
        found = probed(database, pipeline, broker.bootstrap, topic, Events(first, end, rate), PATIENCE)
        check(database, pipeline, Events(0, end, rate))
    counted = {number: moments for number, moments in found.items() if number >= begin}
    took = max(seen_at for _, seen_at in counted.values()) - min(produced for produced, _ in counted.values())
    return Measured(rate * SECONDS / took, sorted(seen_at - produced for produced, seen_at in counted.values()))


def probed(
    database: Any, pipeline: str, bootstrap: str, topic: str, events: Events, patience: float
) -> dict[int, tuple[float, float]]:
    """Offers the events; when each probe was produced, and seen. Raises MeasurementFailed if one does not come."""
    produced: dict[str, float] = {}

    offering = threading.Thread(target=lambda: produced.update(offer(bootstrap, topic, events)))
    offering.start()
    found = watched(database, pipeline, events, (events.last - events.first) / events.rate + patience)
    offering.join()
    return {number: (produced[str(number)], at) for number, at in found.items()}


def offer(bootstrap: str, topic: str, events: Events) -> dict[str, float]:
    """Produces the events in a process of its own; when each probe was produced."""
    produced: dict[str, float] = measure(
        "offered.offer", bootstrap, topic, events.first, events.last, events.rate, PARTITIONS
    )
    return produced


def watched(database: Any, pipeline: str, events: Events, seconds: float) -> dict[int, float]:
    """When each probe was seen. Raises MeasurementFailed if one does not come in time."""
    table, key = KEYS[pipeline]
    probes: dict[Any, int] = {events.sensor(n) if key == "sensor" else n: n for n in events.probes()}
    there = "SHOW TABLES LIKE %s"
    wait_until(lambda: database.exec_driver_sql(there, (table,)).first() is not None, START, f"no table {table}")
    found = seen(database, f"SELECT {key} FROM {table} WHERE {key} IN ({{}})", probes, time.time() + seconds)
    if len(found) < len(probes):
        raise MeasurementFailed(f"{len(probes) - len(found)} of {len(probes)} probes did not come to {pipeline}")
    return found


def check(database: Any, pipeline: str, offered: Events) -> None:
    """Raises MeasurementFailed if the table does not hold what was offered, each event once. Waits for the last."""
    table, expected = KEYS[pipeline][0], offered.sums()
    query = f"SELECT sensor, CAST(SUM(amount) AS SIGNED) FROM {table} GROUP BY sensor"
    wait_until(
        lambda: dict(database.exec_driver_sql(query).tuples().all()) == expected,
        PATIENCE,
        f"{table} does not hold what was offered",
    )


def wait_until(true: Callable[[], bool], seconds: float, problem: str) -> None:
    """Raises MeasurementFailed if it is not true in time."""
    until = time.time() + seconds
    while not true():
        if time.time() > until:
            raise MeasurementFailed(problem)
        time.sleep(0.2)


@contextmanager
def pipeline_of(pipeline: str, side: str, bootstrap: str, topic: str, url: str) -> Iterator[None]:
    """Runs a pipeline in a process of its own. A MeasurementFailed gets the end of its log."""
    at = make_url(url)
    arguments: list[Any]
    name, arguments = "end_to_end_runs.ours", [pipeline, side, bootstrap, topic, url]
    if side in ("by hand", CONSUMER):
        which = "by_hand" if side == "by hand" else "consumer"
        name, arguments = f"end_to_end_runs.{which}", [pipeline, bootstrap, topic, at.port, at.database]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command(name, *arguments), stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=ROOT)
        try:
            yield
        except MeasurementFailed as error:
            raise MeasurementFailed(f"{error}; {end_of(log)}") from error
        finally:
            process.communicate(timeout=PATIENCE)
