"""One partition of a window as a state: which tuples are late, and which windows those complete that entered."""

from __future__ import annotations

import datetime
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import StateError, show
from ..model.canonical import plain_column
from ..model.chunks import Chunk, TupleList, concat
from ..state import State
from ..tuples import MISSING, Fields
from .config import CountWindow, DurationWindow, WindowConfig
from .store import Backing, Block
from .triggers import NEVER, Head, Trigger, by_count, by_time, first_needed, time_of, total

_EPOCH = datetime.datetime(1970, 1, 1)


def split_late(config: WindowConfig, chunk: Chunk, watermark: int) -> tuple[Chunk, Chunk]:
    """Return the tuples that enter, and those that are behind the watermark: only in event time are there any."""
    times = _times(config, chunk)
    if times is None or watermark == NEVER:
        return chunk, Chunk({}, 0)
    late = pc.less(times, watermark)
    if not pc.any(late).as_py():
        return chunk, Chunk({}, 0)
    return chunk.take(pc.indices_nonzero(pc.invert(late)).to_pylist()), chunk.take(pc.indices_nonzero(late).to_pylist())


def least_and_greatest(config: WindowConfig, chunk: Chunk, now: int) -> tuple[int, int]:
    """Return the least and the greatest time of the tuples; without event time both are that of the batch."""
    times = _times(config, chunk)
    if times is None:
        return now, now
    if len(times) == 0:
        return NEVER, NEVER
    ends = pc.min_max(times)
    return ends["min"].as_py(), ends["max"].as_py()


def touches(config: WindowConfig, head: Head, trigger: Trigger) -> bool:
    """Return whether a block may hold tuples of a window."""
    if isinstance(config, CountWindow):
        return head.first < trigger.end and head.first + head.length > trigger.start
    return head.length > 0 and head.newest >= trigger.start and head.oldest < trigger.end


def part_of(config: WindowConfig, chunk: Chunk, head: Head, trigger: Trigger) -> Chunk:
    """Return the tuples of a block that belong to a window."""
    if isinstance(config, CountWindow):
        first, last = max(trigger.start, head.first), min(trigger.end, head.first + head.length)
        return chunk.between(first - head.first, last - head.first)
    if trigger.start <= head.oldest and head.newest < trigger.end:
        return chunk
    times = _times(config, chunk)
    assert times is not None, "a batch has one time, so its blocks are in a window as a whole"
    inside = pc.and_(pc.greater_equal(times, trigger.start), pc.less(times, trigger.end))
    return chunk.take(pc.indices_nonzero(inside).to_pylist())


def _times(config: WindowConfig, chunk: Chunk) -> pa.Array | None:
    """Return the time of each tuple in milliseconds; None without event time."""
    if not isinstance(config, DurationWindow) or config.timestampField is None:
        return None
    if chunk.length == 0:
        return pa.array([], pa.int64())
    name = config.timestampField
    column = chunk.columns[name]
    if isinstance(column, list):
        return pa.array([_milliseconds(name, value) for value in plain_column(column)], pa.int64())
    if column.null_count:
        raise _unfit(name, None)
    if pa.types.is_timestamp(column.type):
        instants = column.cast(pa.timestamp(column.type.unit))  # in a zone, rounding fails where clocks go back
        return pc.floor_temporal(instants, unit="millisecond").cast(pa.timestamp("ms")).cast(pa.int64())
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    raise _unfit(name, column[0].as_py())


