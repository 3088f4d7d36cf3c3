"""What a SQLite table is like: its columns' affinities, its keys, what it does in a conflict."""

from __future__ import annotations

import re

from .connection import Connection

_TEXTS = {"text", "date", "timestamp", "decimal", "json"}
_KEPT = {  # what a column of this affinity gives back as it was given
    "INTEGER": {"integer", "boolean"}, "TEXT": _TEXTS, "BLOB": {"binary"}, "REAL": {"double"},
    "": {*_TEXTS, "integer", "boolean", "binary", "double"},
}  # fmt: skip
# NUMERIC makes numbers of texts that look like one; these names are taken for what never does.
_NAMED = [
    (re.compile(r"BOOL(?:EAN)?"), "boolean", {"boolean"}),
    (re.compile(r"DATE"), "date", {"date", "timestamp"}),
    (re.compile(r"(?:DATETIME|TIMESTAMP)(?:\(\d\))?"), "timestamp", {"date", "timestamp"}),
]
_DDL = {"INTEGER": "bigint", "TEXT": "string", "BLOB": "binary", "REAL": "double"}
_LITERALS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/", re.DOTALL)
_CONFLICT = re.compile(r"\bON\s+CONFLICT\s+(REPLACE|IGNORE|FAIL|ROLLBACK)\b", re.IGNORECASE)


def affinity(type_name: str) -> str:
    """SQLite's rule (https://sqlite.org/datatype3.html, 3.1); "" for a column without a type: it keeps everything."""
    kind = type_name.upper()
    rules = {"INTEGER": ("INT",), "TEXT": ("CHAR", "CLOB", "TEXT"), "BLOB": ("BLOB",), "REAL": ("REAL", "FLOA", "DOUB")}
    if not kind:
        return ""
    return next((found for found, parts in rules.items() if any(part in kind for part in parts)), "NUMERIC")


def keeps(type_name: str, family: str) -> bool:
    """Whether a column declared so gives back the values of a family as they were given."""
    found = affinity(type_name)
    named = [kept for pattern, _, kept in _NAMED if pattern.fullmatch(type_name.upper())]
    return family in (named[0] if named else _KEPT.get(found, set()))


def declared(type_name: str) -> str | None:
    """The DDL type for a column declared so, None if it says nothing of its values, or keeps none."""
    named = [ddl for pattern, ddl, _ in _NAMED if pattern.fullmatch(type_name.upper())]
    return named[0] if named else _DDL.get(affinity(type_name))


def unfit(connection: Connection, table: str) -> str | None:
    """What keeps it from holding a state; None for a plain table and for none."""
    text = "SELECT type, sql FROM sqlite_master WHERE lower(name) = lower(?) AND type IN ('table', 'view')"
    found = connection.execute(text, (table,)).fetchone()
    if found is None:
        return None
    kind, sql = found
    if kind == "view" or re.match(r"CREATE\s+VIRTUAL", sql, re.IGNORECASE):
        return f"is a {'view' if kind == 'view' else 'virtual table'}; a state needs a table"
    clause = _CONFLICT.search(_LITERALS.sub(" ", sql))
    if clause is None:
        return None
    silent = {"REPLACE": "removes the older row", "IGNORE": "leaves the row out"}
    what = silent.get(clause[1].upper(), "keeps half of a statement")
    return f"has a constraint with {clause[0].upper()}, which {what} without a word. Make it without that clause"


def numbered(connection: Connection, table: str) -> set[str]:
    """The column that is another name of the row's own number: INTEGER PRIMARY KEY, without an index of its own."""
    keys = [row for row in connection.execute(f'PRAGMA table_info("{table}")').fetchall() if row[5] > 0]
    indexes = connection.execute(f'PRAGMA index_list("{table}")').fetchall()
    alias = len(keys) == 1 and keys[0][2].upper() == "INTEGER" and "pk" not in [row[3] for row in indexes]
    return {keys[0][1]} if alias else set()


def unique_keys(connection: Connection, table: str) -> list[set[str]]:
    """The columns of the primary key, and of each unique index over all rows."""
    columns = connection.execute(f'PRAGMA table_xinfo("{table}")').fetchall()
    found = [{row[1] for row in columns if row[5] > 0}]
    for _, index, is_unique, _, is_partial in connection.execute(f'PRAGMA index_list("{table}")').fetchall():
        if is_unique and not is_partial:  # None stands for an expression
            found.append({row[2] for row in connection.execute(f'PRAGMA index_info("{index}")').fetchall()})
    return [each for each in found if None not in each]
