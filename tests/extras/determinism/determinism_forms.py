"""Forms that users give their operations: objects that are handed in, files, pandas, sets within other things; and their honest kin."""

# mypy: ignore-errors
# ruff: noqa

from __future__ import annotations

import sys, time, os, random, datetime, collections, functools, itertools, operator, dataclasses, types, contextlib, threading, json, re, abc, typing, enum, decimal, logging, math, string, copy
from pathlib import Path
import numpy as np
import pandas as pd
from trident_py.operations import (
    Function,
    Filter,
    FlatMapFunction,
    MapFunction,
    Aggregator,
    CombinerAggregator,
    ReducerAggregator,
    BaseAggregator,
)
from trident_py import Values
from determinism_kin import changing, steady


class Em(Function):
    def execute(self, tuple, collector):
        collector.emit([self.value(tuple)])

    def value(self, t):
        raise NotImplementedError


class Mixin:
    def stamp(self):
        return time.time()


@changing
class WithMixin(Mixin, Em):
    def value(self, t):
        return self.stamp()


class AbstractClock(abc.ABC):
    @abc.abstractmethod
    def now(self): ...


class SysClock(AbstractClock):
    def now(self):
        return time.time()


@changing
class Injected(Em):
    def __init__(self, clock=None):
        self.clock = clock or SysClock()

    def value(self, t):
        return self.clock.now()


@changing
class InPrep(Em):
    def prepare(self, conf, context):
        self.clock = SysClock()

    def value(self, t):
        return self.clock.now()


@changing
class AttrChain(Em):
    def __init__(self):
        self.a = types.SimpleNamespace(b=SysClock())

    def value(self, t):
        return self.a.b.now()


@changing
class DictOfObj(Em):
    def prepare(self, conf, context):
        self.m = {"x": SysClock()}

    def value(self, t):
        return self.m["x"].now()


@changing
class ListComp(Em):
    def prepare(self, conf, context):
        self.m = [SysClock() for _ in range(3)]

    def value(self, t):
        return [c.now() for c in self.m]


@changing
def anyall(ws):
    return [any(random.random() < 0.5 for w in ws)]


@changing
def assertion(w):
    assert random.random()
    return [w]


@changing
def whileloop(w):
    while random.random() < 0.5:
        w += "x"
    return [w]


@changing
def subscr(w):
    return [w[int(time.time()) % 3]]


@changing
def tern(w):
    return [1] if time.time() > 3 else [2]


@changing
def kwcall(w):
    return [dict(a=time.time())]


@changing
def kwunpack(w):
    return [dict(**{"a": time.time()})]


@changing
def slicee(w):
    return [w[: random.randint(1, 2)]]


@changing
def deco_inner(w):
    @functools.lru_cache
    def g(x):
        return time.time()

    return [g(w)]


@changing
def compare(w):
    return [w < time.time() < 3]


@changing
def unary(w):
    return [-time.time()]


@changing
def lam_default(w):
    return [(lambda x=time.time(): x)()]


@changing
def gen_send(w):
    g = (time.time() for _ in w)
    return [next(g)]


@changing
def try_import(w):
    try:
        import time as tt
    except ImportError:
        tt = None
    return [tt.time()]


@changing
def from_dt(w):
    from datetime import datetime as D

    return [D.now()]


@changing
def pd_now(w):
    return [pd.Timestamp.now()]


@changing
def pd_now2(w):
    return [pd.Timestamp("now")]


@changing
def pd_todt(w):
    return [pd.to_datetime("today")]


@changing
def pd_sample(w):
    return [pd.DataFrame({"a": [w]}).sample(1)]


@changing
def pd_read(w):
    return [pd.read_csv(w)]


@changing
def np_choice(w):
    return [np.random.choice(w)]


@changing
def np_load(w):
    return [np.load(w)]


@changing
def np_perm(w):
    rng = np.random.RandomState()
    return [rng.permutation(w)]


@changing
def opened(w):
    return [Path(w).open().read()]


@changing
def opened2(w):
    return [(Path(w) / "a").read_text()]


@changing
def opened3(w):
    return [open(w).read()]


