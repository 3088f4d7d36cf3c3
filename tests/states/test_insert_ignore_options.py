"""What InsertIgnoreState does with conflicts and with rows that the table refuses, on every database."""

from __future__ import annotations

import datetime
import decimal
import json
import logging
from typing import Any

import databases
import pyarrow as pa
import pytest
from contracts.asking import exact_texts

from states.sql import InsertIgnoreState, RowUpdater
from states.sql.rows.table_writer import Stage, TableWriter
from states.sql.store import parse_url, store_of
from trident_py.errors import StateError
from trident_py.model.chunks import Chunk, TupleList
from trident_py.operations.base import TridentCollector
from trident_py.state import SILENT, persist
from trident_py.tuples import Fields, TridentTuple

pytestmark = pytest.mark.dear

FIELDS = ["k string", "v bigint", "t string"]
NAMES = Fields("k", "v", "t")


def state(url: str, **options: Any) -> InsertIgnoreState:
    return InsertIgnoreState(url, "t", "k", FIELDS, **options)


def write(factory: InsertIgnoreState, txid: int, *rows: tuple, collector: Any = SILENT, conf: Any = None) -> dict:
    tuples = [TridentTuple.of(NAMES, row) for row in rows]
    return persist(factory.makeState(conf or {}, None, 0, 1), txid, RowUpdater(), tuples, collector)


def columns(*rows: tuple) -> TupleList:
    made = TupleList(NAMES)
    types = (pa.string(), pa.int64(), pa.string())
    arrays = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
    made.append(Chunk(dict(zip(NAMES, arrays, strict=True)), len(rows)))
    return made


def run(url: str, text: str) -> list[tuple]:
    with store_of(parse_url(url)).reading() as connection:
        done = connection.execute(text)
        return list(done.fetchall()) if text.startswith("SELECT") else []


def checked_table(url: str) -> None:
    """A table that refuses 13, and values without a parent."""
    run(url, 'CREATE TABLE "parent" (v BIGINT PRIMARY KEY)' + (" " if "mysql" not in url else " ENGINE=InnoDB"))
    run(url, 'INSERT INTO "parent" (v) VALUES (1), (2), (13)')
    key = f"k VARCHAR(20){exact_texts(url)} NOT NULL PRIMARY KEY"
    run(url, f'CREATE TABLE "t" ({key}, v BIGINT NOT NULL CHECK (v <> 13), t VARCHAR(5),'
             ' FOREIGN KEY (v) REFERENCES "parent" (v))')  # fmt: skip
    if url.startswith("sqlite"):
        run(url, "CREATE TRIGGER p BEFORE INSERT ON t WHEN NEW.v NOT IN (SELECT v FROM parent) "
                 "BEGIN SELECT RAISE(ABORT, 'FOREIGN KEY constraint failed'); END")  # fmt: skip


ROWS = [("a", 1, "one"), ("b", 2, "two"), ("c", 3, None)]


def test_ignore_keeps_the_first_row_of_a_key(database: str) -> None:
    factory = state(database)
    write(factory, 1, *ROWS)
    assert write(factory, 2, ("a", 9, "nine"), ("d", 4, None), ("d", 5, None))["ignored"] == 2
    assert factory.stored() == {("a",): (1, "one"), ("b",): (2, "two"), ("c",): (3, None), ("d",): (4, None)}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("a", 9, "one"), "row 1 of the batch: the key (k='a') is taken by a row with other values: stored v=1, "),
        (("a", 1, "One"), "t='one', new v=1, t='One'"),
        (("a", 1, "one "), "stored v=1, t='one', new"),
        (("a", None, "one"), "v=None"),
        (("c", 3, ""), "stored v=3, t=None, new v=3, t=''"),
        (("new", 8, None), "row 1 of the batch: the key (k='new') is taken"),
    ],
)  # fmt: skip
def test_fail_stops_a_batch_with_another_row_under_a_known_key(database: str, row: tuple, words: str) -> None:
    factory = state(database, onConflict="fail")
    assert write(factory, 1, *ROWS)["inserted"] == 3
    assert write(factory, 1, *ROWS, *ROWS) == {"partition": 0, "inserted": 0, "ignored": 6}
    before = factory.stored()
    with pytest.raises(StateError) as told:
        write(factory, 2, ("new", 7, "x"), row)
    assert words in str(told.value) and "Nothing of the batch is written (1 such rows)" in str(told.value)
    assert factory.stored() == before


def test_report_counts_conflicts_and_logs_the_first_few(database: str, caplog: pytest.LogCaptureFixture) -> None:
    factory = state(database, onConflict="report")
    assert write(factory, 1, *ROWS) == {"partition": 0, "inserted": 3, "ignored": 0, "conflicts": 0}
    with caplog.at_level(logging.WARNING, "states.sql"):
        rows = [("d", 1, None), ("d", 2, None), ("d", 1, None), ("b", 2, "two"), *[(k, 0, "x" * 500) for k in "abc"]]
        assert write(factory, 2, *rows) == {"partition": 0, "inserted": 1, "ignored": 6, "conflicts": 4}
    assert len(caplog.records) == 3
    assert "the key (k='a') is taken by a row with other values: stored v=1, t='one', new v=0, t='xxx" in caplog.text
    assert "x" * 100 not in caplog.text
    assert factory.stored()[("d",)] == (1, None)


