"""Nothing that a server, a database, a role, a URL or an environment sets changes what is stored or read.

The story below is told once as it is, then with the settings at other values: at those that are known to hurt, and
then every switch of the server the other way round, those of versions to come included.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import databases
import pytest
from contracts.asking import MYSQLS
from contracts.crashing import Driver
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError

from states.columns.values import Column
from states.sql import AppendState, InsertIgnoreState, RowUpdater, SqlMapState
from states.sql.store import close_stores, parse_url, store_of
from trident_py import Fields
from trident_py.databases.sessions import ENCODINGS
from trident_py.errors import DefinitionError, StateError
from trident_py.extras.gateway.claims import Claim
from trident_py.extras.gateway.stores import store_of as claims_of
from trident_py.operations.builtin import Sum
from trident_py.state import MapCombinerAggStateUpdater
from trident_py.testing.databases import connection
from trident_py.tuples import TridentTuple

FIELDS = Fields(
    "k string", "n bigint", "d double", "t timestamp", "b binary", "p decimal(20,5)", "j json", "o boolean", "y date"
)
TEXTS = ["é", "e", "ok", "OK", "ok ", "", "NULL", "\\", "\\N", "a\\'b", '"', "100%", "日本\U0001f600"]
NUMBERS = [0.1, 1 / 3, 1e-5, 5e-324, -0.0, 4.4942328371557893e307, 123456789.123456789]
_count = itertools.count(1)


def values(txid: int, texts: Sequence[str]) -> list[tuple]:
    day = datetime.datetime(2013, 11, 3, 1, 30, 0, txid)
    return [
        (f"{text}{txid // 3}", index, NUMBERS[index % len(NUMBERS)], day if index % 3 else None,
         bytes([0, 255, 92, index]), Decimal(index) / 8, {"a": [text, None, 1.5]}, index % 2 == 0, day.date())
        for index, text in enumerate(texts)
    ]  # fmt: skip


def story(url: str, texts: Sequence[str] = TEXTS) -> list[str]:
    """Three batches, each run twice, into three states, and what is there then; and claims of the gateway."""
    number = next(_count)
    rows = {txid: [TridentTuple.of(FIELDS, each) for each in values(txid, texts)] for txid in (1, 2, 3)}
    states: list[tuple[Any, Any]] = [
        (InsertIgnoreState(url, f"i{number}", "k", FIELDS), RowUpdater()),
        (AppendState(url, f"a{number}", FIELDS), RowUpdater()),
        (SqlMapState.opaque(url, f"m{number}", "k string", "s double"), MapCombinerAggStateUpdater(Sum(), "k", "d")),
    ]
    told: list[Any] = []
    for factory, updater in states:
        driver = Driver(factory, updater, **{"trident.state.name": factory.table})
        for txid, attempt in ((1, 0), (1, 1), (2, 0), (3, 0), (3, 1)):
            driver.batch(rows[txid], txid, attempt=attempt)
        told.append(sorted(map(repr, factory.stored().items())))
    claims = claims_of(url, 60.0, f"claims{number}")
    try:
        asked = [Claim(text, "x") for text in texts if text]
        told += [[known.won for known in claims.claim(asked, "me", 60.0)] for _ in range(2)]
    finally:
        claims.close()
    close_stores()
    return [str(each) for each in told]


# -- PostgreSQL

HOSTILE = {
    "client_encoding": ["LATIN1", "SQL_ASCII"],
    "extra_float_digits": ["-15"],
    "DateStyle": ["German, DMY", "SQL, DMY"],
    "TimeZone": ["America/New_York"],
}
REFUSED = {
    "default_transaction_read_only": "said by the server: cannot execute ... in a read-only transaction",
    "session_replication_role": "said at open",
}


@pytest.fixture(scope="module")
def plain(postgresql: Any) -> list[str]:
    """The story as it is told where nothing is set."""
    with databases.fresh(postgresql) as url:
        return story(url)


@pytest.fixture
def hostile(postgresql: Any) -> Iterator[tuple[str, Callable[[str, str], None], Callable[[], None]]]:
    """A database and its role; what sets one of their settings, and what resets them all."""
    role = f"hostile_{next(_count)}"
    with connection(postgresql.url) as server, databases.fresh(postgresql) as url:
        database = make_url(url).database
        server.exec_driver_sql(f"CREATE ROLE {role} SUPERUSER LOGIN")
        owners = itertools.cycle([f"DATABASE {database}", f"ROLE {role}"])

        def alter(name: str, value: str) -> None:
            with contextlib.suppress(DBAPIError):  # of the transaction alone
                server.exec_driver_sql(f"ALTER {next(owners)} SET {name} = '{value}'")

        def reset() -> None:
            for _ in range(2):
                server.exec_driver_sql(f"ALTER {next(owners)} RESET ALL")

        yield make_url(url).set(username=role).render_as_string(), alter, reset
        close_stores()
        server.exec_driver_sql(f"DROP OWNED BY {role} CASCADE")
    with connection(postgresql.url) as server:
        server.exec_driver_sql(f"DROP ROLE {role}")


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in HOSTILE.items() for value in values])
def test_a_setting_of_role_or_database_changes_nothing(
    hostile: Any, plain: list[str], name: str, value: str
) -> None:
    url, alter, _ = hostile
    alter(name, value)
    alter(name, value)  # for the role too
    assert story(url) == plain


@pytest.mark.whole("test_a_setting_of_role_or_database_changes_nothing")
def test_every_switch_of_postgresql_the_other_way_round_changes_nothing(
    hostile: Any, plain: list[str], postgresql: Any
) -> None:
    url, alter, reset = hostile
    text = "SELECT name, coalesce(enumvals, '{on,off}'), setting FROM pg_settings"
    with connection(url) as server:
        switches = server.exec_driver_sql(
            f"{text} WHERE context IN ('user', 'superuser') AND vartype IN ('bool', 'enum')"
        ).all()
    assert len(switches) > 60
    for at in range(max(len(values) for _, values, _ in switches) - 1):
        for name, known, now in switches:
            others = [value for value in known if value != now]
            if name not in REFUSED:
                alter(name, others[at % len(others)])
        assert story(url) == plain, f"with every switch at its other value {at}"
        reset()


@pytest.mark.parametrize("name", ["client_encoding", "options"])
def test_a_setting_in_the_url_changes_nothing(postgresql: Any, plain: list[str], name: str) -> None:
    with databases.fresh(postgresql) as url:
        more = {"client_encoding": "latin1", "options": "-c client_encoding=LATIN1 -c extra_float_digits=-15"}
        assert story(make_url(url).update_query_dict({name: more[name]}).render_as_string()) == plain


def test_a_client_encoding_in_the_environment_changes_nothing(
    postgresql: Any, plain: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with databases.fresh(postgresql) as url:
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
        monkeypatch.setenv("PGTZ", "Asia/Tokyo")
        monkeypatch.setenv("PGDATESTYLE", "German")
        assert story(url) == plain


def test_triggers_that_a_role_has_switched_off_are_refused(hostile: Any) -> None:
    url, alter, _ = hostile
    alter("session_replication_role", "replica")
    with pytest.raises(DefinitionError, match=r"session_replication_role is 'replica'.*RESET"):
        store_of(parse_url(url)).take()


@contextlib.contextmanager
def encoded(postgresql: Any, encoding: str) -> Iterator[str]:
    name = f"encoded_{encoding.lower()}"
    with connection(postgresql.url) as server:
        how = f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        server.exec_driver_sql(f"CREATE DATABASE {name} {how}")
    try:
        yield postgresql.url_of(name)
    finally:
        close_stores()
        postgresql.drop_database(name)


@pytest.mark.parametrize("encoding", ["LATIN1", "WIN1252", "LATIN9"])
def test_a_database_in_another_encoding_keeps_its_characters_and_refuses_others(
    postgresql: Any, encoding: str
) -> None:
    with encoded(postgresql, encoding) as url, databases.fresh(postgresql) as unicode:
        assert story(url, TEXTS[:-1]) == story(unicode, TEXTS[:-1])
        with pytest.raises(StateError, match="no equivalent in encoding"):
            story(url, TEXTS)


def test_one_character_by_copy_and_by_parameters_is_one_key(postgresql: Any) -> None:
    with encoded(postgresql, "LATIN1") as url:
        factory = InsertIgnoreState(url, "t", "k", "k string")
        driver = Driver(factory, RowUpdater())
        rows = [TridentTuple.of(["k"], [text]) for text in ("é", "e", "É")]
        driver.batch(rows, 1)
        with store_of(parse_url(url)).writing() as one:
            store_of(parse_url(url)).dialect.write(one, "t", [Column("k", "string", True)], [], [("é",), ("É",)])
        driver.batch(rows, 2)
        assert set(factory.stored()) == {("é",), ("e",), ("É",)}


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "EUC_JP"])
def test_an_encoding_that_changes_texts_is_refused(postgresql: Any, encoding: str) -> None:
    with encoded(postgresql, encoding) as url:
        with pytest.raises(DefinitionError, match=rf"has the encoding {encoding}.*UTF8"):
            store_of(parse_url(url)).take()
        with pytest.raises(DefinitionError, match=f"has the encoding {encoding}"):
            claims_of(url, 60.0, "claims").claim([Claim("a", "b")], "me", 60.0)


@pytest.mark.parametrize(
    "encoding", [pytest.param(each, marks=pytest.mark.whole if at % 4 else ()) for at, each in enumerate(ENCODINGS[1:])]
)
def test_an_encoding_that_is_taken_gives_back_every_character(postgresql: Any, encoding: str) -> None:
    with connection(postgresql.url) as server:
        server.exec_driver_sql(f"SET trident.encoding = '{encoding}'")
        server.exec_driver_sql(EXACT.replace("%", "%%"))


EXACT = """DO $$ DECLARE code int; found bytea; enc text := current_setting('trident.encoding'); BEGIN
FOR code IN SELECT n FROM generate_series(1, 65535) n WHERE n NOT BETWEEN 55296 AND 57343 LOOP
    BEGIN found := convert_to(chr(code), enc); EXCEPTION WHEN untranslatable_character THEN CONTINUE; END;
    IF convert_from(found, enc) <> chr(code) THEN RAISE 'U+% comes back as %', code, convert_from(found, enc); END IF;
