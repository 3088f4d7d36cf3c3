"""What is refused inside the one step of a commit, and commits whose answer never came."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis as client
from contracts.crashing import Driver
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis_clients import close_servers
from redis_contract import COUNT
from servers.waiting import soon

from states.redis import RedisMapState
from trident_py.errors import FailedException, StateError, ZombieError
from trident_py.extras.redis.ledger import CHANGE, COMMIT, as_arguments, mark
from trident_py.operations.builtin import Sum
from trident_py.state import SILENT, MapCombinerAggStateUpdater, OpaqueValue
from trident_py.testing.proxy import CuttingProxy
from trident_py.tuples import Fields, TridentTuple

SUM = MapCombinerAggStateUpdater(Sum(), "word", "n")
WORDS = Fields("word", "n")


def rows(**counts: int) -> list[TridentTuple]:
    return [TridentTuple.of(WORDS, each) for each in counts.items()]


@pytest.fixture
def factory(redis: str) -> Iterator[RedisMapState]:
    yield RedisMapState.opaque(redis, f"fence-{os.getpid()}-{next(COUNT)}")
    close_servers()


def written(driver: Driver, txid: int, **counts: int) -> Any:
    """A task that has done all but its commit."""
    state = driver.factory.makeState(driver.conf, None, 0, 1)
    state.beginCommit(txid)
    SUM.updateState(state, rows(**counts), SILENT)
    return state


def test_a_task_whose_driver_is_replaced_before_its_commit_writes_nothing(factory: RedisMapState) -> None:
    old = Driver(factory, SUM)
    old.batch(rows(a=1), 1)
    old.participant.prepare(2, 0, 1)
    task = written(old, 2, a=10)
    new = Driver(factory, SUM)
    with pytest.raises(ZombieError, match="a newer one with generation 2 has taken over"):
        task.commit(2)
    assert factory.stored() == {("a",): OpaqueValue(1, 1, None)}
    new.batch(rows(a=10), 2)
    assert factory.stored() == {("a",): OpaqueValue(2, 11, 1)}


def test_a_task_whose_attempt_is_given_up_before_its_commit_writes_nothing(factory: RedisMapState) -> None:
    driver = Driver(factory, SUM)
    driver.participant.prepare(1, 0, 1)
    task = written(driver, 1, a=10, b=1)
    driver.participant.prepare(1, 1, 1)
    with pytest.raises(ZombieError, match="attempt 0 of batch 1 was given up, attempt 1 has taken over"):
        task.commit(1)
    assert factory.stored() == {}


def test_a_task_whose_batch_is_over_before_its_commit_writes_nothing(factory: RedisMapState) -> None:
    """Speculation: its twin was faster, and the next batch has begun."""
    driver = Driver(factory, SUM)
    driver.participant.prepare(1, 0, 1)
    task = written(driver, 1, a=10)
    driver.publish(1, 0, driver.tasks(rows(a=10), 1, of=1))
    driver.participant.prepare(2, 0, 1)
    with pytest.raises(ZombieError, match="batch 1 is behind batch 2"):
        task.commit(1)
    assert factory.stored() == {("a",): OpaqueValue(1, 10, None)}


def test_of_two_tasks_that_read_the_same_one_value_remains(factory: RedisMapState) -> None:
    driver = Driver(factory, SUM)
    driver.batch(rows(a=1), 1)
    driver.participant.prepare(2, 0, 1)
    first, second = written(driver, 2, a=10), written(driver, 2, a=10)
    receipts = [second.commit(2), first.commit(2)]
    driver.publish(2, 0, receipts[:1])
    assert factory.stored() == {("a",): OpaqueValue(2, 11, 1)}


def test_a_task_before_its_drivers_first_batch_is_refused(factory: RedisMapState) -> None:
    driver = Driver(factory, SUM)
    with pytest.raises(StateError, match="has not called prepare"):
        driver.tasks(rows(a=1), 1)


# -- answers that do not come


def pattern(script: str) -> bytes:
    """What a client sends to run a script that the server knows."""
    return hashlib.sha1(script.encode()).hexdigest().encode()


@pytest.fixture
def through(redis: str) -> Iterator[tuple[CuttingProxy, RedisMapState]]:
    """A state whose clients pass a proxy."""
    host, _, port = redis.removeprefix("redis://").partition("/")[0].partition(":")
    with CuttingProxy(host, int(port)) as proxy:
        url = redis.replace(f"{host}:{port}", f"127.0.0.1:{proxy.port}")
        yield proxy, RedisMapState.opaque(url, f"fence-{os.getpid()}-{next(COUNT)}")
        close_servers()


@pytest.mark.parametrize("when", ["before", "during", "lost", "after", "held"])
@pytest.mark.parametrize(
    "script, skip", [(CHANGE, 0), (COMMIT, 0), (CHANGE, 1)], ids=["begin", "commit", "publish"]
)
def test_a_connection_cut_around_a_script_changes_nothing(
    through: tuple[CuttingProxy, RedisMapState], script: str, skip: int, when: str
) -> None:
    proxy, factory = through
    driver = Driver(factory, SUM)
    for txid in range(1, 4):
        if txid == 2:
            proxy.cut_on(pattern(script), when, skip=skip)
        driver.batch(rows(a=txid, b=1), txid, of=1)
    assert proxy.cuts == 1
    assert proxy.deliver() == (when == "held")
    driver.batch(rows(a=4), 4, of=1)
    assert factory.stored() == {("a",): OpaqueValue(4, 10, 6), ("b",): OpaqueValue(3, 3, 2)}


def test_a_late_commit_of_an_attempt_that_was_given_up_is_refused(through: tuple[CuttingProxy, RedisMapState]) -> None:
    """It lies in the network while the batch is replayed with other content."""
    proxy, factory = through
    driver = Driver(factory, SUM)
    driver.batch(rows(a=1), 1, of=1)
    driver.participant.prepare(2, 0, 1)
    proxy.cut_on(pattern(COMMIT), "held")
    before = factory.stored()
    stuck = written(driver, 2, a=100, lost=1)
    writer = stuck.backing.writer
    more, values = writer._values()
    keys = [*writer.fence.store(writer.place).keys, *more]
    arguments = [*as_arguments(writer._row), 2, 0, mark(2, 0), "", *values]
    with client.Redis.from_url(factory.url, retry=Retry(NoBackoff(), 0)) as sender:
        with pytest.raises(client.ConnectionError):
            sender.evalsha(pattern(COMMIT).decode(), len(keys), *keys, *arguments)
    assert factory.stored() == before
    driver.batch(rows(a=7), 2, of=1, attempt=1)
    assert proxy.deliver() == 1
    assert factory.stored() == {("a",): OpaqueValue(2, 8, 1)}


def test_a_server_killed_between_and_inside_batches_loses_and_doubles_nothing(own_server: Callable[..., Any]) -> None:
    """SIGKILL while a driver commits without pause; it lives, and tries again what failed."""
    server = own_server("redis")
    factory = RedisMapState.opaque(server.url, "counts")
    driver, ends = Driver(factory, SUM), threading.Event()

    def kills() -> None:
        while not ends.wait(0.15):
            server.kill()
            time.sleep(0.05)
            server.start()

    killer = threading.Thread(target=kills)
    killer.start()
    try:
        for txid in range(1, 120):
            for attempt in range(50):
                try:
                    driver.batch(rows(a=1, **{f"k{txid}": txid}), txid, attempt=attempt)
                    break
                except FailedException:
                    continue
    finally:
        ends.set()
        killer.join()
    expected = {("a",): OpaqueValue(119, 119, 118)}
    expected |= {(f"k{txid}",): OpaqueValue(txid, txid, None) for txid in range(1, 120)}
    assert factory.stored() == expected
    with client.Redis.from_url(server.url) as reader:
        assert reader.hget(factory.place.ledger("contract", "s"), "txid") == b"119"


def test_a_replica_that_takes_over_without_the_last_batches_is_noticed(own_server: Callable[..., Any]) -> None:
    """It had been given batch 2 when its link broke; the primary went on to batch 4, and was killed."""
    primary = own_server("redis")
    replica = own_server("redis", replicaof=f"127.0.0.1 {primary.port}")
    with CuttingProxy("127.0.0.1", primary.port) as proxy:
        factory = RedisMapState.opaque(f"redis://127.0.0.1:{proxy.port}/0", "counts")
        driver = Driver(factory, SUM)
        driver.batch(rows(a=1), 1)
        driver.batch(rows(a=1), 2)
        with client.Redis.from_url(replica.url) as other:
            assert soon(lambda: other.hget(factory.place.ledger("contract", "s"), "txid") == b"2")
            other.replicaof("NO", "ONE")
        driver.batch(rows(a=1), 3)
        driver.batch(rows(a=1), 4)
        primary.kill()
        proxy.target = ("127.0.0.1", replica.port)
        proxy.cut()
        with pytest.raises(StateError, match="its last complete batch is 2, and this driver has completed batch 4"):
            driver.batch(rows(a=1), 5)
        assert factory.stored() == {("a",): OpaqueValue(2, 2, 1)}
        close_servers()
