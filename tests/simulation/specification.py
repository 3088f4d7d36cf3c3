"""What a reader of the store may see, for each cell of the table of guarantees. The oracle is the fold over the input.

The tuple at position p of a word counts 16 ** p, so a value tells how often each tuple is in it; rows are counted by
their key. So `seen` gives one form for all kinds: how often the tuple at each position of each word is in the store.

| after each step | no tuple is in the store twice, and none before an earlier one of its word |
| --- | --- |
| | what the log has as over is in the store, whole |
| | the ledger says that a batch is complete: the store has it, and nothing behind it |
| | kind batch: the words show the same positions, those of a batch that a spout has described |
| at the end | every tuple is in the store once, or a start was refused because a place had gone back |
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from trident_py.checkpoints.metadata_store import LOG
from trident_py.spouts.opaque_offsets import positions_path

from .spouts import STREAM, WORDS, Here
from .stores import DATA, ROW
from .world import Violation, World


class Cell(NamedTuple):
    """A cell of the table of guarantees. ``spout``: "transactional", "opaque" or "partitioned" (opaque too)."""

    kind: str
    spout: str
    recording: bool = False

    @property
    def guarantee(self) -> str:
        if self.kind == "non-transactional":
            return "at least once"
        changes = self.spout != "transactional" and self.kind in ("transactional", "append")
        return "wrong" if changes else "exactly once"

    def __str__(self) -> str:
        return f"{self.kind} map or rows, {self.spout} spout{', each attempt recorded' * self.recording}"


KINDS = ("opaque", "transactional", "non-transactional", "insert-ignore", "append", "batch")
SPOUTS = ("transactional", "opaque", "partitioned")
CELLS = [Cell(kind, spout, recording) for kind in KINDS for spout in SPOUTS for recording in (False, True)]


def seen(content: Any, kind: str) -> list[list[int]]:
    """Return how often each tuple is in the store, by word and position."""
    if kind in ("insert-ignore", "append", "batch"):
        return [[content.get((DATA, (part, at)), 0) for at in range(Here.positions)] for part in range(len(WORDS))]
    values = [content.get((DATA, word)) for word in WORDS]
    plain = [value if value is None or isinstance(value, int) else value[1] for value in values]
    return [[(value or 0) >> (4 * at) & 15 for at in range(Here.positions)] for value in plain]


def reach(counts: Sequence[int]) -> int:
    """Return how far a word's tuples reach. Raises Violation if one of them is missing, or is there twice."""
    end = sum(count > 0 for count in counts)
    if list(counts) != [1] * end + [0] * (len(counts) - end):
        raise Violation(f"the tuples of a word are in the store {list(counts)} times")
    return end


def logged_ends(log: Any, spout: str, over: bool = True) -> tuple[int, list[int]]:
    """Return the last batch that the log has as over, and how far it reaches."""
    record = json.loads(log.get((LOG, 0), "null")) or {"over": None}
    if record["over"] is None:
        return 0, [0, 0]
    txid, metadata = record["over"]["txid"], record["over"]["metadata"]
    return txid, _ends(log, spout, txid, metadata)


def _ends(log: Any, spout: str, txid: int, metadata: Any) -> list[int]:
    if spout != "partitioned":
        return [metadata[STREAM]["end"]] * len(WORDS)
    ends = json.loads(log.get((positions_path(STREAM), txid), "{}"))
    return [ends.get(str(part), 0) for part in range(len(WORDS))]


def judge(cell: Cell, world: World, name: str) -> None:
    """Look at the store after a step."""
    if cell.guarantee == "wrong":
        return
    counts = seen(world.store.content, cell.kind)
    if cell.guarantee == "at least once":
        ends = [next((at for at, count in enumerate(of) if not count), len(of)) for of in counts]
    else:
        ends = [reach(of) for of in counts]
    faults = world.memory.get("faults", ())
    if "back" in faults or "log back" in faults:
        return
    txid, over = logged_ends(world.log.content, cell.spout)
    if any(end < least for end, least in zip(ends, over, strict=True)):
        raise Violation(f"the log has batch {txid} as over, up to {over}, and the store has {ends}")
    if cell.kind == "batch":
        _judge_whole(world, ends)
    _judge_complete(cell, world, name, ends)


def _judge_whole(world: World, ends: list[int]) -> None:
    shown = world.memory.get("shown", (0, 0))
    if any(end < before for end, before in zip(ends, shown, strict=True)):
        raise Violation(f"rows of a batch that was shown are gone: {ends} after {shown}")
    row = world.store.content.get(ROW)
    if shown != tuple(ends) and (row is None or world.memory.get("row", 0) == row.txid):
        raise Violation(f"rows are shown without their batch: {ends}")
    world.memory["shown"] = tuple(ends)


def _judge_complete(cell: Cell, world: World, name: str, ends: list[int]) -> None:
    """The ledger has moved: the store has the whole batch, as the log describes it."""
    row = world.store.content.get(ROW)
    txid = 0 if row is None else row.txid
    if txid == world.memory.get("row", 0):
        return
    world.memory["row"] = txid
    described = _described(cell, world.log.content, txid)
    if described is None:
        return
    more = cell.kind in ("insert-ignore", "non-transactional")
    if any(end < least if more else end != least for end, least in zip(ends, described, strict=True)):
        raise Violation(f"{name}: batch {txid} is complete and reaches {described}; the store has {ends}")


def _described(cell: Cell, log: Any, txid: int) -> list[int] | None:
    """Return how far a batch reaches that is about to be over."""
    record = json.loads(log.get((LOG, 0), "null")) or {"begun": None}
    if cell.spout == "partitioned":
        return _ends(log, cell.spout, txid, None) if (positions_path(STREAM), txid) in log else None
    begun = record["begun"]
    return None if begun is None or begun["txid"] != txid else _ends(log, cell.spout, txid, begun["metadata"])


def judge_end(cell: Cell, world: World) -> None:
    """Look at what is left when the last driver has ended."""
    faults = world.memory.get("faults", set())
    if world.refused is not None:
        if not faults & {"back", "log back"}:
            raise Violation(f"a start was refused, and no place had gone back: {world.refused!r}")
        return
    if cell.guarantee == "wrong":
        return
    counts = seen(world.store.content, cell.kind)
    whole = all(count >= 1 if cell.guarantee == "at least once" else count == 1 for of in counts for count in of)
    if not whole:
        raise Violation(f"the input is done, and its tuples are in the store {counts} times")
