"""`everywhere`: one topology, disturbed at every point that it reaches."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import DefinitionError
from .disturbances import FAULTS, cases
from .driver_process import Build, Readings
from .drivers import Drivers
from .feed import Feed, Selection, choose, from_text, select_all, shrink
from .kill_point import FaultCase
from .locations import StorePlace, scratch
from .report import FaultReport, Rerun, describe_fault
from .trials import CaseVerdict, Laboratory, Reference, Undisturbed, move, name_stores

SHRINKING_SECONDS = 20.0
SAMPLE = 12


def everywhere(
    build: Build | str,
    batches: Any = None,
    *,
    fields: Any = None,
    kind: str = "transactional",
    stores: Sequence[StorePlace] = ("sqlite",),
    readings: Readings | None = None,
    conf: Mapping[str, Any] | None = None,
    cluster: str = "local",
    faults: Collection[str] = tuple(FAULTS),
    unreached: Collection[str] = (),
    smoke: bool = False,
    seed: int | None = None,
    point: str = "",
    rows: str = "",
    rerun: Rerun | None = None,
) -> FaultReport:
    """Run the topology undisturbed, then once for each point that it reached, each time disturbed there; compares.

    ``build(spout, store)`` returns the built topology; it runs in processes of its own. ``spout`` has the ``batches``:
    lists of tuples with ``fields``, or of dicts; of several spouts as a dict by name, and ``spout`` then is one, too.
    Without batches it is None, and the topology has its own finite spouts. ``kind``: "transactional" or "opaque".
    ``store``: the URL of an empty store, one of ``stores`` after the other: "sqlite", "files", "memory", the URL
    of a server on which databases may be created, or a function that gives a context manager of a URL, for a folder.

    A state must hold what it holds undisturbed if `guarantees()` says exactly once, also in effect; the report shows
    how others differ. States are read by ``stored()`` of their factories. ``readings``: functions of the store, by the
    name of a state, or by another one: what they return must be equal.

    ``faults``: only these ways to disturb. ``unreached``: state partitions ("counts/1") that no batch need reach.
    ``smoke``: a sample that takes seconds. ``seed``: of the order and the sample. ``point``, ``rows``: only this case.
    ``cluster``: "local"; "spark" is untested.

    Raises FaultFound for the first case that fails, with the fewest rows found that show it, and how to repeat it;
    Undisturbed if the topology fails without a disturbance or does not reach a state's partition; DefinitionError.
    """
    __tracebackhide__ = True  # pytest shows the test, not the kit
    unknown = set(faults) - set(FAULTS)
    if unknown:
        raise DefinitionError(f"faults: no {', '.join(sorted(unknown))}; there are: {', '.join(FAULTS)}")
    drawn = random.randrange(10**6) if seed is None else seed  # noqa: S311  a seed that is printed
    feed = Feed.of(batches, fields, kind)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(scratch("trident-faults-")))
        drivers = stack.enter_context(Drivers(folder / "drivers", build, readings or {}))
        settings = tuple((conf or {}).items())
        lab = Laboratory(drivers, folder, name_stores(stores), cluster, settings)
        campaign = Campaign(lab, feed, drawn, tuple(faults), tuple(unreached), smoke, rerun or Rerun())
        return campaign.only(FaultCase.of(point), rows) if point else campaign.run()


@dataclass
class Campaign:
    """All cases of one topology, in the order that the seed draws."""

    lab: Laboratory
    feed: Feed
    seed: int
    faults: tuple[str, ...]
    unreached: tuple[str, ...]
    smoke: bool
    rerun: Rerun

    def run(self) -> FaultReport:
        """Return every case, until one fails."""
        __tracebackhide__ = True
        report = FaultReport(self.seed)
        draw = random.Random(self.seed)  # noqa: S311  a seed that is printed
        for store in list(self.lab.stores)[: 1 if self.smoke else None]:
            reference = report.references[store] = self._reference(store)
            mine = self._cases(store, reference)
            draw.shuffle(mine)
            for case in sample(mine) if self.smoke else mine:
                report.verdicts.append(self._verdict(case, reference, select_all(self.feed)))
        return report

    def only(self, case: FaultCase, rows: str) -> FaultReport:
        """Return one case again, with these rows of the feed."""
        __tracebackhide__ = True
        if case.store not in self.lab.stores:
            raise DefinitionError(f"the point is on {case.store}; this test has: {', '.join(self.lab.stores)}")
        if case.fault not in FAULTS:
            raise DefinitionError(f"no disturbance {case.fault!r}; there are: {', '.join(FAULTS)}")
        selection = from_text(rows) if rows else select_all(self.feed)
        reference = self.lab.reference(case.store, choose(self.feed, selection))
        report = FaultReport(self.seed, {case.store: reference})
        verdict = self.lab.verdict(case, reference)
        report.verdicts.append(verdict)
        if verdict.failed:
            raise describe_fault(verdict, reference, self.seed, selection, self.rerun, 0)
        return report

    def _cases(self, store: str, reference: Reference) -> list[FaultCase]:
        made = cases(
            store, reference.points, proxied=reference.proxied, opaque=self.feed.kind == "opaque",
            memory_only=reference.memory_only,
        )  # fmt: skip
        return [case for case in made if case.fault in self.faults]

    def _reference(self, store: str) -> Reference:
        reference = self.lab.reference(store, self.feed)
        if missing := [place for place in reference.list_unreached() if place not in self.unreached]:
            raise Undisturbed(
                f"no batch reaches {', '.join(missing)} (state/partition), so nothing is known of it. Feed more keys, "
                f"lower the parallelism, or give unreached={missing!r}"
            )
        if unread := [promise.state for promise in reference.promises if not promise.readable]:
            raise Undisturbed(
                f"the kit cannot read {', '.join(unread)}: give the factory a method stored(), or everywhere "
                f"readings={{{unread[0]!r}: function of the store}}"
            )
        return reference

    def _verdict(self, case: FaultCase, reference: Reference, selection: Selection) -> CaseVerdict:
        """Raise FaultFound, shrunk, if the case fails."""
        __tracebackhide__ = True
        verdict = self.lab.verdict(case, reference)
        if not verdict.failed:
            return verdict
        search = _Search(self, verdict, reference, selection, time.monotonic() + SHRINKING_SECONDS)
        if self.feed.count:
            shrink(selection, search.fails)
        raise describe_fault(search.verdict, search.reference, self.seed, search.selection, self.rerun, search.tried)


@dataclass
class _Search:
    """Looks for a smaller feed in which a case still fails; keeps the last one that did."""

    campaign: Campaign
    verdict: CaseVerdict
    reference: Reference
    selection: Selection
    until: float
    tried: int = 0

    def fails(self, selection: Selection) -> bool:
        if time.monotonic() > self.until:
            return False
        self.tried += 1
        lab, case = self.campaign.lab, self.verdict.case
        try:
            reference = lab.once(case.store, choose(self.campaign.feed, selection))
        except Undisturbed:
            return False
        reference = replace(reference, changing=self.reference.changing)
        for candidate in move(case, reference.points):
            verdict = lab.verdict(candidate, reference)
            if verdict.failed and bool(verdict.broken) == bool(self.verdict.broken):
                self.verdict, self.reference, self.selection = verdict, reference, selection
                return True
        return False


def sample(mine: list[FaultCase]) -> list[FaultCase]:
    """Take `SAMPLE` of the shuffled cases: one of each way to disturb, then deaths at different steps."""
    chosen_cases: dict[tuple[str, str], FaultCase] = {}
    for case in mine:
        chosen_cases.setdefault((case.fault, case.point.step if case.fault == "kill" else ""), case)
    others = [case for case in chosen_cases.values() if case.fault != "kill"]
    deaths = [case for case in chosen_cases.values() if case.fault == "kill"]
    return [*others, *deaths[: max(1, SAMPLE - len(others))]]
