"""Classifies temporary errors of a database server: a batch or an event that meets one is retried.

PostgreSQL's codes are SQLSTATEs, whose first two characters are a class; those of MySQL and MariaDB are numbers. All
other errors are final: most codes reject a statement or a row permanently. A full disk and a statement's time limit are
final too: they last until an operator acts, who should see them at once. A read-only server may be either.
"""

from __future__ import annotations

import re
import sqlite3

_AWAY_BUT = {
    "57014",  # a statement's time limit, or a cancel
    "53100",  # the disk is full
    "53400",  # a limit in the configuration
}
_AWAY_TOO = {
    "25P03", "25P04",  # a transaction was idle or open for too long: the session has ended
    "40003",  # the outcome of the statement is unknown
}  # fmt: skip
_ANSWERS_LATER = re.compile(
    "starting up|shutting down|recovery|too many|connection slots|not yet accepting|terminating connection"
    "|no more connections|try again|timeout|cannot connect"  # of a pooler
)
# A failed connection has no code, and its text is in the server's language: an unknown error counts as passing.
_ANSWERS_NO = re.compile(
    r"FATAL:.*(does not exist|authentication failed|pg_hba\.conf|permission denied|not currently accepting|unrecognized"
    r"|invalid|unsupported|certificate)",
    re.DOTALL,
)


def sqlstate_of(error: BaseException | None) -> str:
    """Return the SQLSTATE of a psycopg error; "" for other errors, which have no such attribute, and for None."""
    return getattr(error, "sqlstate", None) or ""


def mysql_code_of(error: BaseException | None) -> int | None:
    """Return the number of a PyMySQL error, from the server or the driver; None for other errors and for None."""
    return error.args[0] if error is not None and error.args and isinstance(error.args[0], int) else None


def sqlite_code_of(error: BaseException | None) -> int:
    """Return the result code of an SQLite error; 0 for other errors and for None."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # errors that the module raises by itself have none


def is_lock_conflict_on_sqlite(code: int) -> bool:
    """Return whether another connection holds the file or the table."""
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def postgresql_has_it(sqlstate: str) -> bool:
    """Return whether a row or table exists already; any of the three if two processes create one table at once."""
    return sqlstate in ("23505", "42P07", "42710")


def is_lock_conflict_on_postgresql(sqlstate: str) -> bool:
    """Return whether a transaction lost to another one (class 40; 55P03 lock not available; 72 snapshot too old)."""
    return sqlstate == "55P03" or (sqlstate[:2] in ("40", "72") and sqlstate not in ("40002", "40003"))


def postgresql_is_away(sqlstate: str) -> bool:
    """Return whether the connection or its server is gone (classes 08 and 57), or lacks connections or memory (53)."""
    return sqlstate in _AWAY_TOO or (sqlstate[:2] in ("08", "53", "57") and sqlstate not in _AWAY_BUT)


def postgresql_is_lost(error: BaseException | None) -> bool:
    """Return whether the connection or its server is gone, or was not reached: of an error without a code, too."""
    if state := sqlstate_of(error):
        return postgresql_is_away(state)
    if _ANSWERS_NO.search(str(error)) and not _ANSWERS_LATER.search(str(error)):
        return False  # the server answers: a wrong password, an unknown database
    return type(error).__name__ in ("OperationalError", "InterfaceError") or isinstance(error, OSError)


def postgresql_is_read_only(sqlstate: str) -> bool:
    """Return whether the server takes no writes, as a replica or by ``default_transaction_read_only``."""
    return sqlstate == "25006"


_LOCKS = {
    1020,  # MariaDB: the record has changed since it was read
    1205, 1206, 1213, 3572, 1402, 1613, 1614, 3058,  # waits, deadlocks, no room for locks
    1412,  # the table's definition has changed; "please retry transaction"
    3101,  # group replication has rolled the transaction back
}  # fmt: skip
_AWAY = {
    0,  # PyMySQL: the connection is closed
    1040, 1129, 1203, 1226, 1637,  # too many connections (in all, of a user, failed ones) or transactions
    1037, 1041, 1135,  # no memory, no threads
    1297,  # a temporary error of a storage engine
    1042, 1047,  # the host's name cannot be found; Galera: not ready for use
    1053, 1077, 1078, 1079, 1080, 3168, 3169,  # the server stops, the session was ended
    1152, 1154, 1155, 1156, 1157, 1158, 1159, 1160, 1161, 1184, 1927, 4031,  # the connection broke
    1180, 1181,  # COMMIT or ROLLBACK failed: the outcome is unknown
    1317,  # the statement was killed
    2001, 2002, 2003, 2004, 2005, 2006, 2012, 2013, 2014, 2027, 2055,  # the client could not reach it, or lost it
}  # fmt: skip


def is_lock_conflict_on_mysql(code: int | None) -> bool:
    """Return whether a transaction lost to another one."""
    return code in _LOCKS


def mysql_is_away(code: int | None) -> bool:
    """Return whether the connection or its server is gone, or lacks connections, threads or memory for now."""
    return code in _AWAY


def mysql_is_read_only(error: BaseException | None) -> bool:
    """Return whether the server takes no writes, by ``read_only`` or ``innodb_read_only``. Other options refuse
    statements by the same number; their names are in the text, in every language."""
    code = mysql_code_of(error)
    return code == 1836 or (code == 1290 and re.search("read[-_]only", str(error)) is not None)
