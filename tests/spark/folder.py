"""A state whose store is a folder: one file for each txid and partition, written whole, with what it got.

It runs in Python workers and in driver processes that tests kill, so it lives in a module of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trident_py import Fields, TridentTopology
from trident_py.spouts import FixedBatchSpout
from trident_py.state import Location, State, StateFactory, StateUpdater


@dataclass
class FolderState(State):
    """On replay: the file of the txid is written again, whole."""

    folder: Path
    partition: int
    attempt: Any
    txid: int | None = None

    def beginCommit(self, txid: int | None) -> None:
        self.txid = txid

    def write(self, rows: list[list[Any]]) -> None:
        file = self.folder / f"{self.txid:06d}-{self.partition}.json"
        scratch = file.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps({"rows": rows, "attempt": self.attempt.transaction[1], "pid": os.getpid()}))
        scratch.replace(file)

    def commit(self, txid: int | None) -> None:
        assert txid == self.txid


@dataclass(frozen=True)
class FolderFactory(StateFactory):
    folder: str
    kind: str = "transactional"

    @property
    def location(self) -> Location:
        return Location(frozenset(["a file system"]), frozenset([self.folder]))

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> FolderState:
        return FolderState(Path(self.folder), partitionIndex, conf["trident.context"])


class WriteRows(StateUpdater):
    def updateState(self, state: FolderState, tuples: Sequence[Any], collector: Any) -> None:
        state.write([list(tuple_) for tuple_ in tuples])


def written(folder: Path) -> dict[int, list[list[Any]]]:
    """txid -> rows of all partitions, sorted."""
    found: dict[int, list[list[Any]]] = {}
    for file in sorted(folder.glob("*-*.json")):
        txid = int(file.name.partition("-")[0])
        found[txid] = sorted(found.get(txid, []) + json.loads(file.read_text())["rows"])
    return found


def attempts(folder: Path) -> dict[int, set[int]]:
    """txid -> attempts that the files are of."""
    found: dict[int, set[int]] = {}
    for file in sorted(folder.glob("*-*.json")):
        txid = int(file.name.partition("-")[0])
        found.setdefault(txid, set()).add(json.loads(file.read_text())["attempt"])
    return found


def numbers(count: int, size: int = 2) -> FixedBatchSpout:
    """0, 1, 2, ... in batches."""
    return FixedBatchSpout(Fields("n"), size, *[(n,) for n in range(count)])


def copy_topology(folder: Path, spout: Any, function: Any = None, partitions: int = 2) -> Any:
    """The spout's numbers, through a function if there is one, by number into two partitions of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    topology = TridentTopology()
    stream = topology.newStream("numbers", spout)
    if function is not None:
        stream = stream.each("n", function, Fields("m")).project("m")
    field = "n" if function is None else "m"
    stream.partitionBy(field).partitionPersist(FolderFactory(str(folder)), field, WriteRows()).parallelismHint(
        partitions
    )
    return topology.build()
