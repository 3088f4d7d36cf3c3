"""Events offered to a topic at a rate, and when each probe among them is to be seen in a table.

Every event is a JSON object with a number of its own. A few of them, evenly spread, are probes: their sensor is their
own, so that they are a row of their own in a table of rows and in one of sums.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from .kafka_by_hand import flush, put

PROBES = 50  # in a second
SENSORS = 1_000
POLL = 0.01
ASKED = 200  # probes at once


class Events:
    """The events ``first`` to ``last``; ``rate`` of them are offered in a second."""

    def __init__(self, first: int, last: int, rate: int) -> None:
        self.first, self.last, self.rate = first, last, rate
        self.step = max(1, rate // PROBES)

    def is_probe(self, number: int) -> bool:
        return number % self.step == 0

    def probes(self) -> list[int]:
        return list(filter(self.is_probe, range(self.first, self.last)))

    def sensor(self, number: int) -> str:
        return f"probe{number}" if self.is_probe(number) else f"sensor{number % SENSORS}"

    def encoded(self) -> Iterator[bytes]:
        for number in range(self.first, self.last):
            yield b'{"id": %d, "sensor": "%s", "amount": %d}' % (number, self.sensor(number).encode(), number % 7)

    def sums(self) -> dict[str, int]:
        """What the amounts of each sensor add up to."""
        found: dict[str, int] = {}
        for number in range(self.first, self.last):
            sensor = self.sensor(number)
            found[sensor] = found.get(sensor, 0) + number % 7
        return found


def offer(bootstrap: str, topic: str, first: int, last: int, rate: int, partitions: int) -> dict[str, float]:
    """Produces the events, ``rate`` in a second, and returns when each probe was produced, in seconds since 1970."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2, "queue.buffering.max.messages": 1_000_000})
    events, produced = Events(first, last, rate), {}
    values, began = list(events.encoded()), time.time()
    for number, value in enumerate(values, first):
        ahead = began + (number - first) / rate - time.time()
        if ahead > 0.001:
            producer.poll(0)
            time.sleep(ahead)
        if events.is_probe(number):
            produced[str(number)] = time.time()
        put(producer, topic, value, number % partitions)
    flush(producer, topic)
    return produced


def seen(connection: Any, query: str, probes: dict[Any, int], until: float) -> dict[int, float]:
    """When each probe was to be seen first, in seconds since 1970. ``query`` selects the first column where it is in a
    list; ``probes``: their numbers, by what that column has for them."""
    waiting, found = dict(probes), {}
    while waiting and time.time() < until:
        asked = tuple(waiting)[:ASKED]
        for (key,) in connection.exec_driver_sql(query.format(", ".join(["%s"] * len(asked))), asked):
            found[waiting.pop(key)] = time.time()
        time.sleep(POLL)
    return found
