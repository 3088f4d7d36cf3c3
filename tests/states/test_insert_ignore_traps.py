"""What INSERT IGNORE and LOAD DATA swallow on MySQL: here each is stored, or an error that names it. On every path."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from typing import Any

import databases
import pyarrow as pa
import pytest
from contracts.asking import exact_texts

from states.sql import InsertIgnoreState, RowUpdater
from states.sql.dialects.mysql.bulk import MySqlBulk
from states.sql.rows.table_writer import TableWriter
from states.sql.store import close_stores, parse_url, store_of
from trident_py.errors import StateError
from trident_py.model.chunks import Chunk, TupleList
from trident_py.state import SILENT, persist
from trident_py.tuples import Fields, TridentTuple

pytestmark = pytest.mark.dear

FIELDS = Fields("k", "v", "d")
TABLE = "CREATE TABLE t (k VARCHAR(8) NOT NULL PRIMARY KEY, v TINYINT NOT NULL, d DATE{})"
DAY = datetime.date(2026, 2, 28)
PATHS = ["direct", "checked", "staged", "direct without files", "checked without files", "staged without files"]


class Database:
    """A database and the way that rows take into its table ``t``."""

    def __init__(self, url: str, path: str) -> None:
        self.url = url
        self.store = store_of(parse_url(url))
        self.way = path.split()[0]
        self.taken: set[str] = set()
        self.run(TABLE.format("" if path.startswith("direct") else ", CHECK (v <> 113)") + exact_texts(url))

    def run(self, text: str) -> list[tuple]:
        with self.store.reading() as connection:
            return list(connection.execute(text).fetchall())

    def write(self, *rows: tuple, txid: int = 1, columns: bool = False, **options: Any) -> dict:
        factory = InsertIgnoreState(self.url, "t", "k", **options)
        state = factory.makeState({}, None, 0, 1)
        return persist(state, txid, RowUpdater(), as_columns(rows) if columns else as_tuples(rows), SILENT)

    @property
    def rows(self) -> list[tuple]:
        return self.run("SELECT * FROM t ORDER BY k")


def as_tuples(rows: Any) -> list[TridentTuple]:
    return [TridentTuple.of(FIELDS, row) for row in rows]


def as_columns(rows: Any) -> TupleList:
    made = TupleList(FIELDS)
    types = (pa.string(), pa.int64(), pa.date32())
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
    made.append(Chunk(dict(zip(FIELDS, columns, strict=True)), len(rows)))
    return made


@pytest.fixture(params=databases.MYSQLS)
def server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@pytest.fixture(params=PATHS)
def there(request: pytest.FixtureRequest, server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    database = Database(server.create_database(), request.param)
    files = not request.param.endswith("without files")
    database.run(f"SET GLOBAL local_infile = {int(files)}")
    database.taken = watch(monkeypatch)
    if request.param.startswith("staged"):
        monkeypatch.setattr(TableWriter, "_directly", lambda *given: None)
    yield database
    database.run("SET GLOBAL local_infile = 1")
    close_stores()
    server.drop_database(database.store.url.database)


def watch(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the ways that were gone to the end."""
    taken: set[str] = set()
    for name in ("direct", "stage"):
        whole = getattr(MySqlBulk, name)

        def seen(self: Any, *given: Any, whole: Any = whole, name: str = name) -> Any:
            done = whole(self, *given)
            if name == "stage" or done is not None:
                taken.add(name)
            return done

        monkeypatch.setattr(MySqlBulk, name, seen)
    return taken


@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (("new", 999, DAY), "column 'v' (tinyint) cannot hold 999"),
        (("new", -129, DAY), "column 'v' (tinyint) cannot hold -129"),
        (("too long9", 1, DAY), "column 'k' (string(8)) cannot hold 'too long9'"),
        ((None, 1, DAY), "column 'k' (string(8)) cannot hold None"),
        (("new", None, DAY), "cannot be null"),
    ],
)
def test_a_value_that_would_be_bent_is_an_error_and_nothing_is_written(
    there: Database, bad: tuple, words: str, columns: bool
) -> None:
    there.write(("a", 1, DAY))
    with pytest.raises(StateError) as told:
        there.write(("zz", 5, DAY), ("a", 1, DAY), bad, ("b", 2, None), columns=columns)
    for each in ("table 't', row 2 of the batch", words, "Nothing of the batch is written"):
        assert each in str(told.value)
    assert there.rows == [("a", 1, DAY)]


