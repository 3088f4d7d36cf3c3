"""A store that takes fewer rows than it was sent: every state compares what it sent with what the store says.

What each compares:

- SQL: the rows of a statement or load with the server's count of them (`states.sql.dialects.base.check_taken`). Where
  rows may be left out for their key, the rows left out are counted by a question of its own.
- Kafka: the records queued with the brokers' confirmations of each (`states.kafka.sender.Sender.confirm`, or the
  commit of the transaction, which fails with the first record that was not taken).
- Redis: nothing is counted. All values of a partition and its mark are one script, which Redis runs whole or not at
  all, and which answers "done" behind its last command.
- Files: the bytes written with the size that the store lists, before any file becomes visible.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
from pymysql.connections import Connection

from states.sql.store import Store
from states.sql.table import TablePlace
from trident_py.errors import StateError

POSTGRES_FUNCTION = (
    "CREATE OR REPLACE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN IF to_jsonb(NEW) ->> TG_ARGV[0] LIKE TG_ARGV[1] THEN RETURN NULL; END IF; RETURN NEW; END $$"
)


class ComparesWhatWasTaken:
    """``taken_words``: what the error says besides the state and its place."""

    taken_words: tuple[str, ...] = (
        "state 's' of topology 'contract', batch 2: ", " took ", "a trigger leaves rows out",
        "Nothing of the batch is written", "Remove the trigger",
    )  # fmt: skip

    @contextmanager
    def taking_less(self: Any, factory: Any) -> Iterator[None]:
        """The store leaves out the rows whose first field ends with 0."""
        with leaving_out(TablePlace(factory.url, factory.table).store(), self.filled(factory), self.fields[0]):
            yield

    def filled(self, factory: Any) -> str:
        """The table that the second batch fills."""
        return str(factory.table)

    def test_fewer_rows_taken_than_sent_are_an_error_that_counts_them(self: Any, factory: Any) -> None:
        driver = self.batches(factory, 1)
        before = self.found(factory)
        with self.taking_less(factory), pytest.raises(StateError) as told:
            self.batch(driver, 2)
        for words in (self.place(factory), *self.taken_words):
            assert words in str(told.value)
        assert self.found(factory) == before
        driver.participant.abort(2, 0)
        self.batch(driver, 2, attempt=1)
        self.holds(factory, range(1, 3))


@contextmanager
def leaving_out(store: Store, table: str, column: str, like: str = "%0") -> Iterator[None]:
    """Leaves out the rows with such a text in the column. No trigger of MariaDB can: there the server's count is 0."""
    if store.dialect.name == "mysql":
        with _counting_none(table):
            yield
        return
    if store.dialect.name == "sqlite":
        name, made = f"leaves_out_{table}", [
            f'CREATE TRIGGER "leaves_out_{table}" BEFORE INSERT ON "{table}" WHEN NEW."{column}" LIKE \'{like}\''
            " BEGIN SELECT RAISE(IGNORE); END"
        ]  # fmt: skip
        dropped = f'DROP TRIGGER "{name}"'
    else:
        made = [POSTGRES_FUNCTION, f'CREATE TRIGGER leaves_out BEFORE INSERT OR UPDATE ON "{table}" FOR EACH ROW'
                f" EXECUTE FUNCTION leave_out('{column}', '{like}')"]  # fmt: skip
        dropped = f'DROP TRIGGER leaves_out ON "{table}"'
    _run(store, *made)
    yield
    _run(store, dropped)


def _run(store: Store, *texts: str) -> None:
    with store.reading() as connection:
        for text in texts:
            connection.execute(text)


@contextmanager
def _counting_none(table: str) -> Iterator[None]:
    """MariaDB says of every INSERT and LOAD DATA into the table that it took no row."""
    from states.sql.dialects.mysql import bulk

    query, sent = Connection.query, bulk._send_file

    def answer(self: Any, sql: Any, unbuffered: bool = False) -> Any:
        done = query(self, sql, unbuffered)
        text = sql if isinstance(sql, str) else bytes(sql[:300]).decode("utf-8", "replace")
        if text.startswith((f'INSERT INTO "{table}"', f'INSERT IGNORE INTO "{table}"')):
            self._result.affected_rows = done = 0
        return done

    def counts(raw: Any, text: str, data: Any) -> list[int]:
        done = sent(raw, text, data)
        return [0, *done[1:]] if f'INTO TABLE "{table}"' in text else done

    with mock.patch.object(Connection, "query", answer), mock.patch.object(bulk, "_send_file", counts):
        yield
