"""What the world brings in: values made at definition, modules changed from outside, the host, its zone and its language."""

# mypy: ignore-errors
# ruff: noqa

from __future__ import annotations

import asyncio, calendar, collections, configparser, contextlib, copy, csv, dataclasses, datetime, decimal, email.utils, enum, errno, functools, gettext, gzip, hashlib, heapq, importlib.metadata, inspect, io, itertools, json, locale, logging, math, mimetypes, operator, os, os.path, pathlib, pickle, platform, pprint, random, re, shutil, signal, site, socket, statistics, string, struct, sys, sysconfig, tempfile, textwrap, threading, time, traceback, types, typing, unicodedata, uuid, warnings, weakref, zipfile, zoneinfo
from datetime import UTC, date, datetime as moment, timedelta
from pathlib import Path

import determinism_world_helper as other
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from determinism_kin import changing
from determinism_world_helper import ROWS, Settings, coded, priced

from trident_py.operations import (
    Aggregator,
    BaseAggregator,
    CombinerAggregator,
    Filter,
    FlatMapFunction,
    Function,
    MapFunction,
    ReducerAggregator,
)


class Em(Function):
    def execute(self, tuple, collector):
        collector.emit([self.value(tuple)])

    def value(self, t):
        raise NotImplementedError


def named(name, thing):
    thing.__name__ = name
    return changing(thing)


# -- values made at definition --------------------------------------------------------------------------------------

PID = os.getpid()
SALT = random.random()
TODAY = date.today()
YESTERDAY = TODAY - timedelta(days=1)
RUN = f"run-{uuid.uuid4()}"
ARGS = sys.argv[1:]
HOME = Path.home()
HERE = os.getcwd()
CONFIG = json.loads(os.environ.get("NOT_THERE", "{}"))
PLATFORM = sys.platform
VERSION = sys.version_info
BITS = struct.calcsize("P")
LANGUAGE = locale.getlocale()
with open(__file__) as _file:
    FIRST_LINE = _file.readline()
try:
    WORKERS = os.cpu_count()
except OSError:
    WORKERS = 1
DRAWN = [random.random() for _ in range(3)]
WEIGHTS = np.random.rand(3)
SHUFFLED = list("abc")
random.shuffle(SHUFFLED)
LOOKUP = {name: hash(name) for name in "abc"}
INDEX = {}
for _each in os.listdir("/"):
    INDEX[_each] = len(INDEX)
OFFSET = 0
OFFSET += time.time()
TABLE = {}
TABLE["began"] = time.time()
STAMPS = []
STAMPS.append(time.time())
LEFT, RIGHT = 1, time.time()
(BOTH := time.time_ns())
for STEP in (time.time(),):
    pass


def load():
    return {"seed": random.random()}


LOADED = load()


def fill(table):
    table["x"] = time.time()


FILLED = {}
fill(FILLED)


@changing
def uses_pid(w):
    return [PID]


@changing
def uses_salt(w):
    return [hashlib.md5(f"{SALT}{w}".encode()).hexdigest()]


@changing
def uses_today(d):
    return [d < TODAY]


@changing
def uses_yesterday(d):
    return [d < YESTERDAY]


@changing
def uses_run(w):
    return [RUN + w]


@changing
def uses_args(w):
    return [w in ARGS]


@changing
def uses_home(w):
    return [HOME / w]


@changing
def uses_here(w):
    return [HERE + w]


@changing
def uses_config(w):
    return [CONFIG.get(w)]


@changing
def uses_platform(w):
    return [PLATFORM]


@changing
def uses_version(w):
    return [VERSION[0]]


@changing
def uses_language(w):
    return [LANGUAGE]


@changing
def uses_first_line(w):
    return [FIRST_LINE]


@changing
def uses_workers(w):
    return [len(w) % WORKERS]


@changing
def uses_drawn(w):
    return [DRAWN[0]]


@changing
def uses_weights(x):
    return [float(WEIGHTS[0] * x)]


