"""A window over the simulated store: `WindowState` and its rules are the product's, the backing is a dict.

The window counts: each so many tuples of a partition, one of the last ones ends. Its result is a tuple for the state
behind it, at the position of the window's number. A window that does not hold the tuples of the fold comes twice, which
no rule allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from trident_py.model.chunks import Chunk
from trident_py.operations import BaseAggregator
from trident_py.tuples import Fields
from trident_py.windowing import Block, Head, SlidingCountWindow, WindowState
from trident_py.windowing.triggers import total

from .spouts import WORDS, here
from .world import Violation

LENGTH, SLIDE = 3, 2
CONFIG = SlidingCountWindow.of(LENGTH, SLIDE)
BLOCK = "block"


class Tokens:
    """Names blocks by what the driver that writes them knows."""

    @staticmethod
    def token_hex(length: int) -> str:
        running = here().running
        assert running is not None
        return f"{running.number}/{running.history:x}"


class SimulatedBacking:
    """A partition of the window: its blocks are in the store by partition, txid and number."""

    def __init__(self, transaction: Any) -> None:
        self.transaction = transaction
        self.change: Callable[[dict[Any, Any]], None] = lambda content: None

    def begin(self, txid: int | None) -> None:
        self.change = lambda content: None
        self.transaction.begin(txid)

    def heads(self) -> list[Head]:
        return [block.head for block in blocks_of(self.transaction.read, self.transaction.partition)]

    def latest(self, txid: int) -> int | None:
        raise NotImplementedError  # of windows in event time

    def data(self, heads: Sequence[Head]) -> list[bytes]:
        return [self.transaction.read[self._key(head)].data for head in heads]

    def write(self, blocks: Sequence[Block], dropped: Sequence[Head]) -> None:
        def change(content: dict[Any, Any]) -> None:
            for head in dropped:
                del content[self._key(head)]
            for block in blocks:
                assert content.setdefault(self._key(block.head), block) is block, "a block is there already"

        self.change = change

    def commit(self) -> None:
        self.transaction.commit(self.change)

    def rollback(self) -> None: ...

    def close(self) -> None: ...

    def _key(self, head: Head) -> Any:
        return BLOCK, self.transaction.partition, head.txid, head.block


class SimulatedWindow(WindowState):
    """A partition of the window.

    On replay: as `WindowState`.
    """

    def __init__(self, factory: Any, transaction: Any) -> None:
        super().__init__(CONFIG, SimulatedBacking(transaction), lambda: 0, 100)

    def commit(self, txid: int | None) -> Any:
        return {"partition": self.backing.transaction.partition, **super().commit(txid)}  # type: ignore[attr-defined]


class Ends(BaseAggregator):
    """The result of a window: a tuple with its number, twice if it does not hold what it must."""

    def init(self, batchId: Any, collector: Any) -> Any:
        return batchId, []

    def aggregate(self, val: Any, tuple: Any, collector: Any) -> None:
        val[1].append(tuple)

    def complete(self, val: Any, collector: Any) -> None:
        number, part = val[0], val[1][0][0]
        right = [*range(max(0, number * SLIDE - LENGTH), number * SLIDE)]
        for _ in range(1 if [each[1] for each in val[1]] == right else 2):
            collector.emit([WORDS[part], part, number - 1, 16 ** (number - 1)])


def blocks_of(content: Any, partition: int) -> list[Block]:
    found = sorted(key for key in content if key[0] == BLOCK and key[1] == partition)
    return [content[key] for key in found]


def entered(content: Any, partition: int, positions: int) -> list[int]:
    """Return how often each tuple has entered. Those in blocks that no window needs any more count as entered once;
    a tuple that is not at its place in a block counts twice."""
    blocks = blocks_of(content, partition) if positions else []
    counts = [int(at < total([block.head for block in blocks])) for at in range(positions)]
    behind = blocks[0].head.first if blocks else 0
    for head, data in blocks:
        at, held = head.first, _positions(data)
        if at != behind or held != tuple(range(at, at + head.length)):
            counts[min(at, len(counts) - 1)] = 2
        behind = at + head.length
    if blocks:
        _judge_kept([block.head for block in blocks])
    return counts


def _judge_kept(heads: list[Head]) -> None:
    """A batch leaves no block of those before it that no later window needs."""
    before = [head for head in heads if head.txid < heads[-1].txid]
    least = (total(before) // SLIDE + 1) * SLIDE - LENGTH
    if any(head.first + head.length <= least for head in before[:-1]):
        raise Violation(f"the window keeps blocks that no later one needs: {before}")


@lru_cache(10_000)
def _positions(data: bytes) -> tuple[int, ...]:
    return tuple(row[0] for row in Chunk.decode(data).rows(Fields("at"))) if data else ()
