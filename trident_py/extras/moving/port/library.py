"""What the methods of Java's and Storm's classes become.

A line of a table is ``name/arguments type = template``, or ``name(int)`` for a first argument of that type. A dot
before the name: a static member; ``new``: a constructor; ``!`` behind the arguments: as a statement. Behind ``|``
stand the parameter types of lambdas, one list for each. ``E K V A B`` are type arguments of the receiver,
``T`` its own, ``A0`` the type of an argument, ``R0`` the result of a lambda, ``R`` that of the last one, ``RE`` what is
in that.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from .java_types import FUNCTION, OBJECT, Type
from .tables_decimals import DECIMALS
from .tables_lang import LANG
from .tables_streams import STREAMS
from .tables_text import TEXT
from .tables_util import UTIL


@dataclass(frozen=True)
class TableEntry:
    template: str
    returns: str
    lambdas: tuple[tuple[str, ...], ...] = ()


PARENTS = {
    "ArrayList": "List", "LinkedList": "List", "Vector": "List", "CopyOnWriteArrayList": "List", "Stack": "List",
    "Values": "List", "List": "Collection", "Set": "Collection", "HashSet": "Set", "LinkedHashSet": "Set",
    "TreeSet": "Set", "SortedSet": "Set", "NavigableSet": "TreeSet", "Collection": "Iterable", "Iterable": "Object",
    "HashMap": "Map", "LinkedHashMap": "Map", "ConcurrentHashMap": "Map", "ConcurrentMap": "Map", "TreeMap": "Map",
    "Hashtable": "Map", "SortedMap": "TreeMap", "NavigableMap": "TreeMap", "Map": "Object", "Config": "Map",
    "Properties": "Map", "ArrayDeque": "Deque", "Deque": "Collection", "Queue": "Deque",
    "ConcurrentLinkedQueue": "Deque",
    "LinkedBlockingQueue": "Deque", "BlockingQueue": "Deque", "PriorityQueue": "Collection",
    "StringBuffer": "StringBuilder",
    "StringBuilder": "CharSequence", "String": "CharSequence", "CharSequence": "Object", "Integer": "Number",
    "Long": "Number", "Double": "Number", "Float": "Number", "Short": "Number", "Byte": "Number", "Number": "Object",
    "IntStream": "NumberStream", "LongStream": "NumberStream", "DoubleStream": "NumberStream",
    "NumberStream": "JStream",
    "JSONObject": "Map", "JSONArray": "List", "TridentTuple": "List", "ObjectNode": "JsonNode", "ArrayNode": "JsonNode",
    "EnumMap": "TreeMap", "Exception": "Throwable", "UnaryOperator": "JFunction", "ListIterator": "Iterator",
    "RuntimeException": "Throwable", "Map.Entry": "Object", "Entry": "Map.Entry",
    "SimpleEntry": "Map.Entry", "AbstractMap.SimpleEntry": "Map.Entry", "ThreadLocalRandom": "Random",
    "SecureRandom": "Random", "BigDecimal": "Number", "BigInteger": "Number", "RoundingMode": "Object",
}  # fmt: skip
for _name in (
    "IllegalArgumentException", "IllegalStateException", "NumberFormatException", "ParseException", "IOException",
    "NullPointerException", "ArithmeticException", "ClassCastException", "IndexOutOfBoundsException", "FailedException",
    "NoSuchElementException", "UnsupportedOperationException", "JSONException", "JsonProcessingException",
    "DateTimeParseException", "InterruptedException", "DRPCExecutionException", "ReportedFailedException",
):  # fmt: skip
    PARENTS[_name] = "Throwable"
_LINE = re.compile(r"(\.?[\w$]+)(?:/(\d+|\*)|\(([\w\[\], .]*)\))?(!?)\s+(\S+)\s+=\s+(.*)")


@functools.cache
def _tables() -> dict[str, dict[str, TableEntry]]:
    found: dict[str, dict[str, TableEntry]] = {}
    for table in (LANG, TEXT, UTIL, STREAMS, DECIMALS):
        for line in filter(None, map(str.strip, table.splitlines())):
            if line.startswith("["):
                current = [found.setdefault(name, {}) for name in line.strip("[]").split()]
                continue
            match = _LINE.fullmatch(line)
            if match is None:
                raise ValueError(f"a table of the library has the line {line!r}")
            name, count, first, statement, returns, rest = match.groups()
            template, _, lambdas = f"{rest} ".partition(" | ")
            lambdas = lambdas.replace(" ", "")
            groups = tuple(tuple(group.split(",")) for group in lambdas.split(";")) if lambdas else ()
            key = f"{name}({first})" if first is not None else f"{name}/{count}" if count else name
            for entries in current:
                entries[key + statement] = TableEntry(template.strip(), returns, groups)
    return found


def knows(name: str) -> bool:
    return name in _tables() or name in PARENTS


def lineage(name: str) -> list[str]:
    """Return a class and its parents in the library, up to Object."""
    found = [name]
    while found[-1] in PARENTS:
        found.append(PARENTS[found[-1]])
    return found if found[-1] == "Object" else [*found, "Object"]


VARARGS = {
    ("Arrays", "asList"): 1, ("List", "of"): 1, ("Set", "of"): 1, ("JStream", "of"): 1, ("IntStream", "of"): 1,
    ("Objects", "hash"): 1, ("Collections", "addAll"): 2,
}  # fmt: skip
"""Methods whose last argument may be an array of all further ones, and how many they then get."""


NARROW = {"byte": "JavaByte({})", "short": "JavaShort({})"}
"""How the numbers are written whose width counts where they are formatted."""


def find(kind: str, name: str, types: list[Type], statement: bool = False) -> TableEntry | None:
    """Return the entry of a method, for arguments of these types."""
    keys = _keys(name, types)
    for owner in lineage(kind):
        table = _tables().get(owner, {})
        for key in keys:
            for end in ("!", "") if statement else ("",):
                if found := table.get(key + end):
                    return found
    return None


def _keys(name: str, types: list[Type]) -> list[str]:
    """Return what the line of a table may call a method with these arguments, the closest one first."""
    first = types[0] if types else OBJECT
    unboxed = "" if name == "remove" and not first.is_primitive else first.primitive
    written = [str(first), unboxed, *(lineage(first.name)[:-1] if first.name != "[]" else ())]
    exact = [f"{name}({', '.join(map(str, types))})"]
    exact += [f"{name}({one})" for one in written] if len(types) == 1 else []
    return [*exact, *(f"{name}({one}...)" for one in written), f"{name}/{len(types)}", f"{name}/*"]


def entries(kind: str) -> dict[str, TableEntry]:
    """Return what the table says of one class, without its parents."""
    return _tables().get(kind, {})


def constant(kind: str, name: str) -> TableEntry | None:
    return _tables().get(kind, {}).get(f".{name}")


def substitute(written: str, receiver: Type, types: list[Type]) -> Type:
    """Return the type that an entry writes, for this receiver and these arguments."""
    return _replace(parse(written), receiver, types)


def _replace(kind: Type, receiver: Type, types: list[Type]) -> Type:
    name = kind.name
    if name in ("E", "K", "A"):
        return receiver.arg(0)
    if name in ("V", "B"):
        return receiver.arg(1)
    if name == "T":
        return receiver
    if match := re.fullmatch(r"([ARE])(\d?)(E?)", name):
        found = types[int(match[2] or -1)] if types and int(match[2] or -1) < len(types) else OBJECT
        if match[1] == "R":
            found = found.args[-1] if found.name == FUNCTION and found.args else OBJECT
        return (found.arg(0) if match[1] == "E" or match[3] else found).boxed
    return Type(name, tuple(_replace(one, receiver, types) for one in kind.args))


@functools.cache
def parse(written: str) -> Type:
    """Read ``Map<K,List<V>>``; arrays as ``String[]``."""
    if written.endswith("[]"):
        return Type("[]", (parse(written[:-2]),))
    name, _, rest = written.partition("<")
    if not rest:
        return Type(name)
    parts, depth, start, body = [], 0, 0, rest[:-1]
    for index, sign in enumerate(body):
        depth += (sign == "<") - (sign == ">")
        if sign == "," and depth == 0:
            parts.append(body[start:index])
            start = index + 1
    parts.append(body[start:])
    return Type(name, tuple(parse(part) for part in parts))
