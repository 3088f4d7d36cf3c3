"""A store that is away: waited for at a start, a replay in a run, on real servers that are killed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import databases
import pytest
from servers.waiting import soon

from states.sql import BatchState, InsertIgnoreState, RowUpdater, SqlMapState
from trident_py import LocalCluster, TopologyError, TridentTopology
from trident_py.errors import DefinitionError, FailedException, LineageError, StateError
from trident_py.model.retry import START_WAIT, Patience, Stopped, start_wait
from trident_py.operations.builtin import Count
from trident_py.testing import FixedBatchSpout

SERVERS = databases.SERVERS


def words(url: str) -> TridentTopology:
    """A map state, a row state and a state that the driver publishes, in one database."""
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout("word string", 2, ("a",), ("b",), ("a",)))
    stream.groupBy("word").persistentAggregate(SqlMapState.opaque(url, "counts", "word string"), Count(), "count")
    stream.partitionPersist(InsertIgnoreState(url, "words", "word", "word string"), "word", RowUpdater())
    stream.partitionPersist(BatchState(url, "shown", "word string"), "word", RowUpdater())
    return topology


def counted(url: str) -> dict:
    return {key: value.curr for key, value in SqlMapState.opaque(url, "counts", "word string").stored().items()}


def waits(running: Any) -> list[str]:
    return [event.reason for event in running.events if event.kind == "waiting"]


# -- at a start


@pytest.mark.one_of_each
@pytest.mark.parametrize("kind", SERVERS)
def test_a_start_waits_for_a_database_that_is_away_and_says_so(
    own_server: Any, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = own_server(kind)
    url = server.create_database()
    server.kill()
    with caplog.at_level(logging.WARNING, "trident_py"), LocalCluster() as cluster:
        running = cluster.submitTopology("t", {}, words(url).build())
        assert soon(lambda: len(waits(running)) > 1), running.events
        server.restart()
        assert running.awaitTermination(60)
    assert counted(url) == {("a",): 2, ("b",): 1}
    assert waits(running)[0].startswith("waiting for state counts, up to ") and START_WAIT in waits(running)[0]
    assert str(server.port) in waits(running)[0]
    assert waits(running)[0] in [record.message for record in caplog.records]


@pytest.mark.parametrize("kind", SERVERS)
def test_a_start_gives_up_at_its_limit_and_names_the_setting(own_server: Any, kind: str) -> None:
    server = own_server(kind)
    url = server.create_database()
    server.kill()
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", {START_WAIT: 0}, words(url).build())
        message = r"(?s)state counts is unavailable: .*topology\.start\.wait\.secs"
        with pytest.raises(TopologyError, match=message) as told:
            running.awaitTermination(60)
    assert isinstance(told.value.__cause__, StateError)
    assert isinstance(told.value.__cause__.__cause__, FailedException)


def test_a_start_that_waits_can_be_stopped(own_server: Any) -> None:
    server = own_server("mariadb")
    url = server.create_database()
    server.kill()
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", {}, words(url).build())
        assert soon(lambda: bool(waits(running)))
        running.stop()
        assert running.awaitTermination(60) and running.exception is None


@pytest.mark.whole("test_a_start_waits_for_a_database_that_is_away_and_says_so")
def test_a_start_on_spark_waits_too(own_server: Any, spark_cluster: Callable[..., Any], tmp_path: Path) -> None:
    server = own_server("postgresql")
    url = server.create_database()
    server.kill()
    running = spark_cluster().submitTopology("t", {}, words(url).build())
    assert soon(lambda: bool(waits(running))), running.events
    server.restart()
    assert running.awaitTermination(120)
    assert counted(url) == {("a",): 2, ("b",): 1}


def test_a_start_that_waits_on_spark_can_be_stopped(spark_cluster: Callable[..., Any]) -> None:
    running = spark_cluster().submitTopology("t", {}, words("postgresql+psycopg://nobody@127.0.0.1:9/none").build())
    assert soon(lambda: bool(waits(running))), running.events
    running.stop()
    assert running.awaitTermination(60) and running.exception is None


# -- the rule itself


def patience(seconds: float = 60) -> tuple[Patience, list[str]]:
    lines: list[str] = []
    return Patience(seconds, threading.Event(), lines.append), lines


def test_the_work_is_done_again_until_the_store_is_there() -> None:
    rule, lines = patience()
    errors = [FailedException("away"), FailedException("locked")]

    def work() -> int:
        if errors:
            raise errors.pop(0)
        return 7

    assert rule.wait_until_available("state s", work) == 7
    assert [line.rpartition(": ")[2] for line in lines] == ["away", "locked"]


@pytest.mark.parametrize("error", [LineageError("no"), StateError("no"), ValueError("no")])
def test_what_waiting_cannot_mend_is_raised_at_once(error: Exception) -> None:
    rule, lines = patience()
    with pytest.raises(type(error)):
        rule.wait_until_available("state s", _raising(error))
    assert lines == []


def test_a_stop_ends_the_wait() -> None:
    rule, _ = patience()
    rule.stopping.set()
    with pytest.raises(Stopped):
        rule.wait_until_available("state s", _raising(FailedException("away")))


def _raising(error: Exception) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize("seconds", [-1, "5", True, float("nan")])
def test_the_limit_is_a_number_of_seconds(seconds: Any) -> None:
    with pytest.raises(DefinitionError, match=START_WAIT):
        start_wait({START_WAIT: seconds})
    assert start_wait({}) == start_wait({START_WAIT: None}) == 60 and start_wait({START_WAIT: 0.5}) == 0.5