@changing
def uses_shuffled(w):
    return [SHUFFLED.index(w)]


@changing
def uses_lookup(w):
    return [LOOKUP[w]]


@changing
def uses_index(w):
    return [INDEX.get(w)]


@changing
def uses_offset(x):
    return [x + OFFSET]


@changing
def uses_table(x):
    return [TABLE["began"]]


@changing
def uses_stamps(x):
    return [STAMPS[0]]


@changing
def uses_right(x):
    return [RIGHT]


@changing
def uses_both(x):
    return [BOTH]


@changing
def uses_step(x):
    return [STEP]


@changing
def uses_loaded(x):
    return [LOADED["seed"]]


@changing
def uses_filled(x):
    return [FILLED["x"]]


@changing
def default_pid(w, seed=os.getpid()):
    return [seed]


@changing
def default_keyword(w, *, day=date.today()):
    return [day]


def salted(salt):
    return lambda w: [salt, w]


SALTED = named("salted_closure", salted(random.random()))


def bound_to(value):
    def inner(w):
        return [value]

    return inner


named("closure_of_a_time", bound_to(value=time.time()))
_MADE_AT = time.time()
named("closure_of_a_constant", bound_to(_MADE_AT))
_partial = functools.partial(priced, random.random())
named("partial_in_a_name", _partial)


class Given(Em):
    def __init__(self, began):
        self.began = began

    def value(self, t):
        return self.began


CHANGING_OBJECTS = named("given_a_time", Given(time.time()))
_given = Given(began=random.random())
named("given_by_keyword", _given)


def build():
    began = time.time()
    return Given(began)


named("given_in_a_function", build())


@dataclasses.dataclass
class Dated(Em):
    day: date

    def value(self, t):
        return self.day


named("dataclass_given_a_day", Dated(date.today()))


@changing
class Salted(Em):
    def __init__(self):
        self.salt = random.random()

    def value(self, t):
        return self.salt


@changing
class SaltedDeep(Em):
    def __init__(self):
        self._set()

    def _set(self):
        self.salt = {"a": [os.urandom(4)]}

    def value(self, t):
        return self.salt["a"][0]


@changing
class SaltedInBase(Salted):
    def __init__(self):
        super().__init__()
        self.n = 1

    def value(self, t):
        return self.salt * self.n


@changing
class SaltedInPrepare(Em):
    def prepare(self, conf, context):
        self.tag = socket.gethostname() + conf.get("x", "")

    def value(self, t):
        return self.tag


@changing
class SaltedClass(Em):
    SALT = os.urandom(4).hex()

    def value(self, t):
        return self.SALT


@changing
class ClassDict(Em):
    MADE = {"at": time.time()}

    def value(self, t):
        return self.MADE["at"]


class Meta(type):
    def __new__(cls, name, bases, space):
        space["born"] = time.time()
        return super().__new__(cls, name, bases, space)


class Born(metaclass=Meta):
    pass


@changing
def born(w):
    return [Born.born]


class InitSubclass:
    def __init_subclass__(cls, **kw):
        cls.born = time.time()


class Sub(InitSubclass):
    pass


@changing
def subclass_hook(w):
    return [Sub.born]


def stamping(cls):
    cls.made = time.time()
    return cls


@stamping
class Decorated:
    pass


@changing
def class_decorator(w):
    return [Decorated.made]


def tagged(function):
    function.tag = uuid.uuid4().hex
    return function


@tagged
def has_a_tag(w):
    return [w]


@changing
def function_tag(w):
    return [has_a_tag.tag]


class Colour(enum.Enum):
    RED = time.time()


@changing
def enum_of_a_time(w):
    return [Colour.RED.value]


Pair = collections.namedtuple("Pair", "a b", defaults=[time.time()])


@changing
def namedtuple_default(w):
    return [Pair(w).b]


@dataclasses.dataclass
class Row:
    name: str
    at: float = dataclasses.field(default_factory=time.time)
    made: float = dataclasses.field(default=time.time())


