"""`trident shadow`: ours runs beside Storm, writes nothing that is Storm's, and is compared as it goes."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from test_compare import dump, ours

from trident_py.cli import trident
from trident_py.extras.moving.divergence import Rules, Version
from trident_py.extras.moving.shadow_comparison import ShadowComparison, StandingKeys
from trident_py.extras.moving.sides import ComparisonOptions

WORDS = """
import states
from trident_py import TridentTopology
from trident_py.operations.builtin import Count
from trident_py.testing import FixedBatchSpout

def build():
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word", 2, ("a",), ("b",), ("a",), ("c",)))
    words.groupBy("word").persistentAggregate(states.load("states.yaml")["c"], Count(), "count")
    return topology
"""
NAMED = 0
ROOT = Path(__file__).parents[3]


def shadow(folder: Path, *arguments: str, words: str = WORDS) -> Result:
    """Run the command on a topology of that source, in this folder."""
    global NAMED
    NAMED += 1
    (folder / f"shadowed{NAMED}.py").write_text(words)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        command = ["shadow", f"shadowed{NAMED}:build"]
        return CliRunner().invoke(trident, [*command, "--name", "words", *arguments, "--local"])


def compared(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "shadow.jsonl").read_text().splitlines()]


def test_a_run_to_the_end_is_compared_and_drawn(tmp_path: Path) -> None:
    state = ours(tmp_path, {}, table="counts_shadow")
    storms = dump(tmp_path / "storm", {"a": [2, 2, 1], "b": [1, 1, None], "c": [2, 1, None]})
    common = (storms, state, "--kind", "opaque", "--every", "0.05", "--picture", "p.html")
    done = shadow(tmp_path, *common)
    assert done.exit_code == 0, done.output
    first, *_, last = compared(tmp_path)
    assert (first["equal"], first["only_left"], last["equal"], last["standing"]) == (0, 3, 3, 0)
    assert "; 3 equal, 0 different, 0 only left, 0 only right; 0 stay different" in done.stdout.splitlines()[-1]
    page = (tmp_path / "p.html").read_text()
    assert page.count("<svg") == 2 and "agreement, in percent" in page and "src=" not in page and "<link" not in page
    dump(tmp_path / "storm", {"a": [2, 3, 1], "b": [1, 1, None], "c": [2, 1, None]})
    done = shadow(tmp_path, *common, "--times", "2")
    assert done.exit_code == 1, done.output
    *_, before, last = compared(tmp_path)
    assert (before["different"], last["standing"], last["first"]["key"]) == (1, 1, "['a']")
    assert last["first"]["left"].startswith("3 (txid 2") and last["first"]["right"].startswith("2 (txid 2")


IN_A_FILE = """
name: words
states: states.yaml
streams:
  words:
    newStream:
      spout: {className: FileSpout, constructorArgs: {paths: words.txt, fields: word string, batchSize: 2}}
    operations:
      - groupBy: word
      - persistentAggregate: {state: c, agg: Count, functionFields: count}
"""


def test_files_are_named_from_the_folder_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the topology file becomes the current one when it is loaded."""
    (tmp_path / "here").mkdir()
    (tmp_path / "app").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    ours(tmp_path / "app", {}, table="counts_shadow")
    Path("../app/trident.yml").write_text(IN_A_FILE)
    Path("../app/words.txt").write_text("a\nb\na\n")
    Path("names.csv").write_text("x,a\ny,b\n")
    with closing(sqlite3.connect("storm.db")) as storm:
        storm.executescript("CREATE TABLE t (k text, v bigint); INSERT INTO t VALUES ('x', 2), ('y', 1)")
    sides = ("sqlite:///storm.db", "../app/states.yaml:c", "--table", "t", "--key", "k", "--value", "v")
    command = ("shadow", "../app/trident.yml", *sides, "--kind", "non-transactional", "--map", "names.csv")
    done = CliRunner().invoke(trident, [*command, "--every", "0.05", "--local"])
    assert done.exit_code == 0, done.output
    assert compared(tmp_path / "here")[-1]["equal"] == 2 and not (tmp_path / "app/storm.db").exists()


