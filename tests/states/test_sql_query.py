"""SqlQuery: every tuple's rows, in few statements, with bound parameters; on every database."""

from __future__ import annotations

import datetime
import decimal
import pickle
from pathlib import Path
from typing import Any

import pytest
from contracts.asking import run

from states.sql import SqlQuery
from states.sql.query import Select
from states.sql.store import parse_url, store_of
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import DefinitionError, FailedException, StateError
from trident_py.operations import deterministic
from trident_py.testing import FixedBatchSpout
from trident_py.tuples import TridentTuple

pytestmark = pytest.mark.dear

IDS = Fields("id", "more")


@pytest.fixture
def users(database: str) -> str:
    """The users of the JDBC examples: 1 has two orders, 2 one, 3 none."""
    long = "bigint" if not database.startswith("sqlite") else "integer"
    run(database, f"CREATE TABLE users (id {long} PRIMARY KEY, name varchar(50))")
    run(database, f"CREATE TABLE orders (number {long} PRIMARY KEY, customer {long}, what varchar(50))")
    run(database, "INSERT INTO users VALUES (1, 'peter'), (2, 'bob'), (3, 'it''s alice')")
    run(database, "INSERT INTO orders VALUES (10, 1, 'tea'), (11, 1, 'cup'), (12, 2, 'tea')")
    return database


def asked(query: SqlQuery, *values: Any) -> list[list[tuple]]:
    fields = Fields.of(query.inFields)
    rows = [TridentTuple.of(fields, value if isinstance(value, tuple) else (value,)) for value in values]
    answers, emitted = query.batchRetrieve(None, rows), []
    assert len(answers) == len(rows)
    for row, answer in zip(rows, answers, strict=True):
        out: list[tuple] = []
        query.execute(row, answer, type("Collector", (), {"emit": out.append}))  # type: ignore[arg-type]
        emitted.append(out)
    return emitted


def test_each_tuple_gets_its_rows(users: str) -> None:
    """None, one or many; Storm's JdbcState gives the rows of all tuples in one list, which fits one row each only."""
    query = SqlQuery(users, "SELECT what, number FROM orders WHERE customer = :id", "id", ["what", "number"])
    found = [sorted(rows) for rows in asked(query, 1, 3, 2, 1, 99)]
    tea_and_cup = [("cup", 11), ("tea", 10)]
    assert found == [tea_and_cup, [], [("tea", 12)], tea_and_cup, []]


@pytest.mark.parametrize(
    "select",
    [
        "SELECT name FROM users WHERE id = :id AND name <> :more",
        "SELECT name FROM users WHERE id = ? AND name <> ?",
        "SELECT name FROM users -- of ?\nWHERE id = :id AND name <> :more -- :nothing",
        "WITH u AS (SELECT * FROM users WHERE id = :id) SELECT name FROM u WHERE name <> :more AND :id = :id;",
        "SELECT name FROM users WHERE name <> :more AND id = :id AND name NOT LIKE '%? :x; /*' /* ; :y ? */",
    ],
)
def test_parameters_have_names_or_places(users: str, select: str) -> None:
    query = SqlQuery(users, select, IDS, "name")
    assert asked(query, (1, "bob"), (2, "bob"), (3, "bob")) == [[("peter",)], [], [("it's alice",)]]


def test_a_time_is_asked_for_as_the_same_instant_in_every_zone(database: str) -> None:
    """PyMySQL leaves a zone out: noon in Berlin was noon in UTC; the same instant beside it was asked for so, too."""
    kind = {"mysql": "datetime(6)", "mariadb": "datetime(6)", "postgresql": "timestamp"}
    run(database, f"CREATE TABLE t (at {kind.get(parse_url(database).get_backend_name(), 'text')}, n integer)")
    noon = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
    stored = "2026-01-02 12:00:00" + ("+00:00" if database.startswith("sqlite") else "")
    run(database, f"INSERT INTO t VALUES ('{stored}', 1)")
    query = SqlQuery(database, "SELECT n FROM t WHERE at = :at", "at", "n")
    later = noon.astimezone(datetime.timezone(datetime.timedelta(hours=2)))
    wrong = later.replace(tzinfo=datetime.UTC)
    assert asked(query, later, noon, wrong) == [[(1,)], [(1,)], []]
    with pytest.raises(StateError, match="its year is outside 1 to 9999 in UTC"):
        asked(query, datetime.datetime.min.replace(tzinfo=later.tzinfo))