@changing
def opened4(w):
    import io

    return [io.open(w).read()]


@changing
def iterd(w):
    return list(Path(w).iterdir())


@changing
def envv(w):
    return [os.environ.copy()]


@changing
def envv2(w):
    return ["X" in os.environ]


@changing
def envv3(w):
    return [dict(os.environ)]


@changing
def envv4(w):
    return [k for k in os.environ]


@changing
def envv5(w):
    return [os.path.expandvars(w)]


@changing
def excls(w):
    return [os.path.abspath(w)]


@changing
def home(w):
    return [Path.home()]


@changing
def setdef(w):
    return [list({x: 1 for x in set(w)})]


@changing
def setcmp(w):
    return sorted(set(w), key=str.lower)


@changing
def nested_set(w):
    return [[x for x in s] for s in [set(w)]]


@changing
def set_attr(w):
    o = types.SimpleNamespace(s=set(w))
    return list(o.s)


@changing
def set_in_dict(w):
    d = {"s": set(w)}
    return list(d["s"])


@changing
def set_defaultdict(w):
    d = collections.defaultdict(set)
    for x in w:
        d[x[0]].add(x)
    return [(k, list(v)) for k, v in d.items()]


@changing
def set_setdefault(w):
    d = {}
    for x in w:
        d.setdefault(x[0], set()).add(x)
    return [(k, list(v)) for k, v in d.items()]


@changing
class SetAgg(BaseAggregator):
    def init(self, b, c):
        return set()

    def aggregate(self, v, t, c):
        v.add(t[0])

    def complete(self, v, c):
        for x in v:
            c.emit([x])


class AccObj:
    def __init__(self):
        self.words = set()


@changing
class SetAggObj(BaseAggregator):
    def init(self, b, c):
        return AccObj()

    def aggregate(self, v, t, c):
        v.words.add(t[0])

    def complete(self, v, c):
        for x in v.words:
            c.emit([x])


@changing
class SetAggDict(BaseAggregator):
    def init(self, b, c):
        return {"w": set()}

    def aggregate(self, v, t, c):
        v["w"].add(t[0])

    def complete(self, v, c):
        for x in v["w"]:
            c.emit([x])


@changing
class Bid(BaseAggregator):
    def init(self, b, c):
        return b

    def aggregate(self, v, t, c):
        pass

    def complete(self, v, c):
        c.emit([v.attemptId])


@changing
class Bid2(BaseAggregator):
    def init(self, b, c):
        return str(b)

    def aggregate(self, v, t, c):
        pass

    def complete(self, v, c):
        c.emit([v])


@changing
class AggState(BaseAggregator):
    def __init__(self):
        self.total = 0

    def init(self, b, c):
        return 0

    def aggregate(self, v, t, c):
        self.total += 1

    def complete(self, v, c):
        c.emit([self.total])


@changing
class Ctx(Em):
    def prepare(self, conf, context):
        self.ctx = context

    def value(self, t):
        return self.ctx.getPartitionIndex()


@changing
class Ctx2(Em):
    def prepare(self, conf, context):
        self.ctx = context

    def value(self, t):
        return self.ctx.transaction.attemptId


@changing
class Cached(Em):
    @functools.lru_cache
    def f(self, x):
        return time.time()

    def value(self, t):
        return self.f(1)


class E(enum.Enum):
    A = 1

    def f(self):
        return time.time()


@changing
def enum_m(w):
    return [E.A.f()]


@changing
def enum_m2(w):
    return [E(w).f()]


class Sing:
    inst = None

    @classmethod
    def get(cls):
        if cls.inst is None:
            cls.inst = Sing()
            cls.inst.t = time.time()
        return cls.inst


@changing
def sing(w):
    return [Sing.get().t]


class Prop:
    @property
    def p(self):
        return time.time()


@changing
def propp(w):
    return [Prop().p]


@changing
def getattr_default(w):
    return [getattr(w, "x", time.time)()]


@changing
def op_mc(w):
    return [operator.methodcaller("now")(datetime.datetime)]


@changing
def attrg(w):
    return [operator.attrgetter("time")(time)()]


@changing
def mapattr(w):
    return list(map(operator.attrgetter("now"), w))


