"""Kafka away, or shut to this user: at a start waited for up to a limit and said, in a run a failed batch; one door."""

from __future__ import annotations

import ast
import json
import logging
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from fenced_broker import fenced_broker
from needed import needed
from servers.waiting import soon
from spout_support import produce
from syntax import nodes
from topic_reading import values

import states.kafka
import trident_py.kafka
from states.kafka import CompactedTopicState, RowUpdater, TopicState, TransactionalTopicState, marks
from states.kafka import producer as transactions
from states.kafka import topic_admin as topics
from states.kafka.compacted import backing, local_table
from states.kafka.compacted import state as compaction
from states.kafka.compacted.backing import CompactedMap
from testbed.kafka_broker import KafkaBroker
from testbed.service import HOST, free_port
from trident_py import LocalCluster, TopologyError, TridentTopology
from trident_py.cli import trident
from trident_py.errors import FailedException, StateError, TridentError
from trident_py.kafka import KafkaSpout, blocking_calls, topic_metadata
from trident_py.kafka.blocking_calls import answer, call_client, connect_admin
from trident_py.kafka.clients import Cluster, code_of, is_passing
from trident_py.model.retry import START_WAIT
from trident_py.state import SILENT, persist
from trident_py.testing import FixedBatchSpout
from trident_py.tuples import Fields, TridentTuple

NOBODY = "127.0.0.1:1"
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me"}
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="a" user_me="right";'


class Guarded(KafkaBroker):
    """A broker with a second door, for those who know the password."""

    def _write_settings(self) -> None:
        at, self.door = f"PLAINTEXT://{HOST}:{self.port}", self.__dict__.get("door") or f"{HOST}:{free_port()}"
        self.options |= {
            "listeners": f"{at},SASL://{self.door},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"{at},SASL://{self.door}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN", "listener.name.sasl.plain.sasl.jaas.config": JAAS,
        }  # fmt: skip
        super()._write_settings()


@pytest.fixture(scope="module")
def broker() -> Iterator[Guarded]:
    """The broker of this module. Who kills it starts it again."""
    with needed("kafka"), Guarded() as made:
        yield made


@pytest.fixture(scope="class")
def hasty() -> Iterator[None]:
    """Nobody waits half a minute for an answer."""
    with pytest.MonkeyPatch.context() as patched:
        for module in (marks, topics, compaction, backing, local_table, transactions):
            patched.setattr(module, "ANSWER", 0.5)
        patched.setattr(transactions, "PATIENCE", 0.5)
        patched.setattr(blocking_calls, "SPARE", 0.2)
        yield


KEYED = {"key": "v string", "value": "v2 string", "partitions": 1}
FACTORIES: dict[str, Callable[[str, str], Any]] = {
    "appended": lambda at, topic: TopicState(at, topic, value="v", partitions=1),
    "transactional": lambda at, topic: TransactionalTopicState(at, topic, value="v", partitions=1),
    "compacted": lambda at, topic: CompactedTopicState(at, topic, **KEYED),
    "opaque": lambda at, topic: CompactedTopicState.opaque(at, topic, **KEYED),
}
CONF = {"topology.name": "t", "trident.state.name": "s", "trident.lineage": "one"}


def topology(factory: Any) -> Any:
    made = TridentTopology()
    stream = made.newStream("s", FixedBatchSpout(Fields("v string", "v2 string"), 1, ("a", "b"), ("c", "d")))
    fields = ["v"] if isinstance(factory, TransactionalTopicState | TopicState) else ["v", "v2"]
    stream.partitionPersist(factory, fields, RowUpdater(), stateName="s")
    return made.build()


def reasons(running: Any, kind: str = "waiting") -> list[str]:
    return [event.reason for event in running.events if event.kind == kind]


# -- states


WAITING = ["appended", "transactional", "compacted"]


