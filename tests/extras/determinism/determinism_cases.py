"""Operations that may give other results when they run again, each with what has to be said of it and why.

`test_determinism.py` reads the two tables, CHANGING_CASES and UNSEEN_CASES.
"""

from __future__ import annotations

import contextvars
import ctypes
import datetime
import functools
import getpass
import glob
import heapq
import importlib
import io
import itertools
import json
import logging
import multiprocessing
import operator
import os
import pathlib
import platform
import random
import secrets
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import types
import urllib.request
import uuid
import weakref
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from datetime import datetime as moment
from decimal import Decimal
from email.utils import formatdate
from secrets import *  # noqa: F403
from time import time as this_moment
from typing import Any, ClassVar

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from trident_py.operations import Aggregator, CombinerAggregator, Filter, Function, MapFunction

now = time.time
STARTED = time.time()
HOST = socket.gethostname()
NAMES = list({"a", "b", "c"})
SEEN: dict[str, int] = {}
LINES: list[str] = []
NUMBERS = itertools.count()
match os.sep:
    case "/":
        BY_CASE = time.time()
    case _:
        BY_CASE = 0.0
match (time.time(), 1):
    case (CAPTURED, _):
        pass
TOTAL = 0
CLOCKS = {"wall": time.time, "steady": time.monotonic}
FIRST_OF = (str.upper, time.time)
BLOOM = {"x", "y", "z"}
QUEUE: deque[str] = deque()
generator = np.random.default_rng(7)
old_generator = np.random.RandomState(7)
dice = random.Random(7)
memo = weakref.WeakValueDictionary()
current: contextvars.ContextVar[str] = contextvars.ContextVar("current", default="")
clocks = types.SimpleNamespace(now=time.time)
own_module = types.ModuleType("own_module")
own_module.stamp = lambda: time.time()  # type: ignore[attr-defined]


class Emits(Function):
    """What the cases below have in common: they emit what `value` gives."""

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([self.value(tuple)])

    def value(self, tuple: Any) -> Any:
        raise NotImplementedError


# -- held callables and generators ----------------------------------------------------------------------------------


class HeldClock(Emits):
    def __init__(self) -> None:
        self.clock = time.time

    def value(self, tuple: Any) -> Any:
        return self.clock()


class ClassClock(Emits):
    clock: ClassVar[Any] = time.time

    def value(self, tuple: Any) -> Any:
        return self.clock()


class StaticClock(Emits):
    clock = staticmethod(time.time)

    def value(self, tuple: Any) -> Any:
        return self.clock()


class StaticOwn(Emits):
    @staticmethod
    def stamp() -> float:
        return time.time()

    def value(self, tuple: Any) -> Any:
        return self.stamp()


class ClassOwn(Emits):
    @classmethod
    def stamp(cls) -> float:
        return time.time()

    def value(self, tuple: Any) -> Any:
        return type(self).stamp()


class PartialClock(Emits):
    def __init__(self) -> None:
        self.clock = functools.partial(time.strftime, "%H:%M:%S")

    def value(self, tuple: Any) -> Any:
        return self.clock()


class HeldGenerator(Emits):
    def __init__(self) -> None:
        self.rng = np.random.default_rng(7)

    def value(self, tuple: Any) -> Any:
        return self.rng.random()


class PreparedGenerator(Emits):
    def prepare(self, conf: dict, context: Any) -> None:
        self.rng = random.Random(7)

    def value(self, tuple: Any) -> Any:
        return self.rng.random()


class PreparedClock(Emits):
    def prepare(self, conf: dict, context: Any) -> None:
        self.clock = time.time

    def value(self, tuple: Any) -> Any:
        return self.clock()


class HeldHandlers(Emits):
    def __init__(self) -> None:
        self.handlers = {"now": time.time, "len": len}

    def value(self, tuple: Any) -> Any:
        return self.handlers[tuple[0]]()


class Ticker:
    def __init__(self) -> None:
        self.clock = time.time

    def tick(self) -> float:
        return self.clock()


