"""FileState: what readers see while batches become visible, and what is durable when."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from contracts.crashing import Driver
from file_readers import by_manifest, by_spark_list, counted, listed, manifest, visible

from states.files import FileState, RowUpdater
from trident_py.errors import DefinitionError, FailedException, StateError, TridentError, ZombieError
from trident_py.extras.files.folder import StateFolder
from trident_py.extras.files.names import (
    batch_of,
    file_name,
    format_merged_name,
    format_staged_name,
    is_merged,
    parse_staged_name,
)
from trident_py.tuples import TridentTuple

pytestmark = pytest.mark.dear

COLUMNS = ["word string", "n bigint"]
MODES = ["files", "batches", "manifest"]
CALLS = ["list_folder", "read", "create", "open_writer", "rename", "rename_folder", "sync", "delete"]


def rows(*values: tuple) -> list[TridentTuple]:
    return [TridentTuple.of(["word", "n"], each) for each in values]


def batch(txid: int, size: int = 40) -> list[TridentTuple]:
    return rows(*[(f"w{n}", txid) for n in range(size)])


def state(folder: Path, **more: Any) -> FileState:
    return FileState(folder / "rows", columns=COLUMNS, **more)


def driver(factory: FileState, **more: Any) -> Driver:
    return Driver(factory, RowUpdater(), **more)


def staged(factory: FileState) -> list[str]:
    return [entry.name for entry in factory.folder().list_folder("_trident/staging")]


def test_names_follow_from_txid_and_partition(tmp_path: Path) -> None:
    running = driver(factory := state(tmp_path))
    for txid in (1, 2):
        running.batch(batch(txid), txid, of=2)
    assert visible(tmp_path / "rows") == [
        f"part-{txid:010d}-{partition:05d}.parquet" for txid in (1, 2) for partition in (0, 1)
    ]
    assert counted(listed(tmp_path / "rows")) == counted(by_manifest(tmp_path / "rows")) == factory.stored()
    assert [file["first"] for file in manifest(tmp_path / "rows")["files"]] == [1, 1, 2, 2]
    assert staged(factory) == []


@pytest.mark.parametrize("name", ["²", "²²²²²²²²²²"])
def test_a_file_whose_name_has_a_digit_that_is_no_number_is_left_alone(tmp_path: Path, name: str) -> None:
    running = driver(factory := state(tmp_path, visible="batches"))
    running.batch(batch(1), 1, of=2)
    strays = [tmp_path / "rows" / folder / f"{name}{end}" for folder, end in (("_trident/ledger", ".json"),
              ("_spark_metadata", ""))]  # fmt: skip
    for stray in strays:
        stray.write_bytes(b"")
    running.batch(batch(2), 2, of=2)
    assert counted(listed(tmp_path / "rows")) == factory.stored()
    assert all(stray.exists() for stray in strays)


@pytest.mark.parametrize(("mode", "read"), [("batches", listed), ("files", by_manifest), ("manifest", by_manifest)])
def test_a_reader_never_sees_a_part_of_a_batch(tmp_path: Path, mode: str, read: Callable[[Path], Any]) -> None:
    """Each batch has 40 rows in 4 partitions: every count that a reader sees is a multiple of 40, of whole batches."""
    running = driver(state(tmp_path, visible=mode))
    running.batch(batch(1), 1, of=4)
    over, seen = threading.Event(), []

    def poll() -> None:
        while not over.is_set():
            frame = read(tmp_path / "rows")
            seen.append((len(frame), frame["n"].nunique()))

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        for txid in range(2, 30):
            running.run(batch(txid), txid, of=4, only={0, 1, 2})
            running.participant.abort(txid, 0)
            running.batch(batch(txid), txid, of=4, attempt=1)
    finally:
        over.set()
        reader.join()
    assert set(seen) <= {(40 * n, n) for n in range(1, 30)} and len(set(seen)) > 2
    assert len(read(tmp_path / "rows")) == 40 * 29


def test_who_lists_single_files_sees_whole_files_of_decided_batches(tmp_path: Path) -> None:
    running = driver(state(tmp_path))
    running.batch(batch(1), 1, of=4)
    over, seen = threading.Event(), []

    def poll() -> None:
        while not over.is_set():
            seen.append(counted(listed(tmp_path / "rows")))

    whole = {n: {partition: set() for partition in range(4)} for n in range(1, 20)}
    reader = threading.Thread(target=poll)
    reader.start()
    try:
        for txid in range(2, 20):
            running.run(batch(txid), txid, of=4)  # given up: nobody decided on it
            running.batch(batch(txid), txid, of=4, attempt=1)
    finally:
        over.set()
        reader.join()
    assert len(seen) > 2
    for found in seen:
        assert set(found.values()) == {1}
        last = max(n for _, n in found)
        assert {n for _, n in found} <= set(whole)
        assert all(sum(1 for _, n in found if n == txid) == 40 for txid in range(1, last))


def test_hidden_names_hide_from_who_lists(tmp_path: Path) -> None:
    running = driver(factory := state(tmp_path, visible="manifest"))
    running.batch(batch(1), 1)
    assert visible(tmp_path / "rows") == []
    assert counted(by_manifest(tmp_path / "rows")) == factory.stored() == Counter(map(tuple, batch(1)))


def test_only_the_files_of_the_receipts_become_visible(tmp_path: Path) -> None:
    running = driver(factory := state(tmp_path))
    running.run(rows(("dead", 1)), 1, of=1)
    running.participant.abort(1, 0)
    assert staged(factory) == []
    running.run(rows(("dead", 2)), 1, of=1, attempt=1)  # not even aborted
    first = running.run(rows(("right", 1), ("right", 1)), 1, of=1, attempt=2)
    running.tasks(rows(("twin", 1)), 1, of=1, attempt=2)  # Spark ran the task twice
    assert len(staged(factory)) == 3
    running.publish(1, 2, first)
    assert factory.stored() == {("right", 1): 2} and staged(factory) == []
    assert counted(listed(tmp_path / "rows")) == {("right", 1): 2}


@pytest.mark.parametrize("mode", MODES)
def test_a_missing_or_changed_file_is_told_and_nothing_shown(tmp_path: Path, mode: str) -> None:
    running = driver(factory := state(tmp_path, visible=mode))
    receipts = running.run(batch(1), 1)
    path = tmp_path / "rows" / receipts[1]["files"][0][0]
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(StateError, match=f"has {len(content) - 1} bytes; its task wrote {len(content)}"):
        running.publish(1, 0, receipts)
    path.unlink()
    with pytest.raises(StateError, match="is gone"):
        running.publish(1, 0, receipts)
    assert visible(tmp_path / "rows") == [] and factory.stored() == {}
    with pytest.raises(StateError, match="two receipts from one partition"):
        running.publish(1, 0, receipts[:1] * 2)
    running.batch(batch(1), 1, attempt=1)
    assert factory.stored() == Counter(map(tuple, batch(1)))


@contextmanager
def failing(number: int) -> Iterator[list[str]]:
    """The n-th call of the store fails, as if its process had died there, before it does anything."""
    calls: list[str] = []

    class Died(BaseException):
        pass

    def wrapped(name: str) -> Any:
        method = getattr(StateFolder, name)

        def call(self: StateFolder, *args: Any) -> Any:
            calls.append(name)
            if len(calls) >= number:
                raise Died
            return method(self, *args)

        return mock.patch.object(StateFolder, name, call)

    patches = [wrapped(name) for name in CALLS]
    for patch in patches:
        patch.start()
    try:
        yield calls
    except Died:
        pass
    finally:
        mock.patch.stopall()


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_that_dies_before_any_call_of_a_publish_is_continued(tmp_path: Path, mode: str) -> None:
    """The next driver publishes the decision again, of the same receipts; the dead one may then wake up."""
    number, died = 1, True
    while died:
        factory = FileState(tmp_path / f"rows{number}", columns=COLUMNS, visible=mode)
        old = driver(factory)
        old.batch(batch(1), 1)
        receipts = old.run(batch(2), 2)
        with failing(number) as calls:
            old.publish(2, 0, receipts)
        died = len(calls) >= number
        new = driver(factory)
        new.publish(2, 0, receipts)
        expected = Counter(map(tuple, [*batch(1), *batch(2)]))
        assert factory.stored() == counted(by_manifest(Path(factory.uri))) == expected
        with pytest.raises(ZombieError):
            old.publish(2, 0, receipts)
        new.batch(batch(3), 3)
        expected += Counter(map(tuple, batch(3)))
        assert factory.stored() == counted(by_manifest(Path(factory.uri))) == expected, number
        if mode != "manifest":
            assert counted(listed(Path(factory.uri))) == expected, number
        assert by_spark_list(Path(factory.uri)) == {file["name"] for file in manifest(Path(factory.uri))["files"]}
        assert staged(factory) == []
        number += 1
    assert number > 8


class Sleeper:
    """A thread whose n-th call of the store waits until it is woken."""

    def __init__(self, number: int, work: Callable[[], None]) -> None:
        self._number, self._work = number, work
        self.calls, self.error = 0, None
        self.asleep, self._wake = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Sleeper:
        self._patches = [mock.patch.object(StateFolder, name, self._counted(name)) for name in CALLS]
        for patch in self._patches:
            patch.start()
        self._thread.start()
        self.asleep.wait(60)
        return self

    def __exit__(self, *error: Any) -> None:
        self._wake.set()
        self._thread.join(60)
        mock.patch.stopall()

    def _run(self) -> None:
        try:
            self._work()
        except TridentError as error:
            self.error = error
        self.asleep.set()

    def _counted(self, name: str) -> Any:
        method = getattr(StateFolder, name)

        def call(store: StateFolder, *args: Any) -> Any:
            if threading.current_thread() is self._thread:
                self.calls += 1
                if self.calls == self._number:
                    self.asleep.set()
                    self._wake.wait(60)
            return method(store, *args)

        return call


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_that_slept_before_any_call_of_a_publish_changes_nothing(tmp_path: Path, mode: str) -> None:
    """Meanwhile the next driver has published the same decision, gone on, and compacted what it published."""
    number, slept = 1, True
    more = {"compact": "1MB", "grace": 0} if mode == "manifest" else {}
    while slept:
        factory = FileState(tmp_path / f"rows{number}", columns=COLUMNS, visible=mode, sync="never", **more)
        old = driver(factory)
        old.batch(batch(1), 1, of=4)
        receipts = old.run(batch(2), 2, of=4)
        with Sleeper(number, lambda old=old, receipts=receipts: old.publish(2, 0, receipts)) as sleeper:
            slept = sleeper.calls == number
            new = driver(factory)
            new.publish(2, 0, receipts)
            for txid in range(3, 7):
                new.batch(batch(txid), txid)
        assert isinstance(sleeper.error, ZombieError | FailedException | None), (number, sleeper.error)
        expected = Counter(tuple(row) for txid in range(1, 7) for row in batch(txid))
        folder = Path(factory.uri)
        assert factory.stored() == counted(by_manifest(folder)) == expected, number
        if mode != "manifest":
            assert counted(listed(folder)) == expected, number
        new.batch(batch(7), 7)
        expected += Counter(map(tuple, batch(7)))
        assert factory.stored() == counted(by_manifest(folder)) == expected, number
        assert by_spark_list(folder) == {file["name"] for file in manifest(folder)["files"]}, number
        number += 1
    assert number > (30 if mode == "manifest" else 8)


@pytest.mark.parametrize("base", [0, 10**12], ids=["", "large-txids"])
@pytest.mark.parametrize("mode", MODES)
def test_what_a_withdrawn_decision_has_placed_is_not_left(tmp_path: Path, mode: str, base: int) -> None:
    running = driver(factory := state(tmp_path, visible=mode), **{"topology.txid.base": base})
    running.batch(batch(1), base + 1)
    receipts = running.run(batch(2), base + 2, of=4)
    place = StateFolder.rename

    def refusing(self: StateFolder, source: str, target: str) -> bool:
        if "00002" in source.split("-")[4]:
            raise StateError("no right to do that")
        return place(self, source, target)

    with mock.patch.object(StateFolder, "rename", refusing), pytest.raises(StateError, match="no right"):
        running.publish(base + 2, 0, receipts)
    assert running.participant.give_up(base + 2)
    running.batch(batch(2)[:5], base + 2, of=1, attempt=1)
    expected = Counter(map(tuple, [*batch(1), *batch(2)[:5]]))
    assert factory.stored() == counted(by_manifest(tmp_path / "rows")) == expected
    if mode != "manifest":
        assert counted(listed(tmp_path / "rows")) == expected
    assert staged(factory) == []


def test_a_batch_whose_folder_was_seen_stays_decided(tmp_path: Path) -> None:
    """Another attempt could not take the folder's name, or, with files of the same size, would show these rows."""
    running = driver(factory := state(tmp_path, visible="batches", format="csv"))
    receipts = running.run(batch(1), 1)
    create = StateFolder.create

    def refusing(self: StateFolder, name: str, data: bytes) -> bool:
        if name.startswith("_trident/ledger"):
            raise StateError("no right to do that")
        return create(self, name, data)

    with mock.patch.object(StateFolder, "create", refusing), pytest.raises(StateError, match="no right"):
        running.publish(1, 0, receipts)
    assert not running.participant.give_up(1)
    running.publish(1, 0, receipts)
    assert factory.stored() == Counter(map(tuple, batch(1)))


