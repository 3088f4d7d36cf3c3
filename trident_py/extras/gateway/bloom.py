"""Bloom filters in front of the exact store: they save time and decide nothing.

"No" means that *this process* has not seen the fingerprint since it started; "yes" means probably. Another worker or an
earlier process may have taken an event that is "no" here. So the answer only selects the first query to the store,
whose unique key decides.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence

from ...errors import DefinitionError, explain_missing

try:
    from rbloom import Bloom
except ImportError:  # of the extra `events`
    Bloom = None  # type: ignore[assignment, misc]


class BloomFilter:
    """A set of fingerprints. Finds all that it holds, and wrongly reports a share of ``error_rate`` of the others.

    ``capacity``: the number of different fingerprints at that rate; more raise the rate (``estimated_error``) but lose
    none. The filter is in the memory of one worker and is empty after a restart. Python's hash of text differs between
    processes, so a filter cannot be sent to another one. Threads may share it: each call holds the interpreter's lock.
    """

    def __init__(self, capacity: int, error_rate: float = 0.01) -> None:
        if Bloom is None:
            raise DefinitionError(explain_missing("a Bloom filter", "the package rbloom", "events"))
        if type(capacity) is not int or capacity < 1:
            raise DefinitionError(f"the capacity of a Bloom filter is an integer from 1 on, not {capacity!r}")
        if not 0 < error_rate <= 0.5:
            raise DefinitionError(f"the error rate of a Bloom filter is above 0 and at most 0.5, not {error_rate!r}")
        self.capacity = capacity
        self.error_rate = error_rate
        self._bits = Bloom(capacity, error_rate)
        self._hashes = int(math.log2(1 / error_rate))  # the number of hashes that rbloom uses

    def __repr__(self) -> str:
        return f"BloomFilter(capacity={self.capacity}, error_rate={self.error_rate})"

    def add(self, fingerprint: str) -> None:
        self._bits.add(fingerprint)

    def add_many(self, fingerprints: Sequence[str]) -> None:
        self._bits.update(fingerprints)

    def __contains__(self, fingerprint: str) -> bool:
        return fingerprint in self._bits

    @property
    def bytes(self) -> int:
        """The bytes of memory of its bits."""
        return self._bits.size_in_bits // 8

    @property
    def fill(self) -> float:
        """The share of bits that are set: 0.47 at its capacity. Counts all bits: use it for a metric, not per event."""
        if not self._bits:
            return 0.0
        return 1 - math.exp(-self._hashes * self._bits.approx_items / self._bits.size_in_bits)

    @property
    def estimated_error(self) -> float:
        """The present probability that it reports a fingerprint that it does not hold."""
        return self.fill**self._hashes


class RotatingBloom:
    """Two Bloom filters in rotation, which drop old fingerprints: each one stays for ``seconds`` to twice that.

    ``capacity``: the fingerprints within ``seconds``; the memory is that of two filters. ``seconds`` should not be
    shorter than the store's expiry. ``clock`` returns seconds and never goes back. Threads may share it.
    """

    def __init__(
        self, capacity: int, error_rate: float = 0.01, seconds: float = 86_400,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        if not seconds > 0:
            raise DefinitionError(f"the seconds of a Bloom filter are a number above 0, not {seconds!r}")
        self.capacity, self.error_rate, self.seconds = capacity, error_rate, seconds
        self._clock = clock
        self._turning = threading.Lock()
        self._new = self._old = BloomFilter(capacity, error_rate)
        self._since = clock()

    def __repr__(self) -> str:
        return f"RotatingBloom(capacity={self.capacity}, error_rate={self.error_rate}, seconds={self.seconds})"

    def add(self, fingerprint: str) -> None:
        self._rotate()
        self._new.add(fingerprint)

    def add_many(self, fingerprints: Sequence[str]) -> None:
        self._rotate()
        self._new.add_many(fingerprints)

    def __contains__(self, fingerprint: str) -> bool:
        self._rotate()
        return fingerprint in self._new or fingerprint in self._old

    @property
    def bytes(self) -> int:
        return sum(bloom.bytes for bloom in self._filters())

    @property
    def estimated_error(self) -> float:
        """The probability that either filter reports a fingerprint that neither holds."""
        return 1 - math.prod(1 - bloom.estimated_error for bloom in self._filters())

    def _filters(self) -> Sequence[BloomFilter]:
        return [self._new] if self._new is self._old else [self._new, self._old]

    def _rotate(self) -> None:
        """Start a new filter when the present one is ``seconds`` old. Contents twice as old have expired."""
        if self._clock() - self._since < self.seconds:
            return
        with self._turning:
            now = self._clock()
            age = now - self._since
            if age >= self.seconds:  # otherwise another thread has done it
                fresh = BloomFilter(self.capacity, self.error_rate)
                self._old = self._new if age < 2 * self.seconds else fresh
                self._new, self._since = fresh, now
