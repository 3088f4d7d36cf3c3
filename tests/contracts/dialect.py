"""What every dialect proves: a test class inherits `DialectContract` and says what its database is like.

A new dialect needs these few lines and a kind of database in the fixture ``database``.
"""

from __future__ import annotations

import datetime
import decimal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

from states.columns.values import Column, RefusedValue, decode_row
from states.sql.store import Store, parse_url, store_of
from states.sql.table import Shape, TablePlace, prepare, read_columns
from trident_py.errors import StateError

K = Column("k", "bigint", True)
V = Column("v", "bigint")
ALIKE = [
    "ok", "OK", "ok ", "OK ", "", " ", "\xf3k", "%s?{}", "日本\U0001f600",
    "\u1e9e", "ss", "\ufb01", "fi", "a\tb\nc\r\\N\\", "'\"`",
]  # fmt: skip
DAY, MOMENT = datetime.date, datetime.datetime
EDGES: dict[str, list[Any]] = {
    "tinyint": [-128, 127, 128], "smallint": [-(2**15), 2**15 - 1, 2**15], "int": [-(2**31), 2**31 - 1, 2**31],
    "bigint": [-(2**63), 2**63 - 1, 0, None, 2**63],
    "double": [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1e-5, 1 / 3, float("inf"), float("-inf"), float("nan"), None],
    "string": [*ALIKE, "x" * 100_000, "\0", "a\0b", "\ud800", None], "varchar(3)": ["abc", "日本\U0001f600", "abcd"],
    "boolean": [True, False, None], "binary": [b"", b"\0\xff\\x\t\n", bytes(range(256)), None],
    "date": [DAY(1, 1, 1), DAY(9999, 12, 31), DAY(2024, 2, 29), None],
    "timestamp": [MOMENT(1, 1, 1), MOMENT(9999, 12, 31, 23, 59, 59, 999999), MOMENT(2013, 11, 3, 1, 30, 0, 1), None],
    "decimal(20,5)": [decimal.Decimal("123456789012345.12345"), decimal.Decimal("-0.00001"), decimal.Decimal(1), None],
    "json": [{"a": [1, None, "é\u2028", 1.5]}, [], "text", None],
}  # fmt: skip


