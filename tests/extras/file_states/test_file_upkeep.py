"""FileState: compaction and retention, and what readers see meanwhile."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from contracts.crashing import Driver
from file_readers import by_manifest, by_spark_list, counted, listed, manifest, visible
from hypothesis import given
from hypothesis import strategies as st

from states.files import FileState, RecordFormat, RowUpdater
from trident_py.errors import FailedException, StateError, ZombieError
from trident_py.extras.files.folder import StateFolder
from trident_py.extras.files.ledger import DataFile
from trident_py.extras.files.upkeep import AT_LEAST, LARGEST, due
from trident_py.tuples import TridentTuple

COLUMNS = ["word string", "n bigint"]


def batch(txid: int, size: int = 6) -> list[TridentTuple]:
    return [TridentTuple.of(["word", "n"], (f"w{n}", txid)) for n in range(size)]


def values(*txids: int) -> Counter[tuple]:
    return Counter(tuple(row) for txid in txids for row in batch(txid))


def driver(factory: FileState) -> Driver:
    return Driver(factory, RowUpdater())


@pytest.fixture
def clock() -> Iterator[Any]:
    with mock.patch("trident_py.extras.files.clock.now", return_value=1000.0) as now:
        yield now


@pytest.fixture(params=["parquet", "csv", "json"])
def compacting(request: pytest.FixtureRequest, tmp_path: Path) -> FileState:
    return FileState(tmp_path / "rows", request.param, COLUMNS, visible="manifest", compact="1MB", grace="60s")


def names(factory: FileState) -> list[str]:
    return sorted(entry.name for entry in factory.folder().list_folder("") if entry.name.startswith("_part"))


def test_small_files_become_one_and_the_old_ones_go_after_a_while(compacting: FileState, clock: Any) -> None:
    running = driver(compacting)
    for txid in range(1, 5):
        running.batch(batch(txid), txid)
    record = compacting.newest()
    assert record is not None
    assert [(file.first, file.last, file.rows) for file in record.files] == [(1, 4, 24)]
    assert compacting.participant().measure_size() == record.files[0].bytes
    assert len(record.replaced) == 8 and len(names(compacting)) == 9  # readers may still read the small ones
    assert compacting.stored() == values(1, 2, 3, 4)
    clock.return_value += 60
    running.batch(batch(5), 5)
    assert len(names(compacting)) == 3
    assert compacting.stored() == values(1, 2, 3, 4, 5)
    assert compacting.newest().replaced == ()  # type: ignore[union-attr]


class Titled(RecordFormat):
    header = b"SEQ\n"

    def format(self, tuple: Any) -> bytes:
        return f"{tuple[0]}\n".encode()


def test_compacted_records_have_one_header(tmp_path: Path) -> None:
    factory = FileState(tmp_path / "rows", Titled(), COLUMNS, visible="manifest", compact="1MB", grace=0)
    running = driver(factory)
    for txid in range(1, 5):
        running.batch(batch(txid), txid)
    record = factory.newest()
    assert record is not None and len(record.files) == 1
    lines = (tmp_path / "rows" / record.files[0].name).read_bytes().splitlines()
    assert lines[0] == b"SEQ" and lines.count(b"SEQ") == 1 and len(lines) == 25
    assert factory.stored() == Counter((line,) for line in lines[1:])


def test_a_reader_sees_no_row_twice_and_misses_none(tmp_path: Path) -> None:
    """He reads by the manifest while batches are published and compacted, and old files are deleted."""
    factory = FileState(tmp_path / "rows", columns=COLUMNS, visible="manifest", compact="1MB", sync="never")
    running = driver(factory)
    running.batch(batch(1), 1)
    over, seen = threading.Event(), []

    def poll() -> None:
        while not over.is_set():
            seen.append(counted(by_manifest(tmp_path / "rows")))

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        for txid in range(2, 60):
            running.batch(batch(txid), txid)
    finally:
        over.set()
        reader.join()
    whole = [values(*range(1, last + 1)) for last in range(1, 60)]
    assert all(found in whole for found in seen) and len({len(found) for found in seen}) > 2
    assert len(manifest(tmp_path / "rows")["files"]) < 30


def test_a_driver_that_dies_anywhere_in_a_compaction_is_continued(tmp_path: Path) -> None:
    class Died(BaseException):
        pass

    number, died = 1, True
    while died:
        factory = FileState(tmp_path / f"{number}", columns=COLUMNS, visible="manifest", compact="1MB", grace=0)
        old = driver(factory)
        for txid in (1, 2, 3):
            old.batch(batch(txid), txid)
        receipts, calls = old.run(batch(4), 4), []
        patches = [mock.patch.object(StateFolder, name, _dying(name, number, calls, Died)) for name in CALLS]
        for patch in patches:
            patch.start()
        try:
            old.publish(4, 0, receipts)
        except Died:
            pass
        finally:
            mock.patch.stopall()
        died = len(calls) >= number
        new = driver(factory)
        new.publish(4, 0, receipts)
        with pytest.raises(ZombieError):
            old.publish(4, 0, receipts)
        new.batch(batch(5), 5)
        new.batch(batch(6), 6)
        assert factory.stored() == counted(by_manifest(Path(factory.uri))) == values(1, 2, 3, 4, 5, 6), number
        counted_now = {file["name"] for file in manifest(Path(factory.uri))["files"]}
        assert set(names(factory)) == by_spark_list(Path(factory.uri)) == counted_now, number
        assert factory.folder().list_folder("_trident/staging") == [], number
        number += 1
    assert number > 25


CALLS = ["list_folder", "read", "create", "open_writer", "open", "rename", "sync", "delete"]


def _dying(name: str, number: int, calls: list[str], died: type[BaseException]) -> Any:
    method = getattr(StateFolder, name)

    def call(self: StateFolder, *args: Any) -> Any:
        calls.append(name)
        if len(calls) >= number:
            raise died
        return method(self, *args)

    return call


def test_a_list_for_spark_that_could_not_be_written_leaves_no_gap(tmp_path: Path) -> None:
    """With a gap Spark would look for lists that do not exist."""
    factory = FileState(tmp_path / "rows", columns=COLUMNS, visible="manifest", compact="1MB")
    running, create, lists = driver(factory), StateFolder.create, []

    def failing(self: StateFolder, name: str, data: bytes) -> bool:
        lists.extend([name] if name.startswith("_spark") else [])
        if len(lists) == 5:  # that of the compaction
            raise FailedException("the store is away")
        return create(self, name, data)

    with mock.patch.object(StateFolder, "create", failing):
        for txid in range(1, 5):
            running.batch(batch(txid), txid)
    assert len(manifest(tmp_path / "rows")["files"]) == 1 and len(by_spark_list(tmp_path / "rows")) == 8
    running.batch(batch(5), 5)
    assert by_spark_list(tmp_path / "rows") == {file["name"] for file in manifest(tmp_path / "rows")["files"]}


def test_a_damaged_file_is_not_compacted_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, clock: Any
) -> None:
    """All else that is due is done."""
    factory = FileState(
        tmp_path / "rows", columns=COLUMNS, visible="manifest", compact="1MB", retention="1h", grace="60s"
    )
    running = driver(factory)
    running.batch(batch(1), 1)
    clock.return_value += 3540
    for txid in (2, 3):
        running.batch(batch(txid), txid)
    path = tmp_path / "rows" / manifest(tmp_path / "rows")["files"][2]["name"]
    content = bytearray(path.read_bytes())
    content[20] ^= 1
    path.write_bytes(content)
    for txid in (4, 5, 6):
        clock.return_value += 60
        running.batch(batch(txid), txid)
    assert "is damaged: its checksum is not the one written" in caplog.text
    assert running.participant.newest().txid == 6 and len(manifest(tmp_path / "rows")["files"]) == 10
    assert len(names(factory)) == 10 and factory.folder().list_folder("_trident/staging") == []


def test_a_compaction_that_is_refused_leaves_no_hidden_file(tmp_path: Path) -> None:
    """As S3 refuses to copy a file that is too large."""
    factory = FileState(tmp_path / "rows", columns=COLUMNS, visible="manifest", compact="1MB")
    running, rename = driver(factory), StateFolder.rename

    def refusing(self: StateFolder, source: str, target: str) -> bool:
        if "merged-" in source:
            raise StateError("too large to be copied")
        return rename(self, source, target)

    with mock.patch.object(StateFolder, "rename", refusing):
        for txid in range(1, 6):
            running.batch(batch(txid), txid)
    assert factory.folder().list_folder("_trident/staging") == []
    running.batch(batch(6), 6)
    assert len(manifest(tmp_path / "rows")["files"]) == 1 and factory.stored() == values(*range(1, 7))


@pytest.mark.parametrize("mode", ["files", "batches", "manifest"])
def test_rows_stay_as_long_as_they_are_wanted(tmp_path: Path, clock: Any, mode: str) -> None:
    factory = FileState(tmp_path / "rows", columns=COLUMNS, visible=mode, retention="1h", grace="60s")
    running = driver(factory)
    for txid in (1, 2, 3):
        running.batch(batch(txid), txid)
        clock.return_value += 1800
    assert factory.stored() == counted(by_manifest(tmp_path / "rows")) == values(2, 3)
    if mode != "manifest":
        assert counted(listed(tmp_path / "rows")) == values(1, 2, 3)  # for readers who have begun
    clock.return_value += 60
    running.batch(batch(4), 4)
    assert factory.stored() == counted(by_manifest(tmp_path / "rows")) == values(3, 4)
    if mode != "manifest":
        assert counted(listed(tmp_path / "rows")) == values(2, 3, 4)
    assert len(visible(tmp_path / "rows")) == (0 if mode == "manifest" else 6)


def test_a_batch_that_runs_anew_keeps_its_folder_when_the_one_before_had_expired(tmp_path: Path, clock: Any) -> None:
    factory = FileState(tmp_path / "rows", columns=COLUMNS, visible="batches", retention="1h", grace="30m")
    running = driver(factory)
    for txid in (1, 2, 3):
        running.batch(batch(txid), txid)
    clock.return_value += 3600
    running.batch(batch(4), 4)
    running.participant.rewind(2)
    running.batch(batch(3), 3)
    clock.return_value += 1800
    running.batch(batch(4), 4)
    assert factory.stored() == counted(listed(tmp_path / "rows")) == values(3, 4)


def test_what_is_due(tmp_path: Path) -> None:
    def files(*sizes: int) -> list[DataFile]:
        return [DataFile(f"{n}", 1, size, "", n, n) for n, size in enumerate(sizes)]

    few, enough = files(*[1] * (AT_LEAST - 1)), files(*[1] * AT_LEAST)
    assert due(few, 100) == [] and due(enough, 100) == enough
    assert due(enough, 1) == []
    assert due(files(99, *[1] * AT_LEAST), 100)[0].name == "1"  # it would be copied with every few batches
    assert [file.name for file in due(files(200, *[1] * AT_LEAST, 200), 100)] == [str(n + 1) for n in range(AT_LEAST)]
    large = due(files(*[3 << 30] * 2, *[300 << 20] * 20), LARGEST)
    assert len(large) >= AT_LEAST and sum(file.bytes for file in large) <= LARGEST
    assert due(files(*[1 << 28] * AT_LEAST, 3 << 30), LARGEST) == files(*[1 << 28] * AT_LEAST)


@given(st.integers(1, 400), st.integers(1, 50))
def test_a_row_is_copied_a_few_times_only(batches: int, size: int) -> None:
    """Merging as each batch comes: every row once, in order, and the copies grow with the logarithm."""
    files: list[DataFile] = []
    copied = 0
    for txid in range(batches):
        files.append(DataFile(f"{txid}", 1, size, "", txid, txid))
        if small := due(files, 10_000):
            copied += sum(file.bytes for file in small)
            at = files.index(small[0])
            merged = DataFile(f"m{txid}", 0, sum(file.bytes for file in small), "", small[0].first, small[-1].last)
            files[at : at + len(small)] = [merged]
    assert sum(file.bytes for file in files) == batches * size
    assert [file.first for file in files][1:] == [file.last + 1 for file in files][:-1]
    assert copied <= batches * size * 10
