"""The signatures of the fluent methods: mypy and the run time take the same calls, and refuse the same."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_overloads

import pytest

from trident_py import DefinitionError, GroupedStream, Stream, TridentTopology
from trident_py.topology import ChainedAggregatorDeclarer

ROOT = Path(__file__).parent.parent
TARGETS = {
    TridentTopology: "topology",
    Stream: "stream",
    GroupedStream: "grouped",
    ChainedAggregatorDeclarer: "stream.chainedAgg()",
}
PREAMBLE = """
from typing import Any

from states.sql import AppendState, InsertIgnoreState, SqlMapState
from trident_py import Fields, JoinOutFieldsMode, JoinType, LocalCluster, TridentTopology
from trident_py.operations import FlatMapFunction, Function, GroupedMultiReducer, MapFunction, MultiReducer
from trident_py.operations.builtin import Count, FilterNull, MapGet, Max, Sum
from trident_py.state import StateSpec, StateUpdater
from trident_py.testing import FixedBatchSpout, MemoryMapState, Split
from trident_py.windowing import InMemoryWindowsStoreFactory, TumblingCountWindow


class Updating(StateUpdater):
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None: ...


class Upper(MapFunction):
    def execute(self, tuple: Any) -> Any: ...


class Letters(FlatMapFunction):
    def execute(self, tuple: Any) -> list[Any]:
        return []


class Tags(MultiReducer):
    def init(self, collector: Any) -> None: ...

    def execute(self, state: Any, streamIndex: int, input: Any, collector: Any) -> None: ...

    def complete(self, state: Any, collector: Any) -> None: ...


class GroupTags(GroupedMultiReducer):
    def init(self, collector: Any, group: Any) -> None: ...

    def execute(self, state: Any, streamIndex: int, group: Any, input: Any, collector: Any) -> None: ...

    def complete(self, state: Any, group: Any, collector: Any) -> None: ...

