"""Asks the log of a component and the stores of its states what they remember. Changes neither."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from threading import Event
from typing import Any

from ...checkpoints.batch_log import BatchLog, is_running
from ...checkpoints.metadata_store import LOG
from ...engine.startup import Startup, participants_of
from ...engine.store_position import CheckpointState
from ...engine.two_phase import DECIDED
from ...errors import FailedException, LineageError, TridentError
from ...model.context import with_context
from ...model.retry import Patience
from ...state.participants import Remembered
from .components import Component
from .evidence import ComponentEvidence, NextStart, StateEvidence
from .next_start import MOVES, REFUSED, examine, predict

TRIES = 20


def look(component: Component) -> ComponentEvidence:
    """Ask log and stores. A driver may commit meanwhile: then they are asked again, since the answers belong to two
    moments. So are they after a refusal, until it comes twice."""
    last: ComponentEvidence | None = None
    refusals: set[str] = set()
    log = component.read()
    for _ in range(TRIES):
        before = log.store.get(LOG, 0)
        found = _look(component, log)
        refusals.add(found.next.sentence if found.next.kind == REFUSED else "")
        log = component.read()
        if log.store.get(LOG, 0) == before and (found.next.kind != REFUSED or found == last):
            return found
        last = found
    lasting = found.next.kind == REFUSED and refusals == {found.next.sentence}
    return found if lasting else replace(found, next=MOVES)


def _look(component: Component, log: BatchLog) -> ComponentEvidence:
    driver = log.owner
    named = component.topology, component.name, log.where
    try:
        standing = log.read_state(component.program)
    except LineageError as error:
        return ComponentEvidence(*named, NextStart(REFUSED, f"is refused: {error}"), driver=driver)
    txid = standing.committed + 1
    decision = log.store.get(DECIDED, txid)
    states, after = None, predict(standing, decision)
    if component.program is not None:
        opening = _make_startup(component, log, standing)
        states = tuple(_ask(opening, name, decision) for name in component.program.states())
        after = examine(opening, states, after)
    lineage, base = ("", 0) if standing.record is None else (standing.lineage, standing.record["base"])
    return ComponentEvidence(
        *named, after, standing.committed, base, txid if standing.begun else None, (decision or {}).get("attempt"),
        driver, is_running(driver), lineage, states, {each.txid: each.ended for each in reversed(log.list_kept())},
    )  # fmt: skip


def _make_startup(component: Component, log: BatchLog, standing: CheckpointState) -> Startup:
    assert component.program is not None
    program = replace(component.program, conf=with_context(component.program.conf, reads_only=True))
    patience = Patience(0, Event(), lambda line: None)
    return Startup(program, participants_of(program), patience, log.store, standing)


def _ask(opening: Startup, name: str, decision: Mapping[str, Any] | None) -> StateEvidence:
    try:
        told = opening.ask(name) if name in opening.participants else None
    except TridentError as error:
        return StateEvidence(name, error=str(error), away=isinstance(error, FailedException))
    if told is None:
        return StateEvidence(name)
    return evidence_of(name, told, name in (decision or {}).get("receipts", {}))


def evidence_of(name: str, told: Remembered, decided: bool) -> StateEvidence:
    """Return what a store has told of a state."""
    part = told.written if told.written > told.least else None
    begun = told.last if told.last > told.written else None
    attempt = None if begun is None or told.attempt < 0 else told.attempt
    return StateEvidence(
        name, told.where, told.least, part, begun, attempt, decided, told.generation, told.lineage, told.owner
    )
