"""Asks the server about the properties of a PostgreSQL table."""

from __future__ import annotations

from typing import Any

from ...connection import Connection

_KINDS = {
    "v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence", "c": "a type",
    "i": "an index", "I": "an index", "t": "a TOAST table",
}  # fmt: skip


def type_names(connection: Any, table: str) -> dict[str, str]:
    """The types of the columns as the server formats them. ``connection`` is SQLAlchemy's."""
    found = connection.exec_driver_sql(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        (f'"{table}"',),
    )
    usual = ("CHARACTER VARYING", "VARCHAR"), (" WITHOUT TIME ZONE", "")
    named = {name: kind if kind.startswith('"') else kind.upper() for name, kind in found}
    for long, short in usual:
        named = {name: kind.replace(long, short) for name, kind in named.items()}
    return named


_ABOUT = (
    "SELECT (SELECT nspname FROM pg_namespace AS n WHERE n.oid = relnamespace), current_schema(),"
    " relkind, relpersistence, EXISTS (SELECT 1 FROM pg_rewrite WHERE ev_class = c.oid),"
    " relkind = 'r' AND EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = c.oid), row_security_active(c.oid)"
    " FROM pg_class AS c WHERE oid = to_regclass(?)"
)


def unfit(connection: Connection, table: str) -> str | None:
    """Why the table cannot hold a state; None for a plain or a missing table."""
    found = connection.execute(_ABOUT, (f'"{table}"',)).fetchone()
    if found is None:
        return None
    schema, current, kind, persistence, has_rules, has_children, hides_rows = found
    if kind not in ("r", "p"):
        return f"is {_KINDS.get(kind, 'something else')}; a state needs a table"
    if schema != current and persistence != "t":
        return (
            f"is in the schema {schema!r}, while this user's tables are created in {current!r} (search_path): another "
            "user would have another ledger for it. Name the one schema in the URL: "
            f"?options=-csearch_path%3D{schema}"
        )
    reasons = {
        "is UNLOGGED: a crash of the server empties it, while the ledger still has its batches as complete. "
        f'ALTER TABLE "{table}" SET LOGGED': persistence == "u",
        "is temporary; a state needs a permanent table": persistence == "t",
        "has rules, which may do something other than write the row. Drop them, or use a trigger": has_rules,
        "has child tables, whose rows would be read as its own. Make it a partitioned table": has_children,
        "hides rows from this user by row-level security. Grant BYPASSRLS, or turn it off": hides_rows,
    }
    return next((why for why, is_so in reasons.items() if is_so), None)


def unique_keys(connection: Connection, table: str) -> list[set[str]]:
    """The columns of each unique index that covers all rows and is checked by every statement."""
    found = connection.execute(
        "SELECT array_agg(a.attname::text) FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indrelid"
        " AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])"
        " WHERE i.indrelid = to_regclass(?) AND i.indisunique AND i.indisvalid AND i.indimmediate"
        " AND NOT i.indisexclusion AND i.indpred IS NULL AND i.indexprs IS NULL GROUP BY i.indexrelid",
        (f'"{table}"',),
    ).fetchall()
    return [set(row[0]) for row in found]
