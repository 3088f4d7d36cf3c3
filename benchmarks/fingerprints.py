"""Group "fingerprints": events per second of each algorithm, over the weather readings, on one core.

Three choices of fields: station and hour as text, as JSON brings them; station and the hour as an instant; the whole
reading. ``hashlib`` alone, over keys that are encoded already, is what there is to gain.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from examples.weather import csv_file
from trident_py.extras.gateway.bloom import BloomFilter
from trident_py.extras.gateway.fingerprints import ALGORITHMS, Fingerprint
from trident_py.extras.gateway.linter import read

from .measure import measure
from .report import Figure, median

GROUP = "fingerprints"
ROUNDS = 5
CHOICES: dict[str, dict[str, Any]] = {
    "no time stamp": {"fields": ["origin", "year", "month", "day", "hour"]},
    "with time stamp": {"fields": ["origin"], "timestamp": "time_hour"},
    "the whole event": {},
}


def readings() -> list[dict[str, Any]]:
    """The readings as a gateway gets them: numbers are numbers."""
    numbers = {"year": int, "month": int, "day": int, "hour": int}
    text = {"origin", "time_hour"}
    kinds = {name: str if name in text else numbers.get(name, float) for name in next(read(csv_file()))}
    return [
        {name: None if value is None else kinds[name](value) for name, value in row.items()}
        for row in read(csv_file(), ("NA",))
    ]


def rate(run: Callable[[], object], events: int) -> float:
    """Events per CPU second of the median round: what else runs here hardly counts."""
    seconds = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        run()
        seconds.append(time.process_time() - begun)
    return events / median(seconds)


def fingerprints(algorithm: str, choice: str) -> tuple[float, float]:
    """Events per second of ``of`` in a loop, and of ``of_many``."""
    events = readings()
    chosen = Fingerprint(algorithm=algorithm, **CHOICES[choice])
    one = rate(lambda: [chosen.of(event) for event in events], len(events))
    return one, rate(lambda: chosen.of_many(events), len(events))


def keys() -> tuple[float, float]:
    """Events per second of encoding the key alone, and of blake2b over encoded keys alone."""
    events = readings()
    chosen = Fingerprint(**CHOICES["no time stamp"])
    encoded = [chosen.key(event) for event in events]
    hashed = rate(lambda: [hashlib.blake2b(key, digest_size=16).hexdigest() for key in encoded], len(events))
    return rate(lambda: [chosen.key(event) for event in events], len(events)), hashed


def bloom() -> tuple[float, float]:
    """Fingerprints added per second, and asked for."""
    total = 1_000_000
    there = [f"{n:032x}" for n in range(total)]
    filters = iter([BloomFilter(total) for _ in range(ROUNDS)])
    added = rate(lambda: next(filters).add_many(there), total)
    full = BloomFilter(total)
    full.add_many(there)
    return added, rate(lambda: [each in full for each in there], total)


def figures() -> Iterator[Figure]:
    encoding, hashing = measure("fingerprints.keys")
    yield Figure(GROUP, "the canonical key alone, no time stamp", encoding, "events/s")
    yield Figure(GROUP, "blake2b alone", hashing, "events/s")
    for choice in CHOICES:
        for algorithm in ALGORITHMS:
            if (algorithm, choice) == ("plain", "the whole event"):
                continue  # longer than a key may be
            one, many = measure("fingerprints.fingerprints", algorithm, choice)
            yield Figure(GROUP, f"{algorithm}, {choice}, of", one, "events/s")
            yield Figure(GROUP, f"{algorithm}, {choice}, of_many", many, "events/s", "of", many / one)
    added, asked = measure("fingerprints.bloom")
    yield Figure(GROUP, "Bloom filter, add_many", added, "fingerprints/s")
    yield Figure(GROUP, "Bloom filter, in", asked, "fingerprints/s")
