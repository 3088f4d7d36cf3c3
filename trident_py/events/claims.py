"""What is kept of each event: its fingerprint, and how far it got. What a store must do."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

NEW, PRODUCED, PROCESSED = "new", "produced", "processed"
SUCCEEDED, REFUSED = "succeeded", "refused"
MOST_BYTES = 700
"""The longest fingerprint in UTF-8: what a key of MySQL can hold."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The wish to be the one who produces an event: its fingerprint, and the hash of the whole event."""

    fingerprint: str
    payload: str


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """What the store says to a claim, after it.

    ``mine``: the claim was won, by the first insert or, with ``taken``, from an owner whose lease had run out. Else
    ``status`` tells how far the event got, ``payload`` is the hash of the event that was first, and ``lease`` is the
    rest of the owner's time in seconds (only while the status is ``new``).
    """

    mine: bool
    payload: str
    status: str = NEW
    lease: float = 0.0
    taken: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """Everything that is kept of one event. Times are seconds since 1970 on the store's clock."""

    fingerprint: str
    payload: str
    status: str
    owner: str
    lease: float
    created: float
    changed: float
    outcome: str | None = None


class ClaimStore(Protocol):
    """Where claims are kept. Exact: of all claims of one fingerprint at once, in any processes, one wins.

    Every method may block and may be called by several threads. It raises FailedException while the store is away or
    busy (what was asked may have happened or not; asking again is right), StateError for anything else. The clock of
    leases is the store's own, so the clocks of the gateways' machines do not matter. A status never goes back.
    """

    threads: int
    """How many calls at once are of use."""

    def claim(
        self, claims: Sequence[Claim], owner: str, lease: float, seen: Collection[str] = ()
    ) -> list[ClaimAnswer]:
        """One answer for each claim; fingerprints are distinct. ``owner`` is new for each call.

        ``seen``: fingerprints that are probably known, to be read first. A hint, which changes no answer.
        """
        ...

    def release(self, fingerprints: Sequence[str], owner: str) -> None:
        """Ends the leases of claims that this owner still holds: the next resend may take them over at once."""
        ...

    def drop(self, fingerprints: Sequence[str], owner: str) -> None:
        """Forgets claims that this owner still holds, of events that can never be in Kafka."""
        ...

    def produced(self, fingerprints: Sequence[str]) -> None:
        """From ``new`` to ``produced``. What is further on, or not there, is left alone."""
        ...

    def processed(self, outcomes: Sequence[tuple[str, str]]) -> None:
        """Pairs (fingerprint, outcome): to ``processed``. The first outcome stands; what is not there is left alone."""
        ...

    def get(self, fingerprint: str) -> Entry | None: ...

    def expire(self, seconds: float) -> int:
        """Forgets what has not changed for so long; returns how many. A store that does so itself returns 0."""
        ...

    def close(self) -> None: ...


def by_outcome(outcomes: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """The fingerprints of each outcome; of one that comes twice the first outcome stands."""
    first: dict[str, str] = {}
    for fingerprint, outcome in outcomes:
        first.setdefault(fingerprint, outcome)
    chosen: dict[str, list[str]] = {}
    for fingerprint, outcome in first.items():
        chosen.setdefault(outcome, []).append(fingerprint)
    return chosen
