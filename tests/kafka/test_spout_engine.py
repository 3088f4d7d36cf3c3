"""What the engine does with a spout that knows its backlog, reports from its tasks, or fails to describe a batch."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from spout_support import produce

from trident_py import LocalCluster, TridentTopology
from trident_py.cli.display import format_progress
from trident_py.errors import FailedException
from trident_py.kafka import Json, KafkaSpout
from trident_py.kafka.clients import Once
from trident_py.report.progress import Progress
from trident_py.spouts import ITridentSpout
from trident_py.testing import collect

ROOT = Path(__file__).parents[2]
CLI = """
import os
from trident_py import TridentTopology
from trident_py.kafka import KafkaSpout
from trident_py.testing import collect

def build():
    topology = TridentTopology()
    spout = KafkaSpout(os.environ["BROKER"], os.environ["TOPIC"], maxRecordsPerBatch=4, endingOffsets="latest")
    collect(topology.newStream("numbers", spout), "rows")
    return topology
"""


class Counting(ITridentSpout):
    """Batches 1 to 3, a number each. ``trouble`` is what its coordinator does when it is asked."""

    kind = "transactional"

    def __init__(self, trouble: str) -> None:
        self.trouble = trouble

    def getOutputFields(self) -> Any:
        return "n bigint"

    def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
        return Coordinator(self.trouble)

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        return Emitter()


class Coordinator(ITridentSpout.BatchCoordinator):
    def __init__(self, trouble: str) -> None:
        self.trouble, self.at = trouble, 0

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        if self.trouble == "away":
            self.trouble = ""
            raise FailedException("away for a moment")
        self.at = txid
        return txid

    def isExhausted(self) -> bool:
        return self.at >= 3

    def backlog(self) -> dict[str, int]:
        if self.trouble == "backlog":
            raise OSError("nobody knows")
        return {"all": 3 - self.at}


class Emitter(ITridentSpout.Emitter):
    def emitBatch(self, tx: Any, coordinatorMeta: Any, collector: Any) -> None:
        collector.emit([coordinatorMeta])


def counting(trouble: str = "") -> TridentTopology:
    topology = TridentTopology()
    collect(topology.newStream("counting", Counting(trouble)).parallelismHint(1), "rows")
    return topology


def run(topology: TridentTopology) -> Any:
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", {}, topology.build())
        assert running.awaitTermination(30)
        return running


def test_the_backlog_behind_the_last_batch_is_in_the_progress() -> None:
    assert run(counting()).progress["counting"].backlog == {"counting": {"all": 0}}


def test_a_backlog_that_cannot_be_told_fails_no_batch(caplog: pytest.LogCaptureFixture) -> None:
    running = run(counting("backlog"))
    assert running.collected("rows") == {1: [(1,)], 2: [(2,)], 3: [(3,)]}
    assert running.progress["counting"].backlog == {}
    assert "cannot report its backlog: nobody knows" in caplog.text


def test_a_batch_that_cannot_be_described_for_a_moment_is_tried_again_and_not_lost() -> None:
    assert run(counting("away")).collected("rows") == {1: [(1,)], 2: [(2,)], 3: [(3,)]}


def test_skipped_records_are_an_event(kafka: Any) -> None:
    topic = kafka.create_topic()
    produce(kafka, topic, ["nonsense", '{"n": 1}'])
    topology = TridentTopology()
    options: Any = {"endingOffsets": "latest", "onBadRecord": "skip", "fields": "value", "value": Json("n bigint")}
    collect(topology.newStream("numbers", KafkaSpout(kafka.bootstrap, topic, **options)), "rows")
    running = run(topology)
    assert running.collected("rows") == {1: [(1,)]}
    (told,) = [event for event in running.events if event.kind == "reported"]
    assert told.txid == 1 and f"1 records were skipped; the first: topic {topic}, partition 0, offset 0" in told.reason


def test_the_command_line_shows_the_backlog(kafka: Any, tmp_path: Path) -> None:
    topic = kafka.create_topic()
    produce(kafka, topic, map(str, range(10)))
    (tmp_path / "numbers_of.py").write_text(CLI)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BROKER": kafka.bootstrap, "TOPIC": topic}
    command = [sys.executable, "-W", "error", "-m", "trident_py", "run", "numbers_of:build", "--local", "--json"]
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    events = [json.loads(line) for line in said.stdout.splitlines()]
    waiting = [event["backlog"] for event in events if event["event"] == "committed"]
    assert waiting == [{"numbers": {f"{topic}-0": left}} for left in (6, 2, 0)]


def test_the_progress_line_sums_the_backlog() -> None:
    progress = Progress("c", txid=3, backlog={"numbers": {"t-0": 1_000, "t-1": 234}})
    assert "1,234 waiting for numbers" in format_progress(progress)


def test_clients_that_repeat_themselves_are_heard_once_in_a_while() -> None:
    def record(text: str, at: float) -> logging.LogRecord:
        made = logging.makeLogRecord({"msg": text, "levelno": logging.ERROR})
        made.created = at
        return made

    once = Once(30)
    said = [(0, "after 1ms: refused"), (1, "after 20ms: refused"), (2, "another"), (29, "after 3ms: refused")]
    heard = [once.filter(record(text, at)) for at, text in said]
    assert heard == [True, False, True, False]
    assert once.filter(record("after 4ms: refused", 31))