def test_a_date_that_is_none_is_an_error(there: Database) -> None:
    with pytest.raises(StateError, match=r"'2026-02-31' .str.: it is not a date"):
        there.write(("a", 1, "2026-02-31"))
    assert there.rows == []


def test_keys_that_a_collation_folds_or_a_column_cuts_are_keys_of_their_own(there: Database) -> None:
    keys = ["ok", "OK", "ok ", "OK ", "12345678", "1234567", "ö", "o", "", " ", "ok\t", "\\N", "NULL", "é", "e\u0301"]
    receipt = there.write(*[(key, i, DAY) for i, key in enumerate(keys)], columns=True)
    assert receipt == {"partition": 0, "inserted": len(keys), "ignored": 0}
    assert {row[0]: row[1] for row in there.rows} == {key: i for i, key in enumerate(keys)}
    assert there.write(*[(key, 99, None) for key in keys])["ignored"] == len(keys)


def test_a_table_whose_key_folds_texts_is_refused_at_the_start(server: Any) -> None:
    url = server.create_database()
    with store_of(parse_url(url)).reading() as connection:
        connection.execute("CREATE TABLE t (k VARCHAR(8) PRIMARY KEY, v INT)")
    with pytest.raises(StateError, match="treats different keys as equal"):
        InsertIgnoreState(url, "t", "k", ["k string", "v int"]).makeState({}, None, 0, 1)
    close_stores()


def test_inserted_and_ignored_rows_are_counted_also_within_one_batch(there: Database) -> None:
    first = [("b", 1, DAY), ("a", 2, None), ("b", 3, DAY), ("a", 4, DAY)]
    assert there.write(*first, columns=True) == {"partition": 0, "inserted": 2, "ignored": 2}
    assert there.write(*first) == {"partition": 0, "inserted": 0, "ignored": 4}
    assert there.write(("c", 9, DAY), *first) == {"partition": 0, "inserted": 1, "ignored": 4}
    assert there.rows == [("a", 2, None), ("b", 1, DAY), ("c", 9, DAY)]
    assert there.taken == {"direct": {"direct"}, "staged": {"stage"}, "checked": {"direct", "stage"}}[there.way]


def test_what_the_table_itself_refuses_is_found_among_many_rows(there: Database) -> None:
    there.run("CREATE TABLE parent (v TINYINT PRIMARY KEY)")
    there.run("INSERT INTO parent VALUES (1), (2), (13)")
    there.run("ALTER TABLE t ADD FOREIGN KEY (v) REFERENCES parent (v), ADD CHECK (d > '2000-01-01')")
    good = [(f"g{i}", 1 + i % 2, DAY) for i in range(50)]
    for bad, words in (
        (("child", 3, DAY), "foreign key constraint fails"),
        (("old", 1, datetime.date(1999, 1, 1)), "(CONSTRAINT `.*` failed|Check constraint .* is violated)"),
    ):
        with pytest.raises(StateError, match=rf"row 50 of the batch \(k='{bad[0]}', v={bad[1]}, .*{words}"):
            there.write(*good, bad, ("last", 1, DAY))
        assert there.rows == []
    assert there.write(*good) == {"partition": 0, "inserted": 50, "ignored": 0}


def test_another_unique_index_is_no_key(there: Database) -> None:
    there.run("ALTER TABLE t ADD UNIQUE (d)")
    there.write(("a", 1, DAY))
    with pytest.raises(StateError, match=r"row 1 of the batch \(k='c', v=3.*Duplicate entry"):
        there.write(("b", 2, None), ("c", 3, DAY))
    assert there.rows == [("a", 1, DAY)]


def test_a_trigger_that_refuses_a_row_is_heard(there: Database) -> None:
    there.run(
        "CREATE TRIGGER no BEFORE INSERT ON t FOR EACH ROW "
        "IF NEW.v = 7 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not seven'; END IF"
    )
    with pytest.raises(StateError, match=r"row 1 of the batch \(k='b', v=7.*not seven"):
        there.write(("a", 1, DAY), ("b", 7, DAY))
    assert there.rows == []


def test_a_row_that_no_partition_takes_is_an_error(there: Database) -> None:
    there.run("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (k) PARTITION BY RANGE COLUMNS (k) "
              "(PARTITION p VALUES LESS THAN ('m'))")  # fmt: skip
    with pytest.raises(StateError, match=r"row 1 of the batch \(k='z'.*no partition"):
        there.write(("a", 1, DAY), ("z", 1, DAY))
    assert there.rows == []