class HeldObject(Emits):
    def __init__(self) -> None:
        self.ticker = Ticker()

    def value(self, tuple: Any) -> Any:
        return self.ticker.tick()


class HeldMethod(Emits):
    def __init__(self) -> None:
        self.tick = Ticker().tick

    def value(self, tuple: Any) -> Any:
        return self.tick()


class OwnProperty(Emits):
    @property
    def stamp(self) -> float:
        return time.time()

    def value(self, tuple: Any) -> Any:
        return self.stamp


class CachedProperty(Emits):
    @functools.cached_property
    def stamp(self) -> float:
        return time.time()

    def value(self, tuple: Any) -> Any:
        return self.stamp


class Called:
    def __call__(self, word: str) -> list:
        return [time.time()]


class HeldCalled(Emits):
    def __init__(self) -> None:
        self.called = Called()

    def value(self, tuple: Any) -> Any:
        return self.called(tuple[0])


@dataclass
class DefaultFactory(Emits):
    stamp: float = field(default_factory=time.time)

    def value(self, tuple: Any) -> Any:
        return self.stamp


class MadeAtStart(Emits):
    def __init__(self) -> None:
        self.began = time.time()

    def value(self, tuple: Any) -> Any:
        return self.began


class Reads(MapFunction):
    def prepare(self, conf: dict, context: Any) -> None:
        with open("/etc/hostname") as file:
            self.text = file.read()

    def execute(self, tuple: Any) -> Any:
        return [self.text]


class WhichPartition(Emits):
    def prepare(self, conf: dict, context: Any) -> None:
        self.index = context.getPartitionIndex()

    def value(self, tuple: Any) -> Any:
        return self.index


class LogsAndKeepsPartition(WhichPartition):
    def prepare(self, conf: dict, context: Any) -> None:
        here = context.getPartitionIndex()
        logging.info("partition %d", here)
        self.index = here


class KeepsPartitionInLog(WhichPartition):
    def prepare(self, conf: dict, context: Any) -> None:
        logging.info("partition %d", self.keep(context.getPartitionIndex()))

    def keep(self, index: int) -> int:
        self.index = index
        return index


class NamesPartitionInLog(WhichPartition):
    def prepare(self, conf: dict, context: Any) -> None:
        logging.info("partition %d", (here := context.getPartitionIndex()))
        self.index = here


class BranchesByPartition(WhichPartition):
    def prepare(self, conf: dict, context: Any) -> None:
        here = context.getPartitionIndex()
        self.index = 1 if here else 2


class WhichAttempt(Aggregator):
    def init(self, batchId: Any, collector: Any) -> Any:
        return batchId.getAttemptId()

    def aggregate(self, value: Any, tuple: Any, collector: Any) -> Any:
        return value

    def complete(self, value: Any, collector: Any) -> None:
        collector.emit([value])


# -- what is kept from call to call ---------------------------------------------------------------------------------


class Counts(Emits):
    def __init__(self) -> None:
        self.n = 0

    def value(self, tuple: Any) -> Any:
        self.n += 1
        return self.n


class CountsOnTheClass(Emits):
    n = 0

    def value(self, tuple: Any) -> Any:
        type(self).n += 1
        return self.n


class CountsByName(Emits):
    n = 0

    def value(self, tuple: Any) -> Any:
        CountsByName.n += 1
        return CountsByName.n


class KeepsWords(Filter):
    def prepare(self, conf: dict, context: Any) -> None:
        self.seen: set = set()

    def isKeep(self, tuple: Any) -> bool:
        if tuple[0] in self.seen:
            return False
        self.seen.add(tuple[0])
        return True


class KeepsThroughAnAlias(Emits):
    def __init__(self) -> None:
        self.cache: dict = {}

    def value(self, tuple: Any) -> Any:
        cache = self.cache
        cache[tuple[0]] = len(cache)
        return cache[tuple[0]]


class KeepsInAHelper(Emits):
    def __init__(self) -> None:
        self.words: list = []

    def value(self, tuple: Any) -> Any:
        remember(self.words, tuple[0])
        return len(self.words)


