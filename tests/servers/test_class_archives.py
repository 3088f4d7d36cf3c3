"""The archives with which Java starts Kafka, Spark and HDFS sooner are those that it takes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyspark
import pytest

from testbed import class_archives, hdfs, kafka_jars
from testbed.kafka_broker import MAIN, STORAGE

SPARK = Path(pyspark.__file__).parent
SPARK_CLASSES = ":".join([f"{SPARK}/conf", *map(str, SPARK.glob("jars/slf4j-api-*.jar")), f"{SPARK}/jars/*"])
"""The class path with which Spark's own script starts a driver."""


@pytest.mark.parametrize("name", [MAIN, STORAGE, class_archives.SPARK, hdfs.MAIN])
def test_java_takes_an_archive(name: str) -> None:
    options = class_archives.options(name)
    if not options and os.environ.get("CI") != "true":
        pytest.skip("no archive of classes: python -m testbed.class_archives")
    classes = {class_archives.SPARK: SPARK_CLASSES, hdfs.MAIN: hdfs.classes()}.get(name, f"{kafka_jars.folder()}/*")
    command = ["java", "-Xshare:on", "-XX:+UseSerialGC", *options[:1], "-Xlog:cds", "-cp", classes, "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mismatch" not in done.stdout


def test_without_an_archive_java_gets_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archives, "FOLDER", tmp_path)
    assert class_archives.options("kafka.Kafka") == []
