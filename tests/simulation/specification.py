"""What a reader of the store may see, for each cell of the table of guarantees. The oracle is the fold over the input.

The tuple at position p of a word counts 16 ** p, so a value tells how often each tuple is in it; rows are counted by
their key. So `seen` gives one form for all kinds: how often the tuple at each position of each word is in the store.

| after each step | no tuple is in the store twice, and none before an earlier one of its word |
| --- | --- |
| | what the log has as over is in the store, whole |
| | the ledger says that a batch is complete: the store has it, and nothing behind it |
| | kind batch: the words show the same positions, those of a batch that a spout has described |
| | the ledger names the checkpoint that has completed its batch, and no older driver changes it |
| | the log has a batch as over only if the store has had it as complete |
| | a start that must be refused has changed nothing; the tuples of another checkpoint stay |
| | kind sequence: a sender's rows are in order up to its last one; others wait, or their gaps are noted |
| | kind window: its blocks have the tuples at their places; what ends a window is in it once |
| at the end of a run | it fails only if something had failed for good; what the store has refused is not decided |
| at the end | every tuple is in the store once, or a start was refused because a place had gone back |
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from trident_py.checkpoints.metadata_store import LOG
from trident_py.engine.startup import AGREEMENT
from trident_py.engine.two_phase import DECIDED
from trident_py.errors import LineageError
from trident_py.spouts.opaque_offsets import positions_path

from .beginnings import BACK_TO_STORE, FORK, REFUSED
from .numbered import GAPS, HELD, SENDER, number_of
from .rewinds import is_back
from .spouts import AGAIN, STREAM, WORDS, Here
from .stores import DATA, ROW, Sum
from .windows import BY_TIME, CONFIGS, SLIDE, ended, entered
from .world import END, LATE, Violation, World

QUERIED = "queried "


@cache
def kinds_of(kind: str) -> list[str]:
    return re.split(" beside | before ", kind.removeprefix(QUERIED))


class Cell(NamedTuple):
    """A cell of the table of guarantees. ``kind``: of its states; "queried": a component that only queries them is
    beside it. ``spout``: "transactional", "opaque" or "partitioned" (opaque too)."""

    kind: str
    spout: str
    recording: bool = False
    beginning: str = ""

    @property
    def kinds(self) -> list[str]:
        """The kinds of its states, each in a store of its own."""
        return kinds_of(self.kind)

    @property
    def queried(self) -> bool:
        return self.kind.startswith(QUERIED)

    def due(self, world: World, number: int, ends: list[int], txid: int) -> list[int]:
        """Return how far the store with this number reaches, if batch ``txid`` is over, and with it so many tuples of
        each word: the state behind a window has a tuple for each result."""
        if number and self.kinds[0] == BY_TIME:
            return [ended(world.stores[0].content, part, txid) for part in range(len(ends))]
        return [end // SLIDE for end in ends] if number and self.kinds[0] == "window" else ends

    @property
    def guarantee(self) -> str:
        if self.kind == "non-transactional":
            return "at least once"
        changes = self.spout in ("opaque", "partitioned") and self.kind in ("transactional", "append")
        return "wrong" if changes else "exactly once"

    def __str__(self) -> str:
        recording = ", each attempt recorded" * self.recording
        return f"{self.kind} map or rows, {self.spout} spout{recording}{self.beginning and f', {self.beginning}'}"


KINDS = ("opaque", "transactional", "non-transactional", "insert-ignore", "append", "batch", "upsert", "sequence",
         "sequence with gaps", "window before batch", "window before opaque")  # fmt: skip
AGAIN_IS_NOTHING = ("insert-ignore", "upsert", "sequence", "sequence with gaps")
SPOUTS = ("transactional", "opaque", "partitioned")
CELLS = [
    Cell(kind, spout, recording) for kind in KINDS for spout in SPOUTS for recording in (False, True)
    if kind != "window before opaque" or spout == "transactional"  # a replay may end other windows, so give other keys
]  # fmt: skip
TWO = "batch beside opaque"
MORE = [
    Cell(TWO, "opaque"), Cell(TWO, "partitioned", True), Cell("opaque", "sparse"), Cell("append", "sparse", True),
    Cell("queried opaque", "opaque"), Cell("opaque in place", "opaque"), Cell("opaque in place", "partitioned", True),
    Cell("transactional in place", "transactional"),
]  # fmt: skip
GOING_ON = ["the same, continued", "the same, continued later", "a store that was to be continued"]
OTHER_BEGINNINGS = [
    *(Cell(kind, "opaque", beginning=beginning) for beginning in GOING_ON for kind in ("opaque", "batch")),
    Cell("append", "transactional", beginning="the same, given up"),
    Cell("batch", "opaque", beginning="a log before a decision"),
    *(Cell(kind, "opaque", beginning=beginning) for kind in ("opaque", "batch") for beginning in REFUSED),
]
TIMED = [
    *(Cell(f"{BY_TIME} before batch", spout, recording) for spout in SPOUTS for recording in (False, True)),
    Cell(f"{BY_TIME} before append", "transactional"),
]
TAKEN_BACK = [
    Cell(kind, spout, beginning=BACK_TO_STORE)
    for kind, spout in (("opaque", "opaque"), ("append", "transactional"), ("batch", "partitioned"))
] + [Cell(kind, "opaque", beginning=FORK) for kind in ("opaque", "batch")]
ALL = [*CELLS, *MORE, *OTHER_BEGINNINGS, *TIMED, *TAKEN_BACK]
"""Also two states, a batch without tuples, a state that is queried, values that are changed in place, places that do
not belong together, and windows by time."""


def seen(content: Any, kind: str, first: int = 0) -> list[list[int]]:
    """Return how often each tuple is in the store, by word and position. ``first``: 8 for another checkpoint's."""
    positions = range(first, first + Here.positions)
    if kind in CONFIGS:
        return [entered(content, kind, part, 0 if first else Here.positions) for part in range(len(WORDS))]
    if kind.startswith("sequence"):
        return [[count_of(content, (part, number_of(at))) for at in positions] for part in range(len(WORDS))]
    if kind in ("insert-ignore", "append", "batch", "upsert"):
        return [[content.get((DATA, (part, at)), 0) for at in positions] for part in range(len(WORDS))]
    plain = [value_of(content, word) for word in WORDS]
    if plain != [value_of(content, word, AGAIN) for word in WORDS]:
        raise Violation("the two keys of a word have different values")
    return [[(value or 0) >> (4 * at) & 15 for at in positions] for value in plain]