"""
STREAMS = """
topology = TridentTopology()
stream = topology.newStream("s", FixedBatchSpout(["a", "b"], 1))
grouped = stream.groupBy("a")
state = topology.newStaticState(MemoryMapState.Factory())
"""
SAMPLES = {
    "AnyFunction": "Split()",
    "AnyFilter": "FilterNull()",
    "AnyAggregator": "Max('a')",
    "KeepingAggregator": "Count()",
    "AnyFactory": "MemoryMapState.Factory()",
    "Updates": "Updating()",
    "Queries": "MapGet()",
    "WindowConfig": "TumblingCountWindow.of(2)",
    "MakesWindows": "InMemoryWindowsStoreFactory()",
    "TridentState": "state",
    "str | None": "'named'",
    "MultiReducer": "Tags()",
    "GroupedMultiReducer": "GroupTags()",
    "Stream": "stream",
    "AnyStream": "stream",
    "GroupedStream": "grouped",
    "Sequence[Stream]": "[stream, stream]",
    "Sequence[AnyStream]": "[stream, grouped]",
    "Sequence[GroupedStream]": "[grouped, grouped]",
    "Sequence[FieldsLike]": "['a', Fields('b')]",
    "JoinType | Sequence[JoinType]": "[JoinType.INNER, JoinType.OUTER]",
    "JoinOutFieldsMode": "JoinOutFieldsMode.PRESERVE",
}
FIELDS = {
    "functionFields": "'n'",
    "outFields": "['k', 'l', 'm', 'n']",
    "outputFields": "['x', 'y']",
    "windowFields": "['x', 'y']",
}
# Not of the call's form: whether a field is there, or there already, no type can say.
ABOUT_FIELDS = re.compile("non-existent field|duplicate field|must be distinct")
WRONG = [
    "stream.each('a', Split())",  # a function needs function fields
    "stream.each('a', FilterNull(), 'n')",  # a filter has none
    "stream.each('a', Split, 'n')",  # the class in place of an object
    "stream.each('a', Upper(), 'n')",  # a map function takes the tuple alone
    "stream.each('a', lambda a: 5, 'n')",  # no iterable of results
    "stream.map(Split(), 'n')",
    "stream.flatMap(lambda t: 5)",
    "stream.peek(5)",
    "stream.aggregate('a', Count())",  # no function fields
    "stream.aggregate('a', sum, 'n')",  # a callable is no aggregator
    "stream.aggregate(Count(), 'n', inputFields='a')",
    "stream.persistentAggregate(MemoryMapState.Factory, Count(), 'n')",
    "stream.persistentAggregate(MemoryMapState.Factory(), Max('a'), 'n')",  # a state keeps no general aggregator's
    "grouped.persistentAggregate(Count(), 'n')",
    "stream.partitionPersist(MemoryMapState.Factory(), 'a', FilterNull())",
    "stream.partitionPersist(Updating(), 'a')",
    "stream.stateQuery(MemoryMapState.Factory(), MapGet(), 'n')",
    "stream.stateQuery(state, 'a', Updating(), 'n')",
    "grouped.map(Upper())",  # a grouped stream has no map
    "stream.groupBy(5)",
    "stream.project([1])",
    "topology.merge()",
    "topology.multiReduce(stream, grouped, Tags(), 'n')",
    "topology.multiReduce(stream, stream, GroupTags(), 'n')",
    "topology.join(stream, 'a', stream, 'a')",
    "topology.join(stream, 'a', stream, 'a', ['k', 'l'], mode='PRESERVE')",
    "topology.newStream('t', 'a spout')",
    "topology.newStream('t', FixedBatchSpout)",
    "topology.newStaticState({})",
]
RIGHT = [
    "stream.each('a', lambda a: [a], 'n')",
    "stream.each(['a', 'b'], lambda a, b: None, [])",
    "stream.each('a', lambda a: a)",
    "stream.filter(lambda a, b: a == b)",
    "stream.filter(None, FilterNull())",
    "stream.map(lambda t: [t[0]], 'n').flatMap(Letters()).peek(print)",
    "stream.map(Upper()).flatMap(lambda t: [t])",
    "stream.chainedAgg().aggregate(Count(), 'n').aggregate('a', Sum(), 'm').chainEnd()",
    "stream.partitionPersist(AppendState('sqlite:///t.db', 't'))",
    "stream.partitionPersist(StateSpec(InsertIgnoreState('sqlite:///t.db', 't', 'a'), 2), ['a', 'b'], stateName='t')",
    "stream.partitionPersist(AppendState('sqlite:///t.db', 't'), functionFields='x').newValuesStream()",
    "grouped.persistentAggregate(SqlMapState.opaque('sqlite:///t.db', 't', key='a string'), Count(), 'n')",
    "topology.join(stream, 'a', stream, 'a', ['k', 'l', 'm'], JoinType.mixed(JoinType.INNER, JoinType.OUTER))",
]


class Call(NamedTuple):
    """A call as text: the method, what stands before it, and the arguments, each with its keyword or None."""

    target: str
    arguments: tuple[tuple[str | None, str], ...]

    def __str__(self) -> str:
        texts = [text if name is None else f"{name}={text}" for name, text in self.arguments]
        return f"{self.target}({', '.join(texts)})"

    def with_arguments(self, *arguments: tuple[str | None, str]) -> Call:
        return self._replace(arguments=arguments)


def methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    for kind, target in TARGETS.items():
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if get_overloads(method):
                yield f"{target}.{name}", method


def fitting(target: str, form: Callable[..., Any]) -> Iterator[Call]:
    """Calls that this signature takes: all arguments by place, all by keyword, the required ones alone."""
    parameters = list(inspect.signature(form).parameters.values())[1:]
    by_place = [(each.name if each.kind is each.KEYWORD_ONLY else None, sample(target, each)) for each in parameters]
    named = [each for each in parameters if each.kind is not each.VAR_POSITIONAL]
    yield Call(target, tuple(by_place))
    yield Call(target, tuple((each.name, sample(target, each)) for each in named))
    yield Call(target, tuple((None, sample(target, each)) for each in named if each.default is each.empty))


def sample(target: str, parameter: inspect.Parameter) -> str:
    if parameter.annotation.startswith("FieldsLike"):
        return FIELDS.get(parameter.name, "'a'")
    if parameter.name == "factory" and target.endswith("partitionPersist"):
        return "AppendState('sqlite:///t.db', 't')"  # which has an updater of its own
    return SAMPLES[parameter.annotation]


def slips(call: Call) -> Iterator[Call]:
    """The call with one slip: an argument less, one more, another in its place, two exchanged, a keyword misspelt."""
    given = call.arguments
    for i, (name, text) in enumerate(given):
        yield call.with_arguments(*given[:i], *given[i + 1 :])
        yield call.with_arguments(*given[:i], *given[i + 1 : i + 2], given[i], *given[i + 2 :])
        for other in ("None", "5", "object()", "stream" if text.startswith(("'", "[")) else "'b'"):
            yield call.with_arguments(*given[:i], (name, other), *given[i + 1 :])
        if name is not None:
            yield call.with_arguments(*given[:i], (f"{name}_", text), *given[i + 1 :])
    if all(name is None for name, _ in given):
        yield call.with_arguments(*given, (None, "'more'"))
        yield call.with_arguments(*given, (None, "object()"))


def is_call(call: Call) -> bool:
    """Python itself wants the keywords last."""
    names = [name for name, _ in call.arguments]
    return None not in names[next((i for i, name in enumerate(names) if name is not None), len(names)) :]


def refused(call: str) -> str | None:
    """What the run time says against a call's form, if anything."""
    names = dict(KNOWN)
    exec(STREAMS, names)
    try:
        eval(call, names)
    except (DefinitionError, AttributeError) as error:
        return None if ABOUT_FIELDS.search(str(error)) else str(error)
    return None


