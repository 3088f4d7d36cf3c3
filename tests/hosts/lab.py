"""Hosts, servers outside of them, and the drivers on them: what many stories share."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any, Self

import databases

from testbed.kafka_broker import KafkaBroker
from testbed.spark_hosts import SparkHosts

from .hook import KEY, LOOPBACK
from .processes import running

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PATHS = os.pathsep.join(map(str, (ROOT, TESTS, TESTS / "kafka")))
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
DRIVERS = ("driver", "driver2")

# How soon Spark notices a death. The defaults are for networks that are sometimes slow; see docs/deployment.md.
SOON = {
    "spark.network.timeout": "10s",
    "spark.network.timeoutInterval": "1s",
    "spark.executor.heartbeatInterval": "1s",
    "spark.executor.heartbeat.maxFailures": "10",
    "spark.rpc.askTimeout": "10s",
    "spark.rpc.lookupTimeout": "5s",
    "spark.rpc.numRetries": "1",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.locality.wait": "0s",
}
# The master forgets a dead worker after 15 more time-outs, and ignores it for good if it comes back later than that: no
# pause may be so long. A worker takes SIGPWR for its decommissioning only if it was started so; else it just ends.
# A master asks itself a question when it starts, and ends if the answer takes longer than the time-out for questions,
# which is `spark.network.timeout` where nothing else is said: on a busy machine 10 s are too few.
DAEMONS = {
    "spark.worker.timeout": "6",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.network.timeout": "10s",
    "spark.rpc.askTimeout": "120s",
    "spark.decommission.enabled": "true",
}
APPLICATION = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.showConsoleProgress": "false",
    "spark.executorEnv.PYTHONPATH": PATHS,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.trident.inline.max.tuples": "0",  # the faults are those of tasks
}


class Lab:
    """``with Lab(["mariadb"]) as lab``: two worker hosts, two for drivers, a master, and real servers outside.

    ``heard(words)`` is called for every word of a driver or hook, in the thread of its connection; what it returns
    to a hook is the hook's answer.
    """

    def __init__(self, servers: Sequence[str] = ("mariadb",)) -> None:
        self.wanted = servers
        self.servers: dict[str, Any] = {}
        self.heard: Callable[[tuple], Any] = lambda words: None
        self.lock = threading.RLock()
        self._closing = ExitStack()
        self._starting: Driver | None = None
        self.driver: Driver | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for kind in self.wanted:
                made = KafkaBroker() if kind == "kafka" else databases.OWN[kind]()
                self.servers[kind] = stack.enter_context(made)
            self.folder = Path(tempfile.mkdtemp(prefix="trident-hosts-", dir="/var/tmp"))
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self.modules = packed(self.folder / "modules.zip")
            self.listener = Listener((LOOPBACK, 0), backlog=64, authkey=KEY)
            self.port = self.listener.address[1]
            threading.Thread(target=self._accept, daemon=True).start()
            self.hosts = stack.enter_context(SparkHosts(2, 4, "4g", {**SOON, **APPLICATION}, daemons=DAEMONS))
            self.network = self.hosts.network
            self.storage = ""
            for name in DRIVERS[1:]:
                self.network.host(name)
            for port in (self.port, *(server.port for server in self.servers.values())):
                self.network.reach(port)
            self._closing = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def checkpoints(self, name: str, in_hdfs: bool) -> str:
        """Where the checkpoints of a story are: in a folder that all hosts see, or in the HDFS of one more host."""
        if not in_hdfs:
            return str(self.folder / "checkpoints" / name)
        self.storage = self.storage or self.hosts.start_hdfs()
        return f"{self.storage}/checkpoints/{name}"

    def start_driver(self, host: str, settings: dict[str, str]) -> Driver:
        """Runs spark-submit on a host. Returns when the driver has its session."""
        log = self.folder / f"driver-{len(list(self.folder.glob('driver-*')))}.log"
        driver = Driver(host, log)
        with log.open("wb") as output, self.lock:
            environment = {"PYTHONPATH": PATHS, "SPARK_SUBMIT_OPTS": QUICK_JAVA, "HADOOP_USER_NAME": "root"}
            application = ["--py-files", str(self.modules), str(TESTS / "hosts" / "driver.py"), str(self.port)]
            driver.process = self.hosts.submit(
                *application, host=host, settings=settings, environment=environment,
                stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._starting = driver
        driver.ready.wait(90)
        return driver

    def driver_for(self, profile: str, settings: dict[str, str], not_on: str) -> Driver:
        """The driver that waits for orders, if it has these settings; else a new one, on another host if it can be."""
        if self.driver is not None and self.driver.profile == profile and not self.driver.gone.is_set():
            return self.driver
        self.dismiss(self.driver)
        for _ in range(3):
            up = [name for name in DRIVERS if self.network.hosts[name].alive]
            host = next((name for name in up if name != not_on), up[0] if up else "")
            if host:
                driver = self.start_driver(host, settings)
                if driver.ready.is_set():
                    driver.profile, self.driver = profile, driver
                    return driver
                self.dismiss(driver)
            time.sleep(1)
        raise TimeoutError("no driver came up")

    def dismiss(self, driver: Driver | None) -> None:
        """Ends a driver, if it is not gone already, with its Java process."""
        self.driver = None
        if driver is None or driver.process is None:
            return
        host = self.network.hosts[driver.host]
        for pid in running(host, b"SparkSubmit") + running(host, b"hosts/driver.py"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        driver.process.wait(30)

    # -- what the processes on the hosts say

    def _accept(self) -> None:
        while True:
            try:
                connection = self.listener.accept()
            except Exception:
                continue  # whoever it was, it is gone
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: Connection) -> None:
        try:
            words = connection.recv()
            if words[0] == "driver":
                self._driver(connection, words)
            else:
                connection.send(self.heard(words))
        except (EOFError, OSError):
            pass
        finally:
            connection.close()

    def _driver(self, connection: Connection, words: tuple) -> None:
        driver = self._starting
        assert driver is not None and driver.host == words[1], words
        driver.connection, driver.pid = connection, words[2]
        driver.ready.set()
        try:
            while True:
                self.heard(("told", driver, *connection.recv()))
        except (EOFError, OSError):
            driver.gone.set()
            self.heard(("told", driver, "gone"))


class Driver:
    """One driver process on a host."""

    def __init__(self, host: str, log: Path) -> None:
        self.host, self.log, self.profile = host, log, ""
        self.ready, self.gone = threading.Event(), threading.Event()
        self.connection: Any = None
        self.process: Any = None
        self.pid = 0

    def obey(self, order: Any) -> None:
        self.connection.send(order)


def packed(file: Path) -> Path:
    """The modules of the tests that executors import. What is not in such a file travels by value, and each process
    would have several copies of a module's state."""
    with zipfile.ZipFile(file, "w") as packing:
        for source in (*TESTS.glob("faults/*.py"), *TESTS.glob("hosts/*.py"), *TESTS.glob("kafka/*_reading.py")):
            packing.write(source, source.name if source.parent.name == "kafka" else source.relative_to(TESTS))
    return file