def test_a_column_that_the_rows_do_not_fill_gets_its_default_or_is_an_error(there: Database) -> None:
    there.run("ALTER TABLE t ADD COLUMN note VARCHAR(20) NOT NULL DEFAULT 'none'")
    there.write(("a", 1, DAY), columns=True)
    assert there.rows == [("a", 1, DAY, "none")]
    there.run("ALTER TABLE t ADD COLUMN must INT NOT NULL")
    with pytest.raises(StateError, match="doesn't have a default value"):
        there.write(("b", 1, DAY), columns=True)
    assert [row[0] for row in there.rows] == ["a"]


def test_a_text_that_the_columns_charset_has_not_is_an_error(there: Database) -> None:
    there.run("ALTER TABLE t ADD COLUMN w VARCHAR(5) CHARACTER SET latin1")
    factory = InsertIgnoreState(there.url, "t", "k", ["k string", "v tinyint", "w string"])

    def write(text: str) -> dict:
        tuples = [TridentTuple.of(["k", "v", "w"], ("a", 1, "ü")), TridentTuple.of(["k", "v", "w"], ("b", 2, text))]
        return persist(factory.makeState({}, None, 0, 1), 1, RowUpdater(), tuples, SILENT)

    with pytest.raises(StateError, match=r"row 1 of the batch \(k='b'.*Incorrect string value"):
        write("🎉")
    assert there.rows == []
    assert write("é")["inserted"] == 2
    assert there.run("SELECT w, length(w) FROM t ORDER BY k") == [("ü", 1), ("é", 1)]


def test_numbers_that_the_table_makes_have_no_gaps(there: Database) -> None:
    """INSERT IGNORE takes a number for each row that it drops."""
    there.run("ALTER TABLE t ADD COLUMN n INT NOT NULL AUTO_INCREMENT UNIQUE")
    factory = InsertIgnoreState(there.url, "t", "k", ["k string", "v tinyint", "d date"])
    for txid, keys in ((1, "abc"), (1, "abc"), (2, "cde")):
        rows = as_tuples([(key, 1, DAY) for key in keys])
        persist(factory.makeState({}, None, 0, 1), txid, RowUpdater(), rows, SILENT)
    assert there.run("SELECT k, n FROM t ORDER BY k") == [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)]


def test_a_key_of_zero_is_zero_also_in_a_numbered_column(server: Any) -> None:
    url = server.create_database()
    with store_of(parse_url(url)).reading() as connection:
        connection.execute("CREATE TABLE z (k INT NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT)")
    factory = InsertIgnoreState(url, "z", "k", ["k int", "v int"])
    rows = [TridentTuple.of(["k", "v"], (k, k)) for k in (5, 0, -1)]
    persist(factory.makeState({}, None, 0, 1), 1, RowUpdater(), rows, SILENT)
    assert factory.stored() == {(-1,): (-1,), (0,): (0,), (5,): (5,)}
    close_stores()


