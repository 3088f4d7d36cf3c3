"""The events of a run, as `trident run --json` prints them, and what they tell of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...errors import DefinitionError
from ...model.json_text import parse_json

PERCENTILES = (50, 95, 99, 100)
FAILURES = ("replay", "task-retry", "failed")


class CommittedBatch(NamedTuple):
    """A committed batch. ``tuples``, ``rows``: what it added, by spout and by state. ``seconds``: by phase."""

    at: float
    component: str
    txid: int
    attempts: int
    tuples: Mapping[str, int]
    rows: Mapping[str, int]
    seconds: Mapping[str, float]
    backlog: int | None

    @property
    def whole(self) -> float:
        return sum(self.seconds.values())


class FailedAttempt(NamedTuple):
    """An attempt, or a run, that failed."""

    at: float
    kind: str
    txid: int | None
    attempt: int | None
    reason: str


@dataclass
class RunEvents:
    """A run. ``guarantees``: the records of the states, as they were told before the start."""

    name: str
    guarantees: list[Mapping[str, Any]] = field(default_factory=list)
    batches: list[CommittedBatch] = field(default_factory=list)
    failures: list[FailedAttempt] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    _counts: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict, repr=False)
    _begun: bool = field(default=False, repr=False)

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an event. Raises KeyError, ValueError or TypeError for what is none."""
        at = datetime.fromisoformat(event["time"]).timestamp()
        self.times.append(at)
        kind = event["event"]
        if kind == "guarantee":
            self.guarantees = [*(each for each in self.guarantees if each["state"] != event["state"]), event]
        elif kind == "committed" and "emitted" in event:  # the first ones may be told without their counts
            self.batches.append(self._read_commit(at, event))
        elif kind in FAILURES:
            self.failures.append(FailedAttempt(at, kind, event["txid"], event["attempt"], event.get("reason", "")))
        else:
            self.others[kind] += 1
        if kind == "started":  # counts are those of one start; a file may have several
            if (component := event.get("component")) is None:  # an early one is told without it
                self._counts, self._begun = {}, True
            else:
                self._counts[component] = {}

    def _read_commit(self, at: float, event: Mapping[str, Any]) -> CommittedBatch:
        component, backlog = event["component"], event.get("backlog")
        now = {of: dict(event[of]) for of in ("emitted", "persisted")}
        before = self._counts.get(component, {} if self._begun else now)  # a rotated file may begin within a run
        self._counts[component] = now
        tuples, rows = ({key: count - before.get(of, {}).get(key, 0) for key, count in now[of].items()} for of in now)
        waiting = None if backlog is None else sum(sum(partitions.values()) for partitions in backlog.values())
        return CommittedBatch(
            at, component, event["txid"], event["attempt"] + 1, tuples, rows, event["seconds"], waiting
        )

    @property
    def seconds(self) -> float:
        """The seconds from the first event to the last one."""
        return max(self.times) - min(self.times) if self.times else 0.0

    def summarize(self) -> dict[str, str]:
        """Return the figures of the run, by name, as they are shown."""
        tuples = sum(sum(batch.tuples.values()) for batch in self.batches)
        txids = [batch.txid for batch in self.batches]
        return {
            "from": _moment(min(self.times)) if self.times else "",
            "to": _moment(max(self.times)) if self.times else "",
            "batches": f"{len(txids):,}" + (f" (txid {min(txids)} to {max(txids)})" if txids else ""),
            "tuples": f"{tuples:,}",
            "tuples/s": f"{tuples / self.seconds:,.0f}" if self.seconds else "",
            "batches in more than one attempt": f"{sum(batch.attempts > 1 for batch in self.batches):,}",
            "failed attempts": f"{sum(failure.kind == 'replay' for failure in self.failures):,}",
        }

    def measure_phases(self) -> dict[str, list[str]]:
        """Return milliseconds per batch at each of PERCENTILES, by phase, and of whole batches."""
        names = dict.fromkeys(phase for batch in self.batches for phase in batch.seconds)
        rows = {phase: [batch.seconds.get(phase, 0.0) for batch in self.batches] for phase in names}
        rows["whole batch"] = [batch.whole for batch in self.batches]
        return {phase: [f"{np.percentile(of, p) * 1000:,.1f}" for p in PERCENTILES] for phase, of in rows.items() if of}

    def count(self, what: str) -> Counter[str]:
        """Return the sum of "tuples" by spout, or of "rows" by state."""
        total: Counter[str] = Counter()
        for batch in self.batches:
            total.update(batch.tuples if what == "tuples" else batch.rows)
        return total

    def list_causes(self) -> list[tuple[str, str, int, FailedAttempt]]:
        """Return kind, reason, how often, and the last one, the most frequent first."""
        last = {(failure.kind, failure.reason): failure for failure in self.failures}
        often = Counter((failure.kind, failure.reason) for failure in self.failures)
        return [(kind, reason, number, last[kind, reason]) for (kind, reason), number in often.most_common()]


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().isoformat(sep=" ", timespec="seconds")


def read(path: Path) -> RunEvents:
    """Return the run of a file. Raises DefinitionError, naming the line, for one that is no event."""
    run = RunEvents(path.stem)
    try:
        with path.open(encoding="utf-8") as lines:
            for number, event in _events(path, lines):
                try:
                    run.add(event)
                except (KeyError, ValueError, TypeError, AttributeError) as error:
                    raise DefinitionError(_no_event(path, number, f"{type(error).__name__}: {error}")) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{path} cannot be read: {error}") from None
    if not run.times:
        raise DefinitionError(f"{path} has no event: give the output of trident run --json")
    return run


def _events(path: Path, lines: Iterable[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the events with their line numbers. An event may be cut off, and another start follow: its writer was
    killed."""
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                yield number, parse_json(line)
        except ValueError as error:
            if not line.startswith("{"):
                raise DefinitionError(_no_event(path, number, str(error))) from None


def _no_event(path: Path, number: int, why: str) -> str:
    return f"{path}:{number} is no event of trident run --json ({why})"
