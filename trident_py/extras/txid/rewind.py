"""Takes the log and the states of a component back to an earlier txid.

It shuts every driver out, notes in the log where it goes, takes back each state in one step of its store, and then the
log. From the note on no run starts, and each step may be made again: a rewind that was killed is finished by the same
command.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any

from ...checkpoints.batch_log import BatchLog, PastBatch
from ...engine.program import Program
from ...engine.recovery import Agreement
from ...engine.startup import Startup, participants_of
from ...engine.store_position import ACCEPT, CheckpointState, Joined, Recovery, Rewinding, list_accepted
from ...errors import LineageError
from ...model.context import RunContext, with_context
from ...model.fault_points import steps_of_driver
from ...model.retry import Patience, start_wait
from ...spouts.interfaces import NON_TRANSACTIONAL, IBatchSpout, ICommitterTridentSpout
from ...spouts.sparkspout import SparkSpout
from ...state.participants import Remembered
from .components import Component
from .fence import shut_out

Reasons = Mapping[str, str | None]
"""Why a spout or a state cannot go back to a batch, by name; None if it can."""


def list_kept(component: Component) -> list[PastBatch]:
    """Return the batches of which the log has what a rewind needs, the last one first."""
    return component.read().list_kept()


def examine(component: Component, txids: Iterable[int]) -> dict[int, dict[str, str | None]]:
    """Ask the spouts and the states whether they can go back to each of these batches. Changes nothing."""
    assert component.program is not None
    program = replace(component.program, conf=with_context(component.program.conf, reads_only=True))
    opening = _make_startup(program, component.read())
    return {txid: _examine(opening, txid) for txid in txids}


def rewind(component: Component, txid: int) -> list[str]:
    """Go back to a batch; return the states that have gone. Raises LineageError, before anything is changed, if one of
    them cannot, and what a start raises."""
    log = component.read()
    begun = log.read_state(None).rewinding
    if begun is None:
        check(component, log, txid)
        shut_out(_accept_restored(component, log, txid), partial(_intend, component, txid))
    elif begun.to != txid:
        raise LineageError(f"{component.shown} is on its way back to txid {begun.to}: finish that first")
    return _finish(component, txid)


def _accept_restored(component: Component, log: BatchLog, txid: int) -> Component:
    """Return the component, with a start that takes stores which lack batches, none of them up to this one."""
    assert component.program is not None
    conf, opening = component.program.conf, _make_startup(component.program, log)
    restored, runs = list_accepted(conf), {each.txid: each.runs for each in log.list_kept()}
    standing, answers = opening.standing, {name: opening.ask(name) for name in opening.participants}
    told = {name: answer for name, answer in answers.items() if answer is not None}
    case = Recovery(conf, standing, standing.committed, told, ())
    for name, answer in told.items():
        if answer.lineage == standing.lineage and txid <= answer.least < standing.committed:
            _check_run(name, answer, runs)
            restored.append(case.token(name))
    return replace(component, program=replace(component.program, conf={**conf, ACCEPT: restored}))


def _check_run(name: str, told: Remembered, runs: Mapping[int, tuple[str, ...]]) -> None:
    """Raise LineageError if neither the store's last batch nor the next one, which may have begun, is of its run."""
    known = {*runs.get(told.least, ("",)), *runs.get(told.least + 1, ("",))}
    if told.run not in known and "" not in (told.run, *known):
        raise LineageError(
            f"state {name!r} in {told.where} has the batches up to {told.least}, but batch {told.least} of this log is "
            f"of another run than {told.run!r}, which wrote the store last: copies ran on apart. Nothing was changed"
        )


def _intend(component: Component, txid: int, log: BatchLog) -> None:
    """Called when all older drivers are shut out: what the states have stays as it is."""
    check(component, log, txid, "A driver has gone on meanwhile; it is shut out now, and the next start goes on")
    _step(component, "fenced", txid)
    assert component.program is not None
    log.intend(Rewinding(txid, tuple(component.program.states())))
    _step(component, "intended", txid)


def check(component: Component, log: BatchLog, txid: int, then: str = "Nothing was changed") -> None:
    """Raise LineageError, which ends with ``then``, if the log, a spout or a state cannot go back to the batch."""
    assert component.program is not None
    opening = _make_startup(component.program, log)
    if opening.standing.is_new:
        raise LineageError(f"{component.shown} has no checkpoint in {log.where}")
    kept = [each.txid for each in log.list_kept()]
    if txid > kept[0]:
        raise LineageError(f"{component.shown} is at txid {kept[0]}, so there is no batch {txid} yet. {then}")
    if txid not in kept:
        reach = f"back to txid {kept[-1]}" if len(kept) > 1 else "no further back"
        raise LineageError(
            f"{component.shown} is at txid {kept[0]}, and its log reaches {reach} (topology.txid.kept). {then}"
        )
    asked = _examine(opening, txid)
    refused = [f"{name} cannot go back to txid {txid}: {why}" for name, why in asked.items() if why is not None]
    if refused:
        raise LineageError("; ".join(refused) + f". So none of them goes back. {then}")


