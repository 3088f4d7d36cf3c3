"""Tables that somebody else has made: an exact list of what is taken, and everything else is refused at open."""

from __future__ import annotations

import datetime
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from contracts.asking import MYSQLS, POSTGRES, exact_texts, is_mariadb, run
from contracts.crashing import Driver
from contracts.dialect import EDGES

from states.columns.values import Column, RefusedValue
from states.sql import AppendState, BatchState, InsertIgnoreState, RowUpdater, SqlMapState
from states.sql.inspect import check
from states.sql.store import close_stores, parse_url, store_of
from states.sql.table import TablePlace
from trident_py import Fields
from trident_py.errors import StateError
from trident_py.model.canonical import identity
from trident_py.model.chunks import Chunk, TupleList
from trident_py.operations.builtin import Sum
from trident_py.state import SILENT, MapCombinerAggStateUpdater, persist
from trident_py.tuples import TridentTuple

pytestmark = pytest.mark.dear

SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
OURS = [*EDGES, "float", "decimal", "char(3)"]
TEXT = {"string", "varchar(3)", "char(3)"}


def taken_by(url: str, type_names: dict[str, str]) -> dict[str, set[str]]:
    """Which of our types each column takes."""
    dialect = store_of(parse_url(url)).dialect

    def fits(ddl: str, type_name: str) -> bool:
        try:
            return dialect.fits(Column("c", ddl), type_name)
        except RefusedValue:
            return False

    return {name: found for name, kind in type_names.items() if (found := {ddl for ddl in OURS if fits(ddl, kind)})}


def columns_of(url: str, types: list[str]) -> dict[str, str]:
    """A table with a column of each type; how the dialect sees them."""
    run(url, f"CREATE TABLE every ({', '.join(f'c{i} {kind}' for i, kind in enumerate(types))})")
    store = store_of(parse_url(url))
    found = store.dialect.type_names(store.engine, "every")
    return {kind: found[f"c{i}"] for i, kind in enumerate(types)}


INTEGERS = {"tinyint": {"tinyint"}, "smallint": {"tinyint", "smallint"}, "int": {"tinyint", "smallint", "int"},
            "bigint": {"tinyint", "smallint", "int", "bigint"}}  # fmt: skip
ON_POSTGRESQL = {
    "boolean": {"boolean"}, "smallint": INTEGERS["smallint"], "integer": INTEGERS["int"],
    "bigint": INTEGERS["bigint"], "text": {*TEXT, "json"}, "character varying": {*TEXT, "json"},
    "bytea": {"binary"}, "double precision": {"double", "float"}, "timestamp without time zone": {"timestamp"},
    "date": {"date"}, "numeric": {"decimal(20,5)", "decimal"}, "json": {"json"},
    "varchar(3)": {*TEXT, "json"}, "timestamp(6)": {"timestamp"}, "numeric(20,5)": {"decimal(20,5)"},
}  # fmt: skip


@POSTGRES
def test_of_all_types_of_postgresql_those_are_taken_and_no_other(database: str) -> None:
    known = run(database, "SELECT format_type(oid, NULL) FROM pg_type WHERE typtype IN ('b', 'r', 'm')"
                " AND typnamespace = 'pg_catalog'::regnamespace AND typisdefined AND typinput <> 'array_in'::regproc"
                " AND format_type(oid, NULL) NOT IN ('\"any\"')")  # fmt: skip
    run(database, "CREATE DOMAIN short AS text CHECK (length(VALUE) < 3)", "CREATE TYPE mood AS ENUM ('ok', 'bad')",
        "CREATE EXTENSION citext")  # fmt: skip
    more = ["varchar(3)", "char(3)", "timestamp(6)", "timestamp(0)", "numeric(20,5)", "numeric(3,-2)", "text[]",
            "short", "mood", "citext"]  # fmt: skip
    types = [each for (each,) in known if not each.startswith("pg_") and each not in more] + more
    assert len(types) > 50
    warnings.simplefilter("ignore", sa.exc.SAWarning)  # SQLAlchemy does not know all of them
    assert taken_by(database, columns_of(database, types)) == ON_POSTGRESQL