END LOOP; END $$"""


# -- MariaDB and MySQL

GLOBALS = {
    "sql_select_limit": ["1", "0"], "sql_mode": ["''", "'NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH'"],
    "time_zone": ["'+09:00'", "'-11:30'"], "collation_connection": ["latin1_swedish_ci", "utf8mb4_general_ci"],
    "character_set_client": ["latin1", "utf8mb3"], "character_set_results": ["latin1", "ascii"],
    "character_set_server": ["latin1", "ascii"], "group_concat_max_len": ["4", "5"], "max_error_count": ["0", "1"],
    "div_precision_increment": ["0", "30"], "max_sort_length": ["64", "65"], "auto_increment_increment": ["7", "9"],
    "init_connect": ["'SET autocommit = 0'", "'SET sql_select_limit = 0, completion_type = 2'"],
}  # fmt: skip
SAID = ("TX_READ_ONLY", "TRANSACTION_READ_ONLY")
"""What the server says by itself: cannot execute statement in a READ ONLY transaction."""


def switches(root: Any, kind: str) -> dict[str, list[str]]:
    """The session's settings that are on or off, or have listed values, with those that they do not have."""
    if kind == "mariadb":
        text = "SELECT variable_name, variable_type, coalesce(enum_value_list, ''), global_value"
        where = "FROM information_schema.system_variables WHERE variable_scope = 'SESSION' AND read_only = 'NO'"
        found = root.exec_driver_sql(f"{text} {where}").all()
    else:
        told = root.exec_driver_sql("SHOW SESSION VARIABLES WHERE value IN ('ON', 'OFF')").all()
        found = [(name, "BOOLEAN", "", now) for name, now in told if settable(root, name)]
    return {
        name: [f"'{value}'" for value in (["ON", "OFF"] if kind == "BOOLEAN" else known.split(",")) if value != now]
        for name, kind, known, now in found if kind in ("BOOLEAN", "ENUM") and name.upper() not in SAID
    }  # fmt: skip


