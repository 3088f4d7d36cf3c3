"""Fewer rows taken than sent: an error on every way that rows go. The contract has it for every state."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import databases
import pytest
from contracts.asking import MYSQLS, POSTGRES, run
from contracts.taking import POSTGRES_FUNCTION, leaving_out

from states.sql import AppendState, InsertIgnoreState, RowUpdater, SequenceState, SqlMapState
from states.sql.dialects.base import Untaken
from states.sql.store import close_stores, parse_url, store_of
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import TopologyError
from trident_py.operations.base import ReducerAggregator, TridentCollector
from trident_py.operations.builtin import Sum
from trident_py.state import SILENT, MapCombinerAggStateUpdater, MapReducerAggStateUpdater, persist
from trident_py.testing import FixedBatchSpout
from trident_py.tuples import TridentTuple

FIELDS = Fields("k", "v")
DECLARED = ["k varchar(20)", "v bigint"]
WITHOUT = "mariadb without files"


@pytest.fixture(params=[*databases.kinds(), WITHOUT])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Each kind of database, and MariaDB where it takes no LOAD DATA."""
    if request.param == "sqlite":
        yield databases.sqlite(tmp_path)
    else:
        with databases.fresh(request.getfixturevalue(request.param.split()[0])) as url:
            if request.param == WITHOUT:
                run(url, "SET GLOBAL local_infile = 0")
            yield url
            if request.param == WITHOUT:
                run(url, "SET GLOBAL local_infile = 1")
    close_stores()


def numbered(count: int, start: int = 0) -> list[tuple]:
    """Rows with different keys, of which one in ten ends with 0."""
    return [(f"k{n}", n) for n in range(start, start + count)]


def write(
    factory: Any, rows: Sequence[tuple], updater: Any = None, txid: int = 1, fields: Any = FIELDS, into: Any = SILENT
) -> Any:  # fmt: skip
    tuples = [TridentTuple.of(fields, row) for row in rows]
    return persist(factory.makeState({}, None, 0, 1), txid, updater or RowUpdater(), tuples, into)


def is_told(factory: Any, rows: Sequence[tuple], *given: Any, table: str = "t", like: str = "%0", **more: Any) -> None:
    """The rows are refused while the store leaves some out, and nothing of them is there; then they are written."""
    factory.makeState({}, None, 0, 1)
    before = factory.stored()
    with leaving_out(store_of(parse_url(factory.url)), table, "k", like), pytest.raises(Untaken) as told:
        write(factory, rows, *given, **more)
    assert f"table '{table}' took " in str(told.value) and "Nothing of the batch is written" in str(told.value)
    assert factory.stored() == before
    write(factory, rows, *given, **more)


@pytest.mark.parametrize("onBadRow", ["fail", "dead-letter"])
@pytest.mark.parametrize("count", [11, 1_500])
def test_appended_rows(database: str, count: int, onBadRow: str) -> None:
    factory = AppendState(database, "t", DECLARED, onBadRow)
    is_told(factory, numbered(count))
    assert sum(factory.stored().values()) == count


@pytest.mark.parametrize("tell", [False, True])
@pytest.mark.parametrize("onBadRow", ["fail", "dead-letter"])
@pytest.mark.parametrize("onConflict", ["ignore", "fail", "report"])
@pytest.mark.parametrize("known", [0, 5])
@pytest.mark.parametrize("count", [11, 1_500])
def test_inserted_rows_of_which_some_are_there(
    database: str, count: int, known: int, onConflict: str, onBadRow: str, tell: bool
) -> None:  # fmt: skip
    factory = InsertIgnoreState(database, "t", "k", DECLARED, onConflict, onBadRow)
    write(factory, numbered(known, 1))
    rows = [*numbered(count), *numbered(3, 5)]
    new: list[Any] = []
    is_told(factory, rows, txid=2, into=TridentCollector(new.append) if tell else SILENT)
    assert len(factory.stored()) == count and len(new) == (count - known if tell else 0)


