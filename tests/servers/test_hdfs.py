"""The HDFS of the tests: what was written is there after a kill, and nothing of the server is after `close`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed import hadoop_jars, hdfs, java_programs
from testbed.hdfs import HdfsServer
from testbed.keeper import runs
from testbed.service import ServiceMissing


@pytest.fixture
def own_hdfs(hdfs: HdfsServer) -> Any:
    """An HDFS of this test alone; the shared one shows that the jars are there."""
    with HdfsServer() as server:
        yield server


@pytest.mark.whole("test_a_topology_goes_on_from_a_checkpoint_that_is_on_no_machine")
def test_a_file_outlives_a_kill(own_hdfs: HdfsServer, spark: Any) -> None:
    url, pid = f"{own_hdfs.url}/words", own_hdfs.pid
    spark.createDataFrame([("one",), ("two",)], "word string").write.csv(url)
    own_hdfs.kill()
    own_hdfs.restart()
    assert sorted(row.word for row in spark.read.schema("word string").csv(url).collect()) == ["one", "two"]
    folder, port = own_hdfs.folder, own_hdfs.port
    own_hdfs.close()
    assert pid is not None and not runs(pid) and folder is not None and not folder.exists() and port > 0


def test_the_jars_are_of_pysparks_hadoop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not hadoop_jars.there("hdfs")
    hadoop_jars.folder("hdfs").mkdir(parents=True)
    assert hadoop_jars.folder("hdfs").name.startswith(f"hdfs-{hadoop_jars.version()}-")
    with pytest.raises(ServiceMissing, match=r"hdfs-3.*has no hadoop-client-minicluster.*remove the folder"):
        hadoop_jars.jars("hdfs")


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hadoop_jars, "jars", lambda kind: tmp_path)
    monkeypatch.setattr(hdfs, "jars", lambda kind: tmp_path)
    monkeypatch.setattr(java_programs.shutil, "which", lambda *_, **__: None)
    with pytest.raises(ServiceMissing, match=r"javac is not installed: .*openjdk-17-jdk-headless"):
        HdfsServer(base=tmp_path).start()
