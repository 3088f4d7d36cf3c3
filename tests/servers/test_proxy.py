"""The proxy cuts where it is told to: proven by what real servers hold afterwards."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import databases
import pytest
from sqlalchemy import NullPool, create_engine, make_url
from sqlalchemy.exc import DBAPIError

from states.sql.store import ConnectionLost, parse_url, store_of
from trident_py.errors import DefinitionError
from trident_py.testing.proxy import CuttingProxy, commit_of

on_servers = pytest.mark.parametrize("database", databases.SERVERS, indirect=True)


@contextmanager
def proxied(database: str) -> Iterator[tuple[CuttingProxy, Any]]:
    """A proxy before the server, an engine through it, and a table t."""
    url = make_url(database)
    assert url.host is not None and url.port is not None
    run(database, "CREATE TABLE t (a INT PRIMARY KEY)")
    with CuttingProxy(url.host, url.port) as proxy:
        yield proxy, create_engine(proxy.through(database), poolclass=NullPool)


def run(url: str, statement: str) -> None:
    with create_engine(url, poolclass=NullPool).begin() as connection:
        connection.exec_driver_sql(statement)


def rows(url: str) -> list[int]:
    with create_engine(url, poolclass=NullPool).connect() as connection:
        return [row[0] for row in connection.exec_driver_sql("SELECT a FROM t ORDER BY a")]


def soon(url: str, wanted: list[int]) -> bool:
    end = time.monotonic() + 20
    while rows(url) != wanted and time.monotonic() < end:
        time.sleep(0.01)
    return rows(url) == wanted


def insert(engine: Any, value: int) -> None:
    """One transaction that the client hears was committed."""
    with engine.begin() as connection:
        connection.exec_driver_sql(f"INSERT INTO t VALUES ({value})")


def fail_to_commit(engine: Any, value: int) -> None:
    """One transaction whose COMMIT, and nothing earlier, meets an error."""
    with engine.connect() as connection:
        connection.exec_driver_sql(f"INSERT INTO t VALUES ({value})")
        with pytest.raises(DBAPIError):
            connection.commit()
        connection.invalidate()


@on_servers
def test_cut_before_commit_the_row_is_absent(database: str) -> None:
    with proxied(database) as (proxy, engine):
        proxy.cut_on(commit_of(database), "before")
        fail_to_commit(engine, 1)
        assert proxy.cuts == 1
        insert(engine, 1)  # waits for the server to give up the cut transaction, and finds no row
        assert rows(database) == [1]


@on_servers
def test_cut_before_commit_leaves_nothing_behind(database: str) -> None:
    with proxied(database) as (proxy, engine):
        proxy.cut_on(commit_of(database), "before", times=2)
        for value in (1, 2):
            fail_to_commit(engine, value)
        insert(engine, 3)
        assert rows(database) == [3] and proxy.cuts == 2


@on_servers
def test_cut_during_commit_the_client_sees_an_error_and_the_row_is_there(database: str) -> None:
    with proxied(database) as (proxy, engine):
        proxy.cut_on(commit_of(database), "during")
        fail_to_commit(engine, 1)
        assert proxy.wait(1) and soon(database, [1])


@on_servers
def test_a_lost_answer_the_client_sees_an_error_and_the_row_is_there_at_once(database: str) -> None:
    with proxied(database) as (proxy, engine):
        proxy.cut_on(commit_of(database), "lost")
        fail_to_commit(engine, 1)
        assert rows(database) == [1] and proxy.cuts == 1


@on_servers
def test_cut_after_commit_the_client_sees_success_and_then_a_dead_connection(database: str) -> None:
    with proxied(database) as (proxy, engine):
        proxy.cut_on(commit_of(database), "after")
        with engine.connect() as connection:
            connection.exec_driver_sql("INSERT INTO t VALUES (1)")
            connection.commit()
            assert rows(database) == [1] and proxy.wait(1)
            with pytest.raises(DBAPIError):
                connection.exec_driver_sql("SELECT 1")
            connection.invalidate()


@on_servers
@pytest.mark.parametrize("when", ["before", "during", "lost", "after", "held"])
def test_a_commit_that_is_sent_with_other_statements_is_cut_as_a_whole(database: str, when: str) -> None:
    with proxied(database) as (proxy, _):
        store = store_of(parse_url(proxy.through(database)))
        proxy.cut_on(commit_of(database), when)
        with nullcontext() if when == "after" else pytest.raises(ConnectionLost):
            store.at_once(*((f"INSERT INTO t VALUES ({n})", ()) for n in range(300)))
        if when == "held":
            assert rows(database) == [] and proxy.held == proxy.deliver() == 1
        assert soon(database, [] if when == "before" else [*range(300)]) and proxy.wait(1)
        store.close()


@on_servers
def test_skipped_messages_pass_and_the_next_is_cut(database: str) -> None:
    with proxied(database) as (proxy, engine):
        proxy.cut_on(commit_of(database), "before", skip=2)
        insert(engine, 1)
        insert(engine, 2)
        fail_to_commit(engine, 3)
        insert(engine, 4)
        assert rows(database) == [1, 2, 4]


@on_servers
def test_cut_ends_a_waiting_client_and_refuse_keeps_new_ones_out(database: str) -> None:
    sleep = "SELECT SLEEP(60)" if database.startswith("mysql") else "SELECT pg_sleep(60)"
    with proxied(database) as (proxy, engine), engine.connect() as connection:
        timer = threading.Timer(0.3, proxy.cut)
        timer.start()
        before = time.monotonic()
        with pytest.raises(DBAPIError):
            connection.exec_driver_sql(sleep)
        assert time.monotonic() - before < 20 and proxy.cuts == 1
        connection.invalidate()
        timer.join()
        proxy.refuse = True
        with pytest.raises(DBAPIError):
            engine.connect()
        proxy.refuse = False
        insert(engine, 1)
        assert rows(database) == [1]


def test_clients_hear_of_a_killed_server_through_the_proxy(own_server: Any) -> None:
    server = own_server("mariadb")
    with proxied(server.url) as (proxy, engine), engine.connect() as connection:
        connection.exec_driver_sql("INSERT INTO t VALUES (1)")
        server.kill()
        with pytest.raises(DBAPIError):
            connection.exec_driver_sql("SELECT 1")
        connection.invalidate()
        with pytest.raises(DBAPIError):
            engine.connect()
        server.start()
        insert(engine, 2)
        assert rows(server.url) == [2] and proxy.cuts == 0


class Echo:
    """A server that sends back what it gets, and keeps what it got."""

    def __init__(self) -> None:
        self.got = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self) -> None:
        connection, _ = self.listener.accept()
        with connection:
            try:
                while data := connection.recv(1 << 16):
                    self.got += data
                    connection.sendall(data)
            except OSError:
                return

    def __enter__(self) -> Echo:
        return self

    def __exit__(self, *_: object) -> None:
        self.thread.join()
        self.listener.close()


@pytest.mark.parametrize("pieces", [(b"xxCOMMITxx",), (b"xxCOM", b"MITxx"), (b"C", b"O", b"M", b"M", b"I", b"T")])
def test_a_pattern_in_pieces_is_found_and_the_client_is_reset(pieces: tuple[bytes, ...]) -> None:
    with Echo() as echo, CuttingProxy("127.0.0.1", echo.port) as proxy:
        proxy.cut_on(b"COMMIT")
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            for piece in pieces[:-1]:
                client.sendall(piece)
                assert client.recv(100) == piece
            client.sendall(pieces[-1])
            with pytest.raises(ConnectionResetError):
                client.recv(100)
        assert proxy.cuts == 1
    assert echo.got == b"".join(pieces[:-1])


def test_everything_else_passes_unchanged_also_when_nobody_reads_for_a_while() -> None:
    sent = bytes(range(256)) * 40_000  # 10 MB: more than the buffers on the way hold
    with Echo() as echo, CuttingProxy("127.0.0.1", echo.port) as proxy:
        proxy.cut_on(b"COMMIT")
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            sender = threading.Thread(target=client.sendall, args=(sent,))
            sender.start()
            back = bytearray()
            while len(back) < len(sent):
                back += client.recv(1 << 16)
            sender.join()
    assert bytes(back) == sent and proxy.cuts == 0


def test_a_stuck_connection_is_cut_too() -> None:
    """Nobody reads the answers, so both directions stand still."""
    with Echo() as echo, CuttingProxy("127.0.0.1", echo.port) as proxy:
        client = socket.create_connection(("127.0.0.1", proxy.port))
        client.settimeout(1)
        with client, pytest.raises(TimeoutError):
            client.sendall(b"x" * 50_000_000)
        assert proxy.cut() <= 1


def test_an_unknown_moment_is_refused() -> None:
    with CuttingProxy("127.0.0.1", 1) as proxy, pytest.raises(DefinitionError, match="before, during, lost, after"):
        proxy.cut_on(b"COMMIT", "soon")
