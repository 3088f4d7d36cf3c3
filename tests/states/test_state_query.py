"""stateQuery on the SQL states: MapGet, SnapshotGet and TupleCollectionGet, on each database."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from states.sql import AppendState, BatchState, InsertIgnoreState, RowUpdater, SequenceState, SqlMapState
from states.sql.store import close_stores, parse_url, store_of
from trident_py import DefinitionError, LocalCluster, TopologyError, TridentTopology
from trident_py.errors import StateError
from trident_py.operations.builtin import Count, FilterNull, MapGet, SnapshotGet, Sum, TupleCollectionGet
from trident_py.spouts import FixedBatchSpout
from trident_py.testing import Crashing, collect
from trident_py.tuples import Fields, TridentTuple

pytestmark = pytest.mark.dear

KINDS = ["nonTransactional", "transactional", "opaque"]
WORDS = ["the", "cow", "jumped", "over", "the", "moon", "the", "man", "went", "to", "the", "store"]
COUNTED = {word: WORDS.count(word) for word in WORDS}


def numbered(name: str, values: list, size: int = 100) -> FixedBatchSpout:
    return FixedBatchSpout(name, size, *[(value,) for value in values])


def run(topology: TridentTopology) -> Any:
    with LocalCluster() as cluster:
        running = cluster.submitTopology("asked", {}, topology.build())
        assert running.awaitTermination(60)
        return running


def asked(factory: Any, words: list[str], partitions: int = 3, size: int = 100) -> dict[int, list]:
    """What another topology, which only asks, is told about the words; by batch."""
    topology = TridentTopology()
    state = topology.newStaticState(factory)
    stream = topology.newStream("asked", numbered("word", words, size)).groupBy("word")
    found = stream.stateQuery(state, "word", MapGet(), "count").parallelismHint(partitions)
    collect(found, "found")
    return run(topology).collected("found")


def count(factory: SqlMapState, words: list[str], partitions: int = 2) -> None:
    topology = TridentTopology()
    stream = topology.newStream("words", numbered("word", words, 4)).groupBy("word")
    stream.persistentAggregate(factory, Count(), "count").parallelismHint(partitions)
    run(topology)


@pytest.fixture
def counted(request: pytest.FixtureRequest, database: str) -> SqlMapState:
    kind = getattr(request, "param", "opaque")
    factory = getattr(SqlMapState, kind)(database, "counts", "word string", "count bigint")
    count(factory, WORDS)
    return factory


@pytest.fixture
def selects(monkeypatch: pytest.MonkeyPatch, database: str) -> Iterator[list[str]]:
    """Every statement that reads the table "counts", from here on."""
    seen: list[str] = []
    dialect = type(store_of(parse_url(database)).dialect)
    connect = dialect.connect

    def listening(self: Any, engine: Any) -> Any:
        return Listening(connect(self, engine), seen)

    close_stores()
    monkeypatch.setattr(dialect, "connect", listening)
    yield seen
    close_stores()


class Listening:
    """A connection that notes what reads the table."""

    def __init__(self, inner: Any, seen: list[str]) -> None:
        self.__dict__["inner"] = inner
        self.__dict__["seen"] = seen

    def execute(self, text: str, *parameters: Any) -> Any:
        reads = text.startswith("SELECT") and not text.endswith("LIMIT 0")  # which tells only the columns
        if reads and re.search(r'(FROM|JOIN) "counts"', text):
            self.seen.append(text)
        return self.inner.execute(text, *parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.mark.parametrize("counted", KINDS, indirect=True)
def test_map_get_answers_from_another_topology_with_other_partitions(counted: SqlMapState) -> None:
    """All partitions share the table, so it does not matter who has stored a key."""
    want = [*COUNTED, "nobody", "the", "The", ""]
    told = asked(counted, want)
    assert sorted(told[1], key=repr) == sorted(((word, COUNTED.get(word)) for word in want), key=repr)


def test_each_partition_of_a_batch_reads_once(counted: SqlMapState, selects: list[str]) -> None:
    many = [f"word{n}" for n in range(300)] + WORDS
    told = asked(counted, many, partitions=1, size=156)
    assert [len(rows) for rows in told.values()] == [156, 156]
    assert len(selects) == 2  # two batches, one partition
    del selects[:]
    asked(counted, many, partitions=3, size=1000)
    assert len(selects) == 3  # one batch, three partitions
    del selects[:]
    asked(counted, ["the"], partitions=3)
    assert len(selects) == 1  # two partitions got nothing to ask


def test_a_query_in_the_same_topology_reads_what_is_committed(database: str) -> None:
    factory = SqlMapState.opaque(database, "counts", "word string", "count bigint")
    topology = TridentTopology()
    stream = topology.newStream("words", numbered("word", ["a", "b", "a", "c", "a", "b"], 2))
    state = stream.groupBy("word").persistentAggregate(factory, Count(), "count").parallelismHint(2)
    collect(stream.groupBy("word").stateQuery(state, "word", MapGet(), "before"), "before")
    told = {txid: sorted(rows, key=repr) for txid, rows in run(topology).collected("before").items()}
    assert told == {1: [("a", None), ("b", None)], 2: [("a", 1), ("c", None)], 3: [("a", 2), ("b", 1)]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_behind_the_update_reads_what_its_batch_has_written(database: str, kind: str) -> None:
    """Also on a replay."""
    factory = getattr(SqlMapState, kind)(database, "counts", "word string", "count bigint")
    crashing = Crashing(factory, "beginCommit", {(2, 0)})
    topology = TridentTopology()
    stream = topology.newStream("words", numbered("word", ["a", "b", "a", "c", "a", "b"], 2)).groupBy("word")
    state = stream.persistentAggregate(crashing, Count(), "count").parallelismHint(2)
    asked = stream.aggregate(Count(), "n").stateQuery(state, "word", MapGet(), "now")
    collect(asked.project(["word", "now"]), "now")
    running = run(topology)
    assert running.attempts[2] == 1
    told = {txid: sorted(rows) for txid, rows in running.collected("now").items()}
    assert told == {1: [("a", 1), ("b", 1)], 2: [("a", 2), ("c", 1)], 3: [("a", 3), ("b", 2)]}


def rows_listed(factory: Any, partitions: int = 1) -> TridentTopology:
    """Each batch's rows are stored, and then all of them are asked for."""
    topology = TridentTopology()
    spout = FixedBatchSpout(["n", "what"], 2, (1, "a"), (2, "b"), (3, "c"))
    stream = topology.newStream("rows", spout).partitionBy("n")
    state = stream.partitionPersist(factory, ["n", "what"], RowUpdater()).parallelismHint(partitions)
    once = stream.global_().aggregate(Count(), "asked").broadcast()
    collect(once.stateQuery(state, TupleCollectionGet(), ["row", "text"]), "rows")
    return topology


