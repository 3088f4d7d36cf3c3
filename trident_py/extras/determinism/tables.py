"""Python and its libraries: deterministic names, changing names, methods that change their object.

Also what a process takes from its machine: constants that may differ there, the local time zone, the language. A name
on no list is "not seen".
"""

from __future__ import annotations

import array
import ast
import csv
import datetime
import decimal
import fractions
import functools
import hashlib
import importlib
import io
import ipaddress
import itertools
import locale
import logging
import pathlib
import random
import re
import string
import struct
import sys
import time
import types
import uuid
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from urllib.parse import ParseResult, SplitResult
from xml.etree.ElementTree import Element, ElementTree

import numpy as np
import pyarrow as pa

from ...tuples import TridentTuple
from .atoms import Args, Atom, Data, KnownObject, attribute_of


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


OURS = ("trident_py", "states")
SAME_AGAIN = _words(
    "_abc abc array ast.literal_eval base64 binascii bisect builtins bz2 calendar cmath codecs collections "
    "colorsys contextlib copy csv dataclasses datetime decimal difflib email.utils.parse enum fnmatch fractions "
    "functools genericpath.commonprefix hashlib heapq hmac html io.BytesIO io.StringIO ipaddress itertools json "
    "keyword logging lzma math numbers numpy operator os.PathLike os.fspath pandas pathlib.Path "
    "pathlib.PosixPath pathlib.PurePath pathlib.PurePosixPath pathlib.PureWindowsPath pathlib.WindowsPath "
    "posixpath.basename posixpath.commonpath posixpath.dirname posixpath.isabs posixpath.join "
    "posixpath.normcase posixpath.normpath posixpath.split posixpath.splitext pprint.pformat pyarrow quopri re "
    "reprlib shlex sre_constants statistics string stringprep struct sys.exit sys.intern textwrap time "
    "thread.RLock thread.lock threading.Lock threading.RLock traceback types typing unicodedata urllib.parse "
    "uuid warnings xml.etree.ElementTree zlib zoneinfo"
)
_NOT_SEEN = _words(
    "logging.LogRecord logging.makeLogRecord logging.Formatter "
    "builtins.__import__ builtins.breakpoint builtins.compile builtins.delattr builtins.eval builtins.exec "
    "builtins.globals builtins.locals builtins.memoryview builtins.vars bz2.BZ2File bz2.open codecs.open "
    "codecs.register collections.abc contextlib.redirect_stdout contextlib.redirect_stderr decimal.getcontext "
    "decimal.setcontext functools.singledispatchmethod json.dump json.load lzma.LZMAFile lzma.open numpy.ctypeslib "
    "numpy.fromfile numpy.fromregex numpy.genfromtxt numpy.lib.format numpy.lib.npyio numpy.load numpy.loadtxt "
    "numpy.memmap numpy.save numpy.random numpy.f2py pandas.ExcelFile pandas.HDFStore pandas.io pandas.read_ "
    "pyarrow.OSFile pyarrow.cpu_count pyarrow.csv pyarrow.dataset pyarrow.feather pyarrow.flight pyarrow.fs "
    "pyarrow.input_stream pyarrow.json pyarrow.total_allocated_bytes "
    "numpy.set_printoptions numpy.seterr numpy.seterrcall numpy.setbufsize calendar.setfirstweekday "
    "pyarrow.memory_map pyarrow.orc pyarrow.parquet pyarrow.output_stream traceback.format_exc types.CodeType "
    "types.FunctionType warnings.catch_warnings xml.etree.ElementTree.iterparse xml.etree.ElementTree.parse"
)
_EXACT_AFTER_ALL = ("json.dumps", "json.loads", "json.decoder", "json.encoder")
_OUTSIDE = _words(
    "asyncio concurrent dbm ftplib gc genericpath getpass glob http.client httpx locale mmap multiprocessing os "
    "pathlib platform posixpath psutil pwd requests resource select shelve shutil signal smtplib socket sqlite3 "
    "ssl subprocess sys tempfile thread threading urllib.request urllib3 weakref io.open io.FileIO "
    "io.TextIOWrapper secrets random"
)
_CHANGING = _words(
    "builtins.hash builtins.id builtins.input email.utils.formatdate email.utils.make_msgid "
    "email.utils.localtime numpy.empty numpy.empty_like os.urandom os.getrandom os.getenv "
    "pyarrow.compute.random threading.get_ident threading.current_thread threading.get_native_id time.time "
    "time.time_ns time.monotonic time.monotonic_ns time.perf_counter time.perf_counter_ns time.process_time "
    "time.process_time_ns time.thread_time time.thread_time_ns time.clock_gettime time.clock_gettime_ns "
    "uuid.uuid1 uuid.uuid4 uuid.uuid6 uuid.uuid7 uuid.uuid8 uuid.getnode secrets.token_bytes secrets.token_hex "
    "secrets.token_urlsafe secrets.randbelow secrets.randbits secrets.choice random.SystemRandom gzip.compress "
    "os.environ os.environb sys.argv sys.path sys.modules sys.stdin sys.flags"
)
_SETTINGS = _words("builtins.input os.getenv os.environ os.environb sys.argv sys.path sys.modules sys.stdin sys.flags")
_OF_THE_PROCESS = ("os.getpid", "os.getppid", "socket.gethostname", "platform.node", "uuid.getnode")
_WITHOUT_ARGUMENTS = _words(
    "random.Random time.localtime time.gmtime time.ctime time.asctime numpy.random.default_rng "
    "numpy.random.RandomState numpy.random.SeedSequence numpy.random.PCG64 numpy.random.PCG64DXSM "
    "numpy.random.MT19937 numpy.random.Philox numpy.random.SFC64 numpy.datetime64"
)
_DATED = ("numpy", "pandas")
CLOCK = ("now", "utcnow", "today", "utctoday")
_SHOWN = {"genericpath.": "os.path.", "posixpath.": "os.path."}
ALIASES = {"blake2": "hashlib", "posix": "os", "thread": "thread", "sre": "re", "nt": "os"}