@changing
def dataclass_default(w):
    return [Row(w).at]


@changing
def dataclass_field_default(w):
    return [Row(w, 0.0).made]


# -- modules that are changed from elsewhere ------------------------------------------------------------------------

other.RATE = 1.0 + time.time() * 0
other.TABLE["x"] = 1
other.HOOK = str.lower
other.Settings.depth = 4
other.Settings.cache["a"] = 1
other.LABELS.update(a="B")
setattr(other, "FACTOR", 3)
other.LIMITS |= {"max": 4}


def elsewhere():
    other.CODES["b"] = 2
    ROWS.append("x")
    Settings.zone = "CET"


@changing
def rate_of_another(x):
    return [priced(x)]


@changing
def rate_itself(x):
    return [other.RATE * x]


@changing
def codes_filled_elsewhere(w):
    return [coded(w)]


@changing
def codes_themselves(w):
    return [other.CODES.get(w)]


@changing
def rows_filled_elsewhere(w):
    return [ROWS.index(w)]


@changing
def table_of_another(w):
    return [other.TABLE[w]]


@changing
def setting_of_another(w):
    return [Settings.zone]


@changing
def class_cache(w):
    return [Settings.cache.get(w)]


@changing
def patched_hook(w):
    return [other.HOOK(w)]


@changing
def patched_class(w):
    return [w[: other.Settings.depth]]


@changing
def updated_labels(w):
    return [other.LABELS[w]]


@changing
def set_by_setattr(x):
    return [x * other.FACTOR]


@changing
def merged_limits(x):
    return [other.limited(x)]


@changing
def loaded_at(w):
    return [other.LOADED_AT]


class Knob:
    level = 1


def turn(level):
    Knob.level = level


@changing
def knob(w):
    return [w * Knob.level]


REGISTRY = {}


def registered(name):
    def inner(function):
        REGISTRY[name] = function
        return function

    return inner


@changing
def from_the_registry(w):
    return [REGISTRY[w]]


# -- the host -------------------------------------------------------------------------------------------------------


@changing
def platform_(w):
    return [sys.platform]


@changing
def version(w):
    return [sys.version_info >= (3, 12)]


@changing
def version_text(w):
    return [sys.version]


@changing
def executable(w):
    return [sys.executable]


@changing
def recursion(w):
    return [sys.getrecursionlimit()]


@changing
def sizeof(w):
    return [sys.getsizeof(w)]


@changing
def refcount(w):
    return [sys.getrefcount(w)]


@changing
def encoding(w):
    return [sys.getdefaultencoding()]


@changing
def os_name(w):
    return [os.name]


@changing
def hash_info(w):
    return [sys.hash_info.width]


@changing
def machine(w):
    return [platform.machine()]


@changing
def python_version(w):
    return [platform.python_version()]


@changing
def load_average(w):
    return [os.getloadavg()]


@changing
def affinity(w):
    return [len(os.sched_getaffinity(0))]


@changing
def disk(w):
    return [shutil.disk_usage("/").free]


@changing
def which(w):
    return [shutil.which(w)]


@changing
def fqdn(w):
    return [socket.getfqdn()]


@changing
def resolves(w):
    return [socket.gethostbyname(w)]


@changing
def package_version(w):
    return [importlib.metadata.version(w)]


@changing
def numpy_version(w):
    return [np.__version__]


@changing
def module_file(w):
    return [__file__]


@changing
def realpath(w):
    return [os.path.realpath(w)]


@changing
def expanduser(w):
    return [os.path.expanduser(w)]


@changing
def path_absolute(w):
    return [Path(w).absolute()]


@changing
def path_resolve(w):
    return [str(Path(w).resolve())]


@changing
def path_expanduser(w):
    return [Path(w).expanduser()]


@changing
def path_home(w):
    return [Path.home() / w]


@changing
def path_glob(w):
    return [list(Path(w).glob("*"))]


