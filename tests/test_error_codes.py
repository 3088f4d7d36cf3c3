"""Which errors of a database server pass: every code of the installed drivers, by rule."""

from __future__ import annotations

import re
from typing import Any

import pymysql
import pytest
from psycopg.errors import _sqlcodes
from pymysql.constants import CR, ER
from sqlalchemy.exc import DBAPIError

from states.sql.dialects.mysql.dialect import MySql
from states.sql.dialects.postgresql.dialect import PostgreSql
from states.sql.store import ConnectionLost, parse_url, store_of
from trident_py.databases.error_codes import (
    is_lock_conflict_on_mysql,
    is_lock_conflict_on_postgresql,
    mysql_is_away,
    postgresql_is_away,
)
from trident_py.extras.gateway.sqlstore import MySqlDialect
from trident_py.extras.gateway.sqlstore import SqlDialect as PostgreSqlClaims

SQLSTATES = sorted(code for code in _sqlcodes if re.fullmatch(r"[0-9A-Z]{5}", code) and re.search(r"\d", code))
LOCKED = ["40000", "40001", "40P01", "55P03", "72000"]
AWAY = [
    "08000", "08001", "08003", "08004", "08006", "08007", "08P01", "25P03", "25P04", "40003", "53000", "53200",
    "53300", "57000", "57P01", "57P02", "57P03", "57P04", "57P05",
]  # fmt: skip
LOOKED_AT: dict[str, set[str]] = {
    "08": set(), "40": {"40002"}, "53": {"53100", "53400"}, "57": {"57014"}, "72": set(),
    "55": {"55000", "55006", "55P02", "55P04"}, "58": {"58000", "58030", "58P01", "58P02", "58P03"},
    "25": {"25000", "25001", "25002", "25003", "25004", "25005", "25006", "25007", "25008", "25P01", "25P02"},
    "XX": {"XX000", "XX001", "XX002"},
}  # fmt: skip


def test_every_sqlstate_that_could_pass_is_known() -> None:
    """A newer psycopg that has another code in one of these classes fails here: look at it."""
    for sqlclass, final in LOOKED_AT.items():
        passing = {code for code in (*LOCKED, *AWAY) if code[:2] == sqlclass}
        assert {code for code in SQLSTATES if code[:2] == sqlclass} == passing | final


@pytest.mark.parametrize("code", SQLSTATES)
def test_a_sqlstate_passes_or_is_final(code: str) -> None:
    assert is_lock_conflict_on_postgresql(code) is (code in LOCKED)
    assert postgresql_is_away(code) is (code in AWAY)
    error = _sqlcodes[code]("as the server says")
    assert (PostgreSql().is_lock(error), PostgreSql().is_lost(error)) == (code in LOCKED, code in AWAY)
    assert PostgreSql().is_read_only(error) is (code == "25006")
    assert PostgreSqlClaims().is_passing(told(error)) is (code in (*LOCKED, *AWAY, "25006", "57014"))


def told(error: Exception) -> DBAPIError:
    return DBAPIError("SELECT 1", {}, error)


