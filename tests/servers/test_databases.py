"""Which databases a test gets, and what happens without one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import databases
import pytest
from sqlalchemy import NullPool, create_engine, make_url

TESTS = Path(__file__).parents[1]
WITHOUT_MARIADB = """
from testbed import sql_servers as servers
servers.MariaDb._programs = lambda self: servers.find("no-such-program", [], "mariadb-server")
def test_it(mariadb): raise AssertionError("there is no database")
"""


def pytest_in(folder: Path, source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A pytest of its own with the fixtures of tests/conftest.py."""
    (folder / "test_one.py").write_text(source)
    kept = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("TRIDENT_")}
    path = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "pytest",
        "-q",
        "-rs",
        "-p",
        "conftest",
        "-c",
        os.devnull,
        "test_one.py",
    ]
    return subprocess.run(
        command, cwd=folder, env={**kept, "PYTHONPATH": path, **environment}, text=True, stdout=subprocess.PIPE
    )  # fmt: skip


def test_a_missing_database_is_a_loud_skip_here(tmp_path: Path) -> None:
    done = pytest_in(tmp_path, WITHOUT_MARIADB)
    assert done.returncode == 0 and "1 skipped" in done.stdout
    lines = [line for line in done.stdout.splitlines() if line.startswith("NOT TESTED on mariadb: ")]
    assert len(lines) == 1
    assert "apt-get install --no-install-recommends mariadb-server" in lines[0] and "TRIDENT_MARIADB_URL" in lines[0]


def test_a_missing_database_fails_a_ci_run(tmp_path: Path) -> None:
    done = pytest_in(tmp_path, WITHOUT_MARIADB, CI="true")
    assert done.returncode == 1 and "NOT TESTED on mariadb: " in done.stdout and "skipped" not in done.stdout


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_a_url_names_a_server_that_is_used_instead(database: str, tmp_path: Path) -> None:
    source = """
import databases
def test_it(database, mariadb, mysql):
    print(database)
    assert isinstance(mariadb, databases.Given) and isinstance(mysql, databases.Given)
"""
    urls = {"TRIDENT_MARIADB_URL": database, "TRIDENT_MYSQL_URL": database}
    done = pytest_in(tmp_path, source, **urls, PYTEST_ADDOPTS="-s -vv -o markers=whole")
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout
    assert all(f"[{kind}]" in done.stdout for kind in databases.kinds())
    port = make_url(database).port
    assert sum(f"@127.0.0.1:{port}/trident_" in line for line in done.stdout.splitlines()) == 2


def test_a_test_gets_an_empty_database_of_each_kind(database: str) -> None:
    engine = create_engine(database, poolclass=NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE left_behind (a INT)")


def test_and_the_next_test_another(database: str) -> None:
    engine = create_engine(database, poolclass=NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE left_behind (a INT)")  # it would exist


def test_a_fresh_database_is_dropped(mariadb: object) -> None:
    with databases.fresh(mariadb) as url:
        name = make_url(url).database
    with create_engine(mariadb.url, poolclass=NullPool).connect() as connection:  # type: ignore[attr-defined]
        assert name not in [row[0] for row in connection.exec_driver_sql("SHOW DATABASES")]