class KeepsDeep(Emits):
    def __init__(self) -> None:
        self.groups: dict = {"a": []}

    def value(self, tuple: Any) -> Any:
        self.groups["a"].append(tuple[0])
        return len(self.groups["a"])


class KeepsByGet(Emits):
    def prepare(self, conf: dict, context: Any) -> None:
        self.groups: dict = defaultdict(list)

    def value(self, tuple: Any) -> Any:
        self.groups.setdefault(tuple[0], []).append(1)
        return len(self.groups)


class SetsByName(Emits):
    def value(self, tuple: Any) -> Any:
        setattr(self, "last", tuple[0])  # noqa: B010
        return tuple[0]


class HeldIterator(Emits):
    def prepare(self, conf: dict, context: Any) -> None:
        self.numbers = itertools.count()

    def value(self, tuple: Any) -> Any:
        return next(self.numbers)


class HeldGeneratorFunction(Emits):
    def prepare(self, conf: dict, context: Any) -> None:
        self.numbers = self.count()

    def count(self) -> Any:
        n = 0
        while True:
            n += 1
            yield n

    def value(self, tuple: Any) -> Any:
        return next(self.numbers)


class InitOfAReducer(CombinerAggregator):
    made = 0

    def init(self, tuple: Any) -> int:
        self.made += 1
        return self.made

    def combine(self, val1: int, val2: int) -> int:
        return val1 + val2

    def zero(self) -> int:
        return 0


class CountsInSuper(Counts):
    def value(self, tuple: Any) -> Any:
        return super().value(tuple)


class HeldCounter(Emits):
    def __init__(self) -> None:
        self.counts: Counter = Counter()

    def value(self, tuple: Any) -> Any:
        self.counts.update(tuple)
        return self.counts[tuple[0]]


class HeldArray(Emits):
    def __init__(self) -> None:
        self.sums = np.zeros(4)

    def value(self, tuple: Any) -> Any:
        self.sums[0] += tuple[0]
        return float(self.sums[0])


class HeldHeap(Emits):
    def __init__(self) -> None:
        self.heap: list = []

    def value(self, tuple: Any) -> Any:
        heapq.heappush(self.heap, tuple[0])
        return self.heap[0]


class HeldFile(Emits):
    def __init__(self) -> None:
        self.file = io.StringIO("a\nb\n")

    def value(self, tuple: Any) -> Any:
        return self.file.readline()


def remember(words: list, word: str) -> None:
    words.append(word)


def module_counter(word: str) -> list:
    global TOTAL
    TOTAL += 1
    return [TOTAL]


def reads_the_total(word: str) -> list:
    return [TOTAL]


def module_dict(word: str) -> list:
    SEEN[word] = SEEN.get(word, 0) + 1
    return [SEEN[word]]


def module_list(word: str) -> list:
    LINES.append(word)
    return [len(LINES)]


def module_list_in_place(word: str) -> list:
    lines = LINES
    lines += [word]
    return [len(lines)]


def module_queue(word: str) -> list:
    QUEUE.appendleft(word)
    return [QUEUE.pop()]


def mutable_default(word: str, seen: dict = {}) -> list:  # noqa: B006
    seen[word] = seen.get(word, 0) + 1
    return [seen[word]]


def default_list(word: str, seen: list = []) -> list:  # noqa: B006
    seen.append(word)
    return [len(seen)]


def function_attribute(word: str) -> list:
    function_attribute.calls = getattr(function_attribute, "calls", 0) + 1  # type: ignore[attr-defined]
    return [function_attribute.calls]  # type: ignore[attr-defined]


def deletes(word: str) -> list:
    SEEN.pop(word, None)
    del SEEN[word]
    return [len(SEEN)]


def closure_counter() -> Any:
    n = 0

    def count(word: str) -> list:
        nonlocal n
        n += 1
        return [n]

    return count


def closure_list() -> Any:
    seen: list = []
    return lambda word: [seen.append(word), len(seen)]


def closure_iterator() -> Any:
    numbers = itertools.count()
    return lambda word: [next(numbers)]


