"""Spark's own standalone cluster on hosts of their own: a master, workers, and a host for the driver."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from trident_py.errors import TridentError
from trident_py.model.retry import again_for

from . import hdfs
from .hosts import Host, Network

MASTER_PORT = 7077
WEB_PORT = 8080
HDFS_PORT = 9000
PATIENCE = 120
SPARK = Path(str(files("pyspark")))
_LOG = "/tmp/daemon.log"
_NOT_YET = (OSError, ValueError, http.client.HTTPException, TridentError)  # a page that is not there yet is no JSON
_PASSED = ("PATH", "JAVA_HOME", "LANG", "LC_ALL")


class SparkHosts:
    """``with SparkHosts() as hosts``: a master, ``workers`` worker hosts and a driver host on a `Network`.

    ``hosts.submit("app.py")`` runs ``spark-submit`` on the driver's host. Each host's ``/tmp`` is its own. Everything
    that the network can do to a host (kill, cut, slow ...) is in ``hosts.network``; the methods here know Spark.
    ``settings`` are Spark's, for every application; ``daemons`` those of master and workers. With ``bare``, worker
    hosts have Java, Python and Spark, and nothing that is installed beside the driver. Raises ServiceMissing where
    hosts cannot be made.
    """

    def __init__(
        self, workers: int = 2, cores: int = 1, memory: str = "1g", settings: Mapping[str, str] | None = None,
        bare: bool = False, daemons: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.cores = cores
        self.memory = memory
        self.bare = bare
        self.settings = {"spark.executor.memory": "512m", "spark.ui.enabled": "false", **(settings or {})}
        self.daemons = dict(daemons or {})
        self.worker_names = [f"worker{number + 1}" for number in range(workers)]
        self.network = Network()

    @property
    def master_url(self) -> str:
        return f"spark://master:{MASTER_PORT}"

    @property
    def driver(self) -> Host:
        return self.network.hosts["driver"]

    @property
    def workers(self) -> list[Host]:
        return [self.network.hosts[name] for name in self.worker_names]

    def start(self) -> Self:
        """Boots all hosts; returns when every worker has registered with the master."""
        try:
            for name in ("master", "driver"):
                self.network.host(name)
            for name in self.worker_names:
                private = ["/tmp", *(_packages() if self.bare else ())]
                self.network.host(name, private, {"spark": str(SPARK)} if self.bare else {})
            self.start_master()
            for name in self.worker_names:
                self.start_worker(name)
            self.wait_for_workers(len(self.worker_names))
        except BaseException:
            self.close()
            raise
        return self

    def start_master(self) -> None:
        """Starts the master. One that was killed finds its applications and workers again in its folder."""
        recovery = "-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory=/tmp/recovery"
        where = ["--host", "master", "--port", str(MASTER_PORT)]
        self._daemon(self.network.hosts["master"], "master.Master", where, SPARK_MASTER_OPTS=recovery)

    def start_worker(self, name: str) -> None:
        host = self.network.hosts[name]
        options = ["--host", name, "--cores", str(self.cores), "--memory", self.memory, "--work-dir", "/tmp/work"]
        self._daemon(host, "worker.Worker", [*options, self.master_url])

    def start_hdfs(self) -> str:
        """Starts an HDFS on a host of its own, ``storage``; returns its URL. Raises ServiceMissing.

        Its WebHDFS is at the usual port, where ``FileSpout`` looks for it.
        """
        host = self.network.host("storage")
        folder = host.path("/tmp/hdfs")
        folder.mkdir()
        web = {hdfs.HTTP: f"{host.address}:{hdfs.HTTP_PORT}"}
        command = hdfs.command("/tmp/hdfs", host.address, HDFS_PORT, **web)
        with host.path(_LOG).open("ab") as log:
            self.run(command, host.name, stdout=log, stderr=log)

        def serves() -> None:
            if not (folder / hdfs.READY).exists():
                raise TridentError(f"HDFS does not serve:\n{self.log(host.name)[-2000:]}")

        again_for(PATIENCE, 0.1, lambda error: isinstance(error, TridentError), serves)
        return f"hdfs://{host.address}:{HDFS_PORT}"

    def reboot(self, name: str) -> None:
        """Boots a worker host that was killed, and starts its worker."""
        self.network.boot(name)
        self.start_worker(name)

    def submit(
        self, *arguments: str, host: str = "driver", settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None, **options: Any,
    ) -> subprocess.Popen[bytes]:  # fmt: skip
        """Runs ``spark-submit`` in client mode on a host. ``arguments``: its options, the application and its own."""
        conf = {"spark.driver.host": host, "spark.driver.bindAddress": self.network.hosts[host].address}
        pairs = {**conf, **self.settings, **(settings or {})}.items()
        command = [f"{SPARK}/bin/spark-submit", "--master", self.master_url, *_flags(pairs), *arguments]
        return self.run(command, host, environment, **options)

    def run(
        self, command: Sequence[str], host: str = "driver", environment: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[bytes]:
        """Runs a program on a host with Spark's environment."""
        return self.network.hosts[host].run(command, env=self._environment(host, environment or {}), **options)

    def wait_for_workers(self, number: int, seconds: float = PATIENCE) -> None:
        """Returns when so many workers are alive in the master's eyes. Raises TridentError after ``seconds``."""

        def counted() -> None:
            alive = sum(worker["state"] == "ALIVE" for worker in self.state()["workers"])
            if alive != number:
                raise TridentError(f"the master sees {alive} of {number} workers:\n{self.log('master')[-2000:]}")

        again_for(seconds, 0.2, lambda error: isinstance(error, _NOT_YET), counted)

    def state(self) -> dict[str, Any]:
        """What the master's page says of workers and applications. Raises TridentError or OSError before it can."""
        page = http.client.HTTPConnection("master", WEB_PORT)
        page.sock = self.network.hosts["master"].connect(WEB_PORT)
        with contextlib.closing(page):
            page.request("GET", "/json/")
            reply = page.getresponse()
            if reply.status != http.client.OK:
                raise TridentError(f"the master's page is not there yet: {reply.status} {reply.reason}")
            state: dict[str, Any] = json.loads(reply.read())
        return state

    def log(self, name: str) -> str:
        """What the master or worker of a host has printed."""
        return self.network.hosts[name].path(_LOG).read_text(errors="replace")

    def close(self) -> None:
        self.network.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _daemon(self, host: Host, name: str, arguments: Sequence[str], **environment: str) -> None:
        """Starts a daemon of Spark on a host; its output goes to a file there."""
        with host.path(_LOG).open("ab") as log:
            command = [f"{self._spark(host.name)}/bin/spark-class", f"org.apache.spark.deploy.{name}", *arguments]
            own = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": _defined(self.daemons)}
            self.run(command, host.name, {**own, **environment}, stdout=log, stderr=log)

    def _spark(self, host: str) -> str:
        return "/mnt/spark" if self.bare and host in self.worker_names else str(SPARK)

    def _environment(self, host: str, more: Mapping[str, str]) -> dict[str, str]:
        own = {"SPARK_LOCAL_HOSTNAME": host, "SPARK_HOME": self._spark(host), "PYSPARK_PYTHON": sys.executable}
        return {**{name: os.environ[name] for name in _PASSED if name in os.environ}, **own, **more}


def _packages() -> list[str]:
    """The folders with the packages of this process and with our own sources; Python itself is elsewhere."""
    folders = {Path(__file__).parents[1], SPARK.parent}
    if sys.prefix != sys.base_prefix:
        folders.add(Path(sys.prefix))
    return [str(folder) for folder in folders if folders.isdisjoint(folder.parents)]


def _defined(settings: Mapping[str, str]) -> str:
    return " ".join(f"-D{key}={value}" for key, value in settings.items())


def _flags(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [word for key, value in pairs for word in ("--conf", f"{key}={value}")]