@pytest.mark.parametrize("size", [40, 3])
def test_a_folder_of_another_decision_is_not_shown(tmp_path: Path, size: int) -> None:
    running = driver(factory := state(tmp_path, visible="batches", format="csv"))
    running.batch(batch(1), 1)
    receipts = running.run(batch(2, size), 2)
    (tmp_path / "rows/txid=1").rename(tmp_path / "rows/txid=2")
    for path in (tmp_path / "rows/txid=2").iterdir():
        path.rename(path.with_name(path.name.replace("part-0000000001", "part-0000000002")))
    with pytest.raises(StateError, match="txid=2 is there already, and is not of this decision"):
        running.publish(2, 0, receipts)
    assert not running.participant.give_up(2) and factory.newest().txid == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("suffix", [".csv", "", "-data.txt"])
@pytest.mark.parametrize("numbers", [(1, 0, 1, 0, 0, 0), (10**12, 2, 3, 4, 10**5, 1_000)])
def test_a_name_of_a_file_tells_the_numbers_that_it_was_made_of(numbers: tuple[int, ...], suffix: str) -> None:
    txid, epoch, generation, attempt, partition, number = numbers
    hidden = format_staged_name(txid, epoch, generation, attempt, partition, "0" * 16, number, suffix)
    assert parse_staged_name(hidden) == numbers
    for mode in MODES:
        assert batch_of(file_name(mode, epoch, txid, partition, number, suffix)) == (epoch, txid)
    assert is_merged(format_merged_name(txid, txid + 1, "0" * 16, suffix))


