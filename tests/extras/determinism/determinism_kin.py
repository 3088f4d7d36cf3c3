"""More kin of the cases in `determinism_cases.py`: aliases of what is kept, sets that travel, code that hides its calls."""

# mypy: ignore-errors
# ruff: noqa

from __future__ import annotations

import sys, time, os, random, datetime, collections, functools, itertools, operator, dataclasses, types, contextlib, threading, json
import numpy as np
from trident_py.operations import FlatMapFunction, Function
from trident_py.state import BaseQueryFunction, BaseStateUpdater, State

SEEN = {}
LINES = []


class Em(Function):
    def execute(self, tuple, collector):
        collector.emit([self.value(tuple)])

    def value(self, t):
        raise NotImplementedError


CHANGING_KIN = {}
STEADY_KIN = {}


def changing(thing):
    CHANGING_KIN[thing.__name__ if hasattr(thing, "__name__") else repr(thing)] = made(thing)
    return thing


def steady(thing):
    STEADY_KIN[thing.__name__] = made(thing)
    return thing


def made(thing):
    return thing() if isinstance(thing, type) else thing


@changing
def dict_setitem(w):
    dict.__setitem__(SEEN, w, 1)
    return [len(SEEN)]


@changing
def list_append(w):
    list.append(LINES, w)
    return [len(LINES)]


@changing
def op_setitem(w):
    operator.setitem(SEEN, w, 1)
    return [len(SEEN)]


@changing
def map_append(ws):
    list(map(LINES.append, ws))
    return [len(LINES)]


@changing
class DictN(Em):
    n = 0

    def value(self, t):
        self.__dict__["n"] = self.n + 1
        return self.n


@changing
class VarsN(Em):
    n = 0

    def value(self, t):
        vars(self)["n"] = 1
        return self.n


@changing
class SuperSet(Em):
    n = 0

    def value(self, t):
        super().__setattr__("n", self.n + 1)
        return self.n


@changing
class ObjSet(Em):
    n = 0

    def value(self, t):
        object.__setattr__(self, "n", self.n + 1)
        return self.n


@changing
class ClassConst(Em):
    began = time.time()

    def value(self, t):
        return self.began


@changing
@dataclasses.dataclass
class DCConst(Em):
    began: float = time.time()

    def value(self, t):
        return self.began


@changing
def default_time(w, began=time.time()):
    return [began]


@changing
def slice_store(w):
    LINES[:] = [w]
    return LINES


@changing
def chained(w):
    x = y = SEEN
    y[w] = 1
    return [len(x)]


@changing
def tuple_alias(w):
    (a, b) = (SEEN, LINES)
    b.append(w)
    return [len(b)]


@changing
def list_alias(w):
    xs = [SEEN]
    xs[0][w] = 1
    return [len(SEEN)]


@changing
def dict_alias(w):
    d = {"a": SEEN}
    d["a"][w] = 1
    return [len(SEEN)]


@changing
def loop_alias(w):
    for d in (SEEN,):
        d[w] = 1
    return [len(SEEN)]


def get_seen():
    return SEEN


@changing
def returned_alias(w):
    get_seen()[w] = 1
    return [len(SEEN)]


@changing
def ternary_alias(w):
    d = SEEN if w else {}
    d[w] = 1
    return [len(d)]


@changing
def or_alias(w):
    d = None or SEEN
    d[w] = 1
    return [len(d)]


@changing
class Lazy(Em):
    def __init__(self):
        self.rng = None

    def value(self, t):
        if self.rng is None:
            self.rng = random.Random(7)
        return self.rng.random()


@changing
class Iter(Em):
    def __init__(self):
        self.it = iter([1, 2, 3] * 100)

    def value(self, t):
        for x in self.it:
            return x


@changing
class ZipHeld(Em):
    def prepare(self, conf, context):
        self.it = zip([1, 2], [3, 4])

    def value(self, t):
        return list(self.it)


@changing
class Cyc(Em):
    def __init__(self):
        self.it = itertools.cycle("ab")

    def value(self, t):
        return next(self.it)


class Node:
    def __init__(self):
        self.n = 0

    def bump(self):
        self.n += 1
        return self.n


NODE = Node()


@changing
def global_obj(w):
    return [NODE.bump()]


@changing
def global_obj_attr(w):
    NODE.n += 1
    return [NODE.n]


@changing
class HeldNode(Em):
    def prepare(self, conf, context):
        self.node = Node()

    def value(self, t):
        return self.node.bump()


@changing
class HeldNodes(Em):
    def prepare(self, conf, context):
        self.nodes = {"a": Node()}

    def value(self, t):
        return self.nodes["a"].bump()


@changing
class HeldNodes2(Em):
    def __init__(self):
        self.nodes = [Node()]

    def value(self, t):
        return self.nodes[0].bump()