ON_MYSQL = {
    "BOOLEAN": {"boolean"}, "TINYINT": {"tinyint", "boolean"}, "SMALLINT": INTEGERS["smallint"],
    "INT": INTEGERS["int"], "BIGINT": INTEGERS["bigint"], "VARCHAR(3)": {*TEXT, "json"},
    "NVARCHAR(3)": {*TEXT, "json"}, "TEXT": {*TEXT, "json"}, "TINYTEXT": {*TEXT, "json"},
    "MEDIUMTEXT": {*TEXT, "json"}, "LONGTEXT": {*TEXT, "json"}, "VARBINARY(9)": {"binary"}, "BLOB": {"binary"},
    "TINYBLOB": {"binary"}, "MEDIUMBLOB": {"binary"}, "LONGBLOB": {"binary"}, "DOUBLE": {"double", "float"},
    "DATETIME(6)": {"timestamp"}, "DATE": {"date"}, "DECIMAL(20,5)": {"decimal(20,5)"}, "DECIMAL(10)": {"decimal"},
    "VARCHAR(3) CHARACTER SET latin1": {*TEXT, "json"},
}  # fmt: skip
NOT_ON_MYSQL = [
    "MEDIUMINT", "TINYINT UNSIGNED", "BIGINT UNSIGNED", "INT ZEROFILL", "CHAR(3)", "BINARY(3)", "ENUM('a')",
    "SET('a')", "FLOAT", "DOUBLE(10,2)", "DOUBLE UNSIGNED", "DECIMAL(20,5) UNSIGNED", "DATETIME", "DATETIME(3)",
    "TIMESTAMP(6)", "TIME", "YEAR", "BIT(8)", "POINT", "FLOAT(10,2)",
]  # fmt: skip


@MYSQLS
def test_of_all_types_of_mysql_those_are_taken_and_no_other(database: str) -> None:
    warnings.simplefilter("ignore", sa.exc.SAWarning)  # SQLAlchemy does not know all of them
    types = [*ON_MYSQL, *NOT_ON_MYSQL, *(["UUID", "INET6"] if is_mariadb(database) else ["JSON"])]
    assert taken_by(database, columns_of(database, types)) == ON_MYSQL


TEXTS = {*TEXT, "json", "date", "timestamp", "decimal(20,5)", "decimal"}
FLOATS, DAYS = {"double", "float"}, {"date", "timestamp"}
WHOLE = {*INTEGERS["bigint"], "boolean"}
ON_SQLITE = {
    **dict.fromkeys(["INT", "INTEGER", "TINYINT", "BIGINT", "UNSIGNED BIG INT", "INT8", "bigint"], WHOLE),
    **dict.fromkeys(["TEXT", "CLOB", "VARCHAR(255)", "NCHAR(55)", "text", "VARYING CHARACTER(255)"], TEXTS),
    **dict.fromkeys(["REAL", "DOUBLE", "DOUBLE PRECISION", "FLOAT"], FLOATS),
    "BLOB": {"binary"}, "": {*OURS}, "BOOLEAN": {"boolean"}, "bool": {"boolean"},
    **dict.fromkeys(["DATE", "DATETIME", "TIMESTAMP", "TIMESTAMP(6)"], DAYS),
    "FLOATING POINT": WHOLE, "CHARINT": WHOLE,
}  # fmt: skip


@SQLITE
def test_of_all_types_of_sqlite_those_are_taken_and_no_other(database: str) -> None:
    types = [*ON_SQLITE, "NUMERIC", "DECIMAL(10,5)", "JSON", "STRING", "ANY", "TIME", "DATETIME NUMBER", "UUID"]
    assert taken_by(database, columns_of(database, types)) == ON_SQLITE


def test_what_a_taken_column_is_given_comes_back(database: str) -> None:
    """Every value at the edge of a type, in every type of column that takes it; or an error that says so."""
    kind = store_of(parse_url(database)).dialect.name
    pairs = {"sqlite": ON_SQLITE, "mysql": ON_MYSQL, "postgresql": ON_POSTGRESQL}[kind]
    number = 0
    for type_name, taken in pairs.items():
        for ddl in sorted(taken & EDGES.keys()):
            number += 1
            run(database, f"CREATE TABLE t{number} (id BIGINT, v {type_name})")
            factory = AppendState(database, f"t{number}", ["id bigint", f"v {ddl}"], onBadRow="dead-letter")
            given = [(i, value) for i, value in enumerate(EDGES[ddl])]
            state = factory.makeState({}, None, 0, 1)
            state.beginCommit(1)
            state.insert([TridentTuple.of(["id", "v"], each) for each in given], False)
            refused = state.commit(1)["rejected"]
            read = list(state.getTuples())
            assert len(read) + refused == len(given), (type_name, ddl)
            for row, found in read:
                same = identity(found) == identity(given[row][1]) or (ddl == "double" and found == given[row][1] == 0)
                assert same, (type_name, ddl, repr(found)[:90], len(str(found)), repr(given[row])[:90])