@pytest.fixture(scope="module")
def waited(broker: Any) -> dict[str, Any]:
    """The runs of states and of a spout that all began while one broker was away, by kind. They are over."""
    topologies = {kind: topology(FACTORIES[kind](broker.bootstrap, f"made-{kind}")) for kind in WAITING}
    topology_of_spout, topic = TridentTopology(), broker.create_topic()
    spout = KafkaSpout(broker.bootstrap, topic, endingOffsets="latest")
    topology_of_spout.newStream("in", spout).each("value", lambda value: True)
    produce(broker, topic, ["a", "b"])
    broker.kill()
    with LocalCluster() as cluster:
        runs = {kind: cluster.submitTopology(kind, {}, made) for kind, made in topologies.items()}
        runs["spout"] = cluster.submitTopology("spout", {}, topology_of_spout.build())
        for kind in WAITING:
            assert soon(lambda kind=kind: any("Connection refused" in told for told in reasons(runs[kind])))
        assert soon(lambda: len(reasons(runs["spout"], "reported")) > 0), runs["spout"].events
        broker.restart()
        for running in runs.values():
            assert running.awaitTermination(60)
    return runs


@pytest.mark.parametrize("kind", WAITING)
def test_a_start_waits_for_brokers_that_are_away_and_says_so(broker: Any, waited: dict[str, Any], kind: str) -> None:
    for told in reasons(waited[kind]):
        assert told.startswith("waiting for state s, up to ") and START_WAIT in told and broker.bootstrap in told
    assert values(broker.bootstrap, f"made-{kind}").total() == 2


@pytest.mark.parametrize("kind", FACTORIES)
def test_a_start_gives_up_at_its_limit_and_names_the_setting(kind: str) -> None:
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", {START_WAIT: 0}, topology(FACTORIES[kind](NOBODY, "x")))
        with pytest.raises(TopologyError, match=f"state s is unavailable: Kafka at {NOBODY}: ") as told:
            running.awaitTermination(60)
    assert START_WAIT in str(told.value) and "Connection refused" in str(told.value)


@pytest.fixture(scope="class")
def opened(broker: Any, hasty: None) -> Iterator[dict[str, Any]]:
    """A factory of each kind, its participant, and what its tasks are told; the broker is away."""
    made: dict[str, Any] = {}
    for kind, make in FACTORIES.items():
        factory = make(broker.bootstrap, broker.create_topic(cleanup_policy="compact"))
        participant = factory.participant()
        made[kind] = factory, participant, {**CONF, "trident.generation": participant.open(CONF)}
    broker.kill()
    yield made
    broker.restart()


class TestAwayInARun:
    @pytest.mark.parametrize(
        "kind",
        ["transactional", "compacted", *(pytest.param(k, marks=pytest.mark.whole) for k in ("appended", "opaque"))],
    )
    def test_brokers_away_in_a_run_fail_the_batch_never_the_run(
        self, broker: Any, opened: dict[str, Any], kind: str
    ) -> None:
        factory, participant, conf = opened[kind]
        if kind not in ("transactional", "appended"):  # whose driver asks nothing in an ordinary batch
            with pytest.raises(FailedException, match=rf"Kafka at {broker.bootstrap}: .*topic '{factory.topic}'"):
                participant.prepare(1, 0, 1)
        with pytest.raises(FailedException, match=rf"Kafka at {broker.bootstrap}: .*{factory.topic}"):
            written(factory.makeState(conf, None, 0, 1))


def written(state: Any) -> None:
    """A batch of one row, with all that it asks of Kafka."""
    fields = ["v", "v2"] if isinstance(state, CompactedMap) else ["v"]
    persist(state, 1, RowUpdater(), [TridentTuple.of(fields, ("a",) * len(fields))], SILENT)


def test_what_is_asked_without_an_answer_in_time_is_never_an_empty_error(hasty: None) -> None:
    """All that users and the command line call."""
    for make in FACTORIES.values():
        factory = make(NOBODY, "x")
        calls: list[Callable[[], Any]] = [factory.check, lambda made=factory: made.participant().open(CONF)]
        if isinstance(factory, CompactedTopicState):
            calls += [factory.stored, factory.ensure_topic]
        for call in calls:
            with pytest.raises(TridentError) as told:
                call()
            assert NOBODY in str(told.value)
    state = TopicState(NOBODY, "x", value="v").makeState(CONF, None, 0, 1)
    with pytest.raises(FailedException, match=NOBODY):
        state.beginCommit(1)


