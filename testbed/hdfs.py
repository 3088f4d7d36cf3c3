"""A real HDFS for tests: namenode and datanode in one Java process, killed and restarted at will.

    with HdfsServer() as hdfs:
        SparkCluster(spark, checkpoints=f"{hdfs.url}/checkpoints")
        ...
        hdfs.kill()       # SIGKILL
        hdfs.restart()    # same files, same port

On a host of `hosts.Network`, `command` gives what to run there. The jars come from Maven (`hadoop_jars`); it needs a
JDK, as the program that starts both is a Java source file, which is compiled once.
"""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Any

from trident_py.errors import TridentError

from . import class_archives
from .hadoop_jars import SPARK_JARS, jars
from .java_programs import FOLDER, compiled, tool
from .service import HOST, Service, free_port

__all__ = ["HdfsServer", "command"]

PROGRAM = FOLDER / "Hdfs.java"
MAIN = "Hdfs"
READY = "ready"
HTTP = "dfs.namenode.http-address"
HTTP_PORT = 9870  # Hadoop's default
SETTINGS = {
    "dfs.replication": 1,
    "dfs.heartbeat.interval": 1,
    "dfs.namenode.safemode.extension": 0,
    "dfs.namenode.edits.noeditlogchannelflush": "true",
    "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    "dfs.datanode.sync.behind.writes": "false",
    "hadoop.http.idle_timeout.ms": 1000,
    # a datanode that writes for WebHDFS asks whether the file is complete, and again after this; 400 is HDFS's own
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": 5,
}


class HdfsServer(Service):
    """One namenode with one datanode on the loopback. ``options`` are HDFS's settings.

    Who starts it is the superuser; a client's account is what HADOOP_USER_NAME says. It never syncs to disk: files
    survive the death of the process, which ``kill()`` tests, but not of the machine.
    """

    name = "HDFS"

    @property
    def url(self) -> str:
        """``hdfs://host:port``, without a path."""
        return f"hdfs://{HOST}:{self.port}"

    @property
    def storage(self) -> dict[str, str]:
        """Where its WebHDFS is, as ``FileSpout`` takes it."""
        return {"port": str(self.options[HTTP]).rpartition(":")[2], "user": getpass.getuser()}

    def _programs(self) -> Path:
        return compiled(PROGRAM, _jars())

    def _command(self) -> list[str]:
        assert self.folder is not None
        (self.folder / "data" / READY).unlink(missing_ok=True)
        self.options.setdefault(HTTP, f"{HOST}:{free_port()}")
        return command(self.folder / "data", HOST, self.port, **self.options)

    def _answer(self) -> None:
        assert self.folder is not None
        if not (self.folder / "data" / READY).exists():
            raise TridentError("HDFS is still in safe mode")

    def _no_answer(self) -> tuple[type[BaseException], ...]:
        return (TridentError,)


def command(folder: str | Path, address: str, port: int, **options: Any) -> list[str]:
    """The command of an HDFS that listens on an address and keeps its files in ``folder``, which exists.

    The file ``ready`` appears in the folder when it serves; remove an old one before a restart. Raises ServiceMissing.
    """
    memory = ["-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    settings = [f"{name}={value}" for name, value in {**SETTINGS, **options}.items()]
    start = [tool("java"), *memory, *class_archives.options(MAIN), "-cp", classes(), MAIN]
    return [*start, str(folder), address, str(port), *settings]


def classes() -> str:
    """Returns the class path. Raises ServiceMissing."""
    return f"{compiled(PROGRAM, _jars())}:{_jars()}"


def _jars() -> str:
    return f"{jars('hdfs')}/*:{SPARK_JARS}/*"
