"""The position of a store relative to a checkpoint: the facts of one start, and what follows from them.

The checkpoint knows the last committed txid, a store the last txid it holds. They agree if both are equal, or if the
store also holds the one batch that was begun and not committed. `StorePosition` lists all cases: a start either goes
on, or is refused.

Equal txids do not make one history: two copies of checkpoint and store may have run on by themselves. So both keep the
token of the run that wrote them last, and these must be equal too.
"""

from __future__ import annotations

import enum
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..state.participants import Remembered

BASE = "topology.txid.base"
ABANDON = "topology.lineage.abandon"
ACCEPT = "topology.lineage.accept"
FORMAT = 1  # of a checkpoint; a release that cannot read the last one's has the next number


class TableLine(NamedTuple):
    """A line of the table: whether the start goes on, the case, and the action taken or the choices offered."""

    goes_on: bool
    case: str
    action: str


class StorePosition(enum.Enum):
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
    ACCEPTED = TableLine(
        True, f"the store lacks batches, or another run wrote it, and {ACCEPT} names both txids", "the run continues"
    )
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
        "restore the newer store; a checkpoint of the same age; trident txid rewind, if the log reaches so far; "
        f"{ACCEPT}; a new table or topic",
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
    CROSSED = TableLine(
        False,
        "both are at the same txid, but a run unknown to the checkpoint wrote the store last: copies that ran on",
        f"restore the one that belongs to the other; {ACCEPT}; a new checkpoint with {BASE}; a new table or topic",
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
    """A store's answer at the last start: its lineage and last txid, the checkpoint's txid then, whether to forget the
    store's txids, the run that wrote it, and the txid that all of it had reached. While the answer is unchanged, this
    checkpoint has written nothing there since."""

    lineage: str
    last: int
    txid: int
    forget: bool = False
    run: str = ""
    least: int = -1

    @classmethod
    def of(cls, answer: Remembered, txid: int, forget: bool) -> Joined:
        return cls(answer.lineage, answer.last, txid, forget, answer.run, answer.least)


class Rewinding(NamedTuple):
    """The txid to which a checkpoint is being taken back, and the states that go back with it."""

    to: int
    states: tuple[str, ...]


class Seeded(NamedTuple):
    """A process with another hash seed began the next batch, and ``operation`` reads as if it depends on the seed.
    ``seed``: the PYTHONHASHSEED of that process; "" if it was random, and therefore unknown."""

    operation: str
    seed: str


IN_MEMORY = "in memory"
"""Where the checkpoint is of a cluster without a folder."""


@dataclass(frozen=True)
class CheckpointState:
    """The content of a checkpoint. ``record``: what its first start recorded; None for a new checkpoint. ``committed``:
    the last committed txid. ``begun``, ``decided``, ``seeded`` describe the txid after it. ``rewinding``:
    where it is being taken back, and is not yet."""

    where: str
    topology: str
    record: Mapping[str, Any] | None
    lineage: str
    committed: int = 0
    begun: bool = False
    decided: bool = False
    seeded: Seeded | None = None
    rewinding: Rewinding | None = None

    @classmethod
    def new(cls, where: str, topology: str) -> CheckpointState:
        return cls(where, topology, None, uuid.uuid4().hex)

    @property
    def is_new(self) -> bool:
        return self.record is None

    def find_joined(self, state: str) -> Joined | None:
        record = (self.record or {}).get("states", {}).get(state)
        return None if record is None else Joined(*record)

    def has_written(self, state: str) -> bool:
        """Return whether this checkpoint has written the state. One of an older version does not record it, so it may
        have."""
        record = self.record or {}
        return state in record["states"] if "states" in record else self.committed > record.get("base", 0)


@dataclass(frozen=True)
class Recovery:
    """One start: its facts, and the relation of each state that follows from them."""

    conf: Mapping[str, Any]
    standing: CheckpointState
    txid: int
    answers: Mapping[str, Remembered]
    deciding: Collection[str]

    def relation(self, name: str) -> StorePosition:
        return self._of_new(name) if self.standing.is_new else self._of_settled(name)

    def _of_new(self, name: str) -> StorePosition:
        answer = self.answers[name]
        if answer.highest == 0:
            return StorePosition.NEW
        if BASE in self.conf and self.txid >= answer.highest:
            txids = [other.written for other in self.answers.values() if other.lineage == answer.lineage]
            if answer.lineage and max(txids) - answer.least > 1:
                return self._unless_accepted(name, StorePosition.BEHIND)
            return StorePosition.CONTINUED
        if self._abandons(answer):
            return StorePosition.ABANDONED
        return StorePosition.LOST if answer.lineage or answer.last else StorePosition.UNOWNED

    def _of_settled(self, name: str) -> StorePosition:
        standing, answer = self.standing, self.answers[name]
        if answer.lineage == standing.lineage:
            return self._of_same_lineage(name, answer)
        if self._is_unchanged(name):
            return StorePosition.JOINED
        if standing.has_written(name):
            if answer.lineage:
                return StorePosition.FOREIGN
            renamed = standing.topology != (standing.record or {}).get("topology", standing.topology)
            return self._unless_accepted(name, StorePosition.RENAMED if renamed else StorePosition.GONE)
        if answer.highest == 0 or (not answer.lineage and answer.highest <= self.txid):
            return StorePosition.NEW
        if not answer.lineage:
            return StorePosition.UNOWNED
        if self._abandons(answer):
            return StorePosition.ABANDONED
        return (
            self._unless_accepted(name, StorePosition.FOREIGN) if answer.highest <= self.txid else StorePosition.FOREIGN
        )

    def _of_same_lineage(self, name: str, answer: Remembered) -> StorePosition:
        standing = self.standing
        between = standing.begun and (name not in self.deciding or standing.decided)
        if answer.highest > self.txid + 1 or (answer.written == self.txid + 1 and not between):
            return StorePosition.AHEAD  # a store that has begun a batch was told that the one before is over
        if answer.least < self.txid:
            joined = standing.find_joined(name)
            agreed = joined is not None and joined.least == answer.least and self._is_unchanged(name)
            return StorePosition.JOINED if agreed else self._unless_accepted(name, StorePosition.BEHIND)
        if not self._is_own_run(name):
            return self._unless_accepted(name, StorePosition.CROSSED)
        if answer.written == self.txid:
            return StorePosition.SAME
        other = standing.seeded is not None and name not in self.deciding
        return (
            StorePosition.REORDERED
            if other and self.part(name) not in list_accepted(self.conf)
            else StorePosition.BETWEEN
        )

    def _is_unchanged(self, name: str) -> bool:
        """Return whether store and checkpoint are where the last start has found them."""
        answer, joined = self.answers[name], self.standing.find_joined(name)
        return joined is not None and (answer.lineage, answer.last, self.txid) == joined[:3]

    def _is_own_run(self, name: str) -> bool:
        """Return whether the store was last written by the checkpoint's last run, or not since that run has looked at
        it."""
        answer, joined = self.answers[name], self.standing.find_joined(name)
        run = (self.standing.record or {}).get("run", "")
        if "" in (answer.run, run) or answer.run == run:
            return True  # "": an older version of this library, which keeps none
        return joined is not None and (answer.run, answer.last) == (joined.run, joined.last)

    def _unless_accepted(self, name: str, relation: StorePosition) -> StorePosition:
        return StorePosition.ACCEPTED if self.token(name) in list_accepted(self.conf) else relation

    def token(self, name: str) -> str:
        """Return what accepts one relation once: the state, the txid of its store, that of the checkpoint."""
        return f"{name}@{self.answers[name].least}:{self.txid}"

    def part(self, name: str) -> str:
        """Return the token that accepts a state's part of the batch after the committed one."""
        return f"{name}@{self.txid + 1}:{self.txid}"

    def _abandons(self, answer: Remembered) -> bool:
        return self.conf.get(ABANDON) == answer.lineage and may_be_abandoned(answer)

    @property
    def highest(self) -> int:
        """The txid after which a new checkpoint could continue in all stores."""
        return max((answer.highest for answer in self.answers.values()), default=0)


def list_accepted(conf: Mapping[str, Any]) -> list:
    """Return what the setting accepts."""
    tokens = conf.get(ACCEPT) or []
    return [tokens] if isinstance(tokens, str) else list(tokens)


def may_be_abandoned(answer: Remembered) -> bool:
    return bool(answer.lineage) and answer.valued == 0
