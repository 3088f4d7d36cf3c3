"""Layers between a map and its store: a cache, and calls in chunks. Storm: CachedMap, MicroBatchIBackingMap."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import DefinitionError
from ..model.canonical import keys_of
from .base import BackingMap, Key
from .copies import copy_values


class CachedMap(BackingMap):
    """Caches the last ``size`` keys that were read or written, absent ones too; evicts the least recently used.

    The store is written first, and a failed write removes its keys: the cache is never ahead of the store (Storm fills
    the cache first, S17), and shares no object with its callers. `multiGet` calls the delegate even if all keys are
    cached. Only for stores with one writer: the cache does not see other writes.
    """

    def __init__(self, delegate: BackingMap, size: int) -> None:
        if size < 1:
            raise DefinitionError(f"CachedMap: the size must be at least 1, got {size}")
        self.delegate = delegate
        self.size = size
        self._cache: OrderedDict[tuple, Any] = OrderedDict()

    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        names = keys_of(keys)
        by_name = {name: self._cache[name] for name in names if name in self._cache}
        missing = [(name, key) for name, key in zip(names, keys, strict=True) if name not in by_name]
        stored = self.delegate.multiGet([key for _, key in missing])
        by_name.update((name, value) for (name, _), value in zip(missing, stored, strict=True))
        values = [by_name[name] for name in names]
        self._remember(names, values)
        return list(copy_values(values))

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        names = keys_of(keys)
        try:
            self.delegate.multiPut(keys, vals)
        except BaseException:
            for name in names:
                self._cache.pop(name, None)
            raise
        self._remember(names, copy_values(vals))

    def forget(self) -> None:
        """Empty the cache; for a store whose transaction was rolled back."""
        self._cache.clear()

    def _remember(self, names: Sequence[tuple], vals: Sequence[Any]) -> None:
        for name, value in zip(names, vals, strict=True):
            self._cache[name] = value
            self._cache.move_to_end(name)
        while len(self._cache) > self.size:
            self._cache.popitem(last=False)


class CachedBatchReadsMap:
    """For maps of your own: remembers what the running commit has written, which the store may not show yet.

    Call `reset` in beginCommit and in commit. OpaqueMap and TransactionalMap do without it.
    """

    class RetVal(NamedTuple):
        """A value, and whether the running commit has written it."""

        val: Any
        cached: bool

    def __init__(self, delegate: BackingMap) -> None:
        self.delegate = delegate
        self._written: dict[tuple, Any] = {}

    def reset(self) -> None:
        self._written = {}

    def multiGet(self, keys: Sequence[Key]) -> list[CachedBatchReadsMap.RetVal]:
        """Ask the delegate for all keys; what this commit has written overrides its answers."""
        names = keys_of(keys)
        stored = self.delegate.multiGet(keys)
        found = [name in self._written for name in names]
        values = [self._written[name] if new else old for name, new, old in zip(names, found, stored, strict=True)]
        return [self.RetVal(value, new) for value, new in zip(copy_values(values), found, strict=True)]

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        self.delegate.multiPut(keys, vals)
        self._written.update(zip(keys_of(keys), copy_values(vals), strict=True))


class MicroBatchIBackingMap(BackingMap):
    """Splits long calls into chunks; 0 means whole. If a put fails midway, the earlier chunks stay written."""

    def __init__(
        self, delegate: BackingMap, maxMultiGetBatchSize: int = 0, maxMultiPutBatchSize: int = 0
    ) -> None:
        if min(maxMultiGetBatchSize, maxMultiPutBatchSize) < 0:
            raise DefinitionError(
                f"{type(self).__name__}: a chunk of {min(maxMultiGetBatchSize, maxMultiPutBatchSize)} keys is none; "
                "use a number of at least 1, or 0 for all keys in one call"
            )
        self.delegate = delegate
        self.maxMultiGetBatchSize = maxMultiGetBatchSize
        self.maxMultiPutBatchSize = maxMultiPutBatchSize

    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        step = self.maxMultiGetBatchSize or max(len(keys), 1)
        values: list[Any] = []
        for start in range(0, len(keys), step):
            values.extend(self.delegate.multiGet(keys[start : start + step]))
        return values

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        step = self.maxMultiPutBatchSize or max(len(keys), 1)
        for start in range(0, len(keys), step):
            self.delegate.multiPut(keys[start : start + step], vals[start : start + step])
