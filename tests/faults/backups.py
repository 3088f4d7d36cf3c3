"""Backups of a database, made and put back with its own tools, and what is in it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections import Counter
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from trident_py.testing.databases import create_database, drop_database

MOVES = {"generation", "attempt", "time"}
"""What a start may change in `trident_fence` though it goes no further: it shuts out older drivers."""


def dump(url: str, file: Path) -> Path:
    """A copy of the file, or what mariadb-dump or pg_dump writes."""
    parsed = make_url(url)
    if _is_file(parsed):
        with closing(sqlite3.connect(_file(parsed))) as source, closing(sqlite3.connect(file)) as copy:
            source.backup(copy)
        return file
    tool = ["pg_dump", "--no-owner"] if _is_postgresql(parsed) else ["mariadb-dump", "--no-defaults"]
    with file.open("wb") as out:
        subprocess.run([*tool, *_place(parsed)], stdout=out, check=True, env=_environment(parsed))
    return file


def restore(url: str, file: Path) -> None:
    """The database is as it was when it was dumped. SQLite's file is another one then, as after `mv`."""
    parsed = make_url(url)
    if _is_file(parsed):
        beside = file.with_suffix(".restored")
        shutil.copy(file, beside)
        for rest in ("-wal", "-shm"):
            Path(_file(parsed) + rest).unlink(missing_ok=True)
        beside.replace(_file(parsed))
        return
    drop_database(url)
    create_database(url_beside(parsed), parsed.database)
    tool = ["psql", "-q", "-v", "ON_ERROR_STOP=1"] if _is_postgresql(parsed) else ["mariadb", "--no-defaults"]
    with file.open("rb") as text:
        command = [*tool, *_place(parsed)]
        subprocess.run(command, stdin=text, stdout=subprocess.DEVNULL, check=True, env=_environment(parsed))


def contents(url: str) -> dict[str, Counter]:
    """Every row of every table that has any, but for `MOVES`."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    found = {}
    with closing(engine.connect()) as connection:
        for table in sa.inspect(connection).get_table_names():
            rows = connection.execute(sa.text(f"SELECT * FROM {table}")).mappings().all()
            kept = [tuple((k, v) for k, v in row.items() if table != "trident_fence" or k not in MOVES) for row in rows]
            found[table] = Counter(row for row in kept if table != "trident_fence" or dict(row)["lineage"])
    return {table: rows for table, rows in found.items() if rows}


def url_beside(parsed: URL) -> str:
    """The server's own database."""
    name = "postgres" if _is_postgresql(parsed) else "mysql"
    return parsed.set(database=name).render_as_string(hide_password=False)


def _is_file(parsed: URL) -> bool:
    return parsed.get_backend_name() == "sqlite"


def _is_postgresql(parsed: URL) -> bool:
    return parsed.get_backend_name() == "postgresql"


def _file(parsed: URL) -> str:
    assert parsed.database is not None
    return parsed.database


def _place(parsed: URL) -> list[str]:
    """For the command line; the name of the database is the last."""
    protocol = [] if _is_postgresql(parsed) else ["--protocol=tcp"]
    user = ["-U" if _is_postgresql(parsed) else "-u", parsed.username or ""]
    port = ["-p" if _is_postgresql(parsed) else "-P", str(parsed.port)]
    return [*protocol, "-h", parsed.host or "", *port, *user, parsed.database or ""]


def _environment(parsed: URL) -> dict[str, str]:
    name = "PGPASSWORD" if _is_postgresql(parsed) else "MYSQL_PWD"
    return {**os.environ, **({name: parsed.password} if parsed.password else {})}
