"""Pins the session settings of every database connection, whatever the server, database, role or URL sets.

Some session settings change the stored or read values: a client encoding turns 'é' into 'Ã©', `sql_select_limit` hides
rows, `completion_type` makes COMMIT start a new transaction. The states and the gateway pin them here, right after they
connect. A test sets every setting of a server to its other values and compares the stored and read values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL, Engine, event

from ..errors import DefinitionError, explain_missing
from ..model.secrets import redact_url
from .options import check_files

_POSTGRESQL = {
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "array_nulls": "on",
    "transform_null_equals": "off",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "DateStyle": "ISO, YMD",
    "TimeZone": "UTC",
    "quote_all_identifiers": "off",  # SQLAlchemy cannot read quoted ones
    "exit_on_error": "off",  # else an error in a row would end the session
    "row_security": "off",  # then a row that a policy hides is an error, not a missing row
    "default_transaction_isolation": "read committed",
}
_DURABLE = "set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), {})"
# These return every character that they accept. EUC_JP returns another '¦'; SQL_ASCII accepts any bytes as text.
ENCODINGS = (
    "UTF8", "LATIN1", "LATIN2", "LATIN3", "LATIN4", "LATIN5", "LATIN6", "LATIN7", "LATIN8", "LATIN9", "LATIN10",
    "ISO_8859_5", "ISO_8859_6", "ISO_8859_7", "ISO_8859_8", "WIN1250", "WIN1251", "WIN1252", "WIN1253", "WIN1254",
    "WIN1255", "WIN1256", "WIN1257", "WIN1258", "WIN866", "WIN874", "KOI8R", "KOI8U", "EUC_CN", "EUC_KR",
)  # fmt: skip

_MYSQL_MODE = (
    "ANSI_QUOTES,STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,"
    "NO_AUTO_VALUE_ON_ZERO"
)
_MYSQL = {
    "sql_mode": f"'{_MYSQL_MODE}'",
    "time_zone": "'+00:00'",
    "autocommit": "1",
    "completion_type": "'NO_CHAIN'",
    "sql_select_limit": "18446744073709551615",
    "sql_safe_updates": "0",
    "sql_big_selects": "1",
    "sql_auto_is_null": "0",
    "sql_quote_show_create": "1",
    "sql_notes": "1",
    "foreign_key_checks": "1",
    "unique_checks": "1",
    "div_precision_increment": "4",
    "group_concat_max_len": "1048576",
    "lock_wait_timeout": "60",  # the server's default is a day
}
_MARIADB = {**_MYSQL, "check_constraint_checks": "1", "old_mode": "''", "sql_if_exists": "0"}


def pin_postgresql(raw: Any) -> None:
    """Pin the session of a psycopg connection.

    Raises DefinitionError if the database's encoding changes texts, or if ``session_replication_role`` is not "origin".
    """
    encoding = raw.info.parameter_status("server_encoding")
    if encoding not in ENCODINGS:
        raise DefinitionError(
            f"the database {raw.info.dbname!r} has the encoding {encoding}, which does not preserve all texts. Create "
            "another with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
        )
    before, raw.autocommit = raw.autocommit, True
    role = raw.execute(f"SELECT {_settings(False)}, current_setting('session_replication_role')").fetchone()[-1]
    raw.autocommit = before
    if role != "origin":
        raise DefinitionError(
            f"session_replication_role is {role!r} for the user {raw.info.user!r}, which disables triggers and foreign "
            "keys. RESET it for the role and the database"
        )


def local_postgresql(lock_milliseconds: int) -> str:
    """Return the statement that begins every transaction and pins again: a pooler may have switched the server
    session."""
    return f"SELECT {_settings(True)}, set_config('lock_timeout', '{lock_milliseconds}ms', true)"


def _settings(local: bool) -> str:
    scope = str(local).lower()
    pinned = [f"set_config('{name}', '{value}', {scope})" for name, value in _POSTGRESQL.items()]
    return ", ".join([*pinned, _DURABLE.format(scope)])


def pin_mysql(raw: Any) -> None:
    """Pin the session of a PyMySQL connection to MySQL or MariaDB."""
    settings = _MARIADB if "mariadb" in raw.get_server_info().lower() else _MYSQL
    raw.set_character_set("utf8mb4", "utf8mb4_bin")
    raw.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    raw.query("SET SESSION " + ", ".join(f"{name} = {value}" for name, value in settings.items()))


@contextmanager
def driver_of(url: URL) -> Iterator[None]:
    """Raises DefinitionError, naming what to install, if the database's driver is missing inside, and for a file of the
    URL that is missing here."""
    check_files(url)
    try:
        yield
    except ModuleNotFoundError as error:
        extra = {"postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql"}.get(url.get_backend_name())
        raise DefinitionError(explain_missing(redact_url(url.render_as_string()), error.name, extra)) from None


def pin_engine(engine: Engine) -> None:
    """Pin every connection of an engine before SQLAlchemy's first statement. (SQLite has no session settings.)"""
    pins = {"postgresql": pin_postgresql, "mysql": pin_mysql, "mariadb": pin_mysql}
    pin = pins.get(engine.url.get_backend_name())
    if pin is not None:
        event.listen(engine, "connect", lambda raw, _: pin(raw), insert=True)
