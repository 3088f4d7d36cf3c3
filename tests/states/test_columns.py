"""Columns, names and tables that would change a value, lose a key or break a statement: taken exactly or refused."""

from __future__ import annotations

import datetime as dt
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import databases
import pytest
import sqlalchemy as sa

from states.columns.values import Column, RefusedValue, refusal
from states.sql import SequenceState
from states.sql.inspect import check, list_missing_privileges
from states.sql.maps.state import SqlMapState
from states.sql.rows import batch
from states.sql.rows.append import AppendState
from states.sql.rows.batch import BatchState
from states.sql.rows.insert_ignore import InsertIgnoreState
from states.sql.rows.row_checks import _json
from states.sql.store import close_stores, parse_url, store_of
from states.sql.table import TablePlace
from trident_py.errors import DefinitionError, StateError
from trident_py.state import ValueUpdater
from trident_py.testing.databases import connection
from trident_py.tuples import Fields, TridentTuple

pytestmark = pytest.mark.dear

MYSQLS = pytest.mark.parametrize("database", databases.MYSQLS, indirect=True)
POSTGRESQL = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
SERVERS = pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
TWO = dt.timezone(dt.timedelta(hours=2))
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=TWO)


@pytest.fixture(autouse=True)
def _closed(request: pytest.FixtureRequest) -> Iterator[None]:
    if "database" in request.fixturenames:
        request.getfixturevalue("database")  # which goes after its connections
    yield
    close_stores()


class Count(ValueUpdater):
    def update(self, stored: Any) -> Any:
        return (stored or 0) + 1


def conf(name: str, topology: str = "t", generation: int | None = None) -> dict[str, Any]:
    return {"topology.name": topology, "trident.state.name": name, "trident.lineage": "L",
            "trident.generation": generation}  # fmt: skip


def sql(url: str, *texts: str) -> list[tuple]:
    found: list[tuple] = []
    with connection(url) as one:
        for text in texts:
            result = one.exec_driver_sql(text)
            found = [tuple(row) for row in result.all()] if result.returns_rows else []
    return found


def rows(fields: list[str], *values: tuple) -> list[TridentTuple]:
    return [TridentTuple.of(Fields(*fields), each) for each in values]


def written(factory: Any, txid: int, fields: list[str], *values: tuple, share: int = 1) -> Any:
    """One batch in one partition, as a cluster runs it."""
    participant = factory.participant()
    generation = participant.open(conf(factory.stateName))
    participant.prepare(txid, 0, 1)
    state = factory.makeState(conf(factory.stateName, generation=generation), None, 0, 1)
    state.beginCommit(txid)
    for start in range(0, len(values), share):
        state.insert(rows(fields, *values[start : start + share]), False)
    receipt = state.commit(txid)
    participant.publish(txid, 0, [receipt])
    return receipt


def counted(state: Any, keys: list[list[Any]], txids: range) -> None:
    for txid in txids:
        state.beginCommit(txid)
        state.multiUpdate(keys, [Count()] * len(keys))
        state.commit(txid)


# -- times with a zone


@pytest.mark.parametrize("count", [3, 300])
@pytest.mark.parametrize("kind", ["nonTransactional", "transactional", "opaque"])
def test_a_key_with_a_zone_is_found_again(database: str, kind: str, count: int) -> None:
    factory = getattr(SqlMapState, kind)(database, "counts", "at timestamp")
    state = factory.makeState({}, None, 0, 1)
    keys = [[NOON + dt.timedelta(seconds=second)] for second in range(count)]
    counted(state, keys, range(1, 4))
    assert [getattr(each, "curr", getattr(each, "value", each)) for each in factory.stored().values()] == [3] * count
    first = min(factory.stored())[0]
    assert first.replace(tzinfo=dt.UTC) == NOON  # servers' columns hold UTC without saying so


