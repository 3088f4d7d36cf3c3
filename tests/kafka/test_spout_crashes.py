"""Sums over a topic stay exact while drivers and the broker are killed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from spout_driver import BATCH, sums, topology
from spout_support import Player, decided, eventually, produce, transaction, transactional, values, when_ready

from trident_py import LocalCluster
from trident_py.errors import FailedException, SpoutError
from trident_py.kafka import KafkaSpout
from trident_py.tuples import TransactionAttempt

ROOT = Path(__file__).parents[2]
PARTITIONS = 3


def fill(broker: Any, topic: str, rounds: int, seed: int) -> Counter[str]:
    """Writes records, some of them in transactions that abort; returns the fold over the others."""
    choose = random.Random(seed)
    expected: Counter[str] = Counter()
    writer = transactional(broker, f"{topic}-{seed}")
    for step in range(rounds):
        rows = [(choose.choice("abcdefgh"), choose.randrange(100)) for _ in range(300)]
        made = [json.dumps({"word": word, "n": n}) for word, n in rows]
        aborted = choose.random() < 0.2
        if aborted or choose.random() < 0.5:
            transaction(writer, topic, made, not aborted, step % PARTITIONS)
        else:
            produce(broker, topic, made, step % PARTITIONS)
        for word, n in [] if aborted else rows:
            expected[word] += n
    decided(broker, topic, PARTITIONS)
    return expected


class Rounds:
    """Driver processes on one folder, one after the other."""

    def __init__(self, folder: Path, order: dict[str, Any]) -> None:
        self.folder, self.order = folder, order | {"folder": str(folder)}
        self.number = 0

    def run(self, die: Any = None) -> list[list]:
        """A driver from its start to its end; returns its events."""
        self.number += 1
        scratch = self.folder / f"scratch-{self.number}"
        scratch.mkdir()
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(scratch)}
        text = json.dumps(self.order | {"die": die, "round": self.number})
        command = [sys.executable, "-W", "error", str(Path(__file__).with_name("spout_driver.py")), text]
        with (scratch / "stderr").open("w") as errors:
            process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        told, started = [], set()
        assert process.stdout is not None
        for line in process.stdout:
            told.append(json.loads(line))
            if process.poll() is None:
                started.update(psutil.Process(process.pid).children(recursive=True))
        process.stdout.close()
        code = process.wait(60)
        _, alive = psutil.wait_procs(list(started), timeout=30)
        assert alive == []
        assert code == (0 if die is None else -signal.SIGKILL), (scratch / "stderr").read_text()[-3000:]
        return told


@pytest.mark.parametrize("kind", ["transactional", "opaque"])
def test_drivers_killed_in_the_middle_of_batches_lose_and_double_nothing(kafka: Any, tmp_path: Path, kind: str) -> None:
    topic = kafka.create_topic(partitions=PARTITIONS)
    expected = fill(kafka, topic, 12, seed=1)
    rounds = Rounds(tmp_path, {"bootstrap": kafka.bootstrap, "topic": topic, "kind": kind})
    committed: list[int] = []
    deaths = [["record", 700], ["over", 2], ["record", 50]]
    for step, die in enumerate(deaths if kind == "transactional" else deaths[1:]):
        committed += [event[1] for event in rounds.run(die) if event[0] == "committed"]
        expected += fill(kafka, topic, 1, seed=10 + step)  # while no driver runs
    told = rounds.run()
    committed += [event[1] for event in told if event[0] == "committed"]
    assert told[-1][0] == "done" and told[-1][1] >= sum(expected.values()) / 100 / BATCH
    assert sorted(set(committed)) == list(range(1, told[-1][1] + 1)), "every txid, whoever ran it"
    assert sums(tmp_path) == expected


@pytest.fixture(scope="module")
def started(own_kafka_of_module: Callable[[], Any]) -> Any:
    return own_kafka_of_module()


@pytest.fixture
def broker(started: Any) -> Any:
    """One broker for all tests that kill it; each finds it running."""
    if not started.running:
        started.restart()
    return started


def test_a_broker_killed_while_batches_run_loses_and_doubles_nothing(broker: Any, tmp_path: Path) -> None:
    topic = broker.create_topic(partitions=PARTITIONS)
    expected = fill(broker, topic, 12, seed=2)
    order = {"bootstrap": broker.bootstrap, "topic": topic, "kind": "transactional", "folder": str(tmp_path)}
    order["options"] = {"endingOffsets": None, "maxRecordsPerBatch": 200}
    with LocalCluster(str(tmp_path / "checkpoints")) as cluster:
        running = cluster.submitTopology("sums", {}, topology(order))
        eventually(lambda: (running.txid or 0) >= 3 or running.exception)
        broker.kill()
        broker.restart()
        expected += fill(broker, topic, 3, seed=3)
        eventually(lambda: running.exception or sum(sums(tmp_path).values()) >= sum(expected.values()))
        (progress,) = running.progress.values()  # the marker of the last transaction may come behind its records
        eventually(lambda: running.exception or set(progress.backlog.get("records", {}).values()) == {0})
        running.stop()
        assert running.exception is None
        assert sums(tmp_path) == expected


def test_while_the_broker_is_away_batches_fail_and_are_read_whole_afterwards(broker: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("trident_py.kafka.reader.STALLED", 0.5)
    monkeypatch.setattr("trident_py.kafka.reader.ANSWER", 0.1)
    topic = broker.create_topic()
    produce(broker, topic, map(str, range(100)))
    player = Player(KafkaSpout(broker.bootstrap, topic, fields="value", value="string", maxRecordsPerBatch=60))
    player.logged[1] = player.coordination.initialize(1, 0, None, None)
    broker.kill()
    with pytest.raises(FailedException, match=f"{topic}|{broker.bootstrap}"):  # whatever is met first
        player.emit(1, 1)
    assert not player.coordination.ready(2)
    broker.restart()
    read: list[list] = []
    eventually(lambda: read or tried(lambda: read.append(player.emit(1, 2))))
    player.commit(1, 2)
    assert values(read) == [str(n) for n in range(60)]
    assert values(when_ready(player, 2)) == [str(n) for n in range(60, 100)]
    player.close()


def test_a_log_that_was_cut_inside_a_range_holds_nothing_up(broker: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("trident_py.kafka.reader.STALLED", 0.5)
    topics = {kind: broker.create_topic() for kind in ("transactional", "opaque")}
    made: dict[str, list[Player]] = {}
    for kind, topic in topics.items():
        produce(broker, topic, map(str, range(10)))
        spout = KafkaSpout(broker.bootstrap, topic, kind=kind, fields="value", value="string")
        made[kind] = [Player(spout), Player(spout)]
        made[kind][0].logged[1] = made[kind][0].coordination.initialize(1, 0, None, None)
    cut(broker, *topics.values())
    read = {}
    for kind, topic in topics.items():
        produce(broker, topic, ["a", "b"])
        player, tasks = made[kind]
        (descriptor,) = player.coordination.descriptors(1, 0, player.logged[1])
        read[kind] = outcome_of(lambda: tasks._emit(descriptor, TransactionAttempt(1, 0)))  # noqa: B023
    assert "offsets 2 to 9 are lost: the log goes from 0 to 2" in str(read["transactional"])
    assert read["opaque"] == [("a",), ("b",)]
    player = made["opaque"][0]
    eventually(lambda: player.coordination.ready(2) and player.reported)  # for a batch that stores the new position
    produce(broker, topics["opaque"], ["c"])
    assert values(when_ready(player, 2)) == ["c"], "it went on at the new end"
    for each in sum(made.values(), []):  # noqa: RUF017
        each.close()


def outcome_of(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except SpoutError as error:
        return error


def cut(broker: Any, *topics: str) -> None:
    """Takes all records out of partition 0 of each topic, as an unclean election would."""
    broker.kill()
    data = Path(broker.folder) / "data"
    for topic in topics:
        for file in (data / f"{topic}-0").iterdir():
            if file.suffix in (".log", ".index", ".timeindex", ".snapshot"):
                file.unlink()
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        kept = [line for line in (data / name).read_text().splitlines()[2:] if line.split()[0] not in topics]
        (data / name).write_text("\n".join(["0", str(len(kept)), *kept, ""]))
    broker.restart()


def test_a_run_ends_soon_although_the_broker_is_gone(broker: Any) -> None:
    topic = broker.create_topic()
    produce(broker, topic, map(str, range(20)))
    player = Player(KafkaSpout(broker.bootstrap, topic, maxRecordsPerBatch=4))
    player.batch(1)
    broker.kill()
    closing = threading.Thread(target=player.close)
    closing.start()
    closing.join(10)
    assert not closing.is_alive()


def tried(call: Callable[[], Any]) -> None:
    """A replay may fail until the broker is up."""
    with contextlib.suppress(FailedException):
        call()


@pytest.mark.whole("test_drivers_killed_in_the_middle_of_batches_lose_and_double_nothing")
@pytest.mark.spark
def test_drivers_on_spark_killed_in_the_middle_of_batches_lose_and_double_nothing(kafka: Any, tmp_path: Path) -> None:
    topic = kafka.create_topic(partitions=PARTITIONS)
    expected = fill(kafka, topic, 5, seed=4)
    rounds = Rounds(tmp_path, {"bootstrap": kafka.bootstrap, "topic": topic, "kind": "transactional", "spark": True})
    rounds.run(["record", 400])
    told = rounds.run()
    assert told[-1][0] == "done"
    assert sums(tmp_path) == expected
