"""Checks a SQL state's store before a start: tables, columns, keys, collations, privileges. Writes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL

from trident_py.errors import DefinitionError
from trident_py.tuples import Fields

from ..columns.values import build_columns, nameable
from ..diagnostics import Finding
from . import key_types, ledger
from .connection import Connection
from .dialects.sqlite.table import unopenable
from .ledger import LAYOUT
from .store import ReadOnlyFile, Store, store_of
from .table import (
    Shape,
    TablePlace,
    column_problems,
    key_problems,
    kind_problems,
    layout_problem,
    nearest,
    table_problems,
    unknown_column,
)


@dataclass(frozen=True)
class _Look:
    """The state's requirements of its store."""

    place: TablePlace
    keys: Fields
    others: Fields | None
    beside: tuple[str, ...]
    stages: bool
    usual: Mapping[str, str] = field(default_factory=dict)
    foreign: Sequence[str] = ()

    @property
    def created_keys(self) -> Fields:
        """The key's columns of a missing table."""
        types = {**self.usual, **self.keys.types}
        return Fields.of_names(self.keys, types)


def check(
    place: TablePlace, keys: Fields, others: Fields | None, beside: Sequence[str] = (), stages: bool = False,
    usual: Mapping[str, str] | None = None, foreign: Sequence[str] = (),
) -> list[Finding]:  # fmt: skip
    """Return the findings for a state with these columns. ``others`` is None if the first rows decide them.

    ``beside``: the state's further tables. A state that ``stages`` needs temporary tables. ``usual``: the types of key
    columns whose type neither the state nor the table declares. ``foreign``: the columns of another kind of map. Called
    in the process of the command. Leaves no connection and no file behind. Raises StateError or FailedException if the
    store cannot be reached, DefinitionError for a name that no column can have.
    """
    for name in keys.concat(others or Fields()):
        nameable("column", name)
    return list(_find(_Look(place, keys, others, tuple(beside), stages, usual or {}, foreign)))


def _find(look: _Look) -> Iterator[Finding]:
    url = look.place.parsed_url
    sqlite = url.get_backend_name() == "sqlite"
    if sqlite:
        yield from (findings := list(_file(url)))
        if any(finding.level == "error" for finding in findings):
            return
        if not Path(url.database or "").exists():
            yield from _table(look)
            return
    store = ReadOnlyFile(url) if sqlite else store_of(url)
    try:
        yield from _database(look, store)
    finally:
        store.close()


def _file(url: URL) -> Iterator[Finding]:
    """Check a SQLite file and its folder: both must be writable, since the log lies beside the file."""
    path = Path(url.database or "")
    if (why := unopenable(path)) is not None:
        yield Finding("error", why)
    elif not path.exists():
        yield Finding("creates", f"the file {path}")


def _table(look: _Look) -> Iterator[Finding]:
    """Describe for a missing table the columns it would get, or why it cannot be created."""
    table, keys, others = look.place.table, look.created_keys, look.others
    declared = keys.declarations() if others is None else keys.concat(others).declarations()
    untyped = [name for name in keys.concat(others or Fields()) if name not in {**keys.types, **(others or keys).types}]
    if others is None:
        named = f" ({', '.join(declared)}, ...)" if declared else ""
        yield Finding("creates", f"table {table!r}{named}; the fields of the first tuples decide its columns")
    elif untyped:
        yield Finding(
            "error",
            f"table {table!r} does not exist, and the type of {', '.join(untyped)} is not declared; "
            f"declare it, for example {untyped[0]} bigint or {untyped[0]} string",
        )
    else:
        key = f", key ({', '.join(keys)})" if len(keys) else ""
        yield Finding("creates", f"table {table!r} ({', '.join(declared)}){key}")


def _database(look: _Look, store: Store) -> Iterator[Finding]:
    place = look.place
    with store.errors(f"look at table {place.table!r}"):
        inspector = sa.inspect(store.engine)
        tables = set(inspector.get_table_names())
        odd = table_problems(store, place.table)
        layout = _layout(place, store, place.table in tables) if LAYOUT in tables else []
        if place.table not in tables:
            yield from (Finding("error", f"{place.table!r} {odd[0]}") for _ in odd[:1])
            yield from _table(look) if not odd and not layout else ()
        else:
            yield from _columns(look, store, inspector)
        ours = [table.name for table in ledger.tables({})]
        for title, names in (("the state's further tables", look.beside), ("the ledger's tables", ours)):
            if absent := [name for name in names if name not in tables]:
                yield Finding("creates", f"{title} {', '.join(absent)}")
        yield from layout
        wanted = [place.table, *look.beside, *ours]
        present = [name for name in wanted if name in tables]
        for name in present:
            yield from (Finding("error", f"table {name!r} {problem}") for problem in table_problems(store, name))
        yield from _privileges(store, present, len(present) < len(wanted), look.stages)


def _columns(look: _Look, store: Store, inspector: Any) -> Iterator[Finding]:
    """Check an existing table against the columns that the state needs."""
    place, keys, others = look.place, look.keys, look.others
    described = inspector.get_columns(place.table)
    type_names = store.dialect.type_names(store.engine, place.table)
    types = {**look.usual, **nearest(store, type_names)}
    others = Fields(list(filter(_nameable, types))).without(keys) if others is None else others
    problems, columns = [], []
    for typed_columns in (build_columns(keys, True, types), build_columns(others, False, types)):
        if isinstance(typed_columns, str):
            problems.append(f"{unknown_column(typed_columns, type_names)}; declare its type")
        else:
            columns += typed_columns
    shape = Shape(tuple(columns))
    if not problems:
        problems = [*column_problems(store, place.table, shape, type_names)]
        problems += kind_problems(look.foreign, type_names)
        problems += [] if problems else key_problems(store, place.table, shape)
        problems += [] if problems else _kinds(store, inspector, place, shape)
        problems += _list_unfilled(store, place, described, shape)
    yield from (Finding("error", f"table {place.table!r} {problem}") for problem in problems)
    if not problems:
        key = f", key ({', '.join(column.name for column in shape.keys)})" if shape.keys else ""
        names = ", ".join(f"{column.name} {type_names[column.name].lower()}".strip() for column in shape.columns)
        yield Finding("ok", f"table {place.table!r} ({names}){key}")


