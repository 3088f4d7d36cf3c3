"""Windows over a store of keys and values: the store in memory, and stores that users bring from Storm."""

from __future__ import annotations

import re
import uuid
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from ..errors import StateError
from ..model.context import CurrentBatch, RunContext, attempt_of
from ..model.requirements import Needs
from ..rpc import service
from ..state import Location, StateFactory
from .config import WindowConfig
from .state import CACHE_LIMIT, CACHED_TUPLES, WindowState
from .store import KEY_SEPARATOR, Block, Entry, InMemoryWindowsStore, WindowsStore, require_same
from .triggers import Head


class MakesWindows:
    """What a window takes as its store: a picklable value that opens nothing itself."""

    @abstractmethod
    def windowState(self, config: WindowConfig, name: str) -> StateFactory:
        """Return the factory of the window's state. Called on the driver when the window is defined."""
        raise NotImplementedError


class WindowsStoreFactory(MakesWindows):
    """Makes the store of a window: a picklable value that opens nothing itself.

    `create` is called where the tuples are, once for each partition of a window. ``location``: as that of a
    `StateFactory`; None: keys and values count as kept in the store's object.
    """

    @property
    def location(self) -> Location | None:
        return None

    @abstractmethod
    def create(self, topoConf: dict) -> WindowsStore:
        raise NotImplementedError

    def windowState(self, config: WindowConfig, name: str) -> StateFactory:
        return KeyedWindow(config, name, self)


@dataclass(frozen=True)
class InMemoryWindowsStoreFactory(WindowsStoreFactory):
    """A store in the driver process. Copies and pickles of a factory share it; two factories share nothing."""

    id: str = field(default_factory=lambda: uuid.uuid4().hex, kw_only=True)

    @property
    def location(self) -> Location:
        return Location(frozenset(["memory"]), frozenset([self.id]), shown="the memory of one factory")

    def create(self, topoConf: dict) -> InMemoryWindowsStore:
        return InMemoryWindowsStore()

    def windowState(self, config: WindowConfig, name: str) -> StateFactory:
        return MemoryWindow(config, name, self)


@dataclass(frozen=True)
class WindowFactory(StateFactory):
    """Base of the factories of windows' states. ``name`` is the state's name."""

    config: WindowConfig
    name: str
    kind: ClassVar[str] = "window"
    state_type = WindowState

    @property
    def stateName(self) -> str:
        return self.name

    def window(self, conf: dict, backing: Any) -> WindowState:
        """Return the state of one partition."""
        cached = conf.get(CACHE_LIMIT)
        running = RunContext.of(conf).running or CurrentBatch()
        return WindowState(self.config, backing, lambda: running.time, CACHED_TUPLES if cached is None else cached)


@dataclass(frozen=True)
class KeyedWindow(WindowFactory):
    """A window in a store of keys and values that the user wrote."""

    store: WindowsStoreFactory

    @property
    def guarantees(self) -> dict[str, tuple[str, str, str]] | None:
        """Its own cells of the guarantee table."""
        reason = "nothing in a WindowsStore keeps out a task that Spark has given up, which may put an older list late"
        better = "use a window of states.sql"
        return dict.fromkeys(("transactional", "opaque"), ("no guarantee", reason, better))

    @property
    def location(self) -> Location | None:
        """The window's part of its store: its keys begin with its name."""
        if (store := self.store.location) is None:
            return None
        names = frozenset(f"{name}/{self.name}" for name in store.names)
        return replace(store, names=names, shown=f"the window {self.name!r} in {store.shown}")

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> WindowState:
        backing = KeyedBacking(self.store.create(conf), self, partitionIndex, numPartitions, RunContext.of(conf))
        return self.window(conf, backing)


@dataclass(frozen=True)
class MemoryWindow(KeyedWindow):
    """A window in the memory of the driver process."""

    needs = Needs(home=True)
    remark = "in memory, for the life of one driver process"
    """What the guarantee table says besides."""

    @property
    def guarantees(self) -> None:
        """Those of every window."""

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> WindowState:
        backing = MemoryBacking(self.open(conf), self, partitionIndex, numPartitions, RunContext.of(conf))
        return self.window(conf, backing)

    def is_empty(self, conf: dict) -> bool:
        """Called by the driver as a run starts. Return whether this process has put nothing yet."""
        return not self.open(conf).getAllKeys()

    def open(self, conf: dict) -> InMemoryWindowsStore:
        """Return the store itself in the driver process, a proxy in a worker."""
        assert isinstance(self.store, InMemoryWindowsStoreFactory)
        # As in Storm, memory outlives the topology, not the process.
        return service.store(service.of_any_run(conf), f"windows/{self.store.id}/{self.name}", InMemoryWindowsStore)


