"""What a topology file can say: each form, against the same calls in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import states
from trident_py import Config, LocalCluster, Topology, TridentTopology
from trident_py.errors import DefinitionError
from trident_py.extras.topology_files.schema import schema
from trident_py.operations.builtin import Count, FilterNull
from trident_py.testing import FixedBatchSpout, collect
from trident_py.topology_files import load
from trident_py.windowing import (
    Duration,
    SlidingCountWindow,
    SlidingDurationWindow,
    TumblingCountWindow,
    TumblingDurationWindow,
)

MODULE = """
from trident_py import TridentTopology
from trident_py.testing import FixedBatchSpout

class Source:
    def __init__(self, *words):
        self.words = words

    def getTopology(self, conf):
        topology = TridentTopology()
        topology.newStream(conf["words.name"], FixedBatchSpout("word", 1, *([word] for word in self.words)))
        return topology

    def other(self, conf):
        return self.getTopology(conf).build()

def build(counts, batch=1):
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word string", batch, ["a"]))
    words.partitionPersist(counts, "word")
    return topology

def shout(word):
    return [word.upper()]

def refuse_b(word):
    if word == "b":
        raise ValueError("no b")
    return [1]

def longest(a, b):
    return len(a[0]) - len(b[0])
"""
WORDS = "{className: FixedBatchSpout, constructorArgs: [word, 2, [a], [b], [a]]}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "forms.py").write_text(MODULE)
    return tmp_path


def written(folder: Path, text: str) -> Path:
    """The file. The schema takes it too: every file here is a valid one."""
    validator = jsonschema.Draft202012Validator(schema())
    assert [error.message for error in validator.iter_errors(yaml.safe_load(text))] == []
    file = folder / "trident.yml"
    file.write_text(text)
    return file


def run(defined: Any, *names: str) -> dict[str, list[tuple]]:
    """The rows of these streams of the file, in order."""
    for name in names:
        collect(defined.streams[name], name)
    with LocalCluster() as cluster:
        running = cluster.submitTopology(defined.name, defined.configuration, defined.build())
        assert running.awaitTermination(60)
        return {name: [tuple(row) for rows in running.collected(name).values() for row in rows] for name in names}


def test_branches_merges_joins_and_reducers(folder: Path) -> None:
    file = written(folder, f"""
name: forms
streams:
  words: {{newStream: {{spout: {WORDS}}}}}
  loud: {{stream: words, operations: [each: {{inputFields: word, function: "forms:shout", functionFields: loud}}]}}
  merged: {{merge: [words, words]}}
  joined:
    join: {{streams: [words, loud], joinFields: [word, word], outFields: [word, loud], type: [INNER, OUTER]}}
  kept:
    join: {{streams: [words, loud], joinFields: [[word], [word]], outFields: [a, b, c], mode: PRESERVE}}
  counts:
    stream: loud
    operations:
      - chainedAgg
      - aggregate: {{agg: Count, functionFields: n}}
      - aggregate: {{inputFields: word, agg: {{className: Max, constructorArgs: [word]}}, functionFields: last}}
      - chainEnd
  best: {{stream: words, operations: [global, {{max: "forms:longest"}}]}}
""")
    found = run(load(file), "merged", "joined", "kept", "counts")
    assert sorted(found["merged"]) == [("a",)] * 4 + [("b",)] * 2
    assert sorted(found["joined"]) == [("a", "A"), ("a", "A"), ("b", "B")]
    assert sorted(found["kept"]) == [("a", "a", "A"), ("a", "a", "A"), ("b", "b", "B")]
    assert found["counts"] == [(2, "b"), (1, "a")]


def test_windows_of_all_kinds(folder: Path) -> None:
    file = written(folder, f"""
name: windows
states:
  kept: {{type: window, url: "sqlite:///w.db", table: w}}
streams:
  words: {{newStream: {{spout: {WORDS}}}}}
  tumbling:
    stream: words
    operations: [{{tumblingWindow: {{windowLength: 2, state: kept, aggregator: Count, functionFields: n}}}}]
  sliding:
    stream: words
    operations:
      - slidingWindow:
          windowLength: {{minutes: 2}}
          slideLength: {{seconds: 30}}
          state: "trident_py.windowing:InMemoryWindowsStoreFactory"
          aggregator: Count
          functionFields: n
          windowFields: [start, end]
  data: {{stream: words, operations: [{{window: {{windowConfig: {{windowLength: {{hours: 1}}, timestampField: word,
          lag: {{milliseconds: 7}}}}, aggregator: Count, functionFields: n}}}}]}}
  object:
    stream: words
    operations:
      - window:
          windowConfig: {{className: "trident_py.windowing:TumblingCountWindow.of", constructorArgs: [3]}}
          aggregator: Count
          functionFields: n
