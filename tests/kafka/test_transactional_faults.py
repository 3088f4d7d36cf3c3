"""TransactionalTopicState: dead and slow drivers, dead brokers, lost checkpoints; compared with a fold, every record.

A reader polls all the time: what it has seen at the end is what is there at the end, nothing aborted and nothing twice.
"""

from __future__ import annotations

import itertools
import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from faults.forks import Driver, live_through, run
from faults.readings import Readings, sizes
from faults.steps import STEPS
from topic_reading import Reader, read
from topic_topology import TopicStart, ask, folded, kill, killed, rows, stop, wait_until_sent, wake

PLACES = [*((step, 0) for step in STEPS), ("half", 1), ("written", 1), ("committed", 1), ("over", 0)]


@pytest.fixture
def start(kafka: Any, tmp_path: Path) -> TopicStart:
    return TopicStart(kafka.bootstrap, tmp_path, 6, topic=kafka.create_topic(partitions=2))


def stored(start: TopicStart) -> Counter:
    return rows(record.value for record in read(start.url, start.topic))


def test_a_driver_killed_at_every_step_loses_and_doubles_nothing(start: TopicStart) -> None:
    """Each time a batch further on; the transaction that a dead driver leaves open is ended by the next one."""
    last = len(PLACES) + 2
    with Reader(start.url, start.topic) as reader:
        for txid, (step, partition) in enumerate(PLACES, 2):
            driver = run(replace(start, last=last, faults=(kill(step, txid, partition),)))
            assert killed(driver), (step, driver.told[-2:])
        assert run(replace(start, last=last)).told[-1] == ("done", last)
        reader.wait_for(folded(last).total())
    assert stored(start) == rows(reader.seen) == folded(last)


def test_an_open_transaction_of_a_dead_driver_is_seen_by_nobody(start: TopicStart) -> None:
    """Its records are in the topic already; the next driver ends it, and no reader waits for the time-out."""
    driver = Driver(replace(start, faults=(ask("written", 2, 1),)))
    try:
        assert driver.next() == "at"
        wait_until_open(start, True)
    finally:
        driver.close()
    assert killed(driver)
    assert len(read(start.url, start.topic, "read_uncommitted")) > len(read(start.url, start.topic, ending=0))
    assert run(start).told[-1] == ("done", 6)
    assert stored(start) == folded(6)


def test_one_transaction_shows_a_batch_whole_or_not_at_all(kafka: Any, tmp_path: Path) -> None:
    """Read to the end again and again, while drivers are killed."""
    start = TopicStart(kafka.bootstrap, tmp_path, 8, topic=kafka.create_topic(), one=True)
    seen, done = set(), threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.add(len(read(start.url, start.topic, ending=0)))
            done.wait(0.01)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for txid, step in enumerate(("half", "written", "committed", "publish"), 2):
            assert killed(run(replace(start, faults=(kill(step, txid),))))
        assert run(start).told[-1] == ("done", 8)
    finally:
        done.set()
        watcher.join()
    assert len(seen) > 3
    assert seen <= set(sizes(Readings(1), 8))
    assert stored(start) == folded(8)


def test_a_driver_that_sleeps_is_shut_out_by_the_next_one(start: TopicStart) -> None:
    """It wakes up with its transaction half written, commits nothing more, and ends in words."""
    old = Driver(replace(start, faults=(ask("half", 3),)))
    try:
        assert old.next() == "at"
        shutil.copytree(start.folder / "checkpoints", start.folder / "next")
        assert run(replace(start, checkpoints="next")).told[-1] == ("done", 6)
        old.go_on()
        assert old.next() == ""
    finally:
        old.close()
    kind, error, said = old.told[-1]
    assert (kind, error) == ("error", "ZombieError")
    assert "a newer one with generation 2 has taken over" in said
    assert stored(start) == folded(6)
    assert run(replace(start, checkpoints="next", last=7)).told[-1] == ("done", 7)  # and the newer one is not hurt
    assert stored(start) == folded(7)


def test_a_transaction_open_for_too_long_is_replayed(start: TopicStart) -> None:
    """The whole process is stopped with its transaction open; the broker has aborted it when it goes on."""
    slow = replace(start, faults=(ask("half", 3),), settings=(("transaction.timeout.ms", "1000"),))
    driver = Driver(slow)
    try:
        assert driver.next() == "at"
        wait_until_sent(start.url, start.topic)
        stop(driver)
        wait_until_open(start, False)
        wake(driver)
        driver.go_on()
        assert driver.next() == ""
    finally:
        driver.close()
    assert driver.told[-1] == ("done", 6)
    replays = driver.of("replay")
    assert [event[1] for event in replays] == [3]
    assert "open for longer than transaction.timeout.ms" in replays[0][3]
    assert stored(start) == folded(6)


