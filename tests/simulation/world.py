"""A world that can be steered: drivers on one checkpoint and one store, in one process, one at a time.

Each request to the store, to the log, to a spout or to the clock is a point where the world chooses what happens. The
drivers run the product's own code, each in a thread of its own; the thread that may run holds the baton. Nothing waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from trident_py.errors import FailedException, StateError

from .reduction import Reduction

T = TypeVar("T")
Option = tuple[str, int]
"""What happens at a point, and which one: of the drivers, of the requests under way, of the earlier states."""

GO: Option = ("go", 0)
HEARD = {"lost": "nothing", "late": "nothing", "refuse": "no", "deny": "no"}  # else an answer, and so what is there
LIKE = {"power": "die", "lost": "late", "twice": "late"}  # what is alike to the specification
DENIALS = frozenset(["refuse", "deny"])  # a store says for good that it cannot: it has not done it, or has done it
LONGEST = 600  # points of a schedule: one that has more does not end
FURTHEST = 100  # writes that a store may go back; from there on, they are those of the next store
END = "end of a driver"
LATE = "late "
STARTS = 24  # drivers of a schedule: one that needs more does not end


class Died(BaseException):
    """The driver is dead. Nothing of ours may catch it for good: each further request raises it again."""


class Violation(Exception):
    """The specification does not allow what a reader sees, or how a run has ended."""


class Bounds(NamedTuple):
    """How far a world goes. ``kinds``: the faults that it knows; ``back``: by how many writes a place may go back;
    ``reduced``: without choices that lead to the same as others."""

    faults: int = 2
    drivers: int = 2
    kinds: frozenset[str] = frozenset(
        ["die", "power", "lost", "late", "twice", "start", "wake", "back", "log back", "deliver", "other", "jump"]
    )  # and DENIALS
    back: tuple[int, ...] = (1, 3)
    reduced: bool = False


@dataclass
class Place:
    """Data that outlives its drivers: every content it has had, the newest one last. ``version``: changes with every
    write, also with one that restores an old content."""

    content: Mapping[Any, Any] = field(default_factory=dict)
    history: list[Mapping[Any, Any]] = field(default_factory=list)
    version: int = 0
    digest: int = 0
    durable: Mapping[Any, Any] = field(default_factory=dict)
    before: tuple[int, ...] = ()  # the digests of its last contents

    def change(self, content: Mapping[Any, Any], durable: bool = True) -> None:
        self.history.append(self.content)
        self._set(content)
        if durable:
            self.durable = content

    def go_back(self, writes: int) -> None:
        content = self.history[-writes]
        self.history.append(self.content)
        self._set(content)
        self.durable = content

    def _set(self, content: Mapping[Any, Any]) -> None:
        self.content = content
        self.version += 1
        self.before = (*self.before[-2:], self.digest)
        self.digest = hash(frozenset(content.items()))


class Driver:
    """One start of the topology. ``history``: a digest of all that it has asked and heard, and so of all it knows."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.gate = threading.Lock()
        self.gate.acquire()
        self.dead = False
        self.ended = False
        self.ending = 0  # after how many points
        self.error: BaseException | None = None
        self.history = number
        self.checkpoint: Any = None
        self.faults = 0  # how many of the world's it has seen


class Beginning(NamedTuple):
    """What is there before the first start. ``conf``: what the user has set; ``refused``: it must not go on; ``back``:
    the batch to which the user takes the log back before."""

    stores: tuple[Mapping[Any, Any], ...] = ({}, {})
    log: Mapping[Any, Any] = MappingProxyType({})
    conf: Mapping[str, Any] = MappingProxyType({})
    refused: bool = False
    back: int | None = None


class Request(NamedTuple):
    """A request that is under way: it may still arrive."""

    name: str
    act: Callable[[], Any]
    digest: int


Choose = Callable[["World", str, str, list[Option]], int]