def _objects(names: Iterable[str]) -> dict[int, tuple[Any, str]]:
    objects = {}
    for name in names:
        module, _, attribute = name.rpartition(".")
        with suppress(ImportError, KeyError):  # of a newer Python
            thing = vars(importlib.import_module(module))[attribute]
            objects[id(thing)] = thing, name.removeprefix("builtins.")
    return objects


_ALWAYS, _BARE = _objects(_CHANGING), _objects(_WITHOUT_ARGUMENTS)


def _names(*kinds: type) -> frozenset[str]:
    return frozenset(name for kind in kinds for name in dir(kind) if not name.startswith("__"))


_DATA_TYPES = (
    string.Template, string.Formatter,
    str, bytes, bytearray, int, float, complex, list, dict, tuple, set, frozenset, range, slice, array.array,
    memoryview, decimal.Decimal, fractions.Fraction, datetime.datetime, datetime.date, datetime.time,
    datetime.timedelta, re.Pattern, re.Match, Counter, ChainMap, OrderedDict, defaultdict, deque, uuid.UUID,
    pathlib.PurePath, type(hashlib.md5(b"", usedforsecurity=False)), struct.Struct, io.StringIO, io.BytesIO, Element,
    ElementTree,
    ParseResult, SplitResult, ipaddress.IPv4Address, ipaddress.IPv4Network, types.GeneratorType, np.ndarray,
    np.generic, np.float64, np.datetime64, np.ufunc, pa.Array, pa.ChunkedArray, pa.Table, pa.RecordBatch,
    pa.Scalar, pa.StructArray, TridentTuple, BaseException, itertools.chain, logging.Logger, type(csv.reader([])),
    type(csv.writer(io.StringIO())), csv.DictReader, csv.DictWriter, functools.partial,
)  # fmt: skip
_UNSTEADY_NAMES = frozenset(
    [*CLOCK, *_words("sample tofile dump compress to_csv to_parquet to_pickle to_sql to_excel")]
)
MUTATORS = _set(
    "append extend insert pop popitem remove clear update setdefault add discard sort reverse appendleft "
    "extendleft popleft rotate set subtract intersection_update difference_update symmetric_difference_update "
    "move_to_end write writelines read readline readlines seek truncate send throw fill put resize itemset "
    "setfield byteswap frombytes fromlist __next__ __setitem__ __delitem__ __setattr__ setflags writerow writerows"
)
SETS = _set("union intersection difference symmetric_difference")
# Methods that iterate over their argument.
GO_THROUGH = _set("join extend extendleft fromkeys writelines format format_map from_iterable fromlist writerow")
# Functions that change their first argument; then functions that ignore the order of theirs.
FIRST_CHANGES = _set(
    "builtins.next builtins.setattr builtins.delattr heapq.heappush heapq.heappop heapq.heapify "
    "heapq.heapreplace heapq.heappushpop bisect.insort bisect.insort_left bisect.insort_right operator.setitem "
    "operator.delitem operator.iadd operator.iconcat operator.ior numpy.copyto numpy.fill_diagonal numpy.place "
    "numpy.put numpy.put_along_axis numpy.putmask"
)
METHODS_CHANGE_FIRST = _set("at pack_into readinto shuffle")  # `at` of numpy's functions
# Functions whose result has the contents of their arguments; those of numpy whose result is their argument; those that
# put the contents into tuples.
HANDS_ON = _set(
    "builtins.dict builtins.filter builtins.iter builtins.list builtins.reversed builtins.sorted builtins.tuple "
    "collections.OrderedDict collections.deque copy.copy heapq.merge heapq.nlargest heapq.nsmallest itertools.chain "
    "itertools.cycle itertools.dropwhile itertools.filterfalse itertools.islice itertools.takewhile "
    "collections.ChainMap"
)
VIEWS = _set(
    "asanyarray asarray ascontiguousarray atleast_1d atleast_2d atleast_3d broadcast_to expand_dims flip fliplr "
    "flipud moveaxis ravel reshape rollaxis rot90 squeeze swapaxes to_numpy transpose view"
)
PAIRS = _set(
    "builtins.enumerate builtins.zip itertools.pairwise itertools.product itertools.tee itertools.zip_longest"
)
ORDERLESS = _set(
    "builtins.sorted builtins.len builtins.min builtins.max builtins.any builtins.all builtins.set "
    "builtins.frozenset builtins.bool builtins.isinstance builtins.type builtins.callable builtins.print "
    "math.fsum"
)
BY_KEY = _set("builtins.sorted builtins.min builtins.max heapq.nlargest heapq.nsmallest")
FOLDS = ("functools.reduce", "itertools.accumulate")
TEXTS = frozenset(("builtins.str", "builtins.repr", "builtins.ascii", "builtins.format", "pprint.pformat"))
COPIES = frozenset(("copy.copy", "copy.deepcopy"))
# Functions that visit everything inside their argument.
GO_DEEP = TEXTS | frozenset(("json.dumps", "pickle.dumps", "reprlib.repr"))
# Methods of files and iterators, which no value of a tuple is.
STREAMS = _set("read readline readlines readinto read1 send throw __next__ truncate seek tell")
# What a context makes in `prepare`. Metrics count beside the tuples: what goes into them comes back to no tuple.
MADE_BY_CONTEXT = {
    **dict.fromkeys(_words("registerMetric registerTimer registerHistogram registerMeter registerCounter"), "metric"),
    **dict.fromkeys(_words("registerGauge registerMetricSet"), "metric"),
    "makeProjectionFactory": "projection",
}
COUNTS = _words("inc dec mark update incr incrBy setValue stop close")  # of metrics; they return nothing
MORE_METRICS = ("scope", "time")
SCALARS = frozenset(
    f"builtins.{name}" for name in _words("int float str bool bytes len round abs sum ord chr complex repr")
)


