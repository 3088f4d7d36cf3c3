"""Operations as ported topologies have them, which give the same again: none of them needs a declaration."""

from __future__ import annotations

import base64
import bisect
import collections
import copy
import csv
import dataclasses
import datetime
import enum
import functools
import hashlib
import heapq
import html
import io
import itertools
import json
import logging
import math
import operator
import os.path
import re
import statistics
import string
import struct
import textwrap
import time
import types
import unicodedata
import urllib.parse
import uuid
import zlib
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, timedelta
from datetime import datetime as moment
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any, ClassVar, NamedTuple
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

import determinism_steady_helper as helpers
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from determinism_steady_helper import LIMIT, clean, to_celsius

from trident_py import Values
from trident_py.operations import (
    Aggregator,
    BaseFunction,
    CombinerAggregator,
    Consumer,
    Filter,
    FlatMapFunction,
    Function,
    MapFunction,
    ReducerAggregator,
)
from trident_py.operations.builtin import Count, FilterNull, FirstN, MaxWithComparator, Negate, Sum

log = logging.getLogger(__name__)
WORD = re.compile(r"\w+")
CODES = {"JFK": "New York", "LHR": "London"}
STOP = frozenset({"the", "a"})
BOUNDS = [0, 10, 20]
HANDLERS = {"up": str.upper, "down": str.lower, "own": clean}
ZONE = ZoneInfo("America/New_York")
FACTOR = 1.8 + 32 / len(BOUNDS)
Point = namedtuple("Point", "x y")
PAIRS = sorted({"a": 1, "b": 2}.items())
TABLE = str.maketrans("", "", string.punctuation)
WEIGHTS = np.array([1.0, 2.0])
UNIQUE = sorted(set(CODES.values()))


class Station(NamedTuple):
    name: str
    height: int = 0

    def high(self) -> bool:
        return self.height > 100


class Color(enum.Enum):
    RED = "r"
    BLUE = "b"

    @property
    def title(self) -> str:
        return self.value.upper()


@dataclass(frozen=True)
class Reading:
    station: str
    value: Decimal = Decimal(0)
    tags: list = field(default_factory=list)

    @property
    def rounded(self) -> Decimal:
        return self.value.quantize(Decimal("0.1"), ROUND_HALF_UP)

    def scaled(self, factor: int) -> Reading:
        return dataclasses.replace(self, value=self.value * factor)


class Split(BaseFunction):
    def execute(self, tuple, collector):
        sentence = tuple.getString(0)
        for word in sentence.split(" "):
            collector.emit(Values(word))


class Limit(Filter):
    def __init__(self, limit: int) -> None:
        self.limit = limit

    def isKeep(self, tuple: Any) -> bool:
        return bool(tuple.getInteger(0) < self.limit)


class Prepared(Function):
    def prepare(self, conf: dict, context: Any) -> None:
        self.pattern = re.compile(conf.get("pattern", r"\d+"))
        self.codes = {"a": 1}
        self.names: list[str] = []
        for name in conf:
            self.names.append(name)

    def execute(self, tuple: Any, collector: Any) -> None:
        for found in self.pattern.findall(tuple[0]):
            collector.emit([found, self.codes.get(found, 0), len(self.names)])


class Helped(Function):
    factor: ClassVar[int] = 3

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([self._scaled(tuple.getValueByField("n")), self.twice(2), self.name])

    def _scaled(self, n: int) -> int:
        return n * self.factor

    @staticmethod
    def twice(n: int) -> int:
        return 2 * n

    @property
    def name(self) -> str:
        return type(self).__name__


class Derived(Helped):
    def _scaled(self, n: int) -> int:
        return super()._scaled(n) + 1


class Logs(Function):
    def __init__(self) -> None:
        self.log = logging.getLogger("own")

    def prepare(self, conf: dict, context: Any) -> None:
        here = context.getPartitionIndex()
        self.made = logging.getLogger(__name__)
        self.made.info("partition " + str(here))
        log.info(f"partition {here + 1} of {context.numPartitions()}")
        print("partition", context.getPartitionIndex())

    def execute(self, tuple: Any, collector: Any) -> None:
        self.log.debug("got %s", tuple)
        log.info("got one")
        if tuple[0] is None:
            collector.reportError(ValueError("null"))
            return
        collector.emit([tuple[0]])


class Parser:
    def __init__(self, separator: str) -> None:
        self.separator = separator
        self.parts: list[str] = []

    def parse(self, text: str) -> list[str]:
        return text.strip().split(self.separator)

    def collect(self, text: str) -> list[str]:
        for part in self.parse(text):
            self.parts.append(part)
        return self.parts