def test_conflicts_of_arrow_columns_are_found_too(database: str) -> None:
    factory = state(database, onConflict="report")
    for txid, conflicts in ((1, 1), (1, 1)):
        batch = columns(*ROWS, ("a", 1, "one"), ("a", 1, None))
        receipt = persist(factory.makeState({}, None, 0, 1), txid, RowUpdater(), batch, SILENT)
        assert receipt["conflicts"] == conflicts
    assert receipt == {"partition": 0, "inserted": 0, "ignored": 5, "conflicts": 1}


def test_new_rows_are_told_whatever_the_options(database: str) -> None:
    for number, options in enumerate([{}, {"onConflict": "report"}, {"onBadRow": "dead-letter"}]):
        factory = state(database, **options)
        out: list = []
        write(factory, 1, *ROWS)
        rows = [("a", 1, "one"), (f"z{number}", 3, None), (f"y{number}", 1, "x"), (f"z{number}", 4, None)]
        write(factory, 2, *rows, collector=TridentCollector(out.append))
        assert out == rows[1:3]


def test_a_refused_row_goes_to_the_dead_letters_and_the_others_are_written(database: str) -> None:
    checked_table(database)
    factory = state(database, onBadRow="dead-letter")
    bad = [("e", 13, None), ("f", 99, None), ("g", None, None), ("i", "x", None), (None, 1, None), ("k" * 21, 1, None)]
    if database.startswith("sqlite"):
        bad[-1] = ("k", 1.5, None)  # SQLite's texts have no length
    receipt = write(factory, 7, ("a", 1, None), *bad, ("b", 2, "x"), bad[0])
    assert receipt == {"partition": 0, "inserted": 2, "ignored": 0, "rejected": 7}
    assert factory.stored() == {("a",): (1, None), ("b",): (2, "x")}
    found = run(database, 'SELECT "topology", "state", "txid", "count", "reason", "row" FROM "t_rejected"')
    assert {row[:3] for row in found} == {("", "t", 7)}
    reasons = {json.loads(row[5])["k"]: row[4] for row in found}
    assert reasons.keys() == {row[0] for row in bad}
    for key, words in (("e", "constraint"), ("f", "foreign key"), ("g", "null"), (None, "cannot hold null")):
        assert words in reasons[key].lower()
    assert {json.loads(row[5])["k"]: row[3] for row in found} == dict.fromkeys(reasons, 1) | {"e": 2}


def test_a_replay_writes_no_dead_letter_twice(database: str) -> None:
    checked_table(database)
    factory = state(database, onBadRow="dead-letter")
    rows = [("a", 1, None), ("e", 13, None), ("x", "bad", None), ("x", "bad", None)]
    first = write(factory, 1, *rows)
    assert first == {"partition": 0, "inserted": 1, "ignored": 0, "rejected": 3}
    letters = run(database, 'SELECT "digest", "count", "row" FROM "t_rejected" ORDER BY 1')
    assert write(factory, 1, *rows) == first | {"inserted": 0, "ignored": 1}
    assert run(database, 'SELECT "digest", "count", "row" FROM "t_rejected" ORDER BY 1') == letters
    assert sorted(count for _, count, _ in letters) == [1, 2]
    write(factory, 2, *rows)
    assert len(run(database, 'SELECT 1 FROM "t_rejected"')) == 4


def test_dead_letters_are_written_with_the_batch_or_not_at_all(database: str) -> None:
    factory = state(database, onBadRow="dead-letter", onConflict="fail")
    write(factory, 1, ("a", 1, None))
    with pytest.raises(StateError, match="taken by a row"):
        write(factory, 2, ("b", "bad", None), ("a", 2, None))
    assert run(database, 'SELECT 1 FROM "t_rejected"') == []


def test_behind_a_refused_row_the_next_one_with_its_key_is_the_first(database: str) -> None:
    checked_table(database)
    factory = state(database, onBadRow="dead-letter")
    out: list = []
    rows = [("a", 13, None), ("a", 99, None), ("a", 2, "good"), ("a", 1, "late"), ("b", 1, None)]
    write(factory, 1, *rows, collector=TridentCollector(out.append))
    assert out == [rows[2], rows[4]]
    assert factory.stored() == {("a",): (2, "good"), ("b",): (1, None)}
    assert len(run(database, 'SELECT 1 FROM "t_rejected"')) == 2


