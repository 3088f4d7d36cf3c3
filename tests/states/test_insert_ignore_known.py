"""A batch whose keys MariaDB has is compared from a table of Aria, with the same results as from the usual one."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import logging
import random
from collections.abc import Iterator
from typing import Any

import pytest
from pymysql.err import OperationalError

from states.sql import InsertIgnoreState, RowUpdater
from states.sql.connection import FormatConnection
from states.sql.dialects.base import STAGE
from states.sql.dialects.mysql import bulk
from states.sql.dialects.mysql.bulk import MySqlBulk
from states.sql.rows import table_writer
from states.sql.rows.table_writer import Stage
from states.sql.store import close_stores, parse_url, store_of
from testbed.sql_servers import MariaDb
from trident_py.errors import StateError
from trident_py.operations.base import TridentCollector
from trident_py.state import SILENT, persist
from trident_py.tuples import Fields, TridentTuple

NOPAD = "CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
VALUES: dict[str, tuple[str, list[Any]]] = {
    "i": ("INT NOT NULL CHECK (i <> 13)", [0, -1, 2**31 - 1, 7]),
    "b": ("BIGINT", [2**63 - 1, -(2**63), 0, None]),
    "x": ("DOUBLE DEFAULT 3.5", [0.1, -0.0, 0.0, 5e-324, 1.7976931348623157e308, None]),
    "y": ("BOOLEAN", [True, False, None]),
    "d": ("DECIMAL(20,4)", [decimal.Decimal("0.0001"), decimal.Decimal("-12.5000"), None]),
    "s": (f"VARCHAR(9) {NOPAD} NOT NULL DEFAULT ''", ["", " ", "a", "A", "a ", "\\N", "\t\n", "\U0001f389"]),
    "f": ("VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", ["one", "ONE", "one ", "\u00f6ne", None]),
    "l": ("VARCHAR(9) CHARACTER SET latin1", ["\u00e9", "e", "\u00e9 ", None]),
    "c": ("LONGTEXT", ["x" * 70_000, "x" * 70_001, "", None]),
    "n": ("BLOB", [b"", b"\x00\xff", b"a", b"a ", None]),
    "a": ("DATE", [datetime.date(1000, 1, 1), datetime.date(2026, 2, 28), None]),
    "t": ("DATETIME(6)", [datetime.datetime(2026, 1, 2, 3, 4, 5, 678901), datetime.datetime(1999, 12, 31), None]),
}
NAMES = Fields("k", *VALUES)
TABLE = (
    f"CREATE TABLE t (k VARCHAR(20) {NOPAD} NOT NULL, "
    + ", ".join(f"{name} {kind}" for name, (kind, _) in VALUES.items())
    + ", g BIGINT AS (i + 1) STORED, h INT NOT NULL DEFAULT 9, PRIMARY KEY (k)) DEFAULT CHARSET utf8mb4"
)


@pytest.fixture(autouse=True)
def samples_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_writer, "_ROWS_TO_SAMPLE", 1)
    monkeypatch.setattr(table_writer, "_SAMPLE", 4)


@pytest.fixture
def url(mariadb: Any) -> Iterator[str]:
    name = mariadb.create_database()
    yield name
    close_stores()
    mariadb.drop_database(parse_url(name).database)


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each batch that was tried in a table of Aria was finished there."""
    found: list[bool] = []
    whole = Stage.all_known

    def seen(stage: Stage, compare: bool) -> Any:
        written = whole(stage, compare)
        found.append(written is not None)
        return written

    monkeypatch.setattr(Stage, "all_known", seen)
    return found


def run(url: str, text: str) -> list[tuple]:
    with store_of(parse_url(url)).reading() as connection:
        return list(connection.execute(text).fetchall())


def drawn(draw: random.Random, key: int) -> tuple:
    return (f"{key:04d}", *(draw.choice(values) for _, values in VALUES.values()))


def batches(draw: random.Random) -> Iterator[list[tuple]]:
    """Batches, their replays, and replays with other values, with keys twice, new keys and a row that is refused."""
    for number in range(6):
        batch = [drawn(draw, key) for key in range(100 * number, 100 * number + draw.randrange(1, 20))]
        yield batch
        yield draw.sample(batch, len(batch))
        yield [*batch, *batch[:2]]
        yield [row if draw.random() < 0.6 else drawn(draw, int(row[0])) for row in batch]
        other, at = drawn(draw, 0), draw.randrange(1, len(NAMES))
        yield [(*row[:at], other[at], *row[at + 1 :]) for row in batch]
        yield [*batch, drawn(draw, 100 * number + 50)]
        refused = (batch[0][0], 13, *batch[0][2:])
        yield [*batch, refused, (batch[-1][0], None, *batch[-1][2:]), (*batch[0][:6], None, *batch[0][7:])]


