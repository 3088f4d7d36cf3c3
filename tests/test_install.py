"""What a newcomer installs: whatever is imported is declared; a wheel alone runs the README's five minutes."""

from __future__ import annotations

import ast
import configparser
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_docs import BLOCK, project_files

ROOT = Path(__file__).parent.parent
_ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))
}
# Import names that differ from the name on PyPI.
DISTRIBUTIONS = {
    "yaml": "pyyaml",
    "prometheus_client": "prometheus-client",
    "opentelemetry": "opentelemetry-api",
    "confluent_kafka": "confluent-kafka",
    "tree_sitter": "tree-sitter",
    "tree_sitter_java": "tree-sitter-java",
    "py4j": "pyspark",
    "pydantic_core": "pydantic",
}
# The extras whose packages a place may import; everywhere else only what is always installed.
EXTRAS = {
    "trident_py/extras/drpc_server": ("drpc",),
    "trident_py/extras/gateway": ("events", "redis"),
    "trident_py/extras/avro": ("avro",),
    "trident_py/extras/moving": ("moving", "kafka", "redis"),
    "trident_py/databases/options": ("mysql", "postgresql"),
    "trident_py/kafka": ("kafka",),
    "trident_py/extras/hdfs": ("hdfs",),
    "trident_py/testing/pytest_plugin": ("testing",),
    "trident_py/extras/s3": ("s3",),
    "states/kafka": ("kafka",),
    "trident_py/extras/redis": ("redis",),
    "states/sql/dialects/mysql": ("mysql",),
    "trident_py/extras/monitor": ("monitor",),
    "trident_py/extras/opentelemetry": ("opentelemetry",),
    "trident_py/extras/run_report": ("report",),
    "states/sql/dialects/postgresql": ("postgresql",),
}
# What `import trident_py` loads of others' packages: columns, positions of rows, users' lambdas.
LOADED = {"pyarrow", "numpy", "cloudpickle"}
ALONE = {
    "": "import trident_py, trident_py.testing, trident_py.cli, states, states.sql",
    "mysql": "import pymysql, states.sql.dialects.mysql.dialect",
    "postgresql": "import psycopg, states.sql.dialects.postgresql.dialect",
    "kafka": "import confluent_kafka, trident_py.kafka, states.kafka",
    "avro": "import fastavro; from trident_py.kafka import Avro",
    "events": "from trident_py.extras.gateway import app, metrics, server; import mmh3, rbloom",
    "redis": "import redis, trident_py.extras.gateway; from states.redis import RedisMapState",
    "report": "from trident_py.extras.run_report.cli import render; render([])",
    "sql": "import trident_py.operations; trident_py.operations.expr('upper(word)')",
    "drpc": "import trident_py.extras.drpc_server.shared_servers",
    "monitor": "import trident_py.extras.monitor.monitor",
    "moving": "import kazoo.client; from trident_py.extras.moving import compare_cli, import_cli; "
    "import trident_py.extras.moving.port.cli",
    "opentelemetry": "import trident_py.extras.opentelemetry.spans",
    "hdfs": "import trident_py.spouts as spouts; spouts.FileSpout('hdfs://name/x', 'line')",
    "testing": "import trident_py.testing.pytest_plugin",
    "s3": "import boto3, states.files; states.files.FileState('s3://name/x', storage={'region': 'x'}).folder()",
}

OURS = {"dev", "docs", "examples"}
"""Extras that users do not install."""


def requirements() -> dict[str, list[str]]:
    """The lines of setup.cfg by extra; under "" what is always installed."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lists = {"": setup["options"]["install_requires"], **setup["options.extras_require"]}
    return {extra: [line.strip() for line in lines.split("\n") if line.strip()] for extra, lines in lists.items()}


def declared() -> dict[str, set[str]]:
    """Names on PyPI by extra."""
    return {
        extra: {re.split(r"[\[<>=;\s]", line)[0] for line in lines} for extra, lines in requirements().items()
    }


def imported(path: Path) -> Iterator[str]:
    """The first names of all imports of others' packages, also those inside of functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        for name in names:
            first = name.partition(".")[0]
            if first not in sys.stdlib_module_names and first not in ("trident_py", "states"):
                yield first


def test_whatever_is_imported_is_declared_for_its_place() -> None:
    known, missing = declared(), []
    for path in sorted([*ROOT.glob("trident_py/**/*.py"), *ROOT.glob("states/**/*.py")]):
        place = path.relative_to(ROOT).as_posix()
        extras = [name for start, names in EXTRAS.items() if place.startswith(start) for name in names]
        allowed = known[""].union(*(known[name] for name in extras))
        missing += [(place, name) for name in imported(path) if DISTRIBUTIONS.get(name, name) not in allowed]
    assert missing == []


def test_importing_the_package_loads_only_what_it_needs() -> None:
    others = {name.replace("-", "_") for names in declared().values() for name in names} | set(DISTRIBUTIONS)
    code = f"import sys, trident_py; print(*sorted({others!r} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(found.stdout.split()) == LOADED

