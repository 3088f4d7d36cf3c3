"""Marks and fences of the Kafka states: what the driver and the partitions find, and what they say of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from contracts.crashing import Driver, in_attempt
from topic_reading import read

from states.kafka import RowUpdater, TransactionalTopicState
from states.kafka import producer as transactions
from states.kafka.ledger import TopicLedger
from states.kafka.marks import DRIVER, HeldMark, Mark, MarkPlace
from states.kafka.owner import Partitions
from states.kafka.producer import TransactionalProducer
from states.kafka.settings import cluster_of
from trident_py.engine.store_position import CheckpointState
from trident_py.errors import DefinitionError, FailedException, StateError, ZombieError
from trident_py.kafka.clients import Cluster
from trident_py.state import SILENT, persist
from trident_py.tuples import TridentTuple


@pytest.fixture
def factory(kafka: Any) -> TransactionalTopicState:
    return TransactionalTopicState(kafka.bootstrap, kafka.create_topic(partitions=2), value="v")


ABANDON = {"topology.lineage.abandon": "first"}


def rows(*values: str) -> list[TridentTuple]:
    return [TridentTuple.of(["v"], (each,)) for each in values]


def stored(factory: TransactionalTopicState) -> list[str]:
    return sorted((each.value or b"").decode() for each in read(factory.bootstrap, factory.topic))


def driver(
    factory: TransactionalTopicState, lineage: str = "first", standing: CheckpointState | None = None, **more: Any
) -> Driver:
    return Driver(factory, RowUpdater(), lineage, standing, **more)


def place(factory: TransactionalTopicState) -> MarkPlace:
    return MarkPlace(factory.cluster, factory.topic, "contract", "s")


def state(factory: TransactionalTopicState, of: Driver, txid: int, attempt: int = 0, partitions: int = 1) -> Any:
    return factory.makeState(of.conf | {"trident.context": in_attempt(txid, attempt)}, None, 0, partitions)


def test_a_mark_tells_what_a_partition_has_written_and_of_how_many(factory: TransactionalTopicState) -> None:
    one = driver(factory)
    one.batch(rows("a", "b"), 1, of=1)
    assert place(factory).read(0) == Mark(1, 1, "first", 0, 1, 2)
    found = place(factory).read(DRIVER)
    assert found is not None and found.marked == 1 and found.since > 0 and found.topic
    assert found._replace(marked=0, since=0, topic="") == Mark(1, 1, "first", 0, 1)
    assert place(factory).read(1) is None


def test_a_state_that_is_kept_asks_for_its_mark_with_one_consumer(
    factory: TransactionalTopicState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new consumer takes ten times as long. It makes another one when the brokers do not tell what they should."""
    one = driver(factory)
    kept, clients, consumers, make = state(factory, one, 1), set(), [], Cluster.consumer
    monkeypatch.setattr(Cluster, "consumer", lambda *given: consumers.append(make(*given)) or consumers[-1])
    for txid in range(1, 7):
        one.participant.prepare(txid, 0, 1)
        persist(kept, txid, RowUpdater(), rows(f"{txid}"), SILENT)
        clients.add((kept._producer.producer, kept._producer._consumer))
        if txid == 2:
            consumers.clear()
    assert len(clients) == 2 and not consumers, "the first batch asks nobody"
    (kept_one,) = {consumer for _, consumer in clients if consumer is not None}
    monkeypatch.setattr(MarkPlace, "is_told", lambda *given: False)
    persist(kept, 7, RowUpdater(), rows("7"), SILENT)
    assert consumers, "new ones read the mark, and the old one is closed"
    with pytest.raises(RuntimeError, match="closed"):
        kept_one.committed([])
    assert stored(factory) == list("1234567")