@pytest.mark.parametrize("count", [1, 300])
def test_a_key_with_a_zone_is_inserted_once(database: str, count: int) -> None:
    factory = InsertIgnoreState(database, "r", "at", ["at timestamp", "seen timestamp"], onConflict="fail")
    values = [(NOON + dt.timedelta(seconds=second), NOON) for second in range(count)]
    for txid in (1, 2):
        written(factory, txid, ["at", "seen"], *values, share=count)
    assert len(factory.stored()) == count
    assert {each.replace(tzinfo=dt.UTC) for row in factory.stored().values() for each in row} == {NOON}


def test_values_with_a_zone_are_appended(database: str) -> None:
    for factory in (AppendState(database, "a", "at timestamp"), BatchState(database, "b", ["at timestamp"], "at")):
        written(factory, 1, ["at"], (NOON,))
        (stored,) = factory.stored()
        assert stored[0].replace(tzinfo=dt.UTC) == NOON


def test_a_sender_with_a_zone_is_the_same_sender_after_a_gap(database: str) -> None:
    columns = ["at timestamp", "n bigint", "seen timestamp"]
    factory = SequenceState(database, "s", "at", "n", columns)
    for txid, numbers in enumerate([(1, 3), (3,), (2,), (1, 2)], 1):
        receipt = written(factory, txid, ["at", "n", "seen"], *((NOON, n, NOON) for n in numbers))
        assert receipt.get("conflicts", 0) == 0, receipt
    assert sorted(key[1] for key in factory.stored()) == [1, 2, 3] and factory.held() == {}


def test_a_time_whose_utc_is_out_of_range_is_refused() -> None:
    with pytest.raises(RefusedValue, match="year"):
        Column("at", "timestamp").encode([dt.datetime(1, 1, 1, tzinfo=TWO)])


@pytest.mark.parametrize("bad", ["decimal(ten)", "decimal(10,-2)", "decimal(10.5)", "decimal(1,2,3)", "varchar()"])
def test_sizes_that_are_no_numbers_are_refused(bad: str) -> None:
    """They were read as others, or as none: decimal(ten) as decimal(10, 0)."""
    with pytest.raises(DefinitionError, match=r"column 'c': in '.*', one or two whole numbers"):
        Column("c", bad)
    assert Column("c", "decimal( 10 , 2 )").digits == (10, 2)


def test_json_that_is_nested_too_deeply_is_a_bad_row(database: str) -> None:
    deep: list[Any] = []
    for _ in range(700):
        deep = [deep]
    factory = InsertIgnoreState(database, "t", "k", ["k bigint", "v json"], onBadRow="dead-letter")
    done = written(factory, 1, ["k", "v"], (1, [1]), (2, deep))
    assert (done["inserted"], done["rejected"]) == (1, 1) and factory.stored() == {(1,): ([1],)}
    assert "nested too deeply" in sql(database, "SELECT reason FROM t_rejected")[0][0]


