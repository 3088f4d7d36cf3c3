"""docs/operations/night.md: each command is run, in the page's order, and prints what the page shows."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.service import free_port

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "operations" / "night.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.M)
# What is another one each time: places, processes, lineages, numbers, and whether batches got slower just now.
OTHERWISE = {r"process \d+ on host [\w.-]+": "process 9 on host mill", r"\b[0-9a-f]{32}\b": "lineage",
             r", (growing|shrinking)": "", r"\d[\d,.:]*": "9", r"[ \t]+": " ",
             r"at this rate in 9 \w+": "at this rate in 9 seconds"}  # fmt: skip
INPUT = [f"the cow {number} jumped" for number in range(30_000)]
INPUT[300] = "odd one out"
TRIES = 3


class Night:
    """The machine on which the commands of the page are typed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.driver: subprocess.Popen[bytes] | None = None
        (folder / "trident").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trident_py "$@"\n')
        (folder / "trident").chmod(0o755)
        paths = {"PYTHONPATH": f"{ROOT}:{folder}", "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONHASHSEED": "0"}
        self.environment = {**os.environ, **paths}

    def type(self, command: str) -> str:
        """What a command prints. A driver that is started has committed some batches; one that is stopped is over."""
        command = command.replace("8080", str(self.port))
        if command.endswith(" &"):
            self.start(command.removesuffix(" &"))
            return ""
        if " --to " in command:
            (found,) = json.loads(self.type("trident txid ls counting:build --json"))
            command = re.sub(r"--to \d+", f"--to {found['committed'] - 1}", command)
        if command.startswith("kill"):
            self.end(signal.SIGTERM if "-TERM" in command else signal.SIGKILL)
            return ""
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, check=False,
                              capture_output=True, text=True, timeout=120)  # fmt: skip
        told = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        return done.stdout + "".join(f"{line}\n" for line in told)

    def start(self, command: str) -> None:
        self.driver = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.environment,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        self.wait_for_commits(10)

    def wait_for_commits(self, number: int) -> None:
        wanted, end = self.committed() + number, time.monotonic() + 60
        while self.committed() < wanted:
            assert self.driver is not None and self.driver.poll() is None, "the run is over"
            assert time.monotonic() < end, "the run commits no batches"
            time.sleep(0.01)

    def end(self, number: int) -> None:
        """End the driver. It is killed while it computes, just behind a commit."""
        if self.driver is None or self.driver.poll() is not None:
            return
        if number == signal.SIGKILL:
            self.wait_for_commits(1)
            time.sleep(0.05)
        self.driver.send_signal(number)
        self.driver.wait(60)

    def committed(self) -> int:
        events = self.folder / "events.jsonl"
        lines = events.read_text().splitlines() if events.exists() else []
        return sum(json.loads(line)["event"] == "committed" for line in lines if line.endswith("}"))


@pytest.fixture
def night(tmp_path: Path) -> Iterator[Night]:
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "day.txt").write_text("\n".join(INPUT) + "\n")
    topology = next(text for kind, text in BLOCK.findall(PAGE.read_text()) if kind == "python")
    (tmp_path / "counting.py").write_text(topology)
    made = Night(tmp_path)
    yield made
    made.end(signal.SIGKILL)


def told(text: str, night: Night) -> list[str]:
    """The lines of a text without what is another one each time."""
    text = text.replace(str(night.folder), "/home/you").replace(str(night.port), "8080")
    for pattern, words in OTHERWISE.items():
        text = re.sub(pattern, words, text)
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_every_command_prints_what_the_page_shows(night: Night) -> None:
    shown = "".join(text for kind, text in BLOCK.findall(PAGE.read_text()) if kind == "console")
    for command, output in COMMAND.findall(shown):
        for _ in range(TRIES):  # a run that goes on may be asked in the moment of a commit
            printed = night.type(command)
            print(f"$ {command}\n{printed}")  # pytest shows it where the test fails
            if told(printed, night) == told(output, night):
                break
        assert told(printed, night) == told(output, night), command


def test_there_are_twenty_questions() -> None:
    numbers = re.findall(r"(?:^|\s)\*{0,2}(\d+)\. [A-Z]", PAGE.read_text(), re.M)
    assert list(map(int, numbers)) == list(range(1, 21))
