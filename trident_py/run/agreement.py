"""Checks that a checkpoint and the stores agree. Runs at every start, before anything is written.

The checkpoint knows the last committed txid, a store the last txid it holds. They agree if both are equal, or if the
store also holds the one batch that was begun and not committed. `Relation` lists all cases: a start either goes on, or
ends with a list of choices. One choice is always a setting that names exactly what it accepts, so it expires after use.
"""

from __future__ import annotations

import enum
import json
import shlex
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..context import RunContext
from ..errors import DefinitionError, LineageError
from ..state.participants import Remembered

BASE = "topology.txid.base"
ABANDON = "topology.lineage.abandon"
ACCEPT = "topology.lineage.accept"


class TableLine(NamedTuple):
    """A line of the table: whether the start goes on, the case, and the action taken or the choices offered."""

    goes_on: bool
    case: str
    action: str


class Relation(enum.Enum):
    """The relation of a store to a checkpoint (printed in docs/reliability.md)."""

    UNASKED = TableLine(True, "the state keeps nothing that outlives its driver, or no txids", "nothing is compared")
    NEW = TableLine(True, "neither the store nor the checkpoint knows the state", "it starts with the next batch")
    SAME = TableLine(True, "both are at the same txid", "the run continues after it")
    BETWEEN = TableLine(
        True, "the store has the one batch that this checkpoint has begun but not committed", "it is replayed"
    )
    JOINED = TableLine(
        True, "an earlier start agreed, and nothing was written since", "the run continues, without a setting"
    )
    CONTINUED = TableLine(
        True, f"new checkpoint, and {BASE} starts its txids after the store's", "the run continues after them"
    )
    ABANDONED = TableLine(
        True, f"another lineage, named by {ABANDON}, and no value carries a txid", "the store's txids are forgotten"
    )
    ACCEPTED = TableLine(True, f"the store lacks batches, and {ACCEPT} accepts that", "the run continues without them")
    LOST = TableLine(
        False,
        "new checkpoint, and the store remembers batches: the checkpoint was lost, moved or replaced",
        f"restore it; {BASE}; {ABANDON}, where no value carries a txid; a new table or topic",
    )
    UNOWNED = TableLine(
        False,
        "values carry txids ahead of the checkpoint, and no ledger names their owner: topology or state was renamed",
        f"restore the name; a new checkpoint with {BASE}; a new table or topic",
    )
    BEHIND = TableLine(
        False,
        "the store is behind: restored from a backup, or the state was not in the topology for a while",
        f"restore the newer store; a checkpoint of the same age; {ACCEPT}; a new table or topic",
    )
    GONE = TableLine(
        False,
        "the checkpoint has written the state, but the store does not know it: table, topic or database deleted or "
        "replaced, marks expired on the brokers",
        f"restore the store; {ACCEPT}",
    )
    RENAMED = TableLine(
        False,
        "the same, and the checkpoint was written under another topology name",
        f"restore the topology's name; {ACCEPT}",
    )
    AHEAD = TableLine(
        False,
        "the store has a batch that this checkpoint has not begun or decided: it is an older copy, or a copy of it was "
        "continued",
        f"restore the newest one; a new checkpoint with {BASE}; a new table or topic",
    )
    REORDERED = TableLine(
        False,
        "the store has part of the begun batch, from a process with another hash seed, and an operation depends on "
        "the seed",
        f"start once with that PYTHONHASHSEED; restore the store; {ACCEPT}",
    )
    FOREIGN = TableLine(
        False,
        "another checkpoint wrote the store: two deployments under one name, or a different store",
        f"start on that checkpoint; another name or table for one of the two; a new checkpoint with {BASE}",
    )
    OTHER_SPOUT = TableLine(
        False,
        "the checkpoint holds the position of a spout of another class under the same stream name",
        f"restore the class; {ACCEPT}, if it was only renamed; a new checkpoint with {BASE}",
    )


class Joined(NamedTuple):
    """A store's answer when its state joined the checkpoint: its lineage and last txid, the checkpoint's txid then, and
    whether to forget the store's txids. While the answer is unchanged, this checkpoint has written nothing there."""

    lineage: str
    last: int
    txid: int
    forget: bool = False


class Seeded(NamedTuple):
    """A process with another hash seed began the next batch, and ``operation`` reads as if it depends on the seed.
    ``seed``: the PYTHONHASHSEED of that process; "" if it was random, and therefore unknown."""

    operation: str
    seed: str


