"""`trident compare --topology` shows the tuples of the divergent batch, or says why it cannot; it changes nothing."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import diverging
import pytest
from click.testing import CliRunner, Result
from test_compare import dump, ours

from trident_py import LocalCluster
from trident_py.cli import trident

PAGE = Path(__file__).parents[3] / "docs" / "moving.md"

LINES = {"p": ["a b", "b", "c", "a a", "b"], "q": ["c c", "a", "b a"]}


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a topology of `diverging` to its end; returns its state ``c``."""
    monkeypatch.setattr(diverging.Lines, "emitted", LINES)

    def run(build: str, conf: dict[str, Any] | None = None, **place: Any) -> str:
        state = ours(tmp_path, {}, **place)
        file = Path(state.rpartition(":")[0])
        document = json.loads(file.read_text())
        document["states"]["first"] = {**document["states"]["c"], "table": "first"}
        file.write_text(json.dumps(document))
        monkeypatch.setenv("DIVERGING_STATES", str(file))
        with LocalCluster(str(tmp_path / "checkpoints")) as cluster:
            running = cluster.submitTopology("d", conf or {}, getattr(diverging, build)().build())
            running.awaitTermination()
        return state

    return run


def compare(folder: Path, build: str, left: str, right: str, *more: str) -> Result:
    named = ("--topology", f"diverging:{build}", "--name", "d", "--checkpoint", str(folder / "checkpoints"))
    before = digests(folder)
    done = CliRunner().invoke(trident, ["compare", left, right, *named, *more])
    assert digests(folder) == before
    return done


