"""FileSpout on local files, S3 and HDFS: the same rows, the same batches, the same errors."""

from __future__ import annotations

import os
import pickle
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from file_places import HdfsPlace, LocalPlace, Place, S3Place, table
from hypothesis import given, settings
from hypothesis import strategies as st
from spouts.harness import Player, flat

from testbed.hdfs import HdfsServer
from testbed.s3 import S3Server
from trident_py.errors import DefinitionError, FailedException, SpoutError
from trident_py.extras.hdfs.webhdfs import client_of
from trident_py.spouts import FileSpout
from trident_py.tuples import TransactionAttempt

pytestmark = [pytest.mark.servers, pytest.mark.dear]

SUFFIXES = {"lines": "txt", "csv": "csv", "json": "jsonl", "parquet": "parquet"}


@pytest.fixture(scope="session")
def places(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Place]:
    """``places("s3")``: a new folder in a store."""

    def make(kind: str) -> Place:
        name = uuid.uuid4().hex
        if kind == "local":
            return LocalPlace(tmp_path_factory.mktemp(name))
        server = request.getfixturevalue(kind)
        return S3Place(server, name) if kind == "s3" else HdfsPlace(server, name)

    return make


@pytest.fixture(params=["local", "s3", "hdfs"])
def place(request: pytest.FixtureRequest, places: Callable[[str], Place]) -> Place:
    return places(request.param)


remote = pytest.mark.parametrize("place", ["s3", "hdfs"], indirect=True)


def spout_of(place: Place, below: str = "", kind: str | None = None, **more: Any) -> FileSpout:
    fields = "n string" if kind == "lines" else ["n bigint", "s string"]
    return FileSpout(place.root + below, fields, format=kind, storage=place.storage, **more)


def relative(place: Place, metadata: dict) -> dict:
    """The metadata of a batch without what a store says about its own files."""
    files = [[file[0].removeprefix(place.root), file[1]] for file in metadata["s0"]["files"]]
    return {**metadata["s0"], "files": files}


# The same as from the local folder


def played(place: Place, kind: str, faults: list[str], size: int, partitions: list[int]) -> list[Any]:
    """What a run gives: the rows of each attempt by partition, and the metadata of each batch."""
    spout = spout_of(place, "", kind, batchSize=size)
    player, seen, plan, turns = Player(spout, partitions=partitions[0]), [], list(faults), 0
    txid = 1
    while not player.coordination.is_exhausted(txid):
        fault = plan.pop() if plan else ""
        seen.append(player.emit(txid))
        if fault == "replayed":
            seen.append(player.emit(txid, 1))
        seen.append(relative(place, player.logged[txid]))
        if fault == "restarted before the commit":
            turns += 1
            count = partitions[turns % len(partitions)]
            player = Player(spout, partitions=count, restored=player.logged, committed=txid - 1)
            seen.append(player.emit(txid, 2))
        player.commit(txid)
        player.coordination.success(txid)
        if fault == "restarted":
            player = Player(spout, partitions=len(player.tasks), restored=player.logged, committed=txid)
        txid += 1
    player.close()
    return seen


