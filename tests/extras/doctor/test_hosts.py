"""The probe on Spark's standalone cluster of two workers: what is wrong on one of them is told before the start."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from needed import HOSTS, needed

from .hosts import FAKETIME, PORT, ROOT, SITE, ProbedHosts

pytestmark = pytest.mark.spark
SQL = f"mysql+pymysql://user:hunter2@db:{PORT}/x"
KAFKA = {"kafka": f"db:{PORT}"}
ONE = {"fixed": [["a"]]}
KEPT = pytest.mark.whole("test_doctor_asks_the_executors_of_a_cluster_and_starts_nothing")
END = (
    "Check again with: trident doctor (docs/doctor.md). topology.probe=false leaves out the checks of the machines"
)
OR_SEND = "or send an environment that has it (--archives)"


OTHER_MINOR = """
import sys

class Version(tuple):
    major, minor, micro = 3, 99, 0

sys.version_info = Version((3, 99, 0, "final", 0))
"""


@pytest.fixture(scope="module")
def hosts() -> Iterator[ProbedHosts]:
    with needed(HOSTS):
        hosts = ProbedHosts()
    yield hosts
    hosts.close()


def problems(*texts: str) -> list[str]:
    many = "1 problem" if len(texts) == 1 else f"{len(texts)} problems"
    first = f"the topology cannot run on spark://master:7077: {many}, nothing was started"
    return [first, *(f"- {text}" for text in texts), END]


def install(what: str, python: str = sys.executable) -> str:
    return f"Install {what} for {python} there, {OR_SEND}"


NO_KAFKA = (
    "worker2: spout 'texts' needs confluent_kafka, which cannot be imported there: ModuleNotFoundError: No module "
    f"named 'confluent_kafka'. {install('trident-py[kafka]')}"
)
NO_BROKER = (
    f"worker2: spout 'texts' needs db:{PORT}, which is not reached from there: no answer in 2 s; the driver reaches "
    "it. Open the way (firewall, route), or name an address that is valid there"
)
SQLITE = (
    "state 'texts' works on one machine only: it is the SQLite file /data/c.db, and each machine would write a file of "
    "its own. The executors of spark://master:7077 are other machines. Use a server (mysql+pymysql://, "
    "postgresql+psycopg://) or a topic, or run on one machine: --master local[*]"
)


@KEPT
def test_all_that_is_wrong_is_told_in_one_error(hosts: ProbedHosts) -> None:
    healthy = hosts.ask(url=SQL, spout=KAFKA)
    assert (healthy["error"], healthy["warnings"]) == ([], [])
    with hosts.without(SITE, "confluent_kafka"):
        hosts.hosts.network.cut("worker2", "db")
        asked = hosts.ask(url="sqlite:////data/c.db", spout=KAFKA)
        hosts.hosts.network.heal()
    assert asked["error"] == problems(SQLITE, NO_KAFKA, NO_BROKER)
    assert asked["warnings"] == []


@KEPT
def test_a_folder_that_one_worker_does_not_have(hosts: ProbedHosts) -> None:
    for host in (hosts.hosts.driver, hosts.hosts.workers[0]):
        host.path("/tmp/texts").mkdir()
    spout = {"files": "/tmp/texts/*.txt"}
    missing = "worker2: spout 'texts' needs /tmp/texts, which cannot be read there: No such file or directory"
    assert hosts.ask(url=SQL, spout=spout)["error"] == problems(
        f"{missing}. Mount it under the same path on every machine"
    )
    hosts.bad.path("/tmp/texts").mkdir()
    assert hosts.ask(url=SQL, spout=spout)["error"] == []


@KEPT
def test_another_trident_py_on_one_worker(hosts: ProbedHosts) -> None:
    with hosts.without(ROOT / "trident_py", "__main__.py"):
        (line,) = hosts.ask(url=SQL, spout={"fixed": [["b"]]})["error"][1:-1]
    assert line.startswith("- worker2: another trident_py is there: version 0.1.0, sources ")
    assert line.endswith(install("the same"))


@KEPT
def test_a_worker_that_has_nothing_but_python(hosts: ProbedHosts) -> None:
    """What a PySpark cluster is before anything is installed: no ImportError of ours, but what to do."""
    with hosts.nothing_but_python():
        lines = hosts.ask(url=SQL, spout={"fixed": [["c"]]})["error"]
    needed = [("every topology", "pyarrow", "trident-py"), ("every topology", "cloudpickle", "trident-py")]
    needed += [("state 'texts'", "sqlalchemy", "trident-py[mysql]"), ("state 'texts'", "pymysql", "trident-py[mysql]")]
    assert lines == problems(
        f"worker2: trident_py is missing there. {install('trident-py 0.1.0')}",
        *(f"worker2: {who} needs {name}, which cannot be imported there: ModuleNotFoundError: No module named "
          f"'{name}'. {install(package)}" for who, name, package in needed),
    )  # fmt: skip


@KEPT
@pytest.mark.parametrize(("shift", "way"), [("+300s", "ahead of"), ("-300s", "behind")])
def test_a_clock_that_is_off(hosts: ProbedHosts, shift: str, way: str) -> None:
    if FAKETIME is None and os.environ.get("CI") != "true":
        pytest.skip("NOT TESTED: libfaketime is not installed")
    hosts.bad.path("/tmp/clock").write_text(shift)
    lines = hosts.ask(url=SQL, spout={"fixed": [[shift]]})["error"]
    hosts.bad.path("/tmp/clock").write_text("+0s")
    seconds = int(lines[1].partition("its clock is ")[2].partition(" s ")[0])
    assert lines == problems(
        f"worker2: its clock is {seconds} s {way} the driver's; 60 s are allowed. Let NTP set it (chrony, "
        "systemd-timesyncd)"
    )
    assert 240 < seconds <= 300  # the least difference that the answer proves
    assert hosts.ask(url=SQL, spout={"fixed": [[shift]]})["error"] == []


@KEPT
def test_another_minor_version_of_python(hosts: ProbedHosts) -> None:
    hosts.bad.path("/tmp/custom").mkdir()
    hosts.bad.path("/tmp/custom/sitecustomize.py").write_text(OTHER_MINOR)
    with hosts.other_python("true"):
        lines = hosts.ask(url=SQL, spout={"fixed": [["d"]]})["error"]
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert lines == problems(
        f"worker2: Python 3.99 runs there, and {own} in the driver: Spark needs the same minor version. Install it "
        "there, or send an environment (--archives) and set spark.pyspark.python"
    )


@KEPT
def test_a_python_that_is_not_there(hosts: ProbedHosts) -> None:
    with hosts.other_python("rm /tmp/python"):
        lines = hosts.ask(url=SQL, spout={"fixed": [["e"]]})["error"]
    assert lines == problems(
        "worker2: the Python /tmp/python cannot be started there: No such file or directory. Install it, or set "
        "spark.pyspark.python to one that is there"
    )


@KEPT
def test_a_store_that_is_away_is_a_warning_as_the_start_waits_for_it(hosts: ProbedHosts) -> None:
    asked = hosts.ask(url=SQL.replace(f"{PORT}", "1"), spout=ONE)
    assert asked["error"] == []
    assert asked["warnings"] == [
        "state 'texts' needs db:1, which no machine reaches, not even the driver (Connection refused). Start it, or "
        "correct the address"
    ]


@KEPT
def test_what_was_checked_is_not_asked_again_and_the_setting_asks_nothing(hosts: ProbedHosts) -> None:
    spout = {"fixed": [["f"]]}
    assert hosts.ask(url=SQL, spout=spout)["error"] == []
    with hosts.without(SITE, "pymysql"):
        assert hosts.ask(url=SQL, spout=spout)["error"] == []
        assert hosts.ask(url=SQL, spout={"fixed": [["g"]]}, conf={"topology.probe": False})["error"] == []
        assert hosts.ask(url="sqlite:////data/c.db", spout=ONE, conf={"topology.probe": False})["error"] == problems(
            SQLITE
        )
        assert len(hosts.ask(url=SQL, spout={"fixed": [["g"]]})["error"]) == 3
    assert hosts.ask(url=SQL, spout={"fixed": [["g"]]})["error"] == []