@dataclass(frozen=True)
class Standing:
    """The content of a checkpoint. ``record``: what its first start recorded; None for a new checkpoint. ``committed``:
    the last committed txid. ``begun``, ``decided``, ``seeded`` describe the txid after it."""

    where: str
    topology: str
    record: Mapping[str, Any] | None
    lineage: str
    committed: int = 0
    begun: bool = False
    decided: bool = False
    seeded: Seeded | None = None

    @classmethod
    def new(cls, where: str, topology: str) -> Standing:
        return cls(where, topology, None, uuid.uuid4().hex)

    @property
    def is_new(self) -> bool:
        return self.record is None

    def joined(self, state: str) -> Joined | None:
        record = (self.record or {}).get("states", {}).get(state)
        return None if record is None else Joined(*record)

    def had(self, state: str) -> bool:
        """Whether this checkpoint has written the state. One of an older version does not record it, so it may have."""
        record = self.record or {}
        return state in record["states"] if "states" in record else self.committed > record.get("base", 0)


class Agreed(NamedTuple):
    """The result of `agree`: the txid to go on from, and each state's join and relation."""

    txid: int
    joined: dict[str, Joined]
    relations: dict[str, Relation]

    def record(self, standing: Standing, spouts: Mapping[str, str]) -> dict:
        """The JSON value that the checkpoint keeps."""
        base = self.txid if standing.record is None else standing.record["base"]
        states = {name: list(joined) for name, joined in self.joined.items()}
        return {
            "lineage": standing.lineage, "base": base, "topology": standing.topology, "spouts": dict(spouts),
            "states": states,
        }  # fmt: skip


def agree(
    conf: Mapping[str, Any], standing: Standing, asked: Mapping[str, Remembered | None], deciding: Collection[str] = ()
) -> Agreed:
    """Compares the checkpoint with each store's answer (``asked``). Changes nothing. ``deciding``: the states that show
    a batch as a whole. Raises LineageError, listing the choices, if one disagrees; DefinitionError for a wrong base."""
    answers = {name: answer for name, answer in asked.items() if answer is not None}
    txid = _base(conf, answers) if standing.is_new else standing.committed
    case = Case(conf, standing, txid, answers, deciding)
    relations = {name: case.relation(name) if name in answers else Relation.UNASKED for name in asked}
    case.refuse({name: relation for name, relation in relations.items() if not relation.value.goes_on})
    joined = {}
    for name, answer in answers.items():
        before, relation = standing.joined(name), relations[name]
        if before is None or relation not in (Relation.SAME, Relation.BETWEEN, Relation.JOINED):
            before = Joined(answer.lineage, answer.last, txid, relation is Relation.ABANDONED)
        joined[name] = before
    return Agreed(txid, joined, relations)


def _base(conf: Mapping[str, Any], answers: Mapping[str, Remembered]) -> int:
    """The txid that a new checkpoint counts from: 0, the number in the setting, or the highest txid in the stores."""
    base = conf.get(BASE, 0)
    if base == "continue":
        return max([answer.highest for answer in answers.values()], default=0)
    if not isinstance(base, int) or isinstance(base, bool) or base < 0:
        raise DefinitionError(f'{BASE} must be a number, at least 0, or "continue"; got {base!r}')
    return base


def check_spouts(conf: Mapping[str, Any], standing: Standing, spouts: Mapping[str, str]) -> None:
    """Raises LineageError if the checkpoint holds a stream's position from a spout of another class."""
    record = standing.record or {}
    if standing.committed == record.get("base", 0) and not standing.begun:
        return
    for stream, kind in spouts.items():
        before = record.get("spouts", {}).get(stream, kind)
        if before != kind and f"{stream}={kind}" not in _accepted(conf):
            raise LineageError(
                f"the checkpoint {standing.where} holds the position of stream {stream!r} as a spout of class {before} "
                f"left it; the topology has a {kind} there, which would continue from a position it cannot interpret. "
                + _choices(
                    f"use {before} again",
                    f"if {kind} is the same spout, renamed: {_set(conf, ACCEPT, f'{stream}={kind}')}",
                    _anew(conf, standing, "the new spout starts at its own beginning"),
                )
            )