def test_a_key_stays_different_if_both_sides_stand_still() -> None:
    standing, rules = StandingKeys(3), Rules()
    moving = [(1, 5), (2, 5), (3, 5), (3, 5)]
    for at, (left, right) in enumerate(moving):
        standing.begin()
        standing.leave_out()  # a side could not be read
        standing.begin()
        standing.note(rules.diverge(("stands",), Version(1), Version(2)))
        standing.note(rules.diverge(("moves",), Version(left), Version(right)))
        if at != 1:
            standing.note(rules.diverge(("was equal",), Version(1), Version(2)))
        assert standing.count == int(at >= 2)
    standing.begin()
    standing.note(rules.diverge(("moves",), Version(3), Version(5)))
    assert standing.count == 1 and standing.first is not None and standing.first.key == ("moves",)


def comparing(left: str, right: str, lines: Path) -> ShadowComparison:
    lay = dict.fromkeys(("hash_", "match", "table", "txid", "batch")) | dict.fromkeys(("key", "value", "previous"), ())
    options = ComparisonOptions(left, right, "non-transactional", None, False, (), (), None, 0.0, (), False, lay)
    return ShadowComparison(options, 0.01, 1, lines, None, True)


def test_a_comparison_that_cannot_be_kept_is_not_the_last_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both, lines = dump(tmp_path / "l", {"a": 1}), tmp_path / "late" / "shadow.jsonl"
    running: Any = type("Running", (), {"progress": {}, "stopping": threading.Event()})
    with comparing(both, both, lines).follow(running):
        time.sleep(0.1)
        lines.parent.mkdir()  # as a disk that is no longer full
        deadline = time.monotonic() + 10
        while not lines.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert lines.exists()
    assert "this comparison was not kept: " in capsys.readouterr().err


def test_a_side_that_cannot_be_read_for_a_while_is_told(tmp_path: Path) -> None:
    left, right = dump(tmp_path / "l", [("a", 1), ("a", 2)]), dump(tmp_path / "r", {"a": 1})
    agreement = comparing(left, right, tmp_path / "shadow.jsonl")
    running: Any = type("Running", (), {"progress": {}})
    agreement.look(running)
    assert "comes twice" in compared(tmp_path)[0]["error"] and not agreement.equal
    dump(tmp_path / "l", {"a": 1})
    agreement.look(running)
    assert agreement.equal and compared(tmp_path)[1]["equal"] == 1


def test_a_signal_behind_the_end_ends_the_wait_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = ours(tmp_path, {}, table="counts_shadow")
    before = threading.Event.wait

    def wait(self: Any, timeout: float | None = None) -> bool:
        if timeout == 77.0 and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return before(self, timeout)

    monkeypatch.setattr(threading.Event, "wait", wait)
    done = shadow(tmp_path, dump(tmp_path / "storm", {"a": [2, 3, 1]}), state, "--kind", "opaque", "--every", "77")
    assert (done.exit_code, len(compared(tmp_path))) == (1, 2), done.output


ANYWHERE = WORDS + """
from trident_py.state import StateFactory

class Anywhere(StateFactory):
    def makeState(self, conf, metrics, partitionIndex, numPartitions): ...

def build():
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word", 2, ("a",)))
    words.groupBy("word").persistentAggregate(Anywhere(), Count(), "count")
    return topology
"""
GROUP = """
from trident_py.kafka import KafkaSpout
""" + WORDS.replace(
    'FixedBatchSpout("word", 2, ("a",), ("b",), ("a",), ("c",))',
    'KafkaSpout("127.0.0.1:1", "t", value="string", fields="value", groupId="g", shareOffsets=True)',
).replace('"word").pers', '"value").pers')


