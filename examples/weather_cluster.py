"""The main job on a cluster whose machines die: its tables are those of one machine.

    make cluster
    python -m examples.weather_cluster           the same; needs root on Linux

The job runs once on this machine, into SQLite. Then spark-submit runs it on six hosts, each with a network and a /tmp
of its own (`testbed.spark_hosts`): a master, two workers, two for drivers, and one with HDFS. The
readings and the checkpoint are in HDFS, the tables in a MariaDB outside of the hosts.

A worker's host dies while a batch is being committed, and later the driver's host. The job goes on from the other host
for drivers, which has no file of the dead one: what is done stands in the checkpoint in HDFS.

The exit code is 0 only if both hosts died between the first batch and the last, and all tables are equal.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import sqlalchemy as sa

from testbed.service import ServiceMissing
from testbed.spark_hosts import SPARK, SparkHosts
from testbed.sql_servers import MariaDb
from trident_py import TridentError

from . import weather

ROOT = Path(__file__).parents[1]
LAST = -(-weather.READINGS // weather.BATCH)
PATIENCE = 400.0
FIRST_HOST, SECOND_HOST = "driver", "driver2"
# How soon Spark notices that a host has died; by its defaults that takes minutes (docs/reliability.md).
SOON = {
    "spark.network.timeout": "10s",
    "spark.network.timeoutInterval": "1s",
    "spark.executor.heartbeatInterval": "1s",
    "spark.executor.heartbeat.maxFailures": "10",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
}
# A dozen short-lived JVMs on one machine: without Java's second compiler they need less of it.
SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
JAVA = {"spark.driver.extraJavaOptions": SMALL, "spark.executor.extraJavaOptions": SMALL}
MASTER = {"spark.worker.timeout": "6"}
# A quarter of the workers' cores: the second driver finds some while the executors of the first still hold theirs.
APPLICATION = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.trident.inline.max.tuples": "0",  # small batches would run in the driver, and this story is about tasks
}
LOCK = "LOCK TABLES reading WRITE, station WRITE, rain WRITE"
WAITING = "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'Waiting for table metadata lock'"
BEGAN = time.monotonic()


class Failed(click.ClickException):
    """Something did not come as it should. The exit code is 1."""


def say(words: str) -> None:
    print(f"[{time.monotonic() - BEGAN:5.1f} s] {words}\n", end="", flush=True)  # in one piece: drivers are threads


class Driver:
    """A driver on a host. ``batches``: those that it has reported committed."""

    def __init__(self, host: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.host, self.process, self.log = host, process, log
        self.batches: list[int] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    @property
    def committed(self) -> int:
        return self.batches[-1] if self.batches else 0

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Raises Failed if the driver ends before, or if it takes too long."""
        end = time.monotonic() + PATIENCE
        while not condition():
            if not self._reading.is_alive():
                raise self.failure("ended too early")
            if time.monotonic() > end:
                raise self.failure(f"made no progress for {PATIENCE:.0f} s")
            time.sleep(0.005)

    def wait(self) -> int:
        """Returns its exit code when it has ended."""
        self._reading.join(PATIENCE)
        return self.process.wait(PATIENCE)

    def failure(self, what: str) -> Failed:
        return Failed(f"the driver on {self.host} {what}. The end of {self.log}:\n{end_of(self.log)}")

    def _read(self) -> None:
        """Prints what it says of its batches; all else is in the log."""
        assert self.process.stdout is not None
        with self.log.open("ab") as log:
            for line in self.process.stdout:
                words = line.decode(errors="replace").strip()
                log.write(line)
                if words.startswith(weather.TOLD):
                    say(f"{self.host}: {words.removeprefix(weather.TOLD)}")
                if found := re.fullmatch(rf"{weather.TOLD}committed: batch (\d+)", words):
                    self.batches.append(int(found[1]))


