"""The backing map over Redis: reads when asked, writes everything in the one script of the commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trident_py.canonical import key_of
from trident_py.errors import StateError
from trident_py.state import BackingMap, StateType
from trident_py.state.base import Key

from ..ledger import RedisFence
from ..place import RedisPlace
from ..scripts import COMMIT, DONE
from .texts import KeyFactory, name_of, text_of, value_of

MOST = 400_000


@dataclass(frozen=True)
class Layout:
    """How a map lies in its place."""

    place: RedisPlace
    kind: StateType
    factory: KeyFactory
    expire: float

    def names(self, keys: Sequence[Key]) -> list[str]:
        return [name_of(self.factory, key, self.place.hash is None) for key in keys]

    def value(self, name: str, text: bytes | None) -> Any:
        """The stored value; None for an absent one. Raises StateError for bytes that this kind of map has not
        written."""
        if text is None:
            return None
        try:
            return value_of(self.kind, text)
        except (StateError, TypeError, ValueError) as error:
            raise StateError(
                f"{self.place.shown}, key {name!r}: {error}. The state is {self.kind.value}; give it the kind that the "
                "values were written with, or another place"
            ) from error

    def stored(self) -> Iterator[tuple[tuple[str], Any]]:
        """Yields every name with its value."""
        for name, text in self.place.scanned():
            yield (name,), self.value(name, text)


class RedisBackingMap(BackingMap):
    """The keys and values of one state partition.

    On replay: does nothing special; the map above it compares the txids.
    """

    def __init__(self, layout: Layout, fence: RedisFence | None, partition: int) -> None:
        self.layout = layout
        self.fence = fence
        self.partition = partition
        self._pending: dict[str, bytes] = {}
        self._keys: dict[str, tuple] = {}

    @property
    def pending(self) -> int:
        """How many values the commit will write."""
        return len(self._pending)

    def begin(self, txid: int | None) -> None:
        """Raises ZombieError for an older driver, attempt or batch, FailedException if Redis is away."""
        self.discard()
        if self.fence is not None:
            self.fence.begins(self.layout.place, txid)

    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        names = self.layout.names(keys)
        texts = self.layout.place.read(names) if names else []
        if self._pending:
            texts = [self._pending.get(name, text) for name, text in zip(names, texts, strict=True)]
        return [self.layout.value(name, text) for name, text in zip(names, texts, strict=True)]

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        for name, key, value in zip(self.layout.names(keys), keys, vals, strict=True):
            own = key_of(key)
            if self._keys.setdefault(name, own) != own:
                raise StateError(
                    f"{self.layout.place.shown}: {self.layout.factory!r} gives two keys of the batch the name "
                    f"{name!r}, one of them {list(key)!r}. Nothing of the batch is written"
                )
            try:
                self._pending[name] = text_of(self.layout.kind, value)
            except StateError as error:
                raise StateError(f"{self.layout.place.shown}, key {name!r}: {error}") from error

    def commit(self, txid: int | None) -> None:
        """Writes all values and the partition's mark in one step, in which the fence is checked again."""
        place, fence = self.layout.place, self.fence
        if len(self._pending) > MOST:
            raise StateError(
                f"{place.shown}: partition {self.partition} of batch {txid} changes {len(self._pending):,} keys, and "
                f"one step of Redis takes {MOST:,}. Give the state more partitions, or make the batches smaller"
            )
        if fence is not None or self._pending:
            keys, values = self._keys_and_values(fence)
            own = ["", "", "", 0] if fence is None else [fence.generation, fence.lineage, txid or "", fence.attempt]
            expire = int(self.layout.expire * 1000) or ""
            arguments = [*own, self.partition, expire, *values]
            answer = place.server.run_until_answered(COMMIT, keys, arguments, f"commit to {place.what}")
            if answer[0] != DONE:
                assert fence is not None
                fence.refuse(answer, txid)
        self.discard()

    def _keys_and_values(self, fence: RedisFence | None) -> tuple[list[str], list[Any]]:
        place, pending = self.layout.place, self._pending
        keys = ["", ""] if fence is None else fence.keys(place)
        if place.hash is None:
            return [*keys, *pending], ["strings", *pending.values()]
        return [*keys, place.hash], ["hash", *(part for pair in pending.items() for part in pair)]

    def discard(self) -> None:
        """Forgets what the commit would write."""
        self._pending, self._keys = {}, {}

    def rows(self) -> Iterator[tuple[tuple[str], Any]]:
        return self.layout.stored()
