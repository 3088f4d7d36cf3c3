"""A real HDFS for tests: namenode and datanode in one Java process, killed and restarted at will.

    with HdfsServer() as hdfs:
        SparkCluster(spark, checkpoints=f"{hdfs.url}/checkpoints")
        ...
        hdfs.kill()       # SIGKILL
        hdfs.restart()    # same files, same port

On a host of `hosts.Network`, `command` gives what to run there. The jars come from Maven (`hadoop_jars`); it needs a
JDK, as the program that starts both is a Java source file.
"""

from __future__ import annotations

import getpass
import os
import shutil
from pathlib import Path
from typing import Any

from trident_py.errors import TridentError

from .hadoop_jars import SPARK_JARS, jars
from .service import HOST, Service, ServiceMissing, free_port

__all__ = ["HdfsServer", "command"]

PROGRAM = Path(__file__).parent / "jvm" / "Hdfs.java"
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
        jars("hdfs")
        return Path(_java())

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
    classes = f"{jars('hdfs')}/*:{SPARK_JARS}/*"
    return [_java(), *memory, "-cp", classes, str(PROGRAM), str(folder), address, str(port), *settings]


def _java() -> str:
    """The java of a JDK. Raises ServiceMissing."""
    folder = f"{os.environ['JAVA_HOME']}/bin" if os.environ.get("JAVA_HOME") else None
    java, compiler = shutil.which("java", path=folder), shutil.which("javac", path=folder)
    if java is None or compiler is None:
        raise ServiceMissing("javac is not installed: sudo apt-get install openjdk-17-jdk-headless")
    return java
