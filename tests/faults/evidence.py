"""What a run has left: stores, the log of commits, the log of batches; and what they should hold."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from states.sql.store import close_stores
from trident_py.checkpoints.append_log import AppendLogStore
from trident_py.checkpoints.metadata_store import LOG
from trident_py.model.chunks import Chunk
from trident_py.model.partitioning import FieldsPartition, Route
from trident_py.tuples import Fields

from . import story
from .topology import stores


class Line(NamedTuple):
    """One commit, or one refusal, of one partition of a state."""

    what: str
    state: str
    txid: int
    attempt: int
    partition: int
    of: int
    error: str


@dataclass(frozen=True)
class Evidence:
    """Everything there is at one moment at which no driver runs."""

    stored: dict[str, dict]
    log: list[Line]
    begun: int
    over: int

    def committed(self, state: str, txid: int) -> list[tuple[int, int]]:
        """(partition, of how many) of each commit, in order."""
        return [(x.partition, x.of) for x in self.log if x[:3] == ("committed", state, txid)]


def evidence(folder: Path) -> Evidence:
    found = {name: dict(factory.stored()) for name, factory in stores(folder).items()}
    close_stores()
    log = folder / "log"
    lines = [Line(**json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []
    return Evidence(found, lines, *reached(folder))


def reached(folder: Path) -> tuple[int, int]:
    """The last txids that have begun, and that are over."""
    begun = over = 0
    for component in folder.glob("check*/*/*"):
        store = AppendLogStore(component)
        record = store.get(LOG, 0)
        store.close()
        if record is None:
            continue
        over = record["over"]["txid"] if record["over"] else 0
        begun = record["begun"]["txid"] if record["begun"] else over
    return begun, over


def partition_of(key: str, of: int) -> int:
    """Where a grouped key goes; the engine's own choice."""
    chunk = Chunk.of_rows(Fields("key string"), [(key,)])
    return next(iter(FieldsPartition(Fields("key")).split(chunk, Route(1, 0, 0, of))))[0]


def halfway(seen: Evidence, state: str, txid: int) -> story.Fold:
    """The fold over all batches before this one, and of this one what its committed partitions had."""
    done = set(seen.committed(state, txid))
    mine = [row for row in story.batch(txid) if any(partition_of(row[1], of) == p for p, of in done)]
    return story.fold(range(1, txid)).add(txid, mine)


def counted(seen: Evidence) -> dict[tuple[str], int]:
    """What the non-transactional state must hold: every commit of every partition counted, replays too."""
    found: dict[tuple[str], int] = {}
    for line in seen.log:
        if (line.what, line.state) == ("committed", "plain"):
            for _, word, _ in story.batch(line.txid):
                if partition_of(word, line.of) == line.partition:
                    found[(word,)] = found.get((word,), 0) + 1
    return found


def drifted_prefix(stored: dict[tuple[str], Any], before: int) -> list[int]:
    """How many numbers of each partition the drifting spout's sums stand for, before a txid. Raises if for none:
    something is lost or doubled then."""
    base = {key: v.curr if v.currTxid < before else v.prev for key, v in stored.items()}
    base = {key: value for key, value in base.items() if value is not None}
    counts = []
    for partition in range(story.PARTITIONS):
        mine = {key: value for key, value in base.items() if key[0].startswith(f"d{partition}-")}
        rows = [story.drifting_row(partition, n) for n in range(400)]
        counts.append(next(n for n in range(400) if story.sums(rows[:n]) == mine))
    return counts