class HoldsAParser(Function):
    def __init__(self) -> None:
        self.parser = Parser(";")

    def execute(self, tuple: Any, collector: Any) -> None:
        for part in self.parser.parse(tuple[0]):
            collector.emit([part])


class MakesAParser(FlatMapFunction):
    def execute(self, tuple: Any) -> Any:
        return [[part] for part in Parser(",").collect(tuple[0])]


class Mean(CombinerAggregator):
    def init(self, tuple: Any) -> Any:
        return (tuple[0], 1)

    def combine(self, val1: Any, val2: Any) -> Any:
        return tuple(a + b for a, b in zip(val1, val2, strict=True))

    def zero(self) -> Any:
        return (0, 0)


class Longest(ReducerAggregator):
    def init(self) -> str:
        return ""

    def reduce(self, curr: str, tuple: Any) -> str:
        return max(curr, tuple[0], key=len)


class Gather(Aggregator):
    def init(self, batchId: Any, collector: Any) -> Any:
        return {"words": [], "seen": set(), "counts": Counter()}

    def aggregate(self, value: Any, tuple: Any, collector: Any) -> Any:
        word = tuple[0]
        value["words"].append(word)
        value["seen"].add(word)
        value["counts"][word] += 1
        return value

    def complete(self, value: Any, collector: Any) -> None:
        for word in sorted(value["seen"]):
            collector.emit([word, value["counts"][word]])


class AggregateState:
    def __init__(self) -> None:
        self.count = 0

    def add(self, n: int) -> None:
        self.count += n


class CountsABatch(Aggregator):
    def init(self, batchId: Any, collector: Any) -> Any:
        return AggregateState()

    def aggregate(self, value: AggregateState, tuple: Any, collector: Any) -> Any:
        value.count += 1
        value.add(tuple[0])

    def complete(self, value: AggregateState, collector: Any) -> None:
        collector.emit([value.count])


class ByTransaction(Aggregator):
    def init(self, batchId: Any, collector: Any) -> Any:
        return [batchId.getTransactionId()]

    def aggregate(self, value: Any, tuple: Any, collector: Any) -> Any:
        value.append(tuple[0])
        return value

    def complete(self, value: Any, collector: Any) -> None:
        collector.emit([len(value)])


class Prints(Consumer):
    def accept(self, tuple: Any) -> None:
        print(tuple)


class ToReading(MapFunction):
    def execute(self, tuple: Any) -> Any:
        reading = Reading(tuple[0], Decimal(tuple[1]))
        return [reading.rounded, reading.scaled(2).value, reading.station]


class Callable:
    def __init__(self, suffix: str) -> None:
        self.suffix = suffix

    def __call__(self, word: str) -> list:
        return [word + self.suffix]


class JsonFields(Function):
    FIELDS = ("id", "name")

    def execute(self, tuple: Any, collector: Any) -> None:
        try:
            record = json.loads(tuple.getStringByField("value"))
        except json.JSONDecodeError as error:
            log.warning("bad record: %s", error)
            return
        collector.emit([record.get(name) for name in self.FIELDS])


@dataclass
class Configured(Function):
    width: int = 3
    names: tuple[str, ...] = ("a", "b")
    table: dict = field(default_factory=dict)

    def execute(self, tuple: Any, collector: Any) -> None:
        if tuple[0] in self.names or tuple[0] in self.table:
            collector.emit([tuple[0].ljust(self.width)])


def suffix(ending: str) -> Any:
    return lambda word: [word + ending]


def scaled(factor: int) -> Any:
    def scale(n: int) -> list:
        return [n * factor]

    return scale


def shout(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*values: Any) -> Any:
        return [each.upper() for each in function(*values)]

    return wrapper


@shout
def decorated(word: str) -> list:
    return [word]


@functools.lru_cache(maxsize=100)
def cached(word: str) -> str:
    return word.title()


@functools.singledispatch
def shown(value: Any) -> str:
    return "?"


@shown.register
def _(value: int) -> str:
    return f"{value:,}"


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def generator(text: str) -> Any:
    for number, line in enumerate(text.splitlines()):
        if line:
            yield (number, line)


def local_counter(text: str) -> list:
    counts: dict[str, int] = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def local_nonlocal(text: str) -> list:
    n = 0

    def bump() -> int:
        nonlocal n
        n += 1
        return n

    return [(bump(), word) for word in text.split()]


def local_iterator(words: list) -> list:
    numbers = itertools.count(1)
    rest = iter(words)
    next(rest, None)
    return [(next(numbers), word) for word in rest]


def parsed(text: str) -> list:
    when = moment.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    return [when.isoformat(), (when + timedelta(hours=1)).date(), when.astimezone(ZONE).hour]


def branches(word: str) -> list:
    if not word:
        return []
    elif word in STOP:
        found = [word.upper()]
    else:
        found = [clean(word)]
    while len(found) < 3:
        found.append(found[-1])
    return found


