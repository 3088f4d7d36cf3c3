"""What a topology file refuses, and with which words: all problems at once, each with its line."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import jsonschema
import pytest
import yaml

from trident_py.errors import DefinitionError
from trident_py.extras.topology_files.schema import schema
from trident_py.topology_files import load

EXAMPLES = Path(__file__).parents[3] / "examples"
MODULE = '''
from trident_py.operations import BaseFunction

LIMIT = 3

class Split(BaseFunction):
    def __init__(self, separator=" "):
        self.separator = separator

    def execute(self, tuple, collector):
        for word in tuple.getString(0).split(self.separator):
            collector.emit([word])

class Source:
    def other(self, conf):
        return None

def nothing():
    return None

def failing():
    raise RuntimeError("no database")

def assembly():
    return Failing()

class Failing:
    def apply(self, stream):
        raise RuntimeError("no such stream")
'''
HEAD = """\
name: words
states:
  counts: {className: "trident_py.testing:MemoryMapState.Factory"}
streams:
  words:
    newStream: {spout: {className: FixedBatchSpout, constructorArgs: [sentence, 2, [a b]]}}
"""
COUNTED = """\
    operations:
      - each: {inputFields: sentence, function: "counting:Split", functionFields: word}
      - groupBy: word
      - persistentAggregate: {state: counts, agg: Count, functionFields: count}