NAMES = {code: name for constants in (ER, CR) for name, code in vars(constants).items() if isinstance(code, int)}
NEWER = {  # which PyMySQL does not name
    1613: "XA_RBTIMEOUT", 1614: "XA_RBDEADLOCK", 1637: "TOO_MANY_CONCURRENT_TRXS", 1927: "CONNECTION_KILLED",
    3058: "USER_LOCK_DEADLOCK", 3101: "TRANSACTION_ROLLBACK_DURING_COMMIT", 3168: "SERVER_ISNT_AVAILABLE",
    3169: "SESSION_WAS_KILLED", 3572: "LOCK_NOWAIT", 4031: "CLIENT_INTERACTION_TIMEOUT",
}  # fmt: skip
SUSPECT = re.compile(
    "SHUTDOWN|CLOSE|CON_COUNT|CONN|LOST|GONE|NET_|LOCK|TOO_MANY_(USER|CONC|DEL)|LIMIT|OUT_?OF|DISK|INTERRUPT|TIMEOUT"
    "|TEMPORARY|COMMIT|ROLLBACK|HANDSHAKE|ABORT|CHECKREAD|DEF_CHANGED|_RB|READ_?ONLY|PREVENT|THREAD|SERVER|SIGNAL|HOST"
    "|UNKNOWN_COM|UNKNOWN_ERROR|FULL|MEM|SYNC|SSL|PACKET|FATAL|GET_(ERR|TEMP)"
)
_FINAL = """
    CANT_LOCK DISK_FULL ERROR_ON_CLOSE FILSORT_ABORT GET_ERRNO OPEN_AS_READONLY OUT_OF_SORTMEMORY HANDSHAKE_ERROR
    NO_SUCH_THREAD TABLE_NOT_LOCKED_FOR_WRITE TABLE_NOT_LOCKED UNKNOWN_ERROR RECORD_FILE_FULL HOST_NOT_PRIVILEGED
    GRANT_WRONG_HOST_OR_USER DELAYED_CANT_CHANGE_LOCK TOO_MANY_DELAYED_THREADS NET_PACKET_TOO_LARGE
    DELAYED_INSERT_TABLE_LOCKED FLUSH_MASTER_BINLOG_CLOSED MASTER_NET_READ MASTER_NET_WRITE
    LOCK_OR_ACTIVE_TRANSACTION WARNING_NOT_COMPLETE_ROLLBACK TRANS_CACHE_FULL SLAVE_THREAD READ_ONLY_TRANSACTION
    DROP_DB_WITH_READ_LOCK CREATE_DB_WITH_READ_LOCK CONNECT_TO_MASTER CANT_UPDATE_WITH_READLOCK
    MASTER_FATAL_ERROR_READING_BINLOG ZLIB_Z_MEM_ERROR WARN_DATA_OUT_OF_RANGE SLAVE_IGNORED_SSL_PARAMS
    SERVER_IS_IN_SECURE_AUTH_MODE WARN_HOSTNAME_WONT_WORK OPTION_PREVENTS_STATEMENT GET_ERRMSG
    WARN_ALLOWED_PACKET_OVERFLOWED BINLOG_PURGE_FATAL_ERR COMMIT_NOT_ALLOWED_IN_SF_OR_TRG WRONG_LOCK_OF_SYSTEM_TABLE
    CONNECT_TO_FOREIGN_DATA_SOURCE VIEW_PREVENT_UPDATE SP_CANT_SET_AUTOCOMMIT SP_RECURSION_LIMIT HOSTNAME
    STATEMENT_TIMEOUT QUERY_TIMEOUT CR_UNKNOWN_ERROR CR_OUT_OF_MEMORY CR_WRONG_HOST_INFO CR_LOCALHOST_CONNECTION
    CR_TCP_CONNECTION CR_NAMEDPIPE_CONNECTION CR_NET_PACKET_TOO_LARGE CR_EMBEDDED_CONNECTION CR_PROBE_SLAVE_HOSTS
    CR_PROBE_SLAVE_CONNECT CR_PROBE_MASTER_CONNECT CR_SSL_CONNECTION_ERROR CR_SHARED_MEMORY_CONNECTION
    CR_SHARED_MEMORY_CONNECT_REQUEST_ERROR CR_SHARED_MEMORY_CONNECT_ANSWER_ERROR
    CR_SHARED_MEMORY_CONNECT_FILE_MAP_ERROR CR_SHARED_MEMORY_CONNECT_MAP_ERROR CR_SHARED_MEMORY_FILE_MAP_ERROR
    CR_SHARED_MEMORY_MAP_ERROR CR_SHARED_MEMORY_EVENT_ERROR CR_SHARED_MEMORY_CONNECT_ABANDONED_ERROR
    CR_SHARED_MEMORY_CONNECT_SET_ERROR CR_CONN_UNKNOW_PROTOCOL CR_INVALID_CONN_HANDLE CR_STMT_CLOSED
    CR_ALREADY_CONNECTED CR_DUPLICATE_CONNECTION_ATTR CR_SSL_FIPS_MODE_ERR
"""
FINAL = set(_FINAL.split())
ALSO = {"CR_SOCKET_CREATE_ERROR", "CR_IPSOCK_ERROR", "CR_SERVER_LOST_EXTENDED", "CR_MALFORMED_PACKET"}


