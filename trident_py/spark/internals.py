"""All uses of private interfaces of PySpark, Py4J and Spark's Java classes.

Each function was run on PySpark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0; only where `checkpoint_files` finds its class
differs (`versions`). For another version, check each function against Spark's source code, then run the tests marked
``spark`` and ``make spark-matrix``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any

from pyspark import RDD, SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from .versions import CHECKPOINTING

SPARKS_PACKAGES = {"pyspark", "py4j"}  # executors have them
_CAUSES = 6
_TASKS = 100_000
_ENDING_SECONDS = 1.0


class Interrupted(Exception):
    """Ends a foreachBatch call without committing the batch. Its text is that of Py4J for an InterruptedException,
    which Spark takes for a stop of the query."""

    def __init__(self) -> None:
        called = "py4j.protocol.Py4JJavaError: An error occurred while calling o0.stopped."
        super().__init__(f"{called} : java.lang.InterruptedException")


def active_context() -> SparkContext | None:
    """Return the active Spark context of this process, if any."""
    return SparkContext._active_spark_context


def has_java() -> bool:
    """Return whether there is a Java process already: spark-submit started it, or an earlier session of this
    process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ or SparkContext._gateway is not None


def launch(settings: dict[str, str], stderr: int) -> dict[str, str]:
    """Start the Java process, unless there is one. Returns the settings of a new session in it: those of spark-submit,
    PYSPARK_SUBMIT_ARGS, spark-defaults.conf and, if it is started here, ``settings`` where these have no other."""
    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    gateway = None if has_java() else launch_gateway(conf, {"stderr": stderr})
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)
    return dict(SparkConf().getAll())


def java_has_ended() -> bool:
    """Return whether the Java process that PySpark started, or tried to start, is gone."""
    gateway: Any = SparkContext._gateway
    if gateway is None:
        return True
    with suppress(subprocess.TimeoutExpired):
        gateway.proc.wait(_ENDING_SECONDS)  # who is cut off from it hears that before the system tells its end
    return gateway.proc.poll() is not None


def gateway_of(spark: SparkSession) -> Any:
    """Return Py4J's gateway to the Java process."""
    return spark.sparkContext._gateway


def java_process(spark: SparkSession) -> Any:
    """Return the Java process as a Popen; None if PySpark did not start it."""
    return vars(gateway_of(spark)).get("proc")  # for a name that it lacks, a gateway's getattr asks Java


def forget_gateway() -> None:
    """Make the next session of this process start a new Java process."""
    SparkContext._gateway = None
    SparkContext._jvm = None


def executor_hosts(spark: SparkSession) -> list[str]:
    """Return the machines that have executors now, by Spark's names for them."""
    context = spark.sparkContext
    listed: str = context._jsc.sc().getExecutorMemoryStatus().keySet().mkString("\n")
    hosts = [address.rpartition(":")[0] for address in listed.split("\n")]
    driver = context.getConf().get("spark.driver.host", "")
    if driver in hosts:
        hosts.remove(driver)  # once: there may be executors beside it
    return sorted(set(hosts))


def one_row_for_each(spark: SparkSession, hosts: Sequence[str]) -> RDD[str]:
    """Return a partition for each host, with its name as the only row, which Spark prefers to run there."""
    context = spark.sparkContext
    jvm: Any = context._jvm
    sequence = jvm.org.apache.spark.api.python.PythonUtils.toSeq
    rows = jvm.java.util.ArrayList()
    for host in hosts:
        rows.append(jvm.scala.Tuple2(host, sequence([host])))
    tags = getattr(getattr(jvm.scala.reflect, "ClassTag$"), "MODULE$")
    rdd = context._jsc.sc().makeRDD(sequence(rows), tags.apply(jvm.java.lang.Class.forName("java.lang.String")))
    return RDD(rdd.toJavaRDD(), context, UTF8Deserializer(True))