class World:
    """One schedule. ``drive`` runs a driver to its end; ``choose`` is asked at each point that has several options;
    ``judge`` looks at each change."""

    def __init__(
        self, drive: Callable[[World, Driver], None], choose: Choose, judge: Callable[[World, str], None],
        bounds: Bounds, beginning: Beginning,
    ) -> None:  # fmt: skip
        self.drive, self.choose, self.judge, self.bounds = drive, choose, judge, bounds
        self.beginning = beginning
        self.stores = [Place(content, durable=content) for content in beginning.stores]
        self.log = Place(beginning.log, durable=beginning.log)
        self.left = bounds.faults
        self.drivers: list[Driver] = []
        self.late: list[Request] = []
        self.memory: dict[Any, Any] = {}  # what the specification has seen
        self.now = 1_000_000
        self.over = False
        self.cut = False
        self.points = 0
        self.taken: list[tuple[int, str, str, Option]] = []
        self.violation: Violation | None = None
        self.refused: BaseException | None = None
        self.running: Driver | None = None
        self.reduction = Reduction(self)
        self._main = threading.Lock()
        self._main.acquire()

    # -- a schedule -----------------------------------------------------------------------------------------------

    def run(self) -> World:
        """Run drivers until the input is done, a start is refused for good, or a rule is broken."""
        try:
            while not self.over and (driver := self._next()) is not None:
                self._hold(driver)
                if not self.over:
                    self.judge(self, END)
            self._deliver_rest()
        except Died:
            pass
        except Violation as error:
            self.violation = self.violation or error
        self.over = True
        for driver in self.drivers:
            while not driver.ended:
                self._hold(driver)
        return self

    def _next(self) -> Driver | None:
        """Return the driver that runs when the one before has ended: one that is asleep, else a new one. To the last
        one, nothing happens."""
        asleep = [driver for driver in self.drivers if not driver.ended]
        if asleep:
            return asleep[-1]
        last = self.drivers[-1] if self.drivers else None
        if last is not None and not last.faults:
            self.refused = last.error
            return None
        if len(self.drivers) == STARTS:
            raise Violation(f"{STARTS} drivers have started, and the last one failed with {last and last.error!r}")
        return self._start()

    def _start(self) -> Driver:
        driver = Driver(len(self.drivers) + 1)
        self.drivers.append(driver)
        threading.Thread(target=self._run_driver, args=(driver,), daemon=True).start()
        return driver

    def _run_driver(self, driver: Driver) -> None:
        driver.gate.acquire()
        try:
            self.drive(self, driver)
        except Died:
            driver.dead = True
        except BaseException as error:
            driver.error = error
        driver.ended, driver.ending = True, self.points
        self.running = None
        self._main.release()

    def _hold(self, driver: Driver) -> None:
        """Give the baton to a driver, until one has ended."""
        self.reduction.turn()
        self.running = driver
        driver.gate.release()
        self._main.acquire()

    def _hand_over(self, driver: Driver) -> None:
        """Called by the driver that runs: another one goes on, until somebody wakes this one."""
        own = self.running
        assert own is not None
        own.faults += 1
        driver.faults += 1
        self.running = driver
        driver.gate.release()
        own.gate.acquire()
        if self.over or own.dead:
            raise Died

    def _deliver_rest(self) -> None:
        """What is still under way arrives when all is over."""
        while self.late and not self.over:
            self._arrive(0)

    # -- a point --------------------------------------------------------------------------------------------------

    def ask(self, place: str, name: str, act: Callable[[], T]) -> T:
        """Called for each request. ``act`` is one step; it raises what the place answers. ``place``: "read", "write"
        and "task" for the store, "log", "log read"."""
        driver = self.alive()
        option = self._choose(place, name)
        while option[0] in ("start", "wake", "deliver", "back", "log back"):
            self.reduction.turn()
            self._turn(option)
            option = self._choose(place, name)
        if option == GO:
            self.reduction.ask(place)
        else:
            self.reduction.turn()
        return self._answer(driver, place, name, act, option)

    def look(self, place: str, answer: T) -> T:
        """Called for what is read beside a request."""
        self.reduction.ask(place)
        driver = self.alive()
        driver.history = hash((driver.history, place, answer))
        return answer

    def alive(self) -> Driver:
        driver = self.running
        if self.over or driver is None or driver.dead:
            raise Died
        return driver

    def pick(self, place: str, name: str, options: list[Option]) -> Option:
        """Called where the world chooses a value: what a spout emits, what the clock says."""
        driver = self.alive()
        free = options if self.left and options[-1][0] in self.bounds.kinds else options[:1]
        chosen = self._ask_chooser(place, name, free)
        if chosen != options[0]:
            self.left -= 1
            driver.faults += 1
        driver.history = hash((driver.history, place, name, chosen))
        return chosen

    def await_nothing(self) -> bool:
        """Called by a spout that is not ready."""
        self._count()
        return False

    def _count(self) -> None:
        self.alive()
        self.points += 1
        if self.points > LONGEST:
            raise self.broken(f"a schedule of more than {LONGEST} requests does not end")

    def _choose(self, place: str, name: str) -> Option:
        self._count()
        option = self._ask_chooser(place, name, self._options(place))
        if option[0] not in ("go", "deliver"):
            self.left -= 1
            self.memory.setdefault("faults", set()).add(LIKE.get(option[0], option[0]))
        return option

    def _ask_chooser(self, place: str, name: str, options: list[Option]) -> Option:
        if len(options) == 1 and not self.bounds.reduced:
            return options[0]
        option = options[self.choose(self, place, name, options)]
        if self.over:
            raise Died
        if option != options[0]:
            assert self.running is not None
            self.taken.append((self.running.number, place, name, option))
        return option

    def _options(self, place: str) -> list[Option]:
        kinds, options = self.bounds.kinds, [GO]
        if self.late and "deliver" in kinds:
            options += [("deliver", number) for number in range(len(self.late))]
        if self.left:
            options += self._faults_at(place)
        options = [option for option in options if option == GO or option[0] in kinds]
        return self.reduction.choose_from(place, options) if self.bounds.reduced else options

    def _faults_at(self, place: str) -> list[Option]:
        options = self._of_drivers()
        if place in ("write", "task", "log"):
            options += [("die", 0), ("power", 0)]
        if place in ("write", "task"):
            options += [("lost", 0), ("late", 0), ("twice", 0)]
        if place == "write":
            options += [("refuse", 0), ("deny", 0)]
        if place != "log read":
            for kind, number, at in self._places():
                options += [(kind, number + writes) for writes in self.bounds.back if writes <= len(at.history)]
        return options

    def _places(self) -> list[tuple[str, int, Place]]:
        stores = [("back", FURTHEST * number, store) for number, store in enumerate(self.stores)]
        return [*stores, ("log back", 0, self.log)]

    def _of_drivers(self) -> list[Option]:
        others = [driver for driver in self.drivers if not driver.ended and driver is not self.running]
        can_start = len(others) + 1 < self.bounds.drivers
        return [("start", 0)] * can_start + [("wake", driver.number) for driver in others]

    def _turn(self, option: Option) -> None:
        """Do what does not answer the request."""
        kind, number = option
        driver = self.alive()
        if kind == "start":
            self._hand_over(self._start())
        elif kind == "wake":
            self._hand_over(self.drivers[number - 1])
        elif kind == "deliver":
            self._arrive(number)
        else:
            driver.faults += 1
            store, writes = divmod(number, FURTHEST)
            place = self.stores[store] if kind == "back" else self.log
            place.go_back(writes)
            for other in self.drivers:
                other.faults += 1
            self._judge(kind)

    def _arrive(self, number: int) -> None:
        request = self.late.pop(number)
        try:
            request.act()
        except Exception:
            return  # it is refused, and nobody hears of it
        self._judge(LATE + request.name)

    def _judge(self, name: str) -> None:
        try:
            self.judge(self, name)
        except Violation as error:
            raise self.broken(str(error)) from None

    def breaks(self, request: Request) -> bool:
        """Return whether no reader may see what is there now, if this request has arrived."""
        try:
            self.judge(self, LATE + request.name)
        except Violation:
            return True
        return False

    def _answer(self, driver: Driver, place: str, name: str, act: Callable[[], T], option: Option) -> T:
        kind = option[0]
        if kind != "go":
            driver.faults += 1
        if kind == "refuse":
            self._know(driver, place, name, kind)
            raise StateError(f"{name}: it cannot be done")
        if kind == "late":
            self._know(driver, place, name, kind)
            self.late.append(Request(name, act, driver.history))
            raise FailedException(f"{name}: no answer")
        try:
            answer = act()
        finally:
            self._know(driver, place, name, kind)
        if place in ("write", "task", "log"):
            self._judge(name)
        if kind in ("die", "power"):
            if kind == "power":
                self.log.change(self.log.durable)
            driver.dead = True
            raise Died
        if kind == "twice":
            self.late.append(Request(name, act, driver.history))
        if kind == "lost":
            raise FailedException(f"{name}: no answer")
        if kind == "deny":
            raise StateError(f"{name}: it cannot be done")
        return answer

    def _know(self, driver: Driver, place: str, name: str, kind: str) -> None:
        at = self.log.digest if place.startswith("log") else self._stored()
        heard = HEARD.get(kind, ("an answer", at))
        driver.history = hash((driver.history, place, name, heard))

    def _stored(self) -> int:
        return hash(tuple(store.digest for store in self.stores))

    def broken(self, text: str) -> Died:
        self.violation, self.over = self.violation or Violation(text), True
        return Died()

    def stop(self) -> None:
        """Called at a point: what follows is known."""
        self.cut = self.over = True

    def digest(self) -> int:
        """Return a number that is the same for two points from which the same follows."""
        drivers = tuple(
            (each.history, each.number, each is self.running, each.checkpoint is None or each.checkpoint.is_newest())
            for each in self.drivers
            if not each.ended
        )
        late = tuple(request.digest for request in self.late)
        seen = hash(frozenset((key, frozenset(value) if isinstance(value, set) else value) for key, value in
                              self.memory.items()))  # fmt: skip
        last = self.drivers[-1].faults > 0
        before = tuple(at.before for *_, at in self._places()) if self.left else ()
        return hash((self._stored(), self.log.digest, hash(frozenset(self.log.durable.items())), drivers, late, seen,
                     len(self.drivers), last, self.now, before))  # fmt: skip
