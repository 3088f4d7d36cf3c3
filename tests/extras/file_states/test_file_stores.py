"""FileState in HDFS and S3: the contract, and what differs there."""

from __future__ import annotations

import uuid
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError
from contracts.crashing import Driver
from contracts.files import COLUMNS, FORKED, keep, promises
from file_places import HdfsPlace, S3Place

from states.files import FileState, RowUpdater
from testbed.hdfs import HdfsServer
from testbed.s3 import S3Server
from trident_py.errors import DefinitionError, FailedException, StateError, ZombieError
from trident_py.extras.s3.object_stores import S3FileSystem
from trident_py.tuples import TridentTuple


@pytest.fixture(params=["hdfs", "s3"])
def place(request: pytest.FixtureRequest) -> Any:
    """A new folder in a store."""
    server, name = request.getfixturevalue(request.param), uuid.uuid4().hex
    if request.param == "hdfs":
        return HdfsPlace(server, name)
    made = S3Place(server, name, bucket="rows")
    made.client.create_dir("rows")
    return made


def batch(txid: int, size: int = 12) -> list[TridentTuple]:
    return [TridentTuple.of(["word", "n"], (f"w{n}", txid)) for n in range(size)]


def rows_of(*txids: int) -> Counter[tuple]:
    return Counter(tuple(row) for txid in txids for row in batch(txid))


def driver(factory: FileState, **more: Any) -> Driver:
    return Driver(factory, RowUpdater(), **more)


def state(place: Any, **more: Any) -> FileState:
    return FileState(f"{place.root}/rows", columns=COLUMNS, storage=place.storage, **more)


@pytest.mark.whole("test_batches_are_published_and_replayed")
@pytest.mark.parametrize(("promise", "values"), [each for each in promises() if each.values[0] not in FORKED])
def test_a_promise_of_the_contract_holds_in_a_store(
    place: Any, tmp_path: Path, promise: str, values: dict[str, Any]
) -> None:
    """Drivers that are killed there are in tests/faults/test_file_state.py."""
    keep(promise, values, state(place), tmp_path)


def names(factory: FileState) -> list[str]:
    return sorted(entry.name for entry in factory.folder().list_folder("") if entry.name[0] not in "._")


def test_a_name_is_made_once(place: Any) -> None:
    store = state(place).folder()
    assert store.create("a/b.json", b"one") and not store.create("a/b.json", b"two")
    assert store.read("a/b.json") == b"one" and store.read("a/c.json") is None
    assert [(entry.name, entry.size) for entry in store.list_folder("a")] == [("b.json", 3)]
    assert store.list_folder("nowhere") == []
    store.delete("a/b.json")
    store.delete("a/b.json")
    assert store.list_folder("a") == [] and store.create("a/b.json", b"three")