"""
ROWS = (
    HEAD.replace('counts: {className: "trident_py.testing:MemoryMapState.Factory"}',
                 'rows: {type: append, url: "sqlite:///a.db", table: rows, columns: sentence string}')
    + '    operations:\n'
    + '      - partitionPersist: {state: rows}\n'
)  # fmt: skip


class Case(NamedTuple):
    """A file, and what is told: ``line: text`` for each problem. ``schema``: whether the JSON schema refuses it too."""

    text: str
    told: list[str]
    schema: bool = True


def operations(*items: str) -> str:
    return HEAD + "    operations:\n" + "".join(f"      - {item}\n" for item in items)


CASES = {
    "a key": Case(
        'nmae: words\n' + HEAD + COUNTED,
        ["1 nmae: a topology file has no such key; it has: configuration, components, states, streams, name, "
         "storage, includes, topologySource. Did you mean name?"],
    ),
    "no name": Case(
        (HEAD + COUNTED).removeprefix('name: words\n'),
        ["1 name: is missing; a topology file needs: name"],
    ),
    "a bad name": Case(
        (HEAD + COUNTED).replace('name: words', 'name: a/b'),
        ["1 name: the topology is named 'a/b'; its checkpoint folder has that name"],
        schema=False,
    ),
    "no mapping": Case(
        '- words\n',
        ["1 expected a mapping that begins with name:"],
    ),
    "no streams": Case(
        'name: words\n',
        ["1 a topology has streams:, or a topologySource: in Python; this file has neither"],
    ),
    "streams and topologySource": Case(
        HEAD + COUNTED + 'topologySource: {className: "counting:nothing"}\n',
        ["11 topologySource: a topology has either streams: or a topologySource:, this file has both"],
    ),
    "an operation": Case(
        operations('grupBy: word'),
        ["8 streams.words.operations[0].grupBy: no operation 'grupBy'; there are: name, parallelismHint, each, "
         "... Did you mean groupBy?"],
    ),
    "an operation without arguments": Case(
        operations('persistentAggregate'),
        ["8 operations[0].agg: is missing; persistentAggregate needs: state, agg, functionFields",
         "8 operations[0].functionFields: is missing",
         "8 operations[0].state: is missing"],
    ),
    "two operations in one": Case(
        operations('{shuffle: null, groupBy: sentence}'),
        ["8 operations[0]: found shuffle, groupBy; expected one operation, such as groupBy: word"],
    ),
    "arguments for none": Case(
        operations('shuffle: 3'),
        ["8 operations[0].shuffle: found '3'; expected no arguments"],
    ),
    "no arguments for some": Case(
        operations('each: sentence'),
        ["8 operations[0].each: found 'sentence'; expected a mapping with: inputFields, function, functionFields, "
         "filter"],
    ),
    "a key of an operation": Case(
        operations('each: {inputField: sentence, filter: FilterNull}'),
        ["8 operations[0].each.inputField: each has no such key; it has: inputFields, function, functionFields, "
         "filter. Did you mean inputFields?"],
    ),
    "a key that is missing": Case(
        operations('aggregate: {agg: Count}'),
        ["8 operations[0].aggregate.functionFields: is missing; aggregate needs: agg, functionFields"],
    ),
    "a number": Case(
        operations('parallelismHint: many', 'parallelismHint: 0', 'parallelismHint: {parallelism: yes}'),
        ["8 operations[0].parallelismHint.parallelism: found 'many': expected an integer",
         "9 operations[1].parallelismHint.parallelism: found '0': expected at least 1",
         "10 operations[2].parallelismHint.parallelism: found 'yes': expected an integer"],
    ),
    "fields": Case(
        operations('project: {fields: {a: b}}'),
        ["8 operations[0].project.fields: found a list or mapping: expected a list"],
    ),
    "a choice": Case(
        HEAD + (
            '  both:\n'
            '    join: {streams: [words, words], joinFields: [sentence, sentence], outFields: [a], type: '
            'LEFT, mode: ALL}\n'
        ),
        ["8 streams.both.join.mode: found 'ALL'; there are: COMPACT, PRESERVE",
         "8 streams.both.join.type[0]: found 'LEFT'; there are: INNER, OUTER"],
    ),
    "a field of the stream": Case(
        operations('project: [sentense]'),
        ["8 operations[0].project: Trying to select non-existent field: 'sentense' from stream containing fields: "
         "[sentence]; no field 'sentense' in this stream. Did you mean 'sentence'?"],
        schema=False,
    ),
    "overloads": Case(
        operations('each: {inputFields: sentence}'),
        ["8 operations[0].each: no form of each takes (inputFields=list); call it as each(inputFields, function, "
         "functionFields) or each("],
        schema=False,
    ),
    "a module": Case(
        operations('filter: "cuonting:Split"'),
        ["8 operations[0].filter: no module 'cuonting' (No module named 'cuonting'); in this folder there are: "
         "counting"],
        schema=False,
    ),
    "a name in a module": Case(
        operations('filter: "counting:Splt"'),
        ["8 operations[0].filter: module counting has no 'Splt'; it has: Failing, LIMIT, Source, Split, assembly, "
         "failing, nothing. Did you mean Split?"],
        schema=False,
    ),
    "a built-in": Case(
        operations('filter: FilterNul'),
        ["8 operations[0].filter: found 'FilterNul'; write module:name, or the name of a built-in. Did you mean "
         "FilterNull?"],
    ),
    "no object": Case(
        operations('filter: [FilterNull]', 'filter: 3'),
        ["8 operations[0].filter: found ['FilterNull']; expected module:name, the name of a built-in, or a "
         "mapping with className: or ref:",
         "9 operations[1].filter: found '3'; expected module:name"],
    ),
    "an object without className": Case(
        operations('filter: {filter: {constructorArgs: [1]}}'),
        ["8 operations[0].filter.filter: found a list or mapping; expected module:name"],
    ),
    "arguments that do not fit": Case(
        operations(
            'each: {inputFields: sentence, function: {className: "counting:Split", constructorArgs: {by: '
            'x}}, functionFields: word}',
        ),
        ["8 operations[0].each.function: cannot be made: TypeError: Split.__init__() got an unexpected keyword "
         "argument 'by'; it takes (separator=' ')"],
        schema=False,
    ),
    "a constructor": Case(
        operations('filter: {className: "counting:failing"}'),
        ["8 operations[0].filter: cannot be made: RuntimeError: no database (at counting.py:22 in failing: raise "
         "RuntimeError"],
        schema=False,
    ),
    "no callable": Case(
        operations('filter: {className: "counting:LIMIT"}'),
        ["8 operations[0].filter: it is of the type int and cannot be called; name it alone, without className:"],
        schema=False,
    ),
    "a method of an object": Case(
        HEAD.replace('[sentence, 2, [a b]]', '[sentence, 2, [a b]], configMethods: [{name: setCicle, args: [true]}]'),
        ["6 newStream.spout.configMethods[0].name: FixedBatchSpout has no method 'setCicle'; it has: ack, ... Did "
         "you mean setCycle?"],
        schema=False,
    ),
    "a component": Case(
        operations('filter: {ref: nul}') + 'components:\n  null_: FilterNull\n',
        ["8 operations[0].filter.ref: no component 'nul'; components: has: null_. Did you mean null_?"],
        schema=False,
    ),
    "a circle of components": Case(
        operations('filter: {ref: a}')
        + (
            'components:\n'
            '  a: {className: "counting:Split", constructorArgs: [{ref: b}]}\n'
            '  b: {className: "counting:Split", constructorArgs: [{ref: a}]}\n'
        ),
        ["10 components.a.constructorArgs[0].ref: the components refer to each other in a circle: b -> a -> b",
         "11 components.b.constructorArgs[0].ref: the components refer to each other in a circle: a -> b -> a"],
        schema=False,
    ),
    "a component that nothing names": Case(
        HEAD + COUNTED + 'components:\n  a: "counting:Nothing"\n',
        ["12 components.a: module counting has no 'Nothing'; it has:"],
        schema=False,
    ),
    "a state": Case(
        operations('persistentAggregate: {state: conuts, agg: Count, functionFields: count}'),
        ["8 persistentAggregate.state: no state 'conuts'; there are: counts. Did you mean counts?"],
        schema=False,
    ),
    "the type of a state": Case(
        HEAD.replace('{className: "t', '{type: sql-mop, x: "t') + COUNTED,
        ["3 states.counts.type: no type 'sql-mop'; installed are: append,"],
    ),
    "settings of a state": Case(
        operations("partitionPersist: {state: {type: append, url: 'sqlite:///a.db', tabel: a}}"),
        ["8 partitionPersist.state.tabel: append has no such key; it has: url, table, columns, onBadRow, txid. "
         "Did you mean table?",
         "8 partitionPersist.state.table: is missing; append needs: url, table"],
    ),
    "no states": Case(
        'name: words\nstates: 3\nstreams: {}\n',
        ["2 states: found '3'; expected a mapping, or the path of a states file"],
    ),
    "a state that is asked in its own stream": Case(
        operations(
            'stateQuery: {state: counts, inputFields: sentence, function: MapGet, functionFields: n}',
            'groupBy: sentence',
            'persistentAggregate: {state: counts, agg: Count, functionFields: count}',
        ),
        ["8 operations[0].stateQuery.state: the streams need each other in a circle: words -> words. A state is "
         "asked after its update"],
        schema=False,
    ),
    "a state with two updates": Case(
        HEAD + COUNTED + (
            '  others:\n'
            '    newStream: {spout: {className: FixedBatchSpout, constructorArgs: [sentence, 2, [a b]]}}\n'
            '    operations:\n'
            '      - persistentAggregate: {state: counts, agg: Count, functionFields: count}\n'
            '  asking:\n'
            '    newDRPCStream: ask\n'
            '    operations:\n'
            '      - stateQuery: {state: counts, inputFields: args, function: MapGet, functionFields: n}\n'
        ),
        ["18 streams.asking.operations[0].stateQuery.state: the state 'counts' is updated twice, by "
         "streams.words.operations[2].persistentAggregate in trident.yml:10 and "
         "streams.others.operations[0].persistentAggregate in trident.yml:14: give each a state of its own"],
        schema=False,
    ),
    "a stream": Case(
        HEAD + COUNTED + '  more:\n    stream: wrods\n',
        ["12 streams.more.stream: no stream 'wrods'; there are: words, more. Did you mean words?"],
        schema=False,
    ),
    "streams in a circle": Case(
        HEAD + COUNTED + '  a:\n    stream: b\n  b:\n    merge: [words, a]\n',
        ["14 streams.b.merge[1]: the streams need each other in a circle: a -> b -> a"],
        schema=False,
    ),
    "a stream without a beginning": Case(
        HEAD + COUNTED + '  more:\n    operations: [shuffle]\n',
        ["11 streams.more: a stream begins with one of newStream, newDRPCStream, stream, merge, join, "
         "multiReduce; found none of them"],
    ),
    "a stream with two": Case(
        HEAD + COUNTED + '  more:\n    stream: words\n    newDRPCStream: words\n',
        ["11 streams.more: a stream begins with one of newStream, newDRPCStream, stream, merge, join, "
         "multiReduce; found stream and newDRPCStream"],
    ),
    "a key of a stream": Case(
        HEAD.replace('newStream', 'newStraem'),
        ["6 streams.words.newStraem: a stream has no such key; it has: newStream, newDRPCStream, stream, merge, "
         "join, multiReduce, operations. Did you mean newStream?"],
    ),
    "no stream": Case(
        HEAD + COUNTED + '  more: words\n',
        ["11 streams.more: found 'words'; expected a mapping with newStream, newDRPCStream"],
    ),
    "operations that are none": Case(
        HEAD + '    operations: shuffle\n',
        ["7 streams.words.operations: found 'shuffle'; expected a list of operations"],
    ),
    "a branch of a state": Case(
        HEAD + COUNTED + '  more:\n    stream: words\n',
        ["12 streams.more.stream: the stream 'words' ends with a state, which cannot be branched. Add "
         "newValuesStream to it"],
        schema=False,
    ),
    "an operation on a grouped stream": Case(
        operations('groupBy: sentence', 'map: FilterNull'),
        ["9 operations[1].map: a grouped stream has no map; it has: name, each, toStream, aggregate,"],
        schema=False,
    ),
    "a chain without an end": Case(
        operations('chainedAgg', 'shuffle'),
        ["9 operations[1]: a chain of aggregators (end it with chainEnd) has no shuffle; it has: aggregate, "
         "partitionAggregate, chainEnd"],
        schema=False,
    ),
    "a value of the conf": Case(
        HEAD + COUNTED + 'configuration:\n  topology.max.batch.attempts: 0\n',
        ["12 configuration.topology.max.batch.attempts: topology.max.batch.attempts is 0; it must be a number of "
         "attempts, at least 1"],
        schema=False,
    ),
    "a key of the conf": Case(
        HEAD + COUNTED + 'configuration:\n  topology.max.batch.atempts: 3\n',
        ["12 configuration.topology.max.batch.atempts: there is no such key; a key of your own begins otherwise. "
         "Did you mean topology.max.batch.attempts?"],
        schema=False,
    ),
    "a value for Spark": Case(
        HEAD + COUNTED + 'configuration:\n  spark.a: [1]\n',
        ["12 configuration.spark.a: found ['1']; expected a text or a number"],
        schema=False,
    ),
    "a variable": Case(
        HEAD.replace('[a b]', '["${NO_SUCH_VARIABLE}"]') + COUNTED,
        ["6 newStream.spout.constructorArgs[2][0]: the environment variable NO_SUCH_VARIABLE is not set; set it, "
         "or give it a default: ${NO_SUCH_VARIABLE:-default}"],
        schema=False,
    ),
    "an included file": Case(
        HEAD + COUNTED + 'includes: [nothing.yml]\n',
        ["11 includes[0]: nothing.yml: cannot be read: No such file or directory. It is the YAML file that "
         "trident.yml includes"],
        schema=False,
    ),
    "a key twice": Case(
        HEAD + '  words:\n    newDRPCStream: words\n',
        ["7 streams.words: this name is repeated; it is in line 5 too"],
        schema=False,
    ),
    "a window": Case(
        operations(
            'tumblingWindow: {windowLength: {second: 3}, state: counts, inputFields: sentence, aggregator: '
            'Count, functionFields: n}',
            'window: {windowConfig: {windowLenght: 3}, inputFields: sentence, aggregator: Count, '
            'functionFields: n}',
            'window: {windowConfig: {windowLength: 3, slideLength: {days: 1}}, inputFields: sentence, '
            'aggregator: Count, functionFields: n}',
            'window: {windowConfig: {windowLength: 3, slideLength: 4}, inputFields: sentence, aggregator: '
            'Count, functionFields: n}',
        ),
        ["8 tumblingWindow.windowLength: found second; expected a number of tuples, or a time in milliseconds, "
         "seconds, minutes, hours, days, such as {seconds: 10}",
         "9 window.windowConfig.windowLenght: a window has no such key; it has: windowLength, slideLength, "
         "timestampField, lag. Did you mean windowLength?",
         "9 window.windowConfig.windowLength: is missing; a window needs: windowLength",
         "10 window.windowConfig.slideLength: windowLength and slideLength are two numbers of tuples, or two times"],
    ),
    "an assembly": Case(
        operations('applyAssembly: {className: "counting:assembly"}'),
        ["8 operations[0].applyAssembly: RuntimeError: no such stream (at counting.py:29 in apply: raise "
         "RuntimeError"],
        schema=False,
    ),
    "a builder that returns nothing": Case(
        'name: a\ntopologySource: {className: "counting:nothing"}\n',
        ["2 topologySource: it returned NoneType; it must return a TridentTopology, or its build()"],
        schema=False,
    ),
    "a builder that fails": Case(
        'name: a\ntopologySource: {className: "counting:failing"}\n',
        ["2 topologySource: failed: RuntimeError: no database (at counting.py:22 in failing"],
        schema=False,
    ),
    "a builder's method": Case(
        'name: a\ntopologySource: {className: "counting:Source"}\n',
        ["2 topologySource: counting:Source has no method getTopology; it has: other"],
        schema=False,
    ),
    "a method without a class": Case(
        'name: a\ntopologySource: {className: "counting:nothing", methodName: x}\n',
        ["2 topologySource.methodName: counting:nothing is no class: it is called itself, without a method"],
        schema=False,
    ),
    "a key of topologySource": Case(
        'name: a\ntopologySource: {class: "counting:nothing"}\n',
        ["2 topologySource.class: topologySource has no such key; it has: className, methodName, constructorArgs. "
         "Did you mean className?",
         "2 topologySource.className: is missing; topologySource needs: className"],
    ),
    "two streams of one name": Case(
        HEAD + (
            '  more:\n'
            '    newStream: {txId: words, spout: {className: FixedBatchSpout, constructorArgs: [sentence, '
            '2]}}\n'
        ),
        ["8 streams.more.newStream: two streams are named 'words'"],
        schema=False,
    ),
    "a field that a state needs": Case(
        ROWS.replace('sentence string', 'sentnce string'),
        ["8 streams.words.operations[0].partitionPersist: RowUpdater of state 'rows' needs the field 'sentnce', which "
         "stream 'words' does not have; it has: [sentence]. Did you mean 'sentence'?"],
        schema=False,
    ),
    "an argument that is empty": Case(
        operations('stateQuery: {state: , function: MapGet, functionFields: n}', 'map: {function: }'),
        ["8 streams.words.operations[0].stateQuery.state: is missing; stateQuery needs: state, function, fu",
         "9 streams.words.operations[1].map.function: is missing; map needs: function"],
        schema=True,
    ),
    "a variable in a list alone": Case(
        operations('project: ["${NO_SUCH_VARIABLE}", sentence]'),
        ["8 streams.words.operations[0].project[0]: the environment variable NO_SUCH_VARIABLE is not set; set it, "],
        schema=False,
    ),
    "one place under one name twice": Case(
        ROWS + ROWS.partition('streams:\n')[2].replace('words:', 'more:'),
        ["12 streams.more.operations[0].partitionPersist: two states are named 'rows', but only the name keeps their "
         "txids apart. Both write table 'rows' in ... merge the streams before it"],
        schema=False,
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "counting.py").write_text(MODULE)
    return tmp_path


def told(folder: Path, text: str) -> list[str]:
    file = folder / "trident.yml"
    file.write_text(text)
    with pytest.raises(DefinitionError) as caught:
        load(file)
    assert caught.value.__cause__ is None and caught.value.__context__ is None  # they would hold the file's values
    lines = [line.strip().replace(f"{folder}/", "") for line in str(caught.value).splitlines()]
    return lines[1:] if len(lines) > 1 else lines


@pytest.mark.parametrize("name", CASES)
def test_a_problem_is_told_with_its_line_its_cause_and_what_exists(name: str, folder: Path) -> None:
    found, expected = told(folder, CASES[name].text), CASES[name].told
    assert len(found) == len(expected), found
    for line, words in zip(found, expected, strict=True):
        number, _, rest = words.partition(" ")
        assert line.startswith(f"trident.yml:{number}: ")
        assert all(part in line for part in rest.split(" ... ")), line


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    made = schema()
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


@pytest.mark.parametrize("name", CASES)
def test_the_schema_refuses_what_it_can_know(name: str, validator: jsonschema.Draft202012Validator) -> None:
    """What it cannot know is marked ``schema=False``: names, the fields of streams, what Python code does."""
    assert validator.is_valid(yaml.safe_load(CASES[name].text)) != CASES[name].schema


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yml")), ids=lambda path: path.stem)
def test_the_schema_takes_the_examples(path: Path, validator: jsonschema.Draft202012Validator) -> None:
    assert [error.message for error in validator.iter_errors(yaml.safe_load(path.read_text()))] == []


def test_all_problems_of_all_files_come_at_once(folder: Path) -> None:
    (folder / "more.yml").write_text("components:\n  a: FilterNul\nstreems: {}\n")
    (folder / "states.yaml").write_text("states:\n  counts: {type: append, tabel: a}\n")
    text = "states: states.yaml\nincludes: [more.yml]\n" + HEAD[HEAD.index("streams:") :].replace("2,", "two,")
    text += '    operations: [grupBy: a, each: {inputFields: b, filter: "counting:Splt"}]\n'
    file = folder / "trident.yml"
    file.write_text(text)
    with pytest.raises(DefinitionError) as caught:
        load(file)
    lines = [line.strip().replace(f"{folder}/", "") for line in str(caught.value).splitlines()]
    assert lines[0] == "9 errors in trident.yml and more.yml and states.yaml"
    assert [line.split(": ")[:2] for line in lines[1:]] == [
        ["trident.yml:1", "name"],
        ["trident.yml:5", "streams.words.newStream.spout"],
        ["trident.yml:6", "streams.words.operations[0].grupBy"],
        ["trident.yml:6", "streams.words.operations[1].each.filter"],
        ["more.yml:2", "components.a"],
        ["more.yml:3", "streems"],
        ["states.yaml:2", "states.counts.tabel"],
        ["states.yaml:2", "states.counts.table"],
        ["states.yaml:2", "states.counts.url"],
    ]


@pytest.mark.parametrize("name", ["loop.yml", "a\\0b.yml"])
def test_a_path_that_leads_nowhere_is_told(folder: Path, name: str) -> None:
    (folder / "loop.yml").symlink_to("loop.yml")
    (found,) = told(folder, f'{HEAD}includes: ["{name}"]\n')
    assert "includes[0]: " in found and ": cannot be read: " in found


def test_no_error_shows_a_secret(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "counting.py").write_text("def connect(url):\n    raise OSError(f'cannot reach {url}')\n")
    monkeypatch.setenv("THE_URL", "mysql+pymysql://me:hunter2@db/words")
    found = told(folder, 'name: a\ntopologySource: {className: "counting:connect", constructorArgs: ["${THE_URL}"]}\n')
    assert "OSError: cannot reach ${THE_URL}" in found[0] and "hunter2" not in found[0]


def test_a_name_is_defined_once_in_all_files(folder: Path) -> None:
    (folder / "more.yml").write_text("streams:\n  words: {newDRPCStream: words}\n")
    found = told(folder, HEAD + "includes: [more.yml]\n")
    assert found == ["more.yml:2: streams.words: this name is taken: streams.words in trident.yml:5"]