@changing
def timeit(w):
    import timeit

    return [timeit.default_timer()]


@changing
def sched(w):
    import email.utils

    return [email.utils.formatdate()]


@changing
def logt(w):
    return [logging.LogRecord("a", 1, "b", 1, "c", (), None).created]


@changing
def lc(w):
    import locale

    return [locale.getlocale()]


@changing
def fr(w):
    return [sys._getframe().f_lineno]


@changing
def inspectt(w):
    import inspect

    return [inspect.stack()]


@changing
def gcc(w):
    import gc

    return [len(gc.get_objects())]


@changing
def tb(w):
    return [threading.active_count()]


# -- what gives the same again


@steady
class Account(Em):
    RATE = decimal.Decimal("0.19")

    def value(self, t):
        return (decimal.Decimal(t[0]) * self.RATE).quantize(decimal.Decimal("0.01"))


@steady
class WithHelper(Em):
    def __init__(self, fields=("a",)):
        self.fields = list(fields)
        self.idx = {f: i for i, f in enumerate(self.fields)}
        super().__init__()

    def value(self, t):
        return [t[self.idx[f]] for f in self.fields]


@steady
class Enrich(Function):
    def __init__(self):
        self.log = logging.getLogger(__name__)

    def prepare(self, conf, context):
        super().prepare(conf, context)
        self.sep = conf.get("sep", ",")
        self.pattern = re.compile(r"(\w+)=(\w+)")

    def execute(self, tuple, collector):
        line = tuple.getStringByField("line")
        m = self.pattern.match(line)
        if not m:
            self.log.warning("bad %s", line)
            return
        key, value = m.groups()
        collector.emit(Values(key, int(value) if value.isdigit() else None, line.split(self.sep)))


@steady
class Tops(BaseAggregator):
    def __init__(self, n=3):
        self.n = n

    def init(self, b, c):
        return collections.Counter()

    def aggregate(self, v, t, c):
        v[t.getString(0)] += 1
        return v

    def complete(self, v, c):
        for w, n in sorted(v.items(), key=lambda kv: (-kv[1], kv[0]))[: self.n]:
            c.emit(Values(w, n))


@steady
class Stats(CombinerAggregator):
    def init(self, t):
        return {"n": 1, "sum": t[0], "min": t[0]}

    def combine(self, a, b):
        if not a:
            return b
        if not b:
            return a
        return {"n": a["n"] + b["n"], "sum": a["sum"] + b["sum"], "min": min(a["min"], b["min"])}

    def zero(self):
        return {}


@steady
class Concat(ReducerAggregator):
    def init(self):
        return []

    def reduce(self, curr, t):
        curr.append(t.getValue(0))
        return curr


@steady
def dates(s):
    d = datetime.datetime.fromisoformat(s)
    return [
        d.replace(minute=0, second=0).strftime("%Y-%m-%dT%H"),
        d.weekday(),
        (d.date() - datetime.date(2020, 1, 1)).days,
        datetime.datetime.combine(d.date(), datetime.time.min),
    ]


@steady
def hav(lat1, lon1, lat2, lon2):
    p = math.radians
    a = math.sin(p(lat2 - lat1) / 2) ** 2 + math.cos(p(lat1)) * math.cos(p(lat2)) * math.sin(p(lon2 - lon1) / 2) ** 2
    return [2 * 6371 * math.asin(math.sqrt(a))]


@steady
def ngrams(s, n=2):
    ws = s.lower().split()
    return [" ".join(ws[i : i + n]) for i in range(len(ws) - n + 1)]


@steady
def flat(rec):
    out = []

    def walk(prefix, v):
        if isinstance(v, dict):
            for k, x in v.items():
                walk(f"{prefix}.{k}" if prefix else k, x)
        else:
            out.append((prefix, v))

    walk("", rec)
    return out


@steady
def bucket(x):
    return [next((i for i, b in enumerate((1, 5, 10)) if x < b), 3)]


@steady
def tpl(name):
    return [string.Template("hi $n").substitute(n=name), "{:>5}".format(name), name.center(9, "*")]


