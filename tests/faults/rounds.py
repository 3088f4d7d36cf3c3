"""A round: a fresh place in a store, a topology drawn, a run with all its faults, and every row compared.

The seed gives the topology, its input and its faults. How often a batch is replayed also depends on timing.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from .drawn import BISECT, DrawnStart, compare, draw_topology
from .forks import Driver
from .held import HELD
from .homes import Home
from .injections import AWAY, BACKUP, KINDS, OF_THE_DRIVER, START, UNREACHABLE, Kind, earlier, kinds
from .inputs import write
from .letters import ids
from .requests import History
from .steps import ANY, DRIVER, STEPS, Fault

DEADLINE = 240
KILLED = "driver killed"
Point = tuple[str, str]
"""A state, or "" for the driver, and a step."""


class Injection(NamedTuple):
    """One fault of a start: what happens, and where."""

    name: str
    kind: Kind
    fault: Fault


class Ahead(NamedTuple):
    """What the next start may be refused for. ``held``: by the store, which a refused start does not change."""

    held: Any
    put_back: Callable[[], None]


class Wrong(Exception):
    """A round has not ended as it must."""


def points(store: str) -> list[Point]:
    """Every place at which a campaign kills a driver. A window writes a batch as one block, so there is no half."""
    states = [(state, step) for state in HELD[store] for step in STEPS if (state, step) != ("window", "half")]
    return [*states, *(("", step) for step in OF_THE_DRIVER)]


class Round:
    """``record``: what is known of it at its end. The first start dies at the point that is the seed's turn, the
    second one has the kind of fault whose turn it is; everything else is drawn, but for the number of ``batches``."""

    def __init__(self, home: Home, seed: int, batches: int | None = None) -> None:
        self.home, self.seed = home, seed
        self.draw = random.Random(f"{home.kind}/{seed}")
        self.point = points(home.kind)[seed % len(points(home.kind))]
        self.turn = kinds(home)[seed % len(kinds(home))]
        first = self.point[0] or self.draw.choice(list(HELD[home.kind]))
        self.drawn = draw_topology(self.draw, home.kind, first)
        self.last = batches or self.draw.randrange(10, 25)
        self.done = self.starts = self.replays = self.undecided = 0
        self.replies: Counter[str] = Counter()
        self.faults: list[dict[str, Any]] = []
        self.zombies: list[Driver] = []
        self.copies: list[Path] = []
        self.backup: Path | None = None
        self.ahead: Ahead | None = None
        self.gone: int | None = None
        self.told: list[tuple] = []
        self.awaited: tuple[dict[str, Any], int] | None = None
        self.stack = ExitStack()

    # -- from its start to its end ------------------------------------------------------------------------------------

    def run(self, folder: Path) -> dict[str, Any]:
        """The record of the round."""
        self.folder, began = folder, time.monotonic()
        counted: Counter[str] = Counter()
        wrong = ""
        with self.stack:
            try:
                counted = self._run()
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            for zombie in self.zombies:
                zombie.close()
        return {
            "seed": self.seed, "store": self.home.kind, "topology": {**asdict(self.drawn), "batches": self.last},
            "turn": {"point": self.point, "kind": self.turn}, "faults": self.faults,
            "starts": self.starts, "replays": self.replays, "rows": counted["rows"],
            "lost": counted["lost"], "doubled": counted["doubled"], "undecided": self.undecided, "wrong": wrong,
            "answered": self.replies["answered"], "failed": self.replies["failed"],
            "seconds": round(time.monotonic() - began, 2),
        }  # fmt: skip

    def _run(self) -> Counter[str]:
        self.stack.enter_context(self.home.connected())
        self.url = self.stack.enter_context(self.home.place(self.folder))
        self.through = self.home.through(self.url)
        write(self.start_of(()).input, self.folder, self.url)
        self.history = History(self.start_of(()).input.pairs())
        done, until = 0, time.monotonic() + DEADLINE
        while not self._start():
            if self.done > done:
                done, until = self.done, time.monotonic() + DEADLINE
            if time.monotonic() > until:
                raise Wrong(f"no further batch in {DEADLINE} s; the last start: {self.told[-3:]}")
        self.home.settle()
        return self._compared()

    def start_of(self, faults: tuple[Fault, ...]) -> DrawnStart:
        conf = BISECT if self.drawn.poison else ()
        more = {"conf": conf, "lock_seconds": 10.0, "drawn": self.drawn}
        return DrawnStart(self.through, self.folder, self.last, faults, self.seed, **more)

    def _start(self) -> bool:
        """One start of a driver; True when the run is over."""
        self.copies.append(earlier(self.folder, self.starts))
        self.draw = random.Random(f"{self.home.kind}/{self.seed}/{self.starts}")
        injections = self._injections()
        ahead, self.ahead, self.gone = self.ahead, None, None
        self.starts += 1
        for each in injections:
            if each.fault.step == START and each.kind.act is not None:
                each.kind.act(self, None)
        driver = Driver(self.start_of(tuple(each.fault for each in injections if each.fault.step != START)))
        try:
            self._live(driver, injections)
        finally:
            if driver not in self.zombies:
                driver.close()
        self.replays += len(driver.of("replay"))
        self._judge_replies(driver)
        self.done = max([self.done, *(event[1] for event in driver.of("committed"))])
        return self._judge(driver, ahead)

    def _live(self, driver: Driver, injections: list[Injection]) -> None:
        noted = {each: self._note(each) for each in injections if each.kind is not BACKUP}
        woken = self.zombies[:]
        while driver.next() == "at":
            here = next(each for each in injections if (each.fault.step, each.fault.txid) == driver.told[-1][1:])
            self._act(here, noted.get(here, {}), driver)
            if here.kind.ends:
                break
        self._see_cut()
        for each, record in noted.items():
            record["reached"] |= ("did", each.fault.step, each.fault.txid) in driver.told
        self._forget_after_the_end(driver, noted)
        for zombie in woken:
            self._wake(zombie)

    def _act(self, here: Injection, record: dict[str, Any], driver: Driver) -> None:
        self._see_cut()
        cuts = self.home.proxy.cuts if self.home.proxy is not None else 0
        assert here.kind.act is not None
        here.kind.act(self, driver)
        record["reached"] = True
        self.awaited = (record, cuts) if here.kind.waits else None

    def _see_cut(self) -> None:
        """Whether the last connection that was to be cut at its COMMIT has sent one."""
        if self.awaited is not None:
            assert self.home.proxy is not None
            record, cuts = self.awaited
            record["reached"] = self.home.proxy.cuts > cuts
            self.awaited = None

    def _forget_after_the_end(self, driver: Driver, noted: dict[Injection, dict[str, Any]]) -> None:
        """What was drawn for later batches did not come about: the start was over, or was none at all."""
        ended = self.refused(driver)
        for each, record in noted.items():
            if ended:
                self.faults = [other for other in self.faults if other is not record]
            ended = ended or (record["reached"] and each.kind.ends)

    def _note(self, injection: Injection) -> dict[str, Any]:
        fault = injection.fault
        where = {"step": fault.step, "txid": fault.txid, "state": fault.state, "partition": fault.partition}
        self.faults.append({"kind": injection.name, **where, "reached": fault.step == START})
        return self.faults[-1]

    def _judge_replies(self, driver: Driver) -> None:
        """Until the store went back, if it did."""
        away = any(fault["reached"] and fault["kind"] in UNREACHABLE for fault in self.faults)
        if self.drawn.asked:
            self.replies += self.history.judge(driver.told[: self.gone], self.done, away)

    def _judge(self, driver: Driver, ahead: Ahead | None) -> bool:
        """Whether the run is over. ``ahead``: what was done before this start. Raises Wrong for an end that no start
        may have."""
        self.told = driver.told
        end = driver.told[-1] if driver.told else ("nothing",)
        if end == ("done", self.last) or (end[0] == "done" and self.drawn.ends_later and end[1] > self.last):
            return True
        if self.refused(driver) and ahead is not None:
            ahead.put_back()
            self._unchanged(ahead.held)
            self.undecided += 1
            return False
        stopped = driver in self.zombies or driver.process.exitcode == -signal.SIGKILL
        if not (self._allowed(end[1]) if end[0] == "error" else stopped):
            raise Wrong(f"a start has ended with {end}")
        return False

    def _allowed(self, error: str) -> bool:
        """Whether a run may end by this error, after the faults that this round has had."""
        reached = [fault["kind"] for fault in self.faults if fault["reached"]]
        if error == "ConnectionLost":
            return not AWAY.isdisjoint(reached)
        return reached[-1:] in (["disk full"], ["store goes back"])

    # -- what a fault asks for ----------------------------------------------------------------------------------------

    def contents(self) -> Any:
        return self.home.contents(self.url, self.drawn.states)

    def may_be_refused(self, what: str, put_back: Callable[[], None]) -> None:
        """The next start goes on exactly, or is refused in words; then what it was put off by is put back."""
        self.home.quiet(self.url)
        self.ahead = Ahead(self.contents(), put_back)

    def is_refused(self, driver: Driver, held: Any) -> None:
        """It says that log and store are not of one run, and has changed nothing."""
        if not self.refused(driver):
            raise Wrong(f"a start that must be refused has ended with {driver.told[-1]}")
        self._unchanged(held)
        self.undecided += 1

    def refused(self, driver: Driver) -> bool:
        """Whether it has found that log and store are not of one run."""
        return [event[:2] for event in driver.told[-1:]] == [("error", "LineageError")]

    def _unchanged(self, held: Any) -> None:
        found = self.contents()
        if found != held:
            raise Wrong(f"a driver that may write nothing has written: {_changes(held, found)}")

    def _wake(self, zombie: Driver) -> None:
        """It may write nothing more, and says why."""
        self.home.quiet(self.url)
        held = self.contents()
        zombie.go_on()
        os.kill(zombie.process.pid, signal.SIGCONT)  # type: ignore[arg-type]
        zombie.next()
        zombie.close()
        self.zombies.remove(zombie)
        if zombie.told[-1][:2] != ("error", "ZombieError"):
            raise Wrong(f"a driver that was stopped has ended with {zombie.told[-1]}")
        self._unchanged(held)

    # -- what is drawn ------------------------------------------------------------------------------------------------

    def _injections(self) -> list[Injection]:
        """The faults of the next start, at most one for each batch; some more, if it does not reach its end by one."""
        made: list[Injection] = []
        txid = self.done + 1
        if self.starts == 0:
            state, step = self.point
            txid += self.draw.randrange(2)
            made.append(Injection(KILLED, KINDS[KILLED], self._at(step, state, txid, "die")))
            txid += 1
        turn = self.turn if self.starts == 1 else ""
        while txid < self.last and sum(each.kind.ends for each in made) < 3:
            if turn or self.draw.random() < 0.85:
                made += self._drawn(turn or self._name(), txid)
                turn = ""
            if made and made[-1].kind.last:
                break
            txid = max([txid, *(each.fault.txid for each in made)]) + 1
        return made

    def _name(self) -> str:
        names = kinds(self.home)
        return self.draw.choices(names, [KINDS[name].weight for name in names])[0]

    def _drawn(self, name: str, txid: int) -> list[Injection]:
        kind = KINDS[name]
        first = []
        if name == "store goes back":
            if txid + 1 >= self.last:
                return []
            first = [Injection("", BACKUP, self._at("over", "", txid, "ask"))]
            txid += 1
        step, state = self.draw.choice(kind.steps), self.draw.choice(self.drawn.states)
        if (state, step) == ("window", "half"):
            step = "begun"
        return [*first, Injection(name, kind, self._at(step, state, txid, kind.action))]

    def _at(self, step: str, state: str, txid: int, action: str) -> Fault:
        if step in (*OF_THE_DRIVER, START):
            return Fault(step, "", txid, DRIVER, action)
        partition = self.draw.choice([*range(self.drawn.partitions), ANY, ANY])
        number = self.draw.choice((-3600, 3600, 7200)) if action == "jump" else self.draw.randrange(1, 6)
        if step == "statement" and self.draw.random() < 0.4:
            partition = DRIVER
        return Fault(step, state, txid, partition, action, number)

    # -- the comparison -----------------------------------------------------------------------------------------------

    def _compared(self) -> Counter[str]:
        rows, counted = self.start_of(()).input, Counter[str]()
        fold = rows.fold()
        for name in self.drawn.states:
            for found, expected in compare(self.drawn, name, self.url, fold):
                self._count(counted, found, expected)
        if self.drawn.poison:
            self._count(counted, ids(self.drawn.store, self.url), Counter(rows.letters()))
        if self.drawn.spout == "committer":
            self._in_order(counted)
        return counted

    def _count(self, counted: Counter[str], found: Counter, expected: Counter) -> None:
        counted["rows"] += expected.total()
        counted["lost"] += (expected - found).total()
        counted["doubled"] += (found - expected).total()

    def _in_order(self, counted: Counter[str]) -> None:
        """Each batch was committed by the emitters, none before an earlier one."""
        for file in self.folder.glob("committed-*"):
            committed = [int(line) for line in file.read_text().split()]
            counted["lost"] += len(set(range(1, self.last + 1)) - set(committed))
            counted["doubled"] += committed != sorted(committed)


def _changes(held: Any, found: Any) -> list[tuple]:
    """The tables that differ, before and after."""
    before, now = (each if isinstance(each, dict) else dict(enumerate(each)) for each in (held, found))
    return [(name, before.get(name), now.get(name)) for name in {**before, **now} if before.get(name) != now.get(name)]
