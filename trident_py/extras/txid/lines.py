"""The evidence as lines of text."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence

from ...checkpoints.batch_log import BatchLog, PastBatch, describe_driver
from ...checkpoints.metadata_store import LOG
from ...engine.startup import AGREEMENT
from ...engine.two_phase import DECIDED
from ...report.guarantees.table import align
from .components import Component
from .evidence import ComponentEvidence, StateEvidence
from .next_start import BEGINS, CONTINUES, PUBLISHES, REPEATS
from .rewind import examine

COLUMNS = ("state", "complete", "in part", "begun", "generation", "owner", "where")


def lines(found: ComponentEvidence) -> list[str]:
    """Return what `trident txid ls` prints of a component."""
    lineage = f"; lineage {found.lineage}" if found.lineage else ""
    told = [f"{batches(found)}{lineage}", *describe_kept(found), f"driver: {driver(found)}", *states(found),
            describe_next_start(found)]  # fmt: skip
    return [f"{found.topology}/{found.component}: {found.place}", *(f"  {line}" for line in told)]


def line(found: ComponentEvidence) -> str:
    """Return the component in one line."""
    of_states = [f"{state.state} {state.complete}" for state in found.states or () if state.complete is not None]
    told = [batches(found), *of_states, describe_next_start(found)]
    return f"{found.topology}/{found.component}: {'; '.join(told)}"


def batches(found: ComponentEvidence) -> str:
    begun = "" if found.begun is None else f"; begun: txid {found.begun}"
    decided = "" if found.decided is None else f", decided by its attempt {found.decided}"
    return f"committed: {f'txid {found.committed}' if found.committed else 'none'}{begun}{decided}"


def ways_back(component: Component, kept: Sequence[PastBatch]) -> list[str]:
    """Return what `trident txid rewind --dry-run` prints: for each batch whether spouts and states can go back to it,
    and why one cannot."""
    asked = examine(component, [batch.txid for batch in kept])
    names = list(next(iter(asked.values())))
    table = [("txid", "over at", *names)]
    for batch in kept:
        answers = ("yes" if asked[batch.txid][name] is None else "no" for name in names)
        table.append((str(batch.txid), clock(batch.ended), *answers))
    reasons = {(name, why): batch for batch in reversed(kept) for name, why in asked[batch.txid].items() if why}
    told = (f"{name} cannot go back to txid {batch.txid}: {why}" for (name, why), batch in sorted(reasons.items()))
    return [f"{component.shown} is at txid {kept[0].txid}; can it go back?", *align(table), *told]


def clock(seconds: int | None) -> str:
    """Return a time as people read it."""
    if seconds is None:
        return "-"
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def describe_kept(found: ComponentEvidence) -> Iterator[str]:
    """Yield when the batches were over to which it may go back."""
    known = [(txid, ended) for txid, ended in found.kept.items() if ended is not None]
    if len(known) > 1:
        first, last = (f"txid {txid} (over at {clock(ended)})" for txid, ended in (known[0], known[-1]))
        yield f"kept: {first} to {last}"


def driver(found: ComponentEvidence) -> str:
    """Return who owns the log."""
    return describe_driver(found.driver, found.running) if found.driver else "nobody: none has taken the checkpoint"


def states(found: ComponentEvidence) -> Iterator[str]:
    if found.states is None:
        yield "states: none is known from the folder alone; name the topology, and they are asked"
    else:
        yield from states_table(found.states)


def states_table(found: Sequence[StateEvidence]) -> Iterator[str]:
    """Yield the table of what the states have, and why a store does not tell."""
    if found:
        yield from align([COLUMNS, *map(row, found)])
        yield from (f"{state.state}: {state.error}" for state in found if state.error)


def row(state: StateEvidence) -> tuple[str, ...]:
    begun = state.begun if state.attempt is None else f"{state.begun} (attempt {state.attempt})"
    numbers = (state.complete, state.part, begun, state.generation)
    shown = ("-" if each is None else str(each) for each in numbers)
    return (state.state, *shown, state.owner or "-", state.place or "-")


def describe_next_start(found: ComponentEvidence) -> str:
    """Return the sentence about the next start."""
    unasked = ", if its states agree" if found.states is None else ""
    takes_over = found.running and found.next.kind in (BEGINS, CONTINUES, REPEATS, PUBLISHES)
    first = "shuts out the driver that is running, and then " if takes_over else ""
    return f"the next start {first}{found.next.sentence}{unasked}"


def about(found: ComponentEvidence, log: BatchLog, txid: int) -> list[str]:
    """Return what `trident txid show` prints of a component."""
    told = [*records(log, txid), *(f"{state.state} {state.of(txid)}" for state in found.states or ())]
    if found.states is None:
        told += states(found)
    ended = found.kept.get(txid)
    over = f", since {clock(ended)}" if ended is not None else ""
    return [f"{found.topology}/{found.component}: txid {txid} {describe_batch(found, txid)}{over}",
            *(f"  {each}" for each in [*told, describe_next_start(found)])]  # fmt: skip


def describe_batch(found: ComponentEvidence, txid: int) -> str:
    """Return what the log says of a batch."""
    if txid <= found.committed:
        return "is over" if txid > found.base else "is from before this checkpoint"
    if txid != found.begun:
        return "has not begun"
    return "has begun and is not over" if found.decided is None else f"is decided by attempt {found.decided}"


def records(log: BatchLog, txid: int) -> Iterator[str]:
    """Return what the log keeps of a batch: the last one that is over and the one that has begun."""
    both = [batch for batch in (log.find_over(txid), log.find_begun(txid)) if batch is not None]
    for batch in both:
        for spout, value in (batch.metadata or {}).items():
            yield f"spout {spout}: {'no metadata' if value is None else json.dumps(value)}"
        if batch.micro_batch is not None:
            yield f"micro-batch of Spark: {json.dumps(batch.micro_batch)}"
    if not both:
        yield "the log keeps the metadata of the spouts for the last batches that are over, and for one that has begun"
    for path in log.store.paths(""):
        value = None if path in (LOG, AGREEMENT, DECIDED) else log.store.get(path, txid)
        if value is not None:
            yield f"{path}: {json.dumps(value)}"
