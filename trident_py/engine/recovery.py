"""Checks that a checkpoint and the stores agree. Runs at every start, before anything is written.

A start whose relation (`trident_py.engine.store_position`) is not one that goes on ends with a list of choices. One
choice is always a setting that names exactly what it accepts, with both txids, so it expires after use.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from ..errors import DefinitionError, LineageError
from ..model.context import RunContext
from ..state.participants import Remembered
from .store_position import (
    ABANDON,
    ACCEPT,
    BASE,
    FORMAT,
    IN_MEMORY,
    CheckpointState,
    Joined,
    Recovery,
    StorePosition,
    list_accepted,
    may_be_abandoned,
)

_MOST = 1 << 62  # a txid has 64 bits in every store, and its run goes on

Text = tuple[str, list[str | None]]  # the finding, and the choices; None for one that does not help here


class Agreement(NamedTuple):
    """The result of `agree`: the txid to go on from, and each state's join and relation."""

    txid: int
    joined: dict[str, Joined]
    relations: dict[str, StorePosition]

    def record(
        self, standing: CheckpointState, spouts: Mapping[str, str], kinds: Mapping[str, str], run: str
    ) -> dict:  # fmt: skip
        """Return the JSON value that the checkpoint keeps. ``run``: the token of the run that begins."""
        base = self.txid if standing.record is None else standing.record["base"]
        states = {name: list(joined) for name, joined in self.joined.items()}
        return {
            "lineage": standing.lineage, "base": base, "topology": standing.topology, "spouts": dict(spouts),
            "states": states, "kinds": dict(kinds), "run": run, "format": FORMAT,
        }  # fmt: skip


def check_rewound(standing: CheckpointState) -> None:
    """Raise LineageError if the checkpoint is between two txids: some of its states may have gone back."""
    if standing.rewinding is not None:
        to = standing.rewinding.to
        raise LineageError(
            f"the checkpoint {standing.where} is on its way back from txid {standing.committed} to {to}, and some of "
            f"its states may be there already. Finish that first: trident txid rewind --to {to}, with the same "
            "topology. Nothing was changed"
        )


def agree(
    conf: Mapping[str, Any],
    standing: CheckpointState,
    asked: Mapping[str, Remembered | None],
    deciding: Collection[str] = (),
) -> Agreement:
    """Compare the checkpoint with each store's answer (``asked``). Changes nothing. ``deciding``: the states that show
    a batch as a whole. Raises LineageError, listing the choices, if one disagrees; DefinitionError for a wrong base."""
    answers = {name: answer for name, answer in asked.items() if answer is not None}
    txid = _base(conf, answers) if standing.is_new else standing.committed
    case = Recovery(conf, standing, txid, answers, deciding)
    relations = {name: case.relation(name) if name in answers else StorePosition.UNASKED for name in asked}
    _refuse(case, {name: relation for name, relation in relations.items() if not relation.value.goes_on})
    joined = {}
    for name, answer in answers.items():
        before, relation = standing.find_joined(name), relations[name]
        kept = relation is StorePosition.JOINED and before is not None and before.forget
        forget = kept or relation is StorePosition.ABANDONED
        joined[name] = Joined.of(answer, txid, forget)
    return Agreement(txid, joined, relations)


def _base(conf: Mapping[str, Any], answers: Mapping[str, Remembered]) -> int:
    """Return the txid that a new checkpoint counts from: 0, or the number in the setting. A number expires with the
    first batch, whose txid is higher."""
    base = 0 if conf.get(BASE) is None else conf[BASE]
    if not isinstance(base, int) or isinstance(base, bool) or not 0 <= base <= _MOST:
        highest = max((each.highest for each in answers.values()), default=0)
        raise DefinitionError(
            f"{BASE} must be a number, at least 0 and at most {_MOST:,}; got {base!r}. To continue after the batches "
            f"that the states remember: {_format_setting(conf, BASE, highest)}"
        )
    return base