# -- keys

LONG = [f"https://example.org/same/{n}" for n in range(5)]
KEYS = {  # what stands in CREATE TABLE t (k ..., v ...): whether it is a key on k
    "sqlite": {
        "k TEXT PRIMARY KEY": True, "k TEXT, UNIQUE (k)": True, "k TEXT, x TEXT, UNIQUE (k, x)": False, "k TEXT": False,
        "k TEXT PRIMARY KEY ON CONFLICT REPLACE": False, "k TEXT PRIMARY KEY, x TEXT UNIQUE ON CONFLICT REPLACE": False,
        "k TEXT PRIMARY KEY, x TEXT UNIQUE\n on  conflict\tIGNORE": False, "k TEXT UNIQUE ON CONFLICT ABORT": True,
        "k TEXT PRIMARY KEY, x TEXT DEFAULT 'ON CONFLICT REPLACE'": True, "k TEXT COLLATE NOCASE PRIMARY KEY": False,
        "k TEXT PRIMARY KEY, x TEXT NOT NULL ON CONFLICT REPLACE DEFAULT 1": False,
    },
    "mysql": {
        "k VARCHAR(190) PRIMARY KEY": True, "k VARCHAR(190), UNIQUE KEY (k(20))": False,
        "k VARCHAR(190), UNIQUE KEY (k)": True, "k VARCHAR(190), x INT, UNIQUE KEY (k, x)": False,
        "k TEXT, PRIMARY KEY (k(190))": False,
        "k VARCHAR(190) PRIMARY KEY, x VARCHAR(9) CHARACTER SET sjis": False,
    },
    "postgresql": {
        "k TEXT PRIMARY KEY": True, "k TEXT UNIQUE": True, "k TEXT UNIQUE DEFERRABLE": False,
        "k TEXT, x INT, UNIQUE (k, x)": False, "k TEXT": False,
        "k TEXT, x INT, UNIQUE (k) INCLUDE (x)": True,
    },
}  # fmt: skip


def test_a_key_is_one_of_whole_columns_and_all_rows(database: str) -> None:
    kind = store_of(parse_url(database)).dialect.name
    options = exact_texts(database)
    for number, (columns, is_key) in enumerate(KEYS[kind].items()):
        run(database, f"CREATE TABLE t{number} (v BIGINT, {columns}){options}")
        factory = InsertIgnoreState(database, f"t{number}", "k", ["k string", "v bigint"])
        if is_key:
            Driver(factory, RowUpdater()).batch([TridentTuple.of(["k", "v"], (url, 1)) for url in LONG], 1)
            assert len(factory.stored()) == 5, columns
            continue
        with pytest.raises(StateError, match=f"table 't{number}'"):
            factory.makeState({}, None, 0, 1)
        found = check(TablePlace(database, f"t{number}"), Fields("k string"), Fields("v bigint"))
        assert "error" in [each.level for each in found]


TABLES = {
    "sqlite": {"CREATE VIEW t AS SELECT 1 AS v": "is a view"},
    "mysql": {
        "CREATE VIEW t AS SELECT 1 AS v": "is a view",
        "CREATE TABLE t (v BIGINT) ENGINE = MEMORY": "engine MEMORY, which has no transactions",
    },
    "postgresql": {
        "CREATE VIEW t AS SELECT 1 AS v": "is a view", "CREATE MATERIALIZED VIEW t AS SELECT 1 AS v": "is a mat",
        "CREATE UNLOGGED TABLE t (v BIGINT)": "is UNLOGGED.*SET LOGGED",
        "CREATE TABLE t (v BIGINT); CREATE RULE r AS ON INSERT TO t DO INSTEAD NOTHING": "has rules",
        "CREATE TABLE t (v BIGINT); CREATE TABLE child () INHERITS (t)": "has child tables",
    },
}  # fmt: skip


ON_MARIADB = {
    "CREATE SEQUENCE t": "is a sequence", "CREATE TABLE t (v BIGINT) WITH SYSTEM VERSIONING": "is a system versioned",
}  # fmt: skip