def digests(folder: Path) -> dict[Path, str]:
    """Return what all files hold: states and checkpoints."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.suffix not in (".db-wal", ".db-shm")]
    return {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def shown(done: Result) -> list[str]:
    """Return what stands behind both values."""
    assert done.exit_code == 1, done.output
    lines = done.stdout.splitlines()
    return lines[next(number for number, line in enumerate(lines) if line.startswith("    right")) + 1 :]


@pytest.mark.parametrize("build", ["transactional", "opaque"])
def test_the_tuples_that_touch_the_key_are_shown(build: str, ran: Any, tmp_path: Path) -> None:
    state = ran(build)
    left = dump(tmp_path / "storm", {"a": [2, 4, 2], "b": [3, 4, 3], "c": [2, 3, 2]})
    assert shown(compare(tmp_path, build, left, state, "--kind", "opaque")) == [
        "  batch 2 of d/lines: 3 tuples; those of the key:",
        "    lines, partition 0: line='a a'",
        "    lines, partition 1: line='b a'",
    ]
    assert shown(compare(tmp_path, build, left, state, "--kind", "opaque", "--tuples", "1")) == [
        "  batch 2 of d/lines: 3 tuples; those of the key:",
        "    lines, partition 0: line='a a'",
        "    and more (--tuples)",
    ]


def test_a_batch_without_the_key_is_shown_as_it_is(ran: Any, tmp_path: Path) -> None:
    state = ran("transactional")
    left = dump(tmp_path / "storm", {"a": [2, 5, 2], "b": [3, 4, 3], "c": [4, 9, 8]})
    assert shown(compare(tmp_path, "transactional", left, state, "--kind", "opaque")) == [
        "  batch 3 of d/lines (an earlier one, not shown, may be it): 1 tuple; none of them alone touches the key",
        "    lines, partition 0: line='b'",
    ]


def test_a_batch_that_may_not_be_the_one_says_so(ran: Any, tmp_path: Path) -> None:
    """No transactional value proves in which batch it became what it is."""
    state = ran("transactional", kind="transactional")
    left = dump(tmp_path / "storm", {"a": [2, 6], "b": [3, 4], "c": [2, 3]})
    done = compare(tmp_path, "transactional", left, state, "--kind", "transactional")
    assert "first: key ['a'], in or before batch 2" in done.stdout
    head, *tuples = shown(done)
    assert head == "  batch 2 of d/lines (an earlier one, not shown, may be it): 3 tuples; those of the key:"
    assert len(tuples) == 2


def test_a_global_aggregate_is_touched_by_all(ran: Any, tmp_path: Path) -> None:
    state = ran("totals", key=None)
    done = compare(tmp_path, "totals", dump(tmp_path / "s", {"$GLOBAL$": [3, 7, 7]}), state, "--kind", "opaque")
    assert shown(done) == ["  batch 3 of d/lines: 1 tuple; those of the key:", "    lines, partition 0: line='b'"]


@pytest.mark.parametrize("keyless", [False, True])
def test_rows_are_found_by_the_columns_of_their_key(keyless: bool, ran: Any, tmp_path: Path) -> None:
    lines = {"p": ["1 x", "2 y", "3 z"], "q": ["4 x", "5 y"]}
    diverging.Lines.emitted = lines
    key = {"type": "append", "key": None} if keyless else {"type": "insert-ignore", "key": "id"}
    state = ran("rows", kind=None, value=None, columns=["id string", "text string"], txid="batch", **key)
    left = tmp_path / "storm.csv"
    left.write_text("number,text\n1,x\n2,y\n4,x\n5,z\n3,z\n")
    done = compare(tmp_path, "rows", str(left), state, "--rename", "number=id", "--json")
    found = json.loads(done.stdout)["first"]
    assert found["key"] == ([{"id": "5", "text": "y"}] if keyless else ["5"])
    assert found["tuples"]["shown"] == ["lines, partition 0: line='5 y'"]


def test_keys_of_the_left_side_have_their_own_names(ran: Any, tmp_path: Path) -> None:
    state = ran("transactional")
    (tmp_path / "keys.csv").write_text("a,A\nb,B\nc,C\n")
    right = dump(tmp_path / "storm", {"A": [2, 4, 2], "B": [3, 4, 3], "C": [2, 3, 2]})
    keys = ("--map", str(tmp_path / "keys.csv"), "--kind", "opaque")
    assert len(shown(compare(tmp_path, "transactional", state, right, *keys))) == 3


UNKNOWN = "  the tuples of its batch are not known: "


@pytest.mark.parametrize(
    ("build", "left", "conf", "text"),
    [
        ("fixed", [9, 3, 2], {}, "d/lines is at batch 3"),
        ("fixed", [1, 9, None], {"topology.txid.kept": 1}, "the log of d/lines reaches back to batch 2 (topology.txid"),
        ("fixed", [1, 9, None], {"topology.txid.base": 1}, "d/lines began behind batch 1"),
        ("forgetful", [1, 9, None], {}, "spout 'lines': it does not emit a batch again"),
    ],
)
def test_why_a_batch_is_not_known(
    build: str, left: Any, conf: dict[str, Any], text: str, ran: Any, tmp_path: Path
) -> None:
    state = ran(build, conf)
    values = {"a": left, "b": [2, 3, 2], "c": [3, 2, 1]}
    (told,) = shown(compare(tmp_path, build, dump(tmp_path / "s", values), state, "--kind", "opaque"))
    assert told.startswith(UNKNOWN + text), told


def test_a_source_that_has_changed_is_noticed(ran: Any, tmp_path: Path) -> None:
    state, left = ran("opaque"), dump(tmp_path / "s", {"a": [2, 5, 2], "b": [3, 5, 3], "c": [2, 3, 2]})
    diverging.Lines.emitted = {"p": LINES["p"][:3], "q": LINES["q"]}
    told = shown(compare(tmp_path, "opaque", left, state, "--kind", "opaque"))
    assert told == [UNKNOWN + "spout 'lines' is opaque, and emits another batch now"]


def test_without_a_batch_or_a_topology_that_is_said(ran: Any, tmp_path: Path) -> None:
    state, left = ran("fixed", kind="non-transactional"), dump(tmp_path / "s", {"a": 9})
    plain = ("--kind", "non-transactional")
    assert shown(compare(tmp_path, "fixed", left, state, *plain)) == [UNKNOWN + "no side says in which batch"]
    (told,) = shown(CliRunner().invoke(trident, ["compare", left, state, *plain]))
    assert told.startswith(UNKNOWN + "name the topology of its run")
    done = compare(tmp_path, "fixed", left, left.replace("/s", "/other"), *plain)
    dump(tmp_path / "other", {"a": 8})
    done = compare(tmp_path, "fixed", left, str(tmp_path / "other"), *plain)
    assert (done.exit_code, "it writes neither" in done.output) == (2, True), done.output


def test_behind_another_state_the_whole_batch_is_shown(ran: Any, tmp_path: Path) -> None:
    state = ran("behind")
    told = shown(compare(tmp_path, "behind", dump(tmp_path / "s", {"a": [2, 9, 8]}), state, "--kind", "opaque"))
    assert told[0].endswith(
        "which of them touch the key is not known: they pass state 'first', which is not asked again"
    )
    assert len(told) == 5


WORDS = """
import states
from trident_py import TridentTopology
from trident_py.operations.builtin import Count
from trident_py.testing import FixedBatchSpout

