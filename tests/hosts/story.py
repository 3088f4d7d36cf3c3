"""One story: a run on the hosts, what happens to them on the way, and what is in the stores at its end."""

from __future__ import annotations

import threading
import time
import traceback
from dataclasses import asdict, dataclass, field
from typing import Any

from faults.steps import Fault

from .acts import Acts
from .evidence import evidence
from .hook import HOLD, Caller
from .kinds import PROFILES, Planned
from .lab import Driver, Lab
from .orders import Order
from .processes import real_pid

GAP = 150.0
PATIENCE = 30.0
WROTE, NOTHING = "wrote, before its task ran again", "wrote nothing, as its task had run again"


class Hung(AssertionError):
    """For `GAP` seconds neither a batch was committed nor a driver came up. Its text is the evidence."""


@dataclass
class Happened:
    """A fault that came, and when the next batch was committed."""

    kind: str
    state: str
    step: str
    txid: int
    at: float
    seconds: float = -1.0
    replays: int = 0
    late: str = ""


@dataclass
class Told:
    """What is known at the end of a story."""

    name: str
    seed: int
    store: str
    shape: str
    profile: str
    batches: int
    happened: list[Happened] = field(default_factory=list)
    replays: int = 0
    drivers: int = 0
    errors: list[str] = field(default_factory=list)
    differences: list[Any] = field(default_factory=list)
    seconds: float = 0.0

    def record(self) -> dict[str, Any]:
        return asdict(self)