@changing
def mime(w):
    return [mimetypes.guess_type(w)[0]]


@changing
def unzipped(w):
    return [zipfile.ZipFile(w).namelist()]


@changing
def ini(w):
    parser = configparser.ConfigParser()
    parser.read(w)
    return [parser["a"]["b"]]


@changing
def stack_names(w):
    return [inspect.stack()[1].function]


@changing
def limited(w):
    return [gettext.gettext(w)]


@changing
def errno_text(n):
    return [os.strerror(n)]


@changing
def thread_count(w):
    return [threading.active_count()]


@changing
def main_thread(w):
    return [threading.main_thread().ident]


@changing
def task_name(w):
    return [asyncio.current_task()]


@changing
def shown_address(w):
    return [repr(object())]


@changing
def shown_function(w):
    return [str(shown_address)]


@changing
def shown_lambda(w):
    return [f"{(lambda: 1)}"]


@changing
def shown_in_a_list(w):
    return [str([object()])]


@changing
def sorted_by_id(ws):
    return sorted(ws, key=id)


@changing
def shown_generator(ws):
    return [str(x for x in ws)]


@changing
def object_hash(w):
    return [w.__hash__() % 8]


@changing
def hash_by_map(ws):
    return list(map(hash, ws))


@changing
def hash_of_type(w):
    return [str.__hash__(w)]


@changing
def hash_pandas(ws):
    return [hash(tuple(ws)) & 1]


@changing
def object_id(w):
    return [f"{id(w):x}"]


# -- zone and language ----------------------------------------------------------------------------------------------


@changing
def zone_of_fromtimestamp(x):
    return [moment.fromtimestamp(x)]


@changing
def zone_by_name(x):
    return [datetime.datetime.fromtimestamp(x, tz=None)]


@changing
def day_of_fromtimestamp(x):
    return [date.fromtimestamp(x)]


@changing
def local_time(x):
    return [time.localtime(x).tm_hour]


@changing
def make_time(x):
    return [time.mktime(time.gmtime(x))]


@changing
def c_time(x):
    return [time.ctime(x)]


@changing
def astimezone_bare(text):
    return [moment.fromisoformat(text).astimezone()]


@changing
def astimezone_none(text):
    return [moment.fromisoformat(text).astimezone(None)]


@changing
def stamp_of_naive(text):
    return [moment(2026, 1, 1).timestamp()]


@changing
def stamp_of_parsed(text):
    return [moment.strptime(text, "%Y").timestamp()]


@changing
def epoch_seconds(d):
    return [d.strftime("%s")]


@changing
def locale_currency(x):
    return [locale.currency(x)]


@changing
def locale_sort(ws):
    return sorted(ws, key=locale.strxfrm)


@changing
def zone_constant(x):
    return [x - time.timezone]


@changing
def zone_name(x):
    return [time.tzname[0]]


@changing
def local_date_header(x):
    return [email.utils.formatdate(x, localtime=True)]


@changing
def local_zone_of_utc(x):
    return [moment.fromtimestamp(x, UTC).astimezone().isoformat()]


@changing
def local_from_ordinal(x):
    return [moment.combine(date.fromtimestamp(x), datetime.time.min)]


@changing
def pandas_zone(x):
    return [pd.Timestamp(x, tz="tzlocal()")]


@changing
def host_zone(d):
    return [d.astimezone(zoneinfo.ZoneInfo("localtime"))]


@changing
def naive_shifted(text):
    return [moment.strptime(text, "%Y").astimezone(UTC)]


@changing
def naive_replaced(text):
    return [moment.strptime(text, "%Y-%m-%d %H").replace(minute=0).timestamp()]


@changing
def local_zone_text(x):
    return [time.strftime("%d.%m.%Y %Z", time.gmtime(x))]


@changing
def parsed_local_zone(text):
    return [moment.strptime(text, "%Y %Z")]


