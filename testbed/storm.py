"""Real Storm for tests that move from it: its ZooKeeper, and a word count on its LocalCluster, killed at will.

    with ZooKeeper() as zookeeper, StormWords({"zookeeper": zookeeper.port, "topic": "words", ...}) as storm:
        ...
        storm.kill()        # SIGKILL of the whole cluster; ZooKeeper is a process of its own, and stays

The jars come from Maven (``jvm/storm.xml``) and are kept in the user's cache. It needs a JDK: the topology is a Java
source file, which is compiled once.
"""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from trident_py.errors import TridentError

from . import class_archives
from .java_programs import FOLDER, compiled
from .kafka_jars import cached, fetch
from .service import HOST, Service

__all__ = ["StormWords", "ZooKeeper", "jars"]

POM, PROGRAM = FOLDER / "storm.xml", FOLDER / "StormWords.java"
ZOOKEEPER = "org.apache.storm.shade.org.apache.zookeeper.server.ZooKeeperServerMain"
STORM, KEEPER = "storm", "zookeeper"  # the names of their archives of classes
QUIET = """<configuration status="error"><appenders><console name="out"/></appenders>
<loggers><root level="error"><appenderRef ref="out"/></root></loggers></configuration>
"""
SMALL = ("-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def jars() -> Path:
    """Returns the folder with the jars; fetches them first if they are missing. Raises ServiceMissing."""
    wanted = cached(f"storm-{crc32(POM.read_bytes()):08x}")
    fetch(POM, wanted)
    return wanted


def program() -> Path:
    """Returns the jar with the compiled topology; compiles it first if it is missing. Raises ServiceMissing."""
    return compiled(PROGRAM, f"{jars()}/*")


class ZooKeeper(Service):
    """The ZooKeeper that Storm's jars carry, standalone. It never syncs to disk."""

    name = "ZooKeeper"

    @property
    def hosts(self) -> str:
        return f"{HOST}:{self.port}"

    def _programs(self) -> Path:
        return jars()

    def _command(self) -> list[str]:
        assert self.folder is not None
        settings = {
            "dataDir": f"{self.folder}/data", "clientPort": self.port, "clientPortAddress": HOST, "tickTime": 500,
            "admin.enableServer": "false", "maxClientCnxns": 0, "4lw.commands.whitelist": "ruok",
        }  # fmt: skip
        text = "".join(f"{name}={value}\n" for name, value in {**settings, **self.options}.items())
        (self.folder / "zoo.cfg").write_text(text)
        start = [*SMALL, "-Xmx256m", *class_archives.options(KEEPER), "-Dzookeeper.forceSync=no"]
        return [class_archives.java(), *start, "-cp", f"{jars()}/*", ZOOKEEPER, f"{self.folder}/zoo.cfg"]

    def _answer(self) -> None:
        with socket.create_connection((HOST, self.port), 1) as connection:
            connection.sendall(b"ruok")
            if connection.recv(10) != b"imok":
                raise TridentError("ZooKeeper does not serve yet")

    def _no_answer(self) -> tuple[type[BaseException], ...]:
        return (OSError, TridentError)


class StormWords(Service):
    """Word counts on one LocalCluster, in one process; ``topologies`` have the options of ``jvm/StormWords.java``.
    Started, it has submitted them, and they begin their first batches some seconds later."""

    name = "Storm"

    def __init__(self, *topologies: Mapping[str, Any]) -> None:
        super().__init__()
        self._topologies = topologies

    def _programs(self) -> Path:
        return program()

    def _command(self) -> list[str]:
        assert self.folder is not None
        groups = [[f"{name}={value}" for name, value in each.items()] for each in self._topologies]
        given = [part for group in groups for part in (*group, "--")][:-1]
        (self.folder / "log4j2.xml").write_text(QUIET)
        places = [f"-Djava.io.tmpdir={tempfile.mkdtemp(dir=self.folder)}",
                  f"-Dlog4j2.configurationFile={self.folder}/log4j2.xml"]  # fmt: skip
        start = [*SMALL, "-Xmx512m", "-Xss512k", *class_archives.options(STORM), *places]
        return [class_archives.java(), *start, "-cp", f"{program()}:{jars()}/*", "StormWords", *given]

    def _answer(self) -> None:
        if "submitted" not in self.log:
            raise TridentError("Storm has not submitted its topology yet")

    def _no_answer(self) -> tuple[type[BaseException], ...]:
        return (TridentError,)


def dump(hosts: str, root: str = "/transactional") -> list[dict[str, Any]]:
    """Returns all nodes below a path, as `trident import offsets --dump` takes them."""
    from kazoo.client import KazooClient

    client = KazooClient(hosts)
    client.start()
    found: list[dict[str, Any]] = []

    def walk(path: str) -> None:
        found.append({"path": path, "data": client.get(path)[0].decode()})
        for child in sorted(client.get_children(path)):
            walk(f"{path}/{child}")

    try:
        walk(root)
    finally:
        client.stop()
        client.close()
    return found
