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
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

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
        self.topic = "clicks"
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

    def start(self, command: str, batches: int = 10) -> None:
        self.driver = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.environment,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        self.wait_for_commits(batches)

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
    text = text.replace(night.topic, "clicks")
    for pattern, words in OTHERWISE.items():
        text = re.sub(pattern, words, text)
    return [line.strip() for line in text.splitlines() if line.strip()]


BROKERS = re.compile(r"^\*\*18\. .*?(?=^\*\*20\. )", re.M | re.S)
"""The questions that need a broker."""


def check_commands(night: Night, page: str) -> None:
    shown = "".join(text for kind, text in BLOCK.findall(page) if kind == "console")
    for command, output in COMMAND.findall(shown):
        for _ in range(TRIES):  # a run that goes on may be asked in the moment of a commit
            printed = night.type(command)
            print(f"$ {command}\n{printed}")  # pytest shows it where the test fails
            if told(printed, night) == told(output, night):
                break
        assert told(printed, night) == told(output, night), command


def test_every_command_prints_what_the_page_shows(night: Night) -> None:
    check_commands(night, BROKERS.sub("", PAGE.read_text()))


CLICKS = """
from states.sql import SqlMapState
from trident_py import TridentTopology
from trident_py.kafka import KafkaSpout
from trident_py.operations.builtin import Count

def build():
    clicks = SqlMapState.opaque("sqlite:///clicks.db", "clicks", key="value string")
    topology = TridentTopology()
    spout = KafkaSpout("BROKERS", "TOPIC", fields="value", value="string", kind="opaque", maxRecordsPerBatch=20)
    topology.newStream("clicks", spout).groupBy("value").persistentAggregate(clicks, Count(), "count")
    return topology
"""
GATEWAY = """
kafka: {bootstrap: BROKERS, topic: TOPIC}
fingerprint: {fields: [sensor], timestamp: time}
event: {required: {sensor: string, time: string, celsius: number}}
port: 8080
"""
EVENT = {"sensor": "a", "time": "2013-11-03T06:00:00Z", "celsius": 10}
SENT = [(EVENT, 201), ({"sensor": "a"}, 422), ({**EVENT, "celsius": 11}, 409)]


def produce(brokers: str, topic: str, number: int) -> None:
    producer = Producer({"bootstrap.servers": brokers})
    for _ in range(number):
        producer.produce(topic, "c", partition=0)
    assert producer.flush(60) == 0


def lose_records(night: Night, brokers: str) -> None:
    """Of 300 records those behind the first 100, up to the 250th, are deleted before they are read."""
    (night.folder / "clicks.py").write_text(CLICKS.replace("BROKERS", brokers).replace("TOPIC", night.topic))
    admin, partition = AdminClient({"bootstrap.servers": brokers}), TopicPartition(night.topic, 0, 250)
    for number, batches in ((100, 5), (200, 3)):
        produce(brokers, night.topic, number)
        if number == 200:
            admin.delete_records([partition])[partition].result(60)
        night.start("trident run clicks:build --local --events events.jsonl", batches)
        night.end(signal.SIGTERM)


def refuse_events(night: Night, brokers: str) -> None:
    """A gateway runs, and has refused two events."""
    settings = GATEWAY.replace("BROKERS", brokers).replace("TOPIC", night.topic).replace("8080", str(night.port))
    (night.folder / "events.yaml").write_text(settings)
    night.start("trident events serve --config events.yaml", 0)
    for body, status in SENT:
        assert until_answered(f"http://127.0.0.1:{night.port}/events", body) == status


def until_answered(url: str, body: dict[str, Any]) -> int:
    end = time.monotonic() + 60
    while True:
        try:
            answer = httpx.post(url, json=body)
        except httpx.TransportError:
            assert time.monotonic() < end, "the gateway does not answer"
        else:
            if answer.status_code != 503:
                return answer.status_code
        time.sleep(0.1)


def test_what_brokers_lost_and_a_gateway_refused_is_told_as_the_page_shows(night: Night, kafka: Any) -> None:
    night.topic = kafka.create_topic()
    lose_records(night, kafka.bootstrap)
    try:
        refuse_events(night, kafka.bootstrap)
        check_commands(night, BROKERS.findall(PAGE.read_text())[0])
    finally:
        night.end(signal.SIGTERM)


def test_there_are_twenty_questions() -> None:
    numbers = re.findall(r"(?:^|\s)\*{0,2}(\d+)\. [A-Z]", PAGE.read_text(), re.M)
    assert list(map(int, numbers)) == list(range(1, 21))