@pytest.mark.parametrize("onConflict", ["ignore", "fail", "report"])
@pytest.mark.parametrize("count", [11, 1_500])
def test_rows_that_are_there_are_no_rows_left_out(database: str, count: int, onConflict: str) -> None:
    """With a trigger that leaves nothing out; of several rows with one key the first counts."""
    factory = InsertIgnoreState(database, "t", "k", DECLARED, onConflict)
    write(factory, numbered(count))
    for rows, inserted in ((numbered(count), 0), ([*numbered(count), *numbered(3, count), *numbered(3, count)], 3)):
        kind = store_of(parse_url(database)).dialect.name
        if kind == "mysql":
            receipt = write(factory, rows, txid=2)
        else:
            with leaving_out(store_of(parse_url(database)), "t", "k", "never"):
                receipt = write(factory, rows, txid=2)
        assert (receipt["inserted"], receipt["ignored"]) == (inserted, len(rows) - inserted)


class Total(ReducerAggregator):
    """An aggregator that the database cannot combine."""

    def init(self) -> int:
        return 0

    def reduce(self, current: int, tuple: Any) -> int:
        return current + tuple[0]


KINDS: list[Callable[..., SqlMapState]] = [SqlMapState.nonTransactional, SqlMapState.transactional, SqlMapState.opaque]
UPDATERS = [MapCombinerAggStateUpdater(Sum(), "k", "v"), MapReducerAggStateUpdater(Total(), "k", "v")]