@changing
def fromtimestamps(xs):
    return list(map(moment.fromtimestamp, xs))


@changing
def emits_set_inside(ws):
    return [[1, set(ws)]]


@changing
def zones_there(w):
    return [w in zoneinfo.available_timezones()]


@changing
def decimal_context(x):
    return [decimal.getcontext().divide(x, 3)]


@changing
def decimal_precision(x):
    decimal.getcontext().prec = 5
    return [decimal.Decimal(x) / 3]


@changing
def numpy_options(x):
    np.set_printoptions(precision=3)
    return [str(np.array([x]))]


@changing
def seeded_globally(x):
    np.random.seed(7)
    return [np.random.rand()]


# -- sets, ties and machines ----------------------------------------------------------------------------------------


@changing
def json_of_a_set(ws):
    return [json.dumps({"w": list(set(ws))})]


@changing
def json_default(ws):
    return [json.dumps({"w": set(ws)}, default=list)]


@changing
def sum_over_set(xs):
    return [sum({float(x) for x in xs})]


@changing
def array_of_set(xs):
    return [np.array(list({*xs})).tolist()]


@changing
def series_of_set(xs):
    return [pd.Series(list(set(xs))).tolist()]


@changing
def counter_of_set(ws):
    return Counter_of(ws)


def Counter_of(ws):
    return list(collections.Counter(set(ws)))


@changing
def ties_of_set(ws):
    return sorted(set(ws), key=len)


@changing
def nlargest_of_set(ws):
    return heapq.nlargest(2, set(ws), key=len)


@changing
def reduce_of_set(ws):
    return [functools.reduce(lambda a, b: a + b, set(ws))]


@changing
def pickle_of_set(ws):
    return [pickle.dumps(set(ws))]


@changing
def pprint_of_dicted_set(ws):
    return [str({"a": set(ws)})]


@changing
def format_of_nested_set(ws):
    return ["{}".format([set(ws)])]


@changing
def percent_of_set(ws):
    return ["%s" % set(ws)]


@changing
def percent_of_tuple_set(ws):
    return ["%s %s" % (1, set(ws))]


@changing
def digest_of_set(ws):
    return [hashlib.md5(repr(set(ws)).encode()).hexdigest()]


@changing
def set_by_and(a, b):
    return list(set(a) & set(b))


@changing
def set_by_update(ws):
    found = set()
    found.update(ws)
    return [x for x in found]


@changing
def set_by_ior(ws):
    found = set()
    found |= {w.lower() for w in ws}
    return ",".join(found)


@changing
def set_in_tuple(ws):
    pair = (set(ws), 1)
    return list(pair[0])


@changing
def set_through_lambda(ws):
    return (lambda s: list(s))(set(ws))


@changing
def set_by_map(ws):
    return list(map(str.lower, set(ws)))


@changing
def set_by_filter(ws):
    return list(filter(None, frozenset(ws)))


@changing
def set_by_iter(ws):
    return [next(iter(set(ws)))]


@changing
def set_by_copy(ws):
    return list(set(ws).copy())


@changing
def set_by_deepcopy(ws):
    return list(copy.deepcopy(set(ws)))


@changing
def set_by_dict_comp(ws):
    return list({k: 1 for k in set(ws)})


@changing
def set_by_chain(ws):
    return list(itertools.chain(set(ws), ws))


@changing
def set_by_star_args(ws):
    return (lambda *a: a)(*set(ws))


@changing
def set_by_unpack(ws):
    a, b = set(ws)
    return [a, b]


@changing
def set_by_in_loop(ws):
    out = {}
    for w in set(ws):
        out[w] = len(out)
    return [out["a"]]


@changing
def set_by_dataclass(ws):
    return [w for w in Bag(set(ws)).words]


@dataclasses.dataclass
class Bag:
    words: set


@changing
def compressed(w):
    return [gzip.compress(w.encode())]


@changing
def weak(w):
    return [len(weakref.WeakSet([Knob()]))]


