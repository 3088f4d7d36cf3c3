"""The Spark session: makes one if none is given, and sets what a query needs of any session."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import SparkSession

from ..errors import TridentError
from ..leftovers import own_folder
from .internals import active_context, default_file_system, forget_gateway, gateway_of, java_process, raised_by_spark

MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
RAW_FILES = "org.apache.hadoop.fs.RawLocalFileSystem"

# Adaptive execution costs 20 ms a batch and has nothing to decide, since the program fixes every partition count.
# The format of a checkpoint must not depend on the session's settings: the second format of the offset log keeps
# sources by name, and ours have none.
QUERY = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.offsetLog.formatVersion": "1",
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "false",
    "spark.sql.streaming.stopActiveRunOnRestart": "false",
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
}
# Hadoop's local file system starts a chmod process for every file and writes a .crc beside it, which is most of the
# time a batch spends on its logs. The raw file system also renames, so a log file is complete or absent.
LOCAL_CHECKPOINT = {
    "spark.sql.streaming.checkpointFileManagerClass": MANAGER,
    "fs.file.impl": RAW_FILES,
    "fs.file.impl.disable.cache": "true",
}
# If an executor is lost, Spark repeats a part of a stage in the middle of a batch. Other partitions may already have
# committed, so different output must not mix with theirs: the checksum makes Spark give up the job, and the whole batch
# is replayed.
_CHECKSUM = "spark.sql.shuffle.orderIndependentChecksum"
CHECKED = {f"{_CHECKSUM}.enabled": "true", f"{_CHECKSUM}.enableFullRetryOnMismatch": "true"}
UNCHECKED = dict.fromkeys(CHECKED, "false")
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
SCRATCH = "trident-spark-"
_SOCKET_PATH = 60
HASH_SEED = "PYTHONHASHSEED"
_confs = threading.RLock()
_sessions = threading.RLock()


def session_of(spark: SparkSession | None, closing: ExitStack) -> SparkSession:
    """The session of a cluster: the given one, else the session of this process, else a new one. If trident_py made the
    session, ``closing`` gives up a share of it; the last user ends it."""
    if spark is not None:
        return spark
    with _sessions:
        active, session = active_context(), OwnSession.current
        if active is None:
            session = OwnSession()
        elif session is not None and session.spark.sparkContext is active:
            session.users += 1
        else:
            return SparkSession.builder.getOrCreate()
        closing.callback(session.give_up)
        return session.spark


class OwnSession:
    """A ``local[*]`` session with its scratch folder. `stop` leaves neither a process nor a file behind.

    ``users`` counts the maker and the clusters that share it. The maker may `stop` it at any time.
    """

    current: ClassVar[OwnSession | None] = None

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self.users = 1
        self._closing = ExitStack()  # the folder goes with the session, or at the next start if this process is killed
        self._folder = self._closing.enter_context(own_folder(SCRATCH))
        log = self._folder / "log4j2.properties"
        log.write_text(_LOG + _silenced_lines())
        self._interrupt = signal.getsignal(signal.SIGINT)
        try:
            with temporary_files_in(self._folder):
                self.spark = _start(_settings(self._folder, log) | (settings or {}))
        except BaseException as error:
            self._closing.close()
            raise _no_spark(error) from error
        OwnSession.current = self
        # pyspark's own handler cancels the jobs first, so a batch would look failed; ours ends the run in order
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._interrupt)

    def give_up(self) -> None:
        with _sessions:
            self.users -= 1
            if self.users == 0:
                self.stop()

    def stop(self) -> None:
        gateway, process = gateway_of(self.spark), java_process(self.spark)
        if process is not None:
            _end_python(process.pid)
        with suppress(Exception):  # another cluster of this process may have ended the session they shared
            self.spark.stop()
        _end_gateway(gateway, process)
        self._closing.close()
        OwnSession.current = None


def _settings(folder: Path, log: Path) -> dict[str, str]:
    return {
        "spark.master": "local[*]",
        "spark.app.name": "trident_py",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log.as_uri()} -Djava.io.tmpdir={folder}",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": str(max(2, min(8, os.cpu_count() or 2))),
        "spark.python.worker.reuse": "true",
        # A worker's answer over TCP waits up to 40 ms for an acknowledgement; a socket file's path is short.
        "spark.python.unix.domain.socket.enabled": str(len(str(folder)) < _SOCKET_PATH).lower(),
        "spark.python.unix.domain.socket.dir": str(folder),
        "spark.sql.session.timeZone": "UTC",
    }


def _start(settings: dict[str, str]) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder: Any = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # pyspark 4.3 about pandas 3, which we do not use
        session: SparkSession = builder.getOrCreate()
        return session


@contextmanager
def temporary_files_in(folder: Path) -> Iterator[None]:
    """Puts PySpark's temporary files for the start of Java into the folder, so that they are deleted with it."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def _no_spark(error: BaseException) -> TridentError:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return TridentError(
            f"Spark did not start: {error}. It needs Java 17 on the PATH or in JAVA_HOME; "
            "on Debian: apt-get install openjdk-17-jre-headless"
        )
    if isinstance(error, OSError) or raised_by_spark(error):
        return TridentError(
            f"Spark did not start: its Java process ended at once, or was killed ({error}). See its output above; it "
            "needs Java 17 or newer (java -version) and 1 GB of free memory"
        )
    return TridentError(f"Spark did not start: {error}")


def _end_gateway(gateway: Any, process: Any) -> None:
    """Ends the Java process; stopping the session alone would leave it running until Python exits."""
    with suppress(Exception):  # it may have ended already
        gateway.shutdown()
    if process is not None and process.poll() is None:
        process.stdin.close()
        try:
            process.wait(20)
        except Exception:
            process.kill()
    forget_gateway()


def _end_python(java: int) -> None:
    """Ends Spark's Python daemons and their idle workers, each a process group, before Java closes their sockets: else
    a worker reports a broken pipe on the user's terminal. On systems other than Linux they end with Java."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == java and b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                os.killpg(int(entry.name), signal.SIGKILL)


def _silenced_lines() -> str:
    return "".join(f"logger.quiet{i}.name = {name}\nlogger.quiet{i}.level = off\n" for i, name in enumerate(SILENCED))


@contextmanager
def query_settings(spark: SparkSession, checkpoint: str) -> Iterator[None]:
    """Applies our settings while a query is started inside. The query keeps a copy; the session gets its own back."""
    alone = (spark.sparkContext.master or "").partition("[")[0] == "local"
    wanted = QUERY | (UNCHECKED if alone else CHECKED) | (LOCAL_CHECKPOINT if is_local(spark, checkpoint) else {})
    workers = spark.sparkContext.environment
    with _confs:
        before = {key: spark.conf.get(key, None) for key in wanted}
        seed = workers[HASH_SEED]
        try:
            workers[HASH_SEED] = "0"  # else the driver's: each restart would have another order of sets
            for key, value in wanted.items():
                spark.conf.set(key, value)
            yield
        finally:
            workers[HASH_SEED] = seed
            for key, old in before.items():
                if old is None:
                    spark.conf.unset(key)
                else:
                    spark.conf.set(key, old)


def is_local(spark: SparkSession, checkpoint: str) -> bool:
    """Whether the checkpoint is in a folder of this machine, and Spark sees it as one."""
    if "://" in checkpoint or checkpoint.startswith("file:"):
        return checkpoint.startswith("file:")
    return default_file_system(spark).startswith("file:")
