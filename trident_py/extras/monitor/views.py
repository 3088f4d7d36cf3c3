"""What is known of a run as JSON: with Storm's names where its REST interface has the thing, and ours beside them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ...engine.program import Program
from ...model.context import without_context
from ...model.secrets import HIDDEN, hide, is_secret, redact_url
from ..event_lines import lines
from .diagnosis import ComponentView, diagnose, duration, find_worst
from .operations import RecentFigures, arrows, oldest_of, operations
from .run_record import EVENTS, RunEvent, RunRecord
from .timeline import KEPT, AttemptRecord, BatchRecord

SHOWN_BATCHES, SHOWN_EVENTS = 50, 100  # on the page; the interface gives all that are kept
ALL_TIME = ":all-time"


def summary(record: RunRecord) -> dict[str, Any]:
    """Return Storm's list of topologies: this one."""
    return {"topologies": [_head(record)]}


def topology(record: RunRecord) -> dict[str, Any]:
    """Return the topology as it stands, without its past."""
    views = {component: record.view(component) for component in record.timelines}
    figures = {component: RecentFigures.of(view, record.began) for component, view in views.items()}
    diagnoses = {component: diagnose(view) for component, view in views.items()}
    return {
        **_head(record),
        "diagnosis": find_worst(diagnoses)._asdict(),
        "topologyStats": [_stats(record)],
        "components": [{"component": name, **_component(record, name), **found._asdict()}
                       for name, found in diagnoses.items()],
        "spouts": [spout for program in record.programs
                   for spout in _spouts(record, program, views[program.component], figures[program.component])],
        "bolts": [bolt for program in record.programs for bolt in _bolts(program)],
        "states": [state for program in record.programs for state in _states(record, program)],
        "operations": list(operations(record, figures)),
        "arrows": arrows(record, figures),
        "drpc": list(_functions(record)),
        "configuration": configuration(without_context(record.conf)),
    }  # fmt: skip


def live(record: RunRecord) -> dict[str, Any]:
    """Return what the page shows: the topology, the last batches and events."""
    past = {"batches": batches(record, limit=SHOWN_BATCHES), "events": events(record, limit=SHOWN_EVENTS)}
    return {**topology(record), "over": record.over, **past}


def _head(record: RunRecord) -> dict[str, Any]:
    up = record.now() - record.began
    tasks = sum(stage.partitions for program in record.programs for level in program.lowered.levels for stage in level)
    head = {"id": record.id, "name": record.name, "status": record.status, "uptime": duration(up)}
    driver = {"host": socket.gethostname(), "pid": os.getpid()}
    return {**head, "uptimeSeconds": int(up), "tasksTotal": tasks, "time": _time(record.now()), "driver": driver}


def _stats(record: RunRecord) -> dict[str, Any]:
    lines = record.timelines.values()
    emitted = sum(sum(dict(line.progress.emitted).values()) for line in lines)
    committed = sum(line.outcomes["committed"] for line in lines)
    seconds = sum(buckets.sum for line in lines for buckets in list(line.buckets.values()))
    return {
        "windowPretty": "All time", "window": ALL_TIME, "emitted": emitted, "acked": emitted,
        "failed": sum(line.outcomes["replay"] for line in lines), "batches": committed,
        "completeLatency": f"{1000 * seconds / committed:.3f}" if committed else "0",
    }  # fmt: skip


def _component(record: RunRecord, component: str) -> dict[str, Any]:
    line = record.timelines[component]
    with line.lock:
        return {
            "txid": line.progress.txid, "attempts": line.attempts, "outcomes": dict(line.outcomes),
            "deadLetters": line.progress.dead_letters, "lastCommit": _time(line.committed),
            "phase": list(line.phase), "phaseSince": _time(line.since),
            "runs": None if line.current is None else line.current.txid, "metrics": dict(line.progress.metrics),
        }  # fmt: skip


def _spouts(
    record: RunRecord, program: Program, view: ComponentView, figures: RecentFigures
) -> Iterable[dict[str, Any]]:
    """Return the spouts of a component. A backlog is there for spouts that can measure it."""
    progress = record.timelines[program.component].progress
    for spout in program.spouts:
        oldest = oldest_of(view.batches, spout.id, view.now)
        waiting = {} if spout.id not in progress.backlog else {
            "backlog": sum(progress.backlog[spout.id].values()), "backlogByPartition": progress.backlog[spout.id],
            "oldestSeconds": None if oldest is None else round(oldest, 3),
        }  # fmt: skip
        yield {
            "spoutId": spout.id, "component": program.component, "type": type(spout.spout).__name__,
            "tasks": spout.partitions, "emitted": progress.emitted.get(spout.id, 0),
            "rate": figures.rates.get(spout.id, 0), **waiting,
        }  # fmt: skip


def _bolts(program: Program) -> Iterable[dict[str, Any]]:
    """Return the stages behind the spouts, which are Storm's bolts. Their tuples are not counted one by one."""
    spouts = {node.id for node in program.lowered.plan.nodes if not node.parents}
    stages = [stage for level in program.lowered.levels for stage in level if not spouts & set(stage.nodes)]
    for number, stage in enumerate(stages):
        steps = [f"#{node}" for node in stage.nodes]
        yield {"boltId": f"{program.component}-b-{number}", "tasks": stage.partitions, "steps": steps}


