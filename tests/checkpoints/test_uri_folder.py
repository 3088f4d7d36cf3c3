"""Folders in HDFS and S3 that `LocalCluster` keeps checkpoints in: what is refused, and how it is said."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from remotes import Remote

from testbed.hdfs import HdfsServer
from testbed.s3 import S3Server
from trident_py import LocalCluster, TridentTopology
from trident_py.checkpoints.uri_folder import open_folder
from trident_py.errors import DefinitionError, TridentError
from trident_py.extras.hdfs.webhdfs import WebHdfsFileSystem
from trident_py.extras.s3.object_stores import S3FileSystem
from trident_py.filesystems.uris import parse_uri
from trident_py.testing import FixedBatchSpout


def submit(checkpoints: Any, storage: dict[str, Any] | None = None) -> Any:
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("v", 1, (1,)))
    with LocalCluster(checkpoints, storage) as cluster:
        return cluster.submitTopology("t", {}, topology.build()).awaitTermination(60)


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("gs://b/x", r"checkpoints: 'gs://b/x/t/s': LocalCluster keeps them in a local folder, hdfs:// or s3a://"),
        ("viewfs://cluster/x", r"checkpoints: no store for 'viewfs://cluster/x'"),
        ("s3a://me:hush@b/x", r"has a user in it; put credentials into storage"),
    ],
)
def test_a_place_of_no_such_store_is_refused_at_the_submit(uri: str, said: str) -> None:
    with pytest.raises(DefinitionError, match=said) as told:
        submit(uri)
    assert "hush" not in str(told.value)


@pytest.mark.parametrize(("uri", "module", "extra"), [("hdfs://h/x", "fsspec", "hdfs"), ("s3a://b/x", "boto3", "s3")])
def test_a_missing_package_is_named_before_the_start(
    uri: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for loaded in [name for name in sys.modules if name == module or name.startswith(f"{module}.")] or [module]:
        monkeypatch.setitem(sys.modules, loaded, None)
    with pytest.raises(DefinitionError, match=rf"checkpoints: \w+://\w needs {module}.*trident-py\[{extra}\]"):
        submit(uri, {"region": "us-east-1"} if extra == "s3" else None)


def test_a_path_names_a_folder_as_its_text_does(tmp_path: Path) -> None:
    assert submit(tmp_path / "place")
    assert (tmp_path / "place/t/s").is_dir()


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (Path("s3a://bucket/x"), "'s3a:/bucket/x' has one slash; give a URI as text, not as a Path: s3a://"),
        ("dbfs:/checkpoints", "'dbfs:/checkpoints' has one slash"),
        (b"/folder", r"checkpoints is b'/folder'; give a folder, or a URI as text"),
        (7, "checkpoints is 7; give a folder"),
    ],
)
def test_what_names_no_place_is_refused(place: Any, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        LocalCluster(place)


def test_settings_of_no_store_are_refused() -> None:
    with pytest.raises(DefinitionError, match="there is no keyword 'acces_key'"):
        submit("hdfs://h/x", {"acces_key": "hush"})


def test_a_place_that_does_not_answer_is_refused_at_the_submit_and_no_key_is_told(s3: S3Server) -> None:
    away = {**s3.storage, "endpoint_override": "http://127.0.0.1:9", "secret_key": "hush"}
    for uri, storage in (("s3a://rows/x", away), ("webhdfs://127.0.0.1:9/x", {"user": "me"})):
        with pytest.raises(TridentError, match=rf"the checkpoint {uri}/t/s: it does not answer .* start the") as told:
            submit(uri, storage)
        assert "hush" not in str(told.value)


def test_a_wrong_bucket_is_named_at_the_submit(s3: S3Server) -> None:
    with pytest.raises(TridentError, match="s3a://no-such-bucket/x/t/s: there is no bucket or container 'no-such"):
        submit("s3a://no-such-bucket/x", s3.storage)


def test_who_may_not_write_is_told_so(hdfs: HdfsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hadoop's variable says who it is, as it does for Spark."""
    monkeypatch.setenv("HADOOP_USER_NAME", "nobody")
    with pytest.raises(Exception, match=r"access is denied .*user.name=nobody.*Give the account") as told:
        submit(f"{hdfs.url}/x", {"port": hdfs.storage["port"]})
    assert isinstance(told.value, TridentError)


@pytest.mark.parametrize("place_of_uri", ["s3"], indirect=True)
def test_a_store_that_would_let_two_drivers_write_is_refused(place_of_uri: Remote) -> None:
    def without(self: S3FileSystem, path: str, data: bytes) -> bool:
        self._client.put_object(**self._object(path), Body=data)
        return True

    with mock.patch.object(S3FileSystem, "create", without), pytest.raises(TridentError, match="ignores If-None-Match"):
        open_folder(place_of_uri.uri, place_of_uri.storage)


def test_of_two_that_make_a_file_at_the_same_moment_one_is_to_look_again(s3: S3Server) -> None:
    """S3 answers 409 to one of them."""
    from botocore.exceptions import ClientError

    s3.make_bucket("conflict")
    files = S3FileSystem(parse_uri("s3a://conflict"), s3.storage)  # type: ignore[arg-type]
    conflict = ClientError({"Error": {"Code": "ConditionalRequestConflict"}}, "PutObject")
    with mock.patch.object(files._client, "put_object", side_effect=conflict):
        assert not files.create("/a", b"")


def test_the_text_of_a_datanodes_error_is_no_content(hdfs: HdfsServer) -> None:
    """Such as that the file was deleted after the namenode named the datanode."""
    files = WebHdfsFileSystem(parse_uri(f"{hdfs.url}/"), hdfs.storage)  # type: ignore[arg-type]
    assert files.create("/datanode/file", b"content") and files.read("/datanode/file") == b"content"
    statuses, send = [404, 500], files._client.session.send

    def answers(request: Any, **settings: Any) -> Any:
        answer = send(request, **settings)
        if "namenoderpcaddress" in request.url:
            answer.status_code = statuses.pop(0)
        return answer

    with mock.patch.object(files._client.session, "send", answers):
        assert files.read("/datanode/file") is None
        with pytest.raises(OSError, match="500 Server Error"):
            files.read("/datanode/file")
