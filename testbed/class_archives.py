"""Archives of loaded classes, with which Java starts Spark and Kafka in half of the time (class data sharing).

    python -m testbed.class_archives       makes those that are missing or of another version

A test run starts Java hundreds of times. Java does not use an archive of other jars or of another Java, so a missing or
an old one changes nothing but the time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from . import kafka_jars

FOLDER = Path(__file__).parents[1] / "build" / "class_archives"
STAMP = FOLDER / "versions"
SPARK = "spark"
TOPOLOGY = """
from trident_py import SparkCluster, TridentTopology
from trident_py.operations.builtin import Count
from trident_py.spark.session import OwnSession
from trident_py.testing import FixedBatchSpout, MemoryMapState

own = OwnSession({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})
topology = TridentTopology()
words = topology.newStream("words", FixedBatchSpout("word", 2, ("a",), ("b",))).parallelismHint(2)
words.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
with SparkCluster(own.spark, "checkpoints") as cluster:
    cluster.submitTopology("words", {"topology.inline.max.tuples": 0}, topology.build()).awaitTermination(100)
own.spark.stop()
"""
QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
RECORD = "TRIDENT_RECORD_CLASSES"


def options(name: str) -> list[str]:
    """Returns the options of Java for the program of this name: its archive, if there is one. With the variable RECORD
    the program writes its archive when it ends in order."""
    file = FOLDER / f"{name}.jsa"
    if RECORD in os.environ:
        return [f"-XX:ArchiveClassesAtExit={file}", *QUIET]
    return [f"-XX:SharedArchiveFile={file}", *QUIET] if file.exists() else []


def record_kafka() -> None:
    from .kafka_broker import KafkaBroker

    with KafkaBroker() as broker:
        broker.create_topic()
        broker.stop()


def record_spark() -> None:
    """Run a topology of one batch, as a job, in a process of its own."""
    java = " ".join(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *options(SPARK)])
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "SPARK_SUBMIT_OPTS": java}
        subprocess.run([sys.executable, "-c", TOPOLOGY], env=environment, cwd=folder, check=True, capture_output=True)


def versions() -> str:
    """What the archives depend on."""
    import pyspark

    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    return f"{java}{pyspark.__version__}\n{kafka_jars.folder()}\n"


def main() -> None:
    """Record all of them, unless they are there for these versions."""
    wanted = versions()
    if STAMP.exists() and STAMP.read_text() == wanted:
        return
    print("== recording the classes that Spark and Kafka load", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    os.environ[RECORD] = "1"
    record_spark()
    if kafka_jars.there():
        record_kafka()
    STAMP.write_text(wanted)


if __name__ == "__main__":
    main()
