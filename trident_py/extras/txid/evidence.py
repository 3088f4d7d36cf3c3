"""What the log of a component and the stores of its states remember of txids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class NextStart:
    """What the next start will do. ``kind``: a word of `trident_py.extras.txid.next_start`. ``sentence`` begins with a
    verb: the next start ..."""

    kind: str
    sentence: str


@dataclass(frozen=True)
class StateEvidence:
    """What the store of one state remembers. ``complete``: the last complete txid, None if it keeps none or does not
    tell. ``part``: a later one that has left data; ``begun``: a later one of which ``attempt`` was let in, and left
    none. ``decided``: its receipts of the decided batch are in the log. ``error``: why the store does not tell;
    ``away``: it may tell later."""

    state: str
    place: str = ""
    complete: int | None = None
    part: int | None = None
    begun: int | None = None
    attempt: int | None = None
    decided: bool = False
    generation: int | None = None
    lineage: str = ""
    owner: str = ""
    error: str = ""
    away: bool = False

    def of(self, txid: int) -> str:
        """Return what it has of a batch, in words."""
        if self.error:
            return "does not tell"
        if self.complete is None:
            return "keeps no txids"
        if txid <= self.complete:
            return "has it complete"
        if txid == self.part:
            return "has a part of it"
        let_in = f"has let in attempt {self.attempt}, and " if txid == self.begun and self.attempt is not None else ""
        return f"{let_in}has nothing of it"


@dataclass(frozen=True)
class ComponentEvidence:
    """What is remembered of one component. ``committed``: the last txid that is over, ``base`` that before the
    first; ``begun``: the one after it, if it has begun; ``decided``: the attempt that decided it. ``running``: whether
    the driver's process is there. ``states``: None if only the checkpoint is known. ``kept``: when the batches were
    over to which it may go back, in seconds since 1970; None if the log does not tell."""

    topology: str
    component: str
    place: str
    next: NextStart
    committed: int = 0
    base: int = 0
    begun: int | None = None
    decided: int | None = None
    driver: Mapping[str, Any] = field(default_factory=dict)
    running: bool | None = None
    lineage: str = ""
    states: tuple[StateEvidence, ...] | None = None
    kept: Mapping[int, int | None] = field(default_factory=dict)