def closure_send() -> Any:
    def running() -> Any:
        n = 0
        while True:
            n += yield n

    held = running()
    next(held)
    return lambda word: [held.send(1)]


def closure_clock() -> Any:
    began = time.time()
    return lambda word: [began]


def recursive(word: str) -> list:
    return recursive(word[1:]) if word else [time.time()]


@functools.lru_cache
def cached(word: str) -> float:
    return time.time()


@functools.cache
def cached_too(word: str) -> float:
    return uuid.uuid4().int


@functools.singledispatch
def dispatched(word: Any) -> float:
    return 0.0


@dispatched.register
def _(word: str) -> float:
    return time.time()


def wrapped_in_place(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*values: Any) -> list:
        return [function(*values), time.time()]

    return wrapper


@wrapped_in_place
def stamped(word: str) -> str:
    return word


def twice(function: Any, word: str) -> list:
    return [function(), function()]


def numbered(words: list) -> list:
    found = []
    for clock in (time.time, time.perf_counter):
        found.append(clock())
    return found


def alias(word: str) -> list:
    tell = time.time
    return [tell()]


def alias_of_module(word: str) -> list:
    t = time
    return [t.time()]


def default_argument(word: str, clock: Any = time.time) -> list:
    return [clock()]


def keyword_default(word: str, *, clock: Any = time.time) -> list:
    return [clock()]


def nested(word: str) -> list:
    def inner() -> float:
        return time.time()

    return [inner()]


def nested_lambda(word: str) -> list:
    made = lambda: time.time()  # noqa: E731
    return [made()]


def comprehension_of_clocks(word: str) -> list:
    return [clock() for clock in CLOCKS.values()]


def walrus(word: str) -> list:
    if (tell := time.time) is not None:
        return [tell()]
    return []


def unpacked(word: str) -> list:
    _, tell = FIRST_OF
    return [tell()]


def matched(word: str) -> list:
    match word:
        case "now":
            return [time.time()]
        case _:
            return [word]


def in_a_handler(word: str) -> list:
    try:
        return [int(word)]
    except ValueError:
        return [time.time()]


def in_an_f_string(word: str) -> list:
    return [f"{word} at {time.time():.0f}"]


def in_a_with(word: str) -> list:
    with open(word) as file:
        return [file.read()]


def import_inside(word: str) -> list:
    from time import time as inside

    return [inside()]


def set_in_a_loop(words: str) -> list:
    return [word for word in set(words.split())]  # noqa: C416


def loop_over_a_set(words: str) -> list:
    found = []
    for word in {each.lower() for each in words.split()}:
        found.append(word)
    return found


def set_of_a_helper(words: str) -> list:
    return list(unique(words))


def unique(words: str) -> set:
    return set(words.split())


def common(words: dict, others: dict) -> list:
    return list(words.keys() & others.keys())


def popped(words: str) -> list:
    return [set(words).pop()]


def starred(words: str) -> list:
    return [*{*words}]


def keyed_by_set(words: str) -> list:
    return [dict.fromkeys(set(words.split()))]


def numbered_set(words: str) -> list:
    return list(enumerate(set(words.split())))


def first_of_set(words: str) -> list:
    first, *_ = set(words.split())
    return [first]


def maximum_of_set(words: str) -> list:
    return [max(set(words.split()), key=len)]


class SetOnSelf(Emits):
    def __init__(self) -> None:
        self.words = frozenset(("a", "b"))

    def value(self, tuple: Any) -> Any:
        return [word for word in self.words if word in tuple[0]]


class SetInPrepare(Emits):
    def prepare(self, conf: dict, context: Any) -> None:
        self.words = set(conf)

    def value(self, tuple: Any) -> Any:
        return ",".join(self.words)


class DefaultRepr:
    pass


class FromOutside(click.ParamType):
    """A class of a library that nobody has read: its `convert` is inherited."""

    def __call__(self, word: str) -> list:
        return [self.split_envvar_value(word)]


class Forwards:
    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


class Meta(type):
    def __call__(cls, *values: Any) -> Any:
        return time.time()


