"""Checks the options of a database URL before anything connects, and the files that they name where it connects."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy.engine import URL
from sqlalchemy.exc import NoSuchModuleError

from ..errors import DefinitionError
from ..model import secrets


@lru_cache(maxsize=64)
def check_options(url: URL) -> None:
    """Raise DefinitionError, without secrets of the URL, for an option that SQLAlchemy or the database driver does not
    take, and for a password that ends at an @ of its own. A file that an option names need not be on this machine: see
    `check_files`."""
    if url.password is not None and re.search(r"@.*/", f"{url.host}/{url.database}"):
        raise DefinitionError("the database URL is not readable: percent-encode an @ in user or password (%40)")
    try:
        dialect = url.get_dialect()()
    except NoSuchModuleError:
        return  # opening it says so
    wrong = _find_problem(dialect, url) if url.query else None
    if wrong is None:
        return
    names, why = ", ".join(map(repr, url.query)), wrong
    for name, value in url.query.items():  # some belong together, such as host and port
        if alone := _find_problem(dialect, url.set(query={name: value})):
            names, why = repr(name), alone
            break
    raise DefinitionError(f"the database URL has an option that {dialect.driver} does not take: {names} ({why})")


def check_files(url: URL) -> None:
    """Raise DefinitionError for a file that an option names and that is not on this machine, which is to connect."""
    missing = [name for name in _list_needed(url) if name in url.query and not _has_file(url, name)]
    if missing:
        raise DefinitionError(
            f"the database URL has an option whose file is not on this machine: {missing[0]}={url.query[missing[0]]}"
        )


def _list_needed(url: URL) -> list[str]:
    """Return the options whose files the driver needs. libpq needs one only to verify a server, and a key only with its
    certificate."""
    if url.get_backend_name() != "postgresql":
        return ["ssl_ca", "ssl_capath", "ssl_cert", "ssl_key"] if url.get_backend_name() in ("mysql", "mariadb") else []
    root = ["sslrootcert"] if str(url.query.get("sslmode")).startswith("verify-") else []
    return root + (["sslkey"] if _has_file(url, "sslcert") else [])


def _has_file(url: URL, option: str) -> bool:
    name = str(url.query.get(option, ""))
    return (option, name) == ("sslrootcert", "system") or (name != "" and Path(name).exists())


def _find_problem(dialect: Any, url: URL) -> str | None:
    """Return what the driver says of the options; None if it takes them, or is not here."""
    try:
        _try_driver(dialect.driver, dialect.create_connect_args(url)[1])
    except ssl.SSLError as error:  # one of the OSErrors
        return str(error)
    except (ImportError, OSError):
        return None
    except Exception as error:  # drivers raise what they like
        return secrets.hide(str(error), secrets.secrets_in(url.render_as_string(hide_password=False))).strip()
    return None


def _try_driver(driver: str, arguments: Mapping[str, Any]) -> None:
    """Raise what the driver raises for these arguments. Connects to nothing."""
    if driver == "pymysql":
        from pymysql.connections import Connection

        Connection(**arguments, defer_connect=True)
    elif driver == "psycopg":
        from psycopg.conninfo import make_conninfo

        make_conninfo(**arguments)
        for name in _NUMBERS.intersection(arguments):
            int(arguments[name])
        _try_libpq({name: value for name, value in arguments.items() if name not in _PLACES})


_NUMBERS = {
    "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
}  # fmt: skip
_PLACES = {"hostaddr", "service"}
"""What names a server beside `_NOWHERE`."""
_NOWHERE = {"host": "/dev/null", "port": "1", "dbname": "x", "user": "x", "password": "x"}
"""A place that libpq cannot reach, with all that it would look up elsewhere."""


def _try_libpq(options: Mapping[str, Any]) -> None:
    """Raise ValueError if libpq refuses a value: it then does not get as far as to miss the server."""
    if (told := _ask_libpq(options)) != _ask_libpq({}):
        raise ValueError(told)


def _ask_libpq(options: Mapping[str, Any]) -> str:
    from psycopg.conninfo import make_conninfo
    from psycopg.pq import PGconn

    connection = PGconn.connect_start(make_conninfo(**{**options, **_NOWHERE}).encode())
    try:
        return connection.error_message.decode(errors="replace").strip()
    finally:
        connection.finish()
