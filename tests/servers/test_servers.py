"""The servers that tests start: they keep what was committed, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import databases
import psutil
import pytest
from sqlalchemy import NullPool, create_engine
from sqlalchemy.exc import DBAPIError

from testbed import service as services
from testbed import sql_servers as servers
from testbed.service import ServiceMissing
from trident_py.errors import TridentError

from .waiting import PATIENCE, is_gone, soon

PARENT = """
import sys
from testbed.sql_servers import {name}
server = {name}().start()
print(server.pid, server.folder, flush=True)
{end}
"""
each = pytest.mark.parametrize("kind", databases.SERVERS)
pytestmark = pytest.mark.whole("test_a_server_killed_in_the_middle_of_a_batch")  # it is used there
NAMES = {"mariadb": "MariaDb", "mysql": "MySql", "postgresql": "PostgreSql"}


def rows(url: str, query: str = "SELECT a FROM t ORDER BY a") -> list[Any]:
    with create_engine(url, poolclass=NullPool).connect() as connection:
        return [row[0] for row in connection.exec_driver_sql(query)]


def write(url: str, *statements: str) -> None:
    with create_engine(url, poolclass=NullPool).begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


@each
def test_what_was_committed_survives_kill_and_what_was_not_is_gone(own_server: Any, kind: str) -> None:
    server = own_server(kind)
    port, pid, url = server.port, server.pid, server.create_database()
    write(url, "CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql("INSERT INTO t VALUES (2)")
        server.kill()
        assert is_gone(pid) and not server.running and server.pid is None
        with pytest.raises(DBAPIError):
            connection.exec_driver_sql("SELECT 1")
        connection.invalidate()
    with pytest.raises(DBAPIError):
        rows(url)
    server.start()
    assert (server.port, server.running) == (port, True) and server.pid != pid
    assert rows(url) == [1]


@each
def test_a_kill_ends_a_server_with_many_clients_at_once(own_server: Any, kind: str) -> None:
    server = own_server(kind)
    clients = [create_engine(server.url, poolclass=NullPool).connect() for _ in range(8)]
    children = psutil.Process(server.pid).children(recursive=True)
    server.kill()
    assert [child for child in children if not is_gone(child.pid)] == []
    for client in clients:
        client.invalidate()
        client.close()
    assert rows(server.start().url, "SELECT 1") == [1]


@each
def test_a_restart_in_order_keeps_data_and_port_and_takes_new_settings(own_server: Any, kind: str) -> None:
    server = own_server(kind, max_connections=33)
    assert rows(server.url, "SHOW max_connections" if kind == "postgresql" else "SELECT @@max_connections") in (
        [33],
        ["33"],
    )
    write(server.url, "CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    port = server.port
    server.restart(**({"default_transaction_read_only": "on"} if kind == "postgresql" else {"innodb_read_only": 1}))
    assert server.port == port and rows(server.url) == [1]
    with pytest.raises(DBAPIError, match=r"(?i)read.only"):
        write(server.url, "INSERT INTO t VALUES (2)")


@each
def test_a_server_flushes_every_commit_and_takes_files_from_clients(own_server: Any, kind: str) -> None:
    server = own_server(kind)
    if kind != "postgresql":
        names = ("@@innodb_flush_log_at_trx_commit", "@@local_infile", "@@character_set_server")
        assert [rows(server.url, f"SELECT {name}") for name in names] == [[1], [1], ["utf8mb4"]]
    else:
        names = ("synchronous_commit", "server_encoding")
        assert [rows(server.url, f"SHOW {name}") for name in names] == [["on"], ["UTF8"]]


@each
def test_several_servers_run_side_by_side_and_leave_nothing(kind: str, own_server: Any) -> None:
    one, two = own_server(kind), own_server(kind)
    assert one.port != two.port and one.folder != two.folder
    write(one.url, "CREATE TABLE t (a INT)")
    with pytest.raises(DBAPIError):
        rows(two.url)
    left = [(server.pid, server.folder) for server in (one, two)]
    one.close()
    assert two.running
    two.kill()
    two.close()
    assert all(is_gone(pid) and not folder.exists() for pid, folder in left)


def test_a_closed_server_starts_anew_and_empty(own_server: Any) -> None:
    server = own_server("mariadb")
    write(server.url, "CREATE TABLE t (a INT)")
    server.close()
    assert not server.running and server.log == ""
    server.start()
    with pytest.raises(DBAPIError, match="exist"):
        rows(server.url)


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("mariadb", "killed"), ("mysql", "killed"), ("postgresql", "killed"), ("mariadb", "ended without close"),
        ("mariadb", "interrupted"),
    ],
)
def test_server_and_folder_go_with_the_process_that_made_them(own_server: Any, kind: str, how: str) -> None:
    own_server(kind).close()  # says when it is missing
    end = "" if how == "ended without close" else "sys.stdin.read()"
    code = PARENT.format(name=NAMES[kind], end=end)
    command = [sys.executable, "-W", "error", "-c", code]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        # also where this process runs in the background, and so ignores SIGINT
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        pid, folder = parent.stdout.readline().decode().split()
        if how != "ended without close":
            assert not is_gone(int(pid)) and Path(folder).exists()
            parent.send_signal(signal.SIGKILL if how == "killed" else signal.SIGINT)
        parent.wait(PATIENCE)
    assert soon(lambda: is_gone(int(pid)) and not Path(folder).exists())


def test_a_server_started_in_a_thread_outlives_the_thread(own_server: Any) -> None:
    server = own_server("mariadb")
    server.stop()
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join()
    time.sleep(0.5)  # a signal at the thread's death would have come by now
    assert server.running and rows(server.url, "SELECT 1") == [1]


@each
def test_a_killed_keeper_takes_the_server_along_and_is_reported(own_server: Any, kind: str) -> None:
    server = own_server(kind)
    pid, folder = server.pid, server.folder
    os.kill(psutil.Process(pid).ppid(), signal.SIGKILL)
    assert soon(lambda: is_gone(pid))
    with pytest.raises(TridentError, match=r"has ended; close\(\) and start again"):
        server.restart()
    server.close()
    assert not folder.exists()
    assert rows(server.start().url, "SELECT 1") == [1]


@each
def test_a_setting_that_the_server_refuses_is_shown_with_its_log(own_server: Any, kind: str) -> None:
    with tempfile.TemporaryDirectory() as base:
        Path(base).chmod(0o755)
        with pytest.raises(TridentError, match="no_such_setting"):
            own_server(kind, base=base, no_such_setting=1)
        assert list(Path(base).iterdir()) == []


def test_a_running_server_is_not_started_twice(own_server: Any) -> None:
    server = own_server("mariadb")
    with pytest.raises(TridentError, match=r"already running; restart\(\)"):
        server.start()


@pytest.mark.parametrize("kind", ["MariaDb", "PostgreSql"])
def test_a_missing_program_names_the_package(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(services.shutil, "which", lambda *_, **__: None)
    package = {"MariaDb": "mariadb-server", "PostgreSql": "postgresql"}[kind]
    with pytest.raises(ServiceMissing, match=f"apt-get install --no-install-recommends {package} "):
        getattr(servers, kind)(base=tmp_path).start()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
def test_a_database_is_dropped_under_open_transactions(database: str) -> None:
    write(database, "CREATE TABLE t (a INT)")
    with create_engine(database, poolclass=NullPool).connect() as connection:
        connection.exec_driver_sql("INSERT INTO t VALUES (1)")
        servers.drop_database(database)
        with pytest.raises(DBAPIError):
            connection.exec_driver_sql("SELECT * FROM t")
        connection.invalidate()
    with pytest.raises(DBAPIError):
        rows(database)


def test_names_that_could_be_sql_are_refused() -> None:
    with pytest.raises(TridentError, match="is not a database name"):
        servers.create_database("mysql+pymysql://root@127.0.0.1:1/mysql", "a; DROP DATABASE b")
