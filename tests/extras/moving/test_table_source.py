"""A table of Storm's, with every choice of columns: read exactly, or refused before anything is read."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import click
import databases
import pytest
import sqlalchemy as sa

from trident_py.errors import StateError, TridentError
from trident_py.extras.moving.source_options import OF_REDIS, OF_SQL, source_of
from trident_py.extras.moving.table_source import TableSource
from trident_py.state import StateType

PLAIN, TRANSACTIONAL, OPAQUE = StateType.NON_TRANSACTIONAL, StateType.TRANSACTIONAL, StateType.OPAQUE
TXIDS, VALUES, PREVIOUS = (None, "txid"), (("value",), ("value", "sum")), ((), ("before",), ("before", "sum_before"))
ROW = {"word": "a", "txid": 7, "value": 30, "sum": 31, "before": 20, "sum_before": 21}


def wanted(kind: StateType, txid: str | None, value: tuple[str, ...], previous: tuple[str, ...]) -> Any:
    """Return what the columns say; None if they do not fit the kind."""
    one, before = (tuple(ROW[name] for name in names) for names in (value, previous))
    one, before = (names[0] if len(names) == 1 else names for names in (one, before))
    if kind is PLAIN:
        return None if txid or previous else one
    if kind is TRANSACTIONAL:
        return (7, one) if txid and not previous else None
    return (7, one, before) if txid and len(previous) == len(value) else None


@pytest.mark.parametrize(("kind", "txid", "value", "previous"), list(product(StateType, TXIDS, VALUES, PREVIOUS)))
def test_columns_are_read_exactly_or_refused(kind: Any, txid: Any, value: Any, previous: Any, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "storm.db")) as storm:
        storm.execute(f"CREATE TABLE t ({', '.join(ROW)})")
        storm.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", list(ROW.values()))
        text = kind is not PLAIN and not txid and len(value) == 1 and not previous
        if text:
            row = {TRANSACTIONAL: [7, 30], OPAQUE: [7, 30, 20]}[kind]
            storm.execute("UPDATE t SET value = ?", [json.dumps(row)])
        storm.commit()
    lay = dict.fromkeys(OF_REDIS) | dict(zip(OF_SQL, ("t", ("word",), value, txid, previous), strict=True))
    found = tuple(row) if text else wanted(kind, txid, value, previous)
    if found is None:
        with pytest.raises(click.UsageError, match=r"--(txid|previous|value)"):
            source_of(f"sqlite:///{tmp_path}/storm.db", kind, lay)
    else:
        source = source_of(f"sqlite:///{tmp_path}/storm.db", kind, lay)
        assert list(source.read(10)) == [([("a",)], [found])]


@pytest.mark.parametrize("held", [b"[3, 5, 4]", "[3, 5, 4]"])
def test_the_column_of_storms_text(held: Any, tmp_path: Path) -> None:
    assert read_text(tmp_path, held) == [([("a",)], [(3, 5, 4)])]


@pytest.mark.parametrize("held", [50_000_000, 1.5, 0, None, "", b"", "\ud800".encode("utf-8", "surrogatepass")])
def test_a_column_that_holds_no_text_is_refused(held: Any, tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"key \['a'\]: .* is not \[currTxid, curr, prev\]"):
        read_text(tmp_path, held)


def read_text(folder: Path, held: Any) -> Any:
    with closing(sqlite3.connect(folder / "storm.db")) as storm:
        storm.execute("CREATE TABLE t (word, value)")
        storm.execute("INSERT INTO t VALUES ('a', ?)", [held])
        storm.commit()
    return list(TableSource(f"sqlite:///{folder}/storm.db", "t", OPAQUE, ("word",), ("value",)).read(10))


@pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
def test_numbers_of_a_server_come_as_they_are(database: str) -> None:
    """MySQL shows six digits of a FLOAT; the txid may be in a NUMERIC column."""
    real, numbers = "real" if database.startswith("postgresql") else "float", [1234567.0, 16777215.0, 0.1, 3e38, None]
    engine = sa.create_engine(database)
    with engine.begin() as connection:
        connection.execute(sa.text(f"CREATE TABLE f (n int, v {real}, txid numeric(20, 0))"))
        for n, number in enumerate(numbers):
            connection.execute(sa.text("INSERT INTO f VALUES (:n, :v, 5)"), {"n": n, "v": number})
    engine.dispose()
    found = list(TableSource(database, "f", TRANSACTIONAL, ("n",), ("v",), "txid").read(10))
    assert found == [([(n,) for n in range(5)], [(5, number) for number in numbers])]
    rows = TableSource(database, "f", PLAIN, ("n",), ("v",)).rows()
    assert sorted((row["n"], row["v"]) for row in rows) == list(enumerate(numbers))
    with pytest.raises(TridentError, match=r"(?s)none.* exist.*Check table and columns"):
        list(TableSource(database, "none", PLAIN, ("n",), ("v",)).read(10))


@pytest.mark.servers
def test_a_column_that_the_driver_parses(postgresql: Any) -> None:
    with databases.fresh(postgresql) as url:
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            connection.execute(sa.text("CREATE TABLE t (word text, value jsonb)"))
            connection.execute(sa.text("INSERT INTO t VALUES ('a', '[3, 12345678901234567890.12, 4]')"))
        engine.dispose()
        found = list(TableSource(url, "t", OPAQUE, ("word",), ("value",)).read(10, Decimal))
        assert found == [([("a",)], [(3, Decimal("12345678901234567890.12"), 4)])]
