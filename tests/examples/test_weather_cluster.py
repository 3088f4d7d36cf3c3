"""`make cluster`: the main job on hosts of which two die has the tables of one machine, in every row and value."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from needed import HOSTS, needed

from examples import weather, weather_cluster
from testbed.service import ServiceMissing

ROOT = Path(__file__).parents[2]
NUMBERS = re.compile(r"\d+(\.\d+)?")


def is_in_words(line: str) -> bool:
    """Not a command, a list of addresses, or what Spark did about a lost task."""
    return not re.search("its log is|hosts are started|: (task-retry|replay): ", line)


def told(output: str) -> list[str]:
    """The lines that the run says in words, without the seconds."""
    return [line.partition("] ")[2] for line in output.splitlines() if line.startswith("[")]


@pytest.mark.spark
@pytest.mark.whole("test_an_executor_lost_between_two_commits", "test_the_digest_covers_every_column")
@pytest.mark.timeout(1500)  # a dozen JVMs
def test_make_cluster_ends_with_the_tables_of_one_machine(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.weather_cluster", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1400)
    with needed(HOSTS):
        if re.search("need root|is not installed", done.stderr):
            raise ServiceMissing(done.stderr)
    print(done.stdout)  # for pytest -rP
    said = told(done.stdout)
    assert done.returncode == 0, "\n".join([*said, done.stderr])
    digests = re.findall(r"^tables in .*: +([0-9a-f]{64})$", done.stdout, re.MULTILINE)
    assert digests == [weather.digest(weather.tables(f"sqlite:///{tmp_path}/out/weather.sqlite"))] * 2
    assert "26,115 readings" in done.stdout

    killed = [re.fullmatch(r"(\w+) IS KILLED after batch (\d+) of 27: (\d) task.*", line) for line in said]
    (worker, at, tasks), (driver, later, _) = [found.groups() for found in killed if found]
    assert (worker, driver) == ("worker1", "driver")
    assert 1 <= int(at) < int(later) < 27 and int(tasks) >= 2
    first, second = (
        [int(line.rpartition(" ")[2]) for line in said if line.startswith(f"{host}: committed")]
        for host in ("driver", "driver2")
    )
    assert first == list(range(1, int(later) + 1))  # before and after the death of the worker's host
    assert second == list(range(int(later) + 1, 28))
    assert f"driver2: started: behind batch {later}" in said

    page = {NUMBERS.sub("N", line) for line in told((ROOT / "docs" / "deployment.md").read_text())}
    assert {NUMBERS.sub("N", line) for line in said if is_in_words(line)} <= page


def test_without_root_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    done = CliRunner().invoke(weather_cluster.main, ["--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert "need root on Linux. Next: sudo make cluster" in done.output


def test_tables_that_differ_are_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(weather_cluster.Failed, match="not equal"):
        weather_cluster.judge("ab", "cd")
    assert re.findall(r": +(ab|cd)$", capsys.readouterr().out, re.MULTILINE) == ["ab", "cd"]


def test_the_digest_covers_every_column(tmp_path: Path) -> None:
    """Values, txids and the values before: a digest that overlooks one would find different tables equal."""
    database = tmp_path / "weather.sqlite"
    named = weather.tables(f"sqlite:///{database}")
    weather.run(weather.build(named, batch=20_000), tmp_path, local=True, batches=2)
    digests = {weather.digest(named)}
    assert digests == {weather.digest(named)}
    columns = 0
    with closing(sqlite3.connect(database)) as db:
        for table, key in (("reading", "time_hour"), ("station", "readings"), ("rain", "month")):
            names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            for name in reversed(names):  # the station last: it finds the row
                with db:
                    where = f"origin = 'LGA' AND {key} = (SELECT max({key}) FROM {table} WHERE origin = 'LGA')"
                    db.execute(f"UPDATE {table} SET {name} = 77 WHERE {where}")
                digests.add(weather.digest(named))
            columns += len(names)
    assert len(digests) == columns + 1 == 5 + 12 + 5 + 1


def test_input_checkpoints_and_partitions_may_be_named(tmp_path: Path) -> None:
    """As on a cluster: the readings from a URI, and any number of partitions. The tables are the same."""
    shutil.copy(weather.csv_file(), tmp_path / "copy.csv")
    where = ["--input", f"file://{tmp_path}/copy.csv", "--out", str(tmp_path / "out"), "--lines", "--quiet"]
    done = CliRunner().invoke(weather.main, [*where, "--local", "--batch", "10000", "--parallelism", "3"])
    assert done.exit_code == 0, done.output
    assert [line for line in done.output.splitlines() if "committed" in line] == [
        f"weather: committed: batch {txid}" for txid in (1, 2, 3)
    ]
    plain = weather.tables(f"sqlite:///{tmp_path}/plain.sqlite")
    weather.run(weather.build(plain, batch=10_000), tmp_path, local=True, batches=3)
    assert weather.digest(weather.tables(f"sqlite:///{tmp_path}/out/weather.sqlite")) == weather.digest(plain)