def check_spouts(conf: Mapping[str, Any], standing: CheckpointState, spouts: Mapping[str, str]) -> None:
    """Raise LineageError if the checkpoint holds a stream's position from a spout of another class."""
    record = standing.record or {}
    if standing.committed == record.get("base", 0) and not standing.begun:
        return
    for stream, kind in spouts.items():
        before = record.get("spouts", {}).get(stream, kind)
        renamed = f"{stream}@{standing.committed}={kind}"
        if before != kind and renamed not in list_accepted(conf):
            raise LineageError(
                f"the checkpoint {standing.where} holds the position of stream {stream!r} as a spout of class {before} "
                f"left it; the topology has a {kind} there, which would continue from a position it cannot interpret. "
                + _list_choices(
                    f"use {before} again",
                    f"if {kind} is the same spout, renamed: {_format_setting(conf, ACCEPT, renamed)}",
                    _offer_new_checkpoint(
                        conf, standing, standing.committed, "the new spout starts at its own beginning"
                    ),
                )
            )


def check_streams(standing: CheckpointState, streams: Iterable[str]) -> None:
    """Raise LineageError if a batch was started with other streams: a state that has it takes nothing more of it."""
    now = sorted(streams)
    before = sorted((standing.record or {}).get("spouts", now))
    if standing.begun and before != now:
        batch, were = standing.committed + 1, ", ".join(before)
        raise LineageError(
            f"the checkpoint {standing.where} has begun batch {batch} with the streams {were}; the topology has the "
            f"streams {', '.join(now)} there. States may have the batch already: they would lose what a new stream "
            f"brings in its replay, or lack what a missing one brought. Start the topology with the streams {were} "
            f"until batch {batch} is over, then change them. Nothing was changed"
        )


def check_kinds(standing: CheckpointState, kinds: Mapping[str, str]) -> None:
    """Raise LineageError if a batch was started with a state of another kind, which has left nothing there by which
    this one knows a replay."""
    before = (standing.record or {}).get("kinds", {})
    for name, kind in kinds.items() if standing.begun else ():
        if (was := before.get(name, kind)) != kind:
            batch = standing.committed + 1
            raise LineageError(
                f"the checkpoint {standing.where} has begun batch {batch} with state {name!r} of kind {was}; the "
                f"topology has it of kind {kind}, which cannot tell what the store has of the batch already. Start the "
                f"topology with kind {was} until batch {batch} is over, then change it. Nothing was changed"
            )


def _refuse(case: Recovery, refused: Mapping[str, StorePosition]) -> None:
    """Raise LineageError for the first state, and name all others with the same relation."""
    if not refused:
        return
    first, relation = next(iter(refused.items()))
    names = [name for name, other in refused.items() if other is relation]
    finding, choices = _TEXTS[relation](case, case.answers[first], names)
    state = f"state {first!r} of topology {case.standing.topology!r} in {case.answers[first].where}"
    others = [f"{name!r} (batch {case.answers[name].highest})" for name in names[1:]]
    also = f"The same holds for {', '.join(others)}. " if others else ""
    error = LineageError(f"{state} {finding}. {also}{_list_choices(*choices)}")
    error.finding = f"{state} {finding}"
    error.momentary = case.standing.is_new or set(refused.values()) <= _MOMENTARY
    raise error


def _format_setting(conf: Mapping[str, Any], key: str, value: Any) -> str:
    """Return the setting as the user writes it: a command-line option, or a line of Python."""
    if RunContext.of(conf).command_line:
        return "--set " + shlex.quote(f"{key}={value if isinstance(value, str) else json.dumps(value)}")
    return f'conf["{key}"] = {value!r}'


def _list_choices(*ways: str | None) -> str:
    numbered = (f"({number}) {way}" for number, way in enumerate(filter(None, ways), 1))
    return f"Choose: {'; '.join(numbered)}. Nothing was changed"