@dataclass(frozen=True)
class Case:
    """One start: its facts, and the relation of each state that follows from them."""

    conf: Mapping[str, Any]
    standing: Standing
    txid: int
    answers: Mapping[str, Remembered]
    deciding: Collection[str]

    def relation(self, name: str) -> Relation:
        return self._of_new(name) if self.standing.is_new else self._of_settled(name)

    def _of_new(self, name: str) -> Relation:
        answer = self.answers[name]
        if answer.highest == 0:
            return Relation.NEW
        if BASE in self.conf and self.txid >= answer.highest:
            txids = [other.written for other in self.answers.values() if other.lineage == answer.lineage]
            if answer.lineage and max(txids) - answer.least > 1:
                return self._unless_accepted(name, Relation.BEHIND)
            return Relation.CONTINUED
        if self._abandons(answer):
            return Relation.ABANDONED
        return Relation.LOST if answer.lineage or answer.last else Relation.UNOWNED

    def _of_settled(self, name: str) -> Relation:
        standing, answer, joined = self.standing, self.answers[name], self.standing.joined(name)
        if joined is not None and (answer.lineage, answer.last, self.txid) == joined[:3]:
            return Relation.JOINED
        if answer.lineage == standing.lineage:
            return self._of_same_lineage(name, answer)
        if standing.had(name):
            if answer.lineage:
                return Relation.FOREIGN
            renamed = standing.topology != (standing.record or {}).get("topology", standing.topology)
            return self._unless_accepted(name, Relation.RENAMED if renamed else Relation.GONE)
        if answer.highest == 0 or (not answer.lineage and answer.highest <= self.txid):
            return Relation.NEW
        if not answer.lineage:
            return Relation.UNOWNED
        if self._abandons(answer):
            return Relation.ABANDONED
        return self._unless_accepted(name, Relation.FOREIGN) if answer.highest <= self.txid else Relation.FOREIGN

    def _of_same_lineage(self, name: str, answer: Remembered) -> Relation:
        standing = self.standing
        between = standing.begun and (name not in self.deciding or standing.decided)
        if answer.written > self.txid + 1 or (answer.written == self.txid + 1 and not between):
            return Relation.AHEAD
        if answer.least < self.txid:
            return self._unless_accepted(name, Relation.BEHIND)
        if answer.written == self.txid:
            return Relation.SAME
        other = standing.seeded is not None and name not in self.deciding
        return Relation.REORDERED if other and self._part(name) not in _accepted(self.conf) else Relation.BETWEEN

    def _unless_accepted(self, name: str, relation: Relation) -> Relation:
        return Relation.ACCEPTED if self._token(name) in _accepted(self.conf) else relation

    def _token(self, name: str) -> str:
        return f"{name}@{self.answers[name].least}"

    def _part(self, name: str) -> str:
        """The token that accepts a state's part of the batch after the committed one."""
        return f"{name}@{self.txid + 1}"

    def _abandons(self, answer: Remembered) -> bool:
        return self.conf.get(ABANDON) == answer.lineage and _may_be_abandoned(answer)

    def refuse(self, refused: Mapping[str, Relation]) -> None:
        """Raises LineageError for the first state, and names all others with the same relation."""
        if not refused:
            return
        first, relation = next(iter(refused.items()))
        names = [name for name, other in refused.items() if other is relation]
        finding, choices = _TEXTS[relation](self, self.answers[first], names)
        state = f"state {first!r} of topology {self.standing.topology!r} in {self.answers[first].where}"
        others = [f"{name!r} (batch {self.answers[name].highest})" for name in names[1:]]
        also = f"The same holds for {', '.join(others)}. " if others else ""
        raise LineageError(f"{state} {finding}. {also}{_choices(*choices)}")

    def accepting(self, names: list[str], parts: bool = False) -> str:
        tokens = [self._part(name) if parts else self._token(name) for name in names]
        return _set(self.conf, ACCEPT, tokens[0] if len(tokens) == 1 else tokens)


def _accepted(conf: Mapping[str, Any]) -> list:
    tokens = conf.get(ACCEPT, [])
    return [tokens] if isinstance(tokens, str) else list(tokens)


def _set(conf: Mapping[str, Any], key: str, value: Any) -> str:
    """The setting as the user writes it: a command-line option, or a line of Python."""
    if RunContext.of(conf).command_line:
        return "--set " + shlex.quote(f"{key}={value if isinstance(value, str) else json.dumps(value)}")
    return f'conf["{key}"] = {value!r}'


def _choices(*ways: str | None) -> str:
    numbered = (f"({number}) {way}" for number, way in enumerate(filter(None, ways), 1))
    return f"Choose: {'; '.join(numbered)}. Nothing was changed"


_AGAIN = "process everything again into a new table or topic"
_SENT = "data that the source sends again is applied again"


def _anew(conf: Mapping[str, Any], standing: Standing, then: str) -> str:
    return f"move {standing.where} away and continue in a new checkpoint, {_set(conf, BASE, 'continue')}: {then}"


