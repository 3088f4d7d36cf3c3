"""The record of each event, its fingerprint and status, and the interface of the stores that keep it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...errors import FailedException, StateError, TridentError

NEW, PRODUCED, PROCESSED = "new", "produced", "processed"
SUCCEEDED, REFUSED = "succeeded", "refused"
MOST_BYTES = 700
"""The longest fingerprint in bytes of UTF-8, which a MySQL key can hold."""
TABLE = r"[A-Za-z_][A-Za-z0-9_]{0,50}"
"""What a table of claims, or a prefix of keys, may be called."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A request to become the producer of an event: its fingerprint, and the hash of the whole event."""

    fingerprint: str
    payload: str


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """The store's answer to a claim.

    ``won``: the claim is the caller's, by the first insert or, with ``taken``, from an owner whose lease had expired.
    Otherwise ``status`` is the event's status, ``payload`` the hash of the event that came first, and ``lease`` the
    remaining seconds of the owner's lease (only in status ``new``).
    """

    won: bool
    payload: str
    status: str = NEW
    lease: float = 0.0
    taken: bool = False

    @property
    def expired(self) -> bool:
        """Whether another owner's lease has expired before the event was in Kafka."""
        return not self.won and self.status == NEW and self.lease <= 0


@dataclass(frozen=True, slots=True)
class ClaimEntry:
    """The whole record of one event. Times are seconds since 1970 on the store's clock."""

    fingerprint: str
    payload: str
    status: str
    owner: str
    lease: float
    created: float
    changed: float
    outcome: str | None = None


class ClaimStore(Protocol):
    """Keeps claims, exactly: of all simultaneous claims of one fingerprint, in any processes, one wins.

    Every method may block and may be called by several threads. It raises FailedException while the store is away or
    busy (the operation may have happened or not; repeat it), StateError for any other error. Leases follow the store's
    own clock, so the clocks of the gateways' machines do not matter. A status never goes back.
    """

    threads: int
    """The useful number of simultaneous calls."""

    def claim(
        self, claims: Sequence[Claim], owner: str, lease: float, likely: Collection[str] = ()
    ) -> list[ClaimAnswer]:
        """Return one answer per claim; fingerprints are distinct. ``owner`` is new for each call.

        ``likely``: fingerprints that are probably stored, to be read first. A hint that changes no answer.
        """

    def release(self, fingerprints: Sequence[str], owner: str) -> None:
        """End the leases of claims that this owner still holds: the next resend may take them over at once."""

    def drop(self, fingerprints: Sequence[str], owner: str) -> None:
        """Delete claims that this owner still holds, of events that can never be in Kafka."""

    def produced(self, fingerprints: Sequence[str]) -> None:
        """Set status ``new`` to ``produced``. Ignores events that are further on or unknown."""

    def processed(self, outcomes: Sequence[tuple[str, str]]) -> None:
        """Set (fingerprint, outcome) pairs to ``processed``. The first outcome stands. Ignores unknown events."""

    def get(self, fingerprint: str) -> ClaimEntry | None: ...

    def expire(self, seconds: float) -> int:
        """Delete events unchanged for ``seconds``; returns how many. Returns 0 if the store expires them itself."""

    def close(self) -> None: ...


def store_error(store: str, doing: str, cause: str, passing: bool, check: str) -> TridentError:
    """Return the error of a store whose call has failed. ``check``: what to check if waiting does not help."""
    text = f"the claim store ({store}) could not {doing}: {cause}"
    if passing:
        return FailedException(f"{text}. It is unavailable or busy; try again")
    return StateError(f"{text}. Check {check}")


def by_outcome(outcomes: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the fingerprints of each outcome. Of a repeated fingerprint the first outcome stands."""
    first: dict[str, str] = {}
    for fingerprint, outcome in outcomes:
        first.setdefault(fingerprint, outcome)
    fingerprints: dict[str, list[str]] = {}
    for fingerprint, outcome in first.items():
        fingerprints.setdefault(outcome, []).append(fingerprint)
    return fingerprints
