"""The report to a test: a table of the guarantees that held, or the one case that did not."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from .feed import Feed, Selection, to_text
from .trials import CaseVerdict, Reference


class FaultFound(AssertionError):
    """A state is not as its guarantee says, or a run does not come to its end. ``verdict``: of which case."""

    def __init__(self, text: str, verdict: CaseVerdict, selection: Selection) -> None:
        super().__init__(text)
        self.verdict, self.selection = verdict, selection


@dataclass
class FaultReport:
    """What `everywhere` has seen. ``str()`` is a table."""

    seed: int
    references: dict[str, Reference] = field(default_factory=dict)
    verdicts: list[CaseVerdict] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{len(self.verdicts)} disturbed runs, seed {self.seed}"]
        for store, reference in self.references.items():
            mine = [verdict for verdict in self.verdicts if verdict.case.store == store]
            counts = Counter(verdict.case.fault for verdict in mine)
            lines.append(f"on {store}: {', '.join(f'{fault} {count}' for fault, count in counts.items())}")
            lines += [f"  {line}" for line in _states(reference, mine)]
        notes = dict.fromkeys(note for verdict in self.verdicts for note in verdict.notes)
        return "\n".join([*lines, *notes])


def _states(reference: Reference, verdicts: Sequence[CaseVerdict]) -> list[str]:
    """Return a line for each state: what is promised, and what was seen."""
    guarantees = {promise.state: promise.guarantee for promise in reference.promises}
    lines = []
    for name in dict.fromkeys([*guarantees, *reference.contents]):
        compared = [verdict for verdict in verdicts if name in reference.judge(verdict.case.fault)]
        differing = [verdict for verdict in compared if name in {found.state for found in verdict.seen}]
        said = guarantees.get(name, "a reading")
        if name in reference.changing:
            lines.append(f"{name} ({said}): not compared, two undisturbed runs leave different contents")
        elif not compared:
            lines.append(f"{name} ({said}): not compared, it lives in memory")
        elif differing:
            first = differing[0]
            lines.append(f"{name} ({said}): differed in {len(differing)} of {len(compared)}, first by {first.case}")
            lines += [f"  {line}" for found in first.seen if found.state == name for line in str(found).splitlines()]
        else:
            lines.append(f"{name} ({said}): no difference seen in {len(compared)}")
    return lines


@dataclass(frozen=True)
class Rerun:
    """How one case is repeated. ``test``: what pytest calls it, "" outside of pytest."""

    test: str = ""

    def command(self, seed: int, verdict: CaseVerdict, rows: str) -> str:
        if not self.test:
            return f"everywhere(..., seed={seed}, point={verdict.case.text!r}, rows={rows!r})"
        words = ["pytest", self.test, f"--trident-seed={seed}", f"--trident-point={verdict.case.text}"]
        return shlex.join([*words, *([f"--trident-rows={rows}"] * bool(rows))])


def describe_fault(
    verdict: CaseVerdict, reference: Reference, seed: int, selection: Selection, rerun: Rerun, tried: int
) -> FaultFound:
    """Return the error for a failed case, shrunk to this part of the feed."""
    guarantees = {promise.state: f"{promise.guarantee}: {promise.reason}" for promise in reference.promises}
    lines = [f"{verdict.case}", *([verdict.error] if verdict.error else [])]
    for broken in verdict.broken:
        lines.append(f"{broken.state} is promised {guarantees.get(broken.state, 'to be equal by this test')}")
        lines += str(broken).splitlines()
    lines += [*verdict.notes, *_describe_feed(reference.feed, tried)]
    rows = to_text(selection)
    lines.append(f"again: {rerun.command(seed, verdict, rows)}")
    return FaultFound("\n".join(lines), verdict, selection)


def _describe_feed(feed: Feed, tried: int) -> list[str]:
    lines = [f"fed, after {tried} attempts to shrink it:"]
    for n in range(feed.count):
        for name, batches in feed.batches:
            rows = list(batches[n]) if n < len(batches) else []
            lines.append(f"  batch {n + 1}{f' of {name}' if name else ''}: {rows}")
    return lines
