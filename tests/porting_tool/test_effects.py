"""What is known of Java's classes when a translated function is read: what a call changes, and what follows from it."""

from __future__ import annotations

import importlib
import inspect
import itertools
import random
import re
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trident_py import LocalDRPC, StormSubmitter
from trident_py.extras.determinism import libraries
from trident_py.extras.determinism.reader import read
from trident_py.extras.moving import java
from trident_py.extras.moving.port.modules import translate_files
from trident_py.operations import Function

from . import ours
from .cases import case

LETTERS = {"a": 1, "b": 2, "c": 3}


def tree() -> java.TreeMap:
    return java.TreeMap(LETTERS)


def entry(of: Any) -> Any:
    return next(iter(java.entry_set(of)))


def matcher() -> java.Matcher:
    return java.Matcher(re.compile("(a)|b"), "ab")


def matched() -> java.Matcher:
    found = matcher()
    found.find()
    return found


def iterator() -> java.JavaIterator:
    made = java.JavaIterator(["a", "b"])
    made.next()
    return made


def accessed() -> java.LinkedHashMap:
    made = java.LinkedHashMap(16, 0.75, True)
    made["a"], made["b"] = 1, 2
    return made


SAMPLES: list[Callable[[], Any]] = [
    tree,
    matcher,
    matched,
    iterator,
    accessed,
    lambda: tree().tailMap("b"),
    lambda: java.TreeSet("abc"),
    lambda: java.HashMap(LETTERS),
    lambda: java.ConcurrentHashMap(LETTERS),
    lambda: java.HashSet("abc"),
    lambda: java.LinkedHashSet("abc"),
    lambda: java.key_set(java.HashMap(LETTERS)),
    lambda: java.entry_set(java.HashMap(LETTERS)),
    lambda: java.values_of(java.HashMap(LETTERS)),
    lambda: entry(java.HashMap(LETTERS)),
    lambda: java.LinkedList("abc"),
    lambda: java.PriorityQueue("abc"),
    lambda: java.sub_list(["a", "b"], 0, 1),
    lambda: java.StringBuilder("abc"),
    lambda: java.StringJoiner(","),
    lambda: java.StringTokenizer("a b"),
    lambda: java.Optional("a"),
    lambda: java.stream([1, 2]),
    lambda: java.Atomic(1),
    lambda: java.Random(5),
    lambda: java.Date(1000),
    lambda: java.Instant(1),
    lambda: java.JavaDuration(5),
    lambda: java.SimpleDateFormat("yyyy"),
    lambda: java.DateTimeFormatter("yyyy", java.zone_of("UTC")),
    lambda: java.JSONObject(LETTERS),
    lambda: java.JSONArray([1]),
    java.JSONParser,
    lambda: java.OrgJSONObject.parse('{"a": 1, "b": "x", "c": true, "d": {}, "e": []}'),
    lambda: java.OrgJSONArray.parse('[1, "x", true, {}, []]'),
    lambda: java.JsonNode({"a": 1}),
    lambda: java.JsonNode([1]),
    java.ObjectMapper,
]
VALUES: list[Callable[[], Any]] = [
    lambda: 0,
    lambda: 1,
    lambda: 2,
    lambda: 3,
    lambda: 4,
    lambda: True,
    lambda: "a",
    lambda: "b",
    lambda: "c",
    lambda: "d",
    lambda: "e",
    lambda: "zz",
    lambda: "1970",
    lambda: "1970-01-01T00:00:00Z",
    lambda: "[1]",
    lambda: ["d", "b", "a", "c"],
    lambda: {"c": 5},
    lambda: '{"a": 1}',
    lambda: lambda *values: 1,
    lambda: lambda *values: [],
    lambda: java.Optional,
    lambda: java.Date(1),
    lambda: java.Instant(2),
    lambda: java.zone_of("UTC"),
    lambda: java.Random(3),
    lambda: java.HashMap(LETTERS),
    lambda: java.HashSet("ab"),
    lambda: java.Atomic(1),
    lambda: entry(java.HashMap(LETTERS)),
    lambda: "value",
]
"""What is given to methods and functions."""
ENOUGH, MOST = 50, 9000
"""How many calls that take what is given show what one does; how many are tried."""
MORE = ("MapEntry.getValue", "each_of")
"""What may change what it is given, and does not here."""


