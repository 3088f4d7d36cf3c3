"""Windows over the simulated store: `WindowState` and its rules are the product's, the backing is a dict.

One window counts: each so many tuples of a partition, one of the last ones ends. Its result is a tuple for the state
behind it, at the position of the window's number. A window that does not hold the tuples of the fold comes twice, which
no rule allows. The other one is of an hour of the driver's clock, and its result are its tuples: when a batch is over,
the state behind it has those of the hours before that batch's time, each once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from trident_py.model.chunks import Chunk
from trident_py.operations import BaseAggregator
from trident_py.tuples import Fields
from trident_py.windowing import Block, Duration, Head, SlidingCountWindow, TumblingDurationWindow, WindowState
from trident_py.windowing.triggers import total

from .spouts import WORDS, here
from .world import Violation

LENGTH, SLIDE = 3, 2
HOUR = 3_600_000
BY_TIME = "window by time"
CONFIGS = {"window": SlidingCountWindow.of(LENGTH, SLIDE), BY_TIME: TumblingDurationWindow.of(Duration(HOUR))}
PACE = HOUR // 2
"""By how much the clock of a window by time goes on each time it is asked: some batches share an hour."""
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
        context = transaction.fence.context
        super().__init__(CONFIGS[factory.kind], SimulatedBacking(transaction), lambda: context.time, 100)

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


class EndsByTime(BaseAggregator):
    """The result of a window by time: its tuples."""

    def init(self, batchId: Any, collector: Any) -> Any:
        return []

    def aggregate(self, val: Any, tuple: Any, collector: Any) -> None:
        val.append(tuple)

    def complete(self, val: Any, collector: Any) -> None:
        for part, at in val:
            collector.emit([WORDS[part], part, at, 16**at])


RESULTS = {"window": Ends, BY_TIME: EndsByTime}


def blocks_of(content: Any, partition: int) -> list[Block]:
    found = sorted(key for key in content if key[0] == BLOCK and key[1] == partition)
    return [content[key] for key in found]


def entered(content: Any, kind: str, partition: int, positions: int) -> list[int]:
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
        _judge_kept(kind, [block.head for block in blocks])
    return counts


def _judge_kept(kind: str, heads: list[Head]) -> None:
    """A batch leaves no block of those before it that no later window needs."""
    before = [head for head in heads if head.txid < heads[-1].txid]
    least = (total(before) // SLIDE + 1) * SLIDE - LENGTH
    if kind == BY_TIME:
        if any(head.time < other.time for other, head in pairwise(heads)):
            raise Violation(f"tuples have entered an hour that had ended: {heads}")
        unneeded = [head for head in before[:-1] if not _is_open(head, before[-1].time)]
    else:
        unneeded = [head for head in before[:-1] if head.first + head.length <= least]
    if unneeded:
        raise Violation(f"the window keeps blocks that no later one needs: {before}")


def _is_open(head: Head, time: int) -> bool:
    """Return whether a block has tuples of the hour of this time, or of a later one."""
    return head.length > 0 and head.newest >= time // HOUR * HOUR


def ended(content: Any, partition: int, txid: int) -> int:
    """Return how many tuples the windows by time have held that ended with this batch, or before it."""
    heads = [block.head for block in blocks_of(content, partition) if block.head.txid <= txid]
    still = [head.first for head in heads if _is_open(head, heads[-1].time)]
    return min(still, default=total(heads))


@lru_cache(10_000)
def _positions(data: bytes) -> tuple[int, ...]:
    return tuple(row[0] for row in Chunk.decode(data).rows(Fields("at"))) if data else ()
