"""Submitted as people submit: spark-submit and trident run, on a standalone cluster whose workers are other hosts."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import venv_pack

from testbed.spark_hosts import SparkHosts

from .clusters import FOLDER, JOBS, TESTS, files, finished, rows, started

pytestmark = pytest.mark.spark
KEPT = pytest.mark.whole("test_an_executor_lost_between_two_commits", "test_values_of_a_class_of_the_main_program")
BOTH: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "cwd": FOLDER}
APP = f"""
import json, os, sys
sys.path.append({TESTS!r})
from pathlib import Path
from trident_py import SparkCluster
from spark.folder import copy_topology, numbers
import mine

def build():
    return copy_topology(Path("/tmp/out"), numbers(6), mine.told)

if __name__ == "__main__":
    for name in sys.argv[1:] or ["app"]:
        with SparkCluster(checkpoints="/tmp/app/checkpoints") as cluster:
            print("master is", cluster.spark.sparkContext.master)
            conf = json.loads(os.environ.get("CONF", "{{}}"))
            cluster.submitTopology(name, conf, build()).awaitTermination(200)
"""
MINE = """
import sys
from helper import whose

def told(n):
    return [f"{n} {whose()} {'mine' in sys.modules} {'/tmp/app' in sys.path}"]
"""
HELPER = "def whose(): return 'the driver'"
NAKED = str(Path(sys.base_prefix) / "bin" / "python3")
NEEDED = ["pyarrow", "pandas", "cloudpickle", "sqlalchemy", "pydantic", "pyyaml", "click", "rich"]
ROOT = Path(__file__).parents[2]
BY_VALUE = [f"{n} the driver False False" for n in range(6)]


@pytest.fixture(scope="module")
def hosts() -> Iterator[SparkHosts]:
    with started() as hosts:
        yield hosts


@KEPT
def test_an_application_without_a_session_runs_where_spark_submit_says(hosts: SparkHosts) -> None:
    """Its modules travel with the topology; what lies in the driver's folders on a worker's disk is not imported."""
    files(hosts, app=APP, mine=MINE, helper=HELPER)
    for worker in hosts.workers:
        worker.path(FOLDER).mkdir()
        worker.path(f"{FOLDER}/helper.py").write_text("def whose(): return 'somebody else'")
    code, said = finished(hosts.submit(f"{FOLDER}/app.py", **BOTH))
    assert code == 0, said[-6000:]
    assert f"master is {hosts.master_url}\n" in said
    assert rows(hosts) == BY_VALUE


@KEPT
def test_an_application_may_make_a_second_cluster_in_the_java_process_of_spark_submit(hosts: SparkHosts) -> None:
    files(hosts, app=APP, mine=MINE, helper=HELPER)
    code, said = finished(hosts.submit(f"{FOLDER}/app.py", "one", "two", **BOTH))
    assert code == 0, said[-6000:]
    assert said.count(f"master is {hosts.master_url}\n") == 2


@KEPT
def test_modules_of_py_files_are_imported_on_the_executors(hosts: SparkHosts) -> None:
    files(hosts, app=APP, mine=MINE, helper=HELPER)
    with zipfile.ZipFile(hosts.driver.path(f"{FOLDER}/more.zip"), "w") as packed:
        packed.write(hosts.driver.path(f"{FOLDER}/helper.py"), "helper.py")
    sent = f"{FOLDER}/mine.py,{FOLDER}/more.zip"
    code, said = finished(hosts.submit("--py-files", sent, f"{FOLDER}/app.py", **BOTH))
    assert code == 0, said[-6000:]
    assert rows(hosts) == [f"{n} the driver True False" for n in range(6)]


@KEPT
def test_a_module_that_an_executor_lacks_is_named_with_the_host(hosts: SparkHosts) -> None:
    """What one module of py-files imports must be there too: it is no part of what travels by value."""
    files(hosts, app=APP, mine=MINE, helper=HELPER)
    unseen = {"CONF": '{"topology.probe": false}'}
    sent = ["--py-files", f"{FOLDER}/mine.py"]
    code, said = finished(hosts.submit(*sent, f"{FOLDER}/app.py", environment=unseen, **BOTH))
    assert code == 1, said[-6000:]
    assert re.search(r"No module named 'helper' \(host worker[12], .*--py-files", said), said[-6000:]


@KEPT
def test_trident_run_takes_master_settings_and_files_as_spark_submit_does(hosts: SparkHosts) -> None:
    """The last of two settings holds, and so does what only spark-defaults.conf says: one core for the application."""
    files(hosts, app=APP, mine=MINE, helper=HELPER)
    defaults = {"spark.cores.max": 1, "spark.ui.enabled": "false", **JOBS}
    text = "".join(f"{name} {value}\n" for name, value in defaults.items())
    hosts.driver.path(f"{FOLDER}/spark-defaults.conf").write_text(text)
    settings = ["spark.driver.host=driver", "spark.executor.memory=600m", "spark.executor.memory=512m"]
    sent = ["--py-files", f"{FOLDER}/mine.py,{FOLDER}/helper.py"]
    options = ["--master", hosts.master_url, *(word for each in settings for word in ("--conf", each)), *sent]
    command = [sys.executable, "-m", "trident_py", "run", "app:build", "--name", "by trident run", *options]
    environment = {"SPARK_CONF_DIR": FOLDER}
    code, said = finished(hosts.run(command, environment=environment, **BOTH))
    assert code == 0, said[-6000:]
    assert rows(hosts) == [f"{n} the driver True False" for n in range(6)]
    (done,) = [app for app in hosts.state()["completedapps"] if app["name"] == "by trident run"]
    assert (done["cores"], done["memoryperexecutor"]) == (1, 512)


@pytest.fixture(scope="module")
def bare() -> Iterator[SparkHosts]:
    with started(bare=True) as hosts:
        yield hosts


@KEPT
def test_executors_that_have_nothing_but_python_are_told_before_the_start(bare: SparkHosts) -> None:
    files(bare, app=APP, mine=MINE, helper=HELPER)
    python = {"PYSPARK_PYTHON": NAKED, "PYSPARK_DRIVER_PYTHON": sys.executable}
    code, said = finished(bare.submit(f"{FOLDER}/app.py", environment=python, **BOTH))
    assert code == 1, said[-6000:]
    assert "worker1" in said and "pyarrow" in said and "nothing was started" in said, said[-6000:]


@KEPT
def test_executors_that_have_nothing_but_python_run_a_packed_environment(bare: SparkHosts, packed: Path) -> None:
    files(bare, app=APP, mine=MINE, helper=HELPER)
    shutil.copy(packed, bare.driver.path(f"{FOLDER}/environment.tar.gz"))
    python = {"PYSPARK_PYTHON": "./environment/bin/python", "PYSPARK_DRIVER_PYTHON": sys.executable}
    archive = ["--archives", f"{FOLDER}/environment.tar.gz#environment"]
    code, said = finished(bare.submit(*archive, f"{FOLDER}/app.py", environment=python, **BOTH))
    assert code == 0, said[-6000:]
    assert rows(bare) == BY_VALUE


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment for executors, packed as docs/deployment.md says: trident-py and what it imports, without Spark,
    which they have."""
    folder = tmp_path_factory.mktemp("packed")
    python = str(folder / "venv" / "bin" / "python")
    venv.create(folder / "venv", with_pip=True)
    for name in ("trident_py", "states"):
        shutil.copytree(ROOT / name, folder / "sources" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "sources")
    for what in (["--no-deps", str(folder / "sources")], NEEDED):
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what], check=True)
    archive = folder / "environment.tar.gz"
    venv_pack.pack(str(folder / "venv"), output=str(archive), compress_level=1)
    return archive
