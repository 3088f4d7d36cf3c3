"""kill -9 of the driver at every named step, and before every call that FileState makes of its store.

Each start goes on where the last one was killed. At the end every row that a reader without our package finds is
compared with a plain fold of the input.
"""

from __future__ import annotations

import http.server
import itertools
import signal
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from states.files import FileState, RowUpdater
from trident_py import TridentTopology
from trident_py.testing.proxy import HOST, CuttingProxy

from .file_rows import count_calls, files_state, rows_in_files
from .forks import Start, run, run_with
from .readings import PARTITIONS, Fold, Readings
from .steps import DRIVER, STEPS, Fault, InHalves, Stepped
from .stores import ROW, Source

pytestmark = pytest.mark.dear

SEED = 5
MODES = ("files", "batches", "manifest")
NAME = "rows"


@dataclass(frozen=True)
class FileStart(Start):
    """One start of a driver with one FileState; ``url`` is its folder."""

    mode: str = "files"
    settings: tuple[tuple[str, str], ...] = ()
    """The storage of the state; that of the checkpoint is local."""

    def topology(self) -> Any:
        count_calls()
        factory = files_state(self.url, self.mode, storage=self.settings)
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
        driver = run(FileStart(url, tmp_path, last, (fault,), SEED, mode=mode, settings=storage))
        assert driver.process.exitcode == -signal.SIGKILL, (fault, driver.told[-2:])
    driver = run(FileStart(url, tmp_path, last, (), SEED, mode=mode, settings=storage))
    assert driver.told[-1] == ("done", last), driver.told[-1]
    factory = FileState(url, columns=ROW, storage=storage)
    assert factory.stored() == Fold(Readings(SEED), last).counted()
    assert [entry.name for entry in factory.folder().list_folder("_trident/staging")] == []


class Refusing(http.server.BaseHTTPRequestHandler):
    """An object store that lets nobody in."""

    def refuse(self) -> None:
        said = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else said)
        self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = refuse

    def log_message(self, format: str, *args: Any) -> None: ...


WHERE = ["publish", *(pytest.param(step, marks=pytest.mark.whole) for step in ("begin", "written"))]


@pytest.mark.parametrize("step", WHERE)
def test_a_store_that_answers_403_for_a_while_ends_the_run_in_words(s3: Any, tmp_path: Path, step: str) -> None:
    """It may be for good: nobody but its owner can tell. The next start goes on exactly, once the store lets it."""
    name = f"refused-{uuid.uuid4().hex[:12]}"
    s3.make_bucket(name)
    with http.server.ThreadingHTTPServer((HOST, 0), Refusing) as refusing, CuttingProxy(HOST, s3.port) as proxy:
        threading.Thread(target=refusing.serve_forever, daemon=True).start()
        storage = {**s3.storage, "endpoint_override": f"http://{HOST}:{proxy.port}"}
        start = FileStart(f"s3://{name}/rows", tmp_path, 4, seed=SEED, settings=tuple(storage.items()))

        def refuse(txid: int) -> None:
            proxy.target = (HOST, refusing.server_port)
            proxy.cut()

        driver = run_with(replace(start, faults=(Fault(step, NAME, 2, action="ask"),)), refuse)
        kind, error, said = driver.told[-1]
        assert (kind, error) == ("error", "StateError")
        assert "the store refuses access" in said and "Check the credentials" in said
        proxy.target = (HOST, s3.port)
        proxy.cut()
        assert run(start).told[-1] == ("done", 4)
        refusing.shutdown()
    factory = FileState(start.url, columns=ROW, storage=s3.storage)
    assert factory.stored() == Fold(Readings(SEED), 4).counted()