def test_writers_in_opposite_key_order_meet_no_deadlock(there: Database) -> None:
    keys = [f"{i:05d}" for i in range(3000)]
    errors: list[BaseException] = []

    def work(mine: list[str], number: int) -> None:
        try:
            for txid in range(1, 5):
                there.write(*[(key, number, DAY) for key in mine[txid * 500 :]], txid=txid, columns=True)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(keys[::step], i)) for i, step in enumerate((1, -1, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert [row[0] for row in there.rows] == keys


def test_a_key_that_arrives_at_the_same_moment_is_a_duplicate(there: Database) -> None:
    """The other transaction holds the key, uncommitted, when ours looks for it."""
    other = there.store.take()
    other.execute("START TRANSACTION")
    other.execute("INSERT INTO t VALUES ('b', 1, NULL)")
    receipts: list[Any] = []
    rows = [("a", 2, DAY), ("b", 2, DAY), ("c", 2, DAY)]
    ours = threading.Thread(target=lambda: receipts.append(there.write(*rows)))
    ours.start()
    ours.join(1)
    assert ours.is_alive()
    other.execute("COMMIT")
    there.store.give(other)
    ours.join(30)
    assert receipts == [{"partition": 0, "inserted": 2, "ignored": 1}]
    assert there.rows == [("a", 2, DAY), ("b", 1, None), ("c", 2, DAY)]


def test_an_engine_without_transactions_is_refused(server: Any) -> None:
    url = server.create_database()
    database = Database(url, "direct")
    database.run("ALTER TABLE t ENGINE = MyISAM")
    with pytest.raises(StateError, match="the engine MyISAM, which has no transactions"):
        database.write(("a", 1, DAY))
    close_stores()


def test_a_server_that_asks_for_a_file_unasked_gets_none(server: Any, tmp_path: Any) -> None:
    """Any answer of a server may ask for a file of its choice: only a load of ours is answered."""
    secret = tmp_path / "secret"
    secret.write_text("hush\n")
    url = server.create_database()
    database = Database(url, "direct")
    with pytest.raises(RuntimeError), database.store.reading() as connection:
        connection.execute(f"LOAD DATA LOCAL INFILE '{secret}' INTO TABLE t (k)")
    assert database.rows == []
    close_stores()


def test_a_user_who_may_not_see_triggers_still_hears_them(server: Any) -> None:
    """Without the privilege TRIGGER nobody can tell that a table has none: the rows take the safe way."""
    url = server.create_database()
    name = parse_url(url).database
    owner = Database(url, "direct")
    owner.run("CREATE TRIGGER folds BEFORE INSERT ON t FOR EACH ROW SET NEW.k = lower(NEW.k)")
    owner.run("CREATE USER clerk@'%' IDENTIFIED BY 'pw'")
    owner.run(f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, CREATE TEMPORARY TABLES ON `{name}`.* TO clerk@'%'")
    clerk = parse_url(url).set(username="clerk", password="pw").render_as_string(hide_password=False)
    rows = as_tuples([("a", 1, DAY), ("A", 7, DAY)])
    with pytest.raises(StateError, match=r"of the batch.*Duplicate entry 'a'"):
        persist(InsertIgnoreState(clerk, "t", "k").makeState({}, None, 0, 1), 1, RowUpdater(), rows, SILENT)
    assert owner.rows == []
    assert persist(InsertIgnoreState(clerk, "t", "k").makeState({}, None, 0, 1), 1, RowUpdater(), rows[:1], SILENT)
    assert owner.rows == [("a", 1, DAY)]
    owner.run("DROP USER clerk@'%'")
    close_stores()


def test_a_temporary_table_commits_nothing(there: Database) -> None:
    factory = InsertIgnoreState(there.url, "t", "k", onConflict="report")
    state = factory.makeState({}, None, 0, 1)
    for part in (1, 2):
        state.beginCommit(part)
        state.insert(as_tuples([("a", 1, DAY), ("b", 1, DAY)]), tell=True)
        state.insert(as_tuples([("c", 1, DAY)]), tell=False)
        state.rollback(part)
        assert there.rows == []


def test_a_text_of_another_charset_is_the_same_in_a_replay(server: Any) -> None:
    database = Database(server.create_database(), "direct")
    database.run("ALTER TABLE t DROP v, DROP d, ADD COLUMN w VARCHAR(5) CHARACTER SET latin1")
    factory = InsertIgnoreState(database.url, "t", "k", onConflict="report")
    for texts, conflicts in (("\u00fce", 0), ("\u00fce", 0), ("u\u20ac", 2), ("\U0001f389e", 1)):
        rows = [TridentTuple.of(["k", "w"], row) for row in zip("ab", texts, strict=True)]
        receipt = persist(factory.makeState({}, None, 0, 1), 1, RowUpdater(), rows, SILENT)
        assert receipt["conflicts"] == conflicts
    close_stores()


@pytest.fixture
def small_packets(server: Any) -> Iterator[Database]:
    """A database whose server takes 1 MiB at once."""
    database = Database(server.create_database(), "direct")
    usual = database.run("SELECT @@max_allowed_packet")[0][0]
    database.run("SET GLOBAL max_allowed_packet = 1048576")
    close_stores()  # connections keep what was set when they were made
    yield database
    close_stores()
    with store_of(parse_url(database.url)).reading() as connection:
        connection.execute(f"SET GLOBAL max_allowed_packet = {usual}")
    close_stores()


def test_texts_longer_than_a_packet_are_compared(small_packets: Database) -> None:
    with store_of(parse_url(small_packets.url)).reading() as connection:
        connection.execute("ALTER TABLE t DROP v, DROP d, ADD COLUMN w LONGTEXT CHARACTER SET utf8mb4")
    factory = InsertIgnoreState(small_packets.url, "t", "k", onConflict="report")
    for sign, conflicts in (("x", 0), ("x", 0), ("y", 1)):
        rows = [TridentTuple.of(["k", "w"], ("a", sign * 3_000_000))]
        receipt = persist(factory.makeState({}, None, 0, 1), 1, RowUpdater(), rows, SILENT)
        assert receipt["conflicts"] == conflicts
