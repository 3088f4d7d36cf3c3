"""One topology, one feed: its undisturbed runs, every case against them, and how two results differ."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import TridentError
from ...state import OpaqueValue, TransactionalValue
from .disturbances import FAULTS, NeverEnds, NotReached, Trial, carry_out
from .driver_process import Contents, Outcome, Promise, Run
from .drivers import Drivers
from .feed import Feed
from .kill_point import IN_STATE, LINE, FaultCase, KillPoint, Point, read_points
from .locations import StorePlace, empty_store, has_proxy, name_of

_SHOWN = 4


@dataclass(frozen=True)
class Discrepancy:
    """Of one state: key -> (expected, found), None for what is not there."""

    state: str
    keys: tuple[tuple[Any, Any, Any], ...]

    def __str__(self) -> str:
        lines = [f"  {_short(key)}: expected {_short(expected)}, found {_short(found)}"
                 for key, expected, found in self.keys[:_SHOWN]]  # fmt: skip
        more = len(self.keys) - _SHOWN
        rest = [f"  and {more} more"] if more > 0 else []
        return "\n".join([f"{self.state}: {len(self.keys)} values differ", *lines, *rest])


def compare(state: str, expected: Any, found: Any, plain: bool = False) -> Discrepancy | None:
    """Return the difference between two contents of a state; None if they are equal. ``plain``: values count, their
    txids do not."""
    if not (isinstance(expected, Mapping) and isinstance(found, Mapping)):
        return None if expected == found else Discrepancy(state, (("content", expected, found),))
    before, after = dict(expected), dict(found)
    if plain:
        before, after = ({key: plain_value(value) for key, value in side.items()} for side in (before, after))
    keys = [*before, *(key for key in after if key not in before)]
    different = tuple((key, before.get(key), after.get(key)) for key in keys if _differ(key, before, after))
    return Discrepancy(state, different) if different else None


def plain_value(value: Any) -> Any:
    """Return what a query of the state would answer."""
    if isinstance(value, TransactionalValue):
        return value.value
    return value.curr if isinstance(value, OpaqueValue) else value


def _differ(key: Any, before: dict, after: dict) -> bool:
    return (key in before) != (key in after) or before[key] != after[key]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


class Undisturbed(TridentError):
    """The topology cannot be tried: already without a disturbance it fails, or its points are not reached."""


@dataclass(frozen=True)
class Reference:
    """What an undisturbed run has reached and left. ``changing``: what a second one has left otherwise."""

    feed: Feed
    points: tuple[Point, ...]
    contents: Contents
    promises: tuple[Promise, ...]
    changing: frozenset[str]
    proxied: bool

    @property
    def memory_only(self) -> bool:
        return bool(self.promises) and all(promise.in_memory for promise in self.promises)

    def list_unreached(self) -> list[str]:
        """Return the state partitions that no batch has reached."""
        there = {(point.name, point.partition) for point in self.points if point.step in IN_STATE}
        wanted = {(promise.state, n): promise for promise in self.promises for n in range(promise.partitions)}
        return [f"{state}/{partition}" for state, partition in sorted(set(wanted) - there)]

    def judge(self, fault: str) -> dict[str, bool]:
        """Return for each state and reading that can be compared after this fault: whether it must be equal."""
        promises = {promise.state: promise for promise in self.promises}
        judged = {}
        for name in self.contents:
            promise = promises.get(name)
            if name in self.changing or (promise is not None and promise.in_memory and FAULTS[fault].restarts):
                continue
            judged[name] = promise is None or promise.promised
        return judged


@dataclass(frozen=True)
class CaseVerdict:
    """What has become of one case. ``broken``: states that are not as promised. ``seen``: what differs and may.
    ``error``: the run did not get that far."""

    case: FaultCase
    broken: tuple[Discrepancy, ...] = ()
    seen: tuple[Discrepancy, ...] = ()
    error: str = ""
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        return bool(self.broken or self.error)


@dataclass
class Laboratory:
    """Runs cases of one topology. ``stores`` by their names in a case."""

    drivers: Drivers
    folder: Path
    stores: dict[str, StorePlace]
    cluster: str = "local"
    conf: tuple[tuple[str, Any], ...] = ()
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def reference(self, store: str, feed: Feed) -> Reference:
        """Run twice undisturbed. Raises Undisturbed if one fails."""
        first = self.once(store, feed)
        other = self.once(store, feed).contents
        changing = [name for name, content in first.contents.items() if compare(name, content, other[name])]
        return replace(first, changing=frozenset(changing))

    def once(self, store: str, feed: Feed) -> Reference:
        """Return one undisturbed run. Raises Undisturbed if it fails."""
        folder = self._folder()
        with empty_store(self.stores[store], folder) as url:
            run = Run(str(folder), url, feed, KillPoint(str(folder), True), 1, self.cluster, self.conf)
            outcome = self.drivers.run(run, warm=True).ending
            if outcome.error:
                raise Undisturbed(f"undisturbed, on {store}, the run fails: {outcome.error}")
            points, proxied = tuple(read_points(folder)), has_proxy(url)
        shutil.rmtree(folder, ignore_errors=True)
        return Reference(feed, points, outcome.contents, outcome.promises, frozenset(), proxied)

    def _folder(self) -> Path:
        folder = self.folder / f"case-{next(self._numbers)}"
        folder.mkdir(parents=True)
        return folder

    def verdict(self, case: FaultCase, reference: Reference) -> CaseVerdict:
        """Run the case and compare."""
        folder = self._folder()
        with empty_store(self.stores[case.store], folder) as url:
            trial = Trial(self.drivers, case, reference.feed, folder, url, self.cluster, self.conf)
            try:
                outcome = carry_out(trial)
            except (NotReached, NeverEnds) as error:
                return CaseVerdict(case, error=str(error), notes=tuple(trial.notes))
        broken, seen = self._compare(case, reference, outcome)
        return CaseVerdict(case, broken, seen, notes=tuple(trial.notes))

    def _compare(
        self, case: FaultCase, reference: Reference, outcome: Outcome
    ) -> tuple[tuple[Discrepancy, ...], tuple[Discrepancy, ...]]:
        broken: list[Discrepancy] = []
        seen: list[Discrepancy] = []
        for name, promised in reference.judge(case.fault).items():
            found = compare(name, reference.contents[name], outcome.contents[name], FAULTS[case.fault].plain)
            if found is not None:
                (broken if promised else seen).append(found)
        return tuple(broken), tuple(seen)


def move(case: FaultCase, points: tuple[Point, ...]) -> list[FaultCase]:
    """Return the same case in another feed: at its own batch if the point is there, else in the last and the first
    one."""
    point = case.point
    like = [other for other in points if other.is_like(point)]
    if point.step == LINE and not like:
        return []
    same = [other for other in like if other == point]
    chosen = same or [*like[-1:], *like[:1]]
    return [replace(case, point=other) for other in dict.fromkeys(chosen)]


def name_stores(stores: Any) -> dict[str, StorePlace]:
    """Return the stores by name; two of one name are numbered."""
    made: dict[str, StorePlace] = {}
    for store in stores:
        name = name_of(store)
        same = sum(other.split("~")[0] == name for other in made)
        made[f"{name}~{same + 1}" if same else name] = store
    return made
