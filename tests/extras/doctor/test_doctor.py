"""trident doctor: what it prints and its exit codes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trident_py.extras.doctor.cli import clock, tell_health
from trident_py.extras.doctor.diagnostics import Flaw
from trident_py.extras.doctor.probe import Health, _Job

from .test_diagnostics import DRIVER, MASTER, SAID, said

APP = """
from states.sql import AppendState
from trident_py import TridentTopology
from trident_py.spouts import FileSpout

def build():
    topology = TridentTopology()
    stream = topology.newStream("lines", FileSpout("{folder}/in/*.txt", "line string", format="lines"))
    stream.partitionPersist(AppendState("{url}", "lines", ["line string"]), ["line"])
    return topology
"""


def health(*findings: Flaw) -> Health:
    late = said("w2", clock=1201.0, modules={"a": "", "b": "missing"}, addresses={"db 1": ""})
    return Health(MASTER, DRIVER, (said("w1", ours="missing"), late), findings)


def test_the_table_has_a_line_for_each_machine(capsys: pytest.CaptureFixture[str]) -> None:
    note = Flaw("note", "", "n")
    assert tell_health(health(note, Flaw("error", "w2", "e"), Flaw("away", "", "a")), as_json=False) == 1
    assert capsys.readouterr().out.splitlines() == [
        "machine         Python  trident_py  pyarrow  clock   modules  addresses  files",
        "the driver (d)  3.11.7  1.0 aa      26.0.1   same    -        -          -",
        "w1              3.11.7  missing     26.0.1   same    -        -          -",
        "w2              3.11.7  1.0 aa      26.0.1   +200 s  1 of 2   1 of 1     -",
        "",
        "error: w2: e",
        "away: a",
        "note: n",
    ]
    assert tell_health(health(note), as_json=False) == 0
    assert tell_health(health(Flaw("away", "", "a")), as_json=False) == 1
    capsys.readouterr()
    assert tell_health(health(), as_json=False) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"nothing is wrong on {MASTER}"


def test_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert tell_health(health(Flaw("error", "w2", "e")), as_json=True) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["master"], told["findings"]) == (MASTER, [{"level": "error", "machine": "w2", "text": "e"}])
    assert told["machines"][2] == {
        "machine": "w2", "Python": "3.11.7", "trident_py": "1.0 aa", "pyarrow": "26.0.1", "clock": "+200 s",
        "modules": "1 of 2", "addresses": "1 of 1", "files": "-",
    }  # fmt: skip
    assert SAID["executable"] not in json.dumps(told)


@pytest.mark.parametrize(("there", "shown"), [(1000.5, "same"), (1001.9, "same"), (1003.0, "+2 s"), (990.0, "-10 s")])
def test_the_clock_shows_the_certain_difference(there: float, shown: str) -> None:
    assert clock((1000.0, 1001.0), there) == shown


def doctor(folder: Path, *options: str, url: str) -> tuple[int, str, str]:
    (folder / "app.py").write_text(APP.format(folder=folder, url=url))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-m", "trident_py", "doctor", "app:build", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
    return done.returncode, done.stdout, done.stderr


def findings(told: str) -> list[tuple[str, str]]:
    report: dict[str, Any] = json.loads(told)
    return [(finding["level"], finding["text"].partition(": ")[0]) for finding in report["findings"]]


@pytest.mark.spark
def test_doctor_asks_the_executors_of_a_cluster_and_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    options = ["--master", "local-cluster[2,1,512]", "--conf", "spark.executor.memory=512m", "--json"]
    code, out, err = doctor(tmp_path, *options, url=f"sqlite:///{tmp_path}/lines.db")
    assert (code, findings(out)) == (0, []), out + err
    driver, *executors = json.loads(out)["machines"]
    assert len(executors) == 1  # both are on this machine
    for machine in (driver, *executors):
        assert (machine["clock"], machine["modules"], machine["addresses"], machine["files"]) == (
            "same", "3 of 3", "-", "1 of 1",
        )  # fmt: skip
    assert {machine["trident_py"] for machine in executors} == {driver["trident_py"]}
    assert not (tmp_path / "lines.db").exists()


@pytest.mark.spark
@pytest.mark.whole("test_doctor_asks_the_executors_of_a_cluster_and_starts_nothing")
def test_doctor_on_one_machine_looks_at_the_driver(tmp_path: Path) -> None:
    url = "mysql+pymysql://user:hunter2@127.0.0.1:1/x"
    code, out, err = doctor(tmp_path, "--master", "local[1]", "--json", url=url)
    assert code == 1, out + err
    assert "hunter2" not in out + err
    assert findings(out) == [
        ("error", f"spout 'lines' needs {tmp_path}/in, which cannot be read there"),
        ("away", "state 'lines' needs 127.0.0.1:1, which no machine reaches, not even the driver (Connection refused). "
                 "Start it, or correct the address"),
    ]  # fmt: skip


def test_a_job_is_waited_for_without_end_if_the_conf_says_so() -> None:
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(setJobGroup=lambda *_, **__: None))
    assert _Job(spark, lambda: time.sleep(0.3) or "done").result(math.inf) == "done"


def test_a_module_that_is_missing_is_told_without_spark(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trident_py", "doctor", "nothing:build"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: no module 'nothing' (No module named 'nothing')")