class Writer:
    """Writes batches into the table ``t`` and keeps all that a user is told."""

    def __init__(self, url: str, caplog: pytest.LogCaptureFixture, table: str = TABLE, **options: Any) -> None:
        run(url, table)
        self.url = url
        self.log = caplog
        self.factory = InsertIgnoreState(url, "t", "k", NAMES if table == TABLE else None, **options)
        self.state = self.factory.makeState({}, None, 0, 1)
        self.txid = 0

    def write(self, rows: list[tuple], tell: bool = False) -> Any:
        self.txid += 1
        self.log.clear()
        new: list[tuple] = []
        names = NAMES if len(rows[0]) == len(NAMES) else Fields("k", "v")
        tuples = [TridentTuple.of(names, row) for row in rows]
        collector = TridentCollector(new.append) if tell else SILENT
        try:
            receipt = persist(self.state, self.txid, RowUpdater(), tuples, collector)
        except StateError as error:
            receipt = str(error)
        return receipt, new, [record.getMessage() for record in self.log.records]


@pytest.fixture(params=[1, 0], ids=["files", "no files"])
def two(mariadb: Any, request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """Two databases of a server that takes local files, or does not."""
    urls = mariadb.create_database(), mariadb.create_database()
    run(urls[0], f"SET GLOBAL local_infile = {request.param}")
    close_stores()  # connections keep what was set when they were made
    yield urls
    run(urls[0], "SET GLOBAL local_infile = 1")
    close_stores()
    for url in urls:
        mariadb.drop_database(parse_url(url).database)


@pytest.mark.parametrize(
    "options",
    [{"onConflict": "fail"}, {"onConflict": "report"}, {"onConflict": "report", "onBadRow": "dead-letter"}],
    ids=str,
)
def test_what_is_told_and_stored_is_the_same_as_without_aria(
    two: tuple[str, str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, outcomes: list[bool],
    options: dict,
) -> None:  # fmt: skip
    caplog.set_level(logging.WARNING, "states.sql")
    fast, usual = (Writer(url, caplog, **options) for url in two)
    told = []
    for number, batch in enumerate(batches(random.Random(f"{options}"))):
        with monkeypatch.context() as without:
            without.setattr(bulk, "has_aria", lambda connection: False)
            tried = len(outcomes)
            expected = usual.write(batch, tell=number % 2 == 1)
            del outcomes[tried:]
        assert fast.write(batch, tell=number % 2 == 1) == expected
        told.append(expected)
    assert fast.factory.stored() == usual.factory.stored()
    assert outcomes.count(True) >= 12
    assert any("is taken by a row with other values" in str(one) for one in told)


@pytest.fixture(scope="module")
def unused() -> Iterator[MariaDb]:
    with MariaDb() as server:
        yield server
    close_stores()


def test_long_texts_are_stored_as_they_were_sent(unused: MariaDb) -> None:
    """INSERT ... SELECT leaves a pointer in the TEXT field of an open table, and LOAD DATA took its own buffer for it.

    It depends on where the server's memory was used before, so the server is a new one, and there are many batches.
    """
    for _ in range(3):
        written: list[tuple[InsertIgnoreState, Any, dict[tuple, tuple]]] = []
        for _ in range(2):
            url = unused.create_database()
            run(url, TABLE)
            factory = InsertIgnoreState(url, "t", "k", NAMES, onConflict="fail")
            written.append((factory, factory.makeState({}, None, 0, 1), {}))
        for txid, batch in enumerate(batches(random.Random("{'onConflict': 'fail'}")), start=1):
            for _, state, expected in written:
                with contextlib.suppress(StateError):
                    persist(state, txid, RowUpdater(), [TridentTuple.of(NAMES, row) for row in batch], SILENT)
                    for key, *values in batch:
                        expected.setdefault((key,), tuple(values))
        for factory, _, expected in written:  # no batch changes what one before it has stored
            stored = factory.stored()
            assert stored.keys() == expected.keys()
            assert [key for key, values in expected.items() if stored[key] != values] == []


SMALL = f"CREATE TABLE t (k VARCHAR(20) {NOPAD} NOT NULL PRIMARY KEY, v BIGINT)"
ROWS = [(f"{i:03d}", i) for i in range(20)]


def test_a_conflict_among_known_rows_is_named_with_both_rows(
    url: str, caplog: pytest.LogCaptureFixture, outcomes: list[bool]
) -> None:
    writer = Writer(url, caplog, SMALL, onConflict="fail")
    writer.write(ROWS)
    told, *_ = writer.write([(key, -5 if key in ("007", "011") else value) for key, value in ROWS[::-1]])
    assert "row 12 of the batch: the key (k='007') is taken by a row with other values: stored v=7, new v=-5" in told
    assert "Nothing of the batch is written (2 such rows)" in told
    assert outcomes == [True]


def test_a_text_that_differs_only_for_its_bytes_is_a_conflict(
    url: str, caplog: pytest.LogCaptureFixture, outcomes: list[bool]
) -> None:
    folds = SMALL.replace("v BIGINT", "v VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    writer = Writer(url, caplog, folds, onConflict="report")
    for texts, conflicts in ((["one", "two"], 0), (["one", "two"], 0), (["ONE", "two "], 2)):
        assert writer.write(list(zip("ab", texts, strict=True)))[0]["conflicts"] == conflicts
    assert outcomes == [True, True]


def test_a_value_that_the_column_cannot_hold_is_not_the_one_that_it_would_become(
    url: str, caplog: pytest.LogCaptureFixture, outcomes: list[bool]
) -> None:
    """LOAD DATA makes 0 of NULL in a NOT NULL column, and a question mark of a sign that latin1 lacks."""
    kinds = (("INT NOT NULL", 0, None), ("TEXT NOT NULL", "", None))
    signs = ((f"{kind} CHARACTER SET latin1", "?", "\U0001f389") for kind in ("VARCHAR(9)", "TEXT"))
    for column, stored, new in (*kinds, *signs):
        writer = Writer(url, caplog, SMALL.replace("BIGINT", column), onConflict="report")
        for value, conflicts in ((stored, 0), (stored, 0), (new, 1)):
            assert writer.write([("a", value)])[0]["conflicts"] == conflicts
        run(url, "DROP TABLE t")
    assert outcomes == [True, False] * 4


def failing(monkeypatch: pytest.MonkeyPatch, code: int) -> list[str]:
    """The first load into a temporary table fails half-way; returns the tables that were loaded after that."""
    whole, loaded = MySqlBulk.load, []

    def load(self: Any, connection: Any, table: str, columns: Any, data: Any, ignore: bool = False) -> Any:
        loaded.append(table)
        done = whole(self, connection, table, columns, data, ignore)
        if len(loaded) == 1:
            raise OperationalError(code, "injected")
        return done

    monkeypatch.setattr(MySqlBulk, "load", load)
    return loaded


@pytest.mark.parametrize("code", [3, 1021, 1114])
def test_a_full_disk_leaves_the_rows_to_the_usual_table(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, outcomes: list[bool], code: int
) -> None:
    writer = Writer(url, caplog, SMALL, onConflict="report")
    writer.write(ROWS)
    loaded = failing(monkeypatch, code)
    (receipt, *_) = writer.write([*ROWS[1:], ("000", 5)])
    assert receipt == {"partition": 0, "inserted": 0, "ignored": 20, "conflicts": 1}
    assert (outcomes, loaded) == ([False], [STAGE, STAGE])
    assert writer.write(ROWS)[0]["conflicts"] == 0
    assert outcomes == [False, True]


def test_a_row_without_room_for_its_number_is_compared(url: str, caplog: pytest.LogCaptureFixture) -> None:
    longest = SMALL.replace("v BIGINT", "v VARCHAR(65450) CHARACTER SET latin1")
    writer = Writer(url, caplog, longest, onConflict="report")
    rows = [(key, "x") for key, _ in ROWS]
    assert [writer.write(rows)[0]["ignored"], writer.write(rows)[0]["ignored"]] == [0, 20]


def test_a_disk_that_is_full_when_the_table_is_read_leaves_the_rows_to_the_usual_table(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, outcomes: list[bool]
) -> None:
    """Aria keeps pages in memory, and writes them when a SELECT needs the place."""
    writer = Writer(url, caplog, SMALL, onConflict="report")
    writer.write(ROWS)
    whole, errors = Stage._there, [OperationalError(1021, "injected")]

    def there(stage: Stage, compare: bool) -> tuple[int, int]:
        if errors:
            raise errors.pop()
        return whole(stage, compare)

    monkeypatch.setattr(Stage, "_there", there)
    (receipt, *_) = writer.write([*ROWS[1:], ("000", 5)])
    assert receipt == {"partition": 0, "inserted": 0, "ignored": 20, "conflicts": 1}
    assert outcomes == [False]


def test_another_error_while_the_table_is_filled_is_an_error(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(url, caplog, SMALL, onConflict="report")
    writer.write(ROWS)
    failing(monkeypatch, 1030)
    assert "injected" in writer.write(ROWS)[0]
    assert writer.write(ROWS)[0] == {"partition": 0, "inserted": 0, "ignored": 20, "conflicts": 0}


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    whole = FormatConnection.execute
    monkeypatch.setattr(
        FormatConnection, "execute", lambda self, text, *more: texts.append(text) or whole(self, text, *more)
    )
    return texts


def test_a_server_without_aria_gets_the_usual_table(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, outcomes: list[bool],
    statements: list[str],
) -> None:  # fmt: skip
    whole = FormatConnection.execute
    monkeypatch.setattr(  # the list of a server that has no such engine, as MySQL's
        FormatConnection, "execute", lambda self, text, *more: whole(self, text.replace("'Aria'", "'none'"), *more)
    )
    writer = Writer(url, caplog, SMALL, onConflict="report")
    for conflicts, rows in ((0, ROWS), (0, ROWS), (1, [*ROWS[1:], ("000", None)])):
        assert writer.write(rows)[0]["conflicts"] == conflicts
    assert outcomes == [False, False]
    assert not any("ENGINE=Aria" in text for text in statements)
    assert sum("information_schema.engines" in text for text in statements) == 1


def test_a_server_that_forbids_other_engines_gets_the_usual_table(
    caplog: pytest.LogCaptureFixture, outcomes: list[bool]
) -> None:
    with MariaDb(enforce_storage_engine="InnoDB") as server:
        writer = Writer(server.url, caplog, SMALL, onConflict="report")
        assert [writer.write(ROWS)[0]["ignored"] for _ in range(2)] == [0, 20]
        assert outcomes == [False]
        close_stores()


def left(writer: Writer) -> bool:
    """Whether the connection of the last batch still has the temporary table."""
    with store_of(parse_url(writer.url)).reading() as connection:
        try:
            connection.execute(f"SELECT 1 FROM {STAGE}")
        except Exception as error:
            assert "doesn't exist" in str(error)
            return False
    return True


def test_nothing_is_left_for_the_next_batch(url: str, caplog: pytest.LogCaptureFixture, outcomes: list[bool]) -> None:
    writer = Writer(url, caplog, SMALL, onConflict="fail")
    writer.write(ROWS)
    for rows in (ROWS, [(key, None) for key, _ in ROWS], ROWS[:10], [*ROWS, *((f"{i}", i) for i in range(900, 910))]):
        writer.write(rows)
        assert not left(writer)
    run(url, "ALTER TABLE t MODIFY v DOUBLE")
    other = InsertIgnoreState(url, "t", "k", ["k string", "v double"], onConflict="fail").makeState({}, None, 0, 1)
    tuples = [TridentTuple.of(["k", "v"], (key, float(value))) for key, value in ROWS]
    assert persist(other, 9, RowUpdater(), tuples, SILENT)["ignored"] == 20
    assert outcomes.count(True) >= 4


def test_a_batch_that_is_rolled_back_leaves_nothing(
    url: str, caplog: pytest.LogCaptureFixture, outcomes: list[bool]
) -> None:
    state = Writer(url, caplog, SMALL, onConflict="fail").state
    for rows, keep in ((ROWS, True), ([("new", 1)], False)):
        state.beginCommit(1)
        state.insert([TridentTuple.of(["k", "v"], row) for row in rows], tell=False)
        state.insert([TridentTuple.of(["k", "v"], row) for row in ROWS], tell=False)
        (state.commit if keep else state.rollback)(1)
    assert outcomes == [True, True]
    assert run(url, "SELECT count(*) FROM t") == [(20,)]


def test_a_sample_that_is_wrong_costs_one_batch(
    url: str, caplog: pytest.LogCaptureFixture, outcomes: list[bool]
) -> None:
    writer = Writer(url, caplog, SMALL, onConflict="report")
    writer.write(ROWS)

    def wrong(key: str) -> list[tuple]:
        return [ROWS[0], (key, 1), *ROWS[1:]]  # every fifth row is asked for, and is known

    for rows, inserted, tried in (
        (wrong("a"), 1, [False]), (wrong("b"), 1, [False]), (wrong("b"), 0, [False]), (wrong("b"), 0, [False, True]),
    ):  # fmt: skip
        assert writer.write(rows)[0]["inserted"] == inserted
        assert outcomes == tried


@pytest.mark.parametrize("how", ["MIXED", "ROW"])
def test_a_server_with_a_binary_log_takes_it(
    caplog: pytest.LogCaptureFixture, outcomes: list[bool], how: str
) -> None:
    with MariaDb(log_bin="log", server_id=1, binlog_format=how) as server:
        table = f"{SMALL[:-1]} CHECK (v <> 13))"
        writer = Writer(server.url, caplog, table, onConflict="report", onBadRow="dead-letter")
        rows = [row for row in ROWS if row[1] != 13]
        writer.write(rows)
        wrong = [*rows[:8], ("007a", 13), *rows[8:], ("900", 900)]  # a savepoint is rolled back behind Aria's table
        assert [writer.write(rows)[0]["inserted"], writer.write(wrong)[0]] == [
            0, {"partition": 0, "inserted": 1, "ignored": 19, "conflicts": 0, "rejected": 1}
        ]  # fmt: skip
        assert outcomes[0] is True
        assert run(server.url, "SELECT count(*) FROM t") == [(20,)]
        close_stores()
