"""The operations of a run as JSON: what each is, how much goes through it, how long it takes, how it failed last."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...model.plan import Node, ProcessorNode, SpoutNode, describe
from ...report.explain.sketch import StageSketch, Step
from .diagnosis import WINDOW, ComponentView, add_up
from .run_record import RunEvent, RunRecord
from .timeline import BatchRecord, Phase

SHOWN = 3  # failures of an operation
SHARED = {"emit": "emit, with all spouts", "execute": "execute, with all functions"}


class RecentFigures(NamedTuple):
    """Of the last minute of a component: its tuples a second by spout and state, and its seconds by phase in a batch.
    """

    rates: Mapping[str, float]
    seconds: Mapping[Phase, float]

    @classmethod
    def of(cls, view: ComponentView, began: float) -> RecentFigures:
        """Compute those of a view; ``began``: when the run did."""
        batches = view.within(view.now - WINDOW, view.now)
        totals: Counter[str] = Counter()
        for batch in batches:
            totals.update(batch.tuples)
            totals.update(batch.rows)
        span = min(WINDOW, max(view.now - began, 1.0))
        rates = {name: round(number / span, 3) for name, number in totals.items()}
        return cls(rates, {phase: spent / len(batches) for phase, spent in add_up(batches).items()})


Figures = Mapping[str, RecentFigures]


def oldest_of(batches: Sequence[BatchRecord], spout: str, now: float) -> float | None:
    """Return for how many seconds at least the spout knows the oldest record that waits; None if it tells no backlog.

    A record that waits is one of the last in each backlog since the first that had it.
    """
    committed = [batch for batch in batches if batch.ended is not None]
    if not committed or spout not in committed[-1].backlog:
        return None if not any(spout in batch.backlog for batch in committed) else 0.0
    since, after = now, 0
    for batch in reversed(committed):
        if batch.backlog.get(spout, 0) <= after:
            break
        since, after = batch.began, after + batch.tuples.get(spout, 0)
    return now - since


def operations(record: RunRecord, figures: Figures) -> Iterator[dict[str, Any]]:
    """Yield what is known of each operation of a batch; those of a DRPC function are not counted."""
    steps = [(stage, step) for stage in record.sketch.stages for step in stage.steps]
    for stage, step in steps:
        if step.id in record.nodes:
            component, node = record.nodes[step.id]
            yield _operation(record, figures[component], node, stage, step)


def arrows(record: RunRecord, figures: Figures) -> list[dict[str, Any]]:
    """Return the arrows of the picture, by its names, with their tuples a second where these are counted: out of a
    spout, and into a state."""
    rates, drawn = {name: rate for each in figures.values() for name, rate in each.rates.items()}, record.sketch
    ways = [(arrow.source, arrow.target) for arrow in drawn.arrows]
    found = [
        (f"n{source}", f"n{target}", rates.get(_find_name(record, target), rates.get(_find_name(record, source))))
        for source, target in ways
    ]
    for number, state in enumerate(drawn.states):
        found += [(f"n{node}", f"state{number}", rates.get(state.name)) for node in state.updated_by]
    return [{"from": source, "to": target, "rate": rate} for source, target, rate in found]


def _find_name(record: RunRecord, node: int) -> str:
    return name_of(record.nodes[node][1]) if node in record.nodes else ""


def name_of(node: Node) -> str:
    """Return under which name the tuples of an operation are counted: a spout's, or the state's that it updates."""
    if isinstance(node, SpoutNode):
        return node.spout_id
    return node.state.name if isinstance(node, ProcessorNode) and node.state is not None else ""


def _operation(
    record: RunRecord, figures: RecentFigures, node: Node, stage: StageSketch, step: Step
) -> dict[str, Any]:
    component = record.nodes[step.id][0]
    counts = dict(record.timelines[component].progress.partitions.get(name_of(node), {}))
    mean = sum(counts.values()) / max(stage.partitions, 1)
    return {
        "operationId": step.id, "name": step.shown, "component": component, "stage": stage.number,
        "tasks": stage.partitions, "fields": step.columns, "rate": figures.rates.get(name_of(node)),
        "seconds": _seconds(record, figures, node), "partitions": {str(at): counts[at] for at in sorted(counts)},
        "skew": round(max(counts.values()) / mean, 3) if mean else None, "errors": _errors(record, node),
    }  # fmt: skip


def _seconds(record: RunRecord, figures: RecentFigures, node: Node) -> dict[str, float]:
    """Return the seconds of the operation in a batch, by phase: with ``topology.profile`` its own, else those that it
    shares."""
    component = record.nodes[node.id][0]
    seen, spent = list(record.timelines[component].progress.profiled), defaultdict[str, float](float)
    for taken in [taken for batch in seen for taken in (batch.taken, *(task.taken for task in batch.tasks))]:
        for (phase, of), seconds in taken.seconds.items():
            spent[phase] += seconds if of in {describe(node), name_of(node)} - {""} else 0.0
    if any(spent.values()):
        return {phase: round(seconds / len(seen), 6) for phase, seconds in spent.items() if seconds}
    if ("commit", name_of(node)) in figures.seconds:
        return {"commit": round(figures.seconds["commit", name_of(node)], 6)}
    phase = "emit" if isinstance(node, SpoutNode) else "execute"
    return {SHARED[phase]: round(figures.seconds[phase, ""], 6)} if (phase, "") in figures.seconds else {}


def _errors(record: RunRecord, node: Node) -> list[dict[str, Any]]:
    """Return the last failures of the operation, with the user's own line."""
    if isinstance(node, ProcessorNode):
        words = [f"{node.spec.operation} failed in", f"in {node.spec.operation}, txid"]
    else:
        words = [f"spout {name_of(node)!r}", f"{describe(node)} failed in"] if name_of(node) else []
    found = [each for each in list(record.failures) if any(word in each.event.reason for word in words)]
    return [_error(each) for each in found[-SHOWN:]]


def _error(each: RunEvent) -> dict[str, Any]:
    event = each.event
    return {"number": each.number, "event": event.kind, "txid": event.txid, "attempt": event.attempt,
            "reason": event.reason}  # fmt: skip
