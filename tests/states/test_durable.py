"""What is committed is on the disk: a server killed at the worst moment takes nothing back, and ends no run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from contracts.crashing import Driver

from states.sql import AppendState, BatchState, InsertIgnoreState, RowUpdater, SequenceState, SqlMapState
from states.sql.store import parse_url, store_of
from trident_py import Fields
from trident_py.errors import FailedException
from trident_py.operations.builtin import Sum
from trident_py.state import MapCombinerAggStateUpdater
from trident_py.tuples import TridentTuple

pytestmark = pytest.mark.dear

FIELDS = Fields("word string", "n bigint")
LAZY = {"wal_writer_delay": "10s", "synchronous_commit": "off"}  # a commit may wait that long for the disk
STATES: dict[str, Callable[[str], Any]] = {
    "append": lambda url: AppendState(url, "t", FIELDS),
    "batch": lambda url: BatchState(url, "t", FIELDS),
    "insert": lambda url: InsertIgnoreState(url, "t", "word", FIELDS),
    "map": lambda url: SqlMapState.opaque(url, "t", "word string", "n bigint"),
    "sequence": lambda url: SequenceState(url, "t", sender="word", sequence="n", columns=FIELDS),
}


def driver_of(state: str, url: str) -> Driver:
    updater = MapCombinerAggStateUpdater(Sum(), "word", "n") if state == "map" else RowUpdater()
    return Driver(STATES[state](url), updater)


def rows(txid: int) -> list[TridentTuple]:
    return [TridentTuple.of(FIELDS, (word, txid)) for word in "abcd"]


@pytest.fixture(scope="module")
def server(own_server_of_module: Any) -> Any:
    return own_server_of_module("postgresql", **LAZY)


@pytest.mark.parametrize("state", STATES)
def test_a_server_killed_between_prepare_and_the_tasks_knows_the_batch(server: Any, state: str) -> None:
    driver = driver_of(state, server.create_database())
    driver.batch(rows(1), 1)
    driver.participant.prepare(2, 0, 2)
    server.kill()
    server.restart()
    try:
        driver.publish(2, 0, driver.tasks(rows(2), 2))
    except FailedException:  # an old line of this process
        driver.batch(rows(2), 2, attempt=1)
    assert written(driver, state) == 8


@pytest.mark.parametrize("state", STATES)
def test_a_server_killed_behind_publish_knows_that_the_batch_is_complete(server: Any, state: str) -> None:
    """The batch of no rows leaves no other trace."""
    driver = driver_of(state, server.create_database())
    driver.batch(rows(1), 1)
    driver.batch([], 2)
    server.kill()
    server.restart()
    assert driver.factory.participant().remembered(driver.conf).written == 2


def written(driver: Driver, state: str) -> int:
    stored = driver.factory.stored()
    if state == "map":
        return sum(value.curr for value in stored.values()) - 4  # 1 + 2 for each word
    return sum(Counter(stored).values()) if state in ("append", "batch") else len(stored) + (state == "insert") * 4


def test_a_record_that_a_failover_has_lost_fails_the_batch_and_not_the_run(database: str) -> None:
    """The replica that took over had not got the driver's last transaction yet."""
    driver = driver_of("append", database)
    driver.batch(rows(1), 1)
    driver.participant.prepare(2, 0, 2)
    store = store_of(parse_url(database))
    with store.writing() as connection:
        connection.execute("DELETE FROM trident_part")
        connection.execute("UPDATE trident_fence SET started = txid")
    with pytest.raises(FailedException, match="has no record of batch 2"):
        driver.tasks(rows(2), 2)
    driver.batch(rows(2), 2, attempt=1)
    assert driver.factory.stored() == Counter([(word, n) for word in "abcd" for n in (1, 2)])
