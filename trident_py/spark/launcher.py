"""Starts Spark: its Java process, unless spark-submit has, and a session with our settings where nobody gave others."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ..errors import TridentError
from . import connect
from .failures import chain_of, innermost
from .internals import forget_gateway, has_java, is_from_spark, java_has_ended, launch

log = logging.getLogger("trident_py")

# trident_py reports a user's error or a stop; these loggers would add Java stack traces.
SILENCED = (
    "org.apache.spark.sql.execution.streaming",
    "org.apache.spark.api.python",
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.sql.execution.datasources.v2",
)
_LOG = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{short}
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = error
"""
_LOG_FILES = ("log4j2.properties", "log4j2.xml", "log4j2.yaml", "log4j2.json")
_GIVEN = "Its settings come from spark-submit, trident run, PYSPARK_SUBMIT_ARGS and spark-defaults.conf"
_SOCKET_PATH = 60
_JAVA_OPTIONS = "SPARK_SUBMIT_OPTS"
# pyspark 4.3 says this when it first calls Java; we do not use pandas.
_PANDAS_3 = "PySpark does not yet fully support pandas"
# With a full heap some of Spark's threads end, and others may wait for them: a run would neither go on nor fail.
_FULL_HEAP = "-XX:+ExitOnOutOfMemoryError"
_SHELL = "pyspark-shell"  # Spark's name for an application that nobody named
_EVERYWHERE = {"spark.app.name": "trident_py", "spark.sql.session.timeZone": "UTC"}
# By Spark's default a task of an exchange opens a file for each of up to 200 targets (docs/scale.md).
_ON_CLUSTERS = {"spark.shuffle.sort.bypassMergeThreshold": "1"}


def start(folder: Path, stderr: int, asked: dict[str, str]) -> SparkSession:
    """Return a new session. What spark-submit, PYSPARK_SUBMIT_ARGS or spark-defaults.conf say holds; ``asked`` precedes
    it.

    ``folder`` gets what Spark writes on the driver's machine, ``stderr`` what Java prints; it is closed. A Java process
    that ends in its start (a machine may be short of memory for a moment) is started once more. Raises TridentError
    with cause and next step.
    """
    theirs = has_java()
    try:
        with os.fdopen(stderr, "wb"), temporary_files_in(folder), _java_options(folder), warnings.catch_warnings():
            connect.refuse_environment()
            warnings.filterwarnings("ignore", _PANDAS_3, FutureWarning)
            try:
                return _start_java(folder, stderr, asked)
            except Exception as error:
                if theirs or not _java_is_lost(error):
                    raise
                log.warning("Spark's Java process ended in its start (%s); it is started once more", error)
                forget_gateway()
            return _start_java(folder, stderr, asked)
    except BaseException as error:
        raise _no_spark(error) from error


def _start_java(folder: Path, stderr: int, asked: dict[str, str]) -> SparkSession:
    given = launch({"spark.ui.showConsoleProgress": "false", **asked}, stderr) | asked
    ours = defaults(given["spark.master"], folder)
    free = {key: value for key, value in ours.items() if given.get(key, _SHELL) == _SHELL}
    return _session(given, free | asked)


def _java_is_lost(error: Exception) -> bool:
    """Return whether the Java process has ended without a word about why."""
    return _has_program() and _is_wordless(error) and java_has_ended()


def master_of(spark: SparkSession) -> str:
    """Return the master that a session runs on, such as ``local[2]`` or ``spark://host:7077``."""
    return spark.sparkContext.master or ""


def is_alone(master: str) -> bool:
    """Return whether driver and executor are one process: ``local``, ``local[4]``, but not
    ``local-cluster[2,1,1024]``."""
    return master.partition("[")[0] == "local"


def is_one_machine(master: str) -> bool:
    """Return whether every executor runs on the driver's machine: also ``local-cluster[2,1,1024]``."""
    return master.startswith("local")


