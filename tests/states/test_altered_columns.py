"""A column altered while a topology runs: each batch finds it, in the request that begins its transaction."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import databases
import pytest
from contracts.asking import POSTGRES, run
from contracts.crashing import Driver
from sqlalchemy import make_url

from states.sql import AppendState, BatchState, InsertIgnoreState, RowUpdater, SequenceState, SqlMapState, table
from states.sql.store import close_stores, parse_url, store_of
from trident_py.errors import FailedException, StateError
from trident_py.operations.builtin import Sum
from trident_py.state import SILENT, MapCombinerAggStateUpdater, persist
from trident_py.tuples import TridentTuple

SERVERS = pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
FIELDS = ["k", "n", "v"]
ROW = ["k varchar(20)", "n bigint", "v {}"]
STATES: dict[str, Callable[[str, list[str]], Any]] = {
    "append": lambda url, row: AppendState(url, "t", row),
    "insert-ignore": lambda url, row: InsertIgnoreState(url, "t", "n", row),
    "batch": lambda url, row: BatchState(url, "t", row),
    "sequence": lambda url, row: SequenceState(url, "t", "k", "n", row),
    "map": lambda url, row: SqlMapState.nonTransactional(url, "t", row[:2], row[2]),
}
MOMENT = datetime.datetime(2026, 1, 1, 0, 0, 0, 250_000)
EXACT = decimal.Decimal("0.55")
ALTERED = {  # from a type that keeps the value to one that changes it, on PostgreSQL and on MariaDB
    "24 bits": ("double", "real", "float", 0.1),
    "no more integers": ("bigint", "real", "float", 16_777_217),
    "fewer digits": ("decimal(20,5)", "numeric(20,1)", "decimal(20,1)", EXACT),
    "blanks": ("varchar(9)", "char(9)", "char(9)", "a "),
    "seconds": ("timestamp", "timestamp(0)", "datetime", MOMENT),
}


class Run:
    """A driver, and one state object that serves its batches, as in a process that lives on."""

    def __init__(self, factory: Any, updater: Any) -> None:
        self.driver = Driver(factory, updater)
        self.updater = updater
        self.state = factory.makeState(self.driver.conf, None, 0, 1)

    def batch(self, txid: int, *values: Any) -> None:
        rows = [TridentTuple.of(FIELDS, ("k", txid, value)) for value in values]
        self.driver.participant.prepare(txid, 0, 1)
        self.driver.publish(txid, 0, [persist(self.state, txid, self.updater, rows, SILENT)])


def started(url: str, kind: str, ddl: str) -> Run:
    factory = STATES[kind](url, [each.format(ddl) for each in ROW])
    return Run(factory, MapCombinerAggStateUpdater(Sum(), ("k", "n"), "v") if kind == "map" else RowUpdater())


def altered(url: str, postgresql: str, mysql: str) -> None:
    is_mysql = url.startswith("mysql")
    run(url, f"ALTER TABLE t MODIFY v {mysql}" if is_mysql else f"ALTER TABLE t ALTER v TYPE {postgresql}")


@SERVERS
@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("change", ALTERED)
def test_a_column_that_no_longer_keeps_its_values_ends_the_run(database: str, kind: str, change: str) -> None:
    ddl, *types, value = ALTERED[change]
    running = started(database, kind, ddl)
    running.batch(1, value)
    altered(database, *types)
    with pytest.raises(StateError, match=r"table 't' in .* has the column 'v' as .*altered while the topology ran"):
        running.batch(2, value)
    assert len(run(database, "SELECT * FROM t")) == 1


@SERVERS
@pytest.mark.parametrize("kind", STATES)
def test_a_column_that_still_keeps_its_values_is_checked_once_and_goes_on(
    database: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Any] = []
    check = table._check
    monkeypatch.setattr(table, "_check", lambda *given: (looks.append(given), check(*given))[1])
    running = started(database, kind, "int")
    running.batch(1, 1)
    before = len(looks)
    run(database, "ALTER TABLE t ADD COLUMN more int")
    running.batch(2, 1)
    assert len(looks) == before  # the column is none of this state's
    altered(database, "bigint", "bigint")
    for txid in (3, 4):
        running.batch(txid, 1)
    assert len(looks) == before + 1 and len(run(database, "SELECT * FROM t")) == 4


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_file_is_looked_at_again_when_one_of_its_tables_has_changed(database: str) -> None:
    running = started(database, "append", "bigint")
    running.batch(1, 1)
    run(database, "CREATE TABLE another (x)")
    running.batch(2, 1)
    run(database, "DROP TABLE t", "CREATE TABLE t (k TEXT, n BIGINT, v NUMERIC)")
    with pytest.raises(StateError, match=r"column 'v' as NUMERIC, which .*altered while the topology ran"):
        running.batch(3, 1)
    assert run(database, "SELECT * FROM t") == []


@POSTGRES
def test_nobody_alters_a_column_between_the_question_and_the_end_of_the_transaction(database: str) -> None:
    running = started(database, "append", "double")
    running.driver.participant.prepare(1, 0, 1)
    running.state.beginCommit(1)
    with pytest.raises(FailedException, match="lock timeout"):
        alter_at_once(database)
    running.state.rollback(1)
    alter_at_once(database)


@POSTGRES
def test_who_may_insert_but_not_read_is_not_asked(database: str) -> None:
    """Such a user could write before the columns were watched."""
    started(database, "append", "double").batch(1, 0.1)
    mine = make_url(database).set(username=f"clerk_{make_url(database).database}")
    run(
        database, f"CREATE ROLE {mine.username} LOGIN", f"GRANT CREATE ON SCHEMA public TO {mine.username}",
        f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {mine.username}", f"REVOKE SELECT ON t FROM {mine.username}",
    )  # fmt: skip
    close_stores()
    running = started(mine.render_as_string(hide_password=False), "append", "double")
    for txid in (2, 3):
        running.batch(txid, 0.1)
    close_stores()
    assert len(run(database, "SELECT * FROM t")) == 3
    run(database, f"DROP OWNED BY {mine.username}", f"DROP ROLE {mine.username}")


def alter_at_once(url: str) -> None:
    with store_of(parse_url(url)).writing() as connection, store_of(parse_url(url)).errors("alter"):
        connection.execute("SET LOCAL lock_timeout = '200ms'")
        connection.execute("ALTER TABLE t ALTER v TYPE real")
