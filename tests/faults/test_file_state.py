"""kill -9 of the driver at every named step, and before every call that FileState makes of its store.

Each start goes on where the last one was killed. At the end every row that a reader without our package finds is
compared with a plain fold of the input.
"""

from __future__ import annotations

import itertools
import signal
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from states.files import FileState, RowUpdater
from trident_py import TridentTopology

from .file_rows import count_calls, files_state, rows_in_files
from .forks import Start, run
from .readings import PARTITIONS, Fold, Readings
from .steps import DRIVER, STEPS, Fault, InHalves, Stepped
from .stores import ROW, Source

SEED = 5
MODES = ("files", "batches", "manifest")
NAME = "rows"


@dataclass(frozen=True)
class FileStart(Start):
    """One start of a driver with one FileState; ``url`` is its folder."""

    mode: str = "files"
    storage: tuple[tuple[str, str], ...] = ()

    def topology(self) -> Any:
        count_calls()
        factory = files_state(self.url, self.mode, storage=self.storage)
        topology = TridentTopology()
        stream = topology.newStream("readings", Source(Readings(self.seed), self.last)).parallelismHint(PARTITIONS)
        stream = stream.partitionBy("sender")
        stepped = Stepped(NAME, factory)
        stream.partitionPersist(stepped, ROW.names, InHalves(RowUpdater())).parallelismHint(self.partitions)
        return topology.build()


def holds(folder: Path, mode: str, last: int) -> None:
    expected = Fold(Readings(SEED), last).counted()
    assert rows_in_files(folder, False) == expected
    if mode != "manifest":
        assert rows_in_files(folder, True) == expected
    hidden = [path.name for path in (folder / "_trident").rglob("*") if path.is_file()]
    assert [name for name in hidden if not name.endswith(".json")] == []


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_killed_at_any_step_loses_and_doubles_nothing(tmp_path: Path, mode: str) -> None:
    places = [*((step, 0) for step in STEPS), ("begin", 1), ("committed", 1)]
    folder, last = tmp_path / "files", len(places) + 2
    for txid, (step, partition) in enumerate(places, 2):
        fault = Fault(step, NAME, txid, partition)
        driver = run(FileStart(str(folder), tmp_path, last, (fault,), SEED, mode=mode))
        assert driver.process.exitcode == -signal.SIGKILL, (fault, driver.told[-2:])
    driver = run(FileStart(str(folder), tmp_path, last, (), SEED, mode=mode))
    assert driver.told[-1] == ("done", last), driver.told[-1]
    holds(folder, mode, last)


def killed_before_each_call(folder: Path, mode: str, partition: int) -> Iterator[int]:
    """Yields the txid after each death; ends when a batch has fewer calls."""
    txid = 1
    for number in itertools.count(1):
        txid += 1
        fault = Fault("statement", NAME, txid, partition, number=number)
        driver = run(FileStart(str(folder), folder.parent, txid, (fault,), SEED, mode=mode))
        if driver.process.exitcode == 0:
            assert driver.told[-1] == ("done", txid)
            return
        assert driver.process.exitcode == -signal.SIGKILL, driver.told[-2:]
        yield txid


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("partition", "least"), [(0, 2), (DRIVER, 8)], ids=["in a task", "in publish"])
def test_a_driver_killed_before_any_call_of_the_store_loses_and_doubles_nothing(
    tmp_path: Path, mode: str, partition: int, least: int
) -> None:
    folder = tmp_path / "files"
    deaths = list(killed_before_each_call(folder, mode, partition))
    assert len(deaths) >= least
    holds(folder, mode, deaths[-1] + 1)


PLACES = [("hdfs", "batches"), ("s3", "manifest"), ("hdfs", "files"), ("s3", "files")]


@pytest.mark.whole("test_batches_are_published_and_replayed")
@pytest.mark.parametrize(("kind", "mode"), PLACES)
def test_a_driver_killed_at_any_step_loses_and_doubles_nothing_in_a_store(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, mode: str
) -> None:
    server, name = request.getfixturevalue(kind), f"killed-{uuid.uuid4().hex[:12]}"
    if kind == "s3":
        server.make_bucket(name)
    url = f"s3://{name}/rows" if kind == "s3" else f"{server.url}/{name}"
    storage = tuple(server.storage.items())
    places = [*((step, 0) for step in STEPS), ("begin", 1), ("committed", 1)]
    last = len(places) + 2
    for txid, (step, partition) in enumerate(places, 2):
        fault = Fault(step, NAME, txid, partition)
        driver = run(FileStart(url, tmp_path, last, (fault,), SEED, mode=mode, storage=storage))
        assert driver.process.exitcode == -signal.SIGKILL, (fault, driver.told[-2:])
    driver = run(FileStart(url, tmp_path, last, (), SEED, mode=mode, storage=storage))
    assert driver.told[-1] == ("done", last), driver.told[-1]
    factory = FileState(url, columns=ROW, storage=storage)
    assert factory.stored() == Fold(Readings(SEED), last).counted()
    assert [entry.name for entry in factory.folder().list_folder("_trident/staging")] == []