@steady
def hexx(b):
    return [b.hex(), int.from_bytes(b, "big"), bytes(b).decode("utf-8", "replace")]


@steady
def logz(x):
    try:
        return [math.log(x)]
    except ValueError:
        return [float("nan")]
    except (TypeError, OverflowError) as e:
        logging.getLogger("x").exception("bad")
        raise


@steady
def lookup(code):
    return [TABLE.get(code, {}).get("name"), TABLE["a"]["name"].upper(), sorted(TABLE)[0], [k for k in TABLE]]


TABLE = {"a": {"name": "A"}, "b": {"name": "B"}}


@dataclasses.dataclass
class Order:
    id: str
    qty: int = 1
    lines: list = dataclasses.field(default_factory=list)

    @classmethod
    def parse(cls, s):
        d = json.loads(s)
        return cls(**d)

    @property
    def total(self):
        return sum(l["p"] for l in self.lines)

    def __lt__(self, o):
        return self.id < o.id


@steady
def order(s):
    o = Order.parse(s)
    return [o.total, o.qty, dataclasses.astuple(o), sorted([o, o])[0].id]


@steady
def orders(ss):
    return [o.total for o in sorted(map(Order.parse, ss)) if o.total > 3]


@steady
def orders2(ss):
    os_ = [Order.parse(s) for s in ss]
    best = max(os_, key=lambda o: o.total)
    return [best.id, best.total, {o.id: o for o in os_}["a"].total]


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...


class Sq(Shape):
    def __init__(self, a):
        self.a = a

    def area(self):
        return self.a**2


class Ci(Shape):
    def __init__(self, r):
        self.r = r

    def area(self):
        return math.pi * self.r**2


@steady
def shapes(k, x):
    return [{"s": Sq, "c": Ci}[k](x).area()]


@steady
def shapes2(k, x):
    s = Sq(x) if k else Ci(x)
    return [s.area()]


class Rule(typing.NamedTuple):
    name: str
    test: typing.Callable


RULES = [Rule("pos", lambda x: x > 0), Rule("neg", lambda x: x < 0)]


@steady
def rules(x):
    return [r.name for r in RULES if r.test(x)]


@steady
class Pipeline(Em):
    def __init__(self):
        self.steps = [str.strip, str.lower, functools.partial(re.sub, r"\s+", " ")]

    def value(self, t):
        return functools.reduce(lambda v, f: f(v), self.steps, t[0])


@steady
class Memo(Em):
    @functools.cached_property
    def table(self):
        return {c: i for i, c in enumerate("abc")}

    def value(self, t):
        return self.table[t[0]]


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@steady
def enumm(x):
    return [Level(x).name, Level.HIGH > x, Level["LOW"].value, [l.name for l in Level]]


@steady
def window(ws):
    return (
        list(zip(ws, ws[1:]))
        + list(itertools.accumulate(ws))
        + [*itertools.chain.from_iterable(ws), *itertools.islice(ws, 2)]
    )


@steady
def cp(x):
    y = copy.deepcopy(TABLE)
    y["a"]["name"] = x
    return [y]


@steady
def seen_per_call(ws):
    seen = set()
    return [w for w in ws if not (w in seen or seen.add(w))]


@steady
def dfs(vals):
    df = pd.DataFrame(vals, columns=["k", "v"])
    df["z"] = df.v * 2
    g = df.groupby("k").agg({"v": "sum"}).reset_index().sort_values("k")
    return list(g.itertuples(index=False))


@steady
def nps(v):
    a = np.array(v, dtype=np.float64).reshape(-1, 2)
    return [
        np.linalg.norm(a),
        a.T.tolist(),
        np.where(a > 0, a, 0).sum(axis=0).tolist(),
        np.percentile(a, 50),
        (a - a.mean()) / a.std(),
    ]


@steady
def seeded(x):
    return [random.Random(x).random(), np.random.default_rng(int(x)).integers(3)]


@steady
def prnt(x):
    print("got", x, file=sys.stderr)
    return [x]


@steady
def dd(ws):
    d = collections.defaultdict(set)
    for w in ws:
        d[w[0]].add(w)
    return [(k, sorted(v), len(v)) for k, v in sorted(d.items())]