def value_of(content: Any, *key: str) -> int | None:
    value = content.get((DATA, *key))
    plain = value[1] if isinstance(value, tuple) else value
    return plain.total if isinstance(plain, Sum) else plain


def count_of(content: Any, row: tuple) -> int:
    return content.get((DATA, row), 0) + content.get((HELD, row), 0)


def judge_numbers(content: Any) -> None:
    """A sender's rows have the numbers up to its last one, but for those that are noted as missing; others wait."""
    for key, row in list(content.items()):
        if key[0] == SENDER:
            sender = key[1]
            its = {name: {at[1][-1] for at in content if at[0] == name and at[1][:-1] == sender}
                   for name in (DATA, HELD, GAPS)}  # fmt: skip
            gaps = {at for first in its[GAPS] for at in range(first, content[GAPS, (*sender, first)].last + 1)}
            numbers = set(range(row.last + 1))
            if its[DATA] != numbers - gaps or min(its[HELD], default=row.last + 2) <= row.last + 1 or gaps - numbers:
                raise Violation(f"a sender's rows have the numbers {its}, and its last one is {row.last}")
            if (row.held, row.missing) != (len(its[HELD]), len(gaps)):
                raise Violation(f"a sender has the rows {its}, and counts {row}")


def reach(counts: Sequence[int]) -> int:
    """Return how far a word's tuples reach. Raises Violation if one of them is missing, or is there twice."""
    end = sum(count > 0 for count in counts)
    if list(counts) != [1] * end + [0] * (len(counts) - end):
        raise Violation(f"the tuples of a word are in the store {list(counts)} times")
    return end


def logged_ends(log: Any, spout: str) -> tuple[int, list[int]]:
    """Return the last batch that the log has as over, and how far it reaches."""
    txid = logged_over(log)
    metadata = logged(log)["over"]["metadata"] if txid else None
    return txid, _ends(log, spout, txid, metadata) if txid else [0, 0]


@lru_cache(10_000)
def parsed(text: str) -> Any:
    return json.loads(text)


def logged(log: Any) -> Any:
    return parsed(log.get((LOG, 0), "null")) or {"over": None, "begun": None}


def logged_over(log: Any) -> int:
    over = logged(log)["over"]
    return over["txid"] if over else 0


def _ends(log: Any, spout: str, txid: int, metadata: Any) -> list[int]:
    if spout != "partitioned":
        return [metadata[STREAM]["end"]] * len(WORDS)
    ends = parsed(log.get((positions_path(STREAM), txid), "{}"))
    return [ends.get(str(part), 0) for part in range(len(WORDS))]


BACK = {"back", "log back"}
DENIED = {*BACK, "die", "power", "start", "wake", "refuse", "deny"}
"""What may end a run with an error. Behind any other fault, it goes on."""


class Look(NamedTuple):
    """What a reader sees of a state. ``counts``: how often each tuple is there, by word, in the order in which they
    come; ``over``: how far the last batch of the log reaches; ``described``: at least and at most, if the batch
    ``txid`` of its ledger is known and new."""

    kind: str
    counts: list[list[int]]
    over: list[int]
    described: tuple[list[int], list[int]] | None = None
    txid: int = 0
    lineage: str | None = None