class DialectContract:
    """``server``: others may hold a row, and may cut the connection. ``folded``: a table whose key folds texts."""

    server: ClassVar[bool] = True
    folded: ClassVar[tuple[str, ...]]
    cut: ClassVar[str] = ""
    """Ends the connection of another one, whose number is the parameter of `number`."""
    number: ClassVar[str] = ""
    count_pages: ClassVar[str] = ""
    """Makes the server count the pages of the table t anew, if it does not do so by itself."""

    @pytest.fixture
    def store(self, database: str) -> Store:
        return store_of(parse_url(database))

    @pytest.fixture(params=["few rows", "literals", "many rows"])
    def bulk(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        """The ways by which a dialect writes."""
        if request.param != "few rows":
            monkeypatch.setattr("states.sql.dialects.mysql.maps._ROWS_TO_BUILD", 1)
        if request.param == "many rows":
            for module in ("mysql.maps", "postgresql.dialect"):
                monkeypatch.setattr(f"states.sql.dialects.{module}._ROWS_TO_WRITE_STAGED", 1)

    def table(self, store: Store, *columns: Column, name: str = "t") -> tuple[list[Column], list[Column]]:
        url = store.url.render_as_string(hide_password=False)
        shape = prepare(TablePlace(url, name), Shape(columns))
        return shape.keys, shape.others

    @contextmanager
    def transaction(self, store: Store, seconds: float = 1) -> Iterator[Any]:
        connection = store.take()
        try:
            store.dialect.begin(connection, seconds)
            yield connection
        finally:
            store.drop(connection)

    # -- opening

    def test_an_url_means_the_same_in_every_process(self, store: Store) -> None:
        dialect = store.dialect
        assert dialect.absolute(store.url) == store.url

    def test_a_transaction_ends_with_its_connection(self, store: Store) -> None:
        keys, columns = self.table(store, K, V)
        with self.transaction(store) as connection:
            store.dialect.write(connection, "t", keys, columns, [(1, 1)])
        with store.reading() as connection:
            assert store.dialect.read(connection, "t", keys, columns, [(1,)]) == [None]

    # -- errors

    def test_a_lock_wait_ends_and_is_recognised(self, store: Store) -> None:
        keys, columns = self.table(store, K, V)
        with store.writing() as connection:
            store.dialect.write(connection, "t", keys, columns, [(1, 1)])
        with self.transaction(store) as first:
            store.dialect.write(first, "t", keys, columns, [(1, 2)])
            began = time.monotonic()
            with pytest.raises(Exception) as caught, self.transaction(store) as second:
                store.dialect.write(second, "t", keys, columns, [(1, 3)])
            assert 0.5 < time.monotonic() - began < 10
        assert store.dialect.is_lock(caught.value)
        assert not store.dialect.is_lost(caught.value) and not store.dialect.is_duplicate(caught.value)

    def test_a_deadlock_is_recognised(self, store: Store) -> None:
        if not self.server:
            return  # one writer at a time: there is none
        keys, columns = self.table(store, K, V)
        with store.writing() as connection:
            store.dialect.write(connection, "t", keys, columns, [(1, 1), (2, 2)])
        errors: list[BaseException] = []

        def change(connection: Any, key: int) -> None:
            try:
                connection.execute("UPDATE t SET v = 9 WHERE k = ?", (key,))
            except Exception as error:
                errors.append(error)
                store.drop(connection)

        with self.transaction(store, 20) as first, self.transaction(store, 20) as second:
            change(first, 1)
            change(second, 2)
            other = threading.Thread(target=change, args=(first, 2))
            other.start()
            time.sleep(0.2)
            change(second, 1)
            other.join(20)
        assert len(errors) == 1 and store.dialect.is_lock(errors[0])

    def test_a_lost_connection_is_recognised(self, store: Store) -> None:
        if not self.server:
            return  # there is none
        connection = store.take()
        (number,) = connection.execute(self.number).fetchone()
        assert store.dialect.alive(connection)
        with store.reading() as other:
            other.execute(self.cut.format(number))
        with pytest.raises(Exception) as caught:
            connection.execute("SELECT 1")
        assert store.dialect.is_lost(caught.value) and not store.dialect.is_lock(caught.value)
        assert not store.dialect.alive(connection)
        store.drop(connection)

    def test_a_refused_key_is_recognised(self, store: Store) -> None:
        keys, columns = self.table(store, K, V)
        with pytest.raises(Exception) as caught, store.writing() as connection:
            store.dialect.insert(connection, "t", [*keys, *columns], [(1, 1), (1, 2)])
        assert store.dialect.is_duplicate(caught.value)
        assert not store.dialect.is_lock(caught.value) and not store.dialect.is_lost(caught.value)

    # -- tables

    @pytest.mark.parametrize("ddl", EDGES)
    def test_a_column_that_was_made_fits_its_declaration(self, store: Store, ddl: str) -> None:
        column = Column("v", ddl)
        keys, columns = self.table(store, K, column)
        assert self.table(store, K, column) == (keys, columns)
        known = read_columns(store, "t")
        assert known is not None
        for each in (Column("v", known["v"]), column):
            prepare(TablePlace(store.url.render_as_string(hide_password=False), "t"), Shape((K, each)))
        other = Column("v", "bigint" if column.family != "integer" else "string")
        with pytest.raises(StateError, match="cannot hold"):
            self.table(store, K, other)

    @pytest.mark.usefixtures("bulk")
    @pytest.mark.parametrize("ddl", EDGES)
    def test_a_value_comes_back_as_it_was_or_is_refused(self, store: Store, ddl: str) -> None:
        keys, (column,) = self.table(store, K, Column("v", ddl))
        kept: list[Any] = []
        stored: list[Any] = []
        for value in EDGES[ddl]:
            try:
                stored += column.encode([value])
            except RefusedValue:
                continue
            kept.append(value)
        assert len(kept) >= len(EDGES[ddl]) // 2
        with store.writing() as connection:
            store.dialect.write(connection, "t", keys, [column], list(enumerate(stored)))
        with store.reading() as connection:
            rows = store.dialect.read(connection, "t", keys, [column], [(i,) for i in range(len(kept))])
        found = [decode_row(row or (), [store.dialect.decoder(column)])[0] for row in rows]
        assert found == kept and [type(value) for value in found] == [type(value) for value in kept]

    @pytest.mark.usefixtures("bulk")
    @pytest.mark.parametrize("ddl", ["string", "varchar(20)"])
    def test_texts_that_look_alike_are_different_keys(self, store: Store, ddl: str) -> None:
        keys, columns = self.table(store, Column("k", ddl, True), V)
        rows = [(text, at) for at, text in enumerate(ALIKE)]
        with store.writing() as connection:
            store.dialect.write(connection, "t", keys, columns, rows)
            found = store.dialect.read(connection, "t", keys, columns, [(text,) for text, _ in rows])
            count = connection.execute("SELECT count(*) FROM t").fetchone()[0]
        assert found == [(at,) for _, at in rows] and count == len(rows)

    def test_a_table_tells_its_size(self, store: Store) -> None:
        keys, columns = self.table(store, K, Column("v", "string"))
        before = self.size(store)
        with store.writing() as connection:
            store.dialect.insert(connection, "t", [*keys, *columns], [(n, f"{n}" * 100) for n in range(1000)])
        after = self.size(store)
        assert before is not None and after is not None and before + 290_000 < after < before + 900_000

    def size(self, store: Store) -> int | None:
        with store.reading() as connection:
            if self.count_pages:
                connection.execute(self.count_pages).fetchall()
            assert store.dialect.measure_table(connection, "no_such_table") is None
            return store.dialect.measure_table(connection, store.dialect.fold_on_server(connection, "t"))

    def test_a_table_that_folds_texts_is_found(self, store: Store) -> None:
        with store.writing() as connection:
            for text in self.folded:
                connection.execute(text)
            assert list(store.dialect.inexact(connection, "folded", ["k"])) == ["k"]
        with pytest.raises(StateError, match="treats different keys as equal"):
            self.table(store, Column("k", "string", True), V, name="folded")
        keys, _ = self.table(store, Column("k", "string", True), V)
        with store.reading() as connection:
            assert store.dialect.inexact(connection, "t", [keys[0].name]) == {}

    # -- rows

    @pytest.mark.usefixtures("bulk")
    def test_rows_are_read_in_the_order_asked(self, store: Store) -> None:
        keys, columns = self.table(store, K, Column("b", "string", True), V)
        rows = [(i * 7919 % 5003, f"{i % 3}", i) for i in range(2600)]
        with store.writing() as connection:
            store.dialect.write(connection, "t", keys, columns, rows)
            asked = [row[:2] for row in rows[::-1]] + [(1, "9"), rows[0][:2], rows[0][:2]]
            found = store.dialect.read(connection, "t", keys, columns, asked)
            assert store.dialect.read(connection, "t", keys, columns, []) == []
        assert found == [(row[2],) for row in rows[::-1]] + [None, (0,), (0,)]

    @pytest.mark.usefixtures("bulk")
    def test_the_last_row_of_a_key_is_written(self, store: Store) -> None:
        keys, columns = self.table(store, K, V, Column("w", "string"))
        with store.writing() as connection:
            store.dialect.write(connection, "t", keys, columns, [(1, 1, "a"), (2, 2, None), (1, 3, "c")])
            store.dialect.write(connection, "t", keys, columns, [(2, 5, "e")])
            found = store.dialect.read(connection, "t", keys, columns, [(1,), (2,), (3,)])
        assert found == [(3, "c"), (5, "e"), None]

    def test_inserted_rows_stay_as_they_came(self, store: Store) -> None:
        _, columns = self.table(store, V, Column("w", "string"))
        rows = [(i % 3, None if i % 2 else "x") for i in range(2600)]
        with store.writing() as connection:
            store.dialect.insert(connection, "t", columns, rows)
            found = connection.execute("SELECT v, w FROM t").fetchall()
        assert sorted(map(repr, map(tuple, found))) == sorted(map(repr, rows))

    # -- locks

    def test_a_shared_lock_lets_readers_in_and_writers_wait(self, store: Store) -> None:
        if not self.server:
            return  # a transaction is alone in its file
        keys, columns = self.table(store, K, V)
        with store.writing() as connection:
            store.dialect.write(connection, "t", keys, columns, [(1, 1)])
        one = "SELECT v FROM t WHERE k = 1"
        with self.transaction(store) as first:
            first.execute(one + store.dialect.shared).fetchall()
            with self.transaction(store) as second:
                assert second.execute(one + store.dialect.shared).fetchall()
                with pytest.raises(Exception) as caught:
                    second.execute("UPDATE t SET v = 2 WHERE k = 1")
        assert store.dialect.is_lock(caught.value)
        with self.transaction(store) as first:  # free again
            first.execute(one + store.dialect.exclusive).fetchall()
            with self.transaction(store) as second, pytest.raises(Exception) as caught:
                second.execute(one + store.dialect.shared).fetchall()
        assert store.dialect.is_lock(caught.value)
