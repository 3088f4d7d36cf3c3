"""On MySQL an upsert takes its new values by an alias of the row: the server counts no deprecated expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import databases
import pytest
from faults.readings import Fold, Readings
from faults.stores import build, differences

from states.sql.dialects.mysql import maps
from states.sql.dialects.mysql.dialect import names_rows
from states.sql.store import close_stores
from trident_py import LocalCluster
from trident_py.testing.databases import connection

DEPRECATED = (
    "SELECT sum(sum_error_raised) FROM performance_schema.events_errors_summary_global_by_error"
    " WHERE error_number IN (1287, 1681)"
)
WAYS = {"few rows": {}, "literals": {"_ROWS_TO_BUILD": 1}, "many rows": dict.fromkeys(
    ("_ROWS_TO_BUILD", "_ROWS_TO_STAGE", "_ROWS_TO_WRITE_STAGED"), 1)}  # fmt: skip


@pytest.fixture(scope="module")
def counting(own_server_of_module: Callable[..., Any]) -> Iterator[Any]:
    """A server that counts the errors and warnings that it raises."""
    yield own_server_of_module("mysql", performance_schema="ON")
    close_stores()


@pytest.mark.parametrize("way", WAYS)
def test_no_state_uses_what_mysql_will_drop(counting: Any, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, rows in WAYS[way].items():
        monkeypatch.setattr(maps, name, rows)
    if WAYS[way]:
        monkeypatch.setattr(maps.MySqlMaps, "listed", 0)
    with databases.fresh(counting) as url, connection(counting.url) as server:
        before = server.exec_driver_sql(DEPRECATED).scalar()
        with LocalCluster() as cluster:
            assert cluster.submitTopology("t", {}, build(url, Readings(3), 4, 2)).awaitTermination(60)
        assert differences(url, Fold(Readings(3), 4)) == []
        assert server.exec_driver_sql(DEPRECATED).scalar() == before
        close_stores()


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("9.7.4-2", True), ("8.0.19", True), ("8.4.3", True), ("8.0.18", False), ("5.7.44-log", False),
        ("5.5.5-10.11.19-MariaDB-0+deb12u1", False), ("11.8.2-MariaDB", False), ("8.0.11-TiDB-v7.5.1", False),
    ],
)  # fmt: skip
def test_a_server_names_rows_from_8_0_19_on_and_mariadb_does_not(version: str, names: bool) -> None:
    assert names_rows(version) is names