def settable(root: Any, name: str) -> bool:
    try:
        root.exec_driver_sql(f"SET SESSION {name} = @@SESSION.{name}")
    except DBAPIError:
        return False
    return True


@pytest.mark.parametrize(("kind", "count"), [("mariadb", 60), ("mysql", 20)])
def test_every_switch_of_a_mysql_the_other_way_round_changes_nothing(own_server: Any, kind: str, count: int) -> None:
    server = own_server(kind)
    url = server.create_database()
    with connection(server.url) as root:
        root.exec_driver_sql("CREATE USER plain@'%%'")  # init_connect is not for root
        root.exec_driver_sql("GRANT ALL ON *.* TO plain@'%%'")
        found = switches(root, kind)
        url = make_url(url).set(username="plain").render_as_string()
        plain = story(url)
        assert len(found) > count
        for at in range(max(map(len, found.values()))):
            for name, others in {**found, **GLOBALS}.items():
                with contextlib.suppress(DBAPIError):  # not there, or not for this server
                    root.exec_driver_sql(f"SET GLOBAL {name} = {others[at % len(others)]}".replace("%", "%%"))
            assert story(url) == plain, f"with every switch at its other value {at}"


@MYSQLS
def test_a_setting_of_mysql_in_the_url_changes_nothing(database: str) -> None:
    hostile = "SET SESSION sql_select_limit = 1, completion_type = 'CHAIN', sql_mode = ''"
    asking = make_url(database).update_query_dict({"init_command": hostile, "charset": "latin1"})
    assert story(asking.render_as_string()) == story(database)