def _session(given: dict[str, str], settings: dict[str, str]) -> SparkSession:
    _choose_python(given)
    builder: Any = SparkSession.builder
    for key, value in {"spark.api.mode": "classic", **settings}.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session


def _choose_python(given: dict[str, str]) -> None:
    """Choose the Python that the executors start. On other machines it is Spark's choice: the driver's may not be
    there."""
    if "spark.pyspark.python" in given:
        os.environ.setdefault("PYSPARK_PYTHON", given["spark.pyspark.python"])
    if is_one_machine(given["spark.master"]):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def defaults(master: str, folder: Path) -> dict[str, str]:
    """Return our settings where nobody gave another. On a cluster they are few: executors cannot use a folder of the
    driver, nor reach its loopback."""
    if not is_alone(master):
        return _EVERYWHERE | _ON_CLUSTERS
    return {
        **_EVERYWHERE,
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": str(max(2, min(8, os.cpu_count() or 2))),
        # A worker's answer over TCP waits up to 40 ms for an acknowledgement; a socket file's path is short.
        "spark.python.unix.domain.socket.enabled": str(len(str(folder)) < _SOCKET_PATH).lower(),
        "spark.python.unix.domain.socket.dir": str(folder),
    }


@contextmanager
def _java_options(folder: Path) -> Iterator[None]:
    """Options for the Java process that is started inside. Not a setting of Spark, which executors would inherit; and
    ``spark.driver.extraJavaOptions`` precedes them."""
    before = os.environ.get(_JAVA_OPTIONS)
    options = [before or "", f"-Djava.io.tmpdir={folder}", _FULL_HEAP]
    if not _configures_logs():
        log = folder / "log4j2.properties"
        log.write_text(_LOG + _silence_loggers())
        options.append(f"-Dlog4j2.configurationFile={log.as_uri()}")
    os.environ[_JAVA_OPTIONS] = " ".join(options).strip()
    try:
        yield
    finally:
        del os.environ[_JAVA_OPTIONS]
        if before is not None:
            os.environ[_JAVA_OPTIONS] = before


def _configures_logs() -> bool:
    """Return whether Spark's logs are the user's affair: spark-submit runs, or there is a log configuration of the
    user's."""
    folder = os.environ.get("SPARK_CONF_DIR") or str(Path(os.environ.get("SPARK_HOME", os.devnull)) / "conf")
    return has_java() or any((Path(folder) / name).exists() for name in _LOG_FILES)


def _silence_loggers() -> str:
    return "".join(f"logger.quiet{i}.name = {name}\nlogger.quiet{i}.level = off\n" for i, name in enumerate(SILENCED))


@contextmanager
def temporary_files_in(folder: Path) -> Iterator[None]:
    """Puts PySpark's temporary files for the start of Java into the folder, so that they are deleted with it."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def _no_spark(error: BaseException) -> BaseException:
    if isinstance(error, TridentError) or not isinstance(error, Exception):
        return error
    if not _has_program():
        return TridentError(
            f"Spark did not start: {error}. It needs Java 17 on the PATH or in JAVA_HOME; "
            "on Debian: apt-get install openjdk-17-jre-headless"
        )
    texts = chain_of(error)
    if len(texts) > 1:  # Java runs and says why
        return TridentError(f"Spark did not start: {innermost(texts)}. {_GIVEN}")
    if _is_wordless(error):
        return TridentError(
            f"Spark did not start: its Java process ended at once, or was killed ({error}). See its output above; it "
            f"needs Java 17 or newer (java -version) and 1 GB of free memory. {_GIVEN}"
        )
    return TridentError(f"Spark did not start: {error}")


def _has_program() -> bool:
    return shutil.which("java") is not None or "JAVA_HOME" in os.environ


def _is_wordless(error: Exception) -> bool:
    """Return whether PySpark could not reach Java, and so Java gives no cause."""
    return (isinstance(error, OSError) or is_from_spark(error)) and len(chain_of(error)) == 1