def data_methods() -> frozenset[str]:
    """Return the methods that a plain value may have. Includes pandas if the user's code has loaded it."""
    pandas = sys.modules.get("pandas")
    return (_methods_with(pandas) if pandas is not None else METHODS) - _UNSTEADY_NAMES


METHODS = _names(*_DATA_TYPES)


@functools.lru_cache(maxsize=1)
def _methods_with(pandas: Any) -> frozenset[str]:
    frame = pandas.DataFrame({"a": [1]})
    groups = (frame.groupby("a"), frame["a"].groupby(frame["a"]), frame.rolling(1), frame["a"].rolling(1))
    kinds = [pandas.DataFrame, pandas.Series, pandas.Index, pandas.Timestamp, pandas.Timedelta, *map(type, groups)]
    texts = (pandas.Series(["a"]).str, pandas.Series([pandas.Timestamp(0)]).dt)
    return METHODS | _names(*kinds, *map(type, texts))


FILE_METHODS = _names(pathlib.Path) - _names(pathlib.PurePath)


def module_of(thing: Any) -> str:
    """Return the module of a class, a function or an object's class, as users write it."""
    module = attribute_of(thing, "__module__")
    if not isinstance(module, str):
        owner = attribute_of(thing, "__objclass__") or attribute_of(thing, "__self__") or type(thing)
        owner = owner if isinstance(owner, type | types.ModuleType) else type(owner)
        module = owner.__name__ if isinstance(owner, types.ModuleType) else owner.__module__
    root, dot, rest = module.partition(".")
    root = root.lstrip("_") if root != "__main__" else root
    return ALIASES.get(root, root) + dot + rest