def state_of(value: Any, depth: int = 4) -> Any:
    """What an object holds, as it can be compared."""
    if depth == 0 or isinstance(value, str | int | float | bool | type(None) | re.Match | re.Pattern):
        return value if isinstance(value, str | int | float) else str(value)
    items = dict.items(value) if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    inside = [state_of(one, depth - 1) for one in items]
    return inside, {name: state_of(one, depth - 1) for name, one in getattr(value, "__dict__", {}).items()}


def calls(function: Callable[..., Any], most: int) -> Iterator[tuple[Any, ...]]:
    """Arguments of each number that the function takes."""
    kinds = [one.kind for one in inspect.signature(function).parameters.values()]
    several = inspect.Parameter.VAR_POSITIONAL in kinds
    numbers = range(min(most if several else len(kinds), most) + 1)
    drawn = random.Random(1)
    for number in numbers[:2]:
        yield from itertools.product(VALUES, repeat=number)
    for _ in range(MOST if len(numbers) > 2 else 0):
        yield tuple(drawn.choices(VALUES, k=drawn.choice(numbers[2:])))


def observe(name: str, make: Callable[[], Any], most: int = 4) -> Iterator[set[int]]:
    """What calls change, each that takes what it is given: 0 is the object or module, then the arguments count."""
    for makers in calls(getattr(make(), name), most):
        owner, given = make(), [one() for one in makers]
        before = [state_of(one) for one in (owner, *given)]
        try:
            getattr(owner, name)(*given)
        except NotImplementedError:  # a view that takes no values
            pass
        except Exception:
            continue
        after = [state_of(one) for one in (owner, *given)]
        yield {at for at, state in enumerate(after) if state != before[at]}


def known_of(kind: type) -> dict[str, Any]:
    effects = {name: libraries.effect_on(kind, name) for name in dir(kind) if name[:1] != "_"}
    return {name: effect for name, effect in effects.items() if effect is not None}


METHODS = sorted({(type(make()), name) for make in SAMPLES for name in known_of(type(make()))}, key=str)


@pytest.mark.parametrize(("kind", "name"), METHODS, ids=lambda one: one if isinstance(one, str) else one.__name__)
def test_a_method_of_javas_classes_is_known_as_what_it_does(kind: type, name: str) -> None:
    samples = [make for make in SAMPLES if type(make()) is kind]
    taken = [found for make in samples for found in itertools.islice(observe(name, make), ENOUGH)]
    assert taken, f"{name} takes nothing of what there is"
    found = set().union(*taken)
    effect = known_of(kind)[name]
    assert (0 in found) == effect.changes_owner or f"{kind.__name__}.{name}" in MORE
    assert {effect.parameters[at - 1] for at in found if at} <= {one for one, _ in effect.changed}


def test_no_class_of_java_is_left_out() -> None:
    samples = tuple(type(make()) for make in SAMPLES)
    kinds = {name: kind for name in java.__all__ if isinstance(kind := getattr(java, name), type) and known_of(kind)}
    left = {name for name, kind in kinds.items() if not any(issubclass(sample, kind) for sample in samples)}
    assert left == {"StateFactoryOf", "ValueUpdaterOf"}  # which call what they are given