def test_states_check_says_that_nobody_answers(tmp_path: Path) -> None:
    file = tmp_path / "states.yaml"
    alarms = {"type": "transactional-topic", "bootstrap": NOBODY, "topic": "x", "value": "v"}
    counts = {"type": "compacted-topic", "bootstrap": NOBODY, "topic": "x", "key": "v string", "value": "n bigint"}
    file.write_text(json.dumps({"states": {"alarms": alarms, "counts": counts}}))
    done = CliRunner().invoke(trident, ["states", "check", str(file)])
    assert done.exit_code == 1
    assert done.output.count(f"Kafka at {NOBODY}: could not reach a broker: _TRANSPORT:") == 2, done.output
    assert done.output.count("Connection refused") == 2


# -- a wrong password


def test_a_wrong_password_ends_the_start_at_once_in_words(broker: Any) -> None:
    """Waiting cannot help."""
    topic = broker.create_topic()
    connect_admin(Cluster.of(broker.door, {**SASL, "sasl.password": "right"}))
    wrong = {**SASL, "sasl.password": "hush"}
    made = TridentTopology()
    made.newStream("in", KafkaSpout(broker.door, topic, settings=wrong)).each("value", lambda value: True)
    factory = TransactionalTopicState(broker.door, topic, value="v", settings=wrong)
    for each in (topology(factory), made.build()):
        with LocalCluster() as cluster:
            running = cluster.submitTopology("t", {START_WAIT: 50}, each)
            with pytest.raises(TopologyError) as told:
                running.awaitTermination(60)
        for words in (broker.door, "_AUTHENTICATION", "Invalid username or password", "Check security.protocol"):
            assert words in str(told.value)
        assert "hush" not in str(told.value) and START_WAIT not in str(told.value)
    with pytest.raises(StateError, match="_AUTHENTICATION"):
        factory.check()


# -- the spout


def test_a_spout_gives_up_at_the_limit_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    made = TridentTopology()
    made.newStream("in", KafkaSpout(NOBODY, "words")).each("value", lambda value: True)
    with caplog.at_level(logging.WARNING, "trident_py.kafka"), LocalCluster() as cluster:
        running = cluster.submitTopology("t", {START_WAIT: 1}, made.build())
        with pytest.raises(TopologyError) as told:
            running.awaitTermination(60)
    for words in ("KafkaSpout 'in': Kafka is unreachable", NOBODY, "words", "Connection refused", START_WAIT):
        assert words in str(told.value)
    waiting = [record.message for record in caplog.records if "waiting for Kafka, up to" in record.message]
    assert any("Connection refused" in line for line in waiting)
    assert any("waiting for Kafka" in reason for reason in reasons(running, "reported"))


def test_a_spout_waits_for_brokers_that_come_later(waited: dict[str, Any]) -> None:
    assert waited["spout"].txid == 1


