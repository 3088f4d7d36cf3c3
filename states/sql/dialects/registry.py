"""Finds the dialect of a URL."""

from __future__ import annotations

from sqlalchemy.engine import URL

from trident_py.errors import DefinitionError

from .base import Dialect


def dialect_of(url: URL) -> Dialect:
    """Return the dialect of a URL. Raises DefinitionError for an unsupported database."""
    name = url.get_backend_name()
    if name == "sqlite":
        from .sqlite.dialect import SQLITE

        return SQLITE
    if name in ("mysql", "mariadb"):
        from .mysql.dialect import MYSQL

        return MYSQL
    if name == "postgresql":
        from .postgresql.dialect import POSTGRESQL

        return POSTGRESQL
    raise DefinitionError(f"states.sql has no dialect for {name!r}; it has: sqlite, mysql, mariadb, postgresql")
