"""A PostgreSQL that dies under a running driver, and its replica that takes its place, with and without lag."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from needed import needed
from servers.waiting import soon

from testbed.sql_servers import PostgreSql, PostgreSqlStandby
from trident_py.testing.proxy import HOST, CuttingProxy

from . import backups
from .forks import Start, run, run_with
from .readings import Fold, Readings
from .steps import Fault
from .stores import differences

LAST = 8


class Pair:
    """A primary and its replica, which follows it by way of a proxy, and the address of whichever is in charge."""

    def __init__(self, primary: Any, replica: Any, link: CuttingProxy, address: CuttingProxy) -> None:
        self.primary, self.replica, self.link, self.address = primary, replica, link, address
        self.url = address.through(primary.url)

    def part(self) -> None:
        """From now on the replica lags."""
        self.link.refuse = True
        self.link.cut()

    def caught_up(self) -> bool:
        return backups.contents(self.replica.url) == backups.contents(self.primary.url)

    def fail_over(self) -> None:
        self.primary.kill()
        self.replica.promote()
        self.address.target = (HOST, self.replica.port)
        self.address.cut()


@pytest.fixture
def pair() -> Iterator[Pair]:
    with needed("postgresql"), PostgreSql() as primary, CuttingProxy(HOST, primary.port) as link:
        with PostgreSqlStandby(link.port) as replica, CuttingProxy(HOST, primary.port) as address:
            yield Pair(primary, replica, link, address)


def test_a_replica_that_has_all_takes_over_and_nothing_is_lost(pair: Pair, tmp_path: Path) -> None:
    def fail_over() -> None:
        assert soon(pair.caught_up)
        pair.fail_over()

    start = Start(pair.url, tmp_path, LAST, (Fault("begin", "rows", 5, action="ask"),))
    driver = run_with(start, lambda txid: fail_over())
    assert driver.told[-1] == ("done", LAST), driver.told[-1]
    assert differences(pair.url, Fold(Readings(1), LAST)) == []


def test_a_replica_that_lags_takes_over_and_the_driver_writes_nothing_there(pair: Pair, tmp_path: Path) -> None:
    def part() -> None:
        assert soon(pair.caught_up)
        pair.part()

    asked = (Fault("over", "", 3, action="ask"), Fault("begin", "rows", 6, action="ask"))
    driver = run_with(Start(pair.url, tmp_path, LAST, asked), lambda txid: part() if txid == 3 else pair.fail_over())
    kind, error, said = driver.told[-1]
    assert (kind, error) == ("error", "StateError")
    assert "its last complete batch is 3, and this driver has completed batch 5" in said
    kind, error, said = run(Start(pair.url, tmp_path, LAST)).told[-1]
    assert (kind, error) == ("error", "LineageError")
    assert "has the batches up to 3" in said
    assert differences(pair.url, Fold(Readings(1), 3)) == []