@pytest.mark.parametrize(
    "evil",
    ["' OR '1'='1", "x'; DROP TABLE users; --", "\\' OR 1=1 -- ", "%s %(x)s ? :id", '" OR ""="', "\\", "$$", "/*"],
)
def test_a_value_is_never_part_of_the_text(users: str, evil: str) -> None:
    query = SqlQuery(users, "SELECT id FROM users WHERE name = :name", "name", "id")
    assert asked(query, evil, "bob") == [[], [(2,)]]
    echo = SqlQuery(users, "SELECT name FROM users WHERE name = :name OR id = 1", "name", "name_again")
    run(users, "DELETE FROM users WHERE id > 1")
    with store_of(parse_url(users)).reading() as connection:
        connection.execute("INSERT INTO users VALUES (7, ?)", (evil,))
    assert sorted(asked(echo, evil)[0]) == sorted([(evil,), ("peter",)])


def test_many_tuples_are_few_statements(users: str, monkeypatch: pytest.MonkeyPatch) -> None:
    statements = []
    real = Select.together
    monkeypatch.setattr(Select, "together", lambda self, many: statements.append(many) or real(self, many))
    query = SqlQuery(users, "SELECT name FROM users WHERE id = :id", "id", "name")
    names = {1: [("peter",)], 2: [("bob",)], 3: [("it's alice",)]}
    ids = [n % 2_200 for n in range(5_000)]
    assert asked(query, *ids) == [names.get(n, []) for n in ids]
    assert statements == ([500] * 4 + [200] if users.startswith("sqlite") else [2_000, 200])  # each question once
    statements.clear()
    assert asked(query, *[n % 100 for n in range(1_000)]) == [names.get(n % 100, []) for n in range(1_000)]
    assert statements == [100]


def test_a_query_without_parameters_is_asked_once(users: str) -> None:
    query = SqlQuery(users, "SELECT count(*) FROM users WHERE name LIKE '%e%'", [], "n")
    assert asked(query, (), (), ()) == [[(2,)]] * 3


def test_an_order_with_a_limit_is_kept(users: str) -> None:
    text = "SELECT what FROM orders WHERE customer = :id ORDER BY number DESC LIMIT 10"
    assert asked(SqlQuery(users, text, "id", "what"), 1, 2) == [[("cup",), ("tea",)], [("tea",)]]


def test_null_and_types_come_as_they_are(users: str) -> None:
    query = SqlQuery(users, "SELECT number FROM orders WHERE customer = :id", "id", "number")
    assert asked(query, None, 2) == [[], [(12,)]]
    if users.startswith("sqlite"):
        run(users, "CREATE TABLE typed (d text, b integer, m text)")
        run(users, "INSERT INTO typed VALUES ('2026-01-02', 1, '1.50')")
    else:
        run(users, "CREATE TABLE typed (d date, b boolean, m decimal(8, 2))")
        run(users, "INSERT INTO typed VALUES ('2026-01-02', true, 1.5)")
    out = ["d date", "b boolean", "m decimal(8, 2)"]
    typed = SqlQuery(users, "SELECT d, b, m FROM typed WHERE d = :day", "day date", out)
    day = datetime.date(2026, 1, 2)
    assert asked(typed, day, datetime.date(2026, 1, 3)) == [[(day, True, decimal.Decimal("1.50"))], []]
    with pytest.raises(StateError, match=r"field 'day' \(date\) cannot hold 'monday' \(str\): it is not a date"):
        asked(typed, day, "monday")


