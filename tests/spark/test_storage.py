"""The errors of Hadoop's file systems, in words. The texts are those that Hadoop 3.5 has."""

from __future__ import annotations

import pytest

from trident_py.errors import ZombieError
from trident_py.spark.failures import translate
from trident_py.spark.storage import storage_error

HDFS = "hdfs://namenode:8020/checkpoints/t"
DENIED = (
    "org.apache.hadoop.security.AccessControlException: Permission denied: user=nobody, access=WRITE, "
    'inode="/checkpoints":root:supergroup:drwxr-xr-x'
)
REFUSED = (
    "java.net.ConnectException: Call From driver/10.0.0.1 to namenode:8020 failed on connection exception: "
    "java.net.ConnectException: Connection refused"
)
SAFE = (
    "org.apache.hadoop.hdfs.server.namenode.SafeModeException: Cannot create file/x. Name node is in safe mode."
)
BUCKET = "org.apache.hadoop.fs.s3a.UnknownStoreException: `s3a://b/x': getFileStatus on s3a://b/x: The bucket is absent"
NO_JAR = "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found"
OTHER = "org.apache.hadoop.ipc.RemoteException: Quota exceeded\n\tat org.apache.hadoop.A.b(A.java:1)"


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        (DENIED, HDFS, "access is denied (org.apache.hadoop.security.AccessControlException: Permission denied: user="),
        (REFUSED, HDFS, "it does not answer (java.net.ConnectException: Call From driver"),
        (SAFE, HDFS, "the namenode is in safe mode, as after a start"),
        (BUCKET, "s3a://b/x", "the bucket does not exist"),
        (NO_JAR, "s3a://b/x", "Start it with --packages org.apache.hadoop:hadoop-aws:3.5.0 (spark.jars.packages)"),
        (OTHER, HDFS, "cannot be used: org.apache.hadoop.ipc.RemoteException: Quota exceeded"),
    ],
)
def test_an_error_names_the_place_the_cause_and_the_step(text: str, where: str, said: str) -> None:
    error = str(storage_error(["java.io.IOException: outer", text], where, "3.5.0"))
    assert error.startswith(f"the checkpoint {where}") and said in error
    assert "\n" not in error


def test_a_namenode_that_is_away_is_not_taken_for_sparks_java_process() -> None:
    said = str(translate(["an error of the query", REFUSED], HDFS))
    assert said.startswith(f"the checkpoint {HDFS}: it does not answer")
    assert "start the topology again, and it continues where it stopped" in said
    gone = str(translate(["py4j: [Errno 111] Connection refused"], HDFS))
    assert gone.startswith("Spark's Java process is gone")


def test_a_connection_that_a_task_was_refused_is_not_taken_for_sparks_java_process() -> None:
    task = "org.apache.spark.SparkException: Job aborted: ConnectionError: [Errno 111] Connection refused (host w1)"
    assert "Spark's Java process is gone" not in str(translate(["the query ended", task], HDFS))


def test_a_log_that_another_driver_has_written_is_a_second_driver() -> None:
    error = translate(["[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log"], HDFS)
    assert isinstance(error, ZombieError)
    assert f"another driver runs on the checkpoint {HDFS}" in str(error)
