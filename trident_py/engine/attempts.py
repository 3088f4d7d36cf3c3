"""The attempts of a batch: what the loop runs, and the policy that says which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ..checkpoints.metadata_store import MetadataStore
from ..entry_points import load, names
from ..errors import DefinitionError, explain_missing_extra
from ..model.retry import ReadOnlyFor
from ..report.progress import RunningTopology
from ..spouts.coordination import Descriptor
from .poison import RECORDS
from .processors import Excluded
from .program import AttemptOutcome, BatchInfo, Failure, NodeReport, Program

POLICIES = "trident_py.policies"
"""The group of entry points that refer to a `RetryPolicy`. One can be installed."""
Execute = Callable[[BatchInfo, list[Descriptor]], AttemptOutcome]
Kept = dict[str, dict[str, list[list[int]]]]


@dataclass
class Work:
    """The batch at hand: the number of its next attempt, and how many failed. ``seconds``: by phase, of other attempts
    than the one that commits."""

    txid: int
    execute: Execute
    previous: dict | None
    read_only: ReadOnlyFor
    attempt: int = 0
    failures: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


class ChosenTuples(NamedTuple):
    """Which tuples take part in an attempt: the fields of `BatchInfo` with these names."""

    kept: Kept | None = None
    excluded: tuple[Excluded, ...] = ()
    asked: tuple[tuple[str, int, int], ...] = ()


class Attempted(NamedTuple):
    """An attempt: the failure that decides, if any, and the reports."""

    batch: BatchInfo
    failure: Failure | None
    reports: list[NodeReport]


class Attempts(Protocol):
    """Runs the attempts of a component's batches, one at a time."""

    program: Program
    running: RunningTopology

    def attempt(self, work: Work, excluded: tuple[Excluded, ...] = ()) -> Attempted:
        """Run an attempt. It has committed if it has no failure."""

    def dry_attempt(self, work: Work, chosen: ChosenTuples) -> Attempted:
        """Run an attempt that commits nothing. To the states it is one that failed before its commit."""

    def fail(self, work: Work, attempted: Attempted) -> None:
        """Called after a failed attempt. Returns if the batch may be replayed; else raises TopologyError."""

    def replay(self, work: Work, attempted: Attempted) -> None:
        """Called after a failed attempt in place of `fail`: the batch runs again, whatever has failed."""

    def is_last(self, work: Work) -> bool:
        """Return whether a request for a replay comes too late."""

    def tell(self, kind: str, batch: BatchInfo, reason: str) -> None:
        """Report an event of the run."""


class RetryPolicy:
    """Which attempts the batches of a component get: each is replayed until one commits.

    ``store`` is the checkpoint's metadata store.
    """

    def __init__(self, attempts: Attempts, store: MetadataStore) -> None:
        self.attempts = attempts
        self.store = store

    def open(self, txid: int, run: str, touched: bool) -> None:
        """Called at the start, before the first batch, with the last committed txid. ``touched``: a state may hold a
        part of the batch after that txid.

        Raises DefinitionError if an earlier run has excluded tuples from that batch.
        """
        if self.store.get(RECORDS, txid + 1):
            raise DefinitionError(explain_missing_extra(f"txid {txid + 1}, which excludes tuples,", "poison"))

    def begin(self, work: Work) -> None:
        """Begin a batch."""

    def commit(self, work: Work) -> bool:
        """Run the next attempt. Returns whether it committed; raises TopologyError if the batch fails for good."""
        attempted = self.attempts.attempt(work)
        if attempted.failure is not None:
            self.attempts.fail(work, attempted)
        return attempted.failure is None


def make_policy(attempts: Attempts, store: MetadataStore) -> RetryPolicy:
    """Return the policy that is installed, else the plain one. Raises DefinitionError if there are several."""
    installed = names(POLICIES)
    if len(installed) > 1:
        raise DefinitionError(f"two packages decide which attempts a batch gets: {', '.join(installed)}. Remove one")
    make = load("a run", installed[0], POLICIES) if installed else RetryPolicy
    policy: RetryPolicy = make(attempts, store)
    return policy
