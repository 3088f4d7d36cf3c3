"""What a topology is told about its states: the matrix, what is traced through the plan, and the refusal."""

from __future__ import annotations

import json
import logging
import random
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from examples import sensors_topology, weather, word_count
from states.rows import RowUpdater
from trident_py import Config, Fields, LocalCluster, TridentTopology
from trident_py.errors import DefinitionError
from trident_py.model.plan import ProcessorNode
from trident_py.operations import (
    Consumer,
    Filter,
    FlatMapFunction,
    Function,
    MultiReducer,
    deterministic,
    nondeterministic,
)
from trident_py.operations.builtin import Count, FirstN, MapGet
from trident_py.report.guarantees import (
    AT_LEAST,
    EXACTLY,
    IN_EFFECT,
    NONE,
    STATE_KINDS,
    WRONG,
    Guarantee,
    _cell,
    announce,
    replay_of,
)
from trident_py.report.guarantees.table import key_fields, origin
from trident_py.spouts import IBatchSpout, IOpaquePartitionedTridentSpout, SparkSpout
from trident_py.state import Location, StateFactory
from trident_py.testing import Crashing, FixedBatchSpout, LoggingBackingMap, MemoryMapState
from trident_py.topology import Stream

PAGE = Path(__file__).parent.parent / "docs" / "semantics.md"


class Rows(StateFactory):
    """A factory of any kind; nothing is ever made of it."""

    def __init__(self, kind: str | None, key: Any = None, **more: Any) -> None:
        self.kind = kind
        self.key = key
        self.__dict__.update(more)

    @property
    def location(self) -> Location:
        return Location(frozenset(["nowhere"]), frozenset([str(id(self))]))

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        raise AssertionError("nothing may start")


class Forgetful(IBatchSpout):
    def getOutputFields(self) -> Fields:
        return Fields("word", "n")

    def emitBatch(self, batchId: int, collector: Any) -> None:
        raise AssertionError("nothing may start")


class Opaque(IOpaquePartitionedTridentSpout):
    def getOutputFields(self) -> Fields:
        return Fields("word", "n")

    def getCoordinator(self, conf: dict, context: Any) -> Any:
        raise AssertionError("nothing may start")

    def getEmitter(self, conf: dict, context: Any) -> Any:
        raise AssertionError("nothing may start")


def transactional() -> FixedBatchSpout:
    return FixedBatchSpout(Fields("word", "n"), 2, ("a", 1), ("b", 2))


SPOUTS = {"transactional": transactional, "opaque": Opaque, "non-transactional": Forgetful}