class Silent(Decimal):
    """A user's number that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


HOSTILE = [
    10**5000, -(10**500), Decimal("1E+500"), Decimal("1E-999999"), Decimal("1E+999999"), Decimal("sNaN"),
    Decimal("-Infinity"), Silent("1E+30"), Silent("0.001"), float("nan"), float("inf"), "\ud800", b"\0", object(), [[]],
]  # fmt: skip


TYPES = ["bigint", "double", "string", "boolean", "binary", "date", "timestamp", "decimal(10,2)"]


@pytest.mark.parametrize("ddl", TYPES)
@pytest.mark.parametrize("key", [False, True])
def test_a_hostile_value_is_taken_or_refused_in_words(ddl: str, key: bool) -> None:
    column = Column("c", ddl, key)
    for value in HOSTILE:
        try:
            column.encode([value])
        except RefusedValue as why:
            text = str(refusal("t", [column], column, [value], value, why))
            assert text.startswith("table 't', row 0 of the batch (c=") and len(text) < 500
            assert json.loads(_json({"c": value})).keys() == {"c"}


# -- decimals


def test_minus_zero_is_the_key_zero(database: str) -> None:
    factory = SqlMapState.nonTransactional(database, "counts", "k decimal(10,2)")
    state = factory.makeState({}, None, 0, 1)
    for key in (Decimal("-0"), Decimal("-0.00"), Decimal(0)):
        counted(state, [[key]], range(1, 2))
    assert factory.stored() == {(Decimal("0.00"),): 3}


# -- columns that change values


@MYSQLS
@pytest.mark.parametrize(
    ("type_name", "ddl", "words"),
    [
        ("CHAR(10)", "string", "pads or drops blanks; use VARCHAR"),
        ("CHAR(10) CHARACTER SET latin1", "varchar(10)", "pads or drops blanks; use VARCHAR"),
        ("NCHAR(10)", "string", "pads or drops blanks; use VARCHAR"),
        ("CHAR(10)", "json", "pads or drops blanks; use VARCHAR"),
        ("BINARY(4)", "binary", "pads or drops zero bytes; use VARBINARY"),
        ("SET('a','b')", "string", "may store another text; use VARCHAR"),
        ("ENUM('a','b')", "string", "may store another text; use VARCHAR"),
    ],
)
def test_a_column_of_mysql_that_changes_values_is_refused(database: str, type_name: str, ddl: str, words: str) -> None:
    refused(database, type_name, ddl, words)


@POSTGRESQL
@pytest.mark.parametrize(
    ("type_name", "ddl", "words"),
    [
        ("CHAR(10)", "string", "pads or drops blanks; use VARCHAR"),
        ("CHARACTER(3)", "json", "pads or drops blanks; use VARCHAR"),
        ("NCHAR(10)", "varchar(10)", "pads or drops blanks; use VARCHAR"),
        ("TIMESTAMP(3)", "timestamp", "rounds times; use TIMESTAMP"),
    ],
)
def test_a_column_of_postgresql_that_changes_values_is_refused(
    database: str, type_name: str, ddl: str, words: str
) -> None:
    refused(database, type_name, ddl, words)


def refused(url: str, type_name: str, ddl: str, words: str) -> None:
    sql(url, f"CREATE TABLE r (id BIGINT PRIMARY KEY, v {type_name})")
    with pytest.raises(StateError, match="has the column 'v' as ") as told:
        InsertIgnoreState(url, "r", "id", ["id bigint", f"v {ddl}"]).makeState({}, None, 0, 1)
    assert words in str(told.value)
    (finding,) = [each.text for each in check(TablePlace(url, "r"), Fields("id bigint"), Fields(f"v {ddl}"))
                  if each.level == "error"]  # fmt: skip
    assert words in finding


@MYSQLS
@pytest.mark.parametrize("type_name", ["VARCHAR(10)", "NVARCHAR(10)", "TEXT", "LONGTEXT"])
def test_texts_of_mysql_that_stay_as_they_are_are_taken(database: str, type_name: str) -> None:
    taken(database, type_name, "string", "ok ")


@MYSQLS
@pytest.mark.parametrize("type_name", ["VARBINARY(4)", "BLOB"])
def test_bytes_of_mysql_that_stay_as_they_are_are_taken(database: str, type_name: str) -> None:
    taken(database, type_name, "binary", b"a\0")


@POSTGRESQL
@pytest.mark.parametrize("type_name", ["VARCHAR(10)", "CHARACTER VARYING(10)", "VARCHAR", "TEXT"])
def test_texts_of_postgresql_that_stay_as_they_are_are_taken(database: str, type_name: str) -> None:
    taken(database, type_name, "string", "ok ")


def taken(url: str, type_name: str, ddl: str, value: Any) -> None:
    sql(url, f"CREATE TABLE r (id BIGINT PRIMARY KEY, v {type_name})")
    factory = InsertIgnoreState(url, "r", "id", ["id bigint", f"v {ddl}"])
    written(factory, 1, ["id", "v"], (1, value))
    assert factory.stored() == {(1,): (value,)}


# -- names

BAD = ["ok?", "a%b", "%s", "a`b", 'a"b', 'x" (a); DROP TABLE y; --', "a\0b"]
GOOD = ["select", "Größe", "a'b", "a.b", "a:b", "a(b)", "a\\b", "a;b", "a-b"]
STATES = ["insert-ignore", "append", "batch", "map", "sequence"]


def made(kind: str, url: str, table: str, column: str) -> Any:
    columns = [f"{column} bigint", "v bigint"]
    if kind == "map":
        return SqlMapState.opaque(url, table, f"{column} bigint", "v bigint")
    if kind == "sequence":
        return SequenceState(url, table, "v", column, columns)
    if kind == "append":
        return AppendState(url, table, columns)
    return (InsertIgnoreState if kind == "insert-ignore" else BatchState)(url, table, key=column, columns=columns)


def put(kind: str, factory: Any, column: str) -> None:
    if kind != "map":
        written(factory, 1, [column, "v"], (1, 2))
        return
    participant = factory.participant()
    generation = participant.open(conf("s"))
    participant.prepare(1, 0, 1)
    state = factory.makeState(conf("s", generation=generation), None, 0, 1)
    state.beginCommit(1)
    state.multiPut([[1]], [2])
    state.commit(1)


@POSTGRESQL
@pytest.mark.parametrize(("kind", "name"), [*((kind, "ä" * 32) for kind in STATES), ("batch", "t" * 57)])
def test_a_name_that_postgresql_would_cut_is_refused(database: str, kind: str, name: str) -> None:
    """A table with the first 63 bytes of the name may be another one's, or hold its own staged or rejected rows."""
    with pytest.raises(StateError, match=r"has 64 bytes as a name, of which PostgreSQL keeps 63; shorten it"):
        put(kind, made(kind, database, name, "k"), "k")