def test_everything_is_on_disk_before_it_counts(tmp_path: Path) -> None:
    """The order of what the operating system is asked: content, name, folder; and that for each step."""
    told: list[tuple[str, str]] = []
    fsync, link, replace = os.fsync, os.link, Path.replace
    root = str(tmp_path / "rows")

    def short(path: Any) -> str:
        return str(path).removeprefix(root).lstrip("/") or "."

    def synced(handle: int) -> None:
        told.append(("sync", short(Path(f"/proc/self/fd/{handle}").readlink())))
        fsync(handle)

    def linked(source: Any, target: Any) -> None:
        told.append(("link", short(target)))
        link(source, target)

    def renamed(self: Path, target: Any) -> Path:
        told.append(("rename", short(target)))
        return replace(self, target)

    running = driver(state(tmp_path))
    running.batch(batch(1), 1, of=1)
    with mock.patch("os.fsync", synced), mock.patch("os.link", linked), mock.patch.object(Path, "replace", renamed):
        receipts = running.run(batch(2), 2, of=1)
        [[hidden, *_]] = receipts[0]["files"]
        assert told == [("sync", hidden), ("sync", "_trident/staging")]
        del told[:]
        running.publish(2, 0, receipts)
    names = [name for name in told if not name[1].startswith("_spark_metadata")]
    version = f"_trident/ledger/{manifest(tmp_path / 'rows')['version']:020d}.json"
    assert names[:2] == [("rename", "part-0000000002-00000.parquet"), ("sync", ".")]
    assert names[2][0] == "sync" and names[2][1].startswith(f"_trident/ledger/.{version.rpartition('/')[2]}")
    assert names[3:] == [("link", version), ("sync", "_trident/ledger")]