@nondeterministic
class Asks(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([1])


class Doubles(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([2 * tuple[0]])


def stream_of(spout: Any, name: str = "words") -> Stream:
    return TridentTopology().newStream(name, spout)


def into(stream: Stream, kind: str | None, key: Any = "word", **more: Any) -> Guarantee:
    """The guarantee of a state of this kind at the end of the stream."""
    fields = stream.getOutputFields()
    stream.partitionPersist(Rows(kind, key, **more), fields, RowUpdater(), stateName="end")
    return stream.topology.guarantees()[-1]


# -- the matrix -----------------------------------------------------------------------------------------------------

COLUMNS = [("transactional", False), ("opaque", False), ("opaque", True), ("non-transactional", False)]
EXPECTED = {
    "non-transactional": (AT_LEAST, AT_LEAST, AT_LEAST, NONE),
    "transactional": (EXACTLY, WRONG, WRONG, NONE),
    "opaque": (EXACTLY, EXACTLY, AT_LEAST, NONE),
    "insert-ignore": (IN_EFFECT, IN_EFFECT, AT_LEAST, NONE),
    "upsert": (IN_EFFECT, IN_EFFECT, AT_LEAST, NONE),
    "append": (EXACTLY, WRONG, WRONG, NONE),
    "batch": (EXACTLY, EXACTLY, EXACTLY, NONE),
    "sequence": (IN_EFFECT, IN_EFFECT, WRONG, NONE),
    "window": (EXACTLY, EXACTLY, EXACTLY, NONE),
}
CELLS = [
    (kind, *column, expected)
    for kind, row in EXPECTED.items()
    for column, expected in zip(COLUMNS, row, strict=True)
]  # fmt: skip


def test_the_matrix_has_a_row_for_every_kind() -> None:
    assert tuple(EXPECTED) == STATE_KINDS


@pytest.mark.parametrize(("kind", "spout", "moved", "expected"), CELLS)
def test_a_cell_of_the_matrix(kind: str, spout: str, moved: bool, expected: str) -> None:
    found = _cell(spout, kind, moved)
    assert found.guarantee == expected
    assert found.reason
    assert "\n" not in found.reason


@pytest.mark.parametrize(("kind", "spout", "moved", "expected"), [c for c in CELLS if not c[2]])
def test_a_topology_gets_the_cell_of_its_spout_and_state(kind: str, spout: str, moved: bool, expected: str) -> None:
    found = into(stream_of(SPOUTS[spout]()), kind)
    assert (found.guarantee, found.spout_kind, found.state_kind) == (expected, spout, kind)
    assert bool(found.raise_by) == (expected not in (EXACTLY, IN_EFFECT))
    assert found.functions == ()


@pytest.mark.parametrize("kind", STATE_KINDS)
@pytest.mark.parametrize("spout", SPOUTS)
def test_with_non_deterministic_functions_a_transactional_spout_is_an_opaque_one(kind: str, spout: str) -> None:
    found = into(stream_of(SPOUTS[spout]()).each("n", Asks(), "answer"), kind)
    column = {"transactional": 1, "opaque": 1, "non-transactional": 3}[spout]
    assert found.guarantee == EXPECTED[kind][column]
    assert found.spout_kind == spout
    assert found.functions == ("Asks declared non-deterministic",)
    assert "Asks declared non-deterministic" in found.reason


@pytest.mark.parametrize("kind", [kind for kind in STATE_KINDS if kind != "append"])
def test_a_key_that_a_replay_changes_has_a_column_of_its_own(kind: str) -> None:
    keyed = stream_of(transactional()).each("n", Asks(), "id")
    more = {"sender": "word", "sequence": "id"} if kind == "sequence" else {}
    found = into(keyed, kind, None if more else "id", **more)
    assert found.guarantee == EXPECTED[kind][2]


def test_the_page_shows_the_matrix_of_the_code() -> None:
    lines = re.findall(r"^\| `([a-z-]+)` (?:map|rows|state) \| (.*) \|$", PAGE.read_text(), re.M)
    assert [kind for kind, _ in lines] == list(STATE_KINDS)
    for kind, text in lines:
        told = [words.partition(",")[0] for words in text.split(" | ")]
        assert told == [_cell(spout, kind, moved).guarantee for spout, moved in COLUMNS], kind


@pytest.mark.parametrize("kind", ["mystery", "my batch", "non-transactional own"])
def test_of_an_unknown_kind_nothing_is_promised(kind: str) -> None:
    found = into(stream_of(transactional()), kind)
    assert found.guarantee == AT_LEAST
    assert repr(kind) in found.reason
    assert into(stream_of(transactional()), None).state_kind == "unknown"


def test_a_misspelled_kind_is_refused_where_the_state_is_defined() -> None:
    stream = stream_of(transactional())
    message = r"no kind 'transactionl'; the kinds are: non-transactional, .*\. Did you mean 'transactional'\?"
    with pytest.raises(DefinitionError, match=message):
        stream.partitionPersist(Rows("transactionl"), "word", RowUpdater())
    with pytest.raises(DefinitionError, match=message):
        stream.topology.newStaticState(Rows("transactionl"))


def test_of_several_spouts_the_worst_counts() -> None:
    topology = TridentTopology()
    merged = topology.merge(topology.newStream("a", transactional()), topology.newStream("b", Opaque()))
    found = into(merged, "transactional")
    assert (found.spouts, found.spout_kind, found.guarantee) == (("a", "b"), "opaque", WRONG)


def test_a_memory_state_says_how_long_it_lasts() -> None:
    stream = stream_of(transactional())
    stream.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    assert "in memory, for the life of one driver process" in stream.topology.guarantees()[0].reason


def test_a_wrapped_factory_keeps_its_kind() -> None:
    stream = stream_of(transactional())
    factory = Crashing(LoggingBackingMap.Factory("transactional"), "commit", {(1, 0)})
    stream.groupBy("word").persistentAggregate(factory, Count(), "count")
    assert stream.topology.guarantees()[0].guarantee == EXACTLY


# -- a factory's own word -------------------------------------------------------------------------------------------


def test_a_factory_may_tell_its_own_guarantees() -> None:
    told: Mapping[str, tuple] = {"transactional": (IN_EFFECT, "it knows"), "opaque": (WRONG, "it mixes", "sort it")}
    assert into(stream_of(transactional()), "mystery", guarantees=told).guarantee == IN_EFFECT
    found = into(stream_of(transactional()).each("n", Asks(), "x"), "mystery", guarantees=told)
    assert (found.guarantee, found.reason.startswith("it mixes")) == (WRONG, True)
    assert found.raise_by == "make Asks deterministic, or sort it"
    assert into(stream_of(Forgetful()), "mystery", guarantees=told).guarantee == NONE


@pytest.mark.parametrize("told", [{"transactional": ("perfect", "because")}, {"transactional": EXACTLY}, "good"])
def test_a_factory_that_tells_nonsense_is_named(told: Any) -> None:
    with pytest.raises(DefinitionError, match="guarantees"):
        into(stream_of(transactional()), "mystery", guarantees=told)


# -- functions ------------------------------------------------------------------------------------------------------


class Coin(Filter):
    def isKeep(self, tuple: Any) -> bool:
        return random.random() < 0.5


class Splits(FlatMapFunction):
    def execute(self, tuple: Any) -> Any:
        return [[str(uuid4()), 1]]


class LogsTime(Consumer):
    def accept(self, tuple: Any) -> None:
        print(time.time())


class DrawingUpdater(RowUpdater):
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        print(random.random())


@nondeterministic
class AnyCount(Count):
    """Not the same again, it says."""


BEFORE = {
    "each": lambda s: s.each("n", lambda n: [uuid4()], "id"),
    "filter": lambda s: s.filter(Coin()),
    "map": lambda s: s.map(lambda t: (t[0], time.time())),
    "flatMap": lambda s: s.flatMap(Splits()),
    "aggregate": lambda s: s.groupBy("word").aggregate(AnyCount(), "count"),
    "behind a project": lambda s: s.each("n", Asks(), "x").project(["word", "n"]),
    "behind an exchange": lambda s: s.each("n", Asks(), "x").partitionBy("word"),
}


@pytest.mark.parametrize("step", BEFORE)
def test_a_drawing_operation_between_spout_and_state_is_found(step: str) -> None:
    found = into(BEFORE[step](stream_of(transactional())), "transactional")
    assert found.guarantee == WRONG
    assert len(found.functions) == 1
    assert found.raise_by.startswith("make ")
    drawn_too = step in ("map", "flatMap")  # the key of the state
    assert ("make the state opaque" in found.raise_by) == (not drawn_too)


def test_where_a_key_is_drawn_no_opaque_map_is_offered() -> None:
    """It would be no more than "at least once" either."""
    stream = stream_of(transactional()).each("n", Asks(), "x")
    stream.groupBy("x").persistentAggregate(LoggingBackingMap.Factory("transactional"), Count(), "count")
    (found,) = stream.topology.guarantees()
    assert (found.guarantee, found.raise_by) == (WRONG, "make Asks deterministic")


def test_a_state_behind_one_in_memory_says_so() -> None:
    stream = stream_of(transactional()).groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    into(stream.newValuesStream(), "opaque")
    memory, behind = stream.stream.topology.guarantees()
    assert (memory.guarantee, behind.guarantee) == (EXACTLY, EXACTLY)
    assert f"it is fed by state {memory.state}, in memory, which begins empty with each driver process" in behind.reason


def test_an_updater_that_draws_is_found() -> None:
    stream = stream_of(transactional())
    stream.partitionPersist(Rows("transactional", None), ["word"], DrawingUpdater(), stateName="end")
    assert stream.topology.guarantees()[0].guarantee == WRONG
    stream = stream_of(transactional())
    stream.groupBy("word").persistentAggregate(LoggingBackingMap.Factory("transactional"), AnyCount(), "count")
    assert stream.topology.guarantees()[0].guarantee == WRONG


def test_only_what_is_between_spout_and_state_counts() -> None:
    stream = stream_of(transactional())
    stream.each("n", Asks(), "x").partitionPersist(Rows("transactional"), ["word"], RowUpdater(), stateName="other")
    here = stream.peek(LogsTime()).each("n", Doubles(), "x")
    assert into(here, "transactional").guarantee == EXACTLY
    assert [each.guarantee for each in stream.topology.guarantees()] == [WRONG, EXACTLY]


def hidden() -> Any:
    namespace: dict[str, Any] = {}
    exec("def hidden(n): return [n]", namespace)
    return namespace["hidden"]


def test_an_operation_without_source_counts_as_not_deterministic_and_is_named() -> None:
    stream = stream_of(transactional()).each("n", hidden(), "x")
    found = into(stream, "transactional")
    told = "hidden not seen: no source found for hidden (<string>:1)"
    assert (found.guarantee, found.unseen, found.verdict) == (WRONG, (told,), "not seen")
    assert told in found.reason
    assert found.raise_by == "declare hidden @deterministic if it is, or make the state opaque"
    assert str(found).startswith("words (transactional) -> functions not seen -> end (transactional): wrong")
    assert stream.topology.guarantees().notes() == [
        f"{told}: it counts as not deterministic, unless it is declared @deterministic"
    ]


def test_what_was_not_seen_is_deterministic_once_it_is_declared() -> None:
    found = into(stream_of(transactional()).each("n", deterministic(hidden()), "x"), "transactional")
    assert (found.guarantee, found.unseen, found.verdict) == (EXACTLY, (), "deterministic")


def test_a_setting_trusts_what_was_not_seen() -> None:
    stream = stream_of(transactional()).each("n", lambda n: [json.JSONEncoder().iterencode(n), hidden()(n)], "x")
    into(stream, "transactional")
    conf = {"topology.determinism.trust": "*", "topology.guarantee": "exactly-once"}
    assert stream.topology.guarantees(conf)[0].guarantee == EXACTLY
    announce("trusting", conf, stream.topology.plan())
    with pytest.raises(DefinitionError, match="below it"):
        announce("careful", {"topology.guarantee": "exactly-once"}, stream.topology.plan())


@pytest.mark.parametrize("told", [7, [""], [1], {"a": 1}, ["a", None]])
def test_a_trust_that_names_nothing_is_refused(told: Any) -> None:
    with pytest.raises(DefinitionError, match=r"topology\.determinism\.trust is"):
        stream_of(transactional()).topology.guarantees({"topology.determinism.trust": told})


def test_the_examples_are_deterministic_without_a_declaration() -> None:
    topologies = [word_count.build(), weather.build(), sensors_topology.build("b:1", "sqlite:///a", "sqlite:///b")]
    found = [each for topology in topologies for each in topology.guarantees()]
    assert [(each.state, each.functions) for each in found if each.verdict != "deterministic"] == []
    assert len(found) == 7


def test_what_a_state_answers_may_be_another_on_a_replay() -> None:
    def asked(query: Any) -> Guarantee:
        topology = TridentTopology()
        known = topology.newStaticState(MemoryMapState.Factory())
        stream = topology.newStream("words", transactional()).stateQuery(known, "word", query, "known")
        return into(stream, "transactional")

    assert asked(MapGet()).guarantee == WRONG
    assert "MapGet queries state" in asked(MapGet()).reason
    assert asked(deterministic(MapGet())).guarantee == EXACTLY


# -- keys -----------------------------------------------------------------------------------------------------------


def test_other_columns_may_differ_where_the_key_does_not() -> None:
    stream = stream_of(transactional()).each("n", Asks(), "answer")
    found = into(stream, "insert-ignore", "word")
    assert found.guarantee == IN_EFFECT
    assert "the values of the first attempt stay" in found.reason


def test_a_key_made_of_spout_fields_by_deterministic_functions_is_one_of_the_tuple() -> None:
    stream = stream_of(Opaque()).each("n", Doubles(), "twice").map(lambda t: (t[0], t[2]), ["word", "double"])
    stream = stream.project(["double", "word"]).filter(lambda double, word: True).partitionBy("word")
    assert into(stream, "insert-ignore", ["double", "word"]).guarantee == IN_EFFECT


KEYS = {
    "appended": (lambda s: s.each("n", Asks(), "id"), "id"),
    "appended behind": (lambda s: s.each("n", Asks(), "x").each("x", Doubles(), "id"), "id"),
    "projected": (lambda s: s.each("n", Asks(), "id").project("id"), "id"),
    "mapped": (lambda s: s.each("n", Asks(), "x").map(lambda t: [t[2]], "id"), "id"),
    "grouped": (lambda s: s.each("n", Asks(), "id").groupBy("id").aggregate(Count(), "count"), "id"),
    "merged": (lambda s: s.topology.merge(["a", "id"], s, s.each("n", Asks(), "x").project(["n", "x"])), "id"),
}


@pytest.mark.parametrize("path", KEYS)
def test_a_key_is_traced_back_to_the_function_that_draws_it(path: str) -> None:
    make, key = KEYS[path]
    found = into(make(stream_of(transactional())), "insert-ignore", key)
    assert found.guarantee == AT_LEAST
    assert "Asks declared non-deterministic" in found.reason
    assert found.raise_by.startswith("make Asks deterministic")


def counted(spout: Any) -> Stream:
    return stream_of(spout).groupBy("word").aggregate(Count(), "count")


def test_a_key_made_by_an_aggregate_is_as_good_as_the_batch() -> None:
    steady, changing = (into(counted(spout), "insert-ignore", "count") for spout in (transactional(), Opaque()))
    assert (steady.guarantee, changing.guarantee) == (IN_EFFECT, AT_LEAST)
    assert "field 'count' is computed from the whole batch by aggregate Count by [word]" in changing.reason
    assert "and the batch never changes" in steady.reason
    assert into(counted(Opaque()), "insert-ignore", "word").guarantee == IN_EFFECT


def test_a_key_that_a_query_gave_is_none_of_the_tuple() -> None:
    topology = TridentTopology()
    known = topology.newStaticState(MemoryMapState.Factory())
    stream = topology.newStream("words", transactional()).stateQuery(known, "word", MapGet(), "known")
    found = into(stream, "insert-ignore", "known")
    assert (found.guarantee, "field 'known': MapGet queries state" in found.reason) == (AT_LEAST, True)
    topology = TridentTopology()
    known = topology.newStaticState(MemoryMapState.Factory())
    stream = topology.newStream("words", transactional()).stateQuery(known, "word", MapGet(), "known")
    assert into(stream, "insert-ignore", "word").guarantee == IN_EFFECT


def test_the_fields_of_a_join_are_those_of_its_sides() -> None:
    topology = TridentTopology()
    left = topology.newStream("left", transactional())
    right = topology.newStream("right", Opaque())
    joined = topology.join(left, "word", right, "word", ["word", "n", "m"])
    assert into(joined, "insert-ignore", ["word", "m"]).guarantee == IN_EFFECT
    drawn = topology.join(left.each("n", Asks(), "x"), "word", right, "word", ["word", "n", "x", "m"])
    assert into(drawn, "insert-ignore", "x").guarantee == AT_LEAST


def test_long_chains_over_many_fields_are_traced_at_once() -> None:
    stream = stream_of(Opaque())
    names = [f"f{i}" for i in range(20)]
    for _ in range(20):
        stream = stream.map(lambda t: t * 10, names)
    assert into(stream, "insert-ignore", names).guarantee == IN_EFFECT


class Sums(MultiReducer):
    """Makes fields of everything that comes."""

    def init(self, collector: Any) -> Any: ...

    def execute(self, state: Any, streamIndex: int, input: Any, collector: Any) -> Any: ...

    def complete(self, state: Any, collector: Any) -> None: ...


def test_the_fields_of_a_reducer_of_streams_are_those_of_the_batch() -> None:
    topology = TridentTopology()
    left, right = topology.newStream("left", Opaque()), topology.newStream("right", Opaque())
    assert into(topology.multiReduce(left, right, Sums(), "sum"), "insert-ignore", "sum").guarantee == AT_LEAST


@pytest.mark.parametrize("kind", ["transactional", "opaque"])
def test_the_groups_of_a_map_are_its_key(kind: str) -> None:
    def of(group: str) -> Guarantee:
        stream = stream_of(transactional()).each("n", Asks(), "id")
        stream.groupBy(group).persistentAggregate(LoggingBackingMap.Factory(kind), Count(), "count")
        return stream.topology.guarantees()[0]

    assert of("id").guarantee == (AT_LEAST if kind == "opaque" else WRONG)
    assert of("word").guarantee == (EXACTLY if kind == "opaque" else WRONG)


def test_the_key_fields_come_from_the_factory_and_the_updater() -> None:
    stream = stream_of(transactional())
    into(stream, "sequence", None, sender="word", sequence=["n"])
    stream.partitionPersist(Rows("opaque", Fields("n bigint")), ["n", "word"], RowUpdater(), stateName="m")
    nodes = [node for node in stream.topology.plan().nodes if isinstance(node, ProcessorNode) and node.committer]
    assert [key_fields(node) for node in nodes] == [["word", "n"], ["n"]]
    assert origin(stream.topology.plan(), stream.topology.plan().nodes[0], "word") == []


# -- routes ---------------------------------------------------------------------------------------------------------

RATE = SparkSpout("rate", {}, Fields("value bigint"))
ROUTES = {
    "from the spout": (lambda s: s.parallelismHint(2), EXACTLY),
    "shuffled behind the spout": (lambda s: s.parallelismHint(2).shuffle().each("n", Doubles(), "x"), EXACTLY),
    "by content": (lambda s: s.parallelismHint(2).shuffle().each("n", Doubles(), "x").partitionBy("n"), EXACTLY),
    "shuffled behind an exchange": (
        lambda s: s.parallelismHint(2).partitionBy("n").each("n", Doubles(), "x").parallelismHint(2).shuffle(),
        WRONG,
    ),
    "to one": (lambda s: s.partitionBy("n").each("n", Doubles(), "x").parallelismHint(2).global_(), EXACTLY),
    "custom": (lambda s: s.partition(lambda values: len(values[0])), EXACTLY),
    "drawn": (lambda s: s.partition(lambda values: random.randrange(2)), WRONG),
    "merged and shuffled": (
        lambda s: s.parallelismHint(2).topology.merge(s, s.each("n", Doubles(), "x").project(["word", "n"])).shuffle(),
        WRONG,
    ),
}


@pytest.mark.parametrize("route", ROUTES)
def test_appended_rows_need_a_route_that_a_replay_takes_again(route: str) -> None:
    class Wide(FixedBatchSpout):
        def getComponentConfiguration(self) -> dict | None:
            return None

    make, expected = ROUTES[route]
    stream = make(stream_of(Wide(Fields("word", "n"), 2, ("a", 1))))
    state = stream.partitionPersist(Rows("append", None), stream.getOutputFields(), RowUpdater(), stateName="end")
    state.parallelismHint(2)
    found = stream.topology.guarantees()[-1]
    assert found.guarantee == expected, found
    if expected == WRONG:
        assert "partitionBy" in found.raise_by


def test_what_spark_reads_lies_where_spark_has_split_it() -> None:
    def appended(partitions: int, by: str | None = None) -> str:
        stream = stream_of(RATE).parallelismHint(partitions)
        stream = stream if by is None else stream.partitionBy(by)
        stream.partitionPersist(Rows("append"), "value", RowUpdater(), stateName="end").parallelismHint(partitions)
        return stream.topology.guarantees()[0].guarantee

    assert [appended(1), appended(2), appended(2, "value")] == [EXACTLY, WRONG, EXACTLY]


def test_an_aggregate_of_each_partition_needs_such_a_route_too() -> None:
    def partly(by: str | None) -> str:
        stream = stream_of(RATE).parallelismHint(2)
        stream = (stream if by is None else stream.partitionBy(by)).partitionAggregate("value", Count(), "count")
        stream.parallelismHint(2)
        return into(stream, "transactional", None).guarantee

    assert [partly(None), partly("value")] == [WRONG, EXACTLY]


# -- a state behind another -----------------------------------------------------------------------------------------


def behind(first: str, second: str) -> Guarantee:
    stream = stream_of(transactional())
    made = stream.partitionPersist(Rows(first), ["word", "n"], RowUpdater(), ["word", "n"], stateName="first")
    return into(made.newValuesStream(), second, None)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("transactional", "transactional", EXACTLY),
        ("opaque", "transactional", EXACTLY),
        ("opaque", "opaque", EXACTLY),
        ("batch", "append", EXACTLY),
        ("non-transactional", "transactional", WRONG),
        ("non-transactional", "opaque", AT_LEAST),
        ("insert-ignore", "opaque", WRONG),
        ("append", "batch", WRONG),
        ("sequence", "insert-ignore", WRONG),
        ("mystery", "opaque", AT_LEAST),
    ],
)
def test_a_state_is_no_better_than_the_one_that_feeds_it(first: str, second: str, expected: str) -> None:
    found = behind(first, second)
    assert found.guarantee == expected
    if expected == AT_LEAST:
        assert "it is fed by state first" in found.reason


