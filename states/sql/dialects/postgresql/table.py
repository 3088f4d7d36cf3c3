"""What a PostgreSQL table is like: its types and keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.dialects import postgresql as types
from sqlalchemy.engine import Engine

from ....columns.values import DECODERS, Column
from ...connection import Connection
from ..server import ServerDialect

_DECLARED = [
    (r"BOOLEAN", "boolean"), (r"SMALLINT", "smallint"), (r"BIGINT", "bigint"), (r"INTEGER", "int"),
    (r"TEXT|(?:VARCHAR|CHARACTER VARYING)(?:\(\d+\))?", "string"), (r"BYTEA", "binary"),
    (r"DOUBLE PRECISION", "double"), (r"TIMESTAMP(?:\(6\))?(?: WITHOUT TIME ZONE)?", "timestamp"), (r"DATE", "date"),
    (r"JSON", "json"),
]  # fmt: skip

_CHANGING = [
    (r"N?CHAR\b|CHARACTER(?! VARYING)\b", "pads or drops blanks; use VARCHAR"),
    (r"TIMESTAMP ?\([0-5]\)", "rounds times; use TIMESTAMP"),
    (r"CITEXT\b", "treats texts as equal that differ only in case; use TEXT"),
    (r"JSONB\b", "changes numbers such as 1e30 and -0.0; use JSON or TEXT"),
    (r"REAL\b", "rounds to 24 bits; use DOUBLE PRECISION"),
    (r"NUMERIC\(\d+, ?-", "rounds to tens or hundreds; use another scale"),
]
_LIMITS = {"text": ("NUL",), "timestamp": ("zone",)}
_KINDS = {
    "v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence", "c": "a type",
    "i": "an index", "I": "an index", "t": "a TOAST table",
}  # fmt: skip
_PROPERTIES = (
    "SELECT (SELECT nspname FROM pg_namespace AS n WHERE n.oid = relnamespace), current_schema(),"
    " relkind, relpersistence, EXISTS (SELECT 1 FROM pg_rewrite WHERE ev_class = c.oid),"
    " relkind = 'r' AND EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = c.oid), row_security_active(c.oid)"
    " FROM pg_class AS c WHERE oid = to_regclass(?)"
)


class PostgreSqlTable(ServerDialect):
    """The methods of `PostgreSql` about tables."""

    families = _DECLARED
    changing = _CHANGING
    limits = _LIMITS
    holds_any_decimal = True

    def storage(self, column: Column) -> Any:
        sizes = column.sizes
        integers = {8: types.SMALLINT, 16: types.SMALLINT, 32: types.INTEGER, 64: types.BIGINT}
        by_family: dict[str, Callable[[], Any]] = {
            "integer": lambda: integers[column.bits](),
            "double": types.DOUBLE_PRECISION,
            "text": lambda: types.VARCHAR(sizes[0], collation="C") if sizes else types.TEXT(collation="C"),
            "boolean": types.BOOLEAN,
            "binary": types.BYTEA,
            "date": types.DATE,
            "timestamp": types.TIMESTAMP,
            "decimal": lambda: types.NUMERIC(*column.digits),
            "json": types.TEXT,
        }
        return by_family[column.family]()

    def decoder(self, column: Column) -> Callable[[Any], Any] | None:
        return DECODERS["json"] if column.family == "json" else None

    def table_options(self, connection: Connection, keyed: bool) -> dict[str, Any]:
        return {}

    def inexact(self, connection: Connection, table: str, names: Sequence[str]) -> dict[str, str]:
        columns = connection.execute(
            "SELECT a.attname, c.collname FROM"
            " (SELECT attname, attcollation FROM pg_attribute WHERE attrelid = ?::regclass"
            " UNION SELECT k.attname, u.id FROM pg_index i CROSS JOIN LATERAL"
            " unnest(i.indkey::int2[], i.indcollation::oid[]) AS u(number, id)"
            " JOIN pg_attribute k ON k.attrelid = i.indrelid AND k.attnum = u.number"
            " WHERE i.indisunique AND i.indrelid = ?::regclass) AS a(attname, attcollation)"
            " JOIN pg_collation c ON c.oid = a.attcollation WHERE NOT c.collisdeterministic",
            (f'"{table}"',) * 2,
        ).fetchall()
        return {
            name: f'has the non-deterministic collation {collation}; change it to "C"'
            for name, collation in columns
            if name in names
        }

    def type_names(self, engine: Engine, table: str) -> dict[str, str]:
        with engine.connect() as connection:
            rows = connection.exec_driver_sql(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
                " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                (f'"{table}"',),
            ).fetchall()
        columns = {name: kind if kind.startswith('"') else kind.upper() for name, kind in rows}
        for long, short in (("CHARACTER VARYING", "VARCHAR"), (" WITHOUT TIME ZONE", "")):
            columns = {name: kind.replace(long, short) for name, kind in columns.items()}
        return columns

    def unfit(self, connection: Connection, table: str) -> str | None:
        properties = connection.execute(_PROPERTIES, (f'"{table}"',)).fetchone()
        if properties is None:
            return None
        schema, current, kind, persistence, has_rules, has_children, hides_rows = properties
        if kind not in ("r", "p"):
            return f"is {_KINDS.get(kind, 'something else')}; a state needs a table"
        if schema != current and persistence != "t":
            return (
                f"is in the schema {schema!r}, while this user's tables are created in {current!r} (search_path): "
                "another user would have another ledger for it. Name the one schema in the URL: "
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

    def find_auto_increment(self, connection: Connection, table: str) -> set[str]:
        return set()  # null stays null or is an error: defaults apply to unnamed columns only

    def unique_keys(self, connection: Connection, table: str) -> list[set[str]]:
        keys = connection.execute(
            "SELECT array_agg(a.attname::text) FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indrelid"
            " AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])"
            " WHERE i.indrelid = to_regclass(?) AND i.indisunique AND i.indisvalid AND i.indimmediate"
            " AND NOT i.indisexclusion AND i.indpred IS NULL AND i.indexprs IS NULL GROUP BY i.indexrelid",
            (f'"{table}"',),
        ).fetchall()
        return [set(row[0]) for row in keys]