class Made(metaclass=Meta):
    pass


class Compares:
    def __lt__(self, other: Any) -> bool:
        return time.time() > 1

    def __len__(self) -> int:
        return time.time_ns() % 2


def by_operator(words: list) -> list:
    return sorted([Compares() for _ in words])


def by_len(word: str) -> list:
    return [len(Compares())]


def stale() -> Any:
    """A function that no file holds."""
    names: dict[str, Any] = {"time": time}
    exec("def hidden(word):\n    return [time.time()]", names)
    return names["hidden"]


def dynamic_attribute(word: str) -> list:
    return [getattr(time, word)()]


def register(word: str) -> None:
    REGISTERED[word] = 1


REGISTERED: dict[str, int] = {}


# each: (the operation, a part of what is said of it)
CHANGING_CASES: dict[str, tuple[Any, str]] = {
    # the cases that were called deterministic once
    "held clock": (HeldClock(), "time.time"),
    "a global of a match": (lambda word: [BY_CASE], "time.time"),
    "a global that a match captures": (lambda word: [CAPTURED], "time.time"),
    "class attribute": (ClassClock(), "time.time"),
    "static clock": (StaticClock(), "time.time"),
    "partial held": (PartialClock(), "time.strftime"),
    "partial": (functools.partial(time.strftime, "%H"), "time.strftime"),
    "partial in a lambda": (lambda word: [functools.partial(time.time)()], "time.time"),
    "held generator": (HeldGenerator(), "numpy.random"),
    "prepared generator": (PreparedGenerator(), "random"),
    "module alias": (lambda word: [now()], "time.time"),
    "alias by from": (lambda word: [this_moment()], "time.time"),
    "star import": (lambda word: [token_hex()], "secrets.token_hex"),  # noqa: F405
    "local alias": (alias, "time.time"),
    "alias of a module": (alias_of_module, "time.time"),
    "default argument": (default_argument, "time.time"),
    "keyword default": (keyword_default, "time.time"),
    "lambda default": (lambda word, tell=time.time: [tell()], "time.time"),
    "loop variable": (numbered, "time.time"),
    "strftime": (lambda word: [time.strftime("%Y")], "time.strftime"),
    "clock_gettime": (lambda word: [time.clock_gettime(time.CLOCK_REALTIME)], "time.clock_gettime"),
    "localtime(None)": (lambda word: [time.localtime(None)], "time.localtime"),
    "gmtime()": (lambda word: [time.gmtime()], "time.gmtime"),
    "datetime64 now": (lambda word: [np.datetime64("now")], "numpy.datetime64"),
    "datetime64 today": (lambda word: [np.datetime64("today", "D")], "numpy.datetime64"),
    "Random(None)": (lambda word: [random.Random(None).random()], "random.Random"),
    "default_rng(None)": (lambda word: [np.random.default_rng(None).random()], "numpy.random.default_rng"),
    "lru_cache": (lambda word: [cached(word)], "time.time"),
    "cache": (cached_too, "uuid.uuid4"),
    "singledispatch": (lambda word: [dispatched(word)], "time.time"),
    "singledispatch itself": (dispatched, "time.time"),
    "method of a namespace": (lambda word: [clocks.now()], "time.time"),
    "method of a module object": (lambda word: [own_module.stamp()], "time.time"),
    "method of a held object": (HeldObject(), "time.time"),
    "next(count())": (lambda word: [next(NUMBERS)], "NUMBERS"),
    "self.n += 1": (Counts(), "self.n"),
    "module dict": (module_dict, "SEEN"),
    "environ": (lambda word: [os.environ["HOME"]], "os.environ"),
    "environ.get": (lambda word: [os.environ.get("HOME", word)], "os.environ"),
    "getenv": (lambda word: [os.getenv("HOME")], "os.getenv"),
    "pid": (lambda word: [os.getpid()], "os.getpid"),
    "host name": (lambda word: [socket.gethostname()], "socket.gethostname"),
    "node": (lambda word: [platform.node()], "platform.node"),
    "hash": (lambda word: [hash(word) % 4], "hash"),
    "id": (lambda word: [id(word)], "id"),
    "list(set)": (lambda words: list(set(words.split())), "set"),
    # their kin
    "uuid1": (lambda word: [uuid.uuid1()], "uuid.uuid1"),
    "uuid4": (lambda word: [str(uuid.uuid4())], "uuid.uuid4"),
    "getnode": (lambda word: [uuid.getnode()], "uuid.getnode"),
    "secrets": (lambda word: [secrets.token_urlsafe()], "secrets.token_urlsafe"),
    "secrets choice": (lambda word: [secrets.choice(word)], "secrets.choice"),
    "SystemRandom": (lambda word: [random.SystemRandom().random()], "random.SystemRandom"),
    "random seed": (lambda word: [random.seed(7), random.random()], "random"),
    "thread": (lambda word: [threading.get_ident()], "threading.get_ident"),
    "current thread": (lambda word: [threading.current_thread().name], "threading.current_thread"),
    "process name": (lambda word: [multiprocessing.current_process().name], "multiprocessing"),
    "monotonic": (lambda word: [time.monotonic()], "time.monotonic"),
    "monotonic_ns": (lambda word: [time.monotonic_ns()], "time.monotonic_ns"),
    "process_time": (lambda word: [time.process_time()], "time.process_time"),
    "thread_time": (lambda word: [time.thread_time_ns()], "time.thread_time_ns"),
    "ctime": (lambda word: [time.ctime()], "time.ctime"),
    "asctime": (lambda word: [time.asctime()], "time.asctime"),
    "now": (lambda word: [datetime.datetime.now()], "datetime.now"),
    "now with a zone": (lambda word: [moment.now(datetime.UTC)], "datetime.now"),
    "today": (lambda word: [moment.today()], "datetime.today"),
    "utcnow of an instance": (lambda word: [moment(2026, 1, 1).utcnow()], "utcnow"),
    "now through a map": (lambda words: list(map(lambda word: moment.now(), words)), "datetime.now"),  # noqa: C417
    "formatdate": (lambda word: [formatdate()], "email.utils.formatdate"),
    "datetime subclass": (lambda word: [type("D", (moment,), {}).now()], ""),
    "numpy shuffle": (lambda word: [np.random.shuffle(word)], "numpy.random.shuffle"),
    "numpy RandomState": (lambda word: [old_generator.rand()], "numpy.random"),
    "numpy Generator": (lambda word: [generator.normal()], "numpy.random"),
    "numpy Generator made": (lambda word: [np.random.Generator(np.random.PCG64()).random()], "numpy.random"),
    "numpy empty": (lambda word: [np.empty(3)], "numpy.empty"),
    "pyarrow random": (lambda word: [pc.random(3)], "pyarrow.compute.random"),
    "module Random": (lambda word: [dice.random()], "random.random"),
    "choice as key": (lambda words: sorted(words, key=lambda word: random.random()), "random.random"),
    "counter in a filter": (lambda word: next(NUMBERS) % 2 == 0, "NUMBERS"),
    "prepared clock": (PreparedClock(), "time.time"),
    "own static method": (StaticOwn(), "time.time"),
    "own class method": (ClassOwn(), "time.time"),
    "dict of handlers": (HeldHandlers(), "time.time"),
    "module dict of clocks": (lambda word: [CLOCKS[word]()], "time.time"),
    "comprehension of clocks": (comprehension_of_clocks, "time.time"),
    "held method": (HeldMethod(), "time.time"),
    "bound method": (Ticker().tick, "time.time"),
    "property": (OwnProperty(), "time.time"),
    "cached property": (CachedProperty(), "time.time"),
    "__call__": (Called(), "time.time"),
    "held __call__": (HeldCalled(), "time.time"),
    "default factory": (DefaultFactory(), "time.time"),
    "time of the definition": (MadeAtStart(), "time.time"),
    "reads in prepare": (Reads(), "open"),
    "partition": (WhichPartition(), "getPartitionIndex"),
    "partition, logged too": (LogsAndKeepsPartition(), "getPartitionIndex"),
    "partition, kept by what is logged": (KeepsPartitionInLog(), "getPartitionIndex"),
    "partition, named in a log": (NamesPartitionInLog(), "getPartitionIndex"),
    "partition, in a condition": (BranchesByPartition(), "getPartitionIndex"),
    "attempt": (WhichAttempt(), "getAttemptId"),
    "class counter": (CountsOnTheClass(), "n"),
    "class counter by name": (CountsByName(), "CountsByName.n"),
    "seen words": (KeepsWords(), "self.seen"),
    "an alias of a held dict": (KeepsThroughAnAlias(), "cache"),
    "a helper changes a held list": (KeepsInAHelper(), "words"),
    "deep in a held dict": (KeepsDeep(), "self.groups"),
    "setdefault": (KeepsByGet(), "self.groups"),
    "setattr": (SetsByName(), "setattr"),
    "held iterator": (HeldIterator(), "self.numbers"),
    "held generator function": (HeldGeneratorFunction(), "self.numbers"),
    "combiner that counts": (InitOfAReducer(), "self.made"),
    "counts in super": (CountsInSuper(), "self.n"),
    "held Counter": (HeldCounter(), "self.counts"),
    "held array": (HeldArray(), "self.sums"),
    "held heap": (HeldHeap(), "self.heap"),
    "held file": (HeldFile(), "self.file"),
    "global counter": (module_counter, "TOTAL"),
    "module list": (module_list, "LINES"),
    "module list in place": (module_list_in_place, "lines"),
    "module queue": (module_queue, "QUEUE"),
    "mutable default": (mutable_default, "seen"),
    "mutable default list": (default_list, "seen"),
    "function attribute": (function_attribute, "function_attribute.calls"),
    "deletes from a module dict": (deletes, "SEEN"),
    "nonlocal counter": (closure_counter(), "n"),
    "closure list": (closure_list(), "seen"),
    "closure iterator": (closure_iterator(), "numbers"),
    "closure of a generator": (closure_send(), "held"),
    "closure over a time": (closure_clock(), "time.time"),
    "module constant of a clock": (lambda word: [STARTED], "time.time"),
    "module constant of a host": (lambda word: [HOST], "socket.gethostname"),
    "module constant of a set": (lambda word: [NAMES], "set"),
    "recursion": (recursive, "time.time"),
    "decorated": (stamped, "time.time"),
    "handed on": (lambda word: twice(time.time, word), "time.time"),
    "handed on by keyword": (lambda word: sorted(word, key=time.time), "time.time"),
    "nested function": (nested, "time.time"),
    "nested lambda": (nested_lambda, "time.time"),
    "walrus": (walrus, "time.time"),
    "unpacked": (unpacked, "time.time"),
    "match": (matched, "time.time"),
    "handler": (in_a_handler, "time.time"),
    "f-string": (in_an_f_string, "time.time"),
    "import inside": (import_inside, "time.time"),
    "conditional": (lambda word: [time.time() if word else 0], "time.time"),
    "methodcaller": (operator.methodcaller("now"), "now"),
    "getattr by a constant": (lambda word: [getattr(time, "time")()], "time.time"),  # noqa: B009
    "map": (functools.partial(map, random.choice), "random"),
    "set in a comprehension": (set_in_a_loop, "set"),
    "loop over a set": (loop_over_a_set, "set"),
    "set of a helper": (set_of_a_helper, "set"),
    "keys &": (common, "set"),
    "pop of a set": (popped, "set"),
    "starred set": (starred, "set"),
    "dict of a set": (keyed_by_set, "set"),
    "enumerate a set": (numbered_set, "set"),
    "first of a set": (first_of_set, "set"),
    "max by key of a set": (maximum_of_set, "set"),
    "join of a set": (lambda words: [",".join(set(words))], "set"),
    "text of a set": (lambda words: [str(set(words))], "set"),
    "set in an f-string": (lambda words: [f"{set(words)}"], "set"),
    "module set": (lambda words: [word for word in BLOOM if word in words], "BLOOM"),
    "held set": (SetOnSelf(), "self.words"),
    "prepared set": (SetInPrepare(), "self.words"),
    "open": (in_a_with, "open"),
    "Path.read_text": (lambda word: [pathlib.Path(word).read_text()], "read_text"),
    "Path.exists": (lambda word: pathlib.Path(word).exists(), "exists"),
    "Path.cwd": (lambda word: [pathlib.Path.cwd()], "cwd"),
    "glob": (lambda word: glob.glob(word), "glob.glob"),
    "listdir": (lambda word: os.listdir(word), "os.listdir"),
    "stat": (lambda word: [os.stat(word).st_mtime], "os.stat"),
    "getmtime": (lambda word: [os.path.getmtime(word)], "os.path.getmtime"),
    "cpu_count": (lambda word: [os.cpu_count()], "os.cpu_count"),
    "argv": (lambda word: [sys.argv[0]], "sys.argv"),
    "user": (lambda word: [getpass.getuser()], "getpass.getuser"),
    "temporary file": (lambda word: [tempfile.mkdtemp()], "tempfile.mkdtemp"),
    "urlopen": (lambda word: [urllib.request.urlopen(word).read()], "urllib.request.urlopen"),
    "a connection": (lambda word: [socket.create_connection((word, 80)).recv(9)], "socket.create_connection"),
    "subprocess": (lambda word: [subprocess.check_output(["date"])], "subprocess.check_output"),
    "sqlite": (lambda word: [sqlite3.connect(word).execute("SELECT 1").fetchone()], "sqlite3"),
    "input": (lambda word: [input()], "input"),
    "operators": (by_operator, "time.time"),
    "len of an own class": (by_len, "time.time"),
    "weak references": (lambda word: [memo.get(word)], "weakref"),
}  # fmt: skip


