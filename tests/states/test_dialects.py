"""The dialects that ship keep the contract of a dialect."""

from __future__ import annotations

import os

import databases
import pytest
from dialect_contract import DialectContract


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
class TestSqlite(DialectContract):
    server = False
    folded = ("CREATE TABLE folded (k TEXT COLLATE NOCASE PRIMARY KEY, v BIGINT)",)


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
class TestMariaDb(DialectContract):
    folded = (
        "CREATE TABLE folded (k VARCHAR(20) PRIMARY KEY, v BIGINT) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    )
    number = "SELECT connection_id()"
    cut = "KILL {}"


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
class TestPostgreSql(DialectContract):
    folded = (
        "CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TABLE folded (k TEXT COLLATE caseless PRIMARY KEY, v BIGINT)",
    )
    number = "SELECT pg_backend_pid()"
    cut = "SELECT pg_terminate_backend({})"


if os.environ.get(databases.variable("mysql")):

    @pytest.mark.parametrize("database", ["mysql"], indirect=True)
    class TestMySql(TestMariaDb):
        """MySQL itself, where a URL names one."""