def test_rows_that_were_new_once_are_not_new_again() -> None:
    found = behind("insert-ignore", "opaque")
    assert "a replay does not emit again the rows that state first has stored" in found.reason
    assert found.raise_by == "feed it from the stream that feeds first"


# -- sources of Spark -----------------------------------------------------------------------------------------------


def spark(name: str, kind: str = "transactional", **options: Any) -> Any:
    return replay_of(SparkSpout(name, options, Fields("value"), kind=kind))


RE_READ = ["rate", "rate-micro-batch", "kafka", "parquet", "csv", "json", "text", "ORC", "delta"]


@pytest.mark.parametrize("name", RE_READ)
def test_a_source_that_can_be_read_again_keeps_its_promise(name: str) -> None:
    assert spark(name).kind == "transactional"
    assert spark(name, "opaque") == ("opaque", "")
    assert spark(name, "non-transactional").kind == "non-transactional"


def test_what_a_promise_rests_on_is_told() -> None:
    assert spark("rate").remark == ""
    assert spark("kafka").remark == "if the topic is not compacted"
    assert spark("parquet").remark == "as long as its files are neither changed nor deleted"
    assert "'delta'" in spark("delta").remark


@pytest.mark.parametrize("promise", ["transactional", "opaque", "non-transactional"])
def test_a_socket_is_not_read_again_whatever_is_promised(promise: str) -> None:
    assert spark("socket", promise).kind == "non-transactional"
    found = into(stream_of(SparkSpout("socket", {}, Fields("word"), kind=promise)), "opaque")
    assert (found.guarantee, found.spout_kind) == (NONE, "non-transactional")