@pytest.mark.parametrize("mode", MODES)
def test_a_publish_that_is_repeated_makes_the_names_durable_before_the_ledger_has_them(
    tmp_path: Path, mode: str
) -> None:
    running, done = driver(state(tmp_path, visible=mode)), []
    receipts, sync, create = running.run(batch(1), 1), StateFolder.sync, StateFolder.create

    def fail_once(self: StateFolder, folder: str) -> None:
        done.append(f"sync {folder}")
        if done.count("sync ") == 1 and not folder:
            raise FailedException("the process might have died here")
        sync(self, folder)

    def note(self: StateFolder, name: str, data: bytes) -> bool:
        done.append(f"create {name.rpartition('/')[0]}")
        return create(self, name, data)

    with mock.patch.object(StateFolder, "sync", fail_once), mock.patch.object(StateFolder, "create", note):
        with pytest.raises(FailedException):
            running.publish(1, 0, receipts)
        done[:] = ["sync "]
        running.publish(1, 0, receipts)
    assert done[:3] == ["sync ", "sync ", "create _trident/ledger"]


def test_without_sync_nothing_waits_for_the_disk(tmp_path: Path) -> None:
    running = driver(factory := state(tmp_path, sync="never"))
    with mock.patch("os.fsync", side_effect=AssertionError):
        running.batch(batch(1), 1)
    assert factory.stored() == Counter(map(tuple, batch(1)))