_AGAIN = "process everything again into a new table or topic"
_NO_FOLDER = (
    " (this cluster has no folder for checkpoints, so each start begins anew: give it the same one each time, "
    "checkpoints=FOLDER)"
)
_SENT = "data that the source sends again is applied again"


def _offer_new_checkpoint(conf: Mapping[str, Any], standing: CheckpointState, base: int, then: str) -> str:
    return f"move {standing.where} away and continue in a new checkpoint, {_format_setting(conf, BASE, base)}: {then}"


def _offer_accept(case: Recovery, names: list[str], parts: bool = False) -> str:
    tokens = [case.part(name) if parts else case.token(name) for name in names]
    return _format_setting(case.conf, ACCEPT, tokens[0] if len(tokens) == 1 else tokens)


def _offer_new_checkpoint_for(case: Recovery) -> str:
    return _offer_new_checkpoint(case.conf, case.standing, max(case.txid, case.highest), _SENT)


def _explain_lost(case: Recovery, answer: Remembered, names: list[str]) -> Text:
    conf, base, abandon = case.conf, case.conf.get(BASE), case.conf.get(ABANDON)
    why = "" if base is None else f". {BASE} is {base!r}, which is before that batch"
    if abandon is not None and answer.valued > 0:
        why = f". {ABANDON} cannot help: the table's values carry txids up to {answer.valued}"
    elif abandon is not None:
        why = f". {ABANDON} is {abandon!r}, which is another lineage"
    new = f"start a new lineage from txid 1, {_format_setting(conf, ABANDON, answer.lineage)}: {_SENT}"
    others = [case.answers[name] for name in names]  # the setting names one lineage for the whole topology
    helps = all(other.lineage == answer.lineage and may_be_abandoned(other) for other in others)
    return (
        f"remembers batch {answer.highest}, written under another checkpoint (lineage {answer.lineage!r}); the "
        f"checkpoint {case.standing.where} is new, and its batches would be skipped or counted twice{why}",
        [
            f"restore the checkpoint that wrote the store{_NO_FOLDER if case.standing.where == IN_MEMORY else ''}",
            f"continue the txid sequence after it, {_format_setting(conf, BASE, case.highest)}: {_SENT}",
            new if helps else None,
            _AGAIN,
        ],
    )


def _explain_unowned(case: Recovery, answer: Remembered, names: list[str]) -> Text:
    after = f"continue after them, {_format_setting(case.conf, BASE, case.highest)}: {_SENT}"
    return (
        f"has values with txids up to {answer.highest}, but its ledger knows nothing of this topology and state: they "
        "were written under another name, or the ledger is lost. Batches up to that txid would be taken for replays",
        [
            "give topology and state the names under which they were written",
            after if case.standing.is_new else _offer_new_checkpoint_for(case),
            _AGAIN,
        ],
    )


def _explain_behind(case: Recovery, answer: Remembered, names: list[str]) -> Text:
    new, last = case.standing.is_new, case.txid
    others = "other states of this topology have" if new else f"the checkpoint {case.standing.where} has committed"
    least = min(case.answers[name].least for name in names)
    back = f"take it back, if its log and the other states reach so far: trident txid rewind --to {least}"
    return (
        f"has the batches up to {answer.least}, {others} batch {last}: the store lacks the batches in between, and "
        "they are not sent again. It was restored from a backup, or the state was not in the topology for a while",
        [
            f"restore the store as it was after batch {last}",
            None if new else f"restore a copy of the checkpoint of the same age, of batch {answer.least}, or {back}",
            f"continue without them, {_offer_accept(case, names)}",
            _AGAIN,
        ],
    )


def _explain_gone(case: Recovery, answer: Remembered, names: list[str]) -> Text:
    topology = (case.standing.record or {}).get("topology", case.standing.topology)
    renamed = topology != case.standing.topology
    why = "The table, topic or database was deleted or replaced, or the marks expired on Kafka's brokers "
    why += "(offsets.retention.minutes, 7 days by default)"
    if renamed:
        why = f"The checkpoint was written by topology {topology!r}"
    return (
        f"knows nothing of this state, and the checkpoint {case.standing.where} has committed batch {case.txid} with "
        f"it. {why}",
        [
            f"give the topology its name back, {topology!r}" if renamed else "restore the store",
            f"continue without its earlier content, {_offer_accept(case, names)}; whether it already has batch "
            f"{case.txid + 1} is unknown: check that first",
        ],
    )


