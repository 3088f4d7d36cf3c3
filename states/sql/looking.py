"""A store that is only looked at. SQLite's own connection would make the file, or files beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL

from .connection import driver_connection
from .store import Store


class ReadOnlyFile(Store):
    """One SQLite file that is there: no journal is switched, nothing appears beside it, no write is possible."""

    def __init__(self, url: URL) -> None:
        super().__init__(url)
        self.engine = sa.create_engine(_read_only(url), poolclass=sa.NullPool)

    def take(self) -> Any:
        with self.errors("open"):
            return driver_connection(self.engine, isolation_level=None)


def _read_only(url: URL) -> URL:
    """With a log beside the file its newest rows are in there; without one the file is all, and needs no lock."""
    path = Path(url.database or "")
    log = path.with_name(f"{path.name}-wal")
    way = {} if log.exists() and log.stat().st_size > 0 else {"immutable": "1"}
    query = {"mode": "ro", **way, "uri": "true"}
    return URL.create(url.drivername, database=f"file:{quote(str(path))}", query=query)
