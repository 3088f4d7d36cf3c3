"""What a person is told of their own code when it fails: lines, values, and never a success."""

from __future__ import annotations

import ast
import builtins
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import users_code
from users_code import PLACES, RAISING, WITH_THE_TUPLE, fail, interrupt, leave, numbers, stop

import trident_py
from states.kafka.append.records import RecordForm
from trident_py import FailedException, LocalCluster, TopologyError, TridentTopology, TridentTuple
from trident_py.model.chunks import CHUNK_ROWS
from trident_py.model.user_traceback import LONGEST, NOTHING_LEFT, arguments, notes_of
from trident_py.state import BaseStateUpdater
from trident_py.testing import FixedBatchSpout, MemoryMapState

HERE = Path(__file__)
USERS_CODE = Path(users_code.__file__)


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(USERS_CODE.read_text().splitlines(), 1) if line.strip() == text)


def ended(place: str, conf: dict | None = None, cluster: Any = None) -> TopologyError:
    topology = TridentTopology()
    PLACES[place](topology)
    with cluster or LocalCluster() as running:
        with pytest.raises(TopologyError) as caught:
            running.submitTopology(f"failing {place}", conf or {}, topology.build()).awaitTermination(60)
    return caught.value


@pytest.mark.parametrize("place", PLACES)
def test_an_exception_of_the_users_code_is_told_with_its_line(place: str) -> None:
    error = ended(place)
    assert "ZeroDivisionError: integer division or modulo by zero\n" in str(error)
    assert f"at {USERS_CODE}:{line_of('return 1 // divisor')} in fail: return 1 // divisor\n" in str(error)
    assert any("return 1 // divisor" in note for note in notes_of(error.__cause__))
    assert "return 1 // divisor" in error.trace and "Traceback" in error.trace
    assert "/trident_py/" not in error.trace
    assert bool(re.search(r"  with .*\bn=0\n", str(error))) == (place in WITH_THE_TUPLE), str(error)


@pytest.mark.spark
@pytest.mark.parametrize("place", ["function", "callable", "combiner", "updater", "IBatchSpout"])
def test_the_users_line_comes_back_from_sparks_workers(place: str, spark_cluster: Any) -> None:
    error = ended(place, cluster=spark_cluster())
    assert "ZeroDivisionError: integer division or modulo by zero\n" in str(error)
    assert f"at {USERS_CODE}:{line_of('return 1 // divisor')} in fail: return 1 // divisor\n" in str(error)
    assert any("return 1 // divisor" in note for note in notes_of(error.__cause__))


def test_a_function_without_python_frames_is_told_with_its_values() -> None:
    topology = TridentTopology()
    topology.newStream("texts", FixedBatchSpout(["a", "b"], 5, ("1", 10), ("x", 16))).each(["a", "b"], int, "number")
    with LocalCluster() as cluster, pytest.raises(TopologyError, match=r"with a='x', b=16\n"):
        cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)


class Wordless(Exception):
    def __str__(self) -> str:
        raise AttributeError("no text")


class WordlessFailure(Wordless, FailedException):
    pass


def refuse(word: str) -> Any:
    raise Wordless


def test_an_error_that_has_no_text_is_that_of_its_function() -> None:
    topology = TridentTopology()
    topology.newStream("texts", FixedBatchSpout("a", 5, ("1",))).each("a", refuse, "number")
    with LocalCluster() as cluster, pytest.raises(TopologyError) as caught:
        cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)
    assert str(caught.value).startswith("Wordless: its text is unknown, as __str__ raised AttributeError\n")
    assert "spout" not in caught.value.operation and isinstance(caught.value.__cause__, Wordless)


def test_a_failed_batch_whose_error_has_no_text_is_replayed() -> None:
    words: list[str] = []

    def refused_once(word: str) -> list[int]:
        words.append(word)
        if len(words) == 1:
            raise WordlessFailure
        return [len(words)]

    topology = TridentTopology()
    topology.newStream("texts", FixedBatchSpout("a", 5, ("1",))).each("a", refused_once, "number")
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", {}, topology.build())
        assert running.awaitTermination(30)
    (replayed,) = [event for event in running.events if event.kind == "replay"]
    assert "failed in partition 0: its text is unknown, as __str__ raised AttributeError" in replayed.reason


def test_the_values_can_be_left_out() -> None:
    assert "with " not in str(ended("function", {"topology.error.values": False}))