class Moment(NamedTuple):
    """What is there after a step, simulated or real: a line of a trace. ``over``: the last batch of the log;
    ``lineage``: of the checkpoint, if it has agreed with the stores; ``back``: some place may have gone back."""

    name: str
    over: int
    lineage: str | None
    states: tuple[Look, ...]
    back: bool = False


def judge_moment(moment: Moment, memory: dict[Any, Any], guarantee: str = "exactly once") -> None:
    """Raise Violation if this may not follow what the ``memory`` has of the moments before."""
    for number, look in enumerate(moment.states):
        if guarantee == "at least once":
            ends = [next((at for at, count in enumerate(of) if not count), len(of)) for of in look.counts]
        else:
            ends = [reach(of) for of in look.counts]
        _judge_row(moment, look, memory, number)
        if moment.back:
            continue
        if any(end < least for end, least in zip(ends, look.over, strict=True)):
            raise Violation(f"the log has batch {moment.over} as over, up to {look.over}, and the store has {ends}")
        if look.kind == "batch":
            _judge_whole(look, memory, number, ends)
        _judge_complete(moment, look, memory, number, ends)


def _judge_row(moment: Moment, look: Look, memory: dict[Any, Any], number: int) -> None:
    """The ledger has moved: it names the checkpoint that has run the batch. The log moves behind it."""
    before, most = memory.get(("moved", number), 0), memory.get(("most", number), 0)
    if look.lineage is not None and look.txid != before:
        memory["moved", number], memory["most", number] = look.txid, max(look.txid, most)
        if moment.lineage is not None and look.txid > before and look.lineage != moment.lineage:
            raise Violation(f"{moment.name}: batch {look.txid} is complete for checkpoint {look.lineage!r}")
    if moment.over > max(memory.get(("most", number), 0), memory.get("log", 0)):
        raise Violation(f"the log has batch {moment.over} as over, and the store has never had it as complete")


def _judge_whole(look: Look, memory: dict[Any, Any], number: int, ends: list[int]) -> None:
    shown = memory.get(("shown", number), (0,) * len(ends))
    if any(end < before for end, before in zip(ends, shown, strict=True)):
        raise Violation(f"rows of a batch that was shown are gone: {ends} after {shown}")
    if shown != tuple(ends) and (look.lineage is None or memory.get(("row", number), 0) == look.txid):
        raise Violation(f"rows are shown without their batch: {ends}")
    memory["shown", number] = tuple(ends)


def _judge_complete(moment: Moment, look: Look, memory: dict[Any, Any], number: int, ends: list[int]) -> None:
    """The ledger has moved: the store has the whole batch, as the log describes it."""
    memory["row", number] = look.txid
    if look.described is None:
        return
    least, most = look.described
    if not all(low <= end <= high for low, end, high in zip(least, ends, most, strict=True)):
        raise Violation(f"{moment.name}: batch {look.txid} is complete and reaches {least}; the store has {ends}")


def judge(cell: Cell, world: World, name: str) -> None:
    """Look at the stores after a step."""
    if cell.guarantee == "wrong":
        return
    faults = world.memory.get("faults", set())
    _judge_owner(world, faults)
    if name == END:
        _judge_error(cell, world, faults)
    if "log" not in world.memory:
        world.memory["log"] = logged_over(world.beginning.log)
        for number, store in enumerate(world.beginning.stores):
            world.memory["most", number] = world.memory["moved", number] = _txid(store)
    judge_moment(_look(cell, world, name, bool(faults & BACK)), world.memory, cell.guarantee)


def _look(cell: Cell, world: World, name: str, back: bool) -> Moment:
    log = world.log.content
    txid, over = logged_ends(log, cell.spout)
    states = []
    for number, kind in enumerate(cell.kinds):
        content = world.stores[number].content
        row, described = content.get(ROW), None
        if row is not None and row.txid != world.memory.get(("row", number), 0):
            described = _described(cell, world, number, row.txid, name)
        look = Look(kind, _counts(cell, world, number), cell.due(world, number, over, txid), described)
        states.append(look if row is None else look._replace(txid=row.txid, lineage=row.lineage))
    back = back or world.beginning.refused or not is_back(world)
    return Moment(name, txid, _agreed(world, name), tuple(states), back)


def _agreed(world: World, name: str) -> str | None:
    """Return the lineage that the driver of this step has agreed on. Behind its back the log may have gone back to
    another one; what the driver then completes is its own, and the next start is refused."""
    driver = world.running
    if driver is None or driver.checkpoint is None or name in BACK or name.startswith(LATE):
        return None
    agreed = driver.checkpoint.known(AGREEMENT)
    return agreed["lineage"] if agreed else None


