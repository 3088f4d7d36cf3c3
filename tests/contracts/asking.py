"""What several tests of one database need: its marks, and a statement's rows."""

from __future__ import annotations

import databases
import pytest

from states.sql.store import parse_url, store_of

MYSQLS = pytest.mark.parametrize("database", databases.MYSQLS, indirect=True)
POSTGRES = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


def is_mariadb(url: str) -> bool:
    """Whether the server is MariaDB, not MySQL: it has other engines, types and tables."""
    return not url.startswith(("sqlite", "postgresql")) and "MariaDB" in run(url, "SELECT version()")[0][0]


def exact_texts(url: str) -> str:
    """What stands behind the type of a text column that folds nothing."""
    with store_of(parse_url(url)).reading() as connection:
        options = store_of(parse_url(url)).dialect.table_options(connection, True)
    return f" CHARACTER SET utf8mb4 COLLATE {options['mysql_collate']}" if "mysql_collate" in options else ""


def run(url: str, *texts: str) -> list[tuple]:
    """Statements on one connection of ours; the rows of the last."""
    with store_of(parse_url(url)).reading() as connection:
        cursors = [connection.execute(text) for text in texts]
        return list(cursors[-1].fetchall()) if cursors[-1].description else []