KNOWN: dict[str, Any] = {}
exec(PREAMBLE, KNOWN)
CALLS = [call for target, method in methods() for form in get_overloads(method) for call in fitting(target, form)]
FITTING = sorted(set(map(str, CALLS)))
SLIPS = sorted({str(slip) for call in CALLS for slip in slips(call) if is_call(slip)} - set(FITTING))


@pytest.fixture(scope="module")
def mypy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What mypy says of every call, and of the examples under their file's name; one run for all."""
    file = tmp_path_factory.mktemp("signatures") / "calls.py"
    calls = [*FITTING, *SLIPS, *WRONG, *RIGHT]
    file.write_text("\n".join([PREAMBLE + STREAMS, *calls, ""]))
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", "--no-pretty"]
    files = [str(file), *map(str, sorted((ROOT / "examples").glob("*.py")))]
    done = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.stderr == ""
    first = (PREAMBLE + STREAMS).count("\n") + 2
    found: dict[str, str] = {}
    for line in done.stdout.splitlines():
        match = re.match(r"(.*?):(\d+): error: (.*)", line)
        if match and match[1].endswith("calls.py"):
            found.setdefault(calls[int(match[2]) - first] if int(match[2]) >= first else "preamble", match[3])
        elif match:
            found[f"{match[1]}:{match[2]}"] = match[3]
    return found


def test_every_overload_is_taken_as_it_is_written(mypy: dict[str, str]) -> None:
    assert {call: text for call in [*FITTING, *RIGHT] if (text := refused(call) or mypy.get(call))} == {}


def test_a_call_that_no_overload_takes_is_refused_at_run_time_too(mypy: dict[str, str]) -> None:
    verdicts = {call: (call in mypy, text) for call in SLIPS for text in [refused(call)]}
    assert {call: text for call, (wrong, text) in verdicts.items() if wrong != (text is not None)} == {}
    assert sum(wrong for wrong, _ in verdicts.values()) > 500


def test_mypy_finds_what_is_wrong_in_a_topology(mypy: dict[str, str]) -> None:
    assert [call for call in WRONG if call not in mypy] == []


def test_the_examples_are_right_for_mypy(mypy: dict[str, str]) -> None:
    assert {place: text for place, text in mypy.items() if place.startswith(("examples", "preamble"))} == {}


def test_every_method_that_takes_any_arguments_says_which() -> None:
    loose = [
        f"{kind.__name__}.{name}"
        for kind in TARGETS
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and not get_overloads(method)
        if "args" in inspect.signature(method).parameters
    ]
    assert loose == []
