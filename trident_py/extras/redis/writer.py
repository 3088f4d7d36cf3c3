"""What one partition of a state writes in a batch: collected, then written in the one script of its commit."""

from __future__ import annotations

from typing import Any

from states.ledger.fence import LedgerRow

from ...errors import DefinitionError, StateError
from .ledger import COMMIT, MISSING, RedisFence, as_arguments, mark
from .location import RedisPlace

MOST = 400_000


def check_expiry(seconds: Any) -> None:
    """Raise DefinitionError unless it is a number of seconds, 0 for never; Redis counts in milliseconds."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not (seconds == 0 or 0.001 <= seconds < 1e9):
        raise DefinitionError(
            f"expireIntervalSec must be a number of seconds, at least 0.001, or 0 for never; got {seconds!r}"
        )


class RedisWriter:
    """The names and bytes that the commit will write. ``fence`` None: no cluster runs the state (a unit test)."""

    def __init__(self, place: RedisPlace, fence: RedisFence | None, partition: int) -> None:
        self.place = place
        self.fence = fence
        self.partition = partition
        self.pending: dict[str, bytes] = {}
        self._row: LedgerRow | None = None

    def begin(self, txid: int | None) -> None:
        """Raise ZombieError for an older driver, attempt or batch, FailedException if Redis is away."""
        self.discard()
        if self.fence is not None:
            self._row = self.fence.begins(self.place, txid)

    def read(self, names: list[str]) -> list[bytes | None]:
        """Return the bytes in the order of the names, pending ones included; None for an absent one."""
        texts = self.place.read(names) if names else []
        if not self.pending:
            return texts
        return [self.pending.get(name, text) for name, text in zip(names, texts, strict=True)]

    def commit(self, txid: int | None, expire: float) -> int:
        """Write everything and the partition's mark in one step, in which the fence is checked again; return how many
        values. ``expire``: in seconds, 0 for never."""
        place, fence, many = self.place, self.fence, len(self.pending)
        if many > MOST:
            raise StateError(
                f"{place.shown}: partition {self.partition} of batch {txid} changes {many:,} keys, and one step of "
                f"Redis takes {MOST:,}. Give the state more partitions, or make the batches smaller"
            )
        if fence is not None or self.pending:
            while (done := self._try_commit(txid, int(expire * 1000) or "")) != 1:
                assert fence is not None
                if done == MISSING:
                    fence.store(place).miss()
                self._row = fence.begins(place, txid)  # the ledger has changed since: mostly, it refuses the task now
        self.discard()
        return many

    def _try_commit(self, txid: int | None, expire: int | str) -> int:
        """Return 1 if the commit was made: only if the row is still the one that has admitted the task; MISSING if the
        state's values are."""
        place, fence = self.place, self.fence
        keys = ["", ""] if fence is None else fence.store(place).keys
        attempt = 0 if fence is None else fence.attempt
        own = [*as_arguments(self._row), txid or "", self.partition, mark(txid, attempt), expire]
        more, values = self._values()
        doing = f"commit to {place.what}"
        return int(place.server.run_until_answered(COMMIT, [*keys, *more], [*own, *values], doing))

    def _values(self) -> tuple[list[str], list[str | bytes]]:
        """Further keys and arguments of the script."""
        if self.place.hash is None:
            return list(self.pending), ["strings", *self.pending.values()]
        return [self.place.hash], ["hash", *(part for pair in self.pending.items() for part in pair)]

    def discard(self) -> None:
        """Forget what the commit would write."""
        self.pending = {}