@remote
@pytest.mark.parametrize("kind", SUFFIXES)
def test_whatever_fails_a_uri_gives_what_the_folder_gives(
    kind: str, place: Place, places: Callable[[str], Place]
) -> None:
    faults = ["", "replayed", "restarted", "restarted before the commit"]

    @settings(max_examples=max(4, settings.default.max_examples // 10))  # type: ignore[union-attr]
    @given(
        st.lists(st.integers(0, 40), min_size=1, max_size=3),
        st.lists(st.sampled_from(faults), max_size=6),
        st.integers(5, 50),
        st.lists(st.integers(1, 3), min_size=1, max_size=3),
    )
    def runs(counts: list[int], plan: list[str], size: int, partitions: list[int]) -> None:
        if kind == "csv" or sum(counts):
            name, near = uuid.uuid4().hex, places("local")
            for place_ in (near, far := place.folder(name)):
                for number, count in enumerate(counts):
                    values = range(number * 100, number * 100 + count)
                    place_.put(f"/day {number}.{SUFFIXES[kind]}", table(kind, values))
            there = played(far, kind, plan, size, partitions)
            assert there == played(near, kind, plan, size, partitions)
            assert bool(there) == bool(sum(counts))

    runs()


FILES = ["a.csv", "b.txt", "sub/c.csv", "sub/deep/d.csv", "_SUCCESS", ".hid", "_tmp/x.csv", ".git/y.csv", "s p%41ü.csv",
         "sub/.hid.csv", "[x].csv"]  # fmt: skip


@pytest.fixture(scope="module")
def listed(places: Callable[[str], Place]) -> dict[str, Place]:
    made = {kind: places(kind) for kind in ("local", "s3", "hdfs")}
    for place in made.values():
        for file in FILES:
            place.put(f"/{file}", b"x\n")
    return made


@pytest.mark.parametrize("store", ["s3", "hdfs"])
@pytest.mark.parametrize(
    "path",
    ["", "/", "/*.csv", "/?.csv", "/*", "/**", "/**/*.csv", "/sub", "/sub/", "/sub/*", "/*/*.csv", "/s*/**/d.csv",
     "/[a-b].*", "/[x].csv", "/.hid", "/.*", "/s p%41ü.csv", "//sub//c.csv", "/a.csv/*", "/**/.hid.csv", "/_tmp"],
)  # fmt: skip
def test_files_folders_and_globs_are_what_they_are_locally(listed: dict[str, Place], store: str, path: str) -> None:
    def found(place: Place) -> list[str]:
        spout = FileSpout(place.root + path, "line string", format="lines", storage=place.storage)
        try:
            metadata = Player(spout).coordination.initialize(1, 0, None, None)
        except SpoutError as error:
            assert "no file at" in str(error)
            return []
        return [file[0].removeprefix(place.root) for file in metadata["s0"]["files"]]

    assert found(listed[store]) == found(listed["local"])


def test_no_request_to_hdfs_meets_a_connection_that_has_just_ended(places: Callable[[str], Place]) -> None:
    """HDFS ends what was idle for a second; a request that is sent then is never answered."""
    place = places("hdfs")
    client, _ = client_of("127.0.0.1", int(place.storage["port"]), False, {"user": place.storage["user"]})
    for _ in range(2):
        client.mkdir("/closed")
        told = client.session.get(f"http://127.0.0.1:{place.storage['port']}/webhdfs/v1/?op=GETFILESTATUS")
        assert told.headers["Connection"] == "close"


def test_paths_of_several_stores_are_read_in_their_order(places: Callable[[str], Place]) -> None:
    local, s3 = places("local"), places("s3")
    for number, place in enumerate((s3, local)):
        place.put("/a.txt", f"{number}\n".encode())
    paths = [s3.root, Path(local.root).as_uri(), f"{s3.root}/a.txt"]
    rows = flat(Player(FileSpout(paths, "line string", storage=s3.storage)).to_end())
    assert rows == [("0",), ("1",)]


def test_settings_that_storage_lacks_come_from_the_environment(
    places: Callable[[str], Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = places("s3")
    place.put("/a.txt", b"one\n")
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(place.storage["endpoint_override"]))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "other")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert flat(Player(FileSpout(place.root.replace("s3://", "s3a://"), "line string")).to_end()) == [("one",)]


# What breaks the promise


@pytest.mark.parametrize("change", ["shrunk", "grown", "rewritten", "gone"])
def test_a_file_that_changed_since_is_refused(place: Place, change: str) -> None:
    place.put("/a.csv", table("csv", range(20)))
    player = Player(spout_of(place, batchSize=8))
    player.batch(1)
    if change == "gone":
        place.remove("/a.csv")
        told = r"cannot read .*/a\.csv: .*o such file.*restore the file"
    else:
        counts = {"shrunk": range(10), "grown": range(30), "rewritten": reversed(range(20))}
        place.put("/a.csv", table("csv", list(counts[change])))
        told = r"/a\.csv has changed since this run first listed it \(.*txid {} cannot be emitted unchanged"
    with pytest.raises(SpoutError, match=told.format(2)):
        player.emit(2)
    with pytest.raises(SpoutError, match=told.format(1)):
        player.tasks[0, 0].chunks(TransactionAttempt(1, 1), player.payload(1)).__next__()


@pytest.mark.parametrize("kind", SUFFIXES)
def test_a_file_that_changes_while_it_is_read_is_refused(place: Place, kind: str) -> None:
    file = f"/a.{SUFFIXES[kind]}"
    place.put(file, table(kind, range(1000, 3000)))
    player = Player(spout_of(place, "", kind, batchSize=5000))
    player.emit(1)
    chunks = player.tasks[0, 0].chunks(TransactionAttempt(1, 1), player.payload(1))
    next(chunks)
    place.put(file, table(kind, range(3000, 5000)))
    with pytest.raises(SpoutError, match="has changed since this run first listed it"):
        list(chunks)


# Errors


@remote
def test_no_file_is_an_error_that_names_the_uri(place: Place) -> None:
    with pytest.raises(SpoutError, match=rf"no file at '{place.root}/no/\*.csv'.*; check the path"):
        Player(spout_of(place, "/no/*.csv")).emit(1)


def test_a_bucket_that_is_not_there_is_named(places: Callable[[str], Place]) -> None:
    spout = FileSpout("s3://no-such-bucket/a", "line", storage=places("s3").storage)
    with pytest.raises(SpoutError, match=r"no file at 's3://no-such-bucket/a' \(there is no bucket .*'no-such-bucket'"):
        Player(spout).emit(1)


def test_hdfs_refuses_who_may_not_read(hdfs: HdfsServer) -> None:
    place = HdfsPlace(hdfs, uuid.uuid4().hex)
    place.put("/a.csv", table("csv", range(3)))
    place.client._call("SETPERMISSION", method="put", path=place.folder_path, permission="700")
    spout = FileSpout(place.root, ["n"], storage={**place.storage, "user": "nobody"})
    with pytest.raises(SpoutError, match=r"the store refuses access: Permission denied: user=nobody.*Check the cred"):
        Player(spout).emit(1)


def test_s3_refuses_who_may_not_read(s3: S3Server) -> None:
    with S3Server(INITIAL_NO_AUTH_ACTION_COUNT="5") as server:  # the bucket, a file in parts
        place = S3Place(server, "folder", "strict")
        place.put("/a.csv", table("csv", range(3)))
        with pytest.raises(SpoutError, match=r"s3://strict/folder: the store refuses access: .*Check the credentials"):
            Player(spout_of(place)).emit(1)


@pytest.mark.whole("test_an_s3_that_is_not_there_fails_the_batch_and_shows_no_secret")
def test_a_store_that_is_away_fails_the_batch_which_is_the_same_later(hdfs: HdfsServer) -> None:
    with HdfsServer() as server:
        place = HdfsPlace(server, "folder")
        place.put("/a.csv", table("csv", range(20)))
        player = Player(spout_of(place, batchSize=8), partitions=2)
        first = player.batch(1)
        server.kill()
        with pytest.raises(FailedException, match=r"hdfs://.*/a\.csv: the HTTP of the namenode.*does not answer"):
            player.emit(1, 1)
        with pytest.raises(FailedException, match="does not answer"):
            player.emit(2)
        server.restart()
        assert player.emit(1, 2) == first
        assert [row[0] for row in flat(player.emit(2, 1))] == list(range(8, 16))


@pytest.mark.whole("test_an_s3_that_is_not_there_fails_the_batch_and_shows_no_secret")
def test_a_store_that_is_silent_fails_the_batch_which_is_the_same_later(s3: S3Server) -> None:
    with S3Server() as server:
        place = S3Place(server, "folder")
        place.put("/a.parquet", table("parquet", range(20)))
        player = Player(spout_of(place, batchSize=8), partitions=2)
        first = player.batch(1)
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(FailedException, match=r"s3://.*/a\.parquet: the store does not answer.*too slow"):
            player.emit(1, 1)
        assert time.monotonic() - began < 60
        os.kill(server.pid, signal.SIGCONT)
        assert player.emit(1, 2) == first
        assert [row[0] for row in flat(player.batch(2))] == list(range(8, 16))


@pytest.mark.parametrize("host", ["127.0.0.1:1", "no-host.invalid:9000"])
def test_an_s3_that_is_not_there_fails_the_batch_and_shows_no_secret(host: str) -> None:
    storage = {"endpoint_override": f"http://{host}", "access_key": "AKIA", "secret_key": "s3cret", "region": "x"}
    player = Player(FileSpout("s3://bucket/a", "line", storage=storage))
    assert player.coordination.ready(1)
    with pytest.raises(FailedException, match=r"s3://bucket/a: the store does not answer.*check host") as told:
        player.emit(1)
    assert "s3cret" not in str(told.value) and "AKIA" not in str(told.value)


def test_a_token_that_stands_in_an_address_is_in_no_error() -> None:
    storage = {"token": "a+b/c=", "port": 1}
    player = Player(FileSpout("hdfs://127.0.0.1/a", "line", storage=storage))
    with pytest.raises(FailedException, match=r"op=GETFILESTATUS") as told:
        player.emit(1)
    assert told.value.__cause__ is None
    for secret in ("a+b/c=", "a%2Bb%2Fc%3D", "a%2Bb/c%3D"):
        assert secret not in str(told.value)


# The declaration


@pytest.mark.parametrize(
    ("paths", "storage", "told"),
    [
        ("ftp://h/x", {}, r"no store for 'ftp://h/x'; there are: file://, s3://.*local paths"),
        (Path("s3://bucket/x"), {}, "has one slash; give a URI as text"),
        ("s3://key:hush@bucket/x", {}, r"'s3://key:\*\*\*@bucket/x' has a user in it; put credentials into storage"),
        ("s3:///x", {}, "must name one bucket or container"),
        ("s3://buck*/x", {}, "must name one bucket or container"),
        ("abfss://container/x", {}, "must name container and account"),
        ("hdfs:///x", {}, "names no host: hdfs://NAMENODE/path"),
        ("x", {"region": "x"}, "storage is for one kind of store; the paths are in local files only"),
        (["s3://b/x", "gs://b/x"], {"anonymous": True}, "the paths are in S3 and Google Cloud Storage"),
        ("s3://b/x", {"colour": "red"}, "S3 cannot be used.*'colour'.*the keywords of pyarrow.fs.S3FileSystem"),
        ("hdfs://h/x", {"colour": "red"}, "HDFS cannot be used: there is no keyword 'colour'"),
        ("s3://b/x", {"endpoint_override": "http://h:no"}, "the address .* cannot be one: .*'no'"),
        ("s3://b/x", {"region": ["x"]}, r"storage\['region'\] must be a text, a number or a boolean, not list"),
        ("hdfs://n/x", {"use_https": "False"}, r"storage\['use_https'\] is the text 'False', and any text counts"),
    ],
)
def test_a_wrong_path_or_storage_is_refused_where_it_is_written(paths: Any, storage: Any, told: str) -> None:
    with pytest.raises(DefinitionError, match=told) as error:
        FileSpout(paths, "line", storage=storage)
    assert "hush" not in str(error.value)


def test_a_spout_shows_its_storage_without_secrets_and_carries_it() -> None:
    storage = {"account_name": "shop", "account_key": "aHVzaA=="}
    spout = pickle.loads(pickle.dumps(FileSpout("abfss://in@shop.dfs.core.windows.net/x", "line", storage=storage)))
    assert "storage={account_key: ***, account_name: shop}" in repr(spout)
    assert spout.storage == storage
