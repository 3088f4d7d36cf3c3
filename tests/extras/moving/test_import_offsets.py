"""`trident import offsets` and `state` on what real Storm has left (`data/`): the run goes on, nothing counts twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer, TopicPartition

import states
from trident_py import LocalCluster, TridentTopology
from trident_py.cli import trident
from trident_py.engine.program import compile_plan
from trident_py.errors import DefinitionError
from trident_py.extras.moving import offsets
from trident_py.extras.moving.checkpoint import find_moved
from trident_py.extras.moving.offsets import ImportAnswers, find_position
from trident_py.extras.moving.storm_stream import StormStream
from trident_py.extras.txid.components import component_of, components_in
from trident_py.kafka import KafkaSpout
from trident_py.kafka.topic_metadata import ExistingTopic
from trident_py.model.context import with_context
from trident_py.spouts import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout, ITridentSpout

DATA = Path(__file__).parent / "data"
KILLED = ["opaque", "transactional"]


@dataclass
class Left:
    """What a killed Storm has left, with the topic filled again: a dump of its nodes, a dump of its state."""

    kind: str
    topic: str
    folder: Path
    sentences: list[str]
    bootstrap: str

    @property
    def fold(self) -> dict[str, int]:
        return Counter(word for sentence in self.sentences for word in sentence.split(" "))

    def call(self, *arguments: str) -> Result:
        return CliRunner().invoke(trident, ["import", *arguments])

    def offsets(self, *more: str) -> Result:
        dump = ["--dump", f"{self.folder}/nodes.jsonl"] if "--group" not in more else []
        return self.call("offsets", "moved_words:build", "--checkpoint", f"{self.folder}/checkpoints", *dump, *more)

    def state(self, *more: str) -> Result:
        source = ["--from", f"{self.folder}/values.jsonl", "--kind", self.kind]
        into = ["--into", f"{self.folder}/states.yaml:counts", "--checkpoint", f"{self.folder}/checkpoints"]
        return self.call("state", *source, *into, *more)

    def compare(self, file: str, *more: str) -> Result:
        sides = (f"{self.folder}/{file}", f"{self.folder}/states.yaml:counts")
        return CliRunner().invoke(trident, ["compare", *sides, "--kind", self.kind, *more])

    def run(self) -> dict[str, int]:
        import moved_words

        cluster = LocalCluster(str(self.folder / "checkpoints"))
        cluster.submitTopology("moved_words", {}, moved_words.build().build()).awaitTermination(60)
        stored = states.load(self.folder / "states.yaml")["counts"].stored()
        return {key[0]: value[1] for key, value in stored.items()}


def lines(rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def left(request: pytest.FixtureRequest, kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Left]:
    kind = getattr(request, "param", "opaque")
    data, topic = json.loads((DATA / f"{kind}.json").read_text()), kafka.create_topic(partitions=2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number, sentence in enumerate(data["sentences"]):
        producer.produce(topic, sentence, partition=number % 2)
    producer.flush()
    nodes = lines(data["nodes"]).replace(data["topic"], topic)
    (tmp_path / "nodes.jsonl").write_text(nodes)
    (tmp_path / "values.jsonl").write_text(lines({"key": k, "text": v} for k, v in data["values"].items()))
    state = {"type": "sql-map", "kind": kind, "url": f"sqlite:///{tmp_path}/words.db", "table": "counts",
             "key": "word string", "value": "count bigint"}  # fmt: skip
    (tmp_path / "states.yaml").write_text(json.dumps({"states": {"counts": state}}))
    given = {"KAFKA": kafka.bootstrap, "TOPIC": topic, "KIND": kind, "STATES": f"{tmp_path}/states.yaml"}
    for name, value in given.items():
        monkeypatch.setenv(f"WORDS_{name}", value)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    yield Left(kind, topic, tmp_path, data["sentences"], kafka.bootstrap)


@pytest.mark.servers
@pytest.mark.parametrize("left", KILLED, indirect=True)
def test_a_run_goes_on_where_storm_was_killed(left: Left) -> None:
    offsets = left.offsets()
    assert offsets.exit_code == 0, offsets.output
    assert "was under way" in offsets.output
    assert offsets.output.endswith("refused until `trident import state` fills, or `skip` names: counts\n")
    state = left.state()
    assert state.exit_code == 0, state.output
    told = "skip it when it is repeated" if left.kind == "transactional" else "take the value before it"
    assert told in state.output
    compared = left.compare("values.jsonl", "--checkpoint", f"{left.folder}/checkpoints", "--txids")
    assert (compared.exit_code, "0 different, 0 only left, 0 only right" in compared.output) == (0, True)
    assert left.compare("values.jsonl").exit_code == (left.kind == "opaque"), "only an opaque value was re-based"
    assert left.run() == left.fold


@pytest.mark.servers
def test_a_dry_run_makes_nothing_and_a_second_import_changes_nothing(left: Left) -> None:
    dry = left.offsets("--dry-run")
    assert (dry.exit_code, (left.folder / "checkpoints").exists()) == (0, False)
    made = left.offsets()
    assert made.output.startswith(dry.output)
    journal = left.folder / "checkpoints/moved_words/sentences/journal"
    before = journal.read_bytes()
    assert "there already: the checkpoint" in left.offsets().output
    assert journal.read_bytes() == before
    assert left.state().exit_code == 0
    left.run()
    alone = left.call("offsets", f"{left.folder}/checkpoints", "--dump", f"{left.folder}/nodes.jsonl")
    assert (alone.exit_code, "name the topology" in alone.output) == (2, True)
    refused = left.state()
    assert (refused.exit_code, "its states may hold newer values" in refused.output) == (1, True)
    refused = left.offsets()
    assert (refused.exit_code, "is there already, and not from this import" in refused.output) == (1, True)


@pytest.mark.servers
def test_what_storm_does_not_tell_is_said_with_the_choices(left: Left) -> None:
    nodes = (left.folder / "nodes.jsonl").read_text().splitlines(True)
    some = "".join(line for line in nodes if f"{left.topic}@1/" not in line)
    (left.folder / "nodes.jsonl").write_text(some)
    refused = left.offsets("--dry-run")
    assert refused.exit_code == 2 and f"{left.topic}@1 was in batch 8, the last committed one" in refused.output
    assert left.offsets("--dry-run", "--start", f"{left.topic}@1=12").exit_code == 0
    listed = f',{{\\"partition\\":1,\\"topic\\":\\"{left.topic}\\"}}'
    (left.folder / "nodes.jsonl").write_text(some.replace(listed, ""))
    told = left.offsets("--dry-run").output
    assert f"{left.topic}@1: has no position in Storm; it begins at its beginning, or where --start" in told
    assert f"{left.topic}@1: next offset 12, as told" in left.offsets("--start", f"{left.topic}@1=12").output
    (component,) = components_in(left.folder / "checkpoints")
    last = component.read().last()
    assert last is not None and last.metadata is not None
    assert last.metadata["sentences"][left.topic][1][1] == 12


@pytest.mark.servers
def test_wrong_answers_are_refused(left: Left) -> None:
    for wrong, text in {
        ("--start", "lines=1"): "expected TOPIC@PARTITION=OFFSET",
        ("--txid", "1"): "ours must not be lower",
        ("--stream", "sentences=lines"): "Storm has no stream lines; there are sentences",
        ("--root", "/tx"): "there is /transactional",
        ("--group", "words", "--zookeeper", "localhost:1"): "name one of --zookeeper, --dump and --group",
    }.items():
        refused = left.offsets(*wrong)
        assert (refused.exit_code, text in refused.output) == (2, True), refused.output


@pytest.mark.servers
def test_our_txids_may_be_higher_than_storms(left: Left) -> None:
    assert "here txid 1000" in left.offsets("--txid", "1000").output
    assert left.state().exit_code == 0
    assert left.run() == left.fold
    assert find_moved(components_in(left.folder / "checkpoints")[0]) is not None


@pytest.mark.servers
def test_the_offsets_of_a_consumer_group(left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    import moved_words

    monkeypatch.setattr(moved_words, "SETTINGS", {"client.id": "moved"})
    consumer = Consumer({"bootstrap.servers": left.bootstrap, "group.id": "core-spout"})
    consumer.commit(offsets=[TopicPartition(left.topic, 0, 7)], asynchronous=False)
    consumer.close()
    told = left.offsets("--group", "core-spout").output
    assert f"{left.topic}@0: next offset 7" in told
    assert f"{left.topic}@1: has no position in Storm" in told
    refused = left.offsets("--group", "core-spuot")
    assert refused.exit_code == 2 and f"group core-spuot has committed no offset in {left.topic}" in refused.output
    assert left.offsets("--group", "core-spuot", "--start", f"{left.topic}@0=7", "--dry-run").exit_code == 0


@pytest.mark.servers
def test_a_live_zookeeper_without_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    refused = CliRunner().invoke(trident, ["import", "offsets", "own_spouts:build", "--zookeeper", "127.0.0.1:1"])
    assert (refused.exit_code, "ZooKeeper at 127.0.0.1:1: Connection time-out" in refused.output) == (1, True)
    assert caplog.records == []  # the error says it, and only once


class _Spout:
    def getOutputFields(self) -> str:
        return "value"

    def getCoordinator(self, *arguments: Any) -> Any:
        raise NotImplementedError

    getEmitter = getCoordinator


class Opaque(_Spout, IOpaquePartitionedTridentSpout): ...


class Transactional(_Spout, IPartitionedTridentSpout): ...


class Described(_Spout, ITridentSpout):
    kind = "transactional"


@pytest.mark.parametrize(
    ("spout", "over", "entries", "begun"),
    [
        (Opaque(), {}, {"s/positions": {7: {"p": 70}}}, None),
        (Transactional(), {}, {"s/user/p": {7: 70, 8: 80}}, {"s": "b"}),
        (Described(), {"s": "a"}, {}, {"s": "b"}),
    ],
    ids=["opaque", "transactional", "ITridentSpout"],
)
def test_own_spouts_keep_their_metadata(spout: Any, over: Any, entries: Any, begun: Any, tmp_path: Path) -> None:
    topology = TridentTopology()
    topology.newStream("s", spout).each("value", lambda value: [value], "v")
    (program,) = compile_plan(topology.build().plan, with_context({}, topology="t", run="t-1", home=None))
    storm = StormStream("s", 8, frozenset({8}), {7: "a", 8: "b"}, {"p": {7: 70, 8: 80}})
    position, _ = find_position(component_of(str(tmp_path), program), {"s": storm}, ImportAnswers())
    assert (position.over, position.entries, position.begun) == (over, entries, begun)


def position_of(streams: dict[str, StormStream], folder: Path, **spouts: Any) -> Any:
    topology = TridentTopology()
    merged = [topology.newStream(name, spout) for name, spout in spouts.items()]
    (topology.merge(*merged) if len(merged) > 1 else merged[0]).each("value", lambda value: [value], "v")
    (program,) = compile_plan(topology.build().plan, with_context({}, topology="t", run="t-1", home=None))
    return find_position(component_of(str(folder), program), streams, ImportAnswers())[0]


def begun_from(meta: dict[str, int], starts: dict[Any, int], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the range of the batch to repeat in a partition that no batch before it has: its start, and its end."""
    topology = TridentTopology()
    spout = KafkaSpout("localhost:1", "t", kind="transactional")
    topology.newStream("s", spout).each("value", lambda value: [value], "v")
    (program,) = compile_plan(topology.build().plan, with_context({}, topology="t", run="t-1", home=None))
    monkeypatch.setattr(offsets, "read_topics", lambda info: {"t": ExistingTopic("id", 2)})
    listed = [{"topic": "t", "partition": number} for number in range(2)]
    of_first = {"t@0": {1: meta}, "t@1": {1: {"firstOffset": 0, "lastOffset": 4}}}
    storm = StormStream("s", 1, frozenset({1}), {1: listed}, of_first)
    position, _ = find_position(component_of(str(folder), program), {"s": storm}, ImportAnswers(starts=starts))
    assert position.begun is not None
    _, ends, begins = position.begun["s"]["t"]
    assert position.over["s"]["t"][1][0] == dict(begins).get(0, ends[0]), "the batch begins where the position is"
    return dict(begins).get(0), ends[0]