def wait_until_open(start: TopicStart, wanted: bool) -> None:
    """Until a transaction has records in the topic, or none has."""
    admin, pause = AdminClient({"bootstrap.servers": start.url}), threading.Event()
    latest = {TopicPartition(start.topic, partition): OffsetSpec.latest() for partition in (0, 1)}
    for _ in range(600):
        stable, written = (
            [each.result().offset for each in admin.list_offsets(latest, isolation_level=level).values()]
            for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
        )
        if (stable != written) == wanted:
            return
        pause.wait(0.05)
    raise AssertionError("the transaction stays as it is")


def test_a_broker_killed_around_commit_loses_and_doubles_nothing(own_kafka: Callable[..., Any], tmp_path: Path) -> None:
    """With a transaction open, and between the commits of two partitions."""
    broker = own_kafka()
    start = TopicStart(broker.bootstrap, tmp_path, 6, topic=broker.create_topic(partitions=2))

    def happens(txid: int) -> None:
        broker.kill()
        broker.restart()

    faults = (ask("written", 2), ask("committed", 4))
    with Reader(start.url, start.topic) as reader:
        live_through(replace(start, faults=faults), happens)
        reader.wait_for(folded(6).total())
    assert stored(start) == rows(reader.seen) == folded(6)


@pytest.mark.whole("test_transactional_faults.py::test_a_broker_killed_around_commit")
def test_brokers_killed_at_any_moment_lose_and_double_nothing(own_kafka: Callable[..., Any], tmp_path: Path) -> None:
    """Whenever some more records are there, the broker dies in the middle of what it does."""
    broker = own_kafka()
    start = TopicStart(broker.bootstrap, tmp_path, 40, topic=broker.create_topic(partitions=2))
    driver = Driver(start)
    try:
        with Reader(start.url, start.topic) as reader:
            for seen in (100, 600):
                reader.wait_for(seen)
                broker.kill()
                broker.restart()
            assert driver.next() == ""
            reader.wait_for(folded(40).total())
    finally:
        driver.close()
    assert driver.told[-1] == ("done", 40)
    assert stored(start) == rows(reader.seen) == folded(40)


def test_a_lost_checkpoint_stops_with_the_ways_on(start: TopicStart) -> None:
    run(replace(start, last=3))
    shutil.rmtree(start.folder / "checkpoints")
    for _ in range(2):
        kind, error, said = run(start).told[-1]
        assert (kind, error) == ("error", "LineageError")
        for words in ("remembers batch 3", "restore the checkpoint", "topology.txid.base", "topology.lineage.abandon"):
            assert words in said
    assert stored(start) == folded(3)
    lineage = said.split('topology.lineage.abandon"] = ')[1].split("'")[1]
    anew = replace(start, conf=(("topology.lineage.abandon", lineage),))
    assert run(anew).told[-1] == ("done", 6)
    assert stored(start) == folded(3) + folded(6)  # what the source sends again is written again, as was said
    assert run(replace(start, last=7)).told[-1] == ("done", 7)
    assert stored(start) == folded(3) + folded(7)


def test_another_number_of_partitions_in_the_middle_of_a_batch_ends_with_the_way_on(start: TopicStart) -> None:
    assert killed(run(replace(start, faults=(kill("committed", 3),))))
    before = stored(start)
    for _ in range(2):
        kind, error, said = run(replace(start, partitions=3)).told[-1]
        assert (kind, error) == ("error", "StateError")
        for words in ("batch 3 was begun with 2 partitions, and 1 of them", "parallelismHint(2)"):
            assert words in said
    assert stored(start) == before
    assert run(replace(start, last=3)).told[-1] == ("done", 3)
    assert run(replace(start, partitions=3)).told[-1] == ("done", 6)
    assert stored(start) == folded(6)


def test_a_batch_that_was_whole_may_come_again_in_another_number_of_partitions(start: TopicStart) -> None:
    assert killed(run(replace(start, faults=(kill("publish", 3),))))
    for partitions, last in ((3, 5), (1, 6)):
        assert run(replace(start, partitions=partitions, last=last)).told[-1] == ("done", last)
    assert stored(start) == folded(6)


def test_the_order_of_a_key_is_kept_across_batches_and_replays(start: TopicStart) -> None:
    for txid in (2, 3, 4):
        run(replace(start, faults=(kill("written", txid, txid % 2),)))
    run(start)
    written: dict[str, list] = {}
    for record in read(start.url, start.topic):
        row = json.loads(record.value or b"")
        assert record.key == row["sender"].encode()
        written.setdefault(row["sender"], []).append(row["id"])
    readings = Readings(1)
    batches = itertools.chain.from_iterable(readings.batch(txid) for txid in range(1, 7))
    expected: dict[str, list] = {}
    for row in batches:
        expected.setdefault(row[3], []).append(row[0])
    assert written == expected


