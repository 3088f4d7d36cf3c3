"""What is said of an operation: by its declaration, or by its source."""

from __future__ import annotations

import datetime
import functools
import os
import random
import random as dice
import secrets
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from datetime import datetime as moment
from time import time_ns as nanos
from typing import Any
from uuid import uuid4
from uuid import uuid4 as fresh

import determinism_etl  # noqa: F401  these five fill the tables of kin
import determinism_forms  # noqa: F401
import determinism_handed  # noqa: F401
import determinism_library  # noqa: F401
import determinism_world  # noqa: F401
import numpy as np
import pytest
from determinism_cases import CHANGING_CASES, UNSEEN_CASES
from determinism_kin import CHANGING_KIN, STEADY_KIN
from determinism_steady import STEADY_CASES

from trident_py.errors import DefinitionError
from trident_py.operations import (
    CombinerAggregator,
    Filter,
    Function,
    MapFunction,
    ReducerAggregator,
    deterministic,
    nondeterministic,
)
from trident_py.operations.builtin import Count, Debug, FilterNull, Max, MaxWithComparator, Negate, Sum
from trident_py.operations.determinism import CHANGING, DETERMINISTIC, UNSEEN, Declared, Verdict, judge

rng = random.Random(7)
generator = np.random.default_rng(7)
right_now = moment.now


def helper(word: str) -> str:
    return f"{word}-{uuid4()}"


def outer_helper(word: str) -> str:
    return helper(word)


def local_import(word: str) -> list:
    from uuid import uuid1 as one

    return [one(), word]


def local_module(word: str) -> list:
    import random as r

    return [r.randint(1, 2), word]


def in_a_comprehension(words: list) -> list:
    return [(word, time.time()) for word in words]


def handed_on(words: list) -> list:
    return sorted(words, key=random.random)