def test_options_that_lose_data_make_a_source_opaque() -> None:
    assert spark("kafka", failOnDataLoss="false").kind == "opaque"
    assert spark("kafka", FAILONDATALOSS=False).kind == "opaque"
    assert spark("kafka", failOnDataLoss="true").kind == "transactional"
    assert spark("csv", ignoreMissingFiles="true").kind == "opaque"
    found = into(stream_of(SparkSpout("kafka", {"failOnDataLoss": "false"}, Fields("word"))), "transactional")
    assert found.guarantee == WRONG
    assert "failOnDataLoss=false" in found.reason
    assert into(stream_of(SparkSpout("socket", {}, Fields("word"))), "opaque").reason.endswith("cannot be read again")


# -- printed and refused --------------------------------------------------------------------------------------------


def two_states(kind: str) -> TridentTopology:
    topology = TridentTopology()
    stream = topology.newStream("words", transactional())
    stream.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count", stateName="good")
    stream.partitionPersist(Rows(kind), ["word"], RowUpdater(), stateName="rows")
    return topology


def test_the_table_has_a_line_for_each_state_with_reason_and_remedy() -> None:
    text = str(two_states("non-transactional").guarantees())
    assert text.splitlines() == [
        "state  kind               spout                  functions      guarantee",
        "good   opaque             words (transactional)  deterministic  exactly once",
        "    because the value before the batch is kept with each value; in memory, for the life of one driver process",
        "rows   non-transactional  words (transactional)  deterministic  at least once",
        "    because a replayed batch is applied again",
        "    to raise it: make the state transactional or opaque",
    ]
    assert str(TridentTopology().guarantees()) == "no state is updated"