def test_a_full_disk_fails_the_batch_and_is_told(tmp_path: Path) -> None:
    running = driver(factory := state(tmp_path))
    running.batch(batch(1), 1)
    full = OSError(28, "No space left on device")
    with mock.patch("os.fsync", side_effect=full), pytest.raises(FailedException, match="No space left on device"):
        running.run(batch(2), 2)
    running.batch(batch(2), 2, attempt=1)
    assert factory.stored() == Counter(map(tuple, [*batch(1), *batch(2)]))


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    factory = state(tmp_path)
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "mine.parquet").write_bytes(b"")
    with pytest.raises(StateError, match=r"holds 'mine.parquet', and no ledger"):
        driver(factory)
    assert visible(tmp_path / "rows") == ["mine.parquet"]


def test_files_of_one_folder_have_one_format_and_one_set_of_columns(tmp_path: Path) -> None:
    driver(state(tmp_path)).batch(batch(1), 1)
    with pytest.raises(StateError, match=r"the ledger .* is one of parquet files, and the state would add csv"):
        driver(state(tmp_path, format="csv"))
    other = FileState(tmp_path / "rows", columns=["word string", "n int"])
    with pytest.raises(StateError, match=r"columns word string, n bigint, and those of this batch are .* n int"):
        driver(other).run(batch(2), 2)


