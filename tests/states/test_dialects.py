"""The dialects that ship keep the contract of a dialect."""

from __future__ import annotations

import pytest
from contracts.dialect import DialectContract

from states.sql.store import Store


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
class TestSqlite(DialectContract):
    server = False
    folded = ("CREATE TABLE folded (k TEXT COLLATE NOCASE PRIMARY KEY, v BIGINT)",)


class MySqls(DialectContract):
    folded = (
        "CREATE TABLE folded (k VARCHAR(20) PRIMARY KEY, v BIGINT) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    )
    number = "SELECT connection_id()"
    cut = "KILL {}"


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