def _states(record: RunRecord, program: Program) -> Iterable[dict[str, Any]]:
    progress = record.timelines[program.component].progress
    for _, state in program.lowered.plan.updates():
        held = record.guarantees.get(state.name)
        promise = {} if held is None else {"guarantee": held.guarantee, "reason": held.reason}
        yield {
            "state": state.name, "component": program.component, "kind": state.kind, **promise,
            "rows": progress.persisted.get(state.name, 0), "newValues": progress.new_values.get(state.name, 0),
            "lastTxid": progress.txid, "generation": progress.generations.get(state.name),
            "owner": f"{program.conf['topology.name']}/{state.name}" if state.name in progress.generations else None,
            "size": record.sizes.known.get(state.name),
        }  # fmt: skip


def _functions(record: RunRecord) -> Iterable[dict[str, Any]]:
    """Return the DRPC functions of the run."""
    requests = record.running.requests
    for function, (asked, over) in ({} if requests is None else requests.counts).items():
        yield {"function": function, "asked": asked, "answered": over, "waiting": asked - over}


def configuration(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run without their secrets."""
    return {str(key): HIDDEN if is_secret(str(key)) else _hide(value) for key, value in sorted(conf.items())}


def _hide(value: Any) -> Any:
    if isinstance(value, Mapping):
        return configuration({str(key): each for key, each in value.items()})
    if isinstance(value, list | tuple):
        return [_hide(each) for each in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return hide(redact_url(value)) if isinstance(value, str) else hide(repr(value))


# -- the past ---------------------------------------------------------------------------------------------------------


def batches(
    record: RunRecord, component: str | None = None, txid: int | None = None, limit: int = KEPT
) -> list[dict[str, Any]]:
    """Return the last batches, oldest first: of one component, or one batch."""
    found = []
    for name, line in record.timelines.items():
        with line.lock:
            kept = [each for each in line.batches if component in (None, name) and txid in (None, each.txid)]
            found += [(batch.began, _batch(name, batch)) for batch in kept[-limit:]]
    return [each for _, each in sorted(found, key=lambda pair: pair[0])][-limit:]


def past(record: RunRecord, component: str | None, txid: int) -> dict[str, Any]:
    """Return a batch that is not kept any more, from the file of events: its attempts, without their phases."""
    found = lines.past(record.name, component, txid)
    if found:
        batches = [_past(name, txid, [event for event in found if event.get("component") == name])
                   for name in record.timelines if component in (None, name)]  # fmt: skip
        return {"batches": [each for each in batches if each["attempts"]], "note": "from the file of events"}
    if found is None and any(line.batches and txid < line.batches[0].txid for line in record.timelines.values()):
        note = f"txid {txid} is older than the {KEPT:,} batches kept here; trident run --events FILE keeps more"
    else:
        note = f"there is no batch {txid} here"
    return {"batches": [], "note": note}


def _past(component: str, txid: int, events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    over = [event for event in events if event["event"] in ("committed", "replay", "moved", "failed")]
    last: Mapping[str, Any] = over[-1] if over and over[-1]["event"] == "committed" else {}
    attempts = [
        {"attempt": event["attempt"], "began": None, "ended": event["time"], "outcome": event["event"],
         "where": "driver" if event.get("reason") == "in the driver" else "", "phases": [],
         "reason": hide(event.get("reason", "")) if event["event"] != "committed" else ""}
        for event in over
    ]  # fmt: skip
    return {
        "component": component, "txid": txid, "began": None, "ended": last.get("time"), "waited": None,
        "seconds": last.get("seconds", {}), "emitted": {}, "persisted": {}, "backlog": {}, "attempts": attempts,
    }  # fmt: skip


def _batch(component: str, batch: BatchRecord) -> dict[str, Any]:
    return {
        "component": component, "txid": batch.txid, "began": _time(batch.began), "ended": _time(batch.ended),
        "waited": round(batch.waited, 6), "seconds": dict(batch.seconds), "emitted": batch.tuples,
        "persisted": batch.rows, "backlog": batch.backlog, "attempts": [_attempt(each) for each in batch.attempts],
    }  # fmt: skip


def _attempt(attempt: AttemptRecord) -> dict[str, Any]:
    phases = [{"phase": name, "state": of, "seconds": round(spent, 6)} for (name, of), spent in attempt.phases.items()]
    return {
        "attempt": attempt.number, "began": _time(attempt.began), "ended": _time(attempt.ended),
        "outcome": attempt.outcome or "running", "where": attempt.where, "reason": attempt.reason,
        "phases": phases,
    }  # fmt: skip


def events(
    record: RunRecord,
    kind: str | None = None,
    component: str | None = None,
    txid: int | None = None,
    limit: int = EVENTS,
) -> list[dict[str, Any]]:
    """Return the last events, oldest first, filtered."""
    found = [each for each in list(record.events) if kind in (None, each.event.kind)]
    found = [each for each in found if component in (None, each.component) and txid in (None, each.event.txid)]
    return [_event(each) for each in found[-limit:]]


def _event(each: RunEvent) -> dict[str, Any]:
    event = each.event
    return {
        "number": each.number, "time": _time(each.time), "event": event.kind, "component": each.component,
        "txid": event.txid, "attempt": event.attempt, "reason": event.reason,
    }  # fmt: skip


def _time(seconds: float | None) -> str | None:
    """Return a time in ISO 8601, on the driver's clock."""
    return None if seconds is None else datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="milliseconds")
