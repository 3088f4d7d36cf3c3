"""The functions, filters and aggregators of the oracle's cases, as src/oracle/Ops.java has them."""

from __future__ import annotations

import uuid
from typing import Any

from trident_py import FailedException
from trident_py.operations import (
    Aggregator,
    CombinerAggregator,
    Consumer,
    Filter,
    FlatMapFunction,
    Function,
    GroupedMultiReducer,
    MapFunction,
    MultiReducer,
    Operation,
    ReducerAggregator,
)
from trident_py.operations.builtin import (
    Count,
    Equals,
    FilterNull,
    FirstNAgg,
    FirstNSortedAgg,
    Max,
    Min,
    Negate,
    Sum,
)
from trident_py.rpc.service import of_any_run
from trident_py.tuples import TransactionAttempt

from .book import open_book, place
from .values import equal, is_number, joined, order, text, upper, words


class Script:
    """Where a case asks for a FailedException: in which attempt of which batch, at which place. Each happens once.

    A plain value; who asks it brings the conf that leads to the driver's book.
    """

    def __init__(self, fails: list[dict]) -> None:
        self.fails = fails
        self.key = f"tests.storm:{uuid.uuid4().hex}"

    def check(self, where: str, attempt: TransactionAttempt | None, name: str, conf: dict) -> None:
        for number, fail in enumerate(self.fails):
            if attempt is None or fail["where"] != where or fail["txid"] != attempt.txid:
                continue
            wanted = next((fail[k] for k in ("step", "state", "spout", "sink") if k in fail), name)
            if fail.get("attempt", 0) != attempt.attemptId or wanted != name:
                continue
            if self.book(conf).fire(number, [attempt.txid, attempt.attemptId, where, name]):
                raise FailedException(f"asked by the case: {fail}")

    def book(self, conf: dict) -> Any:
        return open_book(conf, self.key)


class Scripted(Operation):
    """An operation of a step that may be asked to fail."""

    def __init__(self, script: Script, step: str, spec: dict, out: int = 0) -> None:
        self.script = script
        self.step = step
        self.spec = spec
        self.name = spec["name"]
        self.out = out
        self.context: Any = None
        self.conf: dict = {}

    def prepare(self, conf: dict, context: Any) -> None:
        self.context, self.conf = context, of_any_run(conf)

    def check(self) -> None:
        if self.script.fails:
            self.script.check("function", self.context.transaction, self.step, self.conf)