LISTED = {1: [(2, 1, "a"), (2, 2, "b")], 2: [(1, 1, "a"), (1, 2, "b"), (1, 3, "c")]}


@pytest.mark.parametrize("kind", [InsertIgnoreState, AppendState])
def test_rows_that_the_batch_has_stored_are_listed_behind_the_update(database: str, kind: Any) -> None:
    given = {"key": "n"} if kind is InsertIgnoreState else {}
    topology = rows_listed(kind(database, "rows", columns=["n bigint", "what string"], **given))
    assert {txid: sorted(rows) for txid, rows in run(topology).collected("rows").items()} == LISTED


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_query_that_cannot_see_what_its_batch_has_written_is_refused(database: str) -> None:
    columns = ["n bigint", "what string"]
    with pytest.raises(DefinitionError, match="shows its rows when all partitions are done"):
        rows_listed(BatchState(database, "rows", columns=columns)).build()
    for factory in (
        InsertIgnoreState(database, "rows", key="n", columns=columns),
        AppendState(database, "rows", columns=columns),
        SequenceState(database, "rows", "what", "n", columns),
    ):
        with pytest.raises(DefinitionError, match="2 partitions write its rows"):
            rows_listed(factory, 2).build()
        rows_listed(factory, 1).build()
    topology = TridentTopology()
    grouped = topology.newStream("words", numbered("word", ["a"])).groupBy("word")
    counts = SqlMapState.opaque(database, "counts", "word string", "count bigint")
    state = grouped.persistentAggregate(counts, Count(), "count").parallelismHint(2)
    grouped.aggregate(Count(), "n").stateQuery(state, TupleCollectionGet(), ["key", "value"])
    with pytest.raises(DefinitionError, match="2 partitions write its rows"):
        topology.build()


def test_the_missing_are_left_out_by_filter_null_as_in_storms_word_count(counted: SqlMapState) -> None:
    topology = TridentTopology()
    state = topology.newStaticState(counted)
    stream = topology.newStream("asked", numbered("word", ["cat", "the", "dog", "man"])).groupBy("word")
    found = stream.stateQuery(state, "word", MapGet(), "count").each("count", FilterNull())
    collect(found.aggregate("count", Sum(), "sum"), "sum")
    assert run(topology).collected("sum") == {1: [(COUNTED["the"] + COUNTED["man"],)]}