def test_of_many_that_make_one_name_at_once_one_does(place: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    store = state(place).folder()
    for number in range(5):
        with ThreadPoolExecutor(8) as several:
            made = list(several.map(lambda n, name=f"x/{number}": store.create(name, str(n).encode()), range(8)))
        assert made.count(True) == 1 and store.read(f"x/{number}") == str(made.index(True)).encode()


def test_a_file_takes_its_final_name_whole(place: Any) -> None:
    store = state(place).folder()
    with closing(store.open_writer("hidden/a")) as file:
        file.write(b"1" * (6 << 20))
        assert "final" not in [entry.name for entry in store.list_folder("")]
    assert store.rename("hidden/a", "final")
    if store.renames:
        assert not store.rename("hidden/a", "final")
    with store.open("final") as opened:
        assert opened.read() == b"1" * (6 << 20)
    with closing(store.open_writer("hidden/b")) as file:
        file.write(b"2")
    assert store.rename("hidden/b", "final") and store.read("final") == b"2"  # of a decision that was withdrawn
    assert not store.rename("hidden/none", "final")


@pytest.mark.parametrize("mode", ["files", "batches", "manifest"])
def test_batches_are_published_and_replayed(place: Any, mode: str) -> None:
    if mode == "batches" and "s3" in place.root:
        with pytest.raises(DefinitionError, match="cannot rename a folder in one step"):
            state(place, visible=mode)
        return
    compact = "1MB" if mode == "manifest" else None
    factory = state(place, visible=mode, compact=compact, grace=0)
    old = driver(factory)
    for txid in (1, 2, 3):
        old.batch(batch(txid), txid)
    receipts = old.run(batch(4), 4)
    new = driver(factory)
    new.publish(4, 0, receipts)
    with pytest.raises(ZombieError):
        old.publish(4, 0, receipts)
    new.batch(batch(5), 5)
    assert factory.stored() == rows_of(1, 2, 3, 4, 5)
    assert factory.folder().list_folder("_trident/staging") == []
    if mode == "manifest":
        assert len(factory.newest().files) == 3  # type: ignore[union-attr]
    else:
        assert len(names(factory)) == (10 if mode == "files" else 5)


def test_a_folder_that_is_in_the_way_is_told_before_the_ledger_has_the_batch(hdfs: HdfsServer) -> None:
    """HDFS renames no folder to the name of another one, be it empty, and answers that in no error."""
    factory = state(HdfsPlace(hdfs, uuid.uuid4().hex), visible="batches")
    running = driver(factory)
    running.batch(batch(1), 1)
    receipts = running.run(batch(2), 2)
    factory.folder()._files._client.mkdir(factory.folder()._at("txid=2"))
    for _ in range(2):
        with pytest.raises(StateError, match="txid=2 is there already, and is not of this decision"):
            running.publish(2, 0, receipts)
    assert factory.stored() == rows_of(1)
    factory.folder().delete("txid=2")
    running.publish(2, 0, receipts)
    assert factory.stored() == rows_of(1, 2)


@pytest.mark.parametrize("call", ["rename", "create"])
def test_a_publish_that_fails_anywhere_is_repeated(place: Any, call: str) -> None:
    factory = state(place)
    running = driver(factory)
    store = factory.folder()
    method, done = getattr(store, call), []

    def failing(*args: Any) -> Any:
        done.append(args)
        answer = method(*args)
        if len(done) == 2:
            raise FailedException("the answer was lost")
        return answer

    receipts = running.run(batch(1), 1)
    with mock.patch.object(store, call, failing):
        for _ in range(3):
            try:
                running.publish(1, 0, receipts)
            except FailedException:
                continue
    assert factory.stored() == rows_of(1) and len(done) >= 2


def test_an_s3_without_conditions_is_refused(s3: S3Server) -> None:
    place = S3Place(s3, uuid.uuid4().hex, bucket="rows")
    place.client.create_dir("rows")

    def without(self: S3FileSystem, path: str, data: bytes) -> bool:
        self._client.put_object(**self._object(path), Body=data)
        return True

    with mock.patch.object(S3FileSystem, "create", without), pytest.raises(StateError, match="ignores If-None-Match"):
        driver(state(place))


def test_a_store_that_is_away_fails_the_batch_and_hides_the_key(s3: S3Server, hdfs: HdfsServer) -> None:
    storage = {**s3.storage, "endpoint_override": "http://127.0.0.1:9", "secret_key": "hush"}
    for factory in (
        FileState("s3://rows/x", columns=COLUMNS, storage=storage),
        FileState("hdfs://127.0.0.1/x", columns=COLUMNS, storage={**hdfs.storage, "port": "9"}),
    ):
        with pytest.raises(FailedException, match="does not answer") as told:
            factory.newest()
        assert "hush" not in str(told.value)


def test_a_bucket_that_refuses_is_told() -> None:
    with S3Server(INITIAL_NO_AUTH_ACTION_COUNT="1") as server:
        server.make_bucket("rows")
        factory = FileState("s3://rows/x", columns=COLUMNS, storage=server.storage)
        with pytest.raises(StateError, match="the store refuses access"):
            factory.folder().create("a", b"")


def test_what_no_store_was_asked_for_is_not_a_store_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("CONFIG_FILE", ""), ("SHARED_CREDENTIALS_FILE", ""), ("EC2_METADATA_DISABLED", "true")):
        monkeypatch.setenv(f"AWS_{name}", value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    storage = {"endpoint_override": "http://127.0.0.1:9", "region": "us-east-1"}
    with pytest.raises(StateError, match=r"refuses access: Unable to locate credentials. Check the credentials"):
        FileState("s3://rows/x", columns=COLUMNS, storage=storage).folder().create("a", b"")
    storage |= {"access_key": "tester", "secret_key": "hush"}
    with pytest.raises(StateError, match="Invalid bucket name"):
        FileState("s3://no!bucket/x", columns=COLUMNS, storage=storage).folder().create("a", b"")


@pytest.mark.parametrize(("status", "raised"), [(503, FailedException), (429, FailedException), (501, StateError)])
def test_an_overloaded_s3_fails_the_batch_whatever_it_calls_that(status: int, raised: type[Exception]) -> None:
    storage = {"endpoint_override": "http://127.0.0.1:9", "access_key": "tester", "secret_key": "hush"}
    folder = FileState("s3://rows/overloaded", columns=COLUMNS, storage=storage).folder()
    answer = {"Error": {"Code": "SlowDownWrite"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    error = ClientError(answer, "PutObject")  # type: ignore[arg-type]
    with mock.patch.object(folder._files._client, "put_object", side_effect=error), pytest.raises(raised):  # type: ignore[attr-defined]
        folder.create("a", b"")


@pytest.mark.whole("test_a_store_that_is_away_fails_the_batch")
def test_a_server_that_is_killed_and_comes_back(tmp_path: Path) -> None:
    """HDFS only: the tests' S3 keeps its buckets in memory."""
    with HdfsServer() as server:
        factory = state(HdfsPlace(server, "rows"))
        running = driver(factory)
        running.batch(batch(1), 1)
        receipts = running.run(batch(2), 2)
        server.kill()
        with pytest.raises(FailedException):
            running.publish(2, 0, receipts)
        server.restart()
        running.publish(2, 0, receipts)
        assert factory.stored() == rows_of(1, 2)


@pytest.mark.parametrize(
    ("uri", "storage", "words"),
    [
        ("s3://b/x", {"nosuch": 1}, "nosuch"),
        ("hdfs://h/x", {"nosuch": 1}, "nosuch"),
        ("hdfs:///x", {}, "names no host"),
        ("/tmp/x", {"region": "x"}, "storage is for one kind of store"),
        ("hdfs://h/x", {"port": "http"}, "the address .* cannot be one: .*'http'"),
        ("webhdfs://h:99999/x", {}, "the address in the path .* cannot be one: Port out of range"),
        ("hdfs://[::1/x", {}, "the address in the path .* cannot be one: Invalid IPv6"),
    ],
)
def test_settings_that_a_store_does_not_take_are_told(uri: str, storage: dict, words: str) -> None:
    with pytest.raises(DefinitionError, match=words) as told:
        FileState(uri, columns=COLUMNS, storage=storage).folder()
    assert "FileState" in str(told.value) and "FileSpout" not in str(told.value)


def test_what_a_machine_needs_is_said(tmp_path: Path) -> None:
    assert FileState(tmp_path / "x").needs.one_machine
    assert FileState(tmp_path / "x", shared=True).needs.paths == (str(tmp_path),)
    assert FileState("s3://b/x").needs.modules == ("boto3",)
    hdfs = FileState("hdfs://h/x").needs
    assert hdfs.addresses == ("h:9870",) and hdfs.modules == ("fsspec", "requests")