def test_a_topology_and_its_builder_tell_the_same() -> None:
    topology = two_states("non-transactional")
    assert topology.build().guarantees() == topology.guarantees()


def counting() -> TridentTopology:
    topology = TridentTopology()
    stream = topology.newStream("words", transactional())
    stream.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count", stateName="good")
    return topology


def test_submit_logs_the_table_and_prints_nothing(caplog: Any, capsys: Any) -> None:
    with caplog.at_level(logging.INFO, "trident_py"), LocalCluster() as cluster:
        cluster.submitTopology("words", {}, counting().build()).awaitTermination()
    told = [record.getMessage() for record in caplog.records if "guarantees of words" in record.getMessage()]
    assert len(told) == 1
    assert str(counting().guarantees()) in told[0]
    assert capsys.readouterr() == ("", "")


def test_below_the_required_guarantee_nothing_starts() -> None:
    conf = Config({Config.TOPOLOGY_GUARANTEE: "exactly-once"})
    with LocalCluster() as cluster:
        with pytest.raises(DefinitionError) as refused:
            cluster.submitTopology("words", conf, two_states("non-transactional").build())
        assert cluster._running == []
    told = str(refused.value)
    assert "topology.guarantee is 'exactly-once'; these states are below it:" in told
    assert "rows (non-transactional): at least once: a replayed batch is applied again" in told
    assert "to raise it: make the state transactional or opaque" in told
    assert "good" not in told


