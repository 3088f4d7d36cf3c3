"""What `trident txid rewind` must leave alone: rows that no run of this checkpoint emits again."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from going_back import Noting, component

from states.files import FileState
from states.sql import AppendState, BatchState, RowUpdater
from states.sql.store import close_stores
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import LineageError, TopologyError
from trident_py.extras.txid.inspection import look
from trident_py.extras.txid.rewind import rewind
from trident_py.spouts import IBatchSpout
from trident_py.testing import FixedBatchSpout

WORD = Fields("word string")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_stores()


def words(spout: Any, states: dict[str, Any], nothing_for: Sequence[str] = ()) -> Any:
    """Each word goes into each state, but none into ``nothing_for``."""
    topology = TridentTopology()
    stream = topology.newStream("in", spout)
    for name, factory in states.items():
        into = stream.filter("word", lambda word: False) if name in nothing_for else stream
        into.partitionPersist(factory, "word", RowUpdater(), stateName=name)
    return topology.build()


def fixed(last: int) -> Any:
    return FixedBatchSpout(WORD, 1, *((f"w{n}",) for n in range(1, last + 1)))


def run(folder: Path, built: Any, place: str = "checkpoints", **conf: Any) -> Noting:
    start = Noting(url(folder), folder, 0, checkpoints=place)
    with LocalCluster(start.place) as cluster:
        cluster.submitTopology("words", conf, built).awaitTermination(60)
    return start


def url(folder: Path) -> str:
    return f"sqlite:///{folder}/store.db"


def back(start: Noting, built: Any, txid: int) -> list[str]:
    return rewind(component(start, topology=built, name="words"), txid)


def abandoned(folder: Path, built: Any) -> dict[str, str]:
    """The setting with which a new checkpoint begins anew, as a refused start of it says."""
    with pytest.raises(TopologyError) as refused:
        run(folder, built, "others")
    return {"topology.lineage.abandon": re.findall(r"lineage '(\w+)'", str(refused.value))[0]}


def stored(folder: Path, table: str = "w") -> list[str]:
    with sqlite3.connect(folder / "store.db") as store:
        return sorted(word for (word,) in store.execute(f"SELECT word FROM {table}"))


@pytest.mark.parametrize("kind", [AppendState, BatchState])
def test_a_table_that_has_no_column_for_the_txid_yet_does_not_go_back(tmp_path: Path, kind: Any) -> None:
    start = run(tmp_path, words(fixed(4), {"w": kind(url(tmp_path), "w", WORD)}))
    noting = words(fixed(4), {"w": kind(url(tmp_path), "w", WORD, txid="batch")})
    with pytest.raises(LineageError, match="table 'w' has no column 'batch' yet"):
        back(start, noting, 3)
    assert stored(tmp_path) == ["w1", "w2", "w3", "w4"]


def test_txids_in_rows_are_not_given_to_other_rows_by_a_new_checkpoint(tmp_path: Path) -> None:
    built = words(fixed(4), {"w": AppendState(url(tmp_path), "w", WORD, txid="batch")})
    run(tmp_path, built)
    with pytest.raises(TopologyError, match=r"topology\.txid\.base"):
        run(tmp_path, built, "others", **abandoned(tmp_path, built))
    start = run(tmp_path, words(fixed(6), {"w": AppendState(url(tmp_path), "w", WORD, txid="batch")}), "others",
                **{"topology.txid.base": 4})  # fmt: skip
    back(start, built, 5)
    assert stored(tmp_path) == ["w1", "w2", "w3", "w4", "w5"]


def test_files_of_an_earlier_checkpoint_stay(tmp_path: Path) -> None:
    """Batches without rows have no files, so those that are there do not tell that the txids began anew."""
    files = FileState(str(tmp_path / "files"), format="json", columns=WORD)
    built = words(fixed(3), {"w": files})
    run(tmp_path, built)
    run(tmp_path, words(fixed(3), {"w": files}, nothing_for="w"), "others", **abandoned(tmp_path, built))
    start = run(tmp_path, words(fixed(4), {"w": files}), "others")
    assert list(files.read()) == [("w1",), ("w2",), ("w3",), ("w4",)]
    back(start, built, 2)
    assert list(files.read()) == [("w1",), ("w2",), ("w3",)]


def test_a_file_that_compaction_made_with_rows_of_an_earlier_checkpoint_stays(tmp_path: Path) -> None:
    files = FileState(str(tmp_path / "files"), format="json", columns=WORD, visible="manifest", compact="1MB")
    run(tmp_path, words(fixed(7), {"w": files}))
    built = words(fixed(1), {"w": files})
    start = run(tmp_path, built, "others", **abandoned(tmp_path, built))
    with pytest.raises(LineageError, match="its batches 0 to 1 are in one file by compaction"):
        back(start, built, 0)
    assert list(files.read()) == [*((f"w{n}",) for n in range(1, 8)), ("w1",)]


def test_a_ledger_that_does_not_mark_files_of_an_earlier_checkpoint_does_not_go_back(tmp_path: Path) -> None:
    built = words(fixed(4), {"w": FileState(str(tmp_path / "files"), format="json", columns=WORD)})
    run(tmp_path, built)
    start = run(tmp_path, built, "others", **abandoned(tmp_path, built))
    newest = max((tmp_path / "files/_trident/ledger").glob("[0-9]*.json"))
    record = json.loads(newest.read_text())
    for file in record["files"]:
        file["first"] = file["last"] = int(file["name"][5:15])
    newest.write_text(json.dumps(record))
    files = sorted((tmp_path / "files").iterdir())
    with pytest.raises(LineageError, match="files of an earlier checkpoint"):
        back(start, built, 2)
    assert sorted((tmp_path / "files").iterdir()) == files


class Queue(IBatchSpout):
    """Keeps what it has emitted until its ack, as the contract says."""

    kind = "transactional"

    def __init__(self) -> None:
        self.left = ["a", "b", "c"]
        self.kept: dict[int, str] = {}

    def getOutputFields(self) -> Fields:
        return WORD

    def emitBatch(self, batchId: int, collector: Any) -> None:
        if batchId not in self.kept and self.left:
            self.kept[batchId] = self.left.pop(0)
        if batchId in self.kept:
            collector.emit([self.kept[batchId]])

    def ack(self, batchId: int) -> None:
        self.kept.pop(batchId, None)

    def isExhausted(self) -> bool:
        return not self.left


def test_a_spout_that_keeps_a_batch_until_its_ack_does_not_go_back(tmp_path: Path) -> None:
    built = words(Queue(), {"w": AppendState(url(tmp_path), "w", WORD, txid="batch")})
    start = run(tmp_path, built)
    there = stored(tmp_path)
    with pytest.raises(LineageError, match="it keeps a batch until its ack, and no longer"):
        back(start, built, 1)
    assert stored(tmp_path) == there != []


def test_a_state_that_no_row_has_reached_goes_back_with_the_others(tmp_path: Path) -> None:
    states = {name: AppendState(url(tmp_path), name, txid="batch") for name in ("w", "never")}
    start = run(tmp_path, words(fixed(4), states, ["never"]))
    assert sorted(back(start, words(fixed(4), states, ["never"]), 2)) == ["never", "w"]
    run(tmp_path, words(fixed(5), states, ["never"]))
    assert stored(tmp_path) == ["w1", "w2", "w3", "w4", "w5"]


def test_a_state_that_is_new_gets_the_batches_after_the_one_it_goes_back_to(tmp_path: Path) -> None:
    states = {name: AppendState(url(tmp_path), name, WORD, txid="batch") for name in ("w", "n")}
    start = run(tmp_path, words(fixed(4), {"w": states["w"]}))
    both = words(fixed(5), states)
    back(start, both, 2)
    assert look(component(start, topology=both, name="words")).next.sentence == "continues after txid 2"
    run(tmp_path, both)
    assert (stored(tmp_path), stored(tmp_path, "n")) == (["w1", "w2", "w3", "w4", "w5"], ["w3", "w4", "w5"])