def _lost(case: Case, answer: Remembered, names: list[str]) -> tuple[str, list[str | None]]:
    conf, base, abandon = case.conf, case.conf.get(BASE), case.conf.get(ABANDON)
    why = "" if base is None else f". {BASE} is {base!r}, which is before that batch"
    if abandon is not None and answer.valued > 0:
        why = f". {ABANDON} cannot help: the table's values carry txids up to {answer.valued}"
    elif abandon is not None:
        why = f". {ABANDON} is {abandon!r}, which is another lineage"
    new = f"start a new lineage from txid 1, {_set(conf, ABANDON, answer.lineage)}: {_SENT}"
    others = [case.answers[name] for name in names]  # the setting names one lineage for the whole topology
    helps = all(other.lineage == answer.lineage and _may_be_abandoned(other) for other in others)
    return (
        f"remembers batch {answer.highest}, written under another checkpoint (lineage {answer.lineage!r}); the "
        f"checkpoint {case.standing.where} is new, and its batches would be skipped or counted twice{why}",
        [
            "restore the checkpoint that wrote the store",
            f"continue the txid sequence after that batch, {_set(conf, BASE, 'continue')} or a number, at least "
            f"{answer.highest}: {_SENT}",
            new if helps else None,
            _AGAIN,
        ],
    )


def _may_be_abandoned(answer: Remembered) -> bool:
    return bool(answer.lineage) and answer.valued == 0


def _unowned(case: Case, answer: Remembered, names: list[str]) -> tuple[str, list[str | None]]:
    after = f"continue after them, {_set(case.conf, BASE, 'continue')}: {_SENT}"
    return (
        f"has values with txids up to {answer.highest}, but its ledger knows nothing of this topology and state: they "
        "were written under another name, or the ledger is lost. Batches up to that txid would be taken for replays",
        [
            "give topology and state the names under which they were written",
            after if case.standing.is_new else _anew(case.conf, case.standing, _SENT),
            _AGAIN,
        ],
    )


def _behind(case: Case, answer: Remembered, names: list[str]) -> tuple[str, list[str | None]]:
    new, last = case.standing.is_new, case.txid
    others = "other states of this topology have" if new else f"the checkpoint {case.standing.where} has committed"
    return (
        f"has the batches up to {answer.least}, {others} batch {last}: the store lacks the batches in between, and "
        "they are not sent again. It was restored from a backup, or the state was not in the topology for a while",
        [
            f"restore the store as it was after batch {last}",
            None if new else f"restore a copy of the checkpoint of the same age, of batch {answer.least}",
            f"continue without them, {case.accepting(names)}",
            _AGAIN,
        ],
    )


def _gone(case: Case, answer: Remembered, names: list[str]) -> tuple[str, list[str | None]]:
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
            f"continue without its earlier content, {case.accepting(names)}; whether it already has batch "
            f"{case.txid + 1} is unknown: check that first",
        ],
    )


def _ahead(case: Case, answer: Remembered, names: list[str]) -> tuple[str, list[str | None]]:
    standing = case.standing
    undecided = " and has no decision about it" if standing.begun and answer.written == case.txid + 1 else ""
    return (
        f"has batch {answer.written}; the checkpoint {standing.where} has committed batch {case.txid}{undecided}: the "
        "checkpoint is older than the store, or a copy of it was continued elsewhere. Its batches would be skipped or "
        "counted twice",
        ["restore the newest checkpoint", _anew(case.conf, standing, _SENT), _AGAIN],
    )


def _reordered(case: Case, answer: Remembered, names: list[str]) -> tuple[str, list[str | None]]:
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
            f"replay the batch anyway, {case.accepting(names, parts=True)}, and check its rows",
        ],
    )


def _foreign(case: Case, answer: Remembered, names: list[str]) -> tuple[str, list[str | None]]:
    standing = case.standing
    joins = not standing.had(names[0]) and answer.highest <= case.txid
    return (
        f"was written under another checkpoint (lineage {answer.lineage!r}) up to batch {answer.highest}; this one, "
        f"{standing.where} (lineage {standing.lineage!r}), has committed batch {case.txid}. Two deployments run under "
        "one name, or the store is not the one that this checkpoint wrote",
        [
            "start on the checkpoint that wrote the store, or restore the store of this one",
            "to run both, give one of them another topology name and another table or topic",
            f"continue with the store as it is, without the batches since, {case.accepting(names)}" if joins else None,
            _anew(case.conf, standing, _SENT),
        ],
    )


_TEXTS = {
    Relation.LOST: _lost, Relation.UNOWNED: _unowned, Relation.BEHIND: _behind, Relation.GONE: _gone,
    Relation.RENAMED: _gone, Relation.AHEAD: _ahead, Relation.FOREIGN: _foreign, Relation.REORDERED: _reordered,
}  # fmt: skip