@pytest.mark.parametrize(
    ("required", "kind", "spout", "starts"),
    [
        ("exactly-once", "insert-ignore", "opaque", True),
        ("exactly-once", "batch", "opaque", True),
        ("exactly-once", "append", "opaque", False),
        ("exactly-once", "non-transactional", "transactional", False),
        ("exactly-once", "opaque", "non-transactional", False),
        ("at-least-once", "non-transactional", "transactional", True),
        ("at-least-once", "transactional", "opaque", False),
        ("at-least-once", "opaque", "non-transactional", False),
        (None, "transactional", "opaque", True),
    ],
)
def test_what_is_required_decides(required: str | None, kind: str, spout: str, starts: bool) -> None:
    stream = stream_of(SPOUTS[spout]())
    into(stream, kind)
    conf = {} if required is None else {"topology.guarantee": required}
    if starts:
        announce("words", conf, stream.topology.plan())
    else:
        with pytest.raises(DefinitionError, match="below it"):
            announce("words", conf, stream.topology.plan())


def test_a_met_guarantee_lets_a_topology_run() -> None:
    with LocalCluster() as cluster:
        running = cluster.submitTopology("words", {"topology.guarantee": "exactly-once"}, counting().build())
        assert running.awaitTermination()
    assert running.txid is not None