def _nameable(name: str) -> bool:
    """Return whether a field of a tuple can fill this column."""
    try:
        nameable("column", name)
    except DefinitionError:
        return False
    return True


def _list_unfilled(store: Store, place: TablePlace, described: list[Any], shape: Shape) -> list[str]:
    """Return columns that require a value and get none from this state."""
    with store.reading() as connection:  # SQLAlchemy does not see that an invisible column of MariaDB is numbered
        filled = {column.name for column in shape.columns} | store.dialect.find_auto_increment(connection, place.table)
    return [
        f"has the NOT NULL column {column['name']!r} without a default, which this state does not fill"
        for column in described
        if column["name"] not in filled and not column["nullable"] and column.get("default") is None
        and column.get("autoincrement") is not True and not column.get("identity") and not column.get("computed")
    ]  # fmt: skip


def _kinds(store: Store, inspector: Any, place: TablePlace, shape: Shape) -> list[str]:
    if not inspector.has_table(key_types.TABLE):
        return []
    with store.reading() as connection:
        return key_types.key_problems(store, connection, place.table, shape.keys)


def _layout(place: TablePlace, store: Store, there: bool) -> list[Finding]:
    with store.reading() as connection:
        text = f"SELECT files, routing FROM {LAYOUT} WHERE name = ?"
        problem = layout_problem(place, connection.execute(text, (place.table,)).fetchone(), there)
    return [] if problem is None else [Finding("error", problem)]


def _privileges(store: Store, tables: list[str], creates: bool, stages: bool) -> Iterator[Finding]:
    with store.reading() as connection:
        lacking = list_missing_privileges(store.dialect.name, connection, tables, creates, stages)
    if lacking:
        names = ", ".join(lacking)
        yield Finding("error", f"the user {store.url.username or ''} lacks: {names}; grant these privileges")


ROWS = ("SELECT", "INSERT", "UPDATE", "DELETE")
_QUOTED = r"(\*|`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\")"
_GRANT = re.compile(rf"GRANT (.+?) ON (?:TABLE )?{_QUOTED}\.{_QUOTED} TO ", re.IGNORECASE)


def list_missing_privileges(
    dialect: str, connection: Connection, tables: Iterable[str], creates: bool, stages: bool = False
) -> list[str]:
    """Return the privileges that the user lacks: on these existing tables, and to create tables.

    ``creates``: the state needs new tables; ``stages``: it needs temporary ones.
    """
    if dialect == "mysql":
        return _mysql(connection, tables, creates, stages)
    if dialect == "postgresql":
        return _postgresql(connection, tables, creates, stages)
    return []


def _postgresql(connection: Connection, tables: Iterable[str], creates: bool, stages: bool) -> list[str]:
    lacking = []
    for table in tables:
        may = [f"has_table_privilege(?, '{privilege}')" for privilege in ROWS]
        answers = connection.execute(f"SELECT {', '.join(may)}", [f'"{table}"'] * len(ROWS)).fetchone()
        lacking += [f"{privilege} on {table}" for privilege, has in zip(ROWS, answers, strict=True) if not has]
    if creates:
        text = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)"
        lacking += [] if connection.execute(text).fetchone()[0] else ["CREATE on the schema"]
    if stages:
        text = "SELECT has_database_privilege(current_database(), 'TEMPORARY')"
        lacking += [] if connection.execute(text).fetchone()[0] else ["TEMPORARY on the database"]
    return lacking


def _mysql(connection: Connection, tables: Iterable[str], creates: bool, stages: bool) -> list[str]:
    grants = [row[0] for row in connection.execute("SHOW GRANTS").fetchall()]
    if any(" ON " not in grant for grant in grants):
        return []  # a role, whose privileges SHOW GRANTS does not list
    database = connection.execute("SELECT database()").fetchone()[0]
    parsed = [match.groups() for match in map(_GRANT.match, grants) if match]
    wanted: list[tuple[str, str | None]] = [(privilege, table) for table in tables for privilege in ROWS]
    wanted += [("CREATE", None)] * creates + [("CREATE TEMPORARY TABLES", None)] * stages
    return [
        f"{name} on {table or database}" for name, table in wanted if not _is_granted(parsed, name, database, table)
    ]


def _is_granted(grants: Sequence[Sequence[str]], wanted: str, database: str, table: str | None) -> bool:
    for privileges, *where in grants:
        names = {name.split("(")[0].strip() for name in privileges.upper().split(",")}
        schema, name = (part[1:-1].replace(part[0] * 2, part[0]) if part != "*" else part for part in where)
        if names & {wanted, "ALL", "ALL PRIVILEGES"} and _covers(schema, database) and name in ("*", table):
            return True
    return False


def _covers(pattern: str, database: str) -> bool:
    r"""Return whether a grant covers this database: ``*``, or a LIKE pattern in which ``\_`` is a literal
    underscore."""
    if pattern == "*":
        return True
    parts = re.findall(r"\\.|.", pattern)
    like = {"%": ".*", "_": "."}
    return re.fullmatch("".join(like.get(part, re.escape(part.lstrip("\\"))) for part in parts), database) is not None
