"""Which way the rows of an InsertIgnoreState take into a table, and that the way never changes the result."""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Iterator
from typing import Any

import databases
import pyarrow as pa
import pytest
from contracts.asking import exact_texts
from contracts.state import RowContract

from states.sql import InsertIgnoreState, RowUpdater
from states.sql.dialects.mysql.bulk import MySqlBulk
from states.sql.dialects.postgresql.bulk import PostgreSqlBulk
from states.sql.rows import table_writer
from states.sql.rows.table_writer import Stage, TableWriter
from states.sql.store import parse_url, store_of
from trident_py.model.chunks import Chunk, TupleList
from trident_py.operations.base import TridentCollector
from trident_py.state import SILENT, persist
from trident_py.tuples import Fields, TridentTuple

pytestmark = pytest.mark.dear

NAMES = Fields("k", "v", "t")
FIELDS = ["k string", "v bigint", "t string"]
SERVERS = pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
REFUSED = 13  # by the table's CHECK
CASES: list[tuple[dict, bool]] = [
    ({}, False), ({"onConflict": "report"}, False), ({"onBadRow": "dead-letter"}, False), ({}, True),
    ({"onConflict": "report", "onBadRow": "dead-letter"}, True),
]  # fmt: skip


@pytest.fixture(autouse=True)
def samples_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few rows are judged by a sample, too."""
    monkeypatch.setattr(table_writer, "_ROWS_TO_SAMPLE", 1)
    monkeypatch.setattr(table_writer, "_SAMPLE", 4)


def run(url: str, text: str) -> None:
    with store_of(parse_url(url)).reading() as connection:
        connection.execute(text)


def table(url: str, check: str = "") -> None:
    text = exact_texts(url)
    run(url, f'CREATE TABLE "t" (k VARCHAR(20){text} NOT NULL PRIMARY KEY, v BIGINT{check}, t VARCHAR(20){text})')


def columns(rows: list[tuple]) -> TupleList:
    made = TupleList(NAMES)
    types = (pa.string(), pa.int64(), pa.string())
    arrays = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
    made.append(Chunk(dict(zip(NAMES, arrays, strict=True)), len(rows)))
    return made


def batches(seed: str) -> Iterator[list[tuple]]:
    """Batches of new rows, replays of all or half of a batch, keys twice in a batch, known keys with other values."""
    draw = random.Random(seed)
    batch: list[tuple] = []
    for number in range(14):
        keys = [f"{draw.randrange(10**6):06d}" for _ in range(draw.randrange(1, 30))]
        new = [(key, draw.choice((1, 2, None)), f"{number}") for key in keys]
        batch = draw.choice([new, new, batch or new, batch[::2] + new, new + new[:2]])
        if draw.random() < 0.3:
            batch = [*batch, (next(row[0] for row in batch if row[1] != REFUSED), 7, "other")]
        if draw.random() < 0.3:
            batch = [*batch, (f"refused {number}", REFUSED, None)]
        draw.shuffle(batch)
        yield batch


class Oracle:
    """What the table must hold: a dict, row by row."""

    def __init__(self, checks: bool) -> None:
        self.rows: dict[tuple, tuple] = {}
        self.checks = checks

    def write(self, batch: list[tuple]) -> tuple[dict[str, int], list[tuple]]:
        counts = {"inserted": 0, "ignored": 0, "conflicts": 0, "rejected": 0}
        new = []
        first: dict[str, list] = {}  # a second row is compared with the first one of its batch
        for key, *others in batch:
            if (key,) in self.rows:
                counts["ignored"] += 1
                counts["conflicts"] += tuple(first.get(key, self.rows[key,])) != tuple(others)
            elif self.checks and others[0] == REFUSED:
                counts["rejected"] += 1
            else:
                self.rows[key,] = tuple(others)
                counts["inserted"] += 1
                new.append((key, *others))
            first.setdefault(key, others)
        return counts, new


@pytest.mark.parametrize("checks", [False, True], ids=["plain", "with a CHECK"])
@pytest.mark.parametrize(("options", "tell"), CASES, ids=str)
def test_the_way_never_changes_the_result(database: str, options: dict, tell: bool, checks: bool) -> None:
    table(database, f" CHECK (v <> {REFUSED})" if checks else "")
    factory = InsertIgnoreState(database, "t", "k", FIELDS, **options)
    state, oracle = factory.makeState({}, None, 0, 1), Oracle(checks)
    for txid, batch in enumerate(batches(f"{options}{tell}"), 1):
        if checks and "onBadRow" not in options:
            batch = [row for row in batch if row[1] != REFUSED]
        out: list[tuple] = []
        collector = TridentCollector(out.append) if tell else SILENT
        receipt = persist(state, txid, RowUpdater(), columns(batch), collector)
        counts, new = oracle.write(batch)
        assert receipt == {"partition": 0} | {name: counts[name] for name in receipt if name != "partition"}
        assert out == (new if tell else [])
        assert factory.stored() == oracle.rows


@SERVERS
class TestJudgedBySamples(RowContract):
    def make(self, url: str) -> InsertIgnoreState:
        return InsertIgnoreState(url, "rows", "word", ["word string", "n bigint"])


@SERVERS
class TestJudgedBySamplesAndCompared(RowContract):
    def make(self, url: str) -> InsertIgnoreState:
        return InsertIgnoreState(url, "rows", "word", ["word string", "n bigint"], onConflict="report")


KEYS: dict[str, list[Any]] = {
    "string": ["", " ", "a", "A", "a ", "\u00e9", "\\", "%s ?"], "bigint": [0, -1, 2**63 - 1],
    "double": [0.1, -1e300, 5e-324], "boolean": [True, False], "binary": [b"", b"\x00\xff", b"a"],
    "date": [datetime.date(1, 1, 1), datetime.date(2026, 2, 28)],
    "timestamp": [datetime.datetime(2026, 1, 2, 3, 4, 5, 678901), datetime.datetime(1999, 12, 31)],
    "decimal(20,4)": [decimal.Decimal("0.0001"), decimal.Decimal("-12.5000")],
}  # fmt: skip


@pytest.mark.parametrize("kind", KEYS)
def test_a_known_key_of_any_kind_is_seen_in_a_sample(
    database: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_writer, "_SAMPLE", 100)
    shares: list[float] = []
    whole = TableWriter._sample_known
    monkeypatch.setattr(TableWriter, "_sample_known", lambda *given: shares.append(whole(*given)) or shares[-1])
    name = "k varchar(20)" if kind == "string" else f"k {kind}"
    factory = InsertIgnoreState(database, "t", "k", [name, "l bigint"])
    rows = [TridentTuple.of(["k", "l"], (key, 1)) for key in KEYS[kind]]
    for txid, ignored in ((1, 0), (2, len(rows))):
        receipt = persist(factory.makeState({}, None, 0, 1), txid, RowUpdater(), rows, SILENT)
        assert receipt == {"partition": 0, "inserted": len(rows) - ignored, "ignored": ignored}
    assert shares == [0.0, 1.0]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each load of whole rows into the table ``t`` was given."""
    numbers: list[int] = []
    ignoring, load = MySqlBulk._insert_ignoring, PostgreSqlBulk.load

    def loaded(self: Any, connection: Any, table: str, columns: Any, parts: Any, *more: Any) -> int:
        parts = list(parts)
        if table == "t":
            numbers.append(sum(len(part[0]) for part in parts))
        return load(self, connection, table, columns, parts, *more)

    def inserted(*given: Any) -> Any:
        numbers.append(len(given[-1]))
        return ignoring(*given)

    monkeypatch.setattr(PostgreSqlBulk, "load", loaded)
    monkeypatch.setattr(MySqlBulk, "_insert_ignoring", inserted)
    return numbers