@pytest.mark.parametrize("mode", ["files", "manifest"])
def test_txids_that_begin_anew_take_other_names(tmp_path: Path, mode: str) -> None:
    factory = state(tmp_path, visible=mode)
    driver(factory).batch(batch(1), 1)
    again = driver(factory, lineage="second", **{"topology.lineage.abandon": "first"})
    again.batch(batch(1, 3), 1, of=1)
    assert factory.stored() == Counter(map(tuple, [*batch(1), *batch(1, 3)]))
    names = [file["name"] for file in manifest(tmp_path / "rows")["files"]]
    assert [name.count("-e1") for name in names] == [0, 0, 1]


def test_txids_do_not_begin_anew_where_a_folder_has_the_txid(tmp_path: Path) -> None:
    factory = state(tmp_path, visible="batches")
    driver(factory).batch(batch(1), 1)
    again = driver(factory, lineage="second", **{"topology.lineage.abandon": "first"})
    with pytest.raises(StateError, match="txid=1 is taken"):
        again.batch(batch(1), 1)


def test_another_topology_is_refused_until_the_owner_is_replaced(tmp_path: Path) -> None:
    factory = state(tmp_path)
    old = driver(factory)
    old.batch(batch(1), 1)
    with pytest.raises(StateError, match="is updated by state 's' of topology 'contract'"):
        driver(factory, **{"topology.name": "other"})
    new = driver(factory, **{"topology.name": "other", "topology.owner.replace": "contract/s"})
    new.batch(batch(1, 3), 1)
    with pytest.raises(ZombieError):
        old.run(batch(2), 2)
    assert factory.stored() == Counter(map(tuple, [*batch(1), *batch(1, 3)]))


def test_a_damaged_ledger_is_told(tmp_path: Path) -> None:
    factory = state(tmp_path)
    driver(factory).batch(batch(1), 1)
    newest = max((tmp_path / "rows/_trident/ledger").glob("[0-9]*.json"))
    newest.write_text(newest.read_text()[:50])
    with pytest.raises(StateError, match=f"{newest.name} is damaged"):
        driver(factory)


def test_a_ledger_of_a_later_format_is_refused(tmp_path: Path) -> None:
    driver(factory := state(tmp_path)).batch(batch(1), 1, of=1)
    newest = max((tmp_path / "rows" / "_trident" / "ledger").iterdir())
    newest.write_text(json.dumps({**json.loads(newest.read_text()), "ledger_format": 2, "new": "thing"}))
    with pytest.raises(StateError, match=r"rows: its ledger has format 2, this version of trident_py reads 1"):
        driver(factory)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"uri": "gs://bucket/x"}, "exactly once only where a file can be made under the condition"),
        ({"uri": "s3://bucket"}, "is a whole store; name a folder in it"),
        ({"uri": "ftp://host/x"}, "FileState: no store for"),
        ({"format": "orc"}, "no format 'orc'; there are: parquet, csv, json"),
        ({"sync": "always"}, "sync must be one of"),
        ({"visible": "no"}, "visible must be one of"),
        ({"rotate": "12 parsecs"}, "rotate must be a whole number"),
        ({"rotate": "5GB"}, "up to 4294967296"),
        ({"compact": "1MB"}, "compaction replaces many files by one.*Use visible='manifest'"),
        ({"retention": 0}, "retention must be a whole number from 1"),
        ({"columns": ["word", "n bigint"]}, "the fields word have no type"),
        ({"columns": ["word nosuch"]}, "column 'word': unknown type 'nosuch'"),
        ({"columns": ["b binary"], "format": "csv"}, "csv cannot hold the binary column 'b'"),
        ({"columns": ["txid bigint"], "visible": "batches"}, "the column 'txid' is the name of the batches' folders"),
    ],
)
def test_what_cannot_be_is_refused_at_birth(tmp_path: Path, settings: dict, words: str) -> None:
    with pytest.raises((DefinitionError, StateError), match=words):
        FileState(**{"uri": str(tmp_path / "rows"), "columns": COLUMNS, **settings})