@pytest.mark.parametrize("name", [*BAD, ""])
@pytest.mark.parametrize("kind", STATES)
def test_a_name_that_would_break_a_statement_is_refused(database: str, kind: str, name: str) -> None:
    for table, column in ((name, "c"), ("t", name)):
        if column and " " not in column:  # a field ends at its first blank
            with pytest.raises(DefinitionError) as told:
                put(kind, made(kind, database, table, column), column)
            assert repr(name) in str(told.value) and "cannot name a" in str(told.value)
    assert not [each for each in sa.inspect(store_of(parse_url(database)).engine).get_table_names()
                if not each.startswith("trident_")]  # fmt: skip


@pytest.mark.parametrize("kind", STATES)
def test_every_other_name_works(database: str, kind: str) -> None:
    for index, name in enumerate(GOOD):
        factory = made(kind, database, f"{index} {name}", name)
        put(kind, factory, name)
        assert len(factory.stored()) == 1, name


@pytest.mark.parametrize("name", BAD)
def test_the_check_refuses_the_names_that_the_state_refuses(name: str, tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/c.db"
    with pytest.raises(DefinitionError, match="cannot name a table"):
        TablePlace(url, name)
    with pytest.raises(DefinitionError, match="cannot name a column"):
        check(TablePlace(url, "t"), Fields("k"), Fields([name.partition(" ")[0]]))


@pytest.mark.parametrize("name", ["trident_keys", "trident_stage", "Trident_Staged", "trident_fence", "trident_part"])
def test_a_table_with_the_name_of_one_of_ours_is_refused(name: str, tmp_path: Any) -> None:
    """A temporary table hides one of its name: rows were taken for known, and left out."""
    with pytest.raises(DefinitionError, match=f"table '{name}': trident_py has one of that name for itself"):
        InsertIgnoreState(f"sqlite:///{tmp_path}/c.db", name, "k", ["k bigint", "v bigint"])


@pytest.mark.parametrize("name", [batch.RANK, "Trident_Row", *(column.name for column in batch._OWN)])
def test_a_column_with_the_name_of_one_of_the_staged_rows_is_refused(name: str, tmp_path: Any) -> None:
    """It was found by the database, in the first batch."""
    for options in ({"columns": [name]}, {"key": name}, {"txid": name}):
        with pytest.raises(DefinitionError, match=f"trident_py has a column '{name}' for itself"):
            BatchState(f"sqlite:///{tmp_path}/c.db", "t", **options)


def test_a_column_with_the_name_of_one_of_ours_is_refused(database: str) -> None:
    """That of temporary tables was found by the database, in the first batch with a key that was there."""
    ours = {"trident_row": [lambda n: InsertIgnoreState(database, "t", "k", ["k int", n]),
                            lambda n: InsertIgnoreState(database, "t", n)]}  # fmt: skip
    if database.startswith("mysql"):
        every = [lambda n: AppendState(database, "t", [n]), lambda n: SqlMapState.opaque(database, "t", n),
                 lambda n: SequenceState(database, "t", "s", n)]  # fmt: skip
        ours |= {"Trident_ID": every, "trident_at": every}
    for name, factories in ours.items():
        for make in factories:
            with pytest.raises(DefinitionError, match=f"table 't': trident_py has a column '{name}' for itself"):
                make(name)
    with pytest.raises(DefinitionError, match="trident_py has a column 'trident_row' for itself"):
        written(InsertIgnoreState(database, "t", "k int"), 1, ["k", "trident_row"], (1, 2))


def test_the_check_passes_over_columns_that_the_state_does_not_use(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/c.db"
    sql(url, 'CREATE TABLE t (k TEXT PRIMARY KEY, "100%" BIGINT, v BIGINT)')
    assert check(TablePlace(url, "t"), Fields("k"), None)[0].text == "table 't' (k text, v bigint), key (k)"


@pytest.mark.parametrize("names", [("x" * 191, "s"), ("t", "ß" * 191)])
def test_a_name_too_long_for_the_ledger_is_refused_in_our_words(database: str, names: tuple[str, str]) -> None:
    topology, state = names
    for factory in (BatchState(database, "b", "a bigint"), SqlMapState.opaque(database, "m")):
        with pytest.raises(DefinitionError, match=r"191 characters.*190") as told:
            factory.participant().open(conf(state, topology))
        assert ("topology" in str(told.value).partition(":")[0]) == (len(topology) > 190)
        assert factory.participant().open(conf("ß" * 190, "x" * 190)) > 0


# -- the check


@pytest.mark.parametrize(
    ("database", "name"), [("mariadb", "MyISAM"), ("mariadb", "Aria"), ("mysql", "MyISAM")], indirect=["database"]
)
@pytest.mark.parametrize("kind", STATES)
def test_a_table_without_transactions_is_refused(database: str, name: str, kind: str) -> None:
    put(kind, made(kind, database, "t", "c"), "c")
    sql(database, f"ALTER TABLE t ENGINE = {name}")
    close_stores()
    with pytest.raises(StateError, match=f"engine {name}, which has no transactions.*ENGINE = InnoDB"):
        put(kind, made(kind, database, "t", "c"), "c")
    keys, others = (Fields(), Fields("c bigint", "v bigint")) if kind == "append" else (Fields("c bigint"), Fields("v"))
    errors = [] if kind == "sequence" else check(TablePlace(database, "t"), keys, others)
    for each in [each for each in errors if each.level == "error"]:
        assert f"engine {name}, which has no transactions" in each.text
    assert kind == "sequence" or errors


@MYSQLS
def test_a_further_table_without_transactions_is_told(database: str) -> None:
    sql(database, "CREATE TABLE t_staged (v BIGINT) ENGINE = MyISAM")
    found = check(TablePlace(database, "t"), Fields(), Fields("v bigint"), ["t_staged", "t_rejected"])
    assert [each.text.partition(",")[0] for each in found if each.level == "error"] == [
        "table 't_staged' uses the engine MyISAM"
    ]
    assert "the state's further tables t_rejected" in [each.text for each in found]


@contextmanager
def new_user(database: str, name: str) -> Iterator[tuple[str, str]]:
    """Give the URL of a new user without rights, and the name by which SQL knows it."""
    url = sa.make_url(database)
    mysql, user = url.get_backend_name() == "mysql", f"{name}_" + (url.database or "")[-12:]
    whom = f"'{user}'@'%%'" if mysql else user
    sql(database, f"CREATE USER {whom} IDENTIFIED BY 'p'" if mysql else f"CREATE USER {user} PASSWORD 'p'")
    try:
        yield url.set(username=user, password="p").render_as_string(hide_password=False), whom
    finally:
        close_stores()
        sql(database, *([] if mysql else [f"DROP OWNED BY {user}"]), f"DROP USER {whom}")


@SERVERS
def test_a_state_that_stages_needs_temporary_tables(database: str) -> None:
    url = sa.make_url(database)
    mysql = url.get_backend_name() == "mysql"
    word, right = ("CREATE TEMPORARY TABLES",) * 2 if mysql else ("TEMPORARY on the database", "TEMPORARY")
    where = f"{url.database}.*" if mysql else f"DATABASE {url.database}"
    with new_user(database, "stager") as (theirs, whom):
        if mysql:
            sql(database, f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON {where} TO {whom}")
        else:
            sql(database, f"REVOKE TEMPORARY ON {where} FROM PUBLIC", f"GRANT CREATE ON SCHEMA public TO {whom}")
        look = (TablePlace(theirs, "t"), Fields("k bigint"), Fields("v bigint"))
        errors = [each.text for each in check(*look, stages=True) if each.level == "error"]
        assert len(errors) == 1 and word in errors[0], errors
        assert not [each for each in check(*look) if each.level == "error"]
        sql(database, f"GRANT {right} ON {where} TO {whom}")
        close_stores()
        assert not [each for each in check(*look, stages=True) if each.level == "error"]


@MYSQLS
def test_grants_of_names_that_are_quoted_are_seen(database: str) -> None:
    url, name = sa.make_url(database), f"d `of. {secrets.token_hex(4)}"
    quoted, user = f"`{name.replace('`', '``')}`", f"'u{name[-8:]}'@'%%'"
    sql(database, f"CREATE DATABASE {quoted}", f"CREATE TABLE {quoted}.`t.x y` (v INT)")
    sql(database, f"CREATE USER {user} IDENTIFIED BY 'p'")
    try:
        for right, where in (("SELECT, INSERT, UPDATE, DELETE", "`t.x y`"), ("CREATE", "*")):
            sql(database, f"GRANT {right} ON {quoted}.{where} TO {user}")
        with store_of(url.set(database=name, username=f"u{name[-8:]}", password="p")).reading() as connection:
            assert list_missing_privileges("mysql", connection, ["t.x y"], creates=True) == []
            lacking = list_missing_privileges("mysql", connection, ["t.x"], creates=True)
            assert lacking == [f"{right} on t.x" for right in ("SELECT", "INSERT", "UPDATE", "DELETE")]
    finally:
        close_stores()
        sql(database, f"DROP DATABASE {quoted}", f"DROP USER {user}")


@SERVERS
def test_a_user_who_may_not_create_tables_writes_into_those_that_are_there(database: str) -> None:
    url = sa.make_url(database)
    mysql = url.get_backend_name() == "mysql"
    where = f"{url.database}.*" if mysql else "ALL TABLES IN SCHEMA public"
    for kind in STATES:
        put(kind, made(kind, database, kind, "c"), "c")
    close_stores()
    temporary = ", CREATE TEMPORARY TABLES" if mysql else ""  # PostgreSQL gives it to all
    with new_user(database, "writer") as (theirs, whom):
        sql(database, f"GRANT SELECT, INSERT, UPDATE, DELETE{temporary} ON {where} TO {whom}")
        for kind in STATES:
            factory = made(kind, theirs, kind, "c")
            assert {each.level for each in factory.check()} == {"ok"}
            put(kind, factory, "c")


def test_sqlite_grants_everything() -> None:
    assert list_missing_privileges("sqlite", None, ["t"], creates=True, stages=True) == []  # type: ignore[arg-type]