def name_of(thing: Any) -> str:
    """Return the name that users write: ``datetime.now`` of a class, else module and name."""
    name = attribute_of(thing, "__qualname__") or attribute_of(thing, "__name__") or type(thing).__qualname__
    return f"{module_of(thing)}.{name}".replace("pyarrow.lib.", "pyarrow.").replace("pyarrow._", "pyarrow.")


def public_name(name: str) -> str:
    """Return the name in reports: as users import it."""
    for root, public in _SHOWN.items():
        name = name.replace(root, public) if name.startswith(root) else name
    return name.removeprefix("builtins.")


def _under(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix if prefix[-1] == "_" else f"{prefix}.") for prefix in prefixes)


def same_again(name: str) -> bool:
    """Return whether a library's function or class gives equal results for equal arguments."""
    if _under(name, _NOT_SEEN) and not _under(name, _EXACT_AFTER_ALL):
        return False
    return _under(name, SAME_AGAIN)


def outside(name: str) -> bool:
    """Return whether it uses the process, the machine or the outside world."""
    return _under(name, _OUTSIDE)


def find_changing(thing: Any, args: Args) -> str | None:
    """Return the name of a function or class that gives another result each time; None for all others."""
    if id(thing) in _ALWAYS:
        return _ALWAYS[id(thing)][1]
    if id(thing) in _BARE and (args.bare or _asks_the_clock(args)):
        return _BARE[id(thing)][1]
    if thing is time.strftime and len(args.positional) < 2:
        return "time.strftime"
    library = module_of(thing).partition(".")[0] if callable(thing) else ""
    if (library == "pandas" and _asks_the_clock(args)) or (library in _DATED and names_now(name_of(thing), args)):
        return name_of(thing)
    if callable(thing) and (local := _zone(thing, name_of(thing), args)) is not None:
        return local
    owner, name = attribute_of(thing, "__self__"), str(attribute_of(thing, "__name__") or "")
    if isinstance(owner, type) and name in CLOCK:
        return f"{owner.__name__}.{name}"
    return name_drawing(type(owner), name) if is_random(type(owner)) else None