""")
    plan = load(file).build().plan
    specs: list[Any] = [getattr(node, "spec", None) for node in plan.nodes]
    configs = [spec.updater.config for spec in specs if type(spec).__name__ == "WindowPersist"]
    assert configs == [
        SlidingCountWindow.of(2, 2),
        SlidingDurationWindow.of(Duration.minutes(2), Duration.seconds(30)),
        TumblingDurationWindow.of(Duration.hours(1)).withTimestampField("word").withLag(Duration.of(7)),
        TumblingCountWindow.of(3),
    ]


def test_states_by_name_inline_and_as_objects(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "states.yaml").write_text('states: {rows: {type: append, url: "sqlite:///rows.db", table: rows}}\n')
    file = written(folder, f"""
name: states
states: states.yaml
streams:
  words:
    newStream: {{spout: {WORDS}}}
    operations: [{{partitionPersist: {{state: rows, inputFields: word, stateName: mine}}}}]
  inline:
    stream: more
    operations:
      - partitionPersist: {{state: {{type: append, url: "sqlite:///rows.db", table: inline}}, inputFields: word}}
  more: {{newStream: {{spout: {WORDS}}}}}
""")
    defined = load(file)
    monkeypatch.chdir(folder)
    assert defined.states == states.load("states.yaml")
    used = [state for _, state in defined.build().plan.updates()]
    assert [state.name for state in used] == ["mine", "inline"]
    assert str(used[0].factory.url) == str(used[1].factory.url) == f"sqlite:///{folder}/rows.db"


def test_new_values_and_queries_of_several_streams(folder: Path) -> None:
    file = written(folder, f"""
name: values
states: {{counts: {{className: "trident_py.testing:MemoryMapState.Factory"}}}}
streams:
  asked:
    stream: again
    operations:
      - stateQuery: {{state: counts, inputFields: word, function: MapGet, functionFields: n}}
      - filter: {{inputFields: n, filter: FilterNull}}
      - project: word
  again: {{newStream: {{spout: {WORDS}}}}}
  counts:
    newStream: {{spout: {WORDS}}}
    operations:
      - groupBy: word
      - persistentAggregate: {{state: counts, agg: Count, functionFields: n}}
      - parallelismHint: 2
      - newValuesStream
""")
    defined = load(file)
    nodes = defined.build().plan.nodes
    assert [node.spout_id for node in nodes if hasattr(node, "spout_id")] == ["again", "counts"]
    found = run(defined, "counts")
    assert sorted(found["counts"]) == [("a", 1), ("a", 2), ("b", 1)]


def test_components_are_made_once_and_methods_called(folder: Path) -> None:
    file = written(folder, """
name: components
components:
  shared: {className: "trident_py.testing:MemoryMapState.Factory"}
  spout:
    className: FixedBatchSpout
    constructorArgs: {fields: word, maxBatchSize: 2}
    configMethods: [{name: setCycle, args: [true]}]
states: {a: {ref: shared}, b: {ref: shared}}
streams: {words: {newStream: {spout: {ref: spout}}}}
""")
    defined = load(file)
    assert defined.states["a"] is defined.states["b"]
    assert defined.build().plan.nodes[0].spout._cycle is True  # type: ignore[attr-defined]


def test_a_builder_in_python(folder: Path) -> None:
    head = "name: source\nconfiguration: {words.name: mine, spark.sql.shuffle.partitions: 3}\n"
    source = 'topologySource: {className: "forms:Source", constructorArgs: [a, b]'
    for end, kind in (("}", TridentTopology), (", methodName: other}", Topology)):
        defined = load(written(folder, head + source + end))
        assert isinstance(defined.topology, kind)
        assert [node.spout_id for node in defined.build().plan.nodes] == ["mine"]  # type: ignore[attr-defined]
    function = """
