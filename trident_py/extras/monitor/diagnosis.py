"""What a component does, in one sentence: what holds it up, and since when. Plain functions over its batches."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import NamedTuple

from .timeline import KEPT, WAITING, BatchRecord, Phase, Timeline

WINDOW = 60.0  # seconds: "of the time" means this last while
PATIENCE = 10.0  # seconds that are nothing special
SLOWER = 10  # times as long as usual is stuck
CHANGE = 1.2  # times as long as before is growing
_WORDS = {
    "waiting": "waiting for records",
    "describe": "the checkpoint",
    "emit": "spouts and the begin of states",
    "execute": "functions",
    "commit": "commit",
    "finish": "spout metadata and decision",
}
KINDS = (
    "failed", "waiting", "stuck", "replaying", "behind", "held", "paused", "starting", "steady", "idle", "ended",
)  # fmt: skip
"""The kinds of a diagnosis; what needs somebody first comes first."""


class Diagnosis(NamedTuple):
    """What a component does: one of `KINDS`, and the sentence."""

    kind: str
    sentence: str


@dataclass(frozen=True)
class ComponentView:
    """A component at a moment. Times are seconds since 1970; ``phase`` began at ``since``.

    ``batches``: the last ones, in their order; one that is not committed is the last. ``backlog``: by spout.
    """

    now: float
    status: str
    phase: Phase
    since: float
    batches: Sequence[BatchRecord] = ()
    spouts: Sequence[str] = ()
    backlog: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    waits: tuple[str, float] | None = None
    inactive: bool = False

    @classmethod
    def of(cls, timeline: Timeline, spouts: Sequence[str], inactive: bool) -> ComponentView:
        """Take the view of a timeline, inside its lock."""
        last = next((batch for batch in reversed(timeline.batches) if batch.ended is not None), None)
        batches = list(timeline.batches)
        if batches and batches[-1].ended is None:  # it goes on while the view is read
            attempts = [replace(each, phases=dict(each.phases)) for each in batches[-1].attempts]
            batches[-1] = replace(batches[-1], attempts=attempts)
        return cls(
            timeline.now(), timeline.status, timeline.phase, timeline.since, batches, spouts,
            last.backlog if last is not None else {}, timeline.reason, timeline.waits, inactive,
        )  # fmt: skip

    @property
    def current(self) -> BatchRecord | None:
        """The batch that is not committed."""
        return self.batches[-1] if self.batches and self.batches[-1].ended is None else None

    @cached_property
    def committed(self) -> list[BatchRecord]:
        return [batch for batch in self.batches if batch.ended is not None]

    @property
    def txid(self) -> int:
        """The last one that is committed, 0 without one."""
        committed = self.committed
        return committed[-1].txid if committed else 0

    def within(self, since: float, until: float) -> list[BatchRecord]:
        """Return the batches that were committed then."""
        return self.committed[bisect_right(self._ends, since) : bisect_right(self._ends, until)]

    @cached_property
    def _ends(self) -> list[float]:
        return [batch.ended or 0.0 for batch in self.committed]


def diagnose(view: ComponentView) -> Diagnosis:
    """Return what the component does."""
    looks = (_tell_end, _tell_start, _tell_stuck, _tell_replay, _tell_pause, _tell_backlog, _tell_idle, _tell_holder)
    return next(found for look in looks if (found := look(view)) is not None)


def find_worst(diagnoses: Mapping[str, Diagnosis]) -> Diagnosis:
    """Return the diagnosis of the component that needs somebody first, with its name if there are several."""
    if not diagnoses:
        return Diagnosis("idle", "it answers requests; no component has batches")
    name = min(diagnoses, key=lambda name: KINDS.index(diagnoses[name].kind))
    found = diagnoses[name]
    return found if len(diagnoses) == 1 else found._replace(sentence=f"{name}: {found.sentence}")


def _tell_end(view: ComponentView) -> Diagnosis | None:
    if view.status == "failed":
        return Diagnosis("failed", f"failed after txid {view.txid}: {_first_line(view.reason)}")
    if view.status == "ended":
        return Diagnosis("ended", f"ended after txid {view.txid}")
    return None


def _tell_start(view: ComponentView) -> Diagnosis | None:
    begins = view.status == "running" and not (view.batches or view.inactive) and view.now - view.since <= PATIENCE
    if view.status != "starting" and not begins:
        return None
    if view.waits is None:
        return Diagnosis("starting", f"starting since {_moment(view.since, view.now)}")
    text, since = view.waits
    return Diagnosis("waiting", f"{_first_line(text)}; since {_moment(since, view.now)}")


def _tell_stuck(view: ComponentView) -> Diagnosis | None:
    batch, lasts = view.current, view.now - view.since
    if batch is None or view.phase == WAITING:
        return None
    seconds = [(other.ended or 0.0) - other.attempts[-1].began for other in view.committed]
    if lasts <= max(PATIENCE, SLOWER * median(seconds) if seconds else 0.0):
        return None
    text = f"stuck in {_name(view.phase)} of txid {batch.txid} since {_moment(view.since, view.now)}"
    return Diagnosis("stuck", f"{text}, for {duration(lasts)}")


def _tell_replay(view: ComponentView) -> Diagnosis | None:
    batch = view.current
    failed = [] if batch is None else [each for each in batch.attempts if each.outcome == "replay"]
    if batch is None or not failed:
        return None
    since = _moment(failed[0].ended or failed[0].began, view.now)
    text = f"replaying txid {batch.txid}, attempt {failed[-1].number + 1}, since {since}"
    return Diagnosis("replaying", f"{text}: {_first_line(failed[-1].reason)}")


def _tell_pause(view: ComponentView) -> Diagnosis | None:
    if not view.inactive:
        return None
    if view.current is not None:
        return Diagnosis("paused", f"pausing: txid {view.current.txid} runs to its end")
    return Diagnosis("paused", f"paused after txid {view.txid}, since {_moment(view.since, view.now)}")


def _tell_backlog(view: ComponentView) -> Diagnosis | None:
    waiting, recent = sum(view.backlog.values()), view.within(view.now - WINDOW, view.now)
    taken = sum(sum(batch.tuples.values()) for batch in recent)
    if not waiting or taken * PATIENCE > waiting * _measure_span(view, recent):
        return None
    since = _tell_backlog_begin(view, taken * PATIENCE / _measure_span(view, recent))
    text = f"behind: {count(waiting)} records since {since}, "
    if not taken:
        return Diagnosis("behind", f"{text}none taken in the last minute; {_name(view.phase)}")
    last = recent[-1]
    first = next((batch for batch in recent if batch.backlog.keys() >= view.backlog.keys()), last)  # not all tell it
    apart = (last.ended or 0.0) - (first.ended or 0.0)
    fewer = (sum(first.backlog.values()) - waiting) / apart if apart > 0 else taken / _measure_span(view, recent)
    if fewer > 0:
        text += f"at this rate in {duration(waiting / fewer)}"
    else:
        text += f"{count(-fewer)} more each second" if fewer < 0 else "not getting fewer"
    holder, share = _find_holder(_measure(view, recent))
    held = _name(holder) if holder == WAITING else f"held by {_name(holder)}"
    return Diagnosis("behind", f"{text}; {held}, {share:.0%} of the time")


def _tell_idle(view: ComponentView) -> Diagnosis | None:
    if view.current is not None and view.now - view.current.began > PATIENCE:
        return None
    full = next((batch for batch in reversed(view.committed) if any(batch.tuples.values())), None)
    if full is not None and view.now - (full.ended or 0.0) <= PATIENCE:
        return None
    last = full or next(iter(view.batches), None)
    since = view.since if last is None else last.ended or last.began
    spouts = "1 spout" if len(view.spouts) == 1 else f"{len(view.spouts)} spouts"
    return Diagnosis("idle", f"idle: no records in {spouts} since {_moment(since, view.now)}")


def _tell_holder(view: ComponentView) -> Diagnosis:
    recent = view.within(view.now - WINDOW, view.now)
    shares = _measure(view, recent)
    rate = sum(sum(batch.tuples.values()) for batch in recent) / _measure_span(view, recent)
    holder, share = _find_holder(shares)
    if holder == WAITING:
        text = f"keeping up: waits for records {share:.0%} of the time, {count(rate)} records a second"
        return Diagnosis("steady", text)
    text = f"held by {_name(holder)}, {share:.0%} of the time, since {_moment(_find_begin(view, holder), view.now)}"
    return Diagnosis("held", f"{text}{_describe_trend(recent, holder)}")


# -- figures ----------------------------------------------------------------------------------------------------------


def _list_phases(batch: BatchRecord) -> Iterator[tuple[Phase, float]]:
    yield WAITING, batch.waited
    for attempt in batch.attempts:
        yield from attempt.phases.items()


def add_up(batches: Iterable[BatchRecord]) -> dict[Phase, float]:
    """Return the seconds of batches by phase."""
    spent: dict[Phase, float] = defaultdict(float)
    for phase, seconds in (each for batch in batches for each in _list_phases(batch)):
        spent[phase] += seconds
    return spent


def _measure(view: ComponentView, batches: Sequence[BatchRecord]) -> dict[Phase, float]:
    """Return the seconds by phase in these batches, and in what goes on now; of the time before them, the last
    minute."""
    measured = [*batches, *([view.current] if view.current is not None else [])]
    spent = add_up(measured)
    if measured:
        first = measured[0]
        spent[WAITING] -= min(max(0.0, view.now - WINDOW - first.began + first.waited), first.waited)
    spent[view.phase] += max(0.0, view.now - view.since)
    return spent


def _find_holder(spent: Mapping[Phase, float]) -> tuple[Phase, float]:
    """Return what took most of the time, and its share."""
    holder = max(spent, key=lambda phase: spent[phase])
    return holder, spent[holder] / max(sum(spent.values()), 1e-9)


def _find_begin(view: ComponentView, holder: Phase) -> float:
    """Return since when it has taken most of the time, minute by minute."""
    until, since = view.now, view.since
    while batches := view.within(until - WINDOW, until):
        if until != view.now and _find_holder(add_up(batches))[0] != holder:
            break
        since, until = batches[0].began, until - WINDOW
    return since


def _tell_backlog_begin(view: ComponentView, most: float) -> str:
    """Return since when more than ``most`` records wait, as far as batches are kept."""
    behind: list[BatchRecord] = []
    for batch in reversed(view.committed):
        if sum(batch.backlog.values()) <= most:
            break
        behind.append(batch)
    moment = _moment(behind[-1].ended or 0.0 if behind else view.now, view.now)
    return f"before {moment}" if len(behind) >= KEPT - 1 else moment


def _describe_trend(batches: Sequence[BatchRecord], holder: Phase) -> str:
    """Return whether it takes longer in each batch than before, in words."""
    seconds = [sum(spent for phase, spent in _list_phases(batch) if phase == holder) for batch in batches]
    half = len(seconds) // 2
    if half < 3:
        return ""
    before, after = sum(seconds[:half]) / half, sum(seconds[-half:]) / half
    return ", growing" if after > before * CHANGE else ", shrinking" if before > after * CHANGE else ""


def _measure_span(view: ComponentView, batches: Sequence[BatchRecord]) -> float:
    """Return the seconds over which these batches were committed, at most the window."""
    began = batches[0].began - batches[0].waited if batches else view.now
    return min(WINDOW, max(view.now - began, 0.001))


# -- words ------------------------------------------------------------------------------------------------------------


def _name(phase: Phase) -> str:
    name, of = phase
    return f"{_WORDS[name]} into {of}" if of else _WORDS[name]


def _first_line(text: str, most: int = 200) -> str:
    line = next(iter(text.strip().splitlines()), "no reason is known")
    return line if len(line) <= most else f"{line[: most - 3]}..."


def _moment(at: float, now: float) -> str:
    """Return a time of day on the driver's clock; with seconds if it is recent, with the date if it is old."""
    form = "%H:%M:%S" if now - at < 600 else "%H:%M" if now - at < 43_200 else "%Y-%m-%d %H:%M"
    return time.strftime(form, time.localtime(at))


def duration(seconds: float) -> str:
    """Return a duration in words."""
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= length * 1.5:
            return f"{seconds / length:,.0f} {unit}s"
    return f"{max(seconds, 1):.0f} second{'' if round(max(seconds, 1)) == 1 else 's'}"


def count(number: float) -> str:
    """Return a number, shortened from a million on."""
    for unit, size in (("G", 1e9), ("M", 1e6)):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