def test_in_a_topology(users: str) -> None:
    """Storm's UserPersistenceTridentTopology asks so: one tuple for each row of the answer."""
    query = SqlQuery(users, "SELECT what FROM orders WHERE customer = ?", "id", "what")
    topology, seen = TridentTopology(), []
    stream = topology.newStream("ids", FixedBatchSpout(["id"], 2, (1,), (2,), (3,)))
    stream = stream.stateQuery(topology.newStaticState(query.source), "id", query, "what")
    stream.peek(lambda row: seen.append(tuple(row)))
    with LocalCluster() as cluster:
        cluster.submitTopology("orders", {}, topology.build()).awaitTermination()
    assert sorted(seen) == [(1, "cup"), (1, "tea"), (2, "tea")]


# -- what is refused


def sqlite(folder: Path) -> str:
    return f"sqlite:///{folder}/q.db"


@pytest.mark.parametrize(
    ("select", "fields", "said"),
    [
        ("SELECT 1 WHERE :ib = 1", "id", r"no input field 'ib' for :ib; the input fields are"),
        ("SELECT 1 WHERE 1 = ? AND 2 = ?", "id", "2 parameters for the input fields"),
        ("SELECT 1", "id", "0 parameters for the input fields"),
        ("SELECT 1 WHERE :id = 1", IDS, "1 parameters for the input fields"),
        ("DELETE FROM users", [], "begins with SELECT or WITH"),
        ("SELECT 1; DELETE FROM users", [], "has several statements"),
        ("SELECT 1 /*! ; DELETE FROM users */", [], r"/\*! is no comment"),
        ("SELECT 1 /*M!100 ; DELETE FROM users */", [], r"/\*! is no comment"),
        (None, [], "begins with SELECT or WITH"),
        (r"SELECT 'it\'s'", [], "write '' for a quote"),
        ("SELECT 1 WHERE :id = 1", "id nosuchtype", "unknown type 'nosuchtype'"),
    ],
)
def test_a_text_that_does_not_fit_its_fields_is_refused(tmp_path: Path, select: Any, fields: Any, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        SqlQuery(sqlite(tmp_path), select, fields, "x")


def test_columns_that_do_not_fit_are_named(users: str) -> None:
    for given in (3, 99):  # with rows and without
        with pytest.raises(StateError, match=r"has the columns \(id, name\), and outFields are \(?.?name"):
            asked(SqlQuery(users, "SELECT id, name FROM users WHERE id = :id", "id", "name"), given)


def test_a_query_that_the_database_refuses_is_shown_without_secrets(users: str) -> None:
    with pytest.raises(StateError, match=r"run SqlQuery.*nosuch"):
        asked(SqlQuery(users, "SELECT x FROM nosuch WHERE id = :id", "id", "x"), 1)
    query = SqlQuery("mysql+pymysql://me:hush@127.0.0.1:1/db", "SELECT 1 AS x", [], "x")
    assert "hush" not in repr(query) + repr(query.source) + query.source.stateName + str(query.source.needs)
    with pytest.raises(FailedException) as told:
        asked(query, ())
    assert "hush" not in str(told.value)


@pytest.mark.parametrize("value", [[1], {"a": 1}, (1, 2), {1}, object()])
def test_a_value_that_cannot_be_bound_is_named(tmp_path: Path, value: Any) -> None:
    query = SqlQuery(sqlite(tmp_path), "SELECT 1 WHERE :id = 1", "id", "x")
    with pytest.raises(StateError, match=r"field 'id' of .* cannot be bound"):
        query.batchRetrieve(None, [TridentTuple.of(Fields("id"), (value,))])


def test_a_query_is_a_picklable_value(tmp_path: Path) -> None:
    query = SqlQuery(sqlite(tmp_path), "SELECT 1 WHERE :id = 1", "id", "x")
    copy = pickle.loads(pickle.dumps(query))
    assert copy == query and hash(copy) == hash(query)
    assert copy.source.needs.one_machine and deterministic(query) is not None