def _asks_the_clock(args: Args) -> bool:
    first = args.nodes[0] if args.nodes else None
    return isinstance(first, ast.Constant) and first.value in ("now", "today")


def names_now(name: str, args: Args) -> bool:
    """Return whether a call of this name makes times out of texts, of which one is "now" or "today"."""
    nodes = ast.walk(args.call) if args.call is not None else ()
    words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    makes_times = name.startswith("pandas.") and any(part in name.lower() for part in ("date", "period", "timestamp"))
    return not words.isdisjoint(("now", "today")) and (makes_times or any("datetime64" in word for word in words))


def is_chance(name: str) -> bool:
    """Return whether it is a clock, a random draw or an identity of this process, which differ by chance at each
    start."""
    changing = [entry.removeprefix("builtins.") for entry in _CHANGING if entry not in _SETTINGS]
    if name.startswith(("random.", "numpy.random.", "secrets.")) or name.rpartition(".")[2] in CLOCK:
        return True
    return name in (*changing, *_OF_THE_PROCESS, *_WITHOUT_ARGUMENTS)


def name_drawing(kind: type, name: str) -> str:
    """Return the public name of a drawing method: ``numpy.random.normal``, whatever module defines its class."""
    return f"{module_of(kind).partition('.mtrand')[0].partition('._')[0]}.{name}"


def is_random(kind: type) -> bool:
    """Return whether its objects draw random numbers."""
    return issubclass(kind, random.Random) or module_of(kind).startswith("numpy.random")


def is_environment(value: Any) -> str | None:
    """Return the name of os.environ and similar objects, however the code reached them; None for others."""
    _, name = _ALWAYS.get(id(value), (None, None))
    return name if not callable(value) else None


# -- the machine ------------------------------------------------------------------------------------------------

PLACE = ("__file__", "__path__", "__cached__", "__spec__", "__loader__", "__version__")
# A topology runs on one kind of machine, where these constants of the platform are equal.
_SAME_PLATFORM = (
    "os.sep", "os.altsep", "os.linesep", "os.curdir", "os.pardir", "os.extsep", "os.pathsep", "os.devnull",
    "sys.byteorder", "sys.maxsize", "sys.maxunicode", "sys.float_info", "sys.int_info", "sys.stdout", "sys.stderr",
)  # fmt: skip
_ZONE_OF_THE_HOST = ("time.timezone", "time.altzone", "time.tzname", "time.daylight", "zoneinfo.TZPATH")
_LOCAL = ("time.localtime", "time.mktime", "time.ctime", "time.tzset")
_NAMES = ("month_name", "month_abbr", "day_name", "day_abbr")
_HOST_ZONES = ("localtime", "posixrules")
_NAIVE = ["datetime.datetime", "datetime.datetime.utcfromtimestamp", "datetime.datetime.fromordinal"]


def of_the_machine(dotted: str, value: Any) -> bool:
    """Return whether this attribute of a module depends on the process, the machine or its time zone."""
    root, _, name = dotted.rpartition(".")
    if name in PLACE or dotted in _ZONE_OF_THE_HOST:
        return True
    if root == "calendar" and name in _NAMES:
        # Whether this process has set a language: Python itself starts without one.
        return any(locale.setlocale(part) not in ("C", "POSIX") for part in (locale.LC_TIME, locale.LC_NUMERIC))
    outside = root in ("os", "sys") and name[:1] != "_" and not name.startswith(("O_", "SEEK_", "EX_", "W", "P_"))
    return outside and not callable(value) and not isinstance(value, types.ModuleType) and dotted not in _SAME_PLATFORM