@changing
def fresh_object_key(ws):
    return sorted([object() for _ in ws], key=hash)


# -- calls on what nobody knows -------------------------------------------------------------------------------------


class Held(Em):
    def value(self, t):
        return t.getValue(0).now()


changing(Held)


@changing
class AsksAClient(Em):
    def value(self, t):
        return t[0].fetch_price()


@changing
class Reads(Em):
    def value(self, t):
        return t.getValue(0).read()


@changing
class ReadsALine(Em):
    def value(self, t):
        return t[0].readline()


@changing
class NextOfValue(Em):
    def value(self, t):
        return next(t[0])


@changing
class CallsTheValue(Em):
    def value(self, t):
        return t[0]()


@changing
class CallsAnItem(Em):
    def value(self, t):
        return t[0]["f"](1)


@changing
def method_by_name(w):
    return [operator.methodcaller("refresh")(w)]


@changing
def executes(cursor):
    return cursor.execute("select 1")


@changing
def sends(x):
    return [x.send(None)]


@changing
def random_method(x):
    return [x.random()]


@changing
def choice_method(x):
    return [x.choice([1, 2])]


@changing
def time_method(x):
    return [x.time.now()]


@changing
def result_method(x):
    return [x.result()]


@changing
def in_a_with_value(x):
    with x as y:
        return [y]


@changing
def awaits(x):
    async def inner():
        return time.time()

    return [asyncio.run(inner())]


# -- hidden ---------------------------------------------------------------------------------------------------------


@changing
def locals_(w):
    return [locals()["w"].__class__.__module__, vars()]


@changing
def via_dict(w):
    return [time.__dict__["time"]()]


@changing
def via_vars(w):
    return [vars(time)["time"]()]


@changing
def via_sys_modules(w):
    return [sys.modules[w].time()]


@changing
def via_type(w):
    return [type("X", (), {"t": staticmethod(time.time)}).t()]


@changing
def via_func_globals(w):
    return [via_vars.__globals__["time"].time()]


@changing
def via_class_mro(w):
    return [object.__subclasses__(Salted)]


@changing
def via_annotations(w: "x" = time.time()):
    return [w]


@changing
def via_exception(w):
    try:
        raise ValueError(time.time())
    except ValueError as error:
        return [error.args[0]]


@changing
def via_reraise(w):
    try:
        raise KeyError(w)
    except KeyError as error:
        return [traceback.format_exc()]


@changing
def via_contextvar(w):
    with contextlib.ExitStack() as stack:
        return [stack.enter_context(contextlib.nullcontext(time.time()))]


@changing
def via_partialmethod(w):
    return [PM().m()]


class PM:
    m = functools.partialmethod(lambda self, f: f(), time.time)


@changing
def via_reduce(w):
    return [functools.reduce(lambda a, f: f(), [time.time], 0)]


@changing
def via_starmap(w):
    return list(itertools.starmap(random.uniform, [(0, 1)]))


@changing
def via_map_of_tuple(w):
    return [f() for f in (len.__class__, time.time)]


@changing
def via_accumulate(w):
    return list(itertools.accumulate([1, 2], lambda a, b: a + random.random()))


@changing
def via_sort(ws):
    ws = list(ws)
    ws.sort(key=lambda w: random.random())
    return ws


@changing
def via_max(ws):
    return [max(ws, key=lambda w: time.time())]


@changing
def via_re_sub(w):
    return [re.sub("a", lambda m: str(random.random()), w)]


@changing
def via_defaultdict(w):
    return [collections.defaultdict(uuid.uuid4)[w]]


@changing
def via_missing(w):
    return [Missing()[w]]


class Missing(dict):
    def __missing__(self, key):
        return time.time()


@changing
def via_eq(w):
    return [w in [Eq()]]


class Eq:
    def __eq__(self, other):
        return random.random() < 0.5

    def __hash__(self):
        return 1


@changing
def via_format(w):
    return [f"{Fmt()}"]


