"""The backing map over Redis: reads when asked, writes everything in the one script of the commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trident_py.errors import StateError
from trident_py.model.canonical import key_of
from trident_py.state import BackingMap, StateType
from trident_py.state.base import Key

from ..location import RedisPlace
from ..writer import RedisWriter
from .storm_codec import KeyFactory, name_of, text_of, value_of


@dataclass(frozen=True)
class MapLayout:
    """How a map lies in its place."""

    place: RedisPlace
    kind: StateType
    factory: KeyFactory
    expire: float

    def names(self, keys: Sequence[Key]) -> list[str]:
        return [name_of(self.factory, key, self.place.hash is None) for key in keys]

    def value(self, name: str, text: bytes | None) -> Any:
        """Return the stored value; None for an absent one. Raises StateError for bytes that this kind of map has not
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
        """Yield every name with its value."""
        for name, text in self.place.scan():
            yield (name,), self.value(name, text)


class RedisBackingMap(BackingMap):
    """The keys and values of one state partition.

    On replay: does nothing special; the map above it compares the txids.
    """

    def __init__(self, layout: MapLayout, writer: RedisWriter) -> None:
        self.layout = layout
        self.writer = writer
        self._keys: dict[str, tuple] = {}

    def begin(self, txid: int | None) -> None:
        """Raise ZombieError for an older driver, attempt or batch, FailedException if Redis is away."""
        self._keys = {}
        self.writer.begin(txid)

    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        names = self.layout.names(keys)
        return [self.layout.value(name, text) for name, text in zip(names, self.writer.read(names), strict=True)]

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        for name, key, value in zip(self.layout.names(keys), keys, vals, strict=True):
            own = key_of(key)
            if self._keys.setdefault(name, own) != own:
                raise StateError(
                    f"{self.layout.place.shown}: {self.layout.factory!r} gives two keys of the batch the name "
                    f"{name!r}, one of them {list(key)!r}. Nothing of the batch is written"
                )
            try:
                self.writer.pending[name] = text_of(self.layout.kind, value)
            except StateError as error:
                raise StateError(f"{self.layout.place.shown}, key {name!r}: {error}") from error

    def commit(self, txid: int | None) -> int:
        """Write all values in one step; return how many."""
        return self.writer.commit(txid, self.layout.expire)

    def discard(self) -> None:
        """Forget what the commit would write."""
        self.writer.discard()

    def rows(self) -> Iterator[tuple[tuple[str], Any]]:
        """Yield every name with its value, as this partition's commit will leave it."""
        pending = dict(self.writer.pending)
        for key, value in self.layout.stored():
            if key[0] not in pending:
                yield key, value
        for name, text in pending.items():
            yield (name,), self.layout.value(name, text)