def test_what_is_no_plain_table_is_refused(database: str) -> None:
    tables = TABLES[store_of(parse_url(database)).dialect.name] | (ON_MARIADB if is_mariadb(database) else {})
    for number, (text, why) in enumerate(tables.items()):
        name = f"t{number}"
        run(database, *re.sub(r"\bt\b", name, text).split("; "))
        for factory in (AppendState(database, name, "v bigint"), BatchState(database, name, "v bigint")):
            with pytest.raises(StateError, match=f"table '{name}' .*{why}"):
                factory.makeState({"topology.name": "t"}, None, 0, 1)
        assert "error" in [each.level for each in check(TablePlace(database, name), Fields(), Fields("v bigint"))]


@POSTGRES
def test_rows_that_a_policy_hides_are_refused(database: str, postgresql: Any) -> None:
    run(database, "CREATE TABLE t (k BIGINT PRIMARY KEY)", "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "CREATE ROLE hidden LOGIN", "GRANT ALL ON t TO hidden", "GRANT CREATE ON SCHEMA public TO hidden")  # fmt: skip
    try:
        url = sa.make_url(database).set(username="hidden").render_as_string()
        with pytest.raises(StateError, match="row-level security"):
            InsertIgnoreState(url, "t", "k", "k bigint").makeState({}, None, 0, 1)
    finally:
        close_stores()
        run(database, "DROP OWNED BY hidden CASCADE", "DROP ROLE hidden")


NUMBERED = {
    "sqlite": ["id INTEGER PRIMARY KEY", "id INTEGER PRIMARY KEY AUTOINCREMENT", "id INTEGER, PRIMARY KEY (id)"],
    "mysql": ["id BIGINT AUTO_INCREMENT PRIMARY KEY", "id BIGINT NOT NULL AUTO_INCREMENT, UNIQUE (id)"],
    "postgresql": ["id BIGSERIAL PRIMARY KEY", "id BIGINT GENERATED BY DEFAULT AS IDENTITY"],
}  # fmt: skip
FREE = {"sqlite": "id INT PRIMARY KEY", "mysql": "id BIGINT", "postgresql": "id BIGINT DEFAULT 7"}


@pytest.mark.parametrize("typed", [True, False])
def test_no_number_is_made_of_a_null(database: str, typed: bool) -> None:
    name = store_of(parse_url(database)).dialect.name
    for number, column in enumerate([*NUMBERED[name], FREE[name]]):
        run(database, f"CREATE TABLE t{number} (v BIGINT, {column})")
        fields = ["v bigint", "id bigint"]
        for row in ([1, None], [2, 5]):
            state = AppendState(database, f"t{number}", fields).makeState({}, None, 0, 1)
            tuples = TupleList(Fields(*fields) if typed else Fields("v", "id"))
            tuples.append(Chunk.of_rows(tuples.fields, [tuple(row)]))
            state.beginCommit(None)
            if column != FREE[name] and row[1] is None:
                with pytest.raises(StateError, match=r"null would become the next number|null value"):
                    RowUpdater().updateState(state, tuples, SILENT)
                state.rollback(None)
            else:
                RowUpdater().updateState(state, tuples, SILENT)
                state.commit(None)
        found = run(database, f"SELECT v, id FROM t{number} ORDER BY v")
        wanted = [(1, None), (2, 5)] if column == FREE[name] else [(2, 5)]
        assert list(map(tuple, found)) == wanted, column


@POSTGRES
def test_two_users_who_see_a_table_through_other_schemas_have_one_ledger_or_are_refused(database: str) -> None:
    run(database, "CREATE TABLE counts (word TEXT PRIMARY KEY, n BIGINT)")
    for role in ("one", "two"):
        run(database, f"CREATE ROLE {role} LOGIN", f"CREATE SCHEMA {role} AUTHORIZATION {role}",
            f"ALTER ROLE {role} SET search_path = {role}, public", f"GRANT ALL ON SCHEMA public TO {role}",
            f"GRANT ALL ON counts TO {role}",
            f"ALTER DEFAULT PRIVILEGES FOR ROLE one IN SCHEMA public GRANT ALL ON TABLES TO {role}")  # fmt: skip
    try:
        urls = [sa.make_url(database).set(username=role) for role in ("one", "two")]
        for url in urls:
            factory = SqlMapState.nonTransactional(url.render_as_string(), "counts", "word string", "n bigint")
            with pytest.raises(StateError, match=r"is in the schema 'public', while .* Name the one schema in the URL"):
                factory.makeState({}, None, 0, 1)
            [found] = [each for each in check(TablePlace(factory.url, "counts"), factory.keys, factory.value)
                       if each.level == "error"]  # fmt: skip
            assert "?options=-csearch_path%3Dpublic" in found.text
        assert run(database, "SELECT count(*) FROM pg_tables WHERE schemaname IN ('one', 'two')") == [(0,)]
        named = [url.set(query={"options": "-csearch_path=public"}).render_as_string() for url in urls]
        one, two = [SqlMapState.nonTransactional(url, "counts", "word string", "n bigint") for url in named]
        updater = MapCombinerAggStateUpdater(Sum(), "word", "n")
        Driver(one, updater, **{"topology.name": "first"}).batch([TridentTuple.of(["word", "n"], ("a", 1))], 1, of=1)
        with pytest.raises(StateError, match="'s' of topology 'first'"):
            Driver(two, updater, "other", **{"topology.name": "second"})
    finally:
        close_stores()
        run(database, *(f"DROP OWNED BY {role} CASCADE" for role in ("one", "two")), "DROP ROLE one, two")


# -- SQLite's own ways


@SQLITE
def test_the_columns_of_a_table_without_types_take_what_is_declared(database: str) -> None:
    run(database, "CREATE TABLE counts (word PRIMARY KEY, count, txid, prev_count)")
    with pytest.raises(StateError, match="has the column 'word' without a type, and the type of 'word' is not decl"):
        SqlMapState.opaque(database, "counts", "word").makeState({}, None, 0, 1)
    driver = Driver(InsertIgnoreState(database, "counts", "word", ["word string", "count bigint"]), RowUpdater())
    driver.batch([TridentTuple.of(["word", "count"], ("1", 2))], 1)
    assert driver.factory.stored() == {("1",): (2,)}


@SQLITE
def test_dates_are_taken_where_a_column_is_called_date(database: str) -> None:
    run(database, "CREATE TABLE days (day DATE PRIMARY KEY, at DATETIME)")
    factory = InsertIgnoreState(database, "days", "day")
    day = datetime.date(1, 1, 1)
    rows = [(day, None), (datetime.date(9999, 12, 31), datetime.datetime(2024, 2, 29, 1, 2, 3, 4))]
    for txid in (1, 2):
        state = factory.makeState({}, None, 0, 1)
        persist(state, txid, RowUpdater(), [TridentTuple.of(["day", "at"], row) for row in rows], SILENT)
    assert factory.stored() == {(first,): (second,) for first, second in rows}


@SQLITE
@pytest.mark.parametrize("declared", ["v date", "v timestamp", "v decimal(5,2)", "v json"])
def test_a_text_of_another_program_that_is_no_value_is_told(database: str, declared: str) -> None:
    run(database, "CREATE TABLE t (k TEXT PRIMARY KEY, v TEXT)")
    run(database, "INSERT INTO t VALUES ('a', '{1/2/2024')")
    told = rf"column 'v' \({re.escape(declared[2:])}\) holds '{{1/2/2024', which is no such value.*Another program"
    with pytest.raises(StateError, match=told):
        InsertIgnoreState(database, "t", "k string", ["k string", declared]).stored()
    with pytest.raises(StateError, match=told):
        SqlMapState.nonTransactional(database, "t", "k string", declared).makeState({}, None, 0, 1).multiGet([("a",)])


@SQLITE
def test_a_column_that_makes_numbers_of_texts_names_what_to_make_of_it(database: str) -> None:
    run(database, "CREATE TABLE t (k TEXT PRIMARY KEY, v DECIMAL(10,2))")
    with pytest.raises(StateError, match=r"'v' as DECIMAL\(10,2\), which cannot hold decimal\(10,2\).*make it TEXT"):
        InsertIgnoreState(database, "t", "k", ["k string", "v decimal(10,2)"]).makeState({}, None, 0, 1)


@pytest.mark.parametrize("columns", [["k string"], None])
def test_a_file_that_cannot_be_opened_tells_why(tmp_path: Path, columns: Any) -> None:
    (tmp_path / "letter.txt").write_text("Dear Sir or Madam, " * 100)
    reasons = {"no/such/x.db": f"{tmp_path}/no/such does not exist", ".": "is a folder", "letter.txt": "not a SQLite"}
    for path, why in reasons.items():
        factory = InsertIgnoreState(f"sqlite:///{tmp_path}/{path}", "t", "k", columns)
        with pytest.raises(StateError, match=re.escape(why)):
            persist(factory.makeState({}, None, 0, 1), 1, RowUpdater(), [TridentTuple.of(["k"], ["a"])], SILENT)
        with pytest.raises(StateError, match=re.escape(why)):
            factory.participant().open({"topology.name": "t", "trident.state.name": "s"})