def test_a_mark_that_is_told_a_moment_late_is_not_taken_for_a_store_that_has_gone_back(
    factory: TransactionalTopicState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers tell a mark some milliseconds after its commit: when it is read it is not there, when it is waited for it
    is."""
    one = driver(factory)
    one.batch(rows("1"), 1, of=1)
    read_now, early = MarkPlace.read, [Mark()]
    monkeypatch.setattr(
        MarkPlace, "read",
        lambda at, part, settled=True: early.pop() if early and part == 0 else read_now(at, part, settled),
    )  # fmt: skip
    one.participant.prepare(2, 1, 1)
    assert not early


def test_brokers_that_go_back_before_the_first_batch_of_a_run_are_told(
    factory: TransactionalTopicState, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver(factory).batch(rows("1"), 1, of=1)
    one, read_now = driver(factory), MarkPlace.read
    one.conf["trident.txid"] = 1
    one.batch(rows("2"), 2, of=1)
    newer = driver(factory)
    newer.participant.open(newer.conf | {"trident.txid": 2})
    monkeypatch.setattr(
        MarkPlace, "read",
        lambda at, part, settled=True: (read_now(at, part, settled) or Mark())._replace(over=1, txid=1),
    )  # fmt: skip
    with pytest.raises(StateError, match="gone back"):
        newer.participant.prepare(3, 1, 1)


def test_a_kept_state_of_an_older_driver_commits_nothing(factory: TransactionalTopicState) -> None:
    """It has its producer open since before the newer driver; that one shuts it out when it opens."""
    old = driver(factory)
    old.participant.prepare(1, 0, 1)
    kept = state(factory, old, 1)
    persist(kept, 1, RowUpdater(), rows("1"), SILENT)
    new = driver(factory)
    with pytest.raises(FailedException, match="took over"):
        persist(kept, 2, RowUpdater(), rows("2"), SILENT)
    with pytest.raises(ZombieError, match="newer one with generation 2"):
        persist(kept, 2, RowUpdater(), rows("2"), SILENT)
    new.batch(rows("2"), 2, of=1)
    assert stored(factory) == ["1", "2"]


def test_an_older_driver_that_comes_back_does_not_even_disturb(factory: TransactionalTopicState) -> None:
    old = driver(factory)
    old.batch(rows("1"), 1, of=1)
    new = driver(factory)
    with pytest.raises((ZombieError, FailedException)):
        old.participant.prepare(2, 1, 1)
    with pytest.raises(ZombieError, match="newer one with generation 2"):
        old.participant.prepare(2, 2, 1)
    kept = state(factory, new, 2)
    for txid in (2, 3):
        new.participant.prepare(txid, 0, 1)
        persist(kept, txid, RowUpdater(), rows(f"{txid}"), SILENT)
        with pytest.raises(ZombieError):
            old.tasks(rows("x"), txid, of=1)
    new.participant.prepare(4, 1, 1)  # the driver's own producer was left alone too
    assert stored(factory) == ["1", "2", "3"]


def test_a_task_that_comes_back_while_the_newer_driver_opens_is_shut_out(
    factory: TransactionalTopicState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the newer driver's look at the partitions and its mark the old task still finds itself allowed."""
    old = driver(factory)
    old.batch(rows("1"), 1, of=1)
    old.participant.prepare(2, 0, 1)
    late = state(factory, old, 2)
    write = TopicLedger._write_first

    def meanwhile(ledger: TopicLedger, mark: Mark) -> None:
        late.beginCommit(2)
        late.insert(rows("late"), False)
        write(ledger, mark)

    monkeypatch.setattr(TopicLedger, "_write_first", meanwhile)
    new = driver(factory)
    monkeypatch.undo()
    with pytest.raises(FailedException, match="took over"):
        late.commit(2)
    new.batch(rows("2"), 2, of=1)
    assert stored(factory) == ["1", "2"]


def test_what_a_task_commits_while_the_newer_driver_opens_is_known_to_it(
    factory: TransactionalTopicState, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = driver(factory)
    old.batch(rows("1"), 1, of=1)
    old.participant.prepare(2, 0, 1)
    late = state(factory, old, 2)
    write = TopicLedger._write_first

    def meanwhile(ledger: TopicLedger, mark: Mark) -> None:
        persist(late, 2, RowUpdater(), rows("2"), SILENT)
        write(ledger, mark)

    monkeypatch.setattr(TopicLedger, "_write_first", meanwhile)
    new = driver(factory)
    monkeypatch.undo()
    new.batch(rows("2"), 2, of=1)
    new.batch(rows("3"), 3, of=1)
    assert stored(factory) == ["1", "2", "3"]


def test_of_two_drivers_that_open_at_once_one_goes_on(factory: TransactionalTopicState) -> None:
    driver(factory).batch(rows("1"), 1, of=2)
    told: list[Any] = []
    gate = threading.Barrier(2)

    def start() -> None:
        gate.wait()
        try:
            told.append(driver(factory))
        except (ZombieError, FailedException) as error:
            told.append(error)

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    newest = max((each for each in told if isinstance(each, Driver)), key=lambda each: each.generation)
    newest.batch(rows("2"), 2, of=2)
    for each in told:
        if isinstance(each, Driver) and each is not newest:
            with pytest.raises(ZombieError):
                each.tasks(rows("3"), 3, of=2)
    assert stored(factory) == ["1", "2"]


def test_many_partitions_are_shut_out_side_by_side(factory: TransactionalTopicState) -> None:
    old = driver(factory)
    old.batch(rows(*map(str, range(200))), 1, of=6)
    parts = [each for each in range(6) if place(factory).read(each) is not None]
    assert len(parts) == 6
    new = driver(factory)
    assert new.participant.remembered(new.conf).written == 1
    new.batch(rows(*map(str, range(200))), 1, of=6)
    assert len(stored(factory)) == 200


def test_a_task_whose_driver_has_not_prepared_is_refused(factory: TransactionalTopicState) -> None:
    one = driver(factory)
    with pytest.raises(StateError, match=r"call the driver's prepare\(\) before tasks run"):
        one.tasks(rows("1"), 1, of=1)
    assert stored(factory) == []


def test_a_topic_made_anew_under_a_running_driver_is_told(kafka: Any, factory: TransactionalTopicState) -> None:
    one = driver(factory)
    one.batch(rows("1"), 1, of=1)
    admin = factory.cluster.admin()
    admin.delete_topics([factory.topic])[factory.topic].result(30)
    for _ in range(300):
        if factory.topic not in admin.list_topics().topics:
            break
        threading.Event().wait(0.02)
    kafka.create_topic(factory.topic)
    with pytest.raises(StateError, match="the mark of its driver is gone"):
        one.tasks(rows("2"), 2, of=1)


@pytest.mark.parametrize("txid", [1, 5])
def test_a_new_state_may_come_to_a_topic_with_records_of_others(factory: TransactionalTopicState, txid: int) -> None:
    driver(factory, **{"trident.state.name": "somebody else"})
    persist(factory.makeState({}, None, 0, 1), 1, RowUpdater(), rows("old"), SILENT)
    driver(factory).batch(rows("new"), txid, of=1)
    assert stored(factory) == ["new", "old"]


def test_a_mark_of_a_later_format_is_refused(factory: TransactionalTopicState) -> None:
    driver(factory).batch(rows("1"), 1, of=1)
    later = json.dumps({"txid": 1, "generation": 1, "lineage": "first", "ledger_format": 2, "new": "thing"})
    consumer = Consumer({"bootstrap.servers": factory.bootstrap, "group.id": place(factory).name("0"), "log_level": 0})
    consumer.commit(offsets=[TopicPartition(factory.topic, 0, 1, metadata=later)], asynchronous=False)
    consumer.close()
    with pytest.raises(StateError, match="its ledger has format 2, this version of trident_py reads 1"):
        driver(factory)


def test_a_mark_that_is_not_ours_is_told(factory: TransactionalTopicState) -> None:
    producer = TransactionalProducer(place(factory), DRIVER, {})
    producer.open()
    producer.place = Foreign(factory.cluster, factory.topic, "contract", "s")
    producer.commit(Mark(1))
    with pytest.raises(StateError, match="which this library has not written"):
        driver(factory)


class Foreign(MarkPlace):
    def offsets(self, mark: Mark) -> list[Any]:
        return [TopicPartition(self.topic, 0, mark.txid, metadata=json.dumps({"mine": 1}))]


def test_names_that_no_broker_takes_are_refused_before_anything_is_written(factory: TransactionalTopicState) -> None:
    with pytest.raises(DefinitionError, match="more than 1000 characters"):
        driver(factory, **{"topology.name": "t" * 1000})
    with pytest.raises(StateError, match="too many for a mark"):
        driver(factory, "l" * 4000).participant.prepare(1, 0, 1)
    long = driver(factory, "l" * 3500, **{"topology.name": "t" * 900})
    long.batch(rows("1"), 1, of=1)
    assert stored(factory) == ["1"]


def test_a_transaction_time_out_that_the_broker_does_not_allow_is_told(kafka: Any) -> None:
    settings = {"transaction.timeout.ms": 3_000_000}
    factory = TransactionalTopicState(kafka.bootstrap, kafka.create_topic(), value="v", settings=settings)
    with pytest.raises(StateError, match=r"Lower transaction\.timeout\.ms in the settings"):
        driver(factory)


def test_settings_go_to_the_clients_that_know_them() -> None:
    settings = (("compression.type", "lz4"), ("linger.ms", "1"), ("security.protocol", "ssl"))
    assert cluster_of("h:1", settings) == Cluster.of("h:1", {"security.protocol": "ssl"})


class Silent:
    """A sender whose calls get no answer, and which logs all the time."""

    def __init__(self, lost: bool) -> None:
        self.producer, self.lost, self.drained = self, lost, threading.Event()

    def has_lost_broker(self) -> bool:
        return self.lost

    def poll(self, seconds: float) -> None:
        self.drained.set()


@pytest.mark.parametrize(("lost", "limit"), [(False, "LONGEST"), (True, "ALONE")])
def test_a_call_without_an_answer_is_given_up(monkeypatch: pytest.MonkeyPatch, lost: bool, limit: str) -> None:
    """Soon, if a broker has left the cluster; and what the producer logs from then on fills no memory."""
    monkeypatch.setattr(transactions, limit, 0.05)
    answer, sender = threading.Event(), Silent(lost)
    with pytest.raises(FailedException, match="gave no answer within 0 s"):
        transactions._in_time(sender, lambda: answer.wait(30))  # type: ignore[arg-type]
    assert sender.drained.wait(5)
    answer.set()
    transactions._in_time(sender, lambda: None)  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        transactions._in_time(sender, lambda: {}["x"])  # type: ignore[arg-type]
    writer = transactions.TransactionalProducer(None, 0, {})  # type: ignore[arg-type]
    writer._sender = sender  # type: ignore[assignment]
    assert writer.is_open is not lost  # it is replaced before the next batch


def test_a_new_lineage_begun_by_a_driver_that_died_is_begun_by_the_next_one(
    factory: TransactionalTopicState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies on each side of each of its marks: no batch of the new lineage is taken for an old one, and until the
    driver's mark names the new one, each start finds what the first one has found."""
    one = driver(factory)
    for txid in (1, 2):
        one.batch(rows(f"{txid}"), txid, of=1)
    made, write = {"base": 0, "states": {"s": ("first", 2, 0, True, "", 2)}}, TopicLedger._write
    for written in (False, True):
        for left in (0, 1):
            steps = iter(range(left, -1, -1))

            def dies(
                ledger: TopicLedger, mark: Mark, steps: Iterator[int] = steps, written: bool = written
            ) -> None:  # fmt: skip
                last = next(steps) == 0
                if written or not last:
                    write(ledger, mark)
                if last:
                    raise KeyboardInterrupt

            dying = driver(factory, "second", standing=CheckpointState("c", "contract", made, "second"))
            monkeypatch.setattr(TopicLedger, "_write", dies)
            with pytest.raises(KeyboardInterrupt):
                dying.participant.prepare(1, 0, 1)
            monkeypatch.undo()
    again = driver(factory, "second", standing=CheckpointState("c", "contract", made, "second", begun=True))
    for txid in (1, 2, 3):
        again.batch(rows(f"{txid}"), txid, of=1)
    assert stored(factory) == ["1", "1", "2", "2", "3"]


def test_an_older_driver_that_begins_a_new_lineage_late_leaves_the_marks_of_a_newer_one(
    factory: TransactionalTopicState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two starts were told to give up the checkpoint of before, and the first one wakes up: at once, or at the moment
    when it has looked for a newer one."""
    driver(factory).batch(rows("1"), 1, of=1)
    old, early = (driver(factory, "second", **ABANDON) for _ in range(2))
    with pytest.raises(ZombieError, match="newer one with generation 3"):
        old.participant.prepare(1, 0, 1)
    newer: list[Driver] = []

    def meanwhile(parts: Partitions, count: int) -> list[Mark]:
        monkeypatch.undo()
        marks = parts.open(count)
        newer.append(driver(factory, "second", **ABANDON))
        newer[0].run(rows("2"), 1, of=1)
        return marks

    monkeypatch.setattr(Partitions, "open", meanwhile)
    with pytest.raises(ZombieError, match="newer one with generation 4"):
        early.participant.prepare(1, 0, 1)
    newer[0].batch(rows("2"), 1, of=1, attempt=1)
    assert stored(factory) == ["1", "2"]


def test_an_answer_that_is_lost_as_a_new_lineage_begins_is_not_taken_for_a_store_that_has_gone_back(
    factory: TransactionalTopicState, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = driver(factory)
    one.batch(rows("1"), 1, of=1)
    one.participant.prepare(2, 0, 1)
    one.publish(2, 0, [])
    new, write = driver(factory, "second", **ABANDON), TopicLedger._write

    def lost(ledger: TopicLedger, mark: Mark) -> None:
        known = ledger._mark
        write(ledger, mark)
        if mark.lineage == "second":
            monkeypatch.undo()
            ledger._mark = known
            raise FailedException("no answer")

    monkeypatch.setattr(TopicLedger, "_write", lost)
    with pytest.raises(FailedException, match="no answer"):
        new.participant.prepare(1, 0, 1)
    new.batch(rows("2"), 1, of=1, attempt=1)
    assert stored(factory) == ["1", "2"]


@pytest.mark.parametrize("spread", [2, 4])
def test_marks_of_an_abandoned_lineage_tell_nothing_of_another_spread(
    factory: TransactionalTopicState, spread: int
) -> None:
    """Neither those of the same txid, nor those of partitions that its last batch did not have."""
    driver(factory).batch(rows(*"abcdefgh"), 1, of=4)
    if spread == 4:
        driver(factory).batch(rows("i"), 2, of=2)
    before = stored(factory)
    new = driver(factory, "second", **ABANDON)
    for txid in (1, 2):
        new.batch(rows(*"abcdefgh"), txid, of=spread)
    assert stored(factory) == sorted([*before, *"abcdefghabcdefgh"])


def test_a_drivers_mark_that_was_removed_is_made_anew(factory: TransactionalTopicState) -> None:
    """As the error of a mark that is not ours says. Generations count anew then, and those of the partitions' marks
    are higher, but no newer driver has written them: a batch half written counts once."""
    for _ in range(3):
        one = driver(factory)
    one.batch(rows("1"), 1, of=1)
    one.run(rows("2"), 2, of=1)
    admin, group = factory.cluster.admin(), place(factory).name(DRIVER)
    admin.delete_consumer_groups([group])[group].result(30)
    standing = CheckpointState("c", "contract", {"base": 0, "states": {}}, "first", 1, begun=True)
    again = driver(factory, standing=standing, **{"topology.lineage.accept": "s@0:1"})
    assert again.generation == 1
    for txid in (2, 3):
        again.batch(rows(f"{txid}"), txid, of=1)
    assert stored(factory) == ["1", "2", "3"]
    with pytest.raises(StateError, match="older than this driver"):
        one.tasks(rows("x"), 4, of=1)


@pytest.mark.parametrize("metadata", ["", "mine", "{}", '{"txid": 7}', '{"txid":1,"generation":1,"lineage":"first"}'])
@pytest.mark.parametrize("part", ["0", "driver"])
def test_an_offset_out_of_nowhere_is_no_mark(factory: TransactionalTopicState, part: str, metadata: str) -> None:
    """A group that somebody has reset stands at 0, or elsewhere; only txid, generation and lineage are believed."""
    one = driver(factory)
    one.batch(rows("1"), 1, of=1)
    group = place(factory).name(part)
    consumer = Consumer({"bootstrap.servers": factory.bootstrap, "group.id": group, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(factory.topic, 0, 0, metadata=metadata)], asynchronous=False)
    consumer.close()
    with pytest.raises(StateError, match="--delete-offsets") as told:
        driver(factory)
    assert group in str(told.value)
    assert stored(factory) == ["1"]


@pytest.mark.parametrize(
    ("answers", "wanted"),
    [("settled", Mark(1)), ("away", FailedException), ("away at first", FailedException), ("held", HeldMark)],
)
def test_only_brokers_that_answer_before_and_after_may_hold_a_mark(
    monkeypatch: pytest.MonkeyPatch, answers: str, wanted: Any
) -> None:
    """Brokers that come back just behind the wait are not taken for a transaction that has lost its end."""
    asked: list[bool] = []

    def fetch(self: MarkPlace, part: Any, settled: bool, patience: float = 30.0) -> Any:
        asked.append(settled)
        back = len(asked) > 2 if answers == "away at first" else answers != "away"
        if not back or (settled and answers != "settled" and len(asked) < 4):
            raise FailedException("no answer")
        return TopicPartition("t", 0, 1, metadata=Mark(1).text())

    monkeypatch.setattr(MarkPlace, "fetch_committed", fetch)
    place = MarkPlace(Cluster.of("127.0.0.1:1"), "t", "contract", "s")
    if isinstance(wanted, Mark):
        assert place.read_after_open(0) == wanted
        return
    with pytest.raises(wanted) as told:
        place.read(0)
    assert isinstance(told.value, HeldMark) == (answers == "held")
    asked.clear()
    with pytest.raises(StateError if answers == "held" else FailedException):
        place.read_after_open(0)