UNSEEN_CASES: dict[str, tuple[Any, str]] = {
    "exec": (stale(), "hidden"),
    "lambda of eval": (eval("lambda word: [__import__('time').time()]"), "<lambda>"),
    "eval": (lambda word: [eval(word)], "eval(word)"),
    "exec in it": (lambda word: [exec(word)], "exec(word)"),
    "__import__": (lambda word: [__import__("time").time()], "__import__"),
    "import_module": (lambda word: [importlib.import_module(word).time()], "import_module"),
    "getattr by a name": (dynamic_attribute, "getattr(time, word)"),
    "globals()": (lambda word: [globals()[word]()], "globals()"),
    "a callable in a tuple": (lambda word: [word()], "word()"),
    "a method nobody knows": (lambda word: [word.fetch()], "word.fetch()"),
    "a library": (lambda word: [click.style(word)], "click.style"),
    "a database": (lambda word: [sa.create_engine(word).connect()], "sqlalchemy"),
    "a decorator of a library": (click.pass_context(lambda context: [context]), "<lambda>"),
    "a method inherited from outside": (FromOutside(), "split_envvar_value"),
    "__getattr__": (lambda word: [Forwards().time()], "Forwards().time"),
    "a metaclass": (lambda word: [Made()], "Made"),
    "a C function": (lambda word: [ctypes.c_int(1)], "ctypes.c_int"),
    "a context variable": (lambda word: [current.get()], "current"),
    "a table that another function fills": (lambda word: [REGISTERED.get(word)], "REGISTERED"),
    "a number that another function changes": (reads_the_total, "TOTAL, which module_counter changes"),
    "methodcaller": (operator.methodcaller("fetch"), "fetch"),
    "breakpoint": (lambda word: [breakpoint()], "breakpoint"),
    "code object": (types.FunctionType(stale().__code__, {"time": time}), "hidden"),
    "pyarrow files": (lambda word: [pa.memory_map(word)], "pa.memory_map"),
    "json of a file": (lambda file: [json.load(file)], "json.load"),
    "decimal context": (lambda word: [Decimal(word).compare_nobody(word)], "compare_nobody"),  # type: ignore[attr-defined]
}  # fmt: skip
