"""Archives of loaded classes, with which Java starts Spark, Kafka and HDFS in half of the time (class data sharing).

    python -m testbed.class_archives       makes those that are missing or of another version

A test run starts Java hundreds of times. Java does not use an archive of other jars or of another Java, so a missing or
an old one changes nothing but the time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from . import hadoop_jars, kafka_jars
from .service import ServiceMissing

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
    """Returns the options of Java for the program of this name: its archive, if there is one. RECORD names a folder
    into which the program writes its archive when it ends in order."""
    file = FOLDER / f"{name}.jsa"
    if into := os.environ.get(RECORD):
        return [f"-XX:ArchiveClassesAtExit={into}/{name}.jsa", *QUIET]
    return [f"-XX:SharedArchiveFile={file}", *QUIET] if file.exists() else []


def record_kafka() -> None:
    from .kafka_broker import KafkaBroker

    with KafkaBroker() as broker:
        broker.create_topic()
        broker.stop()


def record_hdfs() -> None:
    from .hdfs import HdfsServer

    with HdfsServer() as server:
        server.stop()


def record_spark() -> None:
    """Run a topology of one batch, as a job, in a process of its own."""
    java = " ".join(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *options(SPARK)])
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "SPARK_SUBMIT_OPTS": java}
        subprocess.run([sys.executable, "-c", TOPOLOGY], env=environment, cwd=folder, check=True, capture_output=True)


def java() -> str:
    """Returns the java of JAVA_HOME, else of PATH, as Spark and the broker take it."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


def versions() -> str:
    """What the archives depend on."""
    told = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True).stderr
    jars = f"{kafka_jars.folder()} {kafka_jars.there()}\n{hadoop_jars.folder('hdfs')} {hadoop_jars.there('hdfs')}"
    return f"{told}{metadata.version('pyspark')}\n{jars}\n"


def record() -> None:
    """Record all of them, unless they are there for these versions. Another run may do the same at the same time."""
    wanted = versions()
    if STAMP.exists() and STAMP.read_text() == wanted:
        return
    print("== recording the classes that Spark, Kafka and HDFS load", flush=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER.parent) as folder:
        os.environ[RECORD] = folder
        record_spark()
        if kafka_jars.there():
            record_kafka()
        if hadoop_jars.there("hdfs"):
            record_hdfs()
        for made in Path(folder).glob("*.jsa"):
            made.replace(FOLDER / made.name)
    STAMP.write_text(wanted)


def main() -> None:
    """Without archives tests take longer; nothing else."""
    try:
        record()
    except (OSError, subprocess.SubprocessError, ServiceMissing) as error:
        print(f"note: no archives of classes, so Java starts more slowly: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