class Stamp(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([datetime.datetime.now()])


class StampedInAMethod(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([self.number()])

    def number(self) -> int:
        return nanos()


class Inherits(Stamp):
    """Draws nothing itself."""


class Coin(Filter):
    def isKeep(self, tuple: Any) -> bool:
        return dice.random() < 0.5


class OwnDice(MapFunction):
    def prepare(self, conf: dict, context: Any) -> None:
        self.dice = random.Random()

    def execute(self, tuple: Any) -> Any:
        return [self.dice.random()]


class RandomSum(CombinerAggregator):
    def init(self, tuple: Any) -> float:
        return random.gauss(0, 1)

    def combine(self, val1: float, val2: float) -> float:
        return val1 + val2

    def zero(self) -> float:
        return 0.0


class RandomReduce(ReducerAggregator):
    def init(self) -> int:
        return 0

    def reduce(self, curr: int, tuple: Any) -> int:
        return curr + secrets.randbelow(3)


FOUND: list[tuple[Any, str]] = [
    (lambda word: [uuid4()], "uuid.uuid4"),
    (lambda word: [fresh()], "uuid.uuid4"),
    (lambda word: [uuid.uuid1(), word], "uuid.uuid1"),
    (lambda word: [random.choice([1, 2])], "random.choice"),
    (lambda word: [dice.shuffle(word)], "random.shuffle"),
    (lambda word: [rng.random()], "random.random"),
    (lambda word: [random.Random().random()], "random.Random"),
    (lambda word: [np.random.rand()], "numpy.random.rand"),
    (lambda word: [np.random.default_rng().random()], "numpy.random.default_rng"),
    (lambda word: [generator.integers(3)], "numpy.random.integers"),
    (lambda word: [moment.now()], "datetime.now"),
    (lambda word: [right_now()], "datetime.now"),
    (lambda word: [datetime.datetime.utcnow()], "datetime.utcnow"),
    (lambda word: [datetime.date.today()], "date.today"),
    (lambda word: [moment.now().timestamp()], "datetime.now"),
    (lambda word: [time.time(), time.strftime("%Y")], "time.time"),
    (lambda word: [time.monotonic()], "time.monotonic"),
    (lambda word: [nanos()], "time.time_ns"),
    (lambda word: [secrets.token_hex(4)], "secrets.token_hex"),
    (lambda word: [os.urandom(4)], "os.urandom"),
    (uuid4, "uuid.uuid4"),
    (random.random, "random.random"),
    (time.time, "time.time"),
    (helper, "uuid.uuid4"),
    (outer_helper, "uuid.uuid4"),
    (local_import, "uuid.uuid1"),
    (local_module, "random.randint"),
    (in_a_comprehension, "time.time"),
    (handed_on, "random.random"),
    (lambda word: list(map(random.choice, word)), "random.choice"),
    (functools.partial(helper), "uuid.uuid4"),
    (functools.partial(map, helper), "uuid.uuid4"),
    (Stamp(), "datetime.now"),
    (Stamp().execute, "datetime.now"),
    (StampedInAMethod(), "time.time_ns"),
    (Inherits(), "datetime.now"),
    (Coin(), "random.random"),
    (OwnDice(), "random.Random"),
    (RandomSum(), "random.gauss"),
    (RandomReduce(), "secrets.randbelow"),
    (Negate(Coin()), "random.random"),
    (Negate(lambda word: random.random() < 0.5), "random.random"),
    (MaxWithComparator("word", lambda a, b: random.choice([-1, 1])), "random.choice"),
]


@pytest.mark.parametrize(("operation", "call"), FOUND, ids=[f"{i}-{call}" for i, (_, call) in enumerate(FOUND)])
def test_an_obvious_call_is_found_and_named(operation: Any, call: str) -> None:
    verdict = judge(operation)
    assert not verdict.deterministic
    assert call in verdict.why


def test_the_place_of_the_call_is_told() -> None:
    line = Stamp.execute.__code__.co_firstlineno + 1
    assert judge(Stamp()).why == f"calls datetime.now (test_determinism.py:{line})"


class Seeded(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([random.Random(tuple[0]).random(), np.random.default_rng(tuple[0]).random()])


class HasItsOwnRandom(Function):
    """A method and a parameter that only sound like chance."""

    def random(self, time: Any) -> Any:
        return time.time()

    def execute(self, tuple: Any, collector: Any) -> None:
        uuid4 = str
        collector.emit([self.random(tuple), uuid4(tuple[0])])


class CleansUp(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([])

    def cleanup(self) -> None:
        print("ended at", time.time())


@dataclass(frozen=True)
class Frozen(Function):
    width: int = 3
    names: list = field(default_factory=list)

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([tuple[0] * self.width])


NOT_FOUND: list[Any] = [
    lambda word: [word.upper()],
    lambda word: [datetime.datetime(2026, 1, 1), time.sleep(0)],
    lambda word: [uuid.uuid5(uuid.NAMESPACE_DNS, word)],
    lambda word: [uuid.UUID(word), datetime.datetime.fromisoformat(word)],
    lambda word: [time.gmtime(0)],
    str.upper,
    len,
    dict,
    Seeded(),
    HasItsOwnRandom(),
    CleansUp(),
    Frozen(),
    functools.partial(pow, 2),
    Count(),
    Sum(),
    Max("word"),
    Debug("clock"),
    FilterNull(),
    Negate(FilterNull()),
]  # fmt: skip


@pytest.mark.parametrize("operation", NOT_FOUND, ids=lambda each: getattr(each, "__qualname__", type(each).__name__))
def test_what_gives_the_same_again_is_left_alone(operation: Any) -> None:
    verdict = judge(operation)
    assert verdict.deterministic, verdict.why
    assert verdict.seen


def test_two_lambdas_in_one_line_are_told_apart() -> None:
    steady, drawn = (lambda word: [word]), (lambda word: [uuid4()])
    assert (judge(steady).deterministic, judge(drawn).deterministic) == (True, False)


def test_a_closure_is_resolved() -> None:
    def with_maker(make: Any) -> Any:
        return lambda word: [make(), word]

    assert not judge(with_maker(uuid4)).deterministic
    assert not judge(with_maker(random.random)).deterministic
    assert judge(with_maker(dict)).deterministic


def test_a_lambda_in_the_middle_of_a_chain_of_calls_is_read() -> None:
    held = (
        []
        .__class__([1])
        .__class__((lambda word: [
            word,
            uuid4(),
        ],))
    )  # fmt: skip
    assert not judge(held[0]).deterministic


def test_without_source_an_operation_is_not_seen_and_counts_as_not_deterministic() -> None:
    namespace: dict[str, Any] = {"uuid4": uuid4}
    exec("def made(word): return [uuid4()]", namespace)
    verdict = judge(namespace["made"])
    assert (verdict.kind, verdict.deterministic) == (UNSEEN, False)
    assert "no source found for made" in verdict.why


class Answering:
    """An object whose class answers for missing attributes, and records their names."""

    def __init__(self) -> None:
        self.__dict__["names"] = []

    def __getattr__(self, name: str) -> Any:
        self.__dict__["names"].append(name)
        raise AttributeError(name)

    def __call__(self, word: str) -> list:
        return [word]


def test_reading_an_operation_runs_no_getattr_of_the_user() -> None:
    answering = Answering()
    assert judge(lambda word: [answering(word)]) == Verdict(DETERMINISTIC)
    assert answering.__dict__["names"] == []


@pytest.mark.parametrize("name", CHANGING_CASES)
def test_what_may_give_another_result_is_not_deterministic(name: str) -> None:
    operation, what = CHANGING_CASES[name]
    verdict = judge(operation)
    assert (verdict.kind, what in verdict.why) == (CHANGING, True), verdict


@pytest.mark.parametrize("name", UNSEEN_CASES)
def test_what_leads_to_nothing_known_is_not_seen(name: str) -> None:
    operation, what = UNSEEN_CASES[name]
    verdict = judge(operation)
    assert (verdict.kind, what in verdict.why) == (UNSEEN, True), verdict


@pytest.mark.parametrize("name", STEADY_CASES)
def test_what_ported_topologies_do_needs_no_declaration(name: str) -> None:
    assert judge(STEADY_CASES[name]) == Verdict(DETERMINISTIC)


@pytest.mark.parametrize("name", CHANGING_KIN)
def test_what_is_kept_or_hidden_is_never_called_deterministic(name: str) -> None:
    assert not judge(CHANGING_KIN[name]).deterministic


@pytest.mark.parametrize("name", STEADY_KIN)
def test_what_is_made_and_changed_within_a_call_is_fine(name: str) -> None:
    assert judge(STEADY_KIN[name]) == Verdict(DETERMINISTIC)


def test_of_a_function_that_an_edited_file_no_longer_holds_nothing_is_said(tmp_path: Any) -> None:
    path = tmp_path / "edited.py"
    path.write_text("import time\n\n\ndef made(word):\n    return [time.time()]\n")
    namespace: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    path.write_text("import time\n\n\ndef made(word):\n    return [word.lower()]\n")
    assert judge(namespace["made"]).kind == UNSEEN


def test_from_standard_input_a_function_is_not_seen() -> None:
    code = (
        "import random\nfrom trident_py.operations.determinism import judge\n"
        "print(judge(lambda word: [random.random()]).kind)\n"
    )
    done = subprocess.run([sys.executable, "-"], input=code, text=True, capture_output=True, check=True)
    assert done.stdout.strip() == UNSEEN


def test_what_is_trusted_by_name_is_not_read() -> None:
    operation = UNSEEN_CASES["a library"][0]
    assert judge(operation, ["click"]).kind == DETERMINISTIC
    assert judge(operation, ["click.termui.style"]).kind == DETERMINISTIC
    assert judge(operation, ["cli"]).kind == UNSEEN
    assert judge(operation, ["*"]).kind == DETERMINISTIC
    assert judge(CHANGING_CASES["time of the definition"][0], ["*"]).kind == CHANGING


def test_a_file_that_was_cut_since_is_unknown(tmp_path: Any) -> None:
    path = tmp_path / "cut.py"
    path.write_text("from uuid import uuid4\n\n\ndef made(word):\n    return [uuid4()]\n")
    namespace: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    path.write_text("x = 1\n")
    assert not judge(namespace["made"]).seen


# -- declarations -------------------------------------------------------------------------------------------------


@nondeterministic
class Asks(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([1])


@deterministic
class LogsTheTime(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        print(time.time())
        collector.emit([1])


class DrawsAfterAll(LogsTheTime):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([random.random()])


@deterministic
class AsksNoMore(Asks):
    """Says otherwise than the class it inherits from."""


@nondeterministic
def asks(word: str) -> list:
    return [word]


@deterministic
def logs(word: str) -> list:
    print(time.time())
    return [word]


def calls_one_that_asks(word: str) -> list:
    return asks(word)


def calls_one_that_logs(word: str) -> list:
    return logs(word)


@pytest.mark.parametrize(
    ("operation", "same"),
    [
        (Asks(), False),
        (asks, False),
        (calls_one_that_asks, False),
        (Negate(Asks()), False),  # type: ignore[arg-type]
        (LogsTheTime(), True),
        (logs, True),
        (calls_one_that_logs, True),
        (DrawsAfterAll(), False),
        (AsksNoMore(), True),
    ],
    ids=lambda each: str(each) if isinstance(each, bool) else getattr(each, "__name__", type(each).__name__),
)
def test_a_declaration_stands_above_the_source(operation: Any, same: bool) -> None:
    assert judge(operation).deterministic is same


def test_an_inherited_declaration_counts() -> None:
    class Asking(Asks):
        pass

    assert judge(Asking()).why == "declared non-deterministic"


def test_one_object_can_be_declared() -> None:
    asking, other = nondeterministic(Count()), Count()
    assert (judge(asking).deterministic, judge(other).deterministic) == (False, True)
    assert judge(deterministic(Coin())).deterministic
    assert not judge(nondeterministic(Frozen())).deterministic
    assert nondeterministic(Frozen()) == Frozen()


def test_a_callable_that_takes_no_attribute_is_wrapped() -> None:
    wrapped = nondeterministic(str.upper)
    assert isinstance(wrapped, Declared)
    assert (wrapped("a"), wrapped.__qualname__) == ("A", "str.upper")
    assert not judge(wrapped).deterministic
    assert judge(deterministic(rng.random)).deterministic


def test_a_decorated_operation_is_the_same_object() -> None:
    assert asks("a") == ["a"]
    assert isinstance(Asks(), Function)
    assert Asks.__name__ == "Asks"


def test_what_is_no_operation_cannot_be_declared() -> None:
    with pytest.raises(DefinitionError, match="42 is not an operation"):
        nondeterministic(42)