class Fmt:
    def __format__(self, spec):
        return str(time.time())

    def __str__(self):
        return str(time.time())


@changing
def via_bool(w):
    return [1 if Truth() else 2]


class Truth:
    def __bool__(self):
        return random.random() < 0.5


@changing
def via_index(w):
    return [w[Idx()]]


class Idx:
    def __index__(self):
        return random.randrange(2)


@changing
def via_float(w):
    return [float(Num()) + int(Num())]


class Num:
    def __float__(self):
        return random.random()

    def __int__(self):
        return random.randrange(3)


@changing
def via_getitem(w):
    return [Items()[0]]


class Items:
    def __getitem__(self, i):
        return time.time()


@changing
def via_getattr_default(w):
    return [getattr(Items(), w, None)]


@changing
def via_post_init(w):
    return [PostInit().at]


@dataclasses.dataclass
class PostInit:
    at: float = 0.0

    def __post_init__(self):
        self.at = time.time()


@changing
def via_new(w):
    return [New().at]


class New:
    def __new__(cls):
        made = super().__new__(cls)
        made.at = time.time()
        return made


@changing
def via_json_default(w):
    return [json.dumps(Items(), default=lambda o: time.time())]


@changing
def via_vectorize(w):
    return [np.vectorize(lambda x: random.random())([1]).tolist()]


@changing
def via_apply_along(w):
    return [np.apply_along_axis(lambda x: random.random(), 0, np.array([w]))]


@changing
def via_pandas_apply(w):
    return [pd.Series([w]).apply(lambda x: random.random()).tolist()]


@changing
def via_pandas_map(w):
    return [pd.Series([w]).map(lambda x: time.time()).tolist()]


@changing
def via_pandas_agg(w):
    return [pd.DataFrame({"a": [w]}).groupby("a").apply(lambda g: g.sample(1))]


@changing
def via_pandas_sample(w):
    return [pd.Series([w]).sample(1).tolist()]


@changing
def via_fromfunction(w):
    return [np.fromfunction(lambda i: random.random(), (3,)).tolist()]


@changing
def via_generator_expr(w):
    return [*(random.random() for _ in w)]


@changing
def via_nested_generator(w):
    def gen():
        yield from (time.time() for _ in w)

    return list(gen())


@changing
def via_class_getitem(w):
    return [CG[w]]


class CG:
    def __class_getitem__(cls, item):
        return time.time()


@changing
def via_cached_table(w):
    return [memo(w)]


@functools.lru_cache(None)
def memo(w):
    return len(CALLS.setdefault(w, []))


CALLS = {}


@changing
class CountsCalls(Em):
    def __init__(self):
        self.calls = [0]

    def value(self, t):
        self.calls[0] += 1
        return self.calls[0]


@changing
class Toggles(Filter):
    on = True

    def isKeep(self, t):
        self.on = not self.on
        return self.on


@changing
class Batches(Aggregator):
    def __init__(self):
        self.rows = []

    def init(self, b, c):
        return self.rows

    def aggregate(self, v, t, c):
        v.append(t[0])
        return v

    def complete(self, v, c):
        c.emit([len(v)])


@changing
class ReduceKeeps(ReducerAggregator):
    EMPTY = []

    def init(self):
        return self.EMPTY

    def reduce(self, curr, t):
        curr.append(t[0])
        return curr


@changing
class ZeroKeeps(CombinerAggregator):
    ZERO = {}

    def init(self, t):
        return {t[0]: 1}

    def combine(self, a, b):
        a.update(b)
        return a

    def zero(self):
        return self.ZERO


@changing
class Dedupes(FlatMapFunction):
    def prepare(self, conf, context):
        self.last = None

    def execute(self, t):
        if t[0] != self.last:
            self.last = t[0]
            yield [t[0]]


@changing
class Limits(Filter):
    def __init__(self):
        self.left = iter(range(100))

    def isKeep(self, t):
        return next(self.left, None) is not None