def source_offsets(query: StreamingQuery, batch_id: int, sources: int) -> list[str] | None:
    """Return the end offsets of the query's first ``sources`` in this micro-batch, from Spark's offset log; None before
    the first."""
    logged = query._jsq.streamingQuery().offsetLog().get(batch_id) if batch_id >= 0 else None
    if logged is None or logged.isEmpty():
        return None
    offsets = [logged.get().offsets().apply(i) for i in range(sources)]
    return [str(offset.get().json()) if offset.isDefined() else "" for offset in offsets]


def java_causes(error: BaseException) -> list[str]:
    """Return the texts of the Java exception behind an error, and of its causes, from the outside in."""
    texts: list[str] = []
    # Py4J's errors have the first of these attributes, PySpark's the second, and Python's neither.
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while java is not None and len(texts) < _CAUSES:
        texts.append(str(java.toString()))
        java = java.getCause()
    return texts


def is_from_spark(error: BaseException) -> bool:
    """Return whether the error comes from PySpark or from Py4J. Py4J's errors have no common base class."""
    return isinstance(error, PySparkException) or type(error).__module__.startswith("py4j")


def java_classes(spark: SparkSession) -> Any:
    """Return the classes of the Java process by their full names: those of Hadoop, and of Java itself."""
    return spark.sparkContext._jvm


def java_answers(spark: SparkSession) -> bool:
    """Return whether the Java process is there and answers."""
    try:
        java_classes(spark).java.lang.System.nanoTime()
    except Exception:
        return False
    return True


def hadoop_settings(spark: SparkSession) -> Any:
    """Return Hadoop's settings as a query that is started now would see them: the context's and the session's."""
    return spark._jsparkSession.sessionState().newHadoopConf()


def checkpoint_files(spark: SparkSession, path: Any, settings: Any) -> Any:
    """Return Spark's manager of the files of its logs, a CheckpointFileManager, for a Hadoop path."""
    folder = reduce(getattr, CHECKPOINTING.split("."), java_classes(spark))
    return folder.CheckpointFileManager.create(path, settings)


def read_planning_seconds(frame: DataFrame) -> float:
    """Return how long Spark planned the job of a frame that has run: its analysis, optimisation and planning."""
    phases = frame._jdf.queryExecution().tracker().phases()
    found = re.findall(r"PhaseSummary\((\d+), (\d+)\)", str(phases.toString()))
    return sum(int(end) - int(begin) for begin, end in found) / 1000


def jobs_of(spark: SparkSession, descriptions: Collection[str]) -> list[dict[str, Any]]:
    """Return the ended jobs with these descriptions, as Spark's REST interface gives them. Each has its ``stages``, and
    these their ``tasks``. Waits until Spark has booked what has ended."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    store, as_text = context.statusStore(), _mapper(spark).writeValueAsString
    known = json.loads(as_text(store.jobsList(None)))
    jobs = [job for job in known if job.get("description") in descriptions and job.get("completionTime")]
    for job in jobs:
        job["stages"] = [json.loads(as_text(store.lastStageAttempt(stage))) for stage in sorted(job["stageIds"])]
        for stage in job["stages"]:
            tasks = store.taskList(stage["stageId"], stage["attemptId"], _TASKS)
            stage["tasks"] = json.loads(as_text(tasks))
    return jobs


def has_repeated_stage(spark: SparkSession, description: str) -> bool:
    """Return whether Spark ran a stage of the newest job with this description again, or a part of it."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    store = context.statusStore()
    jobs = store.jobsList(None).iterator()  # the newest first
    while jobs.hasNext():
        job = jobs.next()
        if str(job.description()) == f"Some({description})":
            stages = str(job.stageIds().mkString(" ")).split()
            return any(store.lastStageAttempt(int(stage)).attemptId() > 0 for stage in stages)
    return False


def _mapper(spark: SparkSession) -> Any:
    """Make JSON of what Spark's REST interface gives."""
    jackson = java_classes(spark).com.fasterxml.jackson
    mapper = jackson.databind.ObjectMapper()
    mapper.registerModule(jackson.module.scala.DefaultScalaModule())
    return mapper