def classified(value: Any) -> list:
    match value:
        case int() | float():
            return ["number"]
        case {"kind": kind}:
            return [kind]
        case [first, *_]:
            return [first]
        case _:
            return ["other"]


def read_csv(text: str) -> list:
    return [tuple(row) for row in csv.reader(io.StringIO(text))]


def read_xml(text: str) -> list:
    return [(each.tag, each.get("id"), each.text) for each in ElementTree.fromstring(text).iter("row")]


def handled(word: str) -> list:
    try:
        return [int(word)]
    except (TypeError, ValueError) as error:
        raise RuntimeError(f"no number: {word}") from error
    finally:
        log.debug("done")


def sets_in_order(words: str) -> list:
    found = {word.lower() for word in words.split()} - STOP
    if "x" in found or len(found) > 3 or found & STOP:
        return sorted(found)
    return [len(found), min(found, default=""), any(word.isupper() for word in found)]


def set_then_sorted(words: str) -> list:
    words = set(words.split())  # type: ignore[assignment]
    words = sorted(words)  # type: ignore[assignment]
    return [word for word in words]  # noqa: C416


def seen_once(words: str) -> list:
    seen = set()
    found = []
    for word in words.split():
        if word not in seen:
            seen.add(word)
            found.append(word)
    return found


def grouped(rows: list) -> list:
    groups = defaultdict(list)
    for key, value in rows:
        groups[key].append(value)
    return [(key, sum(values)) for key, values in groups.items()]


def top(words: str) -> list:
    return Counter(words.split()).most_common(3) + heapq.nlargest(2, words)


def vectors(values: list) -> list:
    array = np.asarray(values, dtype=float)
    return [float(array.mean()), np.dot(array, array).item(), array[array > 0].tolist(), (array * WEIGHTS[0]).sum()]


def frames(values: list) -> list:
    frame = pd.DataFrame({"a": values, "b": [1] * len(values)})
    means = frame.groupby("b")["a"].mean()
    return [means.to_dict(), frame["a"].rolling(2).sum().fillna(0).tolist(), pd.to_datetime("2026-01-01").year]


def arrows(values: list) -> list:
    array = pa.array(values, pa.int64())
    return pc.add(array, 1).to_pylist() + pc.sum(array).as_py()


def helper_of_module(value: str) -> list:
    return [helpers.clean(value), helpers.Scale(2).apply(3), LIMIT, to_celsius(3.0), helpers.NAMES[0]]


def outcome(function: Any, value: str) -> list:
    return [function(value)]