@pytest.mark.parametrize(
    ("table", "more", "words", "text"),
    [
        ("counts", (), WORDS, "state 'counts', table 'counts' in sqlite:///"),
        ("shadow/counts", (), WORDS, "state 'shadow/counts', table 'shadow/counts' in"),
        ("counts_shadow", ("--checkpoint", "shadow/checkpoints"), WORDS, "the checkpoint shadow/checkpoints could be"),
        ("counts_shadow", (), ANYWHERE, "does not say where its data is, so it may be Storm's"),
        ("counts_shadow", (), GROUP, "the group of spout 'words' could be that of production"),
        ("counts_shadow", ("--left", "sqlite:///c.db", "--table", "counts_SHADOW", "--key", "k", "--value", "v"), WORDS,
         "the left side, counts_SHADOW, has 'shadow' in its name"),
        ("counts_shadow", ("--right", "other.yaml:c"), WORDS, "the topology does not write table 'other_shadow' in"),
        ("counts_shadow", ("--right", "storm"), WORDS, "must be FILE:STATE, a state of the topology"),
    ],
)  # fmt: skip
def test_what_could_be_storms_is_refused(table: str, more: Any, words: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = ours(tmp_path / "other", {}, table="other_shadow").rpartition(":")[0]
    Path(other).rename(tmp_path / "other.yaml")
    right, left = ours(tmp_path, {}, table=table), dump(tmp_path / "storm", {"a": 1})
    options = dict(zip(more[::2], more[1::2], strict=True))
    left, right = options.pop("--left", left), options.pop("--right", right)
    rest = [part for pair in options.items() for part in pair]
    done = shadow(tmp_path, left, right, "--kind", "non-transactional", *rest, words=words)
    assert (done.exit_code, text in " ".join(done.output.split())) == (2, True), done.output
    assert not (tmp_path / "c.db").exists() and not list(tmp_path.glob("*checkpoints"))
    assert not (tmp_path / "shadow.jsonl").exists()


def play_storm(url: str, name: str, sentences: list[str]) -> None:
    """Write the word count into a hash of Redis as Storm does, batch after batch."""
    import redis as client

    server, counts = client.from_url(url), Counter[str]()
    for txid, at in enumerate(range(0, len(sentences), 10), 1):
        for word, more in Counter(" ".join(sentences[at : at + 10]).split(" ")).items():
            before = counts[word] or None
            counts[word] += more
            server.hset(name, word, json.dumps([txid, counts[word], before]))
        time.sleep(0.02)


def run_on_spark(folder: Path, *arguments: str, words: str) -> tuple[int, str]:
    """Run the command as it is typed, in a process of its own; return its exit code and all that it printed."""
    (folder / "on_spark.py").write_text(words)
    command = [sys.executable, "-W", "error", "-m", "trident_py", "shadow", "on_spark:build", "--master", "local[2]"]
    done = subprocess.run(
        [*command, *arguments], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, capture_output=True
    )
    return done.returncode, done.stdout + done.stderr


def run_locally(folder: Path, *arguments: str, words: str) -> tuple[int, str]:
    done = shadow(folder, *arguments, words=words)
    return done.exit_code, done.output


@pytest.mark.servers
@pytest.mark.parametrize("run", [run_locally, pytest.param(run_on_spark, marks=(pytest.mark.spark, pytest.mark.whole))])
def test_beside_a_storm_that_still_counts(
    run: Any, kafka: Any, redis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from confluent_kafka import Producer

    topic, sentences = kafka.create_topic(partitions=2), [f"w{n % 7} w{n % 11} w{n % 13}" for n in range(400)]
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number, sentence in enumerate(sentences):
        producer.produce(topic, sentence.encode(), partition=number % 2)
    producer.flush()
    monkeypatch.setenv("SHADOW_KAFKA", kafka.bootstrap)
    monkeypatch.setenv("SHADOW_TOPIC", topic)
    state = ours(tmp_path, {}, type="redis-map", url=redis, hash=f"{topic}_shadow", table=None, key=None, value=None)
    words = (Path(__file__).parent / "shadow_words.py").read_text().replace('["counts"]', '["c"]')
    storm = threading.Thread(target=play_storm, args=(redis, topic, sentences))
    storm.start()
    common = (redis, state, "--kind", "opaque", "--hash", topic, "--every", "0.05", "--times", "40")
    code, shown = run(tmp_path, *common, words=words)
    storm.join()
    assert code == 0, shown
    found = compared(tmp_path)
    assert found[-1]["equal"] == 13 and found[-1]["lag"] == 0, found[-1]
    assert any(each["different"] or each["only_left"] or each["only_right"] for each in found[:-1])


@pytest.mark.servers
def test_in_the_hash_of_storm_nothing_starts(redis: str, tmp_path: Path) -> None:
    import redis as client

    name = tmp_path.name
    client.from_url(redis).hset(name, "a", "[3,7,5]")
    for hash_ in (name, None):
        place = {"type": "redis-map", "url": redis, "hash": hash_, "table": None, "key": None, "value": None}
        state = ours(tmp_path, {}, **place)
        done = shadow(tmp_path, redis, state, "--kind", "opaque", "--hash", name)
        assert done.exit_code == 2 and "could be that of production" in done.output, done.output
    assert client.from_url(redis).hgetall(name) == {b"a": b"[3,7,5]"}
