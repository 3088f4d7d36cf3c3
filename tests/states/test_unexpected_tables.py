"""Tables that a state does not expect: engines, further unique indexes, names like its own temporary ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from contracts.asking import MYSQLS, POSTGRES, is_mariadb, run
from contracts.crashing import Driver
from sqlalchemy import make_url

from states.columns.values import Column
from states.sql import AppendState, BatchState, InsertIgnoreState, RowUpdater, SqlMapState
from states.sql.inspect import check
from states.sql.store import close_stores, parse_url, store_of
from states.sql.table import TablePlace
from trident_py.errors import StateError
from trident_py.state import SILENT, persist
from trident_py.tuples import Fields, TridentTuple


def write(factory: InsertIgnoreState, *rows: tuple, txid: int = 1) -> dict:
    tuples = [TridentTuple.of(["k", "v"], row) for row in rows]
    return persist(factory.makeState({}, None, 0, 1), txid, RowUpdater(), tuples, SILENT)


def test_a_dialect_names_an_engine_without_transactions(database: str) -> None:
    store = store_of(parse_url(database))
    engines = ["InnoDB", "MyISAM"] if store.dialect.name == "mysql" else [None]
    engines += ["Aria"] if is_mariadb(database) else []
    for number, engine in enumerate(engines):
        run(database, f"CREATE TABLE t{number} (a bigint PRIMARY KEY){f' ENGINE={engine}' if engine else ''}")
        with store.reading() as connection:
            found = store.dialect.unfit(connection, f"t{number}")
        assert found is None if engine in (None, "InnoDB") else f"uses the engine {engine}," in str(found)
    run(database, "CREATE VIEW seen AS SELECT a FROM t0")
    with store.reading() as connection:
        assert store.dialect.unfit(connection, "seen") == "is a view; a state needs a table"
        assert store.dialect.unfit(connection, "nowhere") is None


INDEXES = {  # what stands beside the key (id, part): whether an upsert by that key can meet it
    "UNIQUE INDEX other (email)": True,
    "UNIQUE INDEX other (id)": True,
    "UNIQUE INDEX other (part, id)": False,
    "UNIQUE INDEX other (id, email, part)": False,
    "UNIQUE INDEX other (id, part(2))": True,
    "UNIQUE INDEX other (id, part, email(1))": False,
    "INDEX other (email)": False,
}


@MYSQLS
@pytest.mark.parametrize("index", INDEXES)
def test_a_further_unique_index_is_one_that_another_key_can_meet(database: str, index: str) -> None:
    run(database, f"CREATE TABLE u (id bigint, part varchar(9), email varchar(20), PRIMARY KEY (id, part), {index})")
    store = store_of(parse_url(database))
    keys = [Column("id", "bigint", True), Column("part", "string", True)]
    with store.reading() as connection:
        assert store.dialect.other_unique(connection, "u", keys) == (["other"] if INDEXES[index] else [])


UNIQUE = "CREATE TABLE u (id bigint PRIMARY KEY, email bigint, CONSTRAINT one_email UNIQUE (email))"


@MYSQLS
def test_states_that_replace_rows_refuse_a_further_unique_index(database: str) -> None:
    run(database, UNIQUE)
    batch = BatchState(database, "u", ["id bigint", "email bigint"], "id")
    for made in (batch, SqlMapState.nonTransactional(database, "u", "id bigint", "email bigint")):
        with pytest.raises(StateError, match=r"'one_email'.*another row.*Drop the index"):
            made.makeState({}, None, 0, 1)
    with pytest.raises(StateError, match="'one_email'"):
        SqlMapState.nonTransactional(database, "u", "id bigint", "email bigint").participant().open({})
    BatchState(database, "u", ["id bigint", "email bigint"]).makeState({}, None, 0, 1)  # adds rows: an error is seen


@POSTGRES
def test_where_the_upsert_names_its_key_a_further_unique_index_objects(database: str) -> None:
    run(database, UNIQUE, "INSERT INTO u VALUES (1, 7)")
    state = SqlMapState.nonTransactional(database, "u", "id bigint", "email bigint").makeState({}, None, 0, 1)
    state.beginCommit(None)
    with pytest.raises(StateError, match="one_email"):
        state.multiPut([[2]], [7])
    state.rollback(None)
    assert run(database, "SELECT * FROM u") == [(1, 7)]


MINE = ["trident_keys", "trident_stage", "trident_staged"]


@pytest.mark.parametrize("path", ["", ", pg_temp"])
def test_tables_of_a_user_with_the_names_of_temporary_ones_stay(database: str, path: str) -> None:
    kind = make_url(database).get_backend_name()
    if path and kind != "postgresql":
        return  # temporary tables come first there, always
    if path:
        here = make_url(database).database
        run(database, f'ALTER DATABASE "{here}" SET search_path = public{path}')
        close_stores()
    for name in MINE:
        run(database, f"CREATE TABLE {name} (x int)", f"INSERT INTO {name} VALUES (1)")
    factory = InsertIgnoreState(database, "ii", "k", ["k bigint", "v bigint"])
    for txid in range(1, 4):
        write(factory, (1, 1), (txid, txid), txid=txid)
    write(InsertIgnoreState(database, "ii", "k", ["k bigint", "v bigint"], onConflict="fail"), (9, 9), txid=4)
    maps = SqlMapState.nonTransactional(database, "m", "k bigint").makeState({}, None, 0, 1)
    for count in (3, 300, 12_000):
        maps.beginCommit(None)
        maps.multiPut([[k] for k in range(count)], [count] * count)
        maps.commit(None)
    close_stores()
    assert [run(database, f"SELECT x FROM {name}") for name in MINE] == [[(1,)]] * 3
    assert factory.stored() == {(1,): (1,), (2,): (2,), (3,): (3,), (9,): (9,)}
    assert run(database, "SELECT count(*), min(count) FROM m") == [(12_000, 12_000)]


REQUIRED, GENERATED = "SESSION sql_require_primary_key = ON", "SESSION sql_generate_invisible_primary_key = ON"
FORCED = "GLOBAL innodb_force_primary_key = "


@pytest.fixture
def unforced(database: str) -> Iterator[None]:
    yield
    if is_mariadb(database):
        run(database, f"SET {FORCED}OFF")


@pytest.mark.parametrize(
    ("database", "settings"),
    [("mysql", REQUIRED), ("mysql", GENERATED), ("mysql", f"{REQUIRED}, {GENERATED}"), ("mariadb", f"{FORCED}ON")],
    indirect=["database"],
)
def test_a_server_that_wants_primary_keys_gets_them(database: str, settings: str, unforced: None) -> None:
    asking = make_url(database).update_query_dict({"init_command": f"SET {settings}"})
    url = asking.render_as_string(hide_password=False)
    columns = ["k bigint", "v bigint"]
    rows = [TridentTuple.of(["k", "v"], (n % 7, n)) for n in range(50)]
    for factory in (AppendState(url, "a", columns), BatchState(url, "b", columns), BatchState(url, "bk", columns, "k"),
                    InsertIgnoreState(url, "ii", "k", columns, onConflict="report")):  # fmt: skip
        driver = Driver(factory, RowUpdater(), **{"trident.state.name": factory.table})
        for txid, attempt, batch in ((1, 0, rows), (2, 0, rows[:5]), (2, 1, rows[:5])):
            driver.batch(batch, txid, attempt=attempt)
            close_stores()  # the next one finds the table
        assert run(url, f"SELECT count(*) FROM {factory.table}") == [(55 if factory.table in ("a", "b") else 7,)]
        if factory.table != "ii":
            assert set(replace(factory, columns=None).stored()) == set(factory.stored())
        assert run(database, f"SELECT * FROM {factory.table} WHERE k = 6 ORDER BY v LIMIT 1") == (
            [(6, 48)] if factory.table == "bk" else [(6, 6)]
        )
    state = SqlMapState.nonTransactional(url, "m", "k bigint").makeState({}, None, 0, 1)
    state.beginCommit(None)
    state.multiPut([[k] for k in range(12_000)], [1] * 12_000)
    state.commit(None)
    assert run(database, "SELECT count(*), sum(count) FROM m") == [(12_000, 12_000)]
    without = (
        "SELECT table_name FROM information_schema.tables AS t WHERE table_schema = database() AND NOT EXISTS (SELECT 1"
        " FROM information_schema.table_constraints AS c WHERE (c.table_schema, c.table_name, c.constraint_type)"
        " = (t.table_schema, t.table_name, 'PRIMARY KEY'))"
    )
    assert run(database, without) == []
    for table in ("a", "b"):
        found = check(TablePlace(url, table), Fields(), Fields(columns))
        assert [each.text for each in found if each.level == "error"] == []