@pytest.mark.parametrize("way", ["few", "many", "staged"])
@pytest.mark.parametrize("updater", UPDATERS, ids=["combined", "read"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_values_of_a_map(
    database: str, kind: Callable[..., SqlMapState], updater: Any, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the keys are there; then all, and not all of their values change."""
    count = 11 if way == "few" else 300
    for module in ("mysql.maps", "postgresql.dialect") if way == "staged" else ():
        for name in ("_ROWS_TO_STAGE", "_ROWS_TO_WRITE_STAGED"):
            monkeypatch.setattr(f"states.sql.dialects.{module}.{name}", 1)
    factory = kind(database, "t", "k varchar(20)", "v bigint")
    write(factory, numbered(count // 2), updater)
    is_told(factory, numbered(count), updater, txid=2)
    assert len(factory.stored()) == count
    write(factory, [(key, 0) for key, _ in numbered(count)], updater, txid=3)


@pytest.mark.parametrize(
    ("onGap", "table", "batches"),
    [
        ("hold", "t", [[("a0", 1)]]),
        ("hold", "t", [[("a0", 2), ("a0", 3)], [("a0", 1)]]),
        ("hold", "t_held", [[("a0", 2)]]),
        ("hold", "t_senders", [[("a0", 1)], [("a0", 2)]]),
        ("report", "t", [[("a0", 1)]]),
        ("report", "t_gaps", [[("a0", 2)]]),
        ("report", "t_senders", [[("a0", 1)], [("a0", 2)]]),
    ],
)
def test_rows_of_each_table_of_a_sequence(database: str, onGap: str, table: str, batches: list[list[tuple]]) -> None:
    factory = SequenceState(database, "t", "k", "n", ["k varchar(20)", "n bigint"], onGap)
    for txid, batch in enumerate(batches[:-1], 1):
        write(factory, batch, txid=txid, fields=["k", "n"])
    is_told(factory, batches[-1], table=table, txid=len(batches), fields=["k", "n"])


@POSTGRES
@pytest.mark.parametrize(
    ("onGap", "table", "batches"),
    [("hold", "t_held", [[("a0", 2)], [("a0", 1)]]), ("report", "t_gaps", [[("a0", 2)], [("a0", 1)]])],
)
def test_rows_that_a_trigger_keeps_from_being_deleted(
    database: str, onGap: str, table: str, batches: list[list[tuple]]
) -> None:  # fmt: skip
    factory = SequenceState(database, "t", "k", "n", ["k varchar(20)", "n bigint"], onGap)
    write(factory, batches[0], fields=["k", "n"])
    before = factory.stored()
    run(database, POSTGRES_FUNCTION, f'CREATE TRIGGER stay BEFORE DELETE ON {table} FOR EACH ROW'
        " EXECUTE FUNCTION leave_out('k', 'nobody')")  # fmt: skip
    with pytest.raises(Untaken, match=f"'{table}' took 0 of 1 rows"):
        write(factory, batches[1], txid=2, fields=["k", "n"])
    assert factory.stored() == before


@pytest.mark.parametrize("make", [
    lambda url: AppendState(url, "t", DECLARED, "dead-letter"),
    lambda url: InsertIgnoreState(url, "t", "k", DECLARED, onBadRow="dead-letter"),
])  # fmt: skip
def test_rejected_rows(database: str, make: Callable[[str], Any]) -> None:
    factory = make(database)
    factory.makeState({}, None, 0, 1).prepare(Fields(DECLARED))
    table, column = "t_rejected", "state"
    with leaving_out(store_of(parse_url(database)), table, column, "t"), pytest.raises(Untaken, match=table):
        write(factory, [("far too long for this column", 1)])
    assert run(database, "SELECT count(*) FROM t_rejected") == [(0,)]


@POSTGRES
def test_a_run_ends_at_once_instead_of_replaying_for_ever(database: str) -> None:
    factory = InsertIgnoreState(database, "t", "k", DECLARED, onConflict="fail")
    factory.makeState({}, None, 0, 1)
    topology = TridentTopology()
    spout = FixedBatchSpout(Fields("k string", "v bigint"), 10, *numbered(10))
    topology.newStream("s", spout).partitionPersist(factory, FIELDS, RowUpdater(), stateName="mine")
    with leaving_out(store_of(parse_url(database)), "t", "k"), LocalCluster() as cluster:
        running = cluster.submitTopology("kept", {}, topology.build())
        with pytest.raises(TopologyError, match="state 'mine' of topology 'kept', batch 1: table 't' took 9 of"):
            running.awaitTermination(30)
        assert running.attempts == {1: 0}
    assert factory.stored() == {}


@MYSQLS
def test_a_load_of_which_fewer_rows_come_out_than_were_sent_names_the_table(database: str) -> None:
    store = store_of(parse_url(database))
    factory = AppendState(database, "t", DECLARED)
    write(factory, numbered(1))
    with leaving_out(store, "t", "k"), pytest.raises(Untaken, match="table 't' took 0 of 11 rows"):
        write(factory, numbered(11), txid=2)


# -- the kind: no count of a write is thrown away

SQL = Path(__file__).parents[2] / "states" / "sql"
WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")
SENDING = ("executemany", "query", "load")
APART = {"ledger.py", "owner.py", "key_types.py", "partition_marks.py", "table.py"}
"""The bookkeeping of all states: what a row there says is compared whenever it is read."""
UNCOUNTED = {
    "rows/batch.py sweep": "rows that nobody shows any more; what stays is swept with the next batch",
    "rows/sequence/tables.py _make": "a row may be there already; each is read back right behind it",
    "dialects/postgresql/bulk.py fill": "PostgreSQL's `load` compares",
    "dialects/postgresql/bulk.py _select_missing": "PostgreSQL's `load` compares",
    "dialects/postgresql/dialect.py _stage_rows": "PostgreSQL's `load` compares",
    "undo.py undo": "any number of rows may be of the batches that are undone",
    "connection.py executemany": "the cursor's: it has the count",
}


def thrown_away() -> Iterator[str]:
    """The functions that send a write and look at no count."""
    for path in sorted(SQL.rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and path.name not in APART:
                name = f"{path.relative_to(SQL)} {function.name}"
                yield from (name for each in ast.walk(function) if _is_thrown_away(each))


def _is_thrown_away(node: ast.AST) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr in SENDING:
        return True
    text = ast.unparse(call.args[0]).lstrip("f'\"") if call.func.attr == "execute" and call.args else ""
    return text.startswith(WRITES) or (text.isidentifier() and text != "text" and text != "each")


def test_no_count_of_a_write_is_thrown_away() -> None:
    assert set(thrown_away()) == set(UNCOUNTED)
