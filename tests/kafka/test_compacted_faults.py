"""CompactedTopicState in three kinds: dead and slow drivers, dead brokers, lost checkpoints.

Every key, value, txid and value before is compared with a plain fold over the input, read by a plain consumer.
"""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compacted_topology import STATES, CompactedStart, ask, kill
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from faults.forks import Driver, live_through, run
from faults.steps import STEPS
from topic_topology import killed, stop, wait_until_sent, wake

_COUNT = itertools.count()
PLACES = [*((step, 0) for step in STEPS), ("half", 1), ("written", 1), ("committed", 1), ("over", 0)]


@pytest.fixture
def start(kafka: Any, tmp_path: Path) -> CompactedStart:
    return CompactedStart(kafka.bootstrap, tmp_path, 6, prefix=f"faults-{os.getpid()}-{next(_COUNT)}")


@pytest.mark.whole("test_compacted_contract.py::TestOpaque::test_a_driver_killed_at_any_point")
def test_a_driver_killed_at_every_step_counts_every_batch_once(start: CompactedStart) -> None:
    """Each time a batch and a kind further on."""
    last = len(PLACES) + 2
    for txid, (step, partition) in enumerate(PLACES, 2):
        driver = run(replace(start, last=last, faults=(kill(step, txid, partition),)))
        assert killed(driver), (step, driver.told[-2:])
    assert run(replace(start, last=last)).told[-1] == ("done", last)
    assert start.differences(last) == {}


@pytest.mark.parametrize("state", STATES)
def test_an_open_transaction_of_a_dead_driver_is_ended_by_the_next_one(start: CompactedStart, state: str) -> None:
    """A map sends when it commits; rows are sent as they come, and stand in the topic without being there."""
    start = replace(start, kinds=(state,))
    driver = Driver(replace(start, faults=(ask("written", 3, state),)))
    try:
        assert driver.next() == "at"
        if state == "rows":
            wait_for_transaction(start, True)
    finally:
        driver.close()
    assert killed(driver)
    assert run(start).told[-1] == ("done", 6)
    assert start.differences(6) == {}


def test_a_driver_that_sleeps_is_shut_out_by_the_next_one(start: CompactedStart) -> None:
    """It wakes up in the middle of a batch: no key goes back to an older value, and it ends in words."""
    old = Driver(replace(start, faults=(ask("half", 3),)))
    try:
        assert old.next() == "at"
        shutil.copytree(start.folder / "checkpoints", start.folder / "next")
        assert run(replace(start, checkpoints="next")).told[-1] == ("done", 6)
        old.go_on()
        assert old.next() == ""
    finally:
        old.close()
    assert old.told[-1][:2] == ("error", "ZombieError")
    assert "has taken over" in old.told[-1][2]
    assert start.differences(6) == {}
    assert run(replace(start, checkpoints="next", last=7)).told[-1] == ("done", 7)  # and the newer one is not hurt
    assert start.differences(7) == {}


def test_a_transaction_open_for_too_long_is_replayed(start: CompactedStart) -> None:
    start = replace(start, kinds=("rows",), settings=(("transaction.timeout.ms", "1000"),))
    driver = Driver(replace(start, faults=(ask("half", 3, "rows"),)))
    try:
        assert driver.next() == "at"
        wait_until_sent(start.url, start.topic("rows"))
        stop(driver)
        wait_for_transaction(start, False)
        wake(driver)
        driver.go_on()
        assert driver.next() == ""
    finally:
        driver.close()
    assert driver.told[-1] == ("done", 6)
    assert [event[1] for event in driver.of("replay")] == [3]
    assert start.differences(6) == {}


def wait_for_transaction(start: CompactedStart, is_open: bool) -> None:
    """Until a transaction has records in the topic of rows, or none has."""
    admin, pause = AdminClient({"bootstrap.servers": start.url}), threading.Event()
    ends = {TopicPartition(start.topic("rows"), partition): OffsetSpec.latest() for partition in (0, 1)}
    for _ in range(600):
        stable, written = (
            [each.result().offset for each in admin.list_offsets(ends, isolation_level=level).values()]
            for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
        )
        if (stable != written) == is_open:
            return
        pause.wait(0.05)
    raise AssertionError("the transaction stays as it is")


@pytest.mark.whole("test_transactional_faults.py::test_a_broker_killed_around_commit")
def test_a_broker_killed_around_commit_loses_and_doubles_nothing(own_kafka: Callable[..., Any], tmp_path: Path) -> None:
    """With rows sent, with nothing sent yet, and between the commits of two partitions."""
    broker = own_kafka()
    start = CompactedStart(broker.bootstrap, tmp_path, 5, prefix="broker", kinds=("rows", "opaque"))

    def happens(txid: int) -> None:
        broker.kill()
        broker.restart()

    faults = (ask("written", 2, "rows"), ask("written", 3, "opaque"), ask("committed", 4, "rows"))
    live_through(replace(start, faults=faults), happens)  # type: ignore[arg-type]
    assert start.differences(5) == {}


def test_a_lost_checkpoint_stops_with_the_ways_on(start: CompactedStart) -> None:
    run(replace(start, last=3))
    shutil.rmtree(start.folder / "checkpoints")
    kind, error, said = run(start).told[-1]
    assert (kind, error) == ("error", "LineageError")
    for words in ("remembers batch 3", "restore the checkpoint", "topology.txid.base"):
        assert words in said
    assert start.differences(3) == {}


def test_any_number_of_partitions_may_replay_a_batch(start: CompactedStart) -> None:
    """Keys tell a replay, not partitions: also in the middle of a batch that some have committed."""
    for txid, partitions in ((2, 2), (3, 3), (4, 1)):
        driver = run(replace(start, partitions=partitions, faults=(kill("committed", txid),)))
        assert killed(driver), driver.told[-2:]
    assert run(replace(start, partitions=4)).told[-1] == ("done", 6)
    assert start.differences(6) == {}
