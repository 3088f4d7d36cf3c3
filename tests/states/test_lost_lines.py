"""What servers do in the middle of work: lost lines, full servers, foreign locks, a wish for files."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import databases
import pymysql
import pytest
from contracts.asking import MYSQLS, POSTGRES, run
from sqlalchemy import make_url

from states.columns.values import Column
from states.sql import InsertIgnoreState, RowUpdater
from states.sql import store as stores
from states.sql.dialects.mysql.dialect import MYSQL
from states.sql.dialects.postgresql.dialect import POSTGRESQL
from states.sql.store import ConnectionLost, Store, close_stores, parse_url, store_of
from trident_py.errors import FailedException, StateError
from trident_py.state import SILENT, persist
from trident_py.tuples import TridentTuple

A = [Column("a", "bigint", True)]

def load(store: Store, connection: Any, data: Iterator[bytes]) -> None:
    with store.errors("load"):
        store.dialect.load(connection, "t", A, data)  # type: ignore[attr-defined]


def millions(first: Callable[[], object]) -> Iterator[bytes]:
    yield b"1\n"
    first()
    time.sleep(0.2)
    for at in range(2, 4_000_002, 200_000):
        yield b"".join(b"%d\n" % (at + i) for i in range(200_000))


def write(factory: InsertIgnoreState, *rows: tuple, txid: int = 1) -> dict:
    tuples = [TridentTuple.of(["k", "v"], row) for row in rows]
    return persist(factory.makeState({}, None, 0, 1), txid, RowUpdater(), tuples, SILENT)


@MYSQLS
def test_a_connection_killed_while_rows_are_sent_is_worth_a_replay(database: str) -> None:
    run(database, "CREATE TABLE t (a bigint PRIMARY KEY)")
    store = store_of(parse_url(database))
    connection = store.take()
    killed = connection.raw.thread_id()
    with pytest.raises(ConnectionLost):
        load(store, connection, millions(lambda: run(database, f"KILL {killed}")))
    assert run(database, "SELECT * FROM t") == []


@pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
def test_after_a_lost_connection_tables_that_were_checked_before_are_checked_anew(database: str) -> None:
    store = store_of(parse_url(database))
    maria = store.dialect is MYSQL
    store.ready["t"] = object()
    with pytest.raises(ConnectionLost), store.writing() as connection, store.errors("ask"):
        mine = connection.execute("SELECT connection_id()" if maria else "SELECT pg_backend_pid()").fetchone()[0]
        connection.execute(f"KILL {mine}" if maria else f"SELECT pg_terminate_backend({mine})")
        connection.execute("SELECT 1")
    assert not store.ready


@pytest.mark.parametrize("kind", databases.MYSQLS)
def test_a_server_killed_while_rows_are_sent_is_worth_a_replay(own_server: Any, kind: str) -> None:
    server = own_server(kind)
    url = server.create_database()
    run(url, "CREATE TABLE t (a bigint PRIMARY KEY)")
    store = store_of(parse_url(url))
    with pytest.raises(ConnectionLost):
        load(store, store.take(), millions(server.kill))
    server.start()
    assert run(url, "SELECT * FROM t") == []


@MYSQLS
def test_rows_that_fail_while_they_are_sent_do_not_end_the_file(database: str) -> None:
    def failing() -> Iterator[bytes]:
        yield b"1\n"
        raise KeyError("no such row")

    run(database, "CREATE TABLE t (a bigint PRIMARY KEY)")
    store = store_of(parse_url(database))
    connection = store.take()
    connection.execute("START TRANSACTION")
    with pytest.raises(KeyError):
        store.dialect.load(connection, "t", A, failing())  # type: ignore[attr-defined]
    assert not store.dialect.alive(connection)  # so that nobody can commit what was sent
    with pytest.raises(pymysql.Error):
        connection.execute("COMMIT")
    assert run(database, "SELECT * FROM t") == []


@pytest.mark.parametrize("kind", databases.MYSQLS)
def test_a_full_server_is_worth_a_replay(own_server: Any, kind: str) -> None:
    server = own_server(kind, max_connections=10)
    store = store_of(parse_url(server.url))
    held: list[Any] = []
    with pytest.raises(FailedException, match="1040"):
        held += [store.take() for _ in range(20)]
    for code in (1040, 1203, 1226):
        assert MYSQL.is_lost(pymysql.OperationalError(code, "too many"))


def test_a_role_with_too_many_connections_is_worth_a_replay(postgresql: Any) -> None:
    run(postgresql.url, "CREATE ROLE narrow LOGIN CONNECTION LIMIT 1")
    store = store_of(parse_url(as_user(postgresql.url, "narrow")))
    held = [store.take()]
    try:
        with pytest.raises(FailedException, match="too many connections"):
            store.take()
    finally:
        store.drop(held[0])
        close_stores()
        run(postgresql.url, "DROP ROLE narrow")


def as_user(url: str, name: str, **more: Any) -> str:
    return make_url(url).set(username=name, **more).render_as_string(hide_password=False)


@POSTGRES
def test_a_transaction_that_the_server_found_idle_is_worth_a_replay(database: str) -> None:
    store = store_of(parse_url(database))
    connection = store.take()
    connection.execute("SET idle_in_transaction_session_timeout = 50")
    store.begin(connection)
    time.sleep(0.4)
    with pytest.raises(ConnectionLost), store.errors("read"):
        connection.execute("SELECT 1")
    for state in ("25P03", "25P04", "53300"):
        assert POSTGRESQL.is_lost(type("Error", (Exception,), {"sqlstate": state})())
    assert not POSTGRESQL.is_lost(type("Error", (Exception,), {"sqlstate": "25P02"})())


@MYSQLS
def test_a_table_locked_by_others_fails_the_batch_after_the_time_for_locks(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "LOCK_SECONDS", 1.0)
    factory = InsertIgnoreState(database, "t", "k", ["k bigint", "v bigint"])
    write(factory, (1, 1))
    store = store_of(parse_url(database))
    other = store.take()
    other.execute("LOCK TABLES t WRITE")
    raised: list[BaseException] = []
    worker = threading.Thread(target=lambda: _caught(raised, lambda: write(factory, (2, 2), txid=2)), daemon=True)
    worker.start()
    worker.join(10)
    waits = worker.is_alive()
    other.execute("UNLOCK TABLES")
    worker.join(10)
    store.drop(other)
    assert not waits
    assert isinstance(raised[0], FailedException)
    with store.reading() as connection:
        assert connection.execute("SELECT @@lock_wait_timeout").fetchone()[0] <= 60


def _caught(raised: list[BaseException], work: Callable[[], object]) -> None:
    try:
        work()
    except BaseException as error:
        raised.append(error)


def test_what_no_replay_can_change_ends_the_run_with_the_servers_words(postgresql: Any) -> None:
    run(postgresql.url, "CREATE ROLE gone LOGIN")
    url = as_user(postgresql.url, "gone")
    store_of(parse_url(url)).take().close()
    run(postgresql.url, "DROP ROLE gone")
    unknown = make_url(postgresql.url).set(database="nosuch").render_as_string(hide_password=False)
    for bad, name in ((url, "gone"), (as_user(postgresql.url, "nobody"), "nobody"), (unknown, "nosuch")):
        with pytest.raises(StateError, match=f'FATAL.*"{name}" does not exist'):
            store_of(parse_url(bad)).take()


@pytest.mark.parametrize(("text", "lost"), [
    ('connection failed: FATAL:  database "x" does not exist', False),
    ('connection failed: FATAL:  password authentication failed for user "x"', False),
    ("connection failed: FATAL:  no pg_hba.conf entry for host", False),
    ('connection failed: ::1 failed: Connection refused\n127.0.0.1 failed: FATAL:  role "x" does not exist', False),
    ("connection failed: FATAL:  the database system is starting up", True),
    ("connection failed: FATAL:  the database system is shutting down", True),
    ("connection failed: FATAL:  the database system is in recovery mode", True),
    ("connection failed: FATAL:  the database system is not yet accepting connections", True),
    ("connection failed: FATAL:  sorry, too many clients already", True),
    ("connection failed: FATAL:  remaining connection slots are reserved for roles with SUPERUSER", True),
    ("FATAL:  terminating connection due to administrator command\nserver closed the connection unexpectedly", True),
    ('connection failed: FATAL:  database "x" is not currently accepting connections', False),
    ("connection failed: FATAL:  das Datenbanksystem startet gerade", True),
    ("connection failed: FATAL:  el sistema de base de datos está apagándose", True),
    ("connection failed: Connection refused", True),
    ("consuming input failed: server closed the connection unexpectedly", True),
    ("the connection is closed", True),
])  # fmt: skip
def test_which_errors_of_postgresql_are_a_lost_line(text: str, lost: bool) -> None:
    psycopg = pytest.importorskip("psycopg")
    assert POSTGRESQL.is_lost(psycopg.OperationalError(text)) is lost


def test_a_postgresql_that_is_down_or_killed_is_worth_a_replay(own_server: Any) -> None:
    server = own_server("postgresql")
    store = store_of(parse_url(server.url))
    connection = store.take()
    server.kill()
    with pytest.raises(ConnectionLost), store.errors("read"):
        connection.execute("SELECT 1")
    with pytest.raises(ConnectionLost):
        store.take()


@MYSQLS
def test_a_server_gets_no_file_while_the_connection_is_made(database: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("42\n")
    run(database, "CREATE TABLE t (a bigint PRIMARY KEY)")
    asking = make_url(database).update_query_dict({"init_command": f"LOAD DATA LOCAL INFILE '{secret}' INTO TABLE t"})
    with pytest.raises(StateError, match="local_infile"):
        store_of(asking).take()
    assert run(database, "SELECT * FROM t") == []


@MYSQLS
def test_settings_of_the_url_are_taken_and_rows_still_loaded(database: str) -> None:
    asking = make_url(database).update_query_dict({"init_command": "SET SESSION wait_timeout = 77"})
    store = store_of(asking)
    with store.reading() as connection:
        assert connection.execute("SELECT @@wait_timeout").fetchone()[0] == 77
        connection.execute("CREATE TABLE t (a bigint PRIMARY KEY)")
        assert store.dialect.load(connection, "t", A, [b"1\n2\n"]) == (2, 0, 0)  # type: ignore[attr-defined]
