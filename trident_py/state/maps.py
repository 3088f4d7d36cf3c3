"""The txid logic of map states, written once over any BackingMap.

A map shares no object that can change: updaters and readers get copies of what the backing map returns (`copies.py`),
and the backing map gets copies of what they give. The lists of a caller's keys may change after the call.

The table in docs/semantics.md says what each map does with a stored value, the running txid and a replay.
Source in Storm: NonTransactionalMap, TransactionalMap, OpaqueMap, CachedBatchReadsMap, SnapshottableMap.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from itertools import repeat
from typing import Any

from ..engine.phases import phase
from ..errors import StateError
from ..model.canonical import keys_of
from .base import BackingMap, Key, MapState, Snapshottable, StateType, ValueUpdater
from .copies import copy_value, copy_values
from .keys import ColumnKeys
from .roles import CombinesInStore
from .updates import Replaces, apply, combination_of
from .values import OpaqueValue, TransactionalValue, is_behind

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
        """Record a write. ``vals`` None: only the store knows the values."""
        self._puts.append((keys if isinstance(keys, ColumnKeys) else list(map(tuple, keys)), vals))

    @property
    def anything(self) -> bool:
        return bool(self._puts or self._values)

    def read(self, backing: BackingMap, keys: Sequence[Key]) -> tuple[list[Any], list[bool] | None]:
        """Return the values, and for each whether this commit wrote it (None: it has written nothing yet)."""
        with phase("state read"):
            stored = backing.multiGet(keys)
        if len(stored) != len(keys):
            raise StateError(f"{backing!r} answered {len(stored)} values for {len(keys)} keys")
        if not self.anything:
            return stored, None
        for put_keys, vals in self._puts:
            values = backing.multiGet(put_keys) if vals is None else vals
            self._values.update(zip(keys_of(put_keys), values, strict=True))
        self._puts = []
        names = keys_of(keys)
        is_new = [name in self._values for name in names]
        return [self._values[n] if new else old for n, new, old in zip(names, is_new, stored, strict=True)], is_new


class _BackedMap(MapState):
    """The base of the three maps: an update is made by the store if it can combine, else by the map."""

    txid: int | None = None

    def __init__(self, backing: BackingMap) -> None:
        self.backing = backing

    @classmethod
    def build(cls, backing: BackingMap) -> MapState:
        """Build as Storm's constructor does."""
        return cls(backing)

    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        return list(copy_values(self._read(keys)))

    def multiUpdate(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater]) -> list[Any]:
        if len(keys) > 0 and isinstance(self.backing, CombinesInStore) and self._may_combine():
            combination = combination_of(updaters)
            with phase("state read and write"):
                news = None if combination is None else self.backing.multiCombine(self.txid, keys, combination)
            if news is not None:
                self._combine_keys(keys)
                return news
        return self._update(keys, updaters)

    @abstractmethod
    def _read(self, keys: Sequence[Key]) -> list[Any]:
        """Return the values that hold for this commit, or outside of one, the current ones."""

    @abstractmethod
    def _update(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater]) -> list[Any]:
        """Read the stored values, updates them under the rules of this map, and write them."""

    def _may_combine(self) -> bool:
        """Return whether the store's own rules would give the result of this map's."""
        return True

    def _combine_keys(self, keys: Sequence[Key]) -> None:
        """Called after the store has updated these keys."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.backing!r})"


class _TxidMap(_BackedMap):
    """The base of the transactional and the opaque map: the running txid and the writes of this commit."""

    def __init__(self, backing: BackingMap) -> None:
        super().__init__(backing)
        self._written = _Written()

    def beginCommit(self, txid: int | None) -> None:
        self.txid = txid
        self._written.reset()

    def commit(self, txid: int | None) -> None:
        self.txid = None
        self._written.reset()

    def _may_combine(self) -> bool:
        """Return whether this is the first update of a commit with a txid: the store would take a second one for a
        replay."""
        return self.txid is not None and not self._written.anything

    def _combine_keys(self, keys: Sequence[Key]) -> None:
        self._written.add(keys, None)

    def _put(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        with phase("state write"):
            self.backing.multiPut(keys, vals)
        self._written.add(keys, vals)


class NonTransactionalMap(_BackedMap):
    """Keeps plain values.

    On replay: every update is applied again, so a replayed batch counts twice.
    """

    def _read(self, keys: Sequence[Key]) -> list[Any]:
        return self.backing.multiGet(keys)

    def _update(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater]) -> list[Any]:
        with phase("state read"):
            olds = self.backing.multiGet(keys)
        news = apply(updaters, olds)
        with phase("state write"):
            self.backing.multiPut(keys, copy_values(news))
        return news

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        with phase("state write"):
            self.backing.multiPut(keys, copy_values(vals))

    def beginCommit(self, txid: int | None) -> None:
        """Do nothing: a plain value has no txid."""

    def commit(self, txid: int | None) -> None:
        """Do nothing: a plain value has no txid."""


class TransactionalMap(_TxidMap):
    """Keeps each value with the txid that wrote it. A replayed batch must have the same content.

    On replay: a key that the batch has already written keeps its value, its updater is not called.

    Raises ZombieError for a txid older than the stored one (Storm applies it; see docs/differences.md).
    """

    def _read(self, keys: Sequence[Key]) -> list[Any]:
        stored, _ = self._written.read(self.backing, keys)
        return [None if value is None else value[1] for value in stored]

    def _update(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater]) -> list[Any]:
        stored, is_new = self._written.read(self.backing, keys)
        skipped = self._skip(keys, stored, is_new)
        if not skipped:
            news = apply(updaters, [None if value is None else value[1] for value in stored])
            self._store(keys, news)
            return news
        changed = [i for i in range(len(stored)) if i not in skipped]
        olds = [None if stored[i] is None else stored[i][1] for i in changed]
        news = apply([updaters[i] for i in changed], olds)
        if changed:
            self._store([keys[i] for i in changed], news)
        by_index = dict(zip(changed, news, strict=True))
        return [by_index[i] if i in by_index else copy_value(stored[i][1]) for i in range(len(stored))]

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        self._store(keys, vals)

    def _store(self, keys: Sequence[Key], news: Sequence[Any]) -> None:
        if len(keys) > 0:
            self._put(keys, list(map(_transactional, zip(repeat(self.txid), copy_values(news)))))

    def _skip(self, keys: Sequence[Key], stored: list[Any], is_new: list[bool] | None) -> set[int]:
        """Return the positions of keys that this batch wrote in an earlier attempt."""
        txid = self.txid
        if txid is None:
            return set()
        skipped = set()
        for i, value in enumerate(stored):
            if value is None or value[0] is None or value[0] < txid or (is_new is not None and is_new[i]):
                continue
            if value[0] > txid:
                raise is_behind(txid, value[0], f"key {list(keys[i])!r}")
            skipped.add(i)
        return skipped


class OpaqueMap(_TxidMap):
    """Keeps each value with its txid and the previous value. Exact even if a replayed batch has other content.

    On replay: a key starts again from the value before the batch. A key that only the failed attempt touched
    keeps that attempt's value (Storm's rule, S12).

    Raises ZombieError for a txid older than the stored one.
    """

    def _read(self, keys: Sequence[Key]) -> list[Any]:
        return self._olds(*self._written.read(self.backing, keys))

    def _update(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater]) -> list[Any]:
        stored, is_new = self._written.read(self.backing, keys)
        olds = self._olds(stored, is_new)
        news = apply(updaters, olds)
        kept = copy_values(news)
        if is_new is None:
            self._put(keys, list(map(_opaque, zip(repeat(self.txid), kept, olds))))
        else:
            self._put(keys, [
                OpaqueValue(self.txid, new) if old is None else old.update(self.txid, new)
                for old, new in zip(stored, kept, strict=True)
            ])  # fmt: skip
        return news

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        self.multiUpdate(keys, Replaces(vals))

    def _olds(self, stored: list[Any], is_new: list[bool] | None) -> list[Any]:
        """Return the values to update: those before the batch, or those that this commit has written."""
        txid = self.txid
        if is_new is not None:
            return [
                None if value is None else value.curr if new else value.get(txid)
                for value, new in zip(stored, is_new, strict=True)
            ]
        if txid is None:
            return [None if value is None else value[1] for value in stored]
        return [
            None if value is None
            else value[1] if value[0] is not None and value[0] < txid
            else value.get(txid)
            for value in stored
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


MAPS: dict[StateType, Any] = {
    StateType.NON_TRANSACTIONAL: NonTransactionalMap,
    StateType.TRANSACTIONAL: TransactionalMap,
    StateType.OPAQUE: OpaqueMap,
}
"""The map of each kind; `build` makes one over a backing map."""