def test_a_batch_of_bad_rows_only_is_no_error(database: str) -> None:
    factory = state(database, onBadRow="dead-letter")
    receipt = write(factory, 1, ("a", "bad", None), (None, 1, None))
    assert receipt == {"partition": 0, "inserted": 0, "ignored": 0, "rejected": 2}
    assert factory.stored() == {}


def test_what_is_no_fault_of_a_row_is_never_a_dead_letter(database: str) -> None:
    factory = state(database, onBadRow="dead-letter")
    there = factory.makeState({}, None, 0, 1)
    run(database, 'DROP TABLE "t"')
    gone = r"table 't' in .* has no column 'k'|\.t' doesn't exist|relation \"t\" does not exist"
    with pytest.raises(StateError, match=gone):
        persist(there, 1, RowUpdater(), [TridentTuple.of(NAMES, row) for row in ROWS], SILENT)
    assert run(database, 'SELECT 1 FROM "t_rejected"') == []


def test_keys_of_several_columns_and_kinds(database: str) -> None:
    names = Fields("b", "n", "d", "v")
    factory = InsertIgnoreState(database, "t", ["n", "b"], ["b binary", "n int", "d decimal(6,2)", "v timestamp"])
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 6)
    rows = [(bytes([i % 7, 255]), i % 5, decimal.Decimal(i) / 4, at if i % 2 else None) for i in range(70)]
    tuples = [TridentTuple.of(names, row) for row in rows]
    for inserted in (35, 0):
        receipt = persist(factory.makeState({}, None, 0, 1), 1, RowUpdater(), tuples, SILENT)
        assert (receipt["inserted"], receipt["ignored"]) == (inserted, 70 - inserted)
    assert factory.stored() == {(row[1], row[0]): row[2:] for row in rows[:35]}


def test_texts_are_compared_sign_by_sign_whatever_the_column_folds(database: str) -> None:
    folds = "VARCHAR(9)"
    if "mysql" in database:
        folds += " CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    elif database.startswith("sqlite"):
        folds += " COLLATE NOCASE"
    else:
        run(database, "CREATE COLLATION folds (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        folds += " COLLATE folds"
    run(database, f'CREATE TABLE "t" (k VARCHAR(9){exact_texts(database)} NOT NULL PRIMARY KEY, v BIGINT, t {folds})')
    factory = state(database, onConflict="report")
    write(factory, 1, *ROWS)
    assert write(factory, 2, ("a", 1, "ONE"), ("b", 2, "two"))["conflicts"] == 1


@pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
def test_a_key_that_arrives_between_two_statements_is_a_duplicate_and_compared(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Stage._there
    arriving = ["b", "c"]

    def late(stage: Stage, compare: bool) -> tuple[int, int]:
        done = whole(stage, compare)
        if arriving:
            run(database, f"""INSERT INTO "t" (k, v, t) VALUES ('{arriving.pop()}', 0, 'other')""")
        return done

    monkeypatch.setattr(Stage, "_there", late)
    monkeypatch.setattr(TableWriter, "_directly", lambda *given: None)
    factory = state(database, onConflict="report")
    out: list = []
    receipt = write(factory, 1, *ROWS, ("d", 4, None), collector=TridentCollector(out.append))
    assert receipt == {"partition": 0, "inserted": 2, "ignored": 2, "conflicts": 2}
    assert out == [ROWS[0], ("d", 4, None)]
    assert factory.stored()[("b",)] == (0, "other")


@pytest.mark.parametrize("database", databases.MYSQLS, indirect=True)
def test_a_key_that_arrives_between_two_statements_is_no_objection_of_a_checked_table(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked_table(database)
    whole = Stage._there
    arriving = ["b"]

    def late(stage: Stage, compare: bool) -> tuple[int, int]:
        done = whole(stage, compare)
        if arriving:
            run(database, f"""INSERT INTO "t" (k, v, t) VALUES ('{arriving.pop()}', 1, 'other')""")
        return done

    monkeypatch.setattr(Stage, "_there", late)
    monkeypatch.setattr(TableWriter, "_directly", lambda *given: None)
    receipt = write(state(database), 1, ("a", 1, None), ("b", 2, None), ("c", 1, None))
    assert receipt == {"partition": 0, "inserted": 2, "ignored": 1}


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_rows_with_known_keys_need_no_second_copy_on_postgresql(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    factory = state(database)
    there = factory.makeState({}, None, 0, 1)
    monkeypatch.setattr(Stage, "fill", lambda stage: pytest.fail("staged"))
    for txid, (first, last, inserted) in enumerate([(0, 500, 500), (0, 500, 0), (300, 700, 200), (700, 900, 200)], 1):
        rows = columns(*[(f"{i * 7919 % 1000:04d}", i, None) for i in (*range(first, last), first)])
        receipt = persist(there, txid, RowUpdater(), rows, SILENT)
        assert receipt == {"partition": 0, "inserted": inserted, "ignored": last - first + 1 - inserted}
    assert len(factory.stored()) == 900 and factory.stored()[("0000",)] == (0, None)