class Fn(Scripted, Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        self.check()
        for values in getattr(self, self.name)(tuple):
            collector.emit(values)

    def split(self, t: Any) -> Any:
        return [[word] for word in words(t[0])]

    def append_constant(self, t: Any) -> Any:
        return [[self.spec.get("value")]]

    def add(self, t: Any) -> Any:
        if not all(map(is_number, t)):
            return [[None]]
        kind = float if any(isinstance(v, float) for v in t) else int
        total = kind(0)
        for value in t:
            total += kind(value)
        return [[total]]

    def duplicate(self, t: Any) -> Any:
        return [[i] if self.out else [] for i in range(self.spec.get("n", 2))]

    def identity(self, t: Any) -> Any:
        return [list(t)]

    def upper(self, t: Any) -> Any:
        return [[upper(t[0])]]

    def length(self, t: Any) -> Any:
        return [[None if t[0] is None else len(text(t[0]).encode("utf-16-le")) // 2]]

    def tuple_size(self, t: Any) -> Any:
        return [[len(t)]]

    def throw(self, t: Any) -> Any:
        raise RuntimeError("thrown by the function")


class Flt(Scripted, Filter):
    def isKeep(self, tuple: Any) -> bool:
        self.check()
        value, wanted = tuple[0] if len(tuple) else None, self.spec.get("value")
        if self.name == "equals":
            return equal(value, wanted)
        if self.name == "in_set":
            return any(equal(value, item) for item in self.spec["values"])
        if self.name == "greater_than":
            alike = is_number(value) and is_number(wanted)
            return (alike or (isinstance(value, str) and isinstance(wanted, str))) and value > wanted
        return {"true": True, "false": False}[self.name]


def filter_of(script: Script, step: str, spec: dict) -> Filter:
    if spec["name"] == "negate":
        return Negate(filter_of(script, step, spec["filter"]))
    if spec["name"] in ("equals_fields", "not_null"):
        return Equals() if spec["name"] == "equals_fields" else FilterNull()
    return Flt(script, step, spec)


class MapFn(Scripted, MapFunction):
    def execute(self, tuple: Any) -> Any:
        self.check()
        return {
            "identity": lambda t: list(t),
            "reverse": lambda t: list(t)[::-1],
            "first": lambda t: [t[0]],
            "upper": lambda t: list(map(upper, t)),
            "constant": lambda t: self.spec["values"],
            "tuple_size": lambda t: [len(t)],
        }[self.name](tuple)


class FlatMapFn(Scripted, FlatMapFunction):
    def execute(self, tuple: Any) -> Any:
        self.check()
        return {
            "split": lambda t: [[word] for word in words(t[0])],
            "repeat": lambda t: [list(t)] * self.spec.get("n", 2),
            "explode": lambda t: [[value] for value in t],
            "empty": lambda t: [],
        }[self.name](tuple)


class Peek(Scripted, Consumer):
    def accept(self, tuple: Any) -> None:
        self.check()
        now = place(self.context.transaction)
        self.script.book(self.conf).peek(self.step, *now, self.context.getPartitionIndex(), list(tuple))


class Comb(CombinerAggregator):
    def __init__(self, name: str) -> None:
        self.name = name

    def init(self, tuple: Any) -> Any:
        if self.name == "concat":
            return joined(tuple)
        return f"i({joined(tuple)})" if self.name == "trace" else tuple[0]

    def combine(self, val1: Any, val2: Any) -> Any:
        if self.name == "concat":
            return text(val1) + text(val2)
        if self.name == "trace":
            return f"c({text(val1)},{text(val2)})"
        if val1 is None or val2 is None:
            return val2 if val1 is None else val1
        first = order(val1, val2) <= 0 if self.name == "min" else order(val1, val2) >= 0
        return val1 if first else val2

    def zero(self) -> Any:
        return "z" if self.name in ("concat", "trace") else None


class Red(ReducerAggregator):
    def __init__(self, name: str) -> None:
        self.name = name

    def init(self) -> Any:
        return "r" if self.name == "rconcat" else 0

    def reduce(self, curr: Any, tuple: Any) -> Any:
        if self.name == "rconcat":
            return f"{text(curr)}|{joined(tuple)}"
        if self.name == "rcount":
            return curr + 1
        for value in tuple:
            curr = curr + value if is_number(value) else curr
        return curr


class Agg(Aggregator):
    def __init__(self, name: str) -> None:
        self.name = name

    def init(self, batchId: Any, collector: Any) -> list:
        if self.name == "init_emits":
            collector.emit(["init"])
        return []

    def aggregate(self, value: list, tuple: Any, collector: Any) -> None:
        value.append(list(tuple))
        if self.name in ("echo", "echo_then_count"):
            collector.emit([tuple[0]])

    def complete(self, value: list, collector: Any) -> None:
        if self.name in ("complete_count", "echo_then_count", "init_emits") or (
            self.name == "complete_if_any" and value
        ):
            collector.emit([len(value)])
        elif self.name == "collect":
            collector.emit([collected(value)])
        elif self.name == "multi":
            for row in value:
                collector.emit([row[0], len(value)])
            collector.emit(["end", len(value)])


AGGREGATORS = (
    "complete_count", "complete_if_any", "collect", "echo", "echo_then_count", "multi", "none", "init_emits",
    "first_n", "first_n_sorted", "Min", "Max",
)  # fmt: skip


def collected(rows: list) -> str:
    """``[t|t]``; the oracle puts no bar behind what is empty so far."""
    shown = "["
    for row in rows:
        shown += ("|" if len(shown) > 1 else "") + joined(row)
    return shown + "]"


def aggregator(spec: dict) -> Any:
    name = spec["name"]
    if name in ("concat", "trace", "min", "max"):
        return Comb(name)
    if name in ("rcount", "rconcat", "rsum"):
        return Red(name)
    n, reverse = spec.get("n", 1), spec.get("reverse") is True
    made = {
        "count": Count,
        "sum": Sum,
        "first_n": lambda: FirstNAgg(n),
        "first_n_sorted": lambda: FirstNSortedAgg(n, spec["sort"], reverse),
        "Min": lambda: Min(spec["field"]),
        "Max": lambda: Max(spec["field"]),
    }
    return made[name]() if name in made else Agg(name)


class ByField:
    """A comparator of tuples."""

    def __init__(self, by: str, reverse: bool) -> None:
        self.by = by
        self.sign = -1 if reverse else 1

    def __call__(self, a: Any, b: Any) -> int:
        return self.sign * order(a.getValueByField(self.by), b.getValueByField(self.by))


class ByValue:
    """A comparator of values."""

    def __init__(self, reverse: bool) -> None:
        self.sign = -1 if reverse else 1

    def __call__(self, a: Any, b: Any) -> int:
        return self.sign * order(a, b)


class Multi(Scripted, MultiReducer):
    def init(self, collector: Any) -> list[int]:
        return [0] * 8

    def execute(self, state: list[int], streamIndex: int, input: Any, collector: Any) -> None:
        self.check()
        state[streamIndex] += 1
        if self.name == "tag":
            collector.emit([streamIndex, input[0] if len(input) else None])

    def complete(self, state: list[int], collector: Any) -> None:
        collector.emit([-1, f"{state[0]}/{state[1]}"])


class GMulti(Scripted, GroupedMultiReducer):
    def init(self, collector: Any, group: Any) -> list[int]:
        return [0] * 8

    def execute(self, state: list[int], streamIndex: int, group: Any, input: Any, collector: Any) -> None:
        self.check()
        state[streamIndex] += 1
        if self.name == "tag":
            collector.emit([streamIndex, group[0], input[0] if len(input) else None])

    def complete(self, state: list[int], group: Any, collector: Any) -> None:
        collector.emit([-1, group[0], f"{state[0]}/{state[1]}"])


class FailAtEnd(Aggregator):
    """Fails at the end of a batch where the case asks for it at a sink."""

    def __init__(self, script: Script, sink: str) -> None:
        self.script = script
        self.sink = sink
        self.context: Any = None
        self.conf: dict = {}

    def prepare(self, conf: dict, context: Any) -> None:
        self.context, self.conf = context, of_any_run(conf)

    def init(self, batchId: Any, collector: Any) -> None:
        return None

    def aggregate(self, value: None, tuple: Any, collector: Any) -> None:
        return None

    def complete(self, value: None, collector: Any) -> None:
        if self.context.getPartitionIndex() == 0:
            self.script.check("batch", self.context.transaction, self.sink, self.conf)
