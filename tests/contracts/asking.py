"""What several tests of one database need: its marks, and a statement's rows."""

from __future__ import annotations

import pytest

from states.sql.store import parsed, store_of

MARIADB = pytest.mark.parametrize("database", ["mariadb"], indirect=True)
POSTGRES = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


def run(url: str, *texts: str) -> list[tuple]:
    """Statements on one connection of ours; the rows of the last."""
    with store_of(parsed(url)).reading() as connection:
        cursors = [connection.execute(text) for text in texts]
        return list(cursors[-1].fetchall()) if cursors[-1].description else []
