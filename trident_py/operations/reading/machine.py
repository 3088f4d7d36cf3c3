"""What a process takes from its machine: constants that may differ there, the local time zone, the language."""

from __future__ import annotations

import ast
import datetime
import locale
import types
from typing import Any

from .atoms import Args, Atom, Data, KnownObject

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
    """Whether this attribute of a module depends on the process, the machine or its time zone."""
    root, _, name = dotted.rpartition(".")
    if name in PLACE or dotted in _ZONE_OF_THE_HOST:
        return True
    if root == "calendar" and name in _NAMES:
        return speaks()
    outside = root in ("os", "sys") and name[:1] != "_" and not name.startswith(("O_", "SEEK_", "EX_", "W", "P_"))
    return outside and not callable(value) and not isinstance(value, types.ModuleType) and dotted not in _SAME_PLATFORM


def speaks() -> bool:
    """Whether this process has set a language: Python itself starts without one."""
    return any(locale.setlocale(each) not in ("C", "POSIX") for each in (locale.LC_TIME, locale.LC_NUMERIC))


def zone(thing: Any, name: str, args: Args) -> str | None:
    """Returns the name for reports if this call uses the local time zone, else None."""
    owner, short = getattr(thing, "__self__", None), name.rpartition(".")[2]
    if name in _LOCAL or short == "available_timezones":
        return name if short != "available_timezones" else "zoneinfo.available_timezones"
    if isinstance(owner, type) and issubclass(owner, datetime.date) and short == "fromtimestamp":
        given = issubclass(owner, datetime.datetime) and _given(args, 1, "tz")
        return None if given else f"{owner.__name__}.fromtimestamp without a time zone"
    if short == "ZoneInfo" and any(each in _HOST_ZONES for each in texts(args, 0)):
        return "ZoneInfo of the host"
    if name.startswith("pandas.") and "tzlocal()" in _constants(args):
        return f"{name} with tzlocal()"
    return _form(name, args)


def _form(name: str, args: Args) -> str | None:
    """Returns the name of a call whose time format shows, or reads, the local zone, else None."""
    if name == "time.strftime" and any(_shows(each, "sZz") for each in texts(args, 0)):
        return "time.strftime of the local zone"
    if name == "datetime.datetime.strptime" and any(_shows(each, "Z") for each in texts(args, 1)):
        return "datetime.strptime of the local zone"
    return None


def method(owner: Atom, name: str, args: Args) -> str | None:
    """Returns the name of a call of a plain value's method that depends on the machine, else None."""
    if name == "__hash__":
        return "hash"
    if name == "astimezone" and (is_naive(owner) or not _given(args, 0, "tz")):
        return "astimezone, which takes the local time zone,"
    if name == "timestamp" and is_naive(owner):
        return "timestamp of a time without a zone"
    if name == "strftime" and any(_shows(each, "s") for each in texts(args, 0)):
        return "strftime of the local zone"
    return None


def is_naive(atom: Atom) -> bool:
    """Whether it is known to be a time without a zone."""
    value = atom.value if isinstance(atom, KnownObject) else None
    if isinstance(value, datetime.datetime):
        return value.tzinfo is None and type(value) is datetime.datetime
    return isinstance(atom, Data) and atom.naive


def makes_naive(name: str, args: Args) -> bool:
    """Whether a function makes a time without a zone."""
    if name == "datetime.datetime.strptime":
        return any(not _shows(each, "zZ") for each in texts(args, 1))
    return name in _NAIVE and not args.unknown and not _given(args, 7, "tzinfo")


def keeps_naive(owner: Atom, name: str, args: Args) -> bool:
    return name == "replace" and is_naive(owner) and not _given(args, 7, "tzinfo")


def _given(args: Args, place: int, name: str) -> bool:
    """Whether this argument is given, and is not the constant None."""
    if args.unknown:
        return args.call is not None
    named = {each.arg: each.value for each in args.call.keywords} if args.call is not None else {}
    node = args.nodes[place] if place < len(args.positional) and place < len(args.nodes) else named.get(name)
    return node is not None and not (isinstance(node, ast.Constant) and node.value is None)


def texts(args: Args, place: int) -> list[str]:
    """Returns the possible texts of this argument, as far as they are known."""
    known = args.positional[place] if place < len(args.positional) else ()
    node = args.nodes[place] if known and place < len(args.nodes) else None
    found = [each.value for each in known if isinstance(each, KnownObject)]
    return [each for each in (*found, getattr(node, "value", None)) if isinstance(each, str)]


def _constants(args: Args) -> list[Any]:
    nodes = [*args.nodes, *(each.value for each in args.call.keywords)] if args.call is not None else args.nodes
    return [each.value for each in nodes if isinstance(each, ast.Constant)]


def _shows(form: str, directives: str) -> bool:
    """Whether a time format has one of these directives."""
    letters = form.replace("%%", "").split("%")[1:]
    return any(each.lstrip("-_0^#EO")[:1] in tuple(directives) for each in letters if each)
