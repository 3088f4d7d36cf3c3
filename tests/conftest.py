"""What several tests share: one Spark session and one server per kind of database, made when first needed."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import brokers
import databases
import pytest
import remotes
import tiers
from hypothesis import HealthCheck, settings
from needed import missing, needed
from remotes import Remote
from xdist.scheduler import LoadScopeScheduling

from states.sql.store import close_stores
from testbed import class_archives, hadoop_jars
from testbed.hdfs import HdfsServer
from testbed.kafka_broker import KafkaBroker
from testbed.redis_server import RedisServer
from testbed.s3 import S3Server
from trident_py.model import pickling

# Tests start Java dozens of times, each for a few seconds: its second compiler would cost more than it gives.
# Their batches are small, and most are about Spark's tasks, so none runs in a driver unless a test asks for it.
_JAVA = " ".join(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *class_archives.options(class_archives.SPARK)])
_OURS = f'-Dspark.trident.inline.max.tuples=0 "-Dspark.executor.extraJavaOptions={_JAVA}"'
os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{_JAVA} {_OURS}")

# The fixtures of servers, and the names of their kinds among the parameters of a test.
_SERVERS = {*databases.OWN, "kafka", "redis", "hdfs", "s3", "remote", "place_of_uri", "own_kafka",
            "own_kafka_of_module", "own_server", "own_server_of_module"}  # fmt: skip

# A shell starts what it runs in the background with Ctrl-C ignored, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# `make test` draws the same few examples each time, `make test-all` many others (--hypothesis-profile=whole).
# Neither has an opinion on how fast the machine is.
_PATIENT: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "database": None}
settings.register_profile("quick", max_examples=50, derandomize=True, **_PATIENT)
settings.register_profile("whole", max_examples=300, **_PATIENT)
settings.load_profile("quick")


def pytest_configure(config: pytest.Config) -> None:
    """For runs without our setup.cfg."""
    config.addinivalue_line("markers", "servers: needs a server")


@pytest.fixture(autouse=True)
def forget_modules_of_the_test(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forgets what a test imported from a folder of its own: the next test may call its module the same."""
    paths, known = [*sys.path], {*sys.modules}
    yield
    sys.path[:] = paths
    folder = str(tmp_path_factory.getbasetemp())
    for name in {*sys.modules} - known:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(folder):
            del sys.modules[name]
            pickling._WHOLE.pop(name, None)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The session of all Spark tests: two cores, two shuffle partitions, and Hadoop's client of S3 if it is there."""
    from trident_py.spark.session import OwnSession

    classes = {"spark.driver.extraClassPath": f"{hadoop_jars.folder('s3')}/*"} if hadoop_jars.there("s3") else {}
    own = OwnSession({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", **classes})
    try:
        yield own.spark
    finally:
        own.stop()


@pytest.fixture
def spark_cluster(spark: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """``spark_cluster(checkpoints=None)``: a SparkCluster on the shared session, shut down after the test."""
    from trident_py import SparkCluster

    made: list[Any] = []

    def make(checkpoints: Path | str | None = None) -> Any:
        made.append(SparkCluster(spark, str(checkpoints or tmp_path / "checkpoints")))
        return made[-1]

    yield make
    for cluster in made:
        cluster.shutdown()


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Any]:
    """The MariaDB of all tests. Leave it running; a test that kills has ``own_server``."""
    yield from _served("mariadb")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Any]:
    """The PostgreSQL of all tests. Leave it running; a test that kills has ``own_server``."""
    yield from _served("postgresql")


@pytest.fixture(scope="session")
def mysql() -> Iterator[Any]:
    """The MySQL of all tests. Leave it running; a test that kills has ``own_server``."""
    yield from _served("mysql")


@pytest.fixture(scope="session")
def kafka() -> Iterator[Any]:
    """The Kafka broker of all tests (``kafka.bootstrap``, ``kafka.create_topic()``), or that of KAFKA_BOOTSTRAP.

    Leave it running; a test that kills has ``own_kafka``.
    """
    yield from _served("kafka")


@pytest.fixture(scope="session")
def redis() -> Iterator[str]:
    """The URL of the Redis of all tests, or that of TRIDENT_REDIS_URL. A test that kills starts its own."""
    given = os.environ.get(databases.variable("redis"))
    if given:
        yield given
        return
    for server in _running("redis", RedisServer().start):
        yield server.url


@pytest.fixture(scope="session")
def hdfs() -> Iterator[HdfsServer]:
    """The HDFS of all tests. Leave it running; a test that kills starts its own."""
    yield from _running("hdfs", HdfsServer().start)


def _own_kafka() -> Iterator[Callable[..., Any]]:
    """``own_kafka(**options)``: a broker of this test (or module) alone, to be killed and restarted at will."""
    for start in _own_server():
        yield partial(start, "kafka")


own_kafka = pytest.fixture(_own_kafka)
own_kafka_of_module = pytest.fixture(scope="module")(_own_kafka)


@pytest.fixture(params=databases.kinds())
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database, on each kind in turn.

    ``@pytest.mark.parametrize("database", ["mariadb"], indirect=True)`` chooses among them.
    """
    if request.param == "sqlite":
        yield databases.sqlite(tmp_path)
        close_stores()
        return
    with databases.fresh(request.getfixturevalue(request.param)) as url:
        yield url
        close_stores()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """The S3 of all tests. Leave it running; a test that kills makes its own."""
    yield from _running("s3", S3Server().start)


@pytest.fixture(params=["hdfs", "s3"])
def place_of_uri(request: pytest.FixtureRequest) -> Remote:
    """A folder of this test's own in HDFS and in S3, for which nobody needs Spark."""
    return remotes.folder(request.param, request.getfixturevalue(request.param))


@pytest.fixture(params=["hdfs", "s3"])
def remote(request: pytest.FixtureRequest, spark: Any) -> Iterator[Remote]:
    """A folder of this test's own in HDFS and in S3, which the session of all Spark tests reaches."""
    server = request.getfixturevalue(request.param)
    with needed(request.param):
        place = remotes.for_spark(request.param, server)
    for key, value in place.settings.items():
        spark.conf.set(key, value)
    yield place
    for key in place.settings:
        spark.conf.unset(key)


def _own_server() -> Iterator[Callable[..., Any]]:
    """``own_server("mariadb", **options)``: a server of this test (or module) alone, to be killed and restarted at
    will."""
    made: list[Any] = []

    def start(kind: str, **options: Any) -> Any:
        made.append({**databases.OWN, "kafka": KafkaBroker, "redis": RedisServer}[kind](**options))
        with needed(kind):
            return made[-1].start()

    yield start
    for server in made:
        server.close()


own_server = pytest.fixture(_own_server)
own_server_of_module = pytest.fixture(scope="module")(_own_server)


def _served(kind: str) -> Iterator[Any]:
    """A server named by URL, or one started here."""
    yield from _running(kind, brokers.serve if kind == "kafka" else partial(databases.serve, kind))


def _running(kind: str, start: Callable[[], Any]) -> Iterator[Any]:
    with needed(kind):
        server = start()
    yield server
    server.close()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for line in missing.values():
        terminalreporter.write_line(line, red=True, bold=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", default="1/1", help="which tests: 2/6 are the second of six parts; a file is in one")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Who uses the session needs a JVM, and who uses a server's fixture needs that, whether or not it says so.

    The tests of Kafka come first: one process runs them all (`ByServer`), which takes as long as all else beside it.
    """
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if "spark" in fixtures:
            item.add_marker(pytest.mark.spark)
        given = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if _SERVERS & {*fixtures, *(value.partition(" ")[0] for value in given if isinstance(value, str))}:
            item.add_marker(pytest.mark.servers)
    tiers.leave_out(items)
    config.stash[tiers.COLLECTED] = [*items]
    others = tiers.of_other_parts(items, config.getoption("--part"))
    items[:] = sorted((item for item in items if item not in others), key=lambda item: not _is_of_kafka(item.nodeid))
    config.hook.pytest_deselected(items=[*others])


def pytest_collection_finish() -> None:
    """What was collected stays: no collection of garbage looks at its million objects, and no fork copies them."""
    gc.collect()
    gc.freeze()


def _is_of_kafka(nodeid: str) -> bool:
    return nodeid.startswith("tests/kafka/")


class ByServer(LoadScopeScheduling):  # type: ignore[misc]
    """A file stays in one process, and so do all tests of Kafka and of HDFS: a process that has one of these servers,
    a fork server or Storm spends seconds on its start."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, case = nodeid.partition("::")
        return "kafka" if _is_of_kafka(nodeid) else "hdfs" if "hdfs" in case else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return ByServer(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Lets a report with half a surrogate pair in it, as tests of texts log them, reach the process that prints it."""
    return _encodable((yield))


def _encodable(data: Any) -> Any:
    if isinstance(data, str):
        return data.encode("utf-8", "backslashreplace").decode()
    if isinstance(data, dict):
        return {key: _encodable(value) for key, value in data.items()}
    return type(data)(map(_encodable, data)) if isinstance(data, list | tuple) else data
