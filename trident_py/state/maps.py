"""The txid logic of map states, written once over any BackingMap.

The table in docs/semantics.md says what each map does with a stored value, the running txid and a replay.
Source in Storm: NonTransactionalMap, TransactionalMap, OpaqueMap, CachedBatchReadsMap, SnapshottableMap.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import repeat
from typing import Any

from ..canonical import key_of
from ..errors import StateError
from .base import BackingMap, Key, MapState, Snapshottable, ValueUpdater
from .roles import CombinesInStore
from .updates import Replaces, applied, combination_of
from .values import OpaqueValue, TransactionalValue, behind

_transactional = partial(tuple.__new__, TransactionalValue)
_opaque = partial(tuple.__new__, OpaqueValue)


class _Written:
    """The writes of the running commit, which override what the backing map returns.

    The lookup table is built only when the same commit reads again.
    """

    def __init__(self) -> None:
        self._puts: list[tuple[Sequence[Key], Sequence[Any] | None]] = []
        self._values: dict[tuple, Any] = {}

    def reset(self) -> None:
        self._puts = []
        self._values = {}

    def add(self, keys: Sequence[Key], vals: Sequence[Any] | None) -> None:
        """Records a write. ``vals`` None: only the store knows the values."""
        self._puts.append((keys, vals))

    @property
    def anything(self) -> bool:
        return bool(self._puts or self._values)

    def read(self, backing: BackingMap, keys: Sequence[Key]) -> tuple[list[Any], list[bool] | None]:
        """Returns the values, and for each whether this commit wrote it (None: it has written nothing yet)."""
        found = backing.multiGet(keys)
        if len(found) != len(keys):
            raise StateError(f"{backing!r} answered {len(found)} values for {len(keys)} keys")
        if not self.anything:
            return found, None
        for put_keys, known in self._puts:
            vals = backing.multiGet(put_keys) if known is None else known
            self._values.update(zip(map(key_of, put_keys), vals, strict=True))
        self._puts = []
        names = [key_of(key) for key in keys]
        mine = [name in self._values for name in names]
        return [self._values[n] if own else v for n, own, v in zip(names, mine, found, strict=True)], mine


class _BackedMap(MapState):
    """The base of the three maps: the backing map, and combining in the store."""

    def __init__(self, backing: BackingMap) -> None:
        self.backing = backing

    @classmethod
    def build(cls, backing: BackingMap) -> MapState:
        """Storm's constructor."""
        return cls(backing)

    def _combined(
        self, txid: int | None, keys: Sequence[Key], updaters: Sequence[ValueUpdater]
    ) -> list[Any] | None:
        """Returns the new values if the store combines by itself and the update fits; None if it did nothing."""
        if len(keys) == 0 or not isinstance(self.backing, CombinesInStore):
            return None
        combination = combination_of(updaters)
        return None if combination is None else self.backing.multiCombine(txid, keys, combination)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.backing!r})"


class _TxidMap(_BackedMap):
    """The base of the transactional and the opaque map: the running txid and the writes of this commit."""

    def __init__(self, backing: BackingMap) -> None:
        super().__init__(backing)
        self.txid: int | None = None
        self._written = _Written()

    def beginCommit(self, txid: int | None) -> None:
        self.txid = txid
        self._written.reset()

    def commit(self, txid: int | None) -> None:
        self.txid = None
        self._written.reset()

    def _in_store(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater]) -> list[Any] | None:
        """Combines in the store, under the txid's rules, unless this commit has written already; else None."""
        if self.txid is None or self._written.anything:
            return None
        news = self._combined(self.txid, keys, updaters)
        if news is not None:
            self._written.add(keys, None)
        return news

    def _put(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        self.backing.multiPut(keys, vals)
        self._written.add(keys, vals)


class NonTransactionalMap(_BackedMap):
    """Keeps plain values.

    On replay: every update is applied again, so a replayed batch counts twice.
    """

    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        return self.backing.multiGet(keys)

    def multiUpdate(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater]) -> list[Any]:
        combined = self._combined(None, keys, updaters)
        if combined is not None:
            return combined
        news = applied(updaters, self.backing.multiGet(keys))
        self.backing.multiPut(keys, news)
        return news

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        self.backing.multiPut(keys, vals)

    def beginCommit(self, txid: int | None) -> None:
        """Does nothing: a plain value has no txid."""

    def commit(self, txid: int | None) -> None:
        """Does nothing: a plain value has no txid."""


