"""Rows as LOAD DATA and COPY text: what goes in comes out, on both servers."""

from __future__ import annotations

import datetime
import decimal
from types import SimpleNamespace
from typing import Any

import databases
import pyarrow as pa
import pytest

from states.columns.arrow import arrow_array
from states.columns.values import Column
from states.sql.dialects.bulk import blocks, insertions
from states.sql.dialects.mysql import bulk
from states.sql.dialects.mysql.dialect import MYSQL
from states.sql.store import parse_url, store_of
from states.sql.table import create, data_table

TEXTS = [
    "", "plain", "back\\slash", "\\", "\\N", "NULL", "tab\there", "new\nline", "\r\n", "\\t\\n", "quote'\"`", "\\.",
    "𝔘nicode 🎉 ü", " lead and trail ", "%s ? %%", "\x1a\x08", "a" * 3000, None,
]  # fmt: skip
COLUMNS = {
    "string": TEXTS,
    "bigint": [0, -1, 2**63 - 1, -(2**63), None],
    "int": [2**31 - 1, -(2**31), None],
    "smallint": [-(2**15), None],
    "double": [0.1, -1e300, 5e-324, 1.7976931348623157e308, 123456789.12345678, 3.0, None],
    "boolean": [True, False, None],
    "binary": [b"", b"\x00\xff\\x", b"\\N", b"'\t\n", bytes(range(256)), None],
    "date": [datetime.date(2026, 2, 28), datetime.date(1000, 1, 1), datetime.date(9999, 12, 31), None],
    "timestamp": [datetime.datetime(2026, 1, 2, 3, 4, 5, 678901), datetime.datetime(1999, 12, 31), None],
    "decimal(20,4)": [decimal.Decimal("-1234567890123456.7891"), decimal.Decimal("0.0001"), decimal.Decimal(0), None],
    "json": [{"a": [1, "ü\\n", None]}, "text", 1.5, None],
}
ARROW = {"date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"), "decimal(20,4)": pa.decimal128(20, 4)}
MADE = [Column(f"c{i}", ddl) for i, ddl in enumerate(COLUMNS)]


def values(as_arrow: bool) -> list[Any]:
    length = max(map(len, COLUMNS.values()))
    made: list[Any] = []
    for column, (ddl, given) in zip(MADE, COLUMNS.items(), strict=True):
        whole = given + [None] * (length - len(given))
        plain = as_arrow and ddl != "json"
        made.append(pa.array(whole, ARROW.get(ddl)) if plain else column.encode(whole))
    return made


def lines(columns: list[Column], values: list[Any]) -> list[bytes]:
    return list(blocks(columns, [arrow_array(c, v) for c, v in zip(columns, values, strict=True)]))


def wanted() -> list[tuple]:
    length = max(map(len, COLUMNS.values()))
    return list(zip(*(given + [None] * (length - len(given)) for given in COLUMNS.values()), strict=True))


def stored(url: str, put: Any) -> list[tuple]:
    """What a table of all types gives back after ``put(store, connection, columns)``."""
    store = store_of(parse_url(url))
    number = Column("n", "bigint")
    with store.writing() as connection:
        create(store, connection, data_table(store, connection, "t", [number, *MADE], keyed=False))
        put(store, connection, [number, *MADE])
        text = ", ".join(f'"{column.name}"' for column in MADE)
        rows = connection.execute(f'SELECT {text} FROM "t" ORDER BY n').fetchall()
    decoders = [store.dialect.decoder(column) for column in MADE]
    return [tuple(d(v) if d and v is not None else v for d, v in zip(decoders, row, strict=True)) for row in rows]


@pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
@pytest.mark.parametrize("as_arrow", [True, False])
def test_a_load_gives_back_every_value_of_every_type(database: str, as_arrow: bool) -> None:
    def put(store: Any, connection: Any, columns: list[Column]) -> None:
        given = [list(range(len(TEXTS))), *values(as_arrow)]
        if store.dialect is MYSQL:
            loaded = store.dialect.load(connection, "t", columns, lines(columns, given))
            assert loaded == (len(TEXTS), 0, 0)
        else:
            arrays = [arrow_array(column, each) for column, each in zip(columns, given, strict=True)]
            assert store.dialect.load(connection, "t", columns, [arrays]) == len(TEXTS)

    found = stored(database, put)
    assert found == wanted()
    assert [list(map(type, row)) for row in found] == [list(map(type, row)) for row in wanted()]


@pytest.mark.parametrize("database", databases.MYSQLS, indirect=True)
def test_an_insert_of_many_rows_gives_back_every_value_of_every_type(database: str) -> None:
    def put(store: Any, connection: Any, columns: list[Column]) -> None:
        given = [list(range(len(TEXTS))), *values(True)]
        arrays = [arrow_array(column, each) for column, each in zip(columns, given, strict=True)]
        parts = list(insertions(columns, arrays, size=500))
        assert len(parts) > 2
        for part in parts:
            connection.raw.query(b'INSERT INTO "t" VALUES ' + part)

    assert stored(database, put) == wanted()


@pytest.mark.parametrize("database", databases.MYSQLS, indirect=True)
def test_a_load_counts_what_it_left_out_and_what_it_bent(database: str) -> None:
    store = store_of(parse_url(database))
    columns = [Column("k", "varchar(3)", True), Column("v", "tinyint")]
    with store.writing() as connection:
        create(store, connection, data_table(store, connection, "t", columns, keyed=True))
        first = store.dialect.load(connection, "t", columns, lines(columns, [["a", "a"], [1, 2]]), ignore=True)
        assert first == (2, 1, 1)
        bent = lines(columns, [["b", "too long"], [999, 1]])
        assert store.dialect.load(connection, "t", columns, bent, ignore=True) == (2, 0, 2)


def test_no_text_is_read_into_its_column_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(bulk, "_send_file", lambda raw, text, data: sent.append(text) or [0, 0, 0, 0])
    kinds = {"k": "varchar(20)", "c": "string", "j": "json", "n": "binary", "i": "bigint"}
    connection = SimpleNamespace(packet=1 << 20, raw=None)
    MYSQL.load(connection, "t", [Column(*kind) for kind in kinds.items()], [])
    assert sent[0].endswith(
        '(@b0, @b1, @b2, @b3, "i") SET "k" = @b0, "c" = @b1, "j" = @b2, "n" = UNHEX(SUBSTRING(@b3, 3))'
    )


def test_blocks_are_the_lines_in_parts() -> None:
    columns = [Column("a", "string"), Column("b", "binary"), Column("c", "bigint")]
    some = range(1000)
    arrays = [pa.array([f"t\t{i}" for i in some]), pa.array([b"%d" % i for i in some]), pa.array(some)]
    parts = list(blocks(columns, [array.slice(7, 900) for array in arrays], size=1000))
    assert len(parts) > 10 and all(part.endswith(b"\n") for part in parts)
    assert b"".join(parts) == b"".join(lines(columns, [array.slice(7, 900) for array in arrays]))
    assert parts[0].startswith(b"t\\t7\t\\\\x37\t7\nt\\t8\t\\\\x38\t8\n")
