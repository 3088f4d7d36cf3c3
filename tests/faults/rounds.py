"""Random schedules of faults over every state and store, for as long as one wants: make faults SEED=7 ROUNDS=100

Each round is a fresh database and a run that is killed, cut off and robbed of its server at random steps until it
ends; then every table is compared with the fold. In some rounds the store goes back under the driver, which must say so
and write nothing; then the newer store is restored. The seed gives the same faults again. Exit code 1: something was
lost or doubled.

STORES=spark: each round is a run on Spark whose batches change between driver and jobs (`mixed`).
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import databases
from sqlalchemy import make_url

from testbed.sql_servers import Server
from trident_py.testing.proxy import CuttingProxy, commit_of

from . import backups
from .evidence import evidence
from .forks import Driver, Start, run
from .mixed import LAST, MixedRound
from .readings import Fold, Readings
from .steps import DRIVER, STEPS, Fault
from .stores import EXACT, differences, rows_checked
from .test_replays import holds_exactly

BACK = "store goes back"
CUTS = ("before", "during", "lost", "after")
DEADLINE = 300


class Round:
    """One database, one seed, one run with all its faults."""

    def __init__(self, kind: str, server: Server | None, seed: int) -> None:
        self.kind, self.server, self.seed = kind, server, seed
        self.draw = random.Random(f"{kind}/{seed}")
        self.counts: Counter[str] = Counter()
        self.last = self.draw.randrange(5, 12)
        self.done = 0
        self.backup: Path | None = None
        self.newest: tuple[Path, dict] | None = None
        self.restarts: list[threading.Timer] = []

    def run(self, folder: Path) -> list[Any]:
        """The differences that are left at the end."""
        with ExitStack() as stack:
            url = through = databases.sqlite(folder)
            proxy = None
            if self.server is not None:
                url = stack.enter_context(databases.fresh(self.server))
                where = make_url(url)
                proxy = stack.enter_context(CuttingProxy(str(where.host), int(where.port or 0)))
                through = proxy.through(url)
            stack.callback(self._wait_for_server)
            until = time.monotonic() + DEADLINE
            while not self._start(through, folder, proxy):
                if time.monotonic() > until:
                    raise TimeoutError(f"{self.kind}, seed {self.seed}: not over after {DEADLINE} s")
            self._wait_for_server()
            fold = Fold(Readings(self.seed), self.last)
            self.counts["rows checked"] += rows_checked(fold)
            return differences(url, fold)

    def _start(self, url: str, folder: Path, proxy: CuttingProxy | None) -> bool:
        """One start of a driver; True when the run is over."""
        faults = self._faults()
        partitions = 2
        start = Start(url, folder, self.last, tuple(f for f, _ in faults), self.seed, partitions)
        driver = Driver(start)
        wanted = dict(faults)
        self.counts["starts"] += 1
        try:
            while driver.next() == "at":
                fault = next(f for f in wanted if (f.step, f.txid) == driver.told[-1][1:])
                self._happens(wanted.pop(fault), proxy, start)
                driver.go_on()
        finally:
            driver.close()
        self.counts["replays"] += len(driver.of("replay"))
        self.done = max([self.done, *(event[1] for event in driver.of("committed"))])
        if self.newest is not None:
            self._is_told(driver, start)
            return False
        if driver.process.exitcode == -9:
            self.counts["driver killed"] += 1
            return False
        if driver.told[-1][:2] == ("error", "ConnectionLost"):
            self.counts["starts without a server"] += 1
            return False
        if driver.told[-1] != ("done", self.last):
            raise AssertionError(f"{self.kind}, seed {self.seed}: {driver.told[-1]}")
        return True

    def _faults(self) -> list[tuple[Fault, str]]:
        """At most one fault for each of the next batches, and what it does."""
        made = []
        if self.last - self.done > 3 and self.draw.random() < 0.3:
            first, then = sorted(self.draw.sample(range(self.done + 1, self.last), 2))
            return [(Fault("over", "", first, action="ask"), "backup"), (Fault("over", "", then, action="ask"), BACK)]
        for txid in range(self.done + 1, self.last + 1):
            if self.draw.random() < 0.4:
                what = "kill" if self.server is None else self.draw.choice(["kill", "cut", "cut at COMMIT", "server"])
                step = self.draw.choice([*STEPS, "statement", "over"])
                if what != "kill" and step == "statement":
                    step = "half"
                partition = self.draw.choice([0, 1, DRIVER]) if step == "statement" else self.draw.randrange(2)
                action = "kill" if what == "kill" else "ask"
                number = self.draw.randrange(1, 9)
                made.append((Fault(step, self.draw.choice(EXACT), txid, partition, action, number), what))
        return made

    def _is_told(self, driver: Driver, start: Start) -> None:
        """The driver, and the next one, say that the store has gone back, and write nothing. Then it is restored."""
        assert self.newest is not None
        newest, held = self.newest
        refused = run(replace(start, faults=()))
        for told, error, words in ((driver.told, "StateError", "gone back"), (refused.told, "LineageError", "up to")):
            if told[-1][:2] != ("error", error) or words not in told[-1][2]:
                raise AssertionError(f"{self.kind}, seed {self.seed}: {told[-1]}")
        if backups.contents(start.url) != held:
            raise AssertionError(f"{self.kind}, seed {self.seed}: something was written to a store that had gone back")
        backups.restore(start.url, newest)
        self.newest = None

    def _wait_for_server(self) -> None:
        for restart in self.restarts:
            restart.join()

    def _happens(self, what: str, proxy: CuttingProxy | None, start: Start) -> None:
        if what == "backup":
            self.backup = backups.dump(start.url, start.folder / f"backup-{self.done}")
            return
        if what == BACK:
            assert self.backup is not None
            newest = backups.dump(start.url, start.folder / f"newest-{self.done}")
            backups.restore(start.url, self.backup)
            self.newest = newest, backups.contents(start.url)
            self.counts[BACK] += 1
            return
        assert proxy is not None and self.server is not None
        if what == "cut":
            proxy.cut()
        elif what == "cut at COMMIT":
            proxy.cut_on(commit_of(self.server.url), self.draw.choice(CUTS))
        else:
            self.server.kill()
            self.restarts.append(threading.Timer(self.draw.random() * 0.5, self.server.restart))
            self.restarts[-1].start()
        self.counts[f"{what}{' killed' if what == 'server' else ''}"] += 1


@click.command()
@click.option("--seed", default=1, show_default=True, help="The first round's seed; the next has the next number.")
@click.option("--rounds", default=20, show_default=True, help="How many rounds on each store.")
@click.option("--stores", default=",".join(databases.kinds()), show_default=True, help="Which stores; also spark.")
def main(seed: int, rounds: int, stores: str) -> None:
    """Random schedules of faults; prints what was injected, replayed and checked, and what was lost or doubled."""
    bad = 0
    for kind in stores.split(","):
        if kind == "spark":
            print(on_spark(seed, rounds), flush=True)
            continue
        total: Counter[str] = Counter()
        with ExitStack() as stack:
            server = stack.enter_context(databases.OWN[kind]()) if kind in databases.OWN else None
            for number in range(seed, seed + rounds):
                folder = Path(tempfile.mkdtemp())
                one = Round(kind, server, number)
                found = one.run(folder)
                shutil.rmtree(folder)
                total += one.counts
                total["lost"] += sum(each.lost for each in found)
                total["doubled"] += sum(each.doubled for each in found)
                if found:
                    print(f"{kind}, seed {number}: {found}", file=sys.stderr)
                if (number - seed) % 10 == 9:
                    print(f"{kind}: {number - seed + 1} of {rounds} rounds", file=sys.stderr, flush=True)
        bad += total["lost"] + total["doubled"]
        print(line(kind, rounds, seed, total), flush=True)
    sys.exit(1 if bad else 0)


def on_spark(seed: int, rounds: int) -> str:
    """Runs the rounds of `mixed`; the first that is not exact raises. Returns what happened, in words."""
    total: Counter[str] = Counter()
    for number in range(seed, seed + rounds):
        one = MixedRound(number)
        with tempfile.TemporaryDirectory() as folder:
            one.run(Path(folder))
            holds_exactly(evidence(Path(folder)), LAST)
        total += one.counts
        print(f"spark: {number - seed + 1} of {rounds} rounds", file=sys.stderr, flush=True)
    seen = ", ".join(f"{name} {total[name]}" for name in ("driver killed", "in the driver", "as jobs", "moved"))
    return f"spark: {rounds} rounds from seed {seed}: {seen}; every row of every state as in the fold"


def line(kind: str, rounds: int, seed: int, total: Counter[str]) -> str:
    injected = {name: total[name] for name in ("driver killed", "cut", "cut at COMMIT", "server killed", BACK)}
    faults = ", ".join(f"{name} {count}" for name, count in injected.items() if count)
    return (
        f"{kind}: {rounds} rounds from seed {seed}: {sum(injected.values())} faults ({faults}), "
        f"{total['replays']} batches replayed, {total['rows checked']} rows checked: "
        f"lost {total['lost']}, doubled {total['doubled']}"
    )


if __name__ == "__main__":
    main()
