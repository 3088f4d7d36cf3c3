"""The Spark session: makes one if none is given, and sets what a query needs of any session."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import SparkSession

from ..filesystems.tempdirs import own_folder
from ..model.canonical import WORKERS_SEED
from . import connect
from .internals import active_context, forget_gateway, gateway_of, has_java, java_process
from .launcher import is_alone, master_of, start
from .versions import CHECKPOINTING

# Spark always asks for this module, for its machine learning, and Java has no option that keeps it quiet about that.
_NOISE = re.compile(rb"^WARNING: Using incubator modules: jdk\.incubator\.vector\r?\n", re.M)
_CHUNK = 65_536
_LAST_WORDS_SECONDS = 2.0


@contextmanager
def pass_on() -> Iterator[int]:
    """A file that Java gets as its stderr; who starts Java closes it then. At the end of the block, waits until what
    was printed is shown."""
    source, file = os.pipe()
    # Without a stderr of its own, this process may have opened any file as number 2.
    target = os.open(os.devnull, os.O_WRONLY) if sys.__stderr__ is None else os.dup(2)
    copying = threading.Thread(target=_copy, args=(source, target), name="trident-java-output", daemon=True)
    copying.start()
    try:
        yield file
    finally:
        copying.join(_LAST_WORDS_SECONDS)


def _copy(source: int, target: int) -> None:
    """Copy until the last process that has the other end has ended, even if nobody reads the copy any more."""
    with open(source, "rb", buffering=0) as printed, open(target, "wb", buffering=0) as shown:
        while chunk := printed.read(_CHUNK):
            with suppress(OSError):
                shown.write(_NOISE.sub(b"", chunk))


MANAGER = f"{CHECKPOINTING}.FileSystemBasedCheckpointFileManager"
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
SCRATCH = "trident-spark-"
HASH_SEED = "PYTHONHASHSEED"
_confs = threading.RLock()
_seeds = threading.RLock()
_sessions = threading.RLock()


def session_of(spark: SparkSession | None, closing: ExitStack) -> SparkSession:
    """Return the session of a cluster: the given one, else the session of this process, else a new one. If trident_py
    made the session, ``closing`` gives up a share of it; the last user ends it."""
    if spark is not None:
        connect.refuse_session(spark)
        return spark
    connect.refuse_environment()
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
    """A session that trident_py made, with its scratch folder. `stop` leaves neither a process nor a file behind.

    Its master is that of spark-submit, PYSPARK_SUBMIT_ARGS or spark-defaults.conf, else ``local[*]``. ``settings``
    precede theirs. ``users`` counts the maker and the clusters that share it. The maker may `stop` it at any time.
    """

    current: ClassVar[OwnSession | None] = None

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self.users = 1
        self._closing = ExitStack()  # the folder goes with the session, or at the next start if this process is killed
        self._interrupt = signal.getsignal(signal.SIGINT)
        self._ends_java = not has_java()
        try:
            folder, output = self._closing.enter_context(own_folder(SCRATCH)), self._closing.enter_context(pass_on())
            self.spark = start(folder, output, settings or {})
        except BaseException:
            self._closing.close()
            raise
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
        if self._ends_java:
            _end_gateway(gateway, process)
        self._closing.close()
        OwnSession.current = None


def _end_gateway(gateway: Any, process: Any) -> None:
    """End the Java process; stopping the session alone would leave it running until Python exits."""
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
    """End Spark's Python daemons and their idle workers, each a process group, before Java closes their sockets: else
    a worker reports a broken pipe on the user's terminal. On systems other than Linux they end with Java."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == java and b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                os.killpg(int(entry.name), signal.SIGKILL)


@contextmanager
def query_settings(spark: SparkSession, checkpoint: dict[str, str]) -> Iterator[None]:
    """Applies our settings and the checkpoint's while a query is started inside. The query keeps a copy; the session
    gets its own back."""
    alone = is_alone(master_of(spark))
    wanted = QUERY | (UNCHECKED if alone else CHECKED) | checkpoint
    with _confs:
        before = {key: spark.conf.get(key, None) for key in wanted}
        try:
            for key, value in wanted.items():
                spark.conf.set(key, value)
            yield
        finally:
            for key, old in before.items():
                if old is None:
                    spark.conf.unset(key)
                else:
                    spark.conf.set(key, old)


@contextmanager
def workers_seed(spark: SparkSession) -> Iterator[None]:
    """Gives the functions that are sent to workers inside our hash seed: all tasks must agree on the order of sets."""
    workers = spark.sparkContext.environment
    with _seeds:
        seed = workers[HASH_SEED]
        try:
            workers[HASH_SEED] = WORKERS_SEED
            yield
        finally:
            workers[HASH_SEED] = seed