name: source
states: {counts: {type: append, url: "sqlite:///c.db", table: c}}
topologySource: {className: "forms:build", constructorArgs: {counts: {state: counts}, batch: 3}}
"""
    defined = load(written(folder, function))
    assert defined.build().plan.updates()[0][1].factory is defined.states["counts"]


def test_includes_configuration_and_variables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHES", "4")
    (folder / "base").mkdir()
    (folder / "base" / "common.yml").write_text(f"""
configuration: {{topology.max.batch.attempts: 9, topology.debug: true}}
streams: {{words: {{newStream: {{spout: {WORDS}}}}}}}
""")
    file = written(folder, """
name: including
storage: here/checkpoints
x-mine: [anything]
includes: [base/common.yml]
configuration: {topology.max.batch.attempts: 2, spark.executor.memory: 2g}
streams: {more: {stream: words, operations: [{parallelismHint: "${BATCHES}"}]}}
""")
    defined = load(file)
    assert defined.configuration == Config({
        "topology.max.batch.attempts": 2, "topology.debug": True, "spark.executor.memory": "2g",
    })  # fmt: skip
    assert defined.storage == str(folder / "here" / "checkpoints")
    assert (defined.name, defined.file) == ("including", file)
    assert defined.build().plan.nodes[0].hint == 4


def test_a_number_of_the_configuration_may_be_a_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(folder, f"""
name: variables
configuration:
  topology.max.batch.attempts: "${{ATTEMPTS}}"
  topology.stop.grace.secs: "${{GRACE:-1.5}}"
  topology.probe: "${{PROBE:-false}}"
  topology.guarantee: "${{GUARANTEE:-exactly-once}}"
  my.own: "${{ATTEMPTS}}"
streams: {{words: {{newStream: {{spout: {WORDS}}}}}}}
""")
    monkeypatch.setenv("ATTEMPTS", "9")
    assert load(file).configuration == Config({
        "topology.max.batch.attempts": 9, "topology.stop.grace.secs": 1.5, "topology.probe": False,
        "topology.guarantee": "exactly-once", "my.own": "9",
    })  # fmt: skip
    monkeypatch.setenv("ATTEMPTS", "nine")
    with pytest.raises(DefinitionError, match=r"topology.max.batch.attempts is '\$\{ATTEMPTS\}'; it must be "):
        load(file)


def test_poison_tuples_go_to_a_stream_of_their_own(folder: Path) -> None:
    file = written(folder, f"""
name: poison
configuration: {{topology.poison: bisect, topology.max.batch.attempts: 2}}
streams:
  words: {{newStream: {{spout: {WORDS}}}}}
  letters: {{stream: words, operations: [deadLetters, {{project: [index, error]}}]}}
  kept:
    stream: letters
    operations: [{{partitionPersist: {{state: {{type: append, url: "sqlite:///l.db", table: l}}}}}}]
  failing:
    stream: words
    operations: [{{each: {{inputFields: word, function: "forms:refuse_b", functionFields: n}}}}]
""")
    found = run(load(file), "letters", "failing")
    assert [index for index, _ in found["letters"]] == [1] and "no b" in found["letters"][0][1]
    assert found["failing"] == [("a", 1), ("a", 1)]


def test_a_uri_of_storage_stays_as_it_is(folder: Path) -> None:
    text = f"name: a\nstorage: hdfs://name:8020/a\nstreams: {{words: {{newStream: {{spout: {WORDS}}}}}}}\n"
    assert load(written(folder, text)).storage == "hdfs://name:8020/a"


def test_the_same_calls_in_python_give_the_same_explanation(folder: Path) -> None:
    defined = load(written(folder, f"""
name: same
streams:
  words:
    newStream: {{txId: w, spout: {WORDS}}}
    operations:
      - name: all words
      - partitionBy: word
      - filter: FilterNull
      - groupBy: [word]
      - aggregate: {{agg: Count, functionFields: n bigint}}
      - minBy: n
      - broadcast
      - batchGlobal
      - localOrShuffle
      - identityPartition
"""))
    topology = TridentTopology()
    spout = FixedBatchSpout("word", 2, ["a"], ["b"], ["a"])
    words = topology.newStream("w", spout).name("all words").partitionBy("word").filter(FilterNull())
    counts = words.groupBy("word").aggregate(Count(), "n bigint").minBy("n")
    counts.broadcast().batchGlobal().localOrShuffle().identityPartition()
    assert defined.build().explain() == topology.build().explain()