def test_a_repeated_batch_has_each_partition_of_storms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only, later = {"firstOffset": 0, "lastOffset": 0}, {"firstOffset": 5, "lastOffset": 5}
    assert begun_from(only, {}, tmp_path, monkeypatch) == (0, 1)
    assert begun_from(only, {("t", 0): 0}, tmp_path, monkeypatch) == (0, 1)
    with pytest.raises(DefinitionError, match=r"whether the record at offset 5 .* --start t@0=5, .* --start t@0=6"):
        begun_from(later, {}, tmp_path, monkeypatch)
    assert begun_from(later, {("t", 0): 5}, tmp_path, monkeypatch) == (5, 6)
    assert begun_from(later, {("t", 0): 6}, tmp_path, monkeypatch) == (None, 6)
    for meta, wrong in ((only, 1), (only, 2), (later, 4), (later, 7), ({"firstOffset": 3, "lastOffset": 9}, 5)):
        with pytest.raises(DefinitionError, match=rf"--start t@0={wrong}: the batch under way begins at offset"):
            begun_from(meta, {("t", 0): wrong}, tmp_path, monkeypatch)


def test_streams_of_which_storm_knows_none_are_refused(tmp_path: Path) -> None:
    storm = StormStream("s", 8, frozenset({8}), {7: "a", 8: "b"}, {"p": {7: 70, 8: 80}})
    with pytest.raises(DefinitionError, match=r"remembers none of its streams typo; it has s\. Name them by --stream"):
        position_of({"s": storm}, tmp_path, typo=Opaque())


def test_a_batch_under_way_of_which_a_part_may_change_is_not_repeated(tmp_path: Path) -> None:
    storm = {name: StormStream(name, 8, frozenset({8}), {7: "a", 8: "b"}, {"p": {7: 70, 8: 80}}) for name in "st"}
    found = position_of(storm, tmp_path, s=Transactional(), t=Opaque())
    assert (found.moved.under_way, found.moved.repeats, found.begun) == (True, False, None)
    assert position_of(storm, tmp_path, s=Transactional(), t=Transactional()).moved.repeats


def test_a_digit_that_is_no_number_is_refused_in_words() -> None:
    refused = CliRunner().invoke(trident, ["import", "offsets", "m:build", "--group", "g", "--start", "t@²=5"])
    assert refused.exit_code == 2 and "--start t@²=5: expected TOPIC@PARTITION=OFFSET" in refused.output