@pytest.mark.parametrize(
    ("database", "check", "wanted"),
    [
        ("postgresql", "", [20, 10, 10]), ("postgresql", " CHECK (v < 100)", [20, 10, 10]),
        ("mariadb", "", [21, 10, 11]), ("mysql", " CHECK (v < 100)", [21, 10, 10]),
    ],
    indirect=["database"],
)  # fmt: skip
def test_rows_that_a_sample_knows_are_not_sent_again(
    database: str, sent: list[int], check: str, wanted: list[int]
) -> None:
    table(database, check)
    state = InsertIgnoreState(database, "t", "k", FIELDS).makeState({}, None, 0, 1)
    rows = [(f"{i:03d}", i, None) for i in range(40)]
    for txid, batch, inserted in ((1, rows[:20], 20), (2, rows[:20], 0), (3, rows[:30][::-1], 10), (4, rows[30:], 10)):
        receipt = persist(state, txid, RowUpdater(), columns([*batch, *batch[:1]]), SILENT)
        assert (receipt["inserted"], receipt["ignored"]) == (inserted, len(batch) + 1 - inserted)
    assert [number for number in sent if number] == wanted


@SERVERS
def test_rows_that_are_all_new_need_no_temporary_table(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stage, "fill", lambda stage: pytest.fail("staged"))
    table(database, " CHECK (v < 100)")
    state = InsertIgnoreState(database, "t", "k", FIELDS, onConflict="fail").makeState({}, None, 0, 1)
    out: list[tuple] = []
    for txid in (1, 2):
        rows = [(f"{txid}{i:03d}", i, None) for i in (3, 1, 2)]
        persist(state, txid, RowUpdater(), columns(rows), TridentCollector(out.append))
        assert out[-3:] == rows


@SERVERS
def test_a_key_that_arrives_while_known_rows_are_dropped_is_compared(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, arriving = Stage._there, ["b"]

    def late(stage: Stage, compare: bool) -> tuple[int, int]:
        found = whole(stage, compare)
        if arriving:
            run(database, f"INSERT INTO t (k, v, t) VALUES ('{arriving.pop()}', 0, 'other')")
        return found

    table(database)
    run(database, "INSERT INTO t (k, v, t) VALUES ('a', 1, NULL)")
    monkeypatch.setattr(Stage, "_there", late)
    state = InsertIgnoreState(database, "t", "k", FIELDS, onConflict="report").makeState({}, None, 0, 1)
    rows = columns([("a", 1, None), ("b", 2, None), ("c", 3, None)])
    receipt = persist(state, 1, RowUpdater(), rows, SILENT)
    assert receipt == {"partition": 0, "inserted": 1, "ignored": 2, "conflicts": 1}


def test_a_table_that_refuses_rows_is_not_tried_directly_the_next_time(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(database, f" CHECK (v <> {REFUSED})")
    tried: list[int] = []
    whole = TableWriter._directly
    monkeypatch.setattr(TableWriter, "_directly", lambda *given: tried.append(len(given[2])) or whole(*given))
    factory = InsertIgnoreState(database, "t", "k", FIELDS, onBadRow="dead-letter")
    for txid, bad in enumerate((1, 1, 0, 0), 1):  # a state is made anew where other workers serve it, too
        state = factory.makeState({}, None, 0, 1)
        rows = [(f"{txid}{i}", 1, None) for i in range(txid)] + [(f"bad {txid}", REFUSED, None)] * bad
        receipt = persist(state, txid, RowUpdater(), columns(rows), SILENT)
        assert (receipt["inserted"], receipt["rejected"]) == (txid, bad)
    assert tried == [2, 4]