def _zone(thing: Any, name: str, args: Args) -> str | None:
    """Return the name for reports if this call uses the local time zone, else None."""
    owner, short = attribute_of(thing, "__self__"), name.rpartition(".")[2]
    if name in _LOCAL or short == "available_timezones":
        return name if short != "available_timezones" else "zoneinfo.available_timezones"
    if isinstance(owner, type) and issubclass(owner, datetime.date) and short == "fromtimestamp":
        zoned = issubclass(owner, datetime.datetime) and _has_argument(args, 1, "tz")
        return None if zoned else f"{owner.__name__}.fromtimestamp without a time zone"
    if short == "ZoneInfo" and any(text in _HOST_ZONES for text in _texts(args, 0)):
        return "ZoneInfo of the host"
    if name.startswith("pandas.") and "tzlocal()" in _constants(args):
        return f"{name} with tzlocal()"
    if name == "time.strftime" and _has_directive(_texts(args, 0), "sZz"):
        return "time.strftime of the local zone"
    if name == "datetime.datetime.strptime" and _has_directive(_texts(args, 1), "Z"):
        return "datetime.strptime of the local zone"
    return None


def machine_method(owner: Atom, name: str, args: Args) -> str | None:
    """Return the name of a call of a plain value's method that depends on the machine, else None."""
    if name == "__hash__":
        return "hash"
    if name == "astimezone" and (_is_naive(owner) or not _has_argument(args, 0, "tz")):
        return "astimezone, which uses the local time zone,"
    if name == "timestamp" and _is_naive(owner):
        return "timestamp of a time without a zone"
    if name == "strftime" and _has_directive(_texts(args, 0), "s"):
        return "strftime of the local zone"
    return None


def _is_naive(atom: Atom) -> bool:
    """Return whether it is known to be a time without a zone."""
    value = atom.value if isinstance(atom, KnownObject) else None
    if isinstance(value, datetime.datetime):
        return value.tzinfo is None and type(value) is datetime.datetime
    return isinstance(atom, Data) and atom.naive


def makes_naive(name: str, args: Args) -> bool:
    """Return whether a function makes a time without a zone."""
    if name == "datetime.datetime.strptime":
        return any(not _has_directive([text], "zZ") for text in _texts(args, 1))
    return name in _NAIVE and not args.unknown and not _has_argument(args, 7, "tzinfo")


def keeps_naive(owner: Atom, name: str, args: Args) -> bool:
    return name == "replace" and _is_naive(owner) and not _has_argument(args, 7, "tzinfo")


def _has_argument(args: Args, place: int, name: str) -> bool:
    """Return whether the call passes this argument, and not as the constant None."""
    if args.unknown:
        return args.call is not None
    keywords = {keyword.arg: keyword.value for keyword in args.call.keywords} if args.call is not None else {}
    node = args.nodes[place] if place < len(args.positional) and place < len(args.nodes) else keywords.get(name)
    return node is not None and not (isinstance(node, ast.Constant) and node.value is None)


def _texts(args: Args, place: int) -> list[str]:
    """Return the possible texts of this argument, as far as they are known."""
    atoms = args.positional[place] if place < len(args.positional) else ()
    nodes = args.nodes[place : place + 1] if atoms else ()
    values = [atom.value for atom in atoms if isinstance(atom, KnownObject)]
    values += [node.value for node in nodes if isinstance(node, ast.Constant)]
    return [value for value in values if isinstance(value, str)]


def _constants(args: Args) -> list[Any]:
    keywords = args.call.keywords if args.call is not None else []
    nodes = [*args.nodes, *(keyword.value for keyword in keywords)]
    return [node.value for node in nodes if isinstance(node, ast.Constant)]


def _has_directive(formats: list[str], directives: str) -> bool:
    """Return whether one of these time formats has one of these directives."""
    parts = [part for text in formats for part in text.replace("%%", "").split("%")[1:] if part]
    return any(part.lstrip("-_0^#EO")[:1] in tuple(directives) for part in parts)