PLAIN = ("numbers", "decimals", "strings", "dates", "logs", "storm")
FUNCTIONS = [
    name
    for name in java.__all__
    if isinstance(getattr(java, name), types.FunctionType)
    and libraries.belongs(getattr(java, name))
    and getattr(java, name).__module__.rpartition(".")[2] not in PLAIN  # which take nothing that can change
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_known_by_what_it_changes(name: str) -> None:
    effect = libraries.effect_of(getattr(java, name))
    changed, found = {one for one, _ in effect.changed}, set()
    for number, places in enumerate(observe(name, lambda: types.SimpleNamespace(**{name: getattr(java, name)}))):
        found |= {effect.parameters[min(at, len(effect.parameters)) - 1] for at in places if at}
        if number >= ENOUGH and found >= changed:
            break
    assert found == changed or name in MORE


CLOCK = {"current_time_millis": "time.time_ns", "Random": "time.time_ns"}


def test_only_these_ask_the_clock() -> None:
    kinds = [(name, getattr(java, name)) for name in java.__all__ if libraries.belongs(getattr(java, name))]
    asked = {name: libraries.effect_of(thing).chance for name, thing in kinds if isinstance(thing, types.FunctionType)}
    made = {name: libraries.effect_on(kind, "__init__") for name, kind in kinds if isinstance(kind, type)}
    asked |= {name: effect.chance for name, effect in made.items() if effect is not None}
    assert {name: chance for name, chance in asked.items() if chance} == CLOCK


# -- what follows ---------------------------------------------------------------------------------------------------


class OfJava(Function):
    def __init__(self) -> None:
        self.counts = java.HashMap()
        self.limits = java.TreeMap(LETTERS)
        self.random = java.Random(5)
        self.count = java.Atomic(0)
        self.format = java.SimpleDateFormat("yyyy")
        self.mapper = java.ObjectMapper()

    def prepare(self, conf: Any, context: Any) -> None:
        self.words = java.HashSet()
        self.words.add("the")
        java.put(self.counts, "the", 1)


def of_java(execute: Callable[..., Any]) -> Function:
    return type("Case", (OfJava,), {"execute": execute, "__module__": __name__})()


KEPT: dict[str, Callable[[Any, Any], Any]] = {
    "self.words.add(word)": lambda self, word: self.words.add(word),
    "java.put(self.counts, word, 1)": lambda self, word: java.put(self.counts, word, 1),
    "self.random.nextInt(3)": lambda self, word: self.random.nextInt(3) + len(word),
    "self.count.getAndAdd(1)": lambda self, word: self.count.getAndAdd(1),
    "self.limits.pollFirstEntry()": lambda self, word: self.limits.pollFirstEntry().getKey(),
    "self.limits.tailMap(word).clear()": lambda self, word: self.limits.tailMap(word).clear(),
    "java.key_set(self.limits).remove(word)": lambda self, word: java.key_set(self.limits).remove(word),
    "java.JavaIterator(java.key_set(self.limits)).remove()": (
        lambda self, word: java.JavaIterator(java.key_set(self.limits)).remove()
    ),
    "e.setValue(1)": lambda self, word: java.stream(java.entry_set(self.limits)).forEach(lambda e: e.setValue(1)),
    "self.format.setLenient(False)": lambda self, word: self.format.setLenient(False),
}
CHANCE: dict[str, Callable[[Any, Any], Any]] = {
    "the clock": lambda self, word: java.current_time_millis(),
    "a random number": lambda self, word: java.Random().nextInt(10),
}
STEADY: dict[str, Callable[[Any, Any], Any]] = {
    "reads": lambda self, word: [self.words, self.counts.get(word), self.limits.floorKey(word), word in self.words],
    "a map of its own": lambda self, word: java.put(java.HashMap(self.counts), word, 1),
    "a text": lambda self, word: str(java.StringBuilder(word).append(1).reverse()),
    "a seed": lambda self, word: java.Random(len(word)).nextInt(3),
    "an iterator over what is kept": lambda self, word: java.JavaIterator(java.key_set(self.limits)).next(),
    "a tree of a mapper": lambda self, word: self.mapper.createObjectNode().put("word", word).putArray("all"),
    "a date": lambda self, word: self.format.format(self.format.parse(word)),
    "a stream": lambda self, word: java.stream(java.entry_set(self.limits)).map(lambda e: e.getKey()).toList(),
}


@pytest.mark.parametrize("text", KEPT)
def test_what_is_kept_in_an_object_of_java_is_found(text: str) -> None:
    found = [finding.what for finding in read(of_java(KEPT[text]))]
    assert any(what.startswith(f"keeps {text} from call to call (test_effects.py:") for what in found), found


@pytest.mark.parametrize("text", CHANCE)
def test_chance_is_found_in_java(text: str) -> None:
    found = [finding.what for finding in read(of_java(CHANCE[text]))]
    assert any(what.startswith("calls time.time_ns (test_effects.py:") for what in found), found


@pytest.mark.parametrize("text", STEADY)
def test_what_gives_the_same_again_is_known(text: str) -> None:
    assert [finding.what for finding in read(of_java(STEADY[text]))] == []


STEADY_CASES = [
    "AccessLogs", "CollectionTraps", "JacksonEvents", "PipedWords", "StreamsOfWords", "TextTraps", "TickerQueries",
    "VisitTimes",
]  # fmt: skip


@pytest.mark.parametrize("name", STEADY_CASES)
def test_a_translated_topology_that_gives_the_same_again_is_known(name: str, tmp_path: Path) -> None:
    causes = [cause for each in topology_of(name, tmp_path).guarantees() for cause in each.functions]
    assert causes == []


def test_a_translated_function_that_keeps_scores_is_found(tmp_path: Path) -> None:
    causes = [cause for each in topology_of("TopScores", tmp_path).guarantees() for cause in each.functions]
    assert any(cause.startswith("Grade keeps self.last.append(score) from call to call") for cause in causes), causes


def topology_of(name: str, folder: Path) -> Any:
    """The topology of a translated case, as its start submits it."""
    one, given = case(name), []
    with pytest.MonkeyPatch.context() as patch, LocalDRPC() as drpc:
        patch.syspath_prepend(str(folder))
        patch.setattr(StormSubmitter, "submitTopology", lambda *args: given.append(args[-1]))
        module = ours.translate([one], folder)[name]
        one = one.prepare(folder)
        ours.start(importlib.import_module(module), one, drpc, StormSubmitter.submitTopology)
    return given[0]


PROGRAM = """
import java.util.*;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.*;
import org.apache.storm.trident.operation.*;
import org.apache.storm.trident.operation.builtin.Count;
import org.apache.storm.trident.testing.*;
import org.apache.storm.trident.tuple.*;
import org.apache.storm.tuple.*;

public class Keyed {
    public static class Key extends BaseFunction {
        private final Map<String, String> seen = new HashMap<>();

        public void execute(TridentTuple tuple, TridentCollector collector) {
            String word = tuple.getString(0);
            StringBuilder key = new StringBuilder(word);
            key.setLength(1);
            TreeMap<String, Integer> sorted = new TreeMap<>();
            sorted.put(key.toString(), 1);
            %s
            collector.emit(new Values(sorted.firstKey()));
        }
    }

    public static StormTopology build() {
        TridentTopology topology = new TridentTopology();
        topology.newStream("words", new FixedBatchSpout(new Fields("word"), 1, new Values("be")))
            .each(new Fields("word"), new Key(), new Fields("key")).groupBy(new Fields("key"))
            .persistentAggregate(new MemoryMapState.Factory(), new Count(), new Fields("count"));
        return topology.build();
    }
}
"""
GUARANTEES = {
    "": "exactly once",
    "sorted.put(seen.get(word), 2);": "exactly once",
    'if (seen.put(word, word) != null) { sorted.put("again", 2); }': "at least once",
    'sorted.put("" + System.currentTimeMillis(), 2);': "at least once",
    'sorted.put("" + new Random().nextInt(5), 2);': "at least once",
    'sorted.put("" + new Random(5).nextInt(5), 2);': "exactly once",
}


@pytest.mark.parametrize("statement", GUARANTEES)
def test_a_translated_topology_has_the_guarantee_of_its_functions(statement: str, tmp_path: Path) -> None:
    (tmp_path / "Keyed.java").write_text(PROGRAM % statement)
    [module] = translate_files([tmp_path / "Keyed.java"])
    assert module.report.findings == []
    (tmp_path / "keyed.py").write_text(module.text)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        patch.delitem(sys.modules, "keyed", raising=False)
        [counts] = importlib.import_module("keyed").build().guarantees()
    assert counts.guarantee == GUARANTEES[statement]