def build():
    topology = TridentTopology()
    spout = FixedBatchSpout("sentence", 3, ("apple",), ("candy",), ("or",), ("candy or apple",), ("sun",),
                            ("candy and candy",), ("sun",))
    words = topology.newStream("sentences", spout).each("sentence", lambda text: text.split(), "word")
    words.groupBy("word").persistentAggregate(states.load("states.yaml")["counts"], Count(), "count")
    return topology
"""


def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL)
    typed, *printed = next(block for block in blocks if "--topology" in block.partition("\n")[0]).splitlines()
    ours(tmp_path, {})
    file = tmp_path / "states.yaml"
    file.write_text(file.read_text().replace('"c"', '"counts"').replace("/c.db", "/counts.db"))
    values = {"apple": [2, 2, 1], "or": [2, 2, 1], "candy": [2, 3, 1], "sun": [3, 2, 1], "and": [2, 1, None]}
    dump(tmp_path / "storm.jsonl", values)
    (tmp_path / "words.py").write_text(WORDS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    run = CliRunner().invoke(trident, ["run", "words:build", "--local"])
    assert run.exit_code == 0, run.output
    done = CliRunner().invoke(trident, typed.removeprefix("$ trident ").split())
    assert done.stdout.replace(str(tmp_path), "/home/you").splitlines() == printed, done.output


@pytest.mark.servers
def test_records_of_kafka_that_are_gone_are_told(kafka: Any, redis: str, tmp_path: Path, monkeypatch: Any) -> None:
    import shadow_words
    from confluent_kafka import Producer, TopicPartition
    from confluent_kafka.admin import AdminClient

    topic, producer = kafka.create_topic(partitions=1), Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(40):
        producer.produce(topic, f"w{number % 10} n{number}".encode())
    producer.flush()
    monkeypatch.setenv("SHADOW_KAFKA", kafka.bootstrap)
    monkeypatch.setenv("SHADOW_TOPIC", topic)
    monkeypatch.chdir(tmp_path)
    ours(tmp_path, {}, type="redis-map", url=redis, hash=topic, table=None, key=None, value=None)
    file = tmp_path / "states.yaml"
    file.write_text(file.read_text().replace('"c"', '"counts"'))
    with LocalCluster(str(tmp_path / "checkpoints")) as cluster:
        assert cluster.submitTopology("d", {}, shadow_words.build().build()).awaitTermination(120)
    values: dict[str, Any] = {f"w{n}": [2, 4, 3 if n < 5 else 2] for n in range(10)}
    values |= {f"n{n}": [n // 25 + 1, 1, None] for n in range(40)}
    left = dump(tmp_path / "storm", values | {"w7": [2, 5, 2]})
    more = ("--kind", "opaque", "--topology", "shadow_words:build", "--name", "d", "--checkpoint", "checkpoints")
    command = ["compare", left, f"{file}:counts", *more]
    told = shown(CliRunner().invoke(trident, command))
    assert told == ["  batch 2 of d/sentences: 15 tuples; those of the key:",
                    *(f"    sentences, partition 0: value='w7 n{n}'" for n in (27, 37))]  # fmt: skip
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for deleted in admin.delete_records([TopicPartition(topic, 0, 30)]).values():
        deleted.result(60)
    told = shown(CliRunner().invoke(trident, command))
    assert told[:2] == ["  batch 2 of d/sentences: 10 tuples; those of the key:",
                        "    sentences, partition 0: value='w7 n37'"]  # fmt: skip
    assert "offsets 25 to 29 are lost" in told[2], told