def _milliseconds(name: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 64:
        return value
    if isinstance(value, datetime.datetime):
        naive = value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
        return (naive - _EPOCH) // datetime.timedelta(milliseconds=1)
    raise _unfit(name, value)


def _unfit(name: str, value: Any) -> StateError:
    what = "was never emitted" if value is MISSING else f"is {show(value)}"
    return StateError(
        f"the timestamp field {name!r} of a window {what}; it must be milliseconds since 1970 or a datetime. Filter "
        "such tuples before the window"
    )


Part = TypeVar("Part", Chunk, Head)
BLOCK_ROWS = 131_072
BLOCK_BYTES = 4_000_000
CACHE_LIMIT = "topology.trident.windowing.cache.tuple.limit"
CACHED_TUPLES = 1_000_000


class WindowState(State):
    """One partition of a window. Made where its tuples are.

    On replay: the blocks of this batch that a failed attempt has written are replaced, and the windows follow from the
    blocks of earlier batches. So the same tuples complete the same windows again, with the same content and numbers.

    ``clock`` tells the time of the batch, in milliseconds.
    """

    def __init__(self, config: WindowConfig, backing: Backing, clock: Callable[[], int], cached: int) -> None:
        self.config = config
        self.backing = backing
        self.clock = clock
        self.late = 0
        self._cache = _Cache(cached)
        self._before: list[Head] = []
        self._own: list[Head] = []
        self._blocks: list[Block] = []
        self._windows = 0
        self._stored: Fields | None = None

    def beginCommit(self, txid: int | None) -> None:
        """Read which blocks the partition has. Raises ZombieError for an older driver, attempt or batch."""
        if txid is None:
            raise StateError("a window takes tuples only in a batch with a txid")
        self.txid = txid
        self.backing.begin(txid)
        heads = self.backing.heads()
        self._before = [head for head in heads if head.txid < txid]
        self._own = [head for head in heads if head.txid >= txid]
        self._blocks, self._windows, self.late = [], 0, 0

    def enter(
        self, tuples: TupleList, stored: Fields, late: Callable[[Chunk], None]
    ) -> Iterator[tuple[Trigger, list[Chunk]]]:
        """Take the tuples of the batch and yield the windows that are complete now, each with its tuples in the order
        of their arrival and with the ``stored`` fields. Passes tuples behind the watermark to ``late``; they enter no
        window. Raises StateError if tuples that entered before lack a field."""
        self._compare(stored)
        now = self._now()
        entering = []
        for chunk in tuples.chunks:
            kept, behind = split_late(self.config, chunk, now)
            entering += [kept.only(stored)] if kept.length else []
            if behind.length:
                self.late += behind.length
                late(behind)
        for group in _groups(entering):
            self._add(concat(group), now)
        for trigger in list(self._triggers(now)):
            window = self._window(trigger)
            if window:
                self._windows += 1
                yield trigger, window
        if not self._blocks and self._time_counts():
            self._add(Chunk({}, 0), now)

    def commit(self, txid: int | None) -> Any:
        """Write the blocks and drop those that no later window needs. Returns the receipt: how many tuples entered,
        how many were late, and how many windows they completed."""
        kept = set(first_needed(self.config, self._before))
        dropped = [head for head in self._before if head not in kept]
        if self._blocks or self._own:
            self.backing.write(self._blocks, [*dropped, *self._own])
        self.backing.commit()
        self._cache.keep({head.token for head in [*kept, *(block.head for block in self._blocks)]})
        return {"entered": sum(block.head.length for block in self._blocks), "late": self.late,
                "windows": self._windows}  # fmt: skip

    def rollback(self, txid: int | None) -> None:
        self.backing.rollback()

    def close(self) -> None:
        """End the run in this process."""
        self.backing.close()

    def _compare(self, stored: Fields) -> None:
        """Look at the newest tuples, once: an aggregator that reads other fields since ends the run before any tuple
        enters beside those without them."""
        if self._stored is None:
            self._stored = stored
            self._chunks([head for head in self._before if head.length][-1:])

    def _decode(self, head: Head, data: bytes) -> Chunk:
        chunk = Chunk.decode(data)
        missing = [name for name in self._stored or () if name not in chunk.columns]
        if missing:
            raise StateError(
                f"the window reads {', '.join(missing)}, which its tuples of batch {head.txid} do not have: they "
                f"entered with {', '.join(chunk.columns)} alone. Let the aggregator read those fields, or begin with a "
                "store or table of another name, which gives up the tuples in open windows"
            )
        return chunk

    def _now(self) -> int:
        """Return the time of the batch, never before that of an earlier one; in event time, its watermark. A batch that
        an earlier attempt has written keeps the time of that attempt."""
        if isinstance(self.config, CountWindow):
            return 0
        assert isinstance(self.config, DurationWindow)
        if self.config.timestampField is not None:
            latest = self.backing.latest(self.txid)
            now = NEVER if latest is None else latest - self.config.lag
        else:
            now = self._own[0].time if self._own else self.clock()
        last = time_of(self._before)
        return now if last is None else max(now, last)

    def _triggers(self, now: int) -> Iterator[Trigger]:
        if isinstance(self.config, CountWindow):
            return by_count(self.config, self._before, sum(block.head.length for block in self._blocks))
        assert isinstance(self.config, DurationWindow)
        return by_time(self.config, self._before, now, self._distinct_times)

    def _distinct_times(self, head: Head) -> list[int]:
        times: list[int] = pc.unique(_times(self.config, self._chunks([head])[0])).to_pylist()
        return times

    def _time_counts(self) -> bool:
        """Return whether a batch without tuples must leave its time: it has completed windows, which must not be
        completed again, or a replay by a later clock would complete windows that this attempt has not."""
        by_clock = isinstance(self.config, DurationWindow) and self.config.timestampField is None
        return self._windows > 0 or (by_clock and any(head.length for head in self._before))

    def _heads(self) -> list[Head]:
        return [*self._before, *(block.head for block in self._blocks)]

    def _window(self, trigger: Trigger) -> list[Chunk]:
        """Return the tuples of a window."""
        touched = [head for head in self._heads() if touches(self.config, head, trigger)]
        parts: list[Chunk] = []
        for group in _groups(touched):
            chunks = zip(group, self._chunks(group), strict=True)
            parts += [part_of(self.config, chunk, head, trigger) for head, chunk in chunks]
        return [part for part in parts if part.length]

    def _chunks(self, heads: list[Head]) -> list[Chunk]:
        """Return the blocks with their tuples. Those that are not kept decoded are read at once, but for the blocks of
        this batch: the store does not have them yet."""
        found = {head: chunk for head in heads if (chunk := self._cache.get(head)) is not None}
        data = {block.head: block.data for block in self._blocks}
        missing = [head for head in heads if head not in found and head not in data]
        data |= zip(missing, self.backing.data(missing) if missing else [], strict=True)
        for head in [head for head in heads if head not in found]:
            found[head] = self._decode(head, data[head])
            self._cache.put(head, found[head])
        return [found[head] for head in heads]

    def _add(self, chunk: Chunk, now: int) -> None:
        """Add the tuples as one block, or as two halves if one would be too large."""
        data = chunk.encode(compressed=True) if chunk.length else b""
        if len(data) > BLOCK_BYTES and chunk.length > 1:
            half = chunk.length // 2
            self._add(chunk.between(0, half), now)
            self._add(chunk.between(half, chunk.length), now)
            return
        oldest, newest = least_and_greatest(self.config, chunk, now)
        first = total([block.head for block in self._blocks] or self._before)
        token = secrets.token_hex(8)
        head = Head(self.txid, len(self._blocks), first, chunk.length, now, oldest, newest, token)
        self._blocks.append(Block(head, data))
        self._cache.put(head, chunk)


def _groups(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Yield blocks or chunks in groups of about ``BLOCK_ROWS`` tuples: each is written as one block, or read at
    once."""
    group: list[Part] = []
    held = 0
    for part in parts:
        group.append(part)
        held += part.length
        if held >= BLOCK_ROWS:
            yield group
            group, held = [], 0
    if group:
        yield group


class _Cache:
    """Decoded blocks by their token, the least recently used dropped first."""

    def __init__(self, tuples: int) -> None:
        self.tuples = tuples
        self._chunks: OrderedDict[str, Chunk] = OrderedDict()

    def get(self, head: Head) -> Chunk | None:
        chunk = self._chunks.get(head.token)
        if chunk is not None:
            self._chunks.move_to_end(head.token)
        return chunk

    def put(self, head: Head, chunk: Chunk) -> None:
        self._chunks[head.token] = chunk
        held = sum(other.length for other in self._chunks.values())
        while held > self.tuples and len(self._chunks) > 1:
            _, dropped = self._chunks.popitem(last=False)
            held -= dropped.length

    def keep(self, tokens: set[str]) -> None:
        """Forget all blocks but these."""
        for token in [token for token in self._chunks if token not in tokens]:
            del self._chunks[token]
