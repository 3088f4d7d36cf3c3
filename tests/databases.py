"""Which databases the tests run on. Plain functions: a test's own processes may import them too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from testbed.sql_servers import MariaDb, MySql, PostgreSql, Server
from trident_py.testing.databases import create_database, drop_database

OWN: dict[str, type[Server]] = {"mariadb": MariaDb, "mysql": MySql, "postgresql": PostgreSql}
SERVERS = [*OWN]
MYSQLS = ["mariadb", "mysql"]
"""One dialect of ours, two servers."""


class Given:
    """A server that a URL names, instead of one started here: it can be used, not stopped or killed."""

    def __init__(self, url: str) -> None:
        self.url = url

    def url_of(self, database: str) -> str:
        return make_url(self.url).set(database=database).render_as_string(hide_password=False)

    def create_database(self, name: str | None = None) -> str:
        return create_database(self.url, name)

    def drop_database(self, name: str) -> None:
        drop_database(self.url_of(name))

    def close(self) -> None:
        """It is not ours."""


def variable(kind: str) -> str:
    return f"TRIDENT_{kind.upper()}_URL"


def kinds() -> list[str]:
    return ["sqlite", *OWN]


def serve(kind: str) -> Any:
    """The server named by URL, or one started here; ``close()`` ends it. Raises ServiceMissing."""
    url = os.environ.get(variable(kind))
    return Given(url) if url else OWN[kind]().start()


@contextmanager
def fresh(server: Any) -> Iterator[str]:
    """The URL of an empty database on a server, dropped afterwards."""
    url = server.create_database()
    try:
        yield url
    finally:
        drop_database(url)


def sqlite(folder: Path) -> str:
    return f"sqlite:///{folder}/trident.sqlite"