def passes(code: int) -> bool:
    return is_lock_conflict_on_mysql(code) or mysql_is_away(code)


def test_every_error_of_mysql_whose_name_could_pass_was_looked_at() -> None:
    """A newer PyMySQL that names another one fails here: look at it."""
    passing = {name for code, name in NAMES.items() if passes(code)}
    suspect = {name for name in NAMES.values() if SUSPECT.search(name)}
    assert suspect - passing == FINAL
    assert passing - suspect <= ALSO
    known = {*NAMES, *NEWER, 0, 1129}
    assert {code for code in range(5000) if passes(code)} <= known


@pytest.mark.parametrize("code", [
    1040, 1053, 1077, 1078, 1079, 1080, 1129, 1152, 1158, 1159, 1160, 1161, 1180, 1184, 1203, 1226, 1317, 1927, 2002,
    2003, 2006, 2013, 2055, 3169, 4031,
])  # fmt: skip
def test_a_mysql_that_goes_is_away_for_states_and_gateway(code: int) -> None:
    error = pymysql.OperationalError(code, "as the server says")
    assert MySql().is_lost(error) and not MySql().is_lock(error)
    assert MySqlDialect().is_passing(told(error))


@pytest.mark.parametrize("code", [1020, 1205, 1206, 1213, 1412, 3101, 3572])
def test_a_transaction_of_mysql_that_lost_is_begun_again(code: int) -> None:
    error = pymysql.OperationalError(code, "as the server says")
    assert MySql().is_lock(error) and not MySql().is_lost(error)
    assert MySqlDialect().is_passing(told(error))


@pytest.mark.parametrize("code", [1044, 1045, 1049, 1062, 1064, 1114, 1146, 1153, 1264, 1366, 1406, 1452, 3024])
def test_an_objection_of_mysql_is_final(code: int) -> None:
    error = pymysql.OperationalError(code, "as the server says")
    assert not MySql().is_lock(error) and not MySql().is_lost(error)
    assert not MySqlDialect().is_passing(told(error))


@pytest.mark.parametrize(
    ("code", "option", "read_only"),
    [
        (1290, "--read-only", True), (1290, "--super-read-only", True), (1290, "--innodb_read_only", True),
        (1836, "", True), (1290, "--secure-file-priv", False), (1290, "--skip-grant-tables", False),
    ],
)  # fmt: skip
def test_a_mysql_that_takes_no_writes_is_told_from_other_options(code: int, option: str, read_only: bool) -> None:
    error = pymysql.OperationalError(code, f"The MySQL server is running with the {option} option so it cannot")
    assert MySql().is_read_only(error) is MySqlDialect().is_passing(told(error)) is read_only
    assert not MySql().is_lock(error) and not MySql().is_lost(error)


def test_answers_of_mysql_out_of_order_are_a_lost_line() -> None:
    assert MySql().is_lost(pymysql.InternalError("Packet sequence number wrong - got 3 expected 1"))


def test_a_statement_that_somebody_stopped_fails_the_batch(mariadb: Any) -> None:
    """On a real MariaDB: KILL QUERY."""
    store = store_of(parse_url(mariadb.create_database()))
    connection = store.take()
    (number,) = connection.execute("SELECT CONNECTION_ID()").fetchone()
    try:
        with pytest.raises(ConnectionLost, match="1317"), store.errors("read"):
            connection.execute(f"KILL QUERY {number}")
            connection.execute("SELECT 1")
    finally:
        store.drop(connection)
