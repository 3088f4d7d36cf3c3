"""What a batch asks a server: how often, and what becomes of a request with several statements of which one fails."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import databases
import pytest
from contracts.asking import MYSQLS, POSTGRES, run
from contracts.crashing import Driver
from contracts.dialect import ALIKE, EDGES
from semantics.support import Batches
from semantics.support import run as run_to_its_end
from sqlalchemy import make_url

from states.columns.arrow import refusals
from states.columns.values import Column
from states.sql import SqlMapState
from states.sql import store as stores
from states.sql.dialects.mysql import dialect as mysql
from states.sql.dialects.mysql.dialect import MYSQL
from states.sql.dialects.sqlite.table import FileConnection
from states.sql.maps.combiners import PartialResults, Recipe
from states.sql.store import ConnectionLost, Store, close_stores, parse_url, store_of
from states.sql.table import Shape, TablePlace, prepare
from trident_py import LocalCluster, TridentTopology
from trident_py.errors import FailedException, LostCommits, StateError, ZombieError
from trident_py.operations.builtin import Count
from trident_py.state import CombinerValueUpdater, MapCombinerAggStateUpdater, StateType
from trident_py.state.updates import Combines
from trident_py.testing.proxy import CuttingProxy
from trident_py.tuples import TridentTuple

SERVERS = pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
FEW, MANY = 4, 14
ODD = r"""it's 100% "odd" \' ?; DROP TABLE trident_fence; -- %s é"""


def counts(url: str, batches: int) -> dict[tuple, Any]:
    """A word count of batches of one word into a new table."""
    topology, factory = TridentTopology(), SqlMapState.opaque(url, f"counts{batches}", "word string", "count bigint")
    stream = topology.newStream("s", Batches("word string", [[(f"w{n % 2}",)] for n in range(batches)]))
    stream.groupBy("word").persistentAggregate(factory, Count(), "count").parallelismHint(1)
    with LocalCluster() as cluster:
        assert run_to_its_end(cluster, topology).exception is None
    close_stores()  # so that the next one, too, opens connections of its own
    return {key: value.curr for key, value in factory.stored().items()}


@SERVERS
def test_a_batch_of_one_tuple_asks_a_server_four_times(database: str) -> None:
    """Fence, row, mark with COMMIT; then the ledger's entry."""
    where, asked = make_url(database), []
    with CuttingProxy(str(where.host), int(where.port or 0)) as proxy:
        for batches in (1, FEW, MANY):  # the first creates the ledger
            before = proxy.requests
            assert sum(counts(proxy.through(database), batches).values()) == batches
            asked.append(proxy.requests - before)
    assert asked[2] - asked[1] == 4 * (MANY - FEW)