def test_an_unknown_value_names_those_that_exist() -> None:
    with LocalCluster() as cluster:
        with pytest.raises(DefinitionError, match="'exact'; set it to one of: exactly-once, at-least-once"):
            cluster.submitTopology("words", {"topology.guarantee": "exact"}, counting().build())


def test_spark_refuses_before_anything_starts() -> None:
    """submitTopology of a cluster that has no session: whatever it touched but the conf would fail."""
    from trident_py.spark.cluster import SparkCluster

    cluster = object.__new__(SparkCluster)
    cluster._homes = object()  # type: ignore[assignment]
    with pytest.raises(DefinitionError, match="below it"):
        cluster.submitTopology("w", {"topology.guarantee": "exactly-once"}, two_states("non-transactional").build())


MODULE = """
import time
from trident_py import Fields, TridentTopology
from trident_py.operations.builtin import Count
from trident_py.testing import FixedBatchSpout, LoggingBackingMap

exec("def hidden(word): return [word]")

def build():
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout(Fields("word"), 2, ("a",), ("b",)))
    words = words.each("word", hidden, "same").each("word", lambda word: [time.time()], "at")
    words.groupBy("word").persistentAggregate(LoggingBackingMap.Factory("KIND"), Count(), "count", stateName="counts")
    return topology
"""