def test_keys_and_values_of_several_columns_are_answered_whole(database: str) -> None:
    factory = SqlMapState.opaque(database, "counts", ["site string", "device int"], ["low bigint", "high bigint"])
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(1)
    state.multiPut([("north", 1), ("south", 2)], [(1, 5), (None, 7)])
    state.commit(1)
    topology = TridentTopology()
    rows = FixedBatchSpout(["site", "device"], 10, ("north", 1), ("north", 2), ("south", 2))
    stream = topology.newStream("asked", rows)
    collect(stream.stateQuery(topology.newStaticState(factory), ["site", "device"], MapGet(), "range"), "range")
    assert run(topology).collected("range") == {
        1: [("north", 1, (1, 5)), ("north", 2, None), ("south", 2, (None, 7))]
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_snapshot_get_reads_the_one_value_once_for_a_batch(database: str, kind: str, selects: list[str]) -> None:
    factory = getattr(SqlMapState, kind)(database, "counts")

    def told() -> list:
        topology = TridentTopology()
        state = topology.newStaticState(factory)
        stream = topology.newStream("asked", numbered("q", [1, 2, 3]))
        collect(stream.stateQuery(state, SnapshotGet(), "total"), "total")
        del selects[:]
        rows = run(topology).collected("total")[1]
        assert len(selects) == 1
        return rows

    assert told() == [(1, None), (2, None), (3, None)]
    topology = TridentTopology()
    topology.newStream("words", numbered("word", WORDS, 5)).persistentAggregate(factory, Count(), "count")
    run(topology)
    assert told() == [(n, len(WORDS)) for n in (1, 2, 3)]


@pytest.mark.parametrize("counted", KINDS, indirect=True)
@pytest.mark.parametrize("partitions", [1, 3])
def test_tuple_collection_get_gives_every_row_once_to_a_broadcast_tuple(
    counted: SqlMapState, partitions: int
) -> None:
    topology = TridentTopology()
    state = topology.newStaticState(counted)
    stream = topology.newStream("asked", numbered("q", [7, 8])).broadcast()
    found = stream.stateQuery(state, TupleCollectionGet(), ["word", "count"]).parallelismHint(partitions)
    collect(found, "rows")
    told = run(topology).collected("rows")[1]
    assert sorted(told) == sorted((q, word, n) for q in (7, 8) for word, n in COUNTED.items())


def test_tuple_collection_get_gives_the_rows_of_a_sequence_state(database: str) -> None:
    factory = SequenceState(database, "seq", "who", "n", ["n bigint", "v string", "who string"])
    rows = [(who, n, f"{who}{n}") for who in "abcdefgh" for n in (1, 2, 4)]
    topology = TridentTopology()
    stream = topology.newStream("rows", FixedBatchSpout(["who", "n", "v"], 10, *rows)).partitionBy("who")
    stream.partitionPersist(factory, ["who", "n", "v"], RowUpdater()).parallelismHint(2)
    run(topology)
    topology = TridentTopology()
    stream = topology.newStream("asked", numbered("q", [7])).broadcast()
    found = stream.stateQuery(topology.newStaticState(factory), TupleCollectionGet(), ["who", "n", "v"])
    collect(found.parallelismHint(3), "rows")
    assert sorted(run(topology).collected("rows")[1]) == [(7, *row) for row in rows if row[1] < 4]


READINGS = [(who, n, f"{who}{n}", {"n": [n]}) for who in "abcdefgh" for n in (1, 2, 4)]
READING = ["n bigint", "what string", "who string", "more json"]


@pytest.mark.parametrize(("columns", "partitions"), [(READING, 3), (None, 4)])
@pytest.mark.parametrize(
    ("kind", "key", "times"),
    [(InsertIgnoreState, ["who", "n"], 1), (AppendState, [], 2), (BatchState, ["who", "n"], 1), (BatchState, [], 2)],
)
def test_tuple_collection_get_gives_every_row_of_a_state_of_rows_once(
    database: str, kind: Any, key: list[str], times: int, columns: Any, partitions: int
) -> None:
    given = {"key": key} if key else {}
    topology = TridentTopology()
    spout = FixedBatchSpout(["who", "n", "what", "more"], 10, *READINGS * 2)
    stream = topology.newStream("rows", spout).partitionBy("who")
    factory = kind(database, "rows", columns=READING, **given)
    stream.partitionPersist(factory, ["who", "n", "what", "more"], RowUpdater()).parallelismHint(2)
    run(topology)
    names = [*key, *(name for name in ("n", "what", "who", "more") if name not in key)]
    topology = TridentTopology()
    state = topology.newStaticState(kind(database, "rows", columns=columns, **given))
    stream = topology.newStream("asked", numbered("q", [7, 8])).broadcast()
    collect(stream.stateQuery(state, TupleCollectionGet(), names).parallelismHint(partitions), "rows")
    rows = [dict(zip(("who", "n", "what", "more"), row, strict=True)) for row in READINGS]
    if columns is None:  # the table does not say that a text is json
        rows = [{**row, "more": json.dumps(row["more"], separators=(",", ":"))} for row in rows]
    expected = [(q, *(row[name] for name in names)) for q in (7, 8) for row in rows * times]
    assert sorted(run(topology).collected("rows")[1], key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_each_partition_gives_its_share_of_the_rows_and_a_missing_table_has_none(database: str) -> None:
    factory = InsertIgnoreState(database, "rows", key="n", columns=["n bigint", "what string"])
    keeper = factory.makeState({}, None, 0, 1)
    keeper.beginCommit(1)
    keeper.insert([TridentTuple.of(["n", "what"], (n, str(n))) for n in range(20)], tell=False)
    keeper.commit(1)
    parts = [list(factory.makeState({}, None, index, 4).getTuples()) for index in range(4)]
    assert sorted(row for part in parts for row in part) == [[n, str(n)] for n in range(20)]
    assert len([part for part in parts if part]) > 1
    assert list(AppendState(database, "none").makeState({}, None, 0, 1).getTuples()) == []


@pytest.mark.parametrize("columns", [["at", "v bigint"], None])
def test_rows_are_read_with_the_types_that_only_the_key_declares(database: str, columns: Any) -> None:
    factory = InsertIgnoreState(database, "rows", key="at timestamp", columns=columns)
    keeper = factory.makeState({}, None, 0, 1)
    keeper.beginCommit(1)
    noon = datetime.datetime(2026, 1, 2, 12)
    keeper.insert([TridentTuple.of(Fields("at timestamp", "v bigint"), (noon, 1))], tell=False)
    keeper.commit(1)
    assert factory.stored() == {(noon,): (1,)}
    assert list(factory.makeState({}, None, 0, 1).getTuples()) == [[noon, 1]]
    shown = BatchState(database, "rows", columns=columns, key="at timestamp")
    assert shown.stored() == {(noon,): (1,)} and list(shown.makeState({}, None, 0, 1).getTuples()) == [[noon, 1]]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_two_states_that_only_answer_are_two(database: str) -> None:
    factories = [SqlMapState.opaque(database, name, "word string", "count bigint") for name in ("one", "two")]
    for factory, words in zip(factories, (["a"], ["a", "a"]), strict=True):
        count(factory, words)
    topology = TridentTopology()
    one, two = [topology.newStaticState(factory) for factory in factories]
    stream = topology.newStream("asked", numbered("word", ["a"]))
    found = stream.stateQuery(one, "word", MapGet(), "one").stateQuery(two, "word", MapGet(), "two")
    collect(found, "found")
    assert run(topology).collected("found") == {1: [("a", 1, 2)]}


def test_a_state_that_only_answers_is_not_touched(counted: SqlMapState) -> None:
    """No fence, no generation: asking does not end the topology that writes."""
    before = counted.stored(), fences(counted)
    asked(counted, WORDS)
    assert (counted.stored(), fences(counted)) == before


def fences(factory: SqlMapState) -> list:
    with store_of(parse_url(factory.url)).reading() as connection:
        return list(map(tuple, connection.execute("SELECT * FROM trident_fence").fetchall()))


def test_a_key_that_no_column_holds_is_that_of_the_query(tmp_path: Path) -> None:
    factory = SqlMapState.opaque(f"sqlite:///{tmp_path}/n.db", "counts", "number bigint")
    why = r"table 'counts', key 1 of the query \(number='b'\): .*Convert the value before the query, .*MapGet"
    with pytest.raises(TopologyError, match=re.compile(why, re.DOTALL)):
        asked(factory, [1, "b"], partitions=1)  # type: ignore[list-item]
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(1)
    with pytest.raises(StateError, match=r"row 0 of the batch \(number='b'\).*Nothing of the batch is written"):
        state.multiGet([["b"]])
    state.rollback(1)