def _examine(opening: Startup, txid: int) -> dict[str, str | None]:
    program, standing = opening.program, opening.standing
    stays = txid == standing.committed and not standing.begun  # no batch is emitted again
    found = {f"spout {info.id}": None if stays else why_not_again(info.spout) for info in program.spouts}
    for name in program.states():
        participant = opening.participants.get(name)
        nothing = "it keeps no txids" if participant is None else None
        found[name] = nothing or _why_not(opening, name, txid)
    return found


def _why_not(opening: Startup, name: str, txid: int) -> str | None:
    """Return why a state cannot go back to a batch; None if it can, or has nothing of later ones."""
    why, told = opening.participants[name].can_rewind(opening.conf_of(name), txid), _look(opening, name)
    if told is None:
        return why
    last, joined = opening.standing.committed, opening.standing.find_joined(name)
    accepted = joined is not None and joined == Joined.of(told, last, joined.forget)
    ours = told.lineage == opening.standing.lineage
    if ours and told.least < min(txid, last) and not accepted:
        return f"its store has the batches up to {told.least} alone"
    return None if told.written <= txid else why


def _rewind_state(opening: Startup, name: str, txid: int) -> None:
    """Take a state back, once its fence is raised. One that cannot go back has nothing of later batches, and stays as
    it is. Raises LineageError if it has."""
    participant = opening.participants[name]
    why, told = participant.can_rewind(opening.conf_of(name), txid), _look(opening, name)
    if why is None:
        participant.rewind(txid)
    elif told is None or told.written > txid:
        raise LineageError(f"state {name!r} cannot go back to txid {txid}: {why}")


def _look(opening: Startup, name: str) -> Remembered | None:
    """Ask the store of one state, and leave no trace there."""
    return opening.participants[name].remembered(with_context(opening.conf_of(name), reads_only=True))


def _ask_rewound(opening: Startup, txid: int) -> dict[str, Joined]:
    """Ask the states once all of them have gone back to a batch."""
    joined = {}
    for name, answer in opening.ask_all().items():
        before = opening.standing.find_joined(name)
        if answer is not None:
            joined[name] = Joined.of(answer, txid, before is not None and before.forget)
    return joined


def why_not_again(spout: Any) -> str | None:
    """Return why a spout does not emit what it has emitted before."""
    if isinstance(spout, SparkSpout):
        return "Spark's own checkpoint alone has the position of its sources"
    if isinstance(spout, ICommitterTridentSpout):
        return "it has committed to its source what it has emitted"
    if isinstance(spout, IBatchSpout) and not spout.emits_any_batch:
        return "it keeps a batch until its ack, and no longer; one that emits any batch says so: emits_any_batch = True"
    return "it does not emit a batch again" if spout.kind == NON_TRANSACTIONAL else None


def _finish(component: Component, txid: int) -> list[str]:
    """Do what the log says was begun, as a driver of its own."""
    assert component.program is not None
    run = f"{component.topology}-{uuid.uuid4().hex[:12]}"
    program = replace(component.program, conf=with_context(component.program.conf, run=run))
    with closing(component.open()) as log:
        log.take()
        opening = _make_startup(program, log)
        _check_states(component, opening.standing.rewinding, set(program.states()))
        opening.raise_fences(Agreement(opening.standing.committed, {}, {}))
        _step(component, "opened", txid)
        for name in opening.participants:
            opening.patience.wait_until_available(f"state {name}", partial(_rewind_state, opening, name, txid))
            _step(component, "rewound", txid, name)
        joined, run = _ask_rewound(opening, txid), RunContext.of(program.conf).token
        log.go_back(txid, run, joined, partial(_step, component, "forgotten", txid))
        _step(component, "over", txid)
        return list(opening.participants)


def _check_states(component: Component, begun: Rewinding | None, states: set[str]) -> None:
    if begun is None:
        raise LineageError(f"{component.shown} was taken back by another command meanwhile")
    if set(begun.states) != states:
        raise LineageError(
            f"{component.shown} is on its way back to txid {begun.to} with the states {', '.join(begun.states)}; this "
            f"topology has {', '.join(sorted(states))}. Finish it with the topology with which it began"
        )


def _make_startup(program: Program, log: BatchLog) -> Startup:
    patience = Patience(start_wait(program.conf), Event(), lambda line: None)
    standing: CheckpointState = log.read_state(None)
    return Startup(program, participants_of(program), patience, log.store, standing, log.check)


def _step(component: Component, step: str, txid: int, name: str = "") -> None:
    assert component.program is not None
    steps_of_driver(component.program.conf)(f"rewind {step}", txid, name)