@changing
class DD(Em):
    def prepare(self, conf, context):
        self.ids = collections.defaultdict(itertools.count().__next__)

    def value(self, t):
        return self.ids[t[0]]


@changing
class DD2(Em):
    def __init__(self):
        self.ids = collections.defaultdict(list)

    def value(self, t):
        return len(self.ids[t[0]])


@changing
class DDLen(Em):
    def __init__(self):
        self.ids = {}

    def value(self, t):
        return self.ids.setdefault(t[0], len(self.ids))


class Desc:
    def __get__(self, o, k):
        return time.time()


@changing
class UsesDesc(Em):
    x = Desc()

    def value(self, t):
        return self.x


@changing
def obj_text(w):
    return [str(Node())]


@changing
def obj_ftext(w):
    return [f"{NODE}"]


@changing
def obj_repr2(w):
    return ["%s" % NODE]


class It:
    def __iter__(self):
        yield time.time()


@changing
def user_iter(w):
    return list(It())


class CM:
    def __enter__(self):
        return time.time()

    def __exit__(self, *a):
        pass


@changing
def user_cm(w):
    with CM() as t:
        return [t]


@contextlib.contextmanager
def ctx():
    yield time.time()


@changing
def user_cm2(w):
    with ctx() as t:
        return [t]


@changing
def reduce_clock(ws):
    return [functools.reduce(lambda a, b: a + time.time(), ws, 0)]


@changing
def lambda_in_dict(w):
    return [{"a": lambda: time.time()}[w]()]


@changing
def recursive_inner(w):
    def f(n):
        return time.time() if n == 0 else f(n - 1)

    return [f(3)]


@changing
def gen_inner(w):
    def g():
        yield time.time()

    return list(g())


@changing
def yielding(w):
    yield time.time()


@changing
def yf(w):
    yield from (time.time(),)


@changing
def star(w):
    return [*map(lambda x: random.random(), w)]


@changing
def kw(w):
    return [sorted(w, **{"key": lambda x: random.random()})]


@changing
def tl(w):
    L = threading.local()
    return [L.x]


TL = threading.local()


@changing
def tl2(w):
    TL.n = getattr(TL, "n", 0) + 1
    return [TL.n]


@changing
def frozen_iter(w):
    return [x for x in frozenset(w)]


@changing
def setret(w):
    return set(w)


@changing
class SetRet(FlatMapFunction):
    def execute(self, t):
        return {(x,) for x in t[0]}


@changing
def tuple_set(w):
    return tuple({*w})


@changing
def zip_set(w):
    return list(zip(set(w), range(9)))


@changing
def unpack_call(w):
    return [max(*set(w), key=len)]


@changing
def sum_set(ws):
    return [sum(set(ws))]


@changing
def intersect(a, b):
    return [x for x in set(a).intersection(b)]


@changing
def setvar(a):
    s = set()
    for x in a:
        s.add(x)
    return list(s)


def mk(a):
    s = set(a)
    s.discard("x")
    return s


@changing
def setvar2(a):
    return "".join(mk(a))


@changing
def dict_view_diff(a, b):
    return list(a.items() - b.items())


@changing
def now_attr(w):
    d = datetime.datetime
    return [d.now()]


@changing
def reimport(w):
    import importlib

    return [importlib.reload]


@changing
def now_default_factory(w):
    return [collections.defaultdict(time.time)[w]]


@changing
def iter_call(w):
    return [next(iter(time.time, 0))]


@changing
def partialm(w):
    return [functools.partial(time.strftime, "%H")()]


def deco(prefix):
    def outer(f):
        def inner(*a):
            return [prefix(), *f(*a)]

        return inner

    return outer


@changing
@deco(time.time)
def decod(w):
    return [w]


@changing
@deco(lambda: random.random())
def decod2(w):
    return [w]


@changing
def os_err(w):
    raise ValueError(os.getpid())


@changing
def sysmod(w):
    return [sys.modules["time"].time()]


@changing
def cls_in(w):
    class A:
        def f(self):
            return time.time()

    return [A().f()]


@changing
class PM(Em):
    m = functools.partialmethod(lambda self, f: f(), time.time)

    def value(self, t):
        return self.m()


@changing
class GA(Em):
    def __getattr__(self, n):
        return time.time()

    def value(self, t):
        return self.foo


@changing
class GAb(Em):
    def __getattribute__(self, n):
        return object.__getattribute__(self, n) if n != "foo" else time.time()

    def value(self, t):
        return self.foo


T = collections.namedtuple("T", "f")


@changing
def nt(w):
    return [T(time.time).f()]


NT = T(time.time)


@changing
def nt2(w):
    return [NT.f()]


@changing
def json_hook(w):
    return [json.loads(w, object_hook=lambda d: time.time())]


@changing
def chain_attr(w):
    return [NS.a.b.c()]