STEADY_CASES: dict[str, Any] = {
    "split": lambda sentence: sentence.split(" "),
    "strip and lower": lambda word: [word.strip().lower()],
    "replace and slice": lambda word: [word.replace("-", "")[:3], word[::-1]],
    "format": lambda word, n: [f"{word!r:>10} {n:03d} {n / 3:.2f}", "{}-{}".format(word, n), "%s" % word],  # noqa: UP031, UP032
    "translate": lambda word: [word.translate(TABLE)],
    "re module": lambda text: re.findall(r"\d+", text),
    "re pattern": lambda text: [found.group(0) for found in WORD.finditer(text)],
    "re sub with a function": lambda text: [re.sub(r"\d+", lambda found: str(int(found.group()) + 1), text)],
    "json": lambda text: [json.loads(text)["id"], json.dumps({"a": text}, sort_keys=True)],
    "math": lambda x: [math.sqrt(x), math.pi * x, math.floor(x), round(x, 2), abs(x), divmod(x, 3)],
    "Decimal": lambda x: [Decimal(x).quantize(Decimal("0.01")), Decimal(x) + 1],
    "Fraction": lambda x: [Fraction(x, 3).limit_denominator(10)],
    "statistics": lambda values: [statistics.mean(values), statistics.median(values)],
    "parsing of times": parsed,
    "date": lambda text: [date.fromisoformat(text).isocalendar()[1], datetime.datetime(2026, 1, 1, tzinfo=UTC)],
    "fromtimestamp": lambda seconds: [moment.fromtimestamp(seconds, UTC).strftime("%H:%M")],
    "strftime of a tuple": lambda text: [time.strftime("%Y", time.strptime(text, "%d.%m.%Y"))],
    "gmtime of a number": lambda seconds: [time.gmtime(seconds).tm_hour],
    "counts": local_counter,
    "Counter": lambda text: list(Counter(text.split()).items()),
    "defaultdict": grouped,
    "heap": top,
    "deque and OrderedDict": lambda words: [list(deque(words, 3)), OrderedDict.fromkeys(words)],
    "namedtuple": lambda x, y: [Point(x, y).x, Point(x, y)._replace(x=1), Station("a").high()],
    "enum": lambda word: [Color(word).name, Color.RED.title, Color["BLUE"].value],
    "dataclass": lambda name, value: [Reading(name, Decimal(value)).rounded, dataclasses.asdict(Reading(name))],
    "helper of the module": branches,
    "helpers of another module": helper_of_module,
    "recursion": lambda n: [fibonacci(n)],
    "generator function": generator,
    "closure over a constant": suffix("!"),
    "closure over a number": scaled(3),
    "decorated by a function of the module": decorated,
    "lru_cache": lambda word: [cached(word)],
    "singledispatch": lambda value: [shown(value)],
    "partial": functools.partial(math.pow, 2),
    "partial of a helper": functools.partial(outcome, str.upper),
    "comprehensions": lambda words: [{w: len(w) for w in words}, [w for w in words if w], tuple(w for w in words)],
    "nested comprehension": lambda rows: [cell for row in rows for cell in row if cell not in STOP],
    "sorted set": lambda words: sorted(set(words.split())),
    "sets in order": sets_in_order,
    "set, then sorted": set_then_sorted,
    "seen once": seen_once,
    "member of a set": lambda word: word in STOP,
    "module dict": lambda code: [CODES.get(code, "?").upper(), CODES[code], *CODES],
    "dispatch by a module dict": lambda how, word: [HANDLERS[how](word)],
    "module list": lambda n: [bisect.bisect_left(BOUNDS, n), BOUNDS[0], PAIRS[0][1], FACTOR * n, UNIQUE[0]],
    "digest": lambda word: [hashlib.sha256(word.encode()).hexdigest(), zlib.crc32(word.encode()) & 0xFF],
    "base64": lambda raw: [base64.b64decode(raw).decode("utf-8"), struct.unpack(">I", raw)[0]],
    "uuid5": lambda word: [str(uuid.uuid5(uuid.NAMESPACE_URL, word)), uuid.UUID(word).hex],
    "url": lambda url: [urllib.parse.urlparse(url).netloc, urllib.parse.parse_qs(url), urllib.parse.unquote(url)],
    "csv": read_csv,
    "xml": read_xml,
    "text": lambda text: [textwrap.shorten(text, 10), html.unescape(text), unicodedata.normalize("NFC", text)],
    "paths": lambda path: [os.path.basename(path), PurePosixPath(path).suffix, os.path.join("a", path)],
    "itertools": lambda words: [list(each) for _, each in itertools.groupby(sorted(words), key=operator.itemgetter(0))],
    "iterators of this call": local_iterator,
    "nonlocal of this call": local_nonlocal,
    "reduce": lambda values: [functools.reduce(operator.add, values, 0), functools.reduce(lambda a, b: a * b, values)],
    "map and filter": lambda words: list(map(str.upper, filter(None, words))),
    "sorted by key": lambda rows: sorted(rows, key=lambda row: (-row["n"], row["word"]), reverse=True),
    "zip and enumerate": lambda a, b: [(i, x, y) for i, (x, y) in enumerate(zip(a, b, strict=True))],
    "builtins": lambda x: [int(x), float(x), str(x), bool(x), isinstance(x, str), repr(x), ord("a"), min(x), sum(x)],
    "copy": lambda value: [copy.deepcopy(value), copy.copy(value)],
    "match": classified,
    "exceptions": handled,
    "walrus": lambda text: [found.group(1)] if (found := WORD.match(text)) else [],
    "ternary": lambda n: ["even" if n % 2 == 0 else "odd"],
    "None": lambda word: None,
    "numpy": vectors,
    "pandas": frames,
    "pyarrow": arrows,
    "str method": str.upper,
    "itemgetter": operator.itemgetter(1),
    "type": int,
    "Split": Split(),
    "Limit": Limit(3),
    "Prepared": Prepared(),
    "Helped": Helped(),
    "Derived": Derived(),
    "Logs": Logs(),
    "HoldsAParser": HoldsAParser(),
    "MakesAParser": MakesAParser(),
    "Mean": Mean(),
    "Longest": Longest(),
    "Gather": Gather(),
    "CountsABatch": CountsABatch(),
    "ByTransaction": ByTransaction(),
    "Prints": Prints(),
    "ToReading": ToReading(),
    "Callable": Callable("!"),
    "JsonFields": JsonFields(),
    "Configured": Configured(),
    "bound method": Parser(",").parse,
    "Count": Count(),
    "Sum": Sum(),
    "FirstN": FirstN(3, "word"),
    "Negate": Negate(FilterNull()),
    "comparator": MaxWithComparator("word", lambda a, b: (a > b) - (a < b)),
    "namespace": lambda word: [types.SimpleNamespace(a=word).a, collections.ChainMap({"a": word})["a"]],
}  # fmt: skip