class Cluster:
    """The hosts, and a MariaDB outside of them. A context manager that ends and removes all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hosts = SparkHosts(2, cores=4, memory="4g", settings={**SOON, **JAVA, **APPLICATION}, daemons=MASTER)
        self.database = MariaDb()
        self.url = self.storage = ""

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.hosts.close()
        self.database.close()

    def start(self) -> None:
        self.database.start()
        self.url = self.database.create_database("weather")
        say(f"outside of the hosts, MariaDB is started: {self.url}")
        self.hosts.start()
        network = self.hosts.network
        network.host(SECOND_HOST)
        network.reach(self.database.port)
        self.storage = self.hosts.start_hdfs()
        names = ", ".join(f"{host.name} ({host.address})" for host in network.hosts.values())
        say(f"{len(network.hosts)} hosts are started, with Spark and HDFS on them: {names}")

    def put(self, file: Path) -> str:
        """Puts a file into HDFS, as ``hadoop fs -put`` does. Returns its URI."""
        conf = self.hosts.driver.path("/tmp/hadoop")
        conf.mkdir()
        (conf / "core-site.xml").write_text("<configuration/>")  # the shell does not start without one
        uri = f"{self.storage}/{file.name}"
        command = [f"{SPARK}/bin/spark-class", "org.apache.hadoop.fs.FsShell", "-put", str(file), uri]
        both: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = self.hosts.run(command, environment={"HADOOP_CONF_DIR": "/tmp/hadoop"}, **both)
        output = done.communicate(timeout=PATIENCE)[0]
        if done.returncode != 0:
            raise Failed(f"{file} could not be put into HDFS:\n{output.decode()[-3000:]}")
        return uri

    def submit(self, host: str, readings: str) -> Driver:
        """Runs spark-submit on a host. Nothing but the arguments tells one driver from the other."""
        application = [str(ROOT / "examples" / "weather.py"), "--states", str(ROOT / "examples" / "weather.yaml")]
        where = ["--input", readings, "--checkpoints", f"{self.storage}/checkpoints", "--parallelism", "2"]
        log = self.folder / f"{host}.log"
        with log.open("ab") as errors:
            process = self.hosts.submit(
                *application, *where, "--out", "/tmp/weather", "--quiet", "--lines", host=host,
                environment={"TRIDENT_DB": self.url}, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
        say(f"{host}: spark-submit {Path(application[0]).name} {' '.join(where)}; its log is {log}")
        return Driver(host, process, log)

    def kill(self, host: str, driver: Driver, waiting: int) -> int:
        """Ends a host like a power cut, while at least so many tasks of a batch are in their commit. Returns the last
        batch before that one."""
        with self._held_up(driver, waiting) as tasks:
            committed = driver.committed
            self.hosts.network.kill(host)
        say(f"{host} IS KILLED after batch {committed} of {LAST}: {tasks} task(s) of the next one were in their commit")
        if not 1 <= committed < LAST:
            raise Failed(f"{host} died after batch {committed}, which is not in the middle of {LAST}")
        return committed

    @contextlib.contextmanager
    def _held_up(self, driver: Driver, waiting: int) -> Iterator[int]:
        """Locks the tables, so that the tasks of a batch wait in their transactions. Yields how many do."""
        with contextlib.ExitStack() as stack:
            engine = sa.create_engine(self.url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
            holding, looking = (stack.enter_context(engine.connect()) for _ in range(2))
            holding.exec_driver_sql(LOCK)
            driver.wait_until(lambda: looking.exec_driver_sql(WAITING).scalar_one() >= waiting)
            yield looking.exec_driver_sql(WAITING).scalar_one()


def end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]


def on_one_machine(folder: Path) -> str:
    """Runs the main job as ``make run`` does, into a new SQLite file. Returns the digest of its tables."""
    say("the main job runs on this machine, into SQLite, as in make run")
    command = [sys.executable, "-m", "examples.weather", "--out", str(folder), "--quiet"]
    log = folder / "one_machine.log"
    with log.open("wb") as output:
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    if done.returncode != 0:
        raise Failed(f"the run on this machine failed. The end of {log}:\n{end_of(log)}")
    return weather.digest(weather.tables(f"sqlite:///{folder.absolute() / 'weather.sqlite'}"))


def over_two_deaths(cluster: Cluster) -> None:
    """Runs the main job on the hosts to its end, over the death of a worker's host and of the driver's."""
    readings = cluster.put(weather.csv_file())
    say(f"the readings are in HDFS: {readings}")
    first = cluster.submit(FIRST_HOST, readings)
    first.wait_until(lambda: first.committed >= LAST // 3)
    victim, other = cluster.hosts.worker_names
    committed = cluster.kill(victim, first, waiting=2)
    died = time.monotonic()
    first.wait_until(lambda: first.committed > committed)
    say(f"the run went on, with {other} alone, {time.monotonic() - died:.1f} s after the death of {victim}")
    first.wait_until(lambda: first.committed >= 2 * LAST // 3)
    committed = cluster.kill(first.host, first, waiting=1)
    died = time.monotonic()
    first.wait()
    second = cluster.submit(SECOND_HOST, readings)
    second.wait_until(lambda: second.committed > 0)
    say(f"the run went on, from {second.host}, {time.monotonic() - died:.1f} s after the death of {first.host}")
    if second.wait() != 0:
        raise second.failure("failed")
    if second.batches != list(range(committed + 1, LAST + 1)):
        raise Failed(f"batches {committed + 1} to {LAST} were due, {second.host} committed {second.batches}")


def run(folder: Path) -> tuple[str, str]:
    """Runs the job both ways. Returns the digests of the tables."""
    try:
        cluster = Cluster(folder)
    except ServiceMissing as error:
        raise Failed(f"{error}. Next: sudo make cluster") from error
    with cluster:
        expected = on_one_machine(folder)
        cluster.start()
        over_two_deaths(cluster)
        named = weather.tables(cluster.url)
        weather.show(named)
        return expected, weather.digest(named)


def judge(expected: str, found: str) -> None:
    """Prints both digests. Raises Failed if they differ."""
    print(f"tables in SQLite, from one machine:                 {expected}")
    print(f"tables in MariaDB, from hosts of which two died:    {found}")
    if expected != found:
        raise Failed("the tables are not equal")
    print("the tables are equal: every row and value, the batch that wrote it, and the value before that batch")


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/cluster"), show_default=True)
def main(out: Path) -> None:
    """Run the main job on one machine and on a cluster whose machines die, and compare the tables."""
    out.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(out / "checkpoints", ignore_errors=True)
    for old in (*out.glob("weather.sqlite*"), *out.glob("*.log")):
        old.unlink()
    try:
        judge(*run(out))
    except TridentError as error:
        raise Failed(str(error)) from error


if __name__ == "__main__":
    main()