class TransactionalMap(_TxidMap):
    """Keeps each value with the txid that wrote it. A replayed batch must have the same content.

    On replay: a key that the batch has already written keeps its value, its updater is not called.

    Raises ZombieError for a txid older than the stored one (Storm applies it; see docs/differences.md).
    """

    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        found, _ = self._written.read(self.backing, keys)
        return [None if value is None else value[1] for value in found]

    def multiUpdate(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater]) -> list[Any]:
        combined = self._in_store(keys, updaters)
        if combined is not None:
            return combined
        found, mine = self._written.read(self.backing, keys)
        skipped = self._skipped(keys, found, mine)
        if not skipped:
            news = applied(updaters, [None if value is None else value[1] for value in found])
            self._store(keys, news)
            return news
        changed = [i for i in range(len(found)) if i not in skipped]
        olds = [None if found[i] is None else found[i][1] for i in changed]
        news = applied([updaters[i] for i in changed], olds)
        if changed:
            self._store([keys[i] for i in changed], news)
        by_index = dict(zip(changed, news, strict=True))
        return [by_index[i] if i in by_index else found[i][1] for i in range(len(found))]

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        self._store(keys, vals)

    def _store(self, keys: Sequence[Key], news: Sequence[Any]) -> None:
        if len(keys) > 0:
            self._put(keys, list(map(_transactional, zip(repeat(self.txid), news))))

    def _skipped(self, keys: Sequence[Key], found: list[Any], mine: list[bool] | None) -> set[int]:
        """Returns the positions of keys that this batch wrote in an earlier attempt."""
        txid = self.txid
        if txid is None:
            return set()
        skipped = set()
        for i, value in enumerate(found):
            if value is None or value[0] is None or value[0] < txid or (mine is not None and mine[i]):
                continue
            if value[0] > txid:
                raise behind(txid, value[0], f"key {list(keys[i])!r}")
            skipped.add(i)
        return skipped


class OpaqueMap(_TxidMap):
    """Keeps each value with its txid and the previous value. Exact even if a replayed batch has other content.

    On replay: a key starts again from the value before the batch. A key that only the failed attempt touched
    keeps that attempt's value (Storm's rule, S12).

    Raises ZombieError for a txid older than the stored one.
    """

    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        return self._olds(*self._written.read(self.backing, keys))

    def multiUpdate(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater]) -> list[Any]:
        combined = self._in_store(keys, updaters)
        if combined is not None:
            return combined
        found, mine = self._written.read(self.backing, keys)
        olds = self._olds(found, mine)
        news = applied(updaters, olds)
        if mine is None:
            self._put(keys, list(map(_opaque, zip(repeat(self.txid), news, olds))))
        else:
            self._put(keys, [
                OpaqueValue(self.txid, new) if old is None else old.update(self.txid, new)
                for old, new in zip(found, news, strict=True)
            ])  # fmt: skip
        return news

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        self.multiUpdate(keys, Replaces(vals))

    def _olds(self, found: list[Any], mine: list[bool] | None) -> list[Any]:
        """Returns the values to update: those before the batch, or those that this commit has written."""
        txid = self.txid
        if mine is not None:
            return [
                None if value is None else value.curr if own else value.get(txid)
                for value, own in zip(found, mine, strict=True)
            ]
        if txid is None:
            return [None if value is None else value[1] for value in found]
        return [
            None if value is None
            else value[1] if value[0] is not None and value[0] < txid
            else value.get(txid)
            for value in found
        ]  # fmt: skip


class SnapshottableMap(Snapshottable, MapState):
    """A map that also serves one value, under a fixed key.

    On replay: as the map it delegates to.
    """

    def __init__(self, delegate: MapState, snapshotKey: Key) -> None:
        self.delegate = delegate
        self.snapshotKey = [list(snapshotKey)]

    def get(self) -> Any:
        return self.delegate.multiGet(self.snapshotKey)[0]

    def update(self, updater: ValueUpdater) -> Any:
        return self.delegate.multiUpdate(self.snapshotKey, [updater])[0]

    def set(self, value: Any) -> None:
        self.delegate.multiPut(self.snapshotKey, [value])

    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        return self.delegate.multiGet(keys)

    def multiUpdate(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater]) -> list[Any]:
        return self.delegate.multiUpdate(keys, updaters)

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        self.delegate.multiPut(keys, vals)

    def beginCommit(self, txid: int | None) -> None:
        self.delegate.beginCommit(txid)

    def commit(self, txid: int | None) -> Any:
        return self.delegate.commit(txid)
