"""Checks the options of a database URL before anything connects."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy.engine import URL
from sqlalchemy.exc import NoSuchModuleError

from ..errors import DefinitionError
from ..model import secrets


@lru_cache(maxsize=64)
def check_options(url: URL) -> None:
    """Raise DefinitionError, without secrets of the URL, for an option that SQLAlchemy or the database driver does not
    take. A file that an option names need not be on this machine."""
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


def _find_problem(dialect: Any, url: URL) -> str | None:
    """Return what the driver says of the options; None if it takes them, or is not here."""
    try:
        _try_driver(dialect.driver, dialect.create_connect_args(url)[1])
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
        int(arguments.get("connect_timeout", 0))