def _explain_ahead(case: Recovery, answer: Remembered, names: list[str]) -> Text:
    standing = case.standing
    begun = answer.written <= case.txid + 1 < answer.last
    has = f"begun batch {answer.last}" if begun else f"batch {answer.written}"
    between = standing.begun and answer.written == case.txid + 1
    undecided = " and has no decision about it" if between and not begun else ""
    return (
        f"has {has}; the checkpoint {standing.where} has committed batch {case.txid}{undecided}: the checkpoint is "
        "older than the store, or a copy of it was continued elsewhere. Its batches would be skipped or "
        "counted twice",
        ["restore the newest checkpoint", _offer_new_checkpoint_for(case), _AGAIN],
    )


def _explain_reordered(case: Recovery, answer: Remembered, names: list[str]) -> Text:
    batch, seeded = case.txid + 1, case.standing.seeded
    assert seeded is not None
    once = f"start once with PYTHONHASHSEED={seeded.seed}, as in that process" if seeded.seed else None
    return (
        f"has part of batch {batch}, which a process with another hash seed began and which is now replayed: "
        f"{seeded.operation}. Rows of the batch would be lost or duplicated. Set PYTHONHASHSEED=0 for every start, or "
        "use `trident run`, which sets it",
        [
            once,
            f"restore the store as it was after batch {case.txid}",
            f"replay the batch anyway, {_offer_accept(case, names, parts=True)}, and check its rows",
        ],
    )


def _explain_foreign(case: Recovery, answer: Remembered, names: list[str]) -> Text:
    standing = case.standing
    joins = not standing.has_written(names[0]) and answer.highest <= case.txid
    return (
        f"was written under another checkpoint (lineage {answer.lineage!r}) up to batch {answer.highest}; this one, "
        f"{standing.where} (lineage {standing.lineage!r}), has committed batch {case.txid}. Two deployments run under "
        "one name, or the store is not the one that this checkpoint wrote",
        [
            "start on the checkpoint that wrote the store, or restore the store of this one",
            "to run both, give one of them another topology name and another table or topic",
            f"continue with the store as it is, without what came since, {_offer_accept(case, names)}"
            if joins
            else None,
            _offer_new_checkpoint_for(case),
        ],
    )


def _explain_crossed(case: Recovery, answer: Remembered, names: list[str]) -> Text:
    return (
        f"has batch {answer.written}, as the checkpoint {case.standing.where} expects, but it was last written by the "
        f"run {answer.run!r}, which this checkpoint does not know: checkpoint and store were copied, both copies ran "
        "on, and these two do not belong together. Their batches may hold other tuples",
        [
            "restore the checkpoint that wrote this store, or the store that this checkpoint wrote",
            f"if the store has just the batches of this checkpoint, {_offer_accept(case, names)}: check that first",
            _offer_new_checkpoint_for(case),
            _AGAIN,
        ],
    )


_MOMENTARY = {StorePosition.AHEAD, StorePosition.CROSSED, StorePosition.REORDERED, StorePosition.UNOWNED}
"""What an older driver that goes on between two questions looks like, too."""
_TEXTS = {
    StorePosition.LOST: _explain_lost,
    StorePosition.UNOWNED: _explain_unowned,
    StorePosition.BEHIND: _explain_behind,
    StorePosition.GONE: _explain_gone,
    StorePosition.RENAMED: _explain_gone,
    StorePosition.AHEAD: _explain_ahead,
    StorePosition.FOREIGN: _explain_foreign,
    StorePosition.REORDERED: _explain_reordered,
    StorePosition.CROSSED: _explain_crossed,
}