def _counts(cell: Cell, world: World, number: int) -> list[list[int]]:
    """Return what `seen` does, looked up once for each content."""
    place, kind = world.stores[number], cell.kinds[number]
    key = cell, number, place.digest, Here.positions
    if key not in _COUNTS:
        if kind.startswith("sequence"):
            judge_numbers(place.content)
        if seen(place.content, kind, 8) != seen(world.beginning.stores[number], kind, 8):
            raise Violation("the tuples of another checkpoint have changed")
        _COUNTS[key] = seen(place.content, kind)
    return _COUNTS[key]


_COUNTS: dict[Any, list[list[int]]] = {}


def _txid(content: Any) -> int:
    row = content.get(ROW)
    return 0 if row is None else row.txid


def _judge_owner(world: World, faults: set[str]) -> None:
    if "outdated" in world.memory:
        raise Violation(f"driver {world.memory['outdated']} has changed the ledger, and a newer one had taken over")
    beginning = world.beginning
    changed = [store.content for store in world.stores] != list(beginning.stores) or world.log.content != beginning.log
    if beginning.refused and changed and not faults & BACK:
        raise Violation("a start has changed a place, and should have been refused")


def _judge_error(cell: Cell, world: World, faults: set[str]) -> None:
    """A driver has ended, perhaps with an error."""
    driver = max((each for each in world.drivers if each.ended), key=lambda each: each.ending)
    if driver.error is None or world.beginning.refused:
        return
    twice = {"start", "wake"} if world.beginning.back is not None else set()  # a log is taken back by the first one
    if not faults & DENIED or (isinstance(driver.error, LineageError) and not faults & {*BACK, *twice}):
        raise Violation(f"a run has ended, and nothing had failed for good: {driver.error!r}")
    if "ZombieError" in str(driver.error) and not faults & {*BACK, "start", "wake"}:
        raise Violation(f"a driver was shut out, and there was no other one: {driver.error!r}")
    decided = max((key[1] for key in world.log.content if key[0] == DECIDED), default=0)
    late = any(name == "give up the batch" for _, _, name, _ in world.taken)  # what is under way may still arrive
    held = decided and not late and faults <= {"refuse", "deny"} and is_back(world)
    if held and decided > _txid(world.stores[cell.kinds.index("batch")].content):
        raise Violation(f"batch {decided} stays decided, and the store has refused it")


def _described(cell: Cell, world: World, number: int, txid: int, name: str) -> tuple[list[int], list[int]] | None:
    """Return how far a batch reaches that is about to be over: at least, and at most. A late step may end the attempt
    before the one that the log describes, until that one has begun in the ledger."""
    log = world.log.content
    begun = logged(log)["begun"]
    if cell.spout == "partitioned" and (positions_path(STREAM), txid) in log:
        ends = _ends(log, cell.spout, txid, None)
    elif cell.spout != "partitioned" and begun is not None and begun["txid"] == txid:
        ends = _ends(log, cell.spout, txid, begun["metadata"])
    else:
        return None
    if name.startswith(LATE) and cell.spout != "partitioned":
        all_ends = [end for of, end in world.memory["ends"] if of == txid]
        return tuple(cell.due(world, number, [end] * len(ends), txid) for end in (min(all_ends), max(all_ends)))  # type: ignore[return-value]
    least = cell.due(world, number, ends, txid)
    more = cell.kinds[number] in (*AGAIN_IS_NOTHING, "non-transactional")  # of an attempt that has failed
    return least, [Here.positions] * len(least) if more else least


def judge_end(cell: Cell, world: World) -> None:
    """Look at what is left when the last driver has ended."""
    faults = world.memory.get("faults", set())
    if world.refused is not None:
        if not faults & BACK and not world.beginning.refused:
            raise Violation(f"a start was refused, and no place had gone back: {world.refused!r}")
        return
    if world.beginning.refused and not faults & BACK:
        raise Violation("a start was not refused")
    if cell.guarantee == "wrong":
        return
    for number, kind in enumerate(cell.kinds):
        dues = cell.due(world, number, [Here.positions] * len(WORDS), logged_over(world.log.content))
        found = seen(world.stores[number].content, kind)
        if any(any(of[due:]) for of, due in zip(found, dues, strict=True)):
            raise Violation(f"the input is done, and behind {dues} are tuples in the store: {found}")
        counts = [of[:due] for of, due in zip(found, dues, strict=True)]
        judge_done(counts, 15 if cell.guarantee == "at least once" else 1)


def judge_done(counts: list[list[int]], most: int = 1) -> None:
    """The input is done: each tuple is there."""
    if not all(1 <= count <= most for of in counts for count in of):
        raise Violation(f"the input is done, and its tuples are in the store {counts} times")
