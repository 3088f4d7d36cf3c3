"""Tells OpenTelemetry of each batch of a run, once the batch is over. The query has no span: it runs for months."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode

from ...engine.program import Program
from ...model.context import RunContext
from ...model.plan import Plan
from ...model.secrets import hide
from ...report.progress import Event, Progress, RunningTopology
from ..monitor.timeline import AttemptRecord, BatchRecord, watch

OVER = ("committed", "failed")


class Spans:
    """Makes a span of each batch, with that tracer provider that the process has. ``programs``: those to run in place
    of the given."""

    def __init__(self, plan: Plan, conf: Mapping[str, Any], programs: list[Program]) -> None:
        self._tracer = trace.get_tracer("trident_py")
        self._lines, self.programs = watch(programs, f"{RunContext.of(conf).run}/spans")

    def begin(self, running: RunningTopology) -> None:
        """Called before the run starts."""
        self._name = running.name
        for component, line in self._lines.items():
            line.progress = running.progress[component]
        running.addListener(self._listen)

    def _listen(self, event: Event, progress: Progress | None) -> None:
        if progress is None:
            return
        line = self._lines[progress.component]
        line.event(event._replace(reason=hide(event.reason)))
        if event.kind in OVER and line.batches and line.batches[-1].txid == event.txid:
            self._tell(line.component, line.batches[-1])

    def _tell(self, component: str, batch: BatchRecord) -> None:
        counts = {f"tuples.{name}": number for name, number in {**batch.tuples, **batch.rows}.items()}
        attempts = batch.attempts[-1].number - batch.attempts[0].number + 1  # not all of them are kept
        more = {"txid": batch.txid, "attempts": attempts, "waited": batch.waited, **counts}
        about = _name({"topology": self._name, "component": component, **more})
        last = batch.attempts[-1]
        span = self._tracer.start_span("batch", start_time=_nanos(batch.began), attributes=about)
        with trace.use_span(span):
            for attempt in batch.attempts:
                self._tell_attempt(span, attempt)
        if last.outcome != "committed":
            span.set_status(Status(StatusCode.ERROR, last.reason))
        span.end(_nanos(last.ended or last.began))

    def _tell_attempt(self, span: Span, attempt: AttemptRecord) -> None:
        """Tell its phases, one after the other: a phase that was entered again is one span, as long as all of it."""
        at = attempt.began
        for (phase, state), seconds in attempt.phases.items():
            about = _name({"attempt": attempt.number, **({"state": state} if state else {})})
            child = self._tracer.start_span(phase, start_time=_nanos(at), attributes=about)
            at += seconds
            child.end(_nanos(at))
        if attempt.outcome != "committed":
            why = _name({"attempt": attempt.number, "reason": attempt.reason})
            span.add_event(attempt.outcome, why, _nanos(attempt.ended or at))


def _name(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes under names of ours."""
    return {f"trident_py.{name}": value for name, value in attributes.items()}


def _nanos(seconds: float) -> int:
    return int(seconds * 1e9)
