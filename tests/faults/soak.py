"""Hours of the whole chain, gateway, Kafka, Spark, MariaDB, with a kill a minute: what grows?

    make soak MINUTES=60 SPARE=driver SEED=1

The fleet of `examples.sensors` sends real readings at a rate that lasts for so long. Each minute one link is killed by
SIGKILL, in turn, but for the one that is spared: it lives through all of them, so what it gathers is seen. Every half a
minute are noted, for each link: memory, open files, sockets and threads of its processes; and the rows that we keep
beside the users'. What the spared link has in the median of the last third must be within 5 % of the middle third, and
so must our rows and files; what a killed one has depends on how long ago that was. Then every row is compared with the
file. A line of JSON for each piece goes to build/soak.jsonl.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import psutil

from examples.sensors import drive, look, report, settle
from examples.sensors_chain import BROKER, DATABASE, DRIVER, GATEWAY, TURNS, Chain, Killer, query
from examples.sensors_fleet import Fleet, readings

RECORDS = Path("build/soak.jsonl")
EVERY = 30.0  # seconds between two samples
FLAT = 1.05
LEAST = {"memory": 8 << 20, "files": 4, "sockets": 4, "threads": 4, "rows": 4, "checkpoint files": 8}  # no growth below
Sample = dict[str, float]


def measure_processes(pid: int | None) -> Sample:
    """Sum up a process and its children; nothing if it is gone."""
    found: Sample = defaultdict(float)
    try:
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            found["memory"] += process.memory_info().rss
            found["files"] += process.num_fds()
            found["threads"] += process.num_threads()
            found["sockets"] += len(process.net_connections())
    except (psutil.Error, ValueError, TypeError):
        return {}
    return found


def count_rows(chain: Chain) -> Sample:
    """Count the rows of our tables beside the users'; none while the database is away."""
    found: Sample = {}
    try:
        for url in (chain.url, chain.events):
            for (table,) in query(url, "SHOW TABLES LIKE 'trident%'"):
                if table != "trident_events":  # one row for each event
                    found["rows"] = found.get("rows", 0) + query(url, f"SELECT COUNT(*) FROM {table}")[0][0]
    except Exception:
        return {}
    return found


class Sampler(threading.Thread):
    """Notes what each link has, until it is stopped."""

    def __init__(self, chain: Chain) -> None:
        super().__init__(daemon=True)
        self.chain = chain
        self.over = threading.Event()
        self.samples: dict[str, list[float]] = defaultdict(list)

    def run(self) -> None:
        while not self.over.wait(EVERY):
            chain = self.chain
            links: dict[str, Any] = {
                GATEWAY: chain.gateway, BROKER: chain.broker, DRIVER: chain.driver, DATABASE: chain.database,
            }  # fmt: skip
            found = {name: measure_processes(link.pid) for name, link in links.items()}
            found["tables"] = count_rows(chain)
            files = sum(1 for path in (chain.folder / "checkpoints").rglob("*") if path.is_file())
            found["log"] = {"checkpoint files": files}
            for name, sample in found.items():
                for what, value in sample.items():
                    self.samples[f"{name}: {what}"].append(value)


def find_growth(samples: dict[str, list[float]]) -> dict[str, tuple[float, float]]:
    """Return the medians of the middle and the last third."""
    thirds = {}
    for name, values in samples.items():
        size = len(values) // 3
        if size:
            thirds[name] = statistics.median(values[size : 2 * size]), statistics.median(values[2 * size :])
    return thirds


def is_flat(name: str, middle: float, last: float) -> bool:
    return last <= middle * FLAT or last - middle <= LEAST[name.partition(": ")[2]]


def lasts(name: str, spare: str) -> bool:
    """Whether nobody has killed it, so that it shows what grows."""
    return name.partition(": ")[0] in (spare, "tables", "log")


def run(minutes: int, spare: str, seed: int, rate: float, folder: Path) -> dict[str, Any]:
    """Run one piece; return its record."""
    events = readings(int(minutes * 60 * rate))
    began = time.monotonic()
    with Chain(folder) as chain:
        sampler = Sampler(chain)
        sampler.start()
        fleet = Fleet(chain.address, events, 30, rate, seed)
        killer = Killer(chain, len(events), minutes, seed, lambda text: print(text, file=sys.stderr, flush=True))
        killer.turns = [link for link in TURNS if link != spare]
        asyncio.run(drive(fleet, killer))
        settle(chain, len(events), 300)
        sampler.over.set()
        sampler.join()
        seconds = time.monotonic() - began
        right = report(chain, fleet, look(chain), seconds)
        kills, starts = dict(chain.kills), chain.driver.starts
    growth = find_growth(sampler.samples)
    return {
        "minutes": round(seconds / 60, 1), "seed": seed, "spared": spare, "kills": kills, "events": len(events),
        "driver started": starts, "right": right, "medians": growth,
        "grown": [name for name, ends in growth.items() if lasts(name, spare) and not is_flat(name, *ends)],
    }  # fmt: skip


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--minutes", type=int, default=60)
    options.add_argument("--spare", choices=TURNS, default=DRIVER)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--rate", type=float, default=7.0)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        record = run(given.minutes, given.spare, given.seed, given.rate, Path(folder))
    RECORDS.parent.mkdir(exist_ok=True)
    with RECORDS.open("a") as file:
        file.write(json.dumps(record) + "\n")
    print(json.dumps(record, indent=1))
    return 0 if record["right"] and not record["grown"] else 1


if __name__ == "__main__":
    sys.exit(main())