NS = types.SimpleNamespace(a=types.SimpleNamespace(b=types.SimpleNamespace(c=time.time)))


@changing
def npv(w):
    return np.vectorize(lambda x: random.random())(w)


@changing
def seq(w):
    return [type("X", (), {"f": lambda s: time.time()})().f()]


@changing
def exc(w):
    try:
        pass
    except Exception:
        pass
    else:
        return [time.time()]
    finally:
        w


@changing
def glo(w):
    global LINES
    LINES = LINES + [w]
    return [len(LINES)]


@changing
def walrus_comp(w):
    return [y for x in w if (y := random.random())]


@changing
def slots(w):
    return [SL.f()]


class Sl:
    __slots__ = ("f",)

    def __init__(self):
        self.f = time.time


SL = Sl()


# -- what gives the same again


@steady
class Setup(Em):
    def prepare(self, conf, context):
        self._setup(conf)

    def _setup(self, conf):
        self.table = {}
        self.table["a"] = 1
        for k in conf:
            self.table[k] = 2
        self.nodes = []
        self.nodes.append(3)

    def value(self, t):
        return self.table.get(t[0])


@steady
class InitFill(Em):
    def __init__(self):
        self.words = []
        for w in ("a", "b"):
            self.words.append(w)
        self.index = {w: i for i, w in enumerate(self.words)}

    def value(self, t):
        return self.index[t[0]]


@steady
@dataclasses.dataclass
class Post(Em):
    table: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        self.table["a"] = 1
        self.other = {}

    def value(self, t):
        return self.table["a"]


@steady
@dataclasses.dataclass(frozen=True)
class Post2(Em):
    n: int = 1

    def __post_init__(self):
        object.__setattr__(self, "m", self.n + 1)

    def value(self, t):
        return self.m


@steady
def ctxg(w):
    with contextlib.suppress(ValueError):
        return [int(w)]
    return []


@contextlib.contextmanager
def ctx2(x):
    yield x


@steady
def ctxh(w):
    with ctx2(w) as t:
        return [t]


@steady
def node_local(w):
    n = Node()
    n.bump()
    n.n += 1
    return [n.n]


@steady
def stack(w):
    s = []
    out = []
    for c in w:
        if c == "(":
            s.append(c)
        elif s:
            out.append(s.pop())
    return out


@steady
def nestedd(w):
    g = {}
    for k in w:
        g.setdefault(k, []).append(1)
        g[k].append(2)
    return [(k, len(v)) for k, v in sorted(g.items())]


@steady
def enumd(w):
    return [{"a": 1, **{"b": 2}}, w[0], w[-1:], w["x"]["y"]]


@steady
def attrs_of_tuple(reading):
    return [reading.station, reading.value * 2]


@steady
def dtd(t):
    return [t.year, t.date().isoformat(), t.timestamp(), (t - datetime.timedelta(1)).weekday()]


class Base:
    def f(self, x):
        return self.g(x) + 1

    def g(self, x):
        raise NotImplementedError


class D1(Base):
    def g(self, x):
        return x * 2


HS = {"a": D1(), "b": D1()}


@steady
def polym(k, x):
    return [HS[k].f(x)]


@steady
class InstDict(Em):
    def __init__(self):
        self.h = {"a": D1()}
        self.fs = [str.upper, str.strip]

    def value(self, t):
        w = t[0]
        for f in self.fs:
            w = f(w)
        return self.h["a"].f(w)


@steady
def sm(w):
    return [sum(len(x) for x in w), any(x for x in w), all(w), max((len(x) for x in w), default=0)]


@steady
def reductor(w):
    return [functools.reduce(lambda acc, x: {**acc, x: acc.get(x, 0) + 1}, w, {})]


@steady
def nparr(w):
    a = np.array(w)
    a[0] = 1
    a += 1
    a.sort()
    return a.tolist()


@steady
def acc(w):
    total = 0
    for x in w:
        total += x
    return [total]


@steady
def isin(x):
    return isinstance(x, (datetime.date, random.Random)) and not isinstance(x, Node)


class Places(State):
    def getAll(self, keys):
        return [None for key in keys]

    def setAll(self, keys, values): ...


@steady
class PutsPlaces(BaseStateUpdater):
    def updateState(self, state, tuples, collector):
        keys, values = [], []
        for each in tuples:
            keys.append(each.getString(0))
            values.append(each[1])
        state.setAll(keys, values)
        for key in keys:
            collector.emit([key])


@changing
class PutsPlacesWithATime(BaseStateUpdater):
    def updateState(self, state, tuples, collector):
        state.setAll([each[0] for each in tuples], [time.time() for each in tuples])


@steady
class AsksPlaces(BaseQueryFunction):
    def batchRetrieve(self, state, inputs):
        return state.getAll([each[0] for each in inputs])

    def execute(self, tuple, result, collector):
        collector.emit([result])