class Story:
    """Runs an order to its end, whatever happens to the drivers. `run` returns what came of it; raises Hung."""

    def __init__(self, lab: Lab, order: Order, planned: list[Planned], told: Told) -> None:
        self.lab, self.order, self.planned, self.told = lab, order, list(planned), told
        self.settings = PROFILES[told.profile]
        self.acts = Acts(lab, self)
        self.over = threading.Event()
        self.driver: Driver = Driver("", lab.folder)
        self._batches = threading.Condition()
        self._done = 0
        self._last_sign = time.monotonic()
        self._news = threading.Event()
        self._ended: tuple | None = None
        self.history: list[str] = []
        self.held: dict[Fault, Caller] = {}
        self._again: set[Fault] = set()

    def run(self) -> Told:
        begun = time.monotonic()
        self.lab.heard = self._heard
        self._arm(1)
        try:
            while not self._over():
                self._next_driver()
                self._watch()
        except Exception as error:
            raise Hung(f"{error!r}\n{self._evidence()}") from error
        finally:
            self.over.set()
            self.acts.finish()
        self._wait_for_the_late()
        self.told.seconds = time.monotonic() - begun
        self.told.differences = self.order.differences()
        return self.told

    def wait_for(self, txid: int, seconds: float) -> None:
        """Until this batch is over, or so many seconds have gone."""
        with self._batches:
            self._batches.wait_for(lambda: self._done >= txid or self.over.is_set(), seconds)

    def spared(self, planned: Planned) -> None:
        """The fault did not come about after all."""
        self.told.happened = [one for one in self.told.happened if (one.kind, one.txid) != (planned.kind, planned.txid)]

    def _wait_for_the_late(self) -> None:
        """The stores are compared when nobody writes any more: every process that was held has gone on and told how its
        commit ended, or is dead. One whose transaction failed before its commit tells nothing."""
        until = time.monotonic() + PATIENCE
        while any(self._lives(caller) for caller in list(self.held.values())) and time.monotonic() < until:
            time.sleep(0.1)

    def _lives(self, caller: Caller) -> bool:
        try:
            return real_pid(self.lab.network.hosts[caller.host], caller.pid) > 0
        except ProcessLookupError:
            return False

    # -- the drivers

    def _over(self) -> bool:
        return self._ended is not None and self._ended[0] == "done"

    def _next_driver(self) -> None:
        """Lets the driver of the lab go on, or another one on a host that is up."""
        self.driver = self.lab.driver_for(self.told.profile, self.settings, self.driver.host)
        self._ended = None
        self._news.clear()
        self.told.drivers += 1
        if self.told.drivers > len(self.told.happened) + 4:
            raise Hung(f"{self.told.drivers} drivers have ended, more than there were faults")
        self._last_sign = time.monotonic()  # how long a driver takes to come up is up to the machine, and limited
        self.driver.obey(self.order)

    def _watch(self) -> None:
        """Until this driver has ended its run, or is gone."""
        while not self._news.wait(0.5):
            if time.monotonic() - self._last_sign > GAP:
                raise Hung(f"no batch for {GAP:.0f} s after txid {self._done}")
        ended = self._ended
        assert ended is not None
        if ended[0] == "broken":
            raise Hung(ended[1])
        if ended[0] == "error":
            self.told.errors.append(f"after txid {self._done}: {ended[1]}: {ended[2]}")
            self.lab.dismiss(self.driver)
        elif ended[0] == "gone":
            self.lab.dismiss(self.driver)

    # -- what they say

    def _heard(self, words: tuple) -> Any:
        self.history.append(f"{time.monotonic():.2f} {words!r}"[:300])
        if words[0] == "hook":
            return self._hooked(*words[1:])
        if words[1] is self.driver:
            self._told_by_driver(words[2:])
        return None

    def _told_by_driver(self, words: tuple) -> None:
        if words[0] == "event":
            _, kind, txid, _, _ = words
            if kind in ("replay", "task-retry"):
                self._replayed()
            if kind == "committed":
                self._committed(txid)
        elif self._ended is None or self._ended[0] == "gone":
            self._ended = words
            self._news.set()

    def _replayed(self) -> None:
        self.told.replays += 1
        for one in self.told.happened:
            one.replays += one.seconds < 0

    def _committed(self, txid: int) -> None:
        now = self._last_sign = time.monotonic()
        for one in self.told.happened:
            if one.seconds < 0:
                one.seconds = now - one.at
        with self._batches:
            self._done = max(self._done, txid)
            self._batches.notify_all()
        self._arm(txid + 1)

    def _hooked(self, order: str, caller: Caller, what: str, fault: Fault, error: str = "") -> None:
        if order != self.order.name:
            return
        if what == "ended":
            self._commit_ended(caller, fault, error)
            return
        planned = self._take(lambda one: one.place == fault)
        if planned is not None:
            if fault.action == HOLD:
                self.held[fault] = caller
            self._happens(planned, caller)

    def _commit_ended(self, caller: Caller, fault: Fault, error: str) -> None:
        """Of a task where one is held: of that one, or of one that runs its task again."""
        if self.held.get(fault) != caller:
            if not error:
                self._again.add(fault)
            return
        for one in self.told.happened:
            if (one.txid, one.step, one.state) == (fault.txid, fault.step, fault.state):
                one.late = error or (NOTHING if fault in self._again else WROTE)
        del self.held[fault]

    def _take(self, fits: Any) -> Planned | None:
        with self._batches:
            found = next((one for one in self.planned if fits(one)), None)
            if found is not None:
                self.planned.remove(found)
            return found

    def _arm(self, txid: int) -> None:
        """The fault that has no place in the batch that begins now comes soon."""
        planned = self._take(lambda one: one.place is None and one.txid == txid)
        if planned is not None:
            threading.Thread(target=self._soon, args=(planned,), daemon=True).start()

    def _soon(self, planned: Planned) -> None:
        if not self.over.wait(planned.delay):
            self._happens(planned, None)

    def _happens(self, planned: Planned, caller: Caller | None) -> None:
        happened = Happened(planned.kind, planned.state, planned.step, planned.txid, time.monotonic())
        self.told.happened.append(happened)
        try:
            self.acts(planned, caller)
        except OSError:  # what was to be hurt is gone already
            self.history.append(f"{planned}: {traceback.format_exc()}")
            self.spared(planned)

    def _evidence(self) -> str:
        return "\n".join([*self.told.errors, *self.history[-60:], *evidence(self.lab, self.driver)])
