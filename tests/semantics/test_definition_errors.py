"""Errors of a topology's definition (semantics, 19.1 and 19.2): raised on the line that defines, with what exists."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from states import RowUpdater
from trident_py import DefinitionError, Fields, JoinType, LocalCluster, TridentTopology
from trident_py.operations import (
    BaseFilter,
    BaseFunction,
    CombinerAggregator,
    GroupedMultiReducer,
    MapFunction,
    MultiReducer,
)
from trident_py.operations.builtin import Count, MapGet, Maximum, Minimum, Sum, TupleCollectionGet
from trident_py.spouts import IBatchSpout
from trident_py.state import BaseQueryFunction, BaseStateUpdater, StateFactory, StateSpec
from trident_py.testing import FixedBatchSpout, LoggingBackingMap, MemoryMapState, Split

from .support import Batches, Collects, Joined


class AnUpdater:
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None: ...


def stream(name: str = "s") -> Any:
    return TridentTopology().newStream(name, Batches(["a", "b"], []))


UNKNOWN: dict[str, Any] = {
    "each with a function": lambda s: s.each("x", Split(), "w"),
    "each with a filter": lambda s: s.each("x", lambda x: True),
    "filter": lambda s: s.filter("x", lambda x: True),
    "project": lambda s: s.project(["a", "x"]),
    "groupBy": lambda s: s.groupBy("x"),
    "partitionBy": lambda s: s.partitionBy("x"),
    "partitionAggregate": lambda s: s.partitionAggregate("x", Sum(), "n"),
    "aggregate": lambda s: s.aggregate("x", Joined(), "n"),
    "grouped aggregate": lambda s: s.groupBy("a").aggregate("x", Sum(), "n"),
    "chainedAgg": lambda s: s.chainedAgg().aggregate("x", Sum(), "n"),
    "stateQuery": lambda s: s.stateQuery(s.topology.newStaticState(MemoryMapState.Factory()), "x", MapGet(), "n"),
    "partitionPersist": lambda s: s.partitionPersist(MemoryMapState.Factory(), "x", AnUpdater()),
    "persistentAggregate": lambda s: s.persistentAggregate(MemoryMapState.Factory(), "x", Sum(), "n"),
    "persistentAggregate of a reducer": lambda s: s.persistentAggregate(MemoryMapState.Factory(), "x", Joined(), "n"),
    "grouped persistentAggregate": lambda s: s.groupBy("a").persistentAggregate(
        MemoryMapState.Factory(), "x", Joined(), "n"
    ),
    "minBy": lambda s: s.minBy("x"),
    "maxBy": lambda s: s.maxBy("x"),
    "join": lambda s: s.topology.join(s, "a", s.project("a"), "x", ["a"]),
    "multiReduce": lambda s: s.topology.multiReduce("x", s, "a", s, TagsNothing(), "n"),
}


class TagsNothing(MultiReducer):
    def init(self, collector: Any) -> None: ...

    def execute(self, state: Any, streamIndex: int, input: Any, collector: Any) -> None: ...

    def complete(self, state: Any, collector: Any) -> None: ...


class Upper(MapFunction):
    def execute(self, tuple: Any) -> Any: ...


class GroupsNothing(GroupedMultiReducer):
    def init(self, *_: Any) -> None: ...

    def execute(self, *_: Any) -> None: ...

    def complete(self, *_: Any) -> None: ...


@pytest.mark.parametrize("call", UNKNOWN)
def test_an_unknown_field_is_named_with_the_fields_that_exist(call: str) -> None:
    with pytest.raises(DefinitionError) as error:
        UNKNOWN[call](stream())
    message = str(error.value)
    assert "Trying to select non-existent field: 'x' from stream containing fields" in message
    assert "[a, b]" in message or "[a]" in message


def test_definition_errors_are_value_errors() -> None:
    with pytest.raises(ValueError, match="non-existent"):
        stream().project("x")


DUPLICATE: dict[str, Any] = {
    "Fields": lambda s: Fields("a", "b", "a"),
    "each": lambda s: s.each("b", Split(), "a"),
    "each with two": lambda s: s.each("b", Split(), ["w", "a"]),
    "stateQuery": lambda s: s.stateQuery(
        s.topology.newStaticState(MemoryMapState.Factory()), "b", TupleCollectionGet(), "a"
    ),
    "combiner": lambda s: s.aggregate("b", Sum(), "a"),
    "grouped combiner": lambda s: s.groupBy("b").aggregate("b", Sum(), "a"),
    "grouped reducer": lambda s: s.groupBy("a").aggregate("b", Joined(), "a"),
    "persistentAggregate": lambda s: s.persistentAggregate(MemoryMapState.Factory(), "b", Sum(), "a"),
    "grouped persistentAggregate": lambda s: s.groupBy("a").persistentAggregate(
        MemoryMapState.Factory(), Joined(), "a"
    ),
    "project": lambda s: s.project(["a", "a"]),
    "map": lambda s: s.map(lambda t: t, ["a", "a"]),
}


@pytest.mark.parametrize("call", DUPLICATE)
def test_a_repeated_field_is_named(call: str) -> None:
    with pytest.raises(DefinitionError, match="duplicate field 'a'"):
        DUPLICATE[call](stream())


def test_a_name_that_project_dropped_may_be_used_again() -> None:
    assert stream().project("b").each("b", Split(), "a").getOutputFields() == Fields("b", "a")


def test_output_fields_of_chained_aggregators_must_be_distinct() -> None:
    chain = stream().chainedAgg().aggregate(Joined(), "m").aggregate(Collects(), "m")
    with pytest.raises(DefinitionError, match=r"must be distinct: \[m, m\]"):
        chain.chainEnd()
    with pytest.raises(DefinitionError, match="duplicate field 'm'"):
        stream().chainedAgg().aggregate(Count(), "m").aggregate(Count(), "m")


@pytest.mark.parametrize("fields", [["n", "m"], []])
def test_a_grouped_combiner_state_takes_one_function_field(fields: list[str]) -> None:
    with pytest.raises(DefinitionError, match="only take a single field as input"):
        stream().groupBy("a").persistentAggregate(MemoryMapState.Factory(), Count(), fields)


def test_a_general_aggregator_has_no_value_for_a_state() -> None:
    for source in (stream(), stream().groupBy("a")):
        with pytest.raises(DefinitionError, match="CombinerAggregator or a ReducerAggregator"):
            source.persistentAggregate(MemoryMapState.Factory(), Collects(), "n")


FIELDLESS: dict[str, Any] = {
    "aggregate": lambda s, agg: s.aggregate(agg, "n"),
    "aggregate of no fields": lambda s, agg: s.aggregate([], agg, "n"),
    "partitionAggregate": lambda s, agg: s.partitionAggregate(agg, "n"),
    "grouped aggregate": lambda s, agg: s.groupBy("a").aggregate(agg, "n"),
    "chainedAgg": lambda s, agg: s.chainedAgg().aggregate(Count(), "m").aggregate(agg, "n"),
    "persistentAggregate": lambda s, agg: s.persistentAggregate(MemoryMapState.Factory(), agg, "n"),
    "grouped persistentAggregate": lambda s, agg: s.groupBy("a").persistentAggregate(
        MemoryMapState.Factory(), agg, "n"
    ),
}


@pytest.mark.parametrize("call", FIELDLESS)
@pytest.mark.parametrize("aggregator", [Sum(), Minimum(), Maximum()], ids=lambda aggregator: type(aggregator).__name__)
def test_an_aggregator_of_a_field_is_refused_without_one(aggregator: CombinerAggregator, call: str) -> None:
    with pytest.raises(DefinitionError, match=r"reads its first input field.* has the fields \[a, b\]") as error:
        FIELDLESS[call](stream(), aggregator)
    assert str(error.value).startswith(f"{type(aggregator).__name__} ")


def test_what_is_no_aggregator_is_refused() -> None:
    with pytest.raises(DefinitionError, match="takes an Aggregator"):
        stream().aggregate("a", sum, "n")


def test_what_is_no_spout_is_refused() -> None:
    with pytest.raises(DefinitionError, match="is not a spout; a spout is one of: IBatchSpout"):
        TridentTopology().newStream("s", [("a",)])


class NoFields(IBatchSpout):
    def getOutputFields(self) -> Any:
        return None

    def emitBatch(self, batchId: int, collector: Any) -> None: ...


def test_a_spout_declares_its_fields() -> None:
    with pytest.raises(DefinitionError, match="declares no fields"):
        TridentTopology().newStream("s", NoFields())


def test_what_is_no_state_factory_is_refused() -> None:
    for call in (stream().persistentAggregate, stream().groupBy("a").persistentAggregate):
        with pytest.raises(DefinitionError, match="is not a StateFactory"):
            call({}, Count(), "n")
    with pytest.raises(DefinitionError, match="is not a StateFactory"):
        TridentTopology().newStaticState({})


def test_what_is_no_updater_is_refused() -> None:
    with pytest.raises(DefinitionError, match="takes a StateUpdater"):
        stream().partitionPersist(MemoryMapState.Factory(), "a", lambda *args: None)


def test_an_unknown_mode_of_a_join_is_refused() -> None:
    topology = TridentTopology()
    one, two = (topology.newStream(name, Batches("k", [])) for name in "ab")
    with pytest.raises(DefinitionError, match="Unsupported out-fields mode: 'WIDE'"):
        topology.join(one, "k", two, "k", "k", JoinType.INNER, "WIDE")


@pytest.mark.parametrize("hint", [0, -1, 1.5, "two", None])
def test_a_parallelism_is_a_number_from_one_on(hint: Any) -> None:
    with pytest.raises(DefinitionError, match="at least 1"):
        stream().parallelismHint(hint)


def test_two_streams_with_one_id_are_refused_at_build() -> None:
    topology = TridentTopology()
    for _ in range(2):
        topology.newStream("same", FixedBatchSpout("v", 1))
    with pytest.raises(DefinitionError, match="two streams are named 'same'"):
        topology.build()


def test_two_states_with_one_name_are_refused_at_build() -> None:
    topology = TridentTopology()
    source = topology.newStream("s", FixedBatchSpout("v", 1))
    for _ in range(2):
        source.persistentAggregate(MemoryMapState.Factory(), Count(), "n", stateName="same")
    with pytest.raises(DefinitionError, match="two states are named 'same'"):
        topology.build()


def test_a_fixed_parallelism_beyond_the_spouts_own_is_refused_at_build() -> None:
    topology = TridentTopology()
    spec = StateSpec(LoggingBackingMap.Factory(), 4)
    topology.newStream("s", FixedBatchSpout("v", 1)).partitionPersist(spec, "v", AnUpdater())
    with pytest.raises(DefinitionError, match="Parallelism is fixed to 4 but max parallelism is less than that: 1"):
        topology.build()


def test_two_fixed_parallelisms_in_one_group_are_refused_at_build() -> None:
    topology = TridentTopology()
    source = topology.newStream("s", Batches("v", []))
    for count in (2, 3):
        source.partitionPersist(StateSpec(LoggingBackingMap.Factory(), count), "v", AnUpdater())
    with pytest.raises(DefinitionError, match="fixed parallelism of two different values"):
        topology.build()


def test_new_values_of_a_static_state_are_refused() -> None:
    with pytest.raises(DefinitionError, match="no new values"):
        TridentTopology().newStaticState(MemoryMapState.Factory()).newValuesStream()


STRANGERS: dict[str, Any] = {
    "merge": lambda one, other: one.topology.merge(one, other),
    "merge, the other's": lambda one, other: other.topology.merge(one),
    "join": lambda one, other: one.topology.join(one, "a", other, "a", ["a", "b", "c"]),
    "multiReduce": lambda one, other: one.topology.multiReduce(one, other, TagsNothing(), "n"),
    "grouped multiReduce": lambda one, other: one.topology.multiReduce(
        one.groupBy("a"), other.groupBy("a"), GroupsNothing(), "n"
    ),
    "stateQuery": lambda one, other: one.stateQuery(
        other.topology.newStaticState(MemoryMapState.Factory()), "a", MapGet(), "n"
    ),
}


@pytest.mark.parametrize("call", STRANGERS)
def test_a_stream_or_state_of_another_topology_is_refused_and_leaves_both_as_they_were(call: str) -> None:
    one, other = stream("one"), stream("other")
    with pytest.raises(DefinitionError, match="of another TridentTopology cannot be used here"):
        STRANGERS[call](one, other)
    assert [len(each.topology.plan().nodes) for each in (one, other)] == [1, 1]


CALLS: dict[str, Any] = {
    "too many arguments": (
        lambda s: s.each("a", Split(), "w", "more"),
        r"no form of each takes \('a', Split, 'w', 'more'\); call it as each\(inputFields, function, functionFields\)",
    ),
    "unknown keyword": (lambda s: s.aggregate("a", Sum(), outputs="n"), r"no form of aggregate .*, outputs='n'\)"),
    "given twice": (lambda s: s.aggregate("a", Sum(), "n", functionFields="m"), "no form of aggregate takes"),
    "no function fields": (lambda s: s.aggregate("a", Sum()), r"call it as aggregate\(inputFields, agg, function"),
    "a function without function fields": (lambda s: s.each("a", Split()), r"without function fields; give \[\]"),
    "a filter without fields": (lambda s: s.each(lambda a: True), "no form of each takes"),
    "a map function for a function": (lambda s: s.each("a", Upper(), "w"), "takes a Function or a callable"),
    "a function for a map function": (lambda s: s.map(Split()), "take a function or a callable"),
    "a secret in the place of fields": (
        lambda s: s.aggregate("mysql://me:geheim@db/app", "n"),
        r"no form of aggregate takes \('mysql://me:\*\*\*@db/app', 'n'\)",
    ),
    "a factory for a state": (lambda s: s.stateQuery(MemoryMapState.Factory(), MapGet(), "n"), "takes a TridentState"),
    "a plain reducer over groups": (
        lambda s: s.topology.multiReduce(s.groupBy("a"), s.groupBy("a"), TagsNothing(), "n"),
        "or a GroupedMultiReducer over grouped streams; got TagsNothing over GroupedStream, GroupedStream",
    ),
    "a join of three streams by two keys": (
        lambda s: s.topology.join([s, s.project("a"), s.project("b")], ["a", "a"], ["a", "b"]),
        "join fields for 2 of 3 streams",
    ),
    "a function for a filter": (lambda s: s.filter("a", 5), "a filter is a Filter or a callable"),
    "a number for a function": (lambda s: s.map(5), "take a function or a callable"),
    "merge of nothing": (lambda s: s.topology.merge(), "no form of merge takes"),
    "multiReduce of nothing": (lambda s: s.topology.multiReduce(), "no form of multiReduce takes"),
    "newStream without a name": (lambda s: s.topology.newStream("", Batches("v", [])), "must be a name"),
    "fields that are no strings": (lambda s: s.project([1]), "must be a string"),
}


@pytest.mark.parametrize("slip", CALLS)
def test_a_slip_in_a_call_is_a_definition_error_that_says_so(slip: str) -> None:
    call, message = CALLS[slip]
    with pytest.raises(DefinitionError, match=message):
        call(stream())


def test_an_empty_topology_ends_at_once() -> None:
    with LocalCluster() as cluster:
        assert cluster.submitTopology("empty", None, TridentTopology().build()).awaitTermination(10)


class Shouting(BaseFunction):
    def excute(self, tuple: Any, collector: Any) -> None: ...


class Silent(BaseFilter): ...


class Halving(CombinerAggregator):
    def init(self, tuple: Any) -> Any: ...

    def combine(self, val1: Any, val2: Any) -> Any: ...


class Emitting(IBatchSpout):
    def emitBatches(self, batchId: int, collector: Any) -> None: ...


class Asking(BaseQueryFunction):
    def batchRetrieve(self, state: Any, tuples: Any) -> Any: ...


class Making(StateFactory):
    def make_state(self, *_: Any) -> Any: ...


def static(s: Any) -> Any:
    return s.topology.newStaticState(MemoryMapState.Factory())


INCOMPLETE: dict[str, tuple[Any, str]] = {
    "function": (
        lambda s: s.each("a", Shouting(), "x"),
        "each: Shouting does not define execute; did you mean execute instead of excute?",
    ),
    "filter": (lambda s: s.filter("a", Silent()), "filter: Silent does not define isKeep; it defines: nothing"),
    "each with a filter": (lambda s: s.each("a", Silent()), "each: Silent does not define isKeep"),
    "map": (lambda s: s.map(Shouting()), "map: Shouting does not define execute"),
    "combiner": (
        lambda s: s.aggregate("a", Halving(), "n"),
        "aggregate: Halving does not define zero; it defines: init, combine",
    ),
    "updater": (
        lambda s: s.partitionPersist(MemoryMapState.Factory(), "a", BaseStateUpdater()),
        "partitionPersist: BaseStateUpdater does not define updateState",
    ),
    "query": (lambda s: s.stateQuery(static(s), "a", Asking(), "n"), "stateQuery: Asking does not define execute"),
    "spout": (
        lambda s: s.topology.newStream("t", Emitting()),
        "newStream: Emitting does not define emitBatch; did you mean emitBatch instead of emitBatches?",
    ),
    "factory": (
        lambda s: s.partitionPersist(Making(), "a", RowUpdater()),
        "a state: Making does not define makeState; did you mean makeState instead of make_state?",
    ),
}


@pytest.mark.parametrize("place", INCOMPLETE)
def test_a_method_that_is_missing_or_misspelt_is_told_on_the_line_that_defines(place: str) -> None:
    define, told = INCOMPLETE[place]
    with pytest.raises(DefinitionError, match=re.escape(told)):
        define(stream())


CLASSES: dict[str, Any] = {
    "each": lambda s: s.each("a", Split, "x"),
    "filter": lambda s: s.filter("a", Silent),
    "map": lambda s: s.map(Shouting),
    "aggregate": lambda s: s.aggregate("a", Count, "n"),
    "persistentAggregate": lambda s: s.persistentAggregate(MemoryMapState.Factory(), Count, "n"),
    "partitionPersist": lambda s: s.partitionPersist(MemoryMapState.Factory(), "a", RowUpdater),
    "stateQuery": lambda s: s.stateQuery(static(s), "a", MapGet, "n"),
    "a state": lambda s: s.partitionPersist(MemoryMapState.Factory, "a", RowUpdater()),
    "newStream": lambda s: s.topology.newStream("t", Batches),
}


@pytest.mark.parametrize("place", CLASSES)
def test_a_class_where_an_object_is_meant_is_told(place: str) -> None:
    with pytest.raises(DefinitionError, match=rf"{place} got the class \w+; pass an object of it: \w+\(\.\.\.\)"):
        CLASSES[place](stream())


def test_a_class_that_is_no_operation_may_stand_for_a_function() -> None:
    assert stream().each("a", int, "n").map(tuple).getOutputFields().names == ("a", "b", "n")


def test_every_method_of_an_interface_without_a_body_is_one_that_must_be_there() -> None:
    """What is raised as NotImplementedError at run time is checked when a topology is defined."""
    from trident_py.operations import base as operations
    from trident_py.spouts import interfaces, partitioned
    from trident_py.state import base as state

    found = [
        f"{kind.__name__}.{name}"
        for module in (operations, state, interfaces, partitioned)
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == module.__name__
        for name, method in vars(kind).items()
        if "raise NotImplementedError" in _source(method) and not getattr(method, "__isabstractmethod__", False)
    ]
    assert found == ["ITridentDataSource.getOutputFields", "IRichSpout.getOutputFields"]  # asked for when it is defined


def _source(method: Any) -> str:
    """Of a function of ours; a dataclass makes some without a source."""
    try:
        return inspect.getsource(method) if inspect.isfunction(method) else ""
    except OSError:
        return ""
