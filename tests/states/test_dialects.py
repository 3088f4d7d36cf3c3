"""The dialects that ship keep the contract of a dialect."""

from __future__ import annotations

from pathlib import Path

import pytest
from contracts.dialect import DialectContract

from states.columns.values import Column
from states.sql.dialects.sqlite import dialect
from states.sql.store import Store


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
class TestSqlite(DialectContract):
    server = False
    folded = ("CREATE TABLE folded (k TEXT COLLATE NOCASE PRIMARY KEY, v BIGINT)",)

    def test_without_pages_by_table_the_size_is_that_of_the_file(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.table(store, *[Column("k", "bigint", True), Column("v", "string")])
        monkeypatch.setattr(dialect, "_TABLE_BYTES", "SELECT 1 FROM no_such_table WHERE 1 = ?")
        with store.reading() as connection:
            connection.execute("PRAGMA wal_checkpoint")
            found = store.dialect.measure_table(connection, "t")
        assert found == Path(store.url.database or "").stat().st_size > 0


class MySqls(DialectContract):
    folded = (
        "CREATE TABLE folded (k VARCHAR(20) PRIMARY KEY, v BIGINT) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    )
    number = "SELECT connection_id()"
    cut = "KILL {}"
    count_pages = "ANALYZE TABLE t"


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
class TestMariaDb(MySqls):
    """Aria for temporary tables, its own collation."""


@pytest.mark.parametrize("database", ["mysql"], indirect=True)
class TestMySql(MySqls):
    """No Aria, invisible columns, rows with an alias in an upsert."""


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
class TestPostgreSql(DialectContract):
    folded = (
        "CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TABLE folded (k TEXT COLLATE caseless PRIMARY KEY, v BIGINT)",
    )
    number = "SELECT pg_backend_pid()"
    cut = "SELECT pg_terminate_backend({})"

    def test_a_table_that_another_makes_at_the_same_time_is_a_duplicate(self, store: Store) -> None:
        """Its row type is there before the table is seen: CREATE TABLE IF NOT EXISTS raises then."""
        with store.writing() as connection:
            connection.execute("CREATE TYPE made AS ENUM ('a')")
        with pytest.raises(Exception) as caught, store.writing() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS made (a int)")
        assert caught.value.sqlstate == "42710" and store.dialect.is_duplicate(caught.value)  # type: ignore[attr-defined]
