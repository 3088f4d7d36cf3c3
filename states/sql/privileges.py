"""What the user of a connection may do, asked of the database before the start."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .connection import Connection

ROWS = ("SELECT", "INSERT", "UPDATE", "DELETE")
_GRANT = re.compile(r"GRANT (?P<what>.+?) ON (?:TABLE )?(?P<where>\S+) TO ", re.IGNORECASE)


def missing(
    dialect: str, connection: Connection, there: Iterable[str], creates: bool, stages: bool = False
) -> list[str]:
    """The privileges that the tables which are ``there`` need and the user has not, and those to make tables.

    ``creates``: tables that stay, ``stages``: temporary ones.
    """
    if dialect == "mysql":
        return _mysql(connection, there, creates, stages)
    if dialect == "postgresql":
        return _postgresql(connection, there, creates, stages)
    return []


def _postgresql(connection: Connection, there: Iterable[str], creates: bool, stages: bool) -> list[str]:
    gone = []
    for table in there:
        may = [f"has_table_privilege(?, '{each}')" for each in ROWS]
        found = connection.execute(f"SELECT {', '.join(may)}", [f'"{table}"'] * len(ROWS)).fetchone()
        gone += [f"{each} on {table}" for each, granted in zip(ROWS, found, strict=True) if not granted]
    if creates:
        text = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)"
        gone += [] if connection.execute(text).fetchone()[0] else ["CREATE on the schema"]
    if stages:
        text = "SELECT has_database_privilege(current_database(), 'TEMPORARY')"
        gone += [] if connection.execute(text).fetchone()[0] else ["TEMPORARY on the database"]
    return gone


def _mysql(connection: Connection, there: Iterable[str], creates: bool, stages: bool) -> list[str]:
    grants = [row[0] for row in connection.execute("SHOW GRANTS").fetchall()]
    if any(" ON " not in grant for grant in grants):
        return []  # a role, whose privileges are not listed: nobody can tell
    database = connection.execute("SELECT database()").fetchone()[0]
    parsed = [(match["what"].upper(), match["where"]) for match in map(_GRANT.match, grants) if match]
    gone = []
    for table in there:
        gone += [f"{each} on {table}" for each in ROWS if not _granted(parsed, each, database, table)]
    wanted = ["CREATE"] * creates + ["CREATE TEMPORARY TABLES"] * stages
    return gone + [f"{each} on {database}" for each in wanted if not _granted(parsed, each, database, None)]


def _granted(grants: list[tuple[str, str]], wanted: str, database: str, table: str | None) -> bool:
    for what, where in grants:
        names = {name.split("(")[0].strip() for name in what.split(",")}
        scope = where.replace("`", "").replace('"', "")
        schema, _, name = scope.rpartition(".")
        if names & {wanted, "ALL", "ALL PRIVILEGES"} and _covers(schema, database) and name in ("*", table):
            return True
    return False


def _covers(pattern: str, database: str) -> bool:
    r"""Whether a grant's database is this one: ``*``, or a LIKE pattern in which ``\_`` is the sign itself."""
    if pattern == "*":
        return True
    parts = re.findall(r"\\.|.", pattern)
    like = {"%": ".*", "_": "."}
    return re.fullmatch("".join(like.get(part, re.escape(part.lstrip("\\"))) for part in parts), database) is not None