def test_a_batch_of_one_tuple_is_sixteen_statements_on_sqlite(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.setattr(FileConnection, "execute", noting(texts, FileConnection.execute), raising=False)
    monkeypatch.setattr(FileConnection, "executemany", noting(texts, FileConnection.executemany), raising=False)
    found = []
    for batches in (1, FEW, MANY):  # the first creates the ledger
        texts.clear()
        counts(f"sqlite:///{tmp_path}/s.db", batches)
        found.append(len(texts))
    assert found[2] - found[1] == 16 * (MANY - FEW)


def noting(texts: list[str], method: Any) -> Any:
    def noted(self: Any, text: str, *more: Any) -> Any:
        texts.append(text)
        return method(self, text, *more)

    return noted


@MYSQLS
def test_a_server_that_takes_one_statement_at_a_time_gets_them_so(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql, "_SEVERAL", 0)
    assert counts(database, FEW) == {("w0",): 2, ("w1",): 2}
    with store_of(parse_url(database)).reading() as connection, pytest.raises(Exception, match="1064"):
        connection.raw.query("SELECT 1; SELECT 2")


# -- several statements in one request


@contextmanager
def begun(database: str) -> Iterator[tuple[Store, Any]]:
    """A transaction on the table t with the key a."""
    run(database, "CREATE TABLE t (a BIGINT PRIMARY KEY)")
    store = store_of(parse_url(database))
    connection, _ = store.open_transaction()
    try:
        yield store, connection
    finally:
        store.drop(connection)


def inserted(*values: int) -> list[tuple[str, tuple]]:
    return [("INSERT INTO t (a) VALUES (?)", (value,)) for value in values]


def test_each_statement_has_its_own_answer(database: str) -> None:
    asked = [*inserted(1, 2), ("SELECT a FROM t ORDER BY a", ()), ("UPDATE t SET a = a + ?", (10,))]
    with begun(database) as (_, connection):
        found = connection.together([*asked, ("SELECT max(a) FROM t", ())])
        assert [answer.rowcount for answer in (*found[:2], found[3])] == [1, 1, 2]
        assert list(found[2].fetchall()) == [(1,), (2,)] and found[4].fetchone() == (12,)
        assert connection.together(inserted(1))[0].rowcount == 1
        assert connection.together([]) == []


def test_an_error_in_a_statement_behind_the_first_is_that_statements_own(database: str) -> None:
    with begun(database) as (store, connection):
        with pytest.raises(Exception) as caught:
            connection.together(inserted(1, 1, 2))
        assert store.dialect.is_duplicate(caught.value) and store.dialect.refuses(caught.value)
        assert not store.dialect.is_lost(caught.value) and not store.dialect.is_lock(caught.value)
        connection.execute("ROLLBACK")
        assert connection.execute("SELECT 7").fetchone() == (7,)  # no answer was left unread
        assert connection.execute("SELECT * FROM t").fetchall() in ([], ())


def test_no_statement_behind_the_one_that_fails_is_executed(database: str) -> None:
    """Least of all COMMIT."""
    with begun(database) as (store, connection), pytest.raises(Exception, match=r"1062|unique|UNIQUE"):
        connection.together([*inserted(6, 6), ("COMMIT", ())])
    with pytest.raises(StateError, match=r"could not write: .*(1062|unique|UNIQUE)"):
        store.at_once(*inserted(5, 5))
    assert run(database, "SELECT * FROM t") == []


@SERVERS
def test_a_connection_lost_between_two_statements_is_a_lost_connection(database: str) -> None:
    with begun(database) as (store, connection):
        end = "KILL CONNECTION_ID()" if store.dialect is MYSQL else "SELECT pg_terminate_backend(pg_backend_pid())"
        with pytest.raises(ConnectionLost), store.errors("write"):
            connection.together([*inserted(1), (end, ()), *inserted(2), ("COMMIT", ())])
    assert run(database, "SELECT * FROM t") == []


@SERVERS
def test_a_fence_that_another_holds_is_waited_for_and_fails_the_batch(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = counting(database)
    monkeypatch.setattr(stores, "LOCK_SECONDS", 1.0)
    with store_of(parse_url(database)).writing() as other:
        other.execute("UPDATE trident_fence SET attempt = 0")
        with pytest.raises(FailedException, match="Another process holds a lock"):
            count(driver, 2, "a")
        with pytest.raises(FailedException, match="Another process holds a lock"):
            driver.publish(2, 0, [])
    count(driver, 2, "a")
    assert counted(driver) == {("a",): 2}


def test_a_ledger_that_is_gone_is_named(database: str) -> None:
    driver = counting(database)
    run(database, "DROP TABLE trident_fence")
    with pytest.raises(StateError, match=r"could not begin the transaction: .*trident_fence"):
        count(driver, 2, "a")


def test_no_name_is_taken_for_sql(database: str) -> None:
    driver = counting(database, **{"topology.name": ODD})
    count(driver, 2, "a", ODD)
    assert counted(driver) == {("a",): 2, (ODD,): 1}
    assert run(database, "SELECT topology, txid FROM trident_fence") == [(ODD, 2)]
    assert run(database, "SELECT count(*) FROM trident_part") == [(0,)]


# -- the ledger's entry


def counting(database: str, **conf: Any) -> Driver:
    """A driver of a word count that has written the word a once."""
    factory = SqlMapState.opaque(database, "t", "word string", "count bigint")
    driver = Driver(factory, MapCombinerAggStateUpdater(Count(), "word", "n"), **conf)
    count(driver, 1, "a")
    return driver


def count(driver: Driver, txid: int, *words: str) -> None:
    driver.batch(once(*words), txid, of=1)


def once(*words: str) -> list[TridentTuple]:
    return [TridentTuple.of(["word", "n"], [word, 1]) for word in words]


def counted(driver: Driver) -> dict[tuple, int]:
    return {key: value.curr for key, value in driver.factory.stored().items()}


def test_an_older_driver_moves_no_ledger_and_deletes_no_mark(database: str) -> None:
    older = counting(database)
    receipts = older.run(once("a"), 2, 1)
    newer = Driver(older.factory, older.updater)
    newer.run(once("a"), 2, 1)
    before = run(database, "SELECT txid, part FROM trident_part")
    with pytest.raises(ZombieError):
        older.publish(2, 0, receipts)
    assert run(database, "SELECT txid FROM trident_fence") == [(1,)]
    assert run(database, "SELECT txid, part FROM trident_part") == before == [(2, 0)]
    newer.publish(2, 0, [])
    assert run(database, "SELECT count(*) FROM trident_part") == [(0,)] and counted(newer) == {("a",): 2}


def test_a_mark_that_is_lost_is_told_in_every_attempt(database: str) -> None:
    """As a lost commit, which is replayed; not as a driver that was replaced."""
    driver = counting(database)
    for attempt in (0, 1, 2):
        receipts = driver.run(once("a"), 2, 1, attempt)
        run(database, "DELETE FROM trident_part")
        with pytest.raises(LostCommits, match="1 partitions have committed batch 2, but the store does not have"):
            driver.publish(2, attempt, receipts)
    driver.batch(once("a"), 2, 1, attempt=3)
    assert counted(driver) == {("a",): 2}


@SERVERS
def test_idle_connections_that_are_gone_fail_no_batch(database: str) -> None:
    """In the tasks as well as in the driver: a new one begins the transaction."""
    driver = counting(database)
    ended = itertools.count()

    def end_all() -> None:
        store = store_of(parse_url(database))
        idle = [store.take(), store.take()]
        mine = "SELECT connection_id()" if store.dialect is MYSQL else "SELECT pg_backend_pid()"
        numbers = [connection.execute(mine).fetchone()[0] for connection in idle]
        other = store.dialect.connect(store.engine)
        for number in numbers:
            other.execute(f"KILL {number}" if store.dialect is MYSQL else f"SELECT pg_terminate_backend({number})")
            next(ended)
        other.close()
        for connection in idle:
            store.give(connection)

    end_all()
    receipts = driver.run(once("a"), 2, 1)
    end_all()
    driver.publish(2, 0, receipts)
    assert next(ended) == 4 and counted(driver) == {("a",): 2}
    assert run(database, "SELECT txid FROM trident_fence") == [(2,)]


# -- a few rows without a savepoint


@pytest.mark.parametrize("listed", [0, sys.maxsize])
def test_refused_rows_leave_the_transaction_as_it_was(
    database: str, listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those written before stay, those behind them come, in the same transaction; also if it happens again."""
    monkeypatch.setattr("states.sql.dialects.mysql.maps._BLOCK_BYTES", 1)  # many rows: each in a statement of its own
    store = store_of(parse_url(database))
    monkeypatch.setattr(type(store.dialect), "listed", listed if store.dialect.served else sys.maxsize)
    shape = prepare(TablePlace(database, "t"), Shape((Column("k", "bigint", True), Column("n", "bigint"))))
    recipe = Recipe("t", tuple(shape.keys), shape.others[0], StateType.NON_TRANSACTIONAL, Count().sql or "")
    with store.writing() as connection:
        for _ in range(2):
            added = [results(store, recipe, keys, n) for keys, n in (([1, 2], 5), ([3, 2], 2**63 - 1), ([2, 4], 6))]
            assert [store.dialect.combine(connection, recipe, one, False) for one in added] == [[], None, []]
    assert run(database, "SELECT k, n FROM t ORDER BY k") == [(1, 10), (2, 22), (4, 12)]


def results(store: Store, recipe: Recipe, keys: list[int], number: int) -> PartialResults:
    made = PartialResults(None, [keys, [number] * len(keys)], lambda: [*range(len(keys))])
    return made if len(keys) <= store.dialect.listed else made.in_arrow(recipe.columns)


@SERVERS
@pytest.mark.parametrize("ddl", [ddl for ddl in EDGES if ddl not in ("json", "string")] + ["varchar(20)"])
def test_a_few_rows_are_stored_as_many_are(database: str, ddl: str, monkeypatch: pytest.MonkeyPatch) -> None:
    column, edges = Column("k", ddl, True, ("infinity", "NUL")), EDGES.get(ddl, ALIKE)
    keys = [(value,) for value in edges if value not in (None, bytes(range(256))) and not refusals(column, [value])]
    found = []
    for name, listed in (("few", len(keys)), ("many", 0)):
        monkeypatch.setattr(type(store_of(parse_url(database)).dialect), "listed", listed)
        factory = SqlMapState.opaque(database, name, f"k {ddl}", "n bigint")
        state = factory.makeState({}, None, 0, 1)
        for txid in (1, 2):
            state.beginCommit(txid)
            news = state.multiUpdate(keys, Combines(Count(), [1] * len(keys)))
            assert list(news) == [txid] * len(keys)
            state.commit(txid)
        found.append(factory.stored())
    assert len(found[0]) == len(keys) > 1 and found[0] == found[1]


@SERVERS
def test_a_batch_refused_by_the_database_is_combined_by_the_map_in_the_same_transaction(database: str) -> None:
    """The row of a fits the type int, the one of b does not: the map names it, and nothing is written."""
    factory = SqlMapState.opaque(database, "t", "word string", "count int")
    state = factory.makeState({}, None, 0, 1)
    for txid, a, b, match in ((1, 1, 2**31 - 1, ""), (2, 1, 1, "b"), (2, 1, -1, "")):
        state.beginCommit(txid)
        updaters = [CombinerValueUpdater(Count(), a), CombinerValueUpdater(Count(), b)]
        if match:
            with pytest.raises(StateError, match=match):
                state.multiUpdate([("a",), ("b",)], updaters)
            state.rollback(txid)
        else:
            state.multiUpdate([("a",), ("b",)], updaters)
            state.commit(txid)
    assert {key[0]: value.curr for key, value in factory.stored().items()} == {"a": 2, "b": 2**31 - 2}


@POSTGRES
def test_a_name_that_is_not_ascii_waits_for_the_sessions_encoding(database: str) -> None:
    """A pooler may have changed the session: a request is read in its encoding, which the first request pins."""
    with begun(database) as (store, connection):
        sent: list[int] = []
        together = connection.together
        connection.together = lambda statements: (sent.append(len(statements)), together(statements))[1]
        for name, requests in (("plain", [3]), ("zähler", [2, 1])):
            sent.clear()
            connection.execute("ROLLBACK")
            (answer,) = store.begin(connection, ("SELECT ?::text", (name,)))
            assert answer.fetchone() == (name,) and sent == requests
