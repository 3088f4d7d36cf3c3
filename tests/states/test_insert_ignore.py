"""InsertIgnoreState on SQLite: the contract, and what belongs to rows."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from contracts.state import RowContract

from states.sql import InsertIgnoreState, InsertIgnoreUpdater, RowUpdater
from trident_py.errors import DefinitionError, StateError
from trident_py.operations.base import TridentCollector
from trident_py.state import SILENT, persist
from trident_py.tuples import TridentTuple


class TestInsertIgnore(RowContract):
    def make(self, url: str) -> InsertIgnoreState:
        return InsertIgnoreState(url, "rows", "word", ["word string", "n bigint"])


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/s.db"


def rows(fields: list[str], *values: tuple) -> list[TridentTuple]:
    return [TridentTuple.of(fields, each) for each in values]


def write(factory: InsertIgnoreState, txid: int, tuples: list, collector: Any = SILENT) -> Any:
    return persist(factory.makeState({}, None, 0, 1), txid, RowUpdater(), tuples, collector)


def test_the_receipt_counts_inserted_and_ignored_rows(url: str) -> None:
    factory = InsertIgnoreState(url, "t", "k", ["k string", "v bigint"])
    batch = rows(["k", "v"], ("b", 1), ("a", 2), ("b", 3))
    assert write(factory, 1, batch) == {"partition": 0, "inserted": 2, "ignored": 1}
    assert write(factory, 1, batch) == {"partition": 0, "inserted": 0, "ignored": 3}
    assert factory.stored() == {("a",): (2,), ("b",): (1,)}  # the first of a batch stands


def test_with_output_fields_the_new_rows_are_emitted_in_order(url: str) -> None:
    factory = InsertIgnoreState(url, "t", ["a", "b"], ["a string", "b bigint", "v bigint"])
    out: list = []
    write(factory, 1, rows(["v", "b", "a"], (1, 2, "y"), (2, 1, "x"), (3, 1, "x")), TridentCollector(out.append))
    write(factory, 2, rows(["v", "b", "a"], (4, 1, "x"), (5, 5, "z")), TridentCollector(out.append))
    assert out == [(1, 2, "y"), (2, 1, "x"), (5, 5, "z")]
    assert factory.stored()[("x", 1)] == (2,)


def test_only_an_equal_key_is_ignored_every_other_objection_is_an_error(url: str) -> None:
    """What INSERT OR IGNORE would swallow: NOT NULL, CHECK, another unique index."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    connection.execute("CREATE TABLE t (k TEXT PRIMARY KEY, v BIGINT NOT NULL UNIQUE CHECK (v < 100))")
    connection.close()
    factory = InsertIgnoreState(url, "t", "k")
    write(factory, 1, rows(["k", "v"], ("a", 1)))
    for value, words in ((None, "NOT NULL"), (100, "CHECK"), (1, "UNIQUE")):
        with pytest.raises(StateError, match=words):
            write(factory, 2, rows(["k", "v"], ("new", 5), ("bad", value)))
    assert factory.stored() == {("a",): (1,)}


def test_columns_come_from_typed_tuples_when_nothing_else_says(url: str) -> None:
    factory = InsertIgnoreState(url, "t", "k")
    write(factory, 1, rows(["k string", "v double"], ("a", 1.5)))
    assert factory.stored() == {("a",): (1.5,)}
    with pytest.raises(StateError, match="type of 'k' is not declared"):
        write(InsertIgnoreState(url, "u", "k"), 1, rows(["k", "v"], ("a", 1)))
    with pytest.raises(StateError, match=r"no columns \['w'\]; it has: k, v"):
        write(factory, 2, rows(["k", "w"], ("b", 1)))
    with pytest.raises(StateError, match="needs the columns v; the tuples have"):
        write(InsertIgnoreState(url, "t", "k", ["k string", "v double"]), 2, rows(["k"], ("b",)))


def test_what_is_not_there_is_refused_at_birth(url: str) -> None:
    for options, words in (
        ({"onConflict": "update"}, "onConflict must be one of"),
        ({"onBadRow": "skip"}, "onBadRow must be one of"),
        ({"columns": "v bigint"}, r"the key fields \['k'\] are not in columns"),
    ):
        with pytest.raises(DefinitionError, match=words):
            InsertIgnoreState(url, "t", "k", **options)  # type: ignore[arg-type]
    assert InsertIgnoreUpdater is RowUpdater