FORKING = """
import json, os, sys, trident_py
for code in json.loads(sys.argv[1]):
    if os.fork() == 0:
        exec(code)
        os._exit(0)
    if os.wait()[1]:
        print("ended by", code)
"""
"""A process that has imported the package runs each text in a child of its own."""


def forked(folder: Path, *codes: str) -> str:
    """What these texts print, each in a process that has imported `trident_py` and nothing of ours besides."""
    environment = {**_ENVIRONMENT, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-W", "error", "-c", FORKING, json.dumps(codes)]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(command, cwd=folder, env=environment, text=True, check=True, **both).stdout


def without(module: str) -> str:
    """The text of a program without a client, which prints what it is told."""
    opened = {
        "pymysql": "SqlMapState.opaque('mysql+pymysql://u:secret@h/db', 't', 'k string').participant().open({})",
        "psycopg": "SqlMapState.opaque('postgresql+psycopg://u:secret@h/db', 't', 'k string').participant().open({})",
        "confluent_kafka": "TransactionalTopicState('h:1', 't').participant().open({})",
        "redis": "RedisMapState.opaque('redis://:secret@h:1/0').participant().open({})",
        "fsspec": "FileSpout('hdfs://h/x', 'line', storage={'user': 'u', 'password': 'secret'})",
        "requests": "FileSpout('hdfs://h/x', 'line', storage={'user': 'u', 'password': 'secret'})",
        "boto3": "FileState('s3://b/x', storage={'access_key': 'k', 'secret_key': 'secret'}).folder()",
    }[module]
    extras = {"pymysql": "mysql", "psycopg": "postgresql", "confluent_kafka": "kafka", "fsspec": "hdfs"}
    extra = {**extras, "requests": "hdfs", "boto3": "s3"}.get(module, module)
    return (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from states.sql import SqlMapState\nfrom trident_py.errors import DefinitionError\n"
        "from states.files import FileState\nfrom trident_py.spouts import FileSpout\n"
        f"try:\n    {'from states.kafka import TransactionalTopicState' if extra == 'kafka' else 'pass'}\n"
        f"    {'from states.redis import RedisMapState' if extra == 'redis' else 'pass'}\n"
        f"    {opened}\nexcept DefinitionError as error:\n    print({module!r}, {extra!r}, str(error))\n"
    )


CLIENTS = ["pymysql", "psycopg", "confluent_kafka", "redis", "fsspec", "requests", "boto3"]


def test_what_needs_a_client_that_is_missing_names_the_extra(tmp_path: Path) -> None:
    told = forked(tmp_path, *map(without, CLIENTS))
    assert [line.split()[0] for line in told.splitlines()] == CLIENTS, told
    for line in told.splitlines():
        module, extra, error = line.split(maxsplit=2)
        assert f"pip install 'trident-py[{extra}]'" in error and module in error and "secret" not in error


def test_the_modules_of_an_extra_can_be_imported(tmp_path: Path) -> None:
    assert forked(tmp_path, *ALONE.values()) == ""


def test_whatever_users_install_has_a_floor() -> None:
    """`make floors` installs the lowest versions and runs smoke tests with them."""
    lines = [line for extra, lines in requirements().items() if extra not in OURS for line in lines]
    assert len(lines) > 30 and [line for line in lines if ">=" not in line] == []
    script = (ROOT / "scripts" / "floors.sh").read_text()
    installed = re.findall(r"^extras=(.*)$", script, re.M)[0].split(",")
    assert {*installed, "", *OURS} == set(requirements())


def test_every_extra_is_tried_alone() -> None:
    assert set(ALONE) | OURS == set(declared())


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a wheel is made of: a build leaves files beside its sources, and takes what it finds there."""
    folder = tmp_path_factory.mktemp("sources")
    for name in ("trident_py", "states"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def alone(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing in it but the wheel, which was built from this tree, and what it asks for."""
    folder = tmp_path_factory.mktemp("alone")
    venv.create(folder / "venv", with_pip=True)
    pip(python_of(folder), "wheel", "--no-deps", "--wheel-dir", str(folder), str(sources))
    pip(python_of(folder), "install", wheel_of(folder))
    return folder


def python_of(folder: Path) -> str:
    return str(folder / "venv" / "bin" / "python")


def wheel_of(folder: Path) -> str:
    return str(next(folder.glob("trident_py-*.whl")))


def pip(python: str, *arguments: str) -> str:
    command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    return outside(command, Path("/")).stdout


def outside(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs it where our sources are not on the path. Fails with what it printed."""
    done = subprocess.run(
        command, cwd=folder, env=_ENVIRONMENT, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done


def test_a_source_distribution_has_every_file_and_its_tests_run(tmp_path: Path) -> None:
    names = project_files()
    for name in names:
        (tmp_path / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "all" / name)
    build = "from setuptools import build_meta; build_meta.build_sdist('..')"
    subprocess.run([sys.executable, "-c", build], cwd=tmp_path / "all", check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        content.extractall(tmp_path, filter="data")
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    assert [name for name in names if not (unpacked / name).is_file()] == []
    tests = ["tests/test_docs.py", "-k", "module or unfinished or make"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**_ENVIRONMENT, "PYTHONPATH": str(unpacked)}
    done = subprocess.run(command, cwd=unpacked, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


class FiveMinutes:
    """A reader of the README's five minutes: the files that it shows, its commands, and what it says they print."""

    def __init__(self, folder: Path, python: Path, path: str = "") -> None:
        self.folder = folder
        quick_java = " ".join(each for each in os.environ["SPARK_SUBMIT_OPTS"].split() if not each.startswith("-D"))
        self.environment = {**_ENVIRONMENT, "PATH": f"{python.parent}:{os.environ['PATH']}", "PYTHONPATH": path,
                            "SPARK_SUBMIT_OPTS": quick_java}  # fmt: skip
        text = (ROOT / "README.md").read_text().partition("## In five minutes")[2].partition("\n## ")[0]
        blocks = BLOCK.findall(text)
        (folder / "states.yaml").write_text(next(block for kind, block in blocks if kind == "yaml"))
        (folder / "counting.py").write_text(next(block for kind, block in blocks if kind == "python"))
        consoles = [block for kind, block in blocks if kind == "console"]
        told = dict(re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", consoles[1], re.M))
        (self.check, self.run), (self.checked, self.first) = told, map(self.masked, told.values())
        (nothing,) = re.findall(r"`(counting: there was no new batch.*?)`", text)
        self.table = "".join(self.first.splitlines(keepends=True)[:-1])
        self.again = f"{self.table}{nothing}\n"

    def masked(self, text: str) -> str:
        """Without what differs between two readers: times, and where they are at home."""
        return re.sub(r"\d+\.\d{3} s", "0.000 s", text.replace(str(self.folder), "/home/you"))

    def types(self, command: str, cluster: str = "") -> str:
        """All that a command prints, masked."""
        line = ["bash", "-c", f"{command} {cluster}"]
        done = subprocess.run(
            line, cwd=self.folder, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return self.masked(done.stdout)

    def follows(self, clusters: list[str]) -> None:
        """Types the commands, and then runs the topology again, on the same cluster or on the other one."""
        assert self.types(self.check) == self.checked
        assert self.types(self.run, clusters[0]) == self.first
        for cluster in clusters[1:]:
            assert self.types(self.run, cluster) == self.again
        with sqlite3.connect(self.folder / "counts.db") as db:
            assert db.execute("SELECT SUM(count), MAX(txid) FROM counts").fetchall() == [(15, 2)]


CLUSTERS = [
    pytest.param(["--local", "--local", ""], id="local"),
    pytest.param(["", "--local"], id="spark", marks=pytest.mark.whole),
]


@pytest.mark.spark
@pytest.mark.parametrize("clusters", CLUSTERS)
def test_the_readmes_commands_print_what_it_says_on_both_clusters(tmp_path: Path, clusters: list[str]) -> None:
    FiveMinutes(tmp_path, Path(sys.executable), str(ROOT)).follows(clusters)


@pytest.fixture(scope="module")
def installed(sources: Path) -> Path:
    """The Python of who has typed the README's lines for the installation."""
    lines = next(text for kind, text in BLOCK.findall((ROOT / "README.md").read_text()) if kind == "console")
    typed = "".join(re.findall(r"^\$ (.*\n)", lines, re.M)).replace("python3.11", sys.executable)
    outside(["bash", "-e", "-c", typed], sources)
    return sources / ".venv" / "bin" / "python"


@pytest.mark.spark
@pytest.mark.whole("test_the_readmes_commands_print_what_it_says_on_both_clusters")  # it installs Spark anew
@pytest.mark.parametrize("clusters", [["--local", "--local", ""], ["", "", "--local"]], ids=["local", "spark"])
def test_a_reader_who_installs_the_project_sees_what_the_readme_says(
    installed: Path, tmp_path: Path, clusters: list[str]
) -> None:
    FiveMinutes(tmp_path, installed).follows(clusters)


@pytest.mark.spark
@pytest.mark.whole("test_whatever_is_imported_is_declared_for_its_place")
@pytest.mark.parametrize("extra", list(ALONE))
def test_each_extra_alone_brings_what_its_modules_import(alone: Path, tmp_path: Path, extra: str) -> None:
    python = python_of(alone)
    before = set(pip(python, "freeze").split("\n"))
    if extra:
        pip(python, "install", f"{wheel_of(alone)}[{extra}]")
    try:
        outside([python, "-c", ALONE[extra]], tmp_path)
    finally:
        added = [line.partition("==")[0] for line in set(pip(python, "freeze").split("\n")) - before if "==" in line]
        if added:
            pip(python, "uninstall", "--yes", *added)