def trident(folder: Path, *arguments: str, kind: str = "opaque") -> subprocess.CompletedProcess[str]:
    (folder / "timed.py").write_text(MODULE.replace("KIND", kind))
    command = [sys.executable, "-W", "error", "-m", "trident_py", *arguments]
    environment = {"PYTHONPATH": str(PAGE.parent.parent), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=60)


def test_run_shows_the_table_on_stderr(tmp_path: Path) -> None:
    done = trident(tmp_path, "run", "timed", "--local")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "counts  opaque  words (transactional)  not deterministic  exactly once" in done.stderr
    assert "calls time.time (timed.py:12)" in done.stderr


def test_run_with_json_tells_the_guarantees_as_events(tmp_path: Path) -> None:
    done = trident(tmp_path, "run", "timed", "--local", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert (events[0]["event"], events[0]["state"], events[0]["guarantee"]) == ("guarantee", "counts", EXACTLY)
    assert {"reason", "raise_by", "functions", "spouts", "spout_kind", "state_kind"} <= set(events[0])
    assert [each["event"] for each in events].count("guarantee") == 1
    assert done.stderr == ""


def test_run_refuses_before_there_is_a_cluster(tmp_path: Path) -> None:
    settings = ("--set", "topology.guarantee=exactly-once")
    done = trident(tmp_path, "run", "timed", *settings, kind="transactional")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: topology.guarantee is 'exactly-once'; these states are below it:")
    assert "counts (transactional): wrong" in done.stderr
    assert "to raise it: declare hidden @deterministic if it is, or make <lambda> deterministic, or make" in done.stderr
    assert not (tmp_path / "checkpoints").exists()


def test_explain_tells_what_it_could_not_read(tmp_path: Path) -> None:
    done = trident(tmp_path, "explain", "timed")
    assert "hidden not seen: no source found for hidden (<string>:1): it counts as not deterministic" in done.stdout
    assert "hidden was found" not in trident(tmp_path, "run", "timed", "--local").stderr


def test_the_first_of_many_comes_by_position() -> None:
    """FirstN takes what is first: of rows from several partitions that is not the same again."""
    stream = FirstN(1).apply(stream_of(RATE).parallelismHint(2))
    assert into(stream, "transactional", None).guarantee == WRONG