def test_a_spout_says_in_a_run_too_why_nobody_answers(
    broker: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It goes on when they are back."""
    monkeypatch.setattr(topic_metadata, "SILENT", 0.0)
    monkeypatch.setattr(topic_metadata, "AGAIN", 0.0)
    topic = broker.create_topic()
    produce(broker, topic, ["a"])
    made = TridentTopology()
    made.newStream("in", KafkaSpout(broker.bootstrap, topic)).each("value", lambda value: True)
    with caplog.at_level(logging.WARNING, "trident_py.kafka"), LocalCluster() as cluster:
        running = cluster.submitTopology("t", {START_WAIT: 0}, made.build())
        assert soon(lambda: running.txid == 1)
        broker.kill()
        assert soon(lambda: any("Connection refused" in told for told in reasons(running, "reported"))), running.events
        broker.restart()
        produce(broker, topic, ["b"])
        assert soon(lambda: running.txid == 2), running.events
    told = reasons(running, "reported")
    assert "until it answers there are no batches" in told[0] and "answers again" in told[-1]


# -- the door


@pytest.mark.parametrize(("error", "code"), [
    (TimeoutError(), "_TIMED_OUT"), (CancelledError(), "_TIMED_OUT"), (BufferError("full"), "_QUEUE_FULL"),
    (ValueError("odd"), "_INVALID_ARG"), (RuntimeError("closed"), "_STATE"),
])  # fmt: skip
def test_every_error_of_a_client_is_a_kafka_exception(error: Exception, code: str) -> None:
    future: Future[None] = Future()
    future.set_exception(error)
    with pytest.raises(KafkaException) as told:
        answer(future, 1)
    assert code_of(told.value) == code and told.value.__cause__ is error
    assert str(told.value.args[0].str())


def test_a_future_without_an_answer_has_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_calls, "SPARE", 0.0)
    with pytest.raises(KafkaException, match="no answer in time"):
        answer(Future(), 0)


def test_real_clients_that_are_closed_or_full_say_so_as_kafka_exceptions(kafka: Any) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "g"})
    consumer.close()
    with pytest.raises(KafkaException):
        call_client(consumer.consume, 1, 0)
    producer = Producer({"bootstrap.servers": NOBODY, "queue.buffering.max.messages": 1, "log_level": 0})
    with pytest.raises(KafkaException) as told:
        for _ in range(2):
            call_client(producer.produce, "x", b"1")
    assert code_of(told.value) == "_QUEUE_FULL"
    producer.purge()
    assert connect_admin(Cluster.of(kafka.bootstrap)).list_topics(timeout=10).brokers


@pytest.mark.parametrize("fenced", [[1], [2], [1, 2], range(1, 6)], ids=str)
def test_a_broker_that_knows_of_no_broker_yet_is_asked_again(fenced: Collection[int]) -> None:
    """librdkafka's describe_cluster ends the process over such an answer."""
    with fenced_broker(fenced) as broker:
        assert connect_admin(Cluster.of(broker.bootstrap)).list_topics(timeout=10).brokers
    with fenced_broker(range(1000)) as broker, pytest.raises(KafkaException) as told:
        connect_admin(Cluster.of(broker.bootstrap), 0.3)
    assert is_passing(told.value)


METHODS = {name for client in (Consumer, Producer, AdminClient) for name in dir(client) if not name.startswith("_")}
AMBIGUOUS = {"commit", "close", "send", "produce", "poll", "assign", "committed", "flush", "abort", "list_topics"}
HANDLES = {"consumer", "_consumer", "producer", "admin", "_admin", "client", "_client", "made", "sender"}
AT_ONCE = {"close", "assignment", "memberid"}  # they wait for nobody, or their errors do not matter
OWN = {"blocking_calls.py"}


def sources() -> Iterator[Path]:
    for package in (states.kafka, trident_py.kafka):
        yield from sorted(Path(str(package.__file__)).parent.glob("*.py"))


def direct(tree: ast.AST) -> Iterator[str]:
    """Calls of a client's methods, and of a future's result, that do not go through the door."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, of = node.func.attr, node.func.value
        handle = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
        ours = name in AMBIGUOUS and handle not in HANDLES
        if name == "result" or (name in METHODS - AT_ONCE and not ours):
            yield f"line {node.lineno}: {ast.unparse(node.func)}"


ENDS_THE_PROCESS = {"describe_cluster", "list_consumer_group_offsets"}
"""By SIGABRT or SIGSEGV: the one if an answer names no broker, the other if the group's coordinator has moved."""


def test_nothing_asks_what_ends_the_process() -> None:
    asked = {
        f"{path}: {node.attr}"
        for package in (states, trident_py) for path in Path(str(package.__file__)).parent.rglob("*.py")
        for node in nodes(path) if isinstance(node, ast.Attribute) and node.attr in ENDS_THE_PROCESS
    }  # fmt: skip
    assert asked == set() and METHODS >= ENDS_THE_PROCESS


def test_nothing_waits_for_kafka_but_through_the_door() -> None:
    trees = {path.name: ast.parse(path.read_text()) for path in sources() if path.name not in OWN}
    found = {f"{name}, {line}" for name, tree in trees.items() for line in direct(tree)}
    assert found == set()
    strange = "self._admin.describe_topics(x)\nfuture.result(3)\nself.producer.flush()\nsender.producer.poll(0)\n"
    assert len(list(direct(ast.parse(strange)))) == 4