def test_values_are_shortened_and_secrets_hidden() -> None:
    def login(user: str, password: str, document: dict) -> None:
        raise ValueError("refused")

    shown = values_shown(login, "ann" * 1000, "hunter2", dict.fromkeys(range(1000), "x" * 1000))
    assert "user='annann" in shown and "password=***" in shown and "hunter2" not in shown
    assert len(shown) <= LONGEST + len("with ")


def values_shown(function: Callable[..., Any], *values: Any) -> str:
    fields = [f"f{i}" for i in range(len(values))]
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout(fields, 5, values)).each(fields, function, "out")
    with LocalCluster() as cluster, pytest.raises(TopologyError) as caught:
        cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)
    return next(line for line in notes_of(caught.value.__cause__) if line.startswith("with "))


class Strange(int):
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def test_a_value_that_cannot_be_shown_does_not_hide_the_error() -> None:
    assert "divisor=<Strange instance at" in values_shown(fail, Strange(0))


class array(dict):
    """reprlib goes by the name, and looks for a typecode."""


def test_a_value_of_a_class_named_as_one_of_pythons_does_not_hide_the_error() -> None:
    with pytest.raises(TypeError) as raised:
        fail(array())  # type: ignore[arg-type]
    assert arguments(raised.value.with_traceback(raised.tb.tb_next)) == "divisor=<cannot be shown: array>"


def test_an_exception_that_cannot_be_pickled_keeps_the_users_lines() -> None:
    from trident_py.engine.program import encode_failure, failure_of

    class Held(Exception):
        def __init__(self) -> None:
            super().__init__("held")
            self.lock = __import__("threading").Lock()

    try:
        raise Held
    except Held as error:
        back = pickle.loads(encode_failure(failure_of("each", 0, error)))
    assert "Held: held" in str(back.error)
    assert any(f"at {HERE}:" in note for note in notes_of(back.error))


@pytest.mark.parametrize("raising", RAISING)
@pytest.mark.parametrize("place", PLACES)
def test_whatever_the_users_code_raises_the_run_is_no_success(
    place: str, raising: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(users_code, "fail", raising)
    told = str(ended(place))
    assert RAISING[raising] in told
    assert f"at {USERS_CODE}:" in told and f" in {raising.__name__}: " in told


ROW_BY_ROW: dict[str, Callable[[Any, Callable[[int], Any]], Any]] = {
    "callable": lambda stream, look: stream.each("n", look, "out"),
    "filter": lambda stream, look: stream.filter("n", look),
    "map": lambda stream, look: stream.map(lambda tuple: look(tuple[0])),
    "flatMap": lambda stream, look: stream.flatMap(lambda tuple: [look(tuple[0])]),
    "two fields": lambda stream, look: (
        stream.each("n", lambda n: [n], "m").each(["n", "m"], lambda n, m: look(n), "out")
    ),
}


@pytest.mark.parametrize("missing", [1, 2, 3])
@pytest.mark.parametrize("made", ROW_BY_ROW)
def test_no_tuple_behind_a_stop_iteration_is_dropped_in_silence(made: str, missing: int) -> None:
    topology = TridentTopology()
    stream = topology.newStream("numbers", FixedBatchSpout("n", 5, (1,), (2,), (3,)))
    ROW_BY_ROW[made](stream, lambda n: next(iter([[n]] if n != missing else [])))
    with LocalCluster() as cluster, pytest.raises(TopologyError) as caught:
        cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)
    assert str(caught.value).startswith("StopIteration\n") and NOTHING_LEFT in str(caught.value)
    assert f"with n={missing}\n" in str(caught.value) or made in ("map", "flatMap", "two fields")


LAZY = {"map": 0, "filter": 0, "starmap": 0, "takewhile": 0, "dropwhile": 0, "filterfalse": 0, "groupby": 1}
OURS_OR_A_LIBRARYS = {
    "states/kafka/compacted/codec.py": {"text"},
    "states/kafka/compacted/local_table.py": {"rows.get"},
    "states/kafka/owner.py": {"call"},
    "states/kafka/sender.py": {"self.producer.produce"},
    "states/kafka/append/records.py": {"simple"},
    "states/sql/maps/backing.py": {"self.dialect.decoder"},
    "states/sql/rows/sequence/state.py": {"arrived.position", "tables.dialect.decoder"},
    "states/sql/table.py": {"dialect.fold_name"},
    "states/sql/inspect.py": {"_GRANT.match"},
    "states/sql/rows/insert_ignore.py": {"batch.position"},
    "trident_py/model/chunks.py": {"kind"},
    "trident_py/extras/gateway/linter.py": {"within"},
    "trident_py/kafka/reader.py": {"lambda message: (message.topic(), message.partition())"},
    "trident_py/kafka/records.py": {"RAW[name]"},
    "trident_py/extras/determinism/expressions.py": {"self.visit"},
    "trident_py/extras/moving/comparison.py": {"self._rules.read"},
    "trident_py/extras/moving/declared_types.py": {"convert"},
    "trident_py/extras/moving/port/expressions.py": {"replace"},
    "trident_py/extras/moving/storm_values.py": {"WRAP[kind]"},
    "trident_py/spark/component.py": {"program.partitions"},
    "trident_py/state/maps.py": {"_transactional", "_opaque"},
}


