"""RedisState and RedisMapState: dead and slow drivers, a dead server, lost checkpoints and lost writes.

Every key, value, txid and value before is compared with a plain fold over the input, read by a client of its own.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis as client
from faults.forks import Driver, live_through, run
from faults.steps import STEPS
from redis_topology import STATES, RedisStart, ask, kill

from trident_py.testing.proxy import CuttingProxy

_COUNT = itertools.count()
PLACES = [*((step, 0) for step in STEPS), ("half", 1), ("written", 1), ("committed", 1), ("over", 0)]


@pytest.fixture
def start(redis: str, tmp_path: Path) -> RedisStart:
    return RedisStart(redis, tmp_path, 6, prefix=f"faults-{os.getpid()}-{next(_COUNT)}")


def killed(driver: Driver) -> bool:
    return driver.process.exitcode == -signal.SIGKILL


SHIFTS = [0, *(pytest.param(shift, marks=pytest.mark.whole) for shift in (1, 2))]


@pytest.mark.parametrize("shift", SHIFTS)
def test_a_driver_killed_at_every_step_counts_every_batch_once(start: RedisStart, shift: int) -> None:
    """Each time a batch and a kind further on; with the shifts every kind dies at every step."""
    last = len(PLACES) + 2
    for txid, (step, partition) in enumerate(PLACES, 2):
        driver = run(replace(start, last=last, faults=(kill(step, txid, partition, STATES[(txid + shift) % 3]),)))
        assert killed(driver), (step, driver.told[-2:])
    assert run(replace(start, last=last)).told[-1] == ("done", last)
    assert start.differences(last) == {}


def test_a_driver_that_sleeps_is_shut_out_by_the_next_one(start: RedisStart) -> None:
    """It wakes up before its commit: no key goes back to an older value, and it ends in words."""
    for number, state in enumerate(STATES):
        own = replace(start, prefix=f"{start.prefix}-{number}", checkpoints=f"old{number}", kinds=(state,))
        old = Driver(replace(own, faults=(ask("written", 3, state),)))
        try:
            assert old.next() == "at"
            shutil.copytree(start.folder / own.checkpoints, start.folder / f"next{number}")
            new = replace(own, checkpoints=f"next{number}")
            assert run(new).told[-1] == ("done", 6)
            old.go_on()
            assert old.next() == ""
        finally:
            old.close()
        assert old.told[-1][:2] == ("error", "ZombieError")
        assert "has taken over" in old.told[-1][2]
        assert own.differences(6) == {}
        assert run(replace(new, last=7)).told[-1] == ("done", 7)  # and the newer one is not hurt
        assert own.differences(7) == {}


def test_a_server_killed_around_commit_loses_and_doubles_nothing(
    own_server: Callable[..., Any], tmp_path: Path
) -> None:
    """SIGKILL at every step, in the kinds by turns; it comes back with all that it has answered."""
    server = own_server("redis")
    last = len(PLACES) + 2
    faults = tuple(ask(step, txid, None, partition) for txid, (step, partition) in enumerate(PLACES, 2))
    start = RedisStart(server.url, tmp_path, last, faults, prefix="server")

    def happens(txid: int) -> None:
        server.kill()
        server.restart()

    live_through(start, happens)
    assert start.differences(last) == {}


def test_a_server_away_for_longer_is_waited_for(own_server: Callable[..., Any], tmp_path: Path) -> None:
    """It is killed, and comes back when the driver has given a batch up."""
    server = own_server("redis")
    start = RedisStart(server.url, tmp_path, 5, (ask("begin", 3, "trans"),), prefix="away")

    def heard(event: tuple) -> None:
        if event[0] == "replay" and not server.running:
            server.start()

    driver = Driver(start, heard)
    try:
        assert driver.next() == "at"
        server.kill()
        driver.go_on()
        assert driver.next() == ""
    finally:
        driver.close()
    assert driver.told[-1] == ("done", 5)
    assert [event[1] for event in driver.of("replay")][:1] == [3]
    assert "The server is gone" in driver.of("replay")[0][3]
    assert start.differences(5) == {}


def test_a_start_waits_for_a_server_that_is_away(own_server: Callable[..., Any], tmp_path: Path) -> None:
    server = own_server("redis")
    start = RedisStart(server.url, tmp_path, 4, prefix="start")
    assert run(replace(start, last=2)).told[-1] == ("done", 2)
    server.kill()
    comes = threading.Timer(1.5, server.start)
    comes.start()
    began = time.monotonic()
    assert run(start).told[-1] == ("done", 4)
    comes.join()
    assert time.monotonic() - began > 1.5
    assert start.differences(4) == {}


def test_a_server_that_loses_its_last_batches_ends_the_run_and_goes_on_when_told(
    own_server: Callable[..., Any], tmp_path: Path
) -> None:
    """It has no log: a restart goes back to its snapshot, of batch 2. Nothing is counted as if it had not been lost."""
    server = own_server("redis", appendonly="no")
    start = RedisStart(server.url, tmp_path, 8, (ask("over", 2), ask("begin", 5, "opaque")), prefix="lost")

    def loses(txid: int) -> None:
        with client.Redis.from_url(server.url) as admin:
            admin.save()

    driver = Driver(start)
    try:
        assert driver.next() == "at"
        loses(2)
        driver.go_on()
        assert driver.next() == "at"
        server.kill()
        server.start()
        driver.go_on()
        assert driver.next() == ""
    finally:
        driver.close()
    assert driver.told[-1][:2] == ("error", "StateError")
    assert "gone back while the topology ran" in driver.told[-1][2]
    assert start.differences(2) == {}
    again = run(replace(start, faults=()))
    assert again.told[-1][:2] == ("error", "LineageError")
    assert "has the batches up to 2" in again.told[-1][2]
    assert start.differences(2) == {}


@pytest.mark.parametrize("state", STATES)
def test_a_hash_deleted_under_a_driver_is_not_begun_anew(start: RedisStart, state: str) -> None:
    """The run ends, the next start is refused, and with the hash put back all is exact."""
    driver = Driver(replace(start, faults=(ask("begin", 4, state),)))
    with client.Redis.from_url(start.url) as admin:
        try:
            assert driver.next() == "at"
            kept = admin.dump(start.hash(state))
            admin.delete(start.hash(state))
            driver.go_on()
            assert driver.next() == ""
        finally:
            driver.close()
        for ended in (driver, run(start)):
            assert ended.told[-1][:2] == ("error", "StateError")
            assert f"nothing is left in hash '{start.hash(state)}'" in ended.told[-1][2]
        assert not admin.exists(start.hash(state))
        admin.restore(start.hash(state), 0, kept)
    assert run(start).told[-1] == ("done", 6)
    assert start.differences(6) == {}


def test_connections_cut_around_commit_lose_and_double_nothing(redis: str, tmp_path: Path) -> None:
    """The next message of a state's commit is cut: not sent, sent and not answered, or answered too late."""
    host, _, port = redis.removeprefix("redis://").partition("/")[0].partition(":")
    with CuttingProxy(host, int(port)) as proxy:
        cuts = ("before", "during", "lost", "after", "held")
        faults = tuple(ask("written", txid) for txid in range(2, 2 + 3 * len(cuts)))
        last = len(faults) + 3
        url = redis.replace(f"{host}:{port}", f"127.0.0.1:{proxy.port}")
        start = RedisStart(url, tmp_path, last, faults, prefix=f"cut-{os.getpid()}")
        live_through(start, lambda txid: proxy.cut_on(b"EVALSHA", cuts[(txid - 2) // 3]))
        assert proxy.cuts == len(faults)
        assert proxy.deliver() == 3
        assert start.differences(last) == {}


def test_a_lost_checkpoint_stops_with_the_ways_on(start: RedisStart) -> None:
    run(replace(start, last=3))
    shutil.rmtree(start.folder / "checkpoints")
    kind, error, said = run(start).told[-1]
    assert (kind, error) == ("error", "LineageError")
    for words in ("remembers batch 3", "restore the checkpoint", "topology.txid.base"):
        assert words in said
    assert start.differences(3) == {}


def test_any_number_of_partitions_may_replay_a_batch(start: RedisStart) -> None:
    """Keys tell a replay, not partitions: also in the middle of a batch that some have committed."""
    for txid, partitions in ((2, 2), (3, 3), (4, 1)):
        driver = run(replace(start, partitions=partitions, faults=(kill("committed", txid),)))
        assert killed(driver), driver.told[-2:]
    assert run(replace(start, partitions=4)).told[-1] == ("done", 6)
    assert start.differences(6) == {}
