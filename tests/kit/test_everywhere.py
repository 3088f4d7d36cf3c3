"""The test kit finds what is wrong, at the point where it is, and nothing in what is right."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trident_py import DefinitionError
from trident_py.testing.faults import STEPS, FaultCase, FaultFound, FaultReport, Point, Undisturbed, everywhere
from trident_py.testing.faults.kill_point import LINE

from . import wordcount, wrong
from .wordcount import BATCHES, FIELDS

ROOT = Path(__file__).parents[2]
EXPECTED = r"\('.*expected .*, found .*"
PLUGIN = "trident_py.testing.pytest_plugin"
TEST = """
from kit.wordcount import BATCHES, FIELDS
from kit import wrong

def test_words(trident_faults):
    trident_faults.everywhere(wrong.{name}, BATCHES, fields=FIELDS, faults={faults!r})
"""


def tried(build: Any, **options: Any) -> FaultReport:
    return everywhere(build, BATCHES, fields=FIELDS, seed=1, **options)


def points(report: FaultReport) -> set[tuple[str, str]]:
    return {(verdict.case.fault, verdict.case.point.step) for verdict in report.verdicts}


def test_a_right_topology_passes_a_smoke() -> None:
    report = tried(wordcount.build, smoke=True, faults=("kill", "fail", "forget"))
    steps = {step for fault, step in points(report) if fault == "kill"}
    assert len(steps) == 10 and steps < STEPS.keys() - {"decided"}  # of states that decide
    assert "counts (exactly once): no difference seen in 12" in str(report)


@pytest.mark.whole("test_a_right_topology_passes_a_smoke")
@pytest.mark.parametrize(
    ("build", "cases", "never"),
    [(wordcount.build, 40, {"decided"}), (wrong.right, 61, {"decided", "publish", "published"})],
    ids=["our state", "one of a user, without a participant"],
)
def test_a_right_topology_passes_everywhere(build: Any, cases: int, never: set[str]) -> None:
    report = tried(build)
    states = {verdict.case.point.partition for verdict in report.verdicts if verdict.case.point.step == "written"}
    assert states == {0, 1}
    assert {fault for fault, _ in points(report)} == {"kill", "fail", "partitions", "forget", "zombie"}
    assert {step for fault, step in points(report) if fault == "kill"} - {LINE} == STEPS.keys() - never
    assert len(report.verdicts) == cases


MISTAKES = {
    "again": (("kill",), "expected 1, found 2"),
    "in_two": (("kill",), "expected 1, found 2"),
    "mark_first": (("kill",), "expected 1, found None"),
    "mark_in_memory": (("forget",), r"expected \d, found \d"),
    "mark_of_partition": (("partitions",), r"expected \d, found \d"),
    "numbering": (("fail",), "expected TransactionalValue"),
}


def pytest_of(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    command = [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("name", [
    "in_two", *(pytest.param(other, marks=pytest.mark.whole) for other in MISTAKES if other != "in_two")
])  # fmt: skip
def test_a_mistake_is_found_shrunk_and_repeated_by_the_command(tmp_path: Path, name: str) -> None:
    faults, difference = MISTAKES[name]
    (tmp_path / "test_mine.py").write_text(TEST.format(name=name, faults=faults))
    first = pytest_of(tmp_path, "test_mine.py", "--trident-seed=3")
    assert first.returncode == 1, first.stdout + first.stderr
    assert re.search(difference, first.stdout), first.stdout
    (command,) = set(re.findall(r"again: (pytest .*)", first.stdout))
    assert "test_mine.py::test_words --trident-seed=3 --trident-point=sqlite/" in command
    again = pytest_of(tmp_path, *shlex.split(command)[1:])
    assert again.returncode == 1, again.stdout
    assert command in again.stdout
    assert re.findall(EXPECTED, again.stdout) == re.findall(EXPECTED, first.stdout)


@pytest.mark.whole("test_a_mistake_is_found_shrunk_and_repeated_by_the_command")
def test_two_transactions_are_shrunk_to_one_row_and_killed_between_them() -> None:
    with pytest.raises(FaultFound) as told:
        tried(wrong.in_two, faults=("kill",))
    point = told.value.verdict.case.point
    assert point.step in ("line", "begin", "committed")
    assert sum(len(rows) for _, rows in told.value.selection) == 1


def test_what_is_not_promised_is_shown(capsys: pytest.CaptureFixture) -> None:
    report = tried(wordcount.plain, point="sqlite/kill/committed/counts/0/2")
    assert re.search(r"counts \(at least once\): differed in 1 of 1, first by kill at step committed", str(report))
    assert "expected" in str(report)


def test_a_reading_that_is_no_state_must_be_equal() -> None:
    with pytest.raises(FaultFound, match="emails: 1 values differ"):
        tried(wrong.mailing, readings={"emails": wrong.emails_of}, point="sqlite/fail/written/words/0/2")


def test_a_partition_that_no_batch_reaches_fails() -> None:
    with pytest.raises(Undisturbed, match=r"no batch reaches counts/[01] \(state/partition\)"):
        everywhere(wordcount.build, [[("a",)]], fields=FIELDS)


def test_a_point_that_is_not_reached_again_fails() -> None:
    with pytest.raises(FaultFound, match="the undisturbed run came to step begin of counts in partition 7, batch 2"):
        tried(wordcount.build, point="sqlite/kill/begin/counts/7/2")


def test_a_topology_that_fails_by_itself_says_so() -> None:
    with pytest.raises(Undisturbed, match=r"undisturbed, on sqlite, the run fails: .*cannot be a key"):
        everywhere(wordcount.build, [[(object(),)]], fields="word")


def test_memory_is_compared_where_the_process_lives() -> None:
    report = tried(wordcount.in_memory, stores=["memory"], smoke=True)
    assert {fault for fault, _ in points(report)} == {"fail"}
    assert "(exactly once): no difference seen in 1" in str(report)


def test_a_case_is_its_text() -> None:
    for point in (Point("over", txid=3), Point("line", "a/b", 1, 2, "mine.py:3@1"), Point("emit", "ü %", 0, 1)):
        case = FaultCase("sqlite", "kill", point)
        assert FaultCase.of(case.text) == case
    for text in ("sqlite/kill", "sqlite/kill/over//x/1", "sqlite/kill/nowhere//-1/1"):
        with pytest.raises(DefinitionError):
            FaultCase.of(text)