class KeyedBacking:
    """One partition of a window in a WindowsStore.

    The key ``window|partition`` has the list of the heads that count; each block is under a key with its token.
    ``window|of`` has the definition of the window, with the number of its partitions, and the topology. The blocks are
    put first, then the list, by one put; blocks that are on no list any more are removed last, or by the next process
    that opens the partition.
    """

    def __init__(
        self, store: WindowsStore, window: WindowFactory, partition: int, of: int, context: RunContext
    ) -> None:
        self.store = store
        self.window = window.name
        self.definition = f"{window.config.shown} in {of} partition{'s' * (of > 1)}"
        self.partition = partition
        self.of = of
        self.context = context
        self._heads: list[Head] = []
        self._swept = False

    def _list(self, partition: int) -> str:
        return KEY_SEPARATOR.join(("tu", self.window, str(partition)))

    def _key(self, head: Head) -> str:
        return KEY_SEPARATOR.join((self._list(self.partition), head.token))

    def begin(self, txid: int | None) -> None:
        self._heads = [Head(*values) for values in self.store.get(self._list(self.partition)) or []]
        if not self._swept:
            self._compare()
            self._sweep()

    def _compare(self) -> None:
        """Note the definition and the topology. Raises StateError if the window was another one before."""
        key, where = KEY_SEPARATOR.join(("tu", self.window, "of")), f"the store of the window {self.window!r}"
        now = [self.definition, self.context.topology]
        noted = self.store.get(key) or now
        definition, topology = [noted, now[1]] if isinstance(noted, str) else noted  # older versions noted a str
        require_same(where, definition, self.definition)
        if topology != self.context.topology:
            raise StateError(
                f"{where} has the tuples of topology {topology!r}, and this is topology {now[1]!r}: one would remove "
                f"the other's tuples. Give one of the windows a stateName of its own; or, if {topology!r} is this "
                f"topology's former name, remove the key {key!r} from the store"
            )
        self.store.put(key, now)

    def _sweep(self) -> None:
        """Remove the blocks that a killed process left behind. The name of another window may begin as their keys."""
        block = re.escape(self._list(self.partition) + KEY_SEPARATOR) + "[0-9a-f]{16}"
        counted = {self._key(head) for head in self._heads}
        left = [key for key in self.store.getAllKeys() if re.fullmatch(block, key) and key not in counted]
        if left:
            self.store.removeAll(left)
        self._swept = True

    def heads(self) -> list[Head]:
        return self._heads

    def latest(self, txid: int) -> int | None:
        lists = self.store.get([self._list(partition) for partition in range(self.of)])
        heads = [Head(*values) for values in (head for heads in lists for head in heads or [])]
        return max((head.newest for head in heads if head.txid < txid and head.length), default=None)

    def data(self, heads: Sequence[Head]) -> list[bytes]:
        blocks: list[bytes] = self.store.get([self._key(head) for head in heads])
        if None in blocks:
            raise StateError(
                f"the store of the window {self.window!r} does not have all blocks of partition {self.partition}: keys "
                "were removed. Restore it, or begin with a window of another stateName, which gives up the tuples in "
                "open windows"
            )
        return blocks

    def write(self, blocks: Sequence[Block], dropped: Sequence[Head]) -> None:
        gone = set(dropped)
        counted = [*(head for head in self._heads if head not in gone), *(block.head for block in blocks)]
        self.store.putAll([Entry.of(self._key(block.head), block.data) for block in blocks])
        self._count(self._list(self.partition), [tuple(head) for head in counted])
        self.store.removeAll([self._key(head) for head in dropped])

    def _count(self, key: str, heads: list[tuple]) -> None:
        self.store.put(key, heads)

    def commit(self) -> None:
        """Do nothing: everything is written."""

    def rollback(self) -> None:
        self._swept = False  # blocks of the failed attempt may be left

    def close(self) -> None:
        self.store.shutdown()


class MemoryBacking(KeyedBacking):
    """One partition of a window in the driver's memory. An abandoned attempt that writes late is refused there.

    The memory outlives a run. A run on another checkpoint, or on none, may begin at an earlier txid: blocks from there
    on are those of other batches, and none of an earlier attempt.
    """

    store: InMemoryWindowsStore
    _stamp = (0, 0)

    def begin(self, txid: int | None) -> None:
        super().begin(txid)
        self._stamp = (txid or 0, attempt_of(self.context.running))
        later = [head for head in self._heads if head.txid >= self._stamp[0]]
        if later and self.store.lineage_of(self._list(self.partition)) != self.context.lineage:
            self.write([], later)
            self._heads = [head for head in self._heads if head.txid < self._stamp[0]]

    def _count(self, key: str, heads: list[tuple]) -> None:
        self.store.put_newer(key, heads, self.context.lineage, self._stamp)

    def close(self) -> None:
        """Do nothing: the store belongs to the driver process and outlives the run."""