def defined(tree: ast.Module) -> set[str]:
    """The functions, classes and imports of a module, and the methods of its classes as ``self.name``."""
    made = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    methods = [f"self.{each.name}" for c in made for each in c.body if isinstance(each, ast.FunctionDef)]
    return {*dir(builtins), *methods, *(n.name for n in made), *(a.asname or a.name for i in imports for a in i.names)}


def is_ours(function: ast.expr, known: set[str]) -> bool:
    """Whether it can be no user's: a thing of the module or of Python, a method of such a thing, or what one makes."""
    if isinstance(function, ast.Call) and ast.unparse(function.func) != "getattr":
        return is_ours(function.func, known)
    if isinstance(function, ast.Attribute) and not function.attr.startswith("__"):
        return ast.unparse(function) in known or is_ours(function.value, known)
    return isinstance(function, ast.Constant | ast.Attribute) or ast.unparse(function) in known


def test_no_function_of_the_user_is_given_to_what_takes_a_stop_iteration_for_the_end() -> None:
    root = Path(trident_py.__file__).parent.parent
    found: dict[str, set[str]] = {}
    for path in [*root.glob("trident_py/**/*.py"), *root.glob("states/**/*.py")]:
        tree = ast.parse(path.read_text())
        known = defined(tree)
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            at = LAZY.get(ast.unparse(call.func).removeprefix("itertools."))
            if at is not None and not is_ours(call.args[at], known):
                found.setdefault(path.relative_to(root).as_posix(), set()).add(ast.unparse(call.args[at]))
    assert found == OURS_OR_A_LIBRARYS, "call a user's function in a loop: processors.base.called, or a comprehension"


def test_no_record_behind_a_stop_iteration_of_a_topic_selector_is_dropped_in_silence() -> None:
    tuples = [TridentTuple.of("n", [str(n)]) for n in range(3)]
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(RecordForm.of("topic", "n", selector=stop).blocks(tuples))


class Careless(users_code.Source):
    """Its emitter goes on whatever ``emit`` raises, as a parser does that skips bad lines."""

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > 1

    def getEmitter(self, *_: Any) -> Any:
        return self

    def emitBatch(self, tx: Any, metadata: Any, collector: Any) -> None:
        for n in range(2 * CHUNK_ROWS):
            try:
                collector.emit([n])
            except BaseException:
                continue


@pytest.mark.parametrize(
    "made",
    [
        lambda stream: stream.each("n", lambda n: [1 // (n - 7)], "out"),
        lambda stream: stream.partition(lambda values: 1 // (values[0] - 7)).peek(print).parallelismHint(2),
    ],
    ids=["function", "grouping"],
)
def test_a_spout_that_catches_everything_does_not_hide_the_failure_of_a_step_behind_it(made: Any) -> None:
    topology = TridentTopology()
    made(topology.newStream("s", Careless()))
    with LocalCluster() as cluster, pytest.raises(TopologyError, match="ZeroDivisionError"):
        cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)


class Leave(BaseStateUpdater):
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        leave()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (lambda stream: stream.each("n", leave, "out"), SystemExit),
        (lambda stream: stream.each("n", interrupt, "out"), KeyboardInterrupt),
        (lambda stream: stream.each("n", stop, "out"), StopIteration),
        (lambda stream: stream.partitionPersist(MemoryMapState.Factory(), "n", Leave()), SystemExit),
    ],
    ids=["function leaves", "function interrupts", "function has nothing left", "updater leaves"],
)
def test_leaving_the_process_is_a_failure_on_spark_too(made: Any, kind: type, spark_cluster: Any) -> None:
    topology = TridentTopology()
    made(numbers(topology))
    with spark_cluster() as cluster, pytest.raises(TopologyError) as caught:
        cluster.submitTopology("leaving", {}, topology.build()).awaitTermination(60)
    assert type(caught.value.__cause__) is kind
