"""Stores for windows: Storm's interface of keys and values, the one in memory, and what every store must do for a
window (`Backing`).

Source in Storm: trident.windowing.WindowsStore and InMemoryWindowsStore.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from ..errors import DefinitionError, StateError, ZombieError
from .triggers import Head

KEY_SEPARATOR = "|"


class Entry(NamedTuple):
    """A key and its value; neither may be None."""

    key: str
    value: Any

    @classmethod
    def of(cls, key: str, value: Any) -> Entry:
        for name, given in (("key", key), ("value", value)):
            if given is None:
                raise DefinitionError(f"{name} argument can not be null")
        return cls(key, value)


class WindowsStore:
    """Keys and values of windows. A value is picklable. Used by one task for each partition, where its tuples are.

    A window writes the blocks of a batch first and then, by one `put`, the list of the blocks that count. So a `put`
    must be whole or not happen; nothing else need be atomic.
    """

    KEY_SEPARATOR: ClassVar[str] = KEY_SEPARATOR
    Entry: ClassVar[Any] = Entry

    @abstractmethod
    def get(self, key: str | Sequence[str]) -> Any:
        """Return the value of a key, None if there is none; of a list of keys, the list of their values."""
        raise NotImplementedError

    @abstractmethod
    def getAllKeys(self) -> Iterable[str]:
        raise NotImplementedError

    @abstractmethod
    def put(self, key: str, value: Any) -> None:
        raise NotImplementedError

    @abstractmethod
    def putAll(self, entries: Sequence[tuple[str, Any]]) -> None:
        raise NotImplementedError

    @abstractmethod
    def remove(self, key: str) -> None:
        raise NotImplementedError

    @abstractmethod
    def removeAll(self, keys: Sequence[str]) -> None:
        raise NotImplementedError

    def shutdown(self) -> None:
        """Called when the run ends in this process. Not guaranteed on Spark."""


class InMemoryWindowsStore(WindowsStore):
    """A store in the memory of the driver process, for data that may be lost with it. Called from any thread."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._stamps: dict[str, tuple[str, tuple[int, int]]] = {}
        self._lock = threading.Lock()

    def get(self, key: str | Sequence[str]) -> Any:
        with self._lock:
            return self._values.get(key) if isinstance(key, str) else [self._values.get(one) for one in key]

    def getAllKeys(self) -> list[str]:
        with self._lock:
            return list(self._values)

    def put(self, key: str, value: Any) -> None:
        self.putAll([Entry.of(key, value)])

    def putAll(self, entries: Sequence[tuple[str, Any]]) -> None:
        checked = [Entry.of(*entry) for entry in entries]
        with self._lock:
            self._values.update(checked)

    def put_newer(self, key: str, value: Any, lineage: str, stamp: tuple[int, int]) -> None:
        """Put. Raises ZombieError if a later batch, or a later attempt (``stamp``), of the same checkpoint has put
        this key."""
        with self._lock:
            last = self._stamps.get(key)
            if last is not None and last[0] == lineage and stamp < last[1]:
                raise ZombieError(
                    f"attempt {stamp[1]} of batch {stamp[0]} was given up: attempt {last[1][1]} of batch {last[1][0]} "
                    "has written this window; nothing of the older one is written"
                )
            self._stamps[key] = (lineage, stamp)
            self._values[key] = value

    def lineage_of(self, key: str) -> str:
        """Return the checkpoint for which the key was put last; "" if it was not put by `put_newer`."""
        with self._lock:
            return self._stamps.get(key, ("",))[0]

    def remove(self, key: str) -> None:
        self.removeAll([key])

    def removeAll(self, keys: Sequence[str]) -> None:
        with self._lock:
            for key in keys:
                self._values.pop(key, None)


def require_same(where: str, noted: str, now: str) -> None:
    """Raise StateError if the store has the tuples of a window of another definition: it has dropped those that its
    own windows do not need, and numbers them by its own slide."""
    if noted != now:
        raise StateError(
            f"{where} has the tuples of a window of {noted}, and the topology has one of {now}, which may need tuples "
            f"that are gone. Define the window as before ({noted}), or begin with a store of another name, which gives "
            "up the tuples in open windows"
        )


class Block(NamedTuple):
    """A head with its tuples, encoded."""

    head: Head
    data: bytes


class Backing(Protocol):
    """What a store does for one partition of a window, between beginCommit and commit."""

    def begin(self, txid: int | None) -> None:
        """Open what the batch needs. Raises ZombieError for an older driver, attempt or batch."""

    def heads(self) -> list[Head]:
        """Return the partition's blocks, by txid and block, those of a failed attempt of this batch included."""

    def latest(self, txid: int) -> int | None:
        """Return the greatest time of a tuple in all partitions and all batches below the txid; None if there is
        none."""

    def data(self, heads: Sequence[Head]) -> list[bytes]: ...

    def write(self, blocks: Sequence[Block], dropped: Sequence[Head]) -> None:
        """Write the blocks of this batch and remove others."""

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None:
        """End the run in this process."""
