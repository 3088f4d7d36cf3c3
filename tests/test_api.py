"""Every public class, method and configuration key of Storm's trident packages is here or in docs/differences.md.

``tests/data/storm/api.json`` holds what Storm has; `tests/storm/record_api.py` recorded it. The table "Storm's API
that is not here" in docs/differences.md names what is missing, and why. A name in it that exists here is an error too.
A name is a class without the common prefix (``trident.Stream``), a ``package.*``, a method (``trident.Stream.window``),
a number of its parameters (``trident.Stream.window/4``), ``new`` for a constructor, or a key.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import re
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import permutations
from pathlib import Path
from types import new_class
from typing import Any, get_overloads

import pytest

from trident_py import Config

RECORDED = json.loads((Path(__file__).parent / "data" / "storm" / "api.json").read_text())
CLASSES: dict[str, dict[str, Any]] = RECORDED["classes"]
DIFFERENCES = (Path(__file__).parent.parent / "docs" / "differences.md").read_text()

HOMES = (
    "trident_py",
    "trident_py.operations",
    "trident_py.operations.builtin",
    "trident_py.spouts",
    "trident_py.state",
    "trident_py.topology",
    "trident_py.testing",
    "trident_py.windowing",
    "trident_py.drpc",
)
"""The modules from which users import. Those that do not exist have nothing."""
RENAMED = {
    "ChainedFullAggregatorDeclarer": "ChainedAggregatorDeclarer",
    "ChainedPartitionAggregatorDeclarer": "ChainedAggregatorDeclarer",
    "IChainedAggregatorDeclarer": "ChainedAggregatorDeclarer",
    "IComponent": "IRichSpout",
    "ILocalCluster": "LocalCluster",
    "ISpout": "IRichSpout",
    "ITuple": "TridentTuple",
    "TridentTupleView": "TridentTuple",
}
"""One class here for several of Storm."""
KEYWORDS = {"global": "global_", "iterator": "__iter__"}


def absent() -> dict[str, str]:
    """The names of the table, each with the reason."""
    section = DIFFERENCES.partition("\n## Storm's API that is not here\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1:3] for row in section.splitlines() if row.startswith("| `")]
    return {name: why.strip() for names, why in rows for name in re.findall(r"`([^`]+)`", names)}


ABSENT = absent()


def ours(name: str) -> Any:
    """The class of ours for one of Storm's; None if there is none. Nested classes are attributes, as in Java."""
    outer, *inner = name.rpartition(".")[2].split("$")
    outer = RENAMED.get(outer, outer)
    for home in filter(importlib.util.find_spec, HOMES):
        found = getattr(importlib.import_module(home), outer, None)
        for part in inner:
            found = getattr(found, part, None)
        if found is not None:
            return found
    return None


def listed(name: str) -> bool:
    """Whether the name, a class of it or one of its packages is in the table."""
    parts = re.split(r"(?<=[^.])([.$/])", name)
    prefixes = ["".join(parts[: 2 * n + 1]) for n in range(len(parts) // 2 + 1)]
    return any(prefix in ABSENT or f"{prefix}.*" in ABSENT for prefix in prefixes)


def methods(name: str) -> dict[str, set[int]]:
    """The methods of a class and of its supers, each with the numbers of parameters. Constructors: ``new``."""
    found: dict[str, set[int]] = {}
    for parent in CLASSES[name]["supers"]:
        for method, counts in methods(parent).items() if parent in CLASSES else ():
            found.setdefault(method, set()).update(counts if method != "new" else ())
    for method, counts in CLASSES[name]["methods"].items():
        found.setdefault("new" if method == "<init>" else method, set()).update(counts)
    return found


def method_of(kind: Any, method: str) -> Any:
    """Our method for one of Storm's, or None."""
    if method == "new":
        return kind
    found = inspect.getattr_static(kind, method, None)
    return found if found is not None else inspect.getattr_static(kind, KEYWORDS.get(method, method), None)


def takes(kind: Any, method: Any, count: int) -> bool:
    """Whether a call with so many arguments fits one of the method's forms."""
    bound = not isinstance(method, staticmethod | type)
    function = method.__func__ if isinstance(method, staticmethod | classmethod) else method
    forms: list[Callable[..., Any]] = get_overloads(function) if inspect.isfunction(function) else []
    # `Config.setDebug(conf, true)` is a static method in Java; here it is the method, called with any map.
    counts = {count, count - 1} if kind is Config and count > 0 else {count}
    return any(_fits(form, n + bound) for form in forms or [function] for n in counts)


def _fits(form: Any, count: int) -> bool:
    if not callable(form):  # a slot of the instances, which holds a callable
        return True
    try:
        inspect.signature(form).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True  # written in C: Python does not know what it takes
    return True


def gaps(name: str) -> Iterator[str]:
    """What is missing of a class of Storm, by the names of the table."""
    kind = ours(name)
    if kind is None:
        yield name
        return
    for constant in CLASSES[name]["constants"]:
        if not hasattr(kind, constant):
            yield f"{name}.{constant}"
    for method, counts in methods(name).items():
        found = method_of(kind, method)
        if found is None:
            yield f"{name}.{method}"
        else:
            yield from (f"{name}.{method}/{count}" for count in sorted(counts) if not takes(kind, found, count))


def ancestors(name: str) -> set[str]:
    """What a class of Storm extends and implements."""
    supers = CLASSES.get(name, {"supers": []})["supers"]
    return {*supers, *(above for each in supers for above in ancestors(each))}


def bases() -> Iterator[tuple[str, str]]:
    """The pairs that one class of Java can extend and implement, in both orders; of two of which one has the other
    already, the narrower comes first."""
    packages = re.compile(r"trident\.(operation|state|spout|windowing|testing)\.")
    kinds = {name: ours(name) for name in CLASSES if packages.match(name)}
    mine = [name for name, kind in kinds.items() if isinstance(kind, type) and not issubclass(kind, tuple | Enum)
            and not vars(kind).get("__slots__")]  # fmt: skip
    interfaces = {name for name in mine if "<init>" not in CLASSES[name]["methods"]}
    for one, other in permutations(mine, 2):
        if {one, other} & interfaces and one not in ancestors(other) and kinds[one] is not kinds[other]:
            yield one, other


def test_a_class_can_have_any_two_bases_that_java_can_extend_and_implement() -> None:
    refused = {}
    for one, other in bases():
        try:
            new_class("Both", (ours(one), ours(other)))
        except TypeError as error:
            refused[one, other] = str(error)
    assert refused == {}


def test_the_record_is_of_the_version_that_the_documents_name() -> None:
    assert RECORDED["storm"] == "2.8.3" and f"Storm Trident {RECORDED['storm']}" in DIFFERENCES
    assert methods("trident.Stream")["each"] == {2, 3}
    assert methods("trident.operation.builtin.Max")["aggregate"] == {3}, "a method of a super"


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_class_of_storm_is_here_or_its_absence_is_explained(name: str) -> None:
    missing = [gap for gap in gaps(name) if not listed(gap)]
    assert missing == [], "build them, or name them in docs/differences.md with the reason"


@pytest.mark.parametrize("name", sorted(ABSENT))
def test_what_the_differences_call_missing_is_missing(name: str) -> None:
    if name in RECORDED["keys"]:
        assert name not in keys()
        return
    if name.endswith(".*"):
        inside = [owner for owner in CLASSES if owner.startswith(name[:-1])]
        assert inside and [owner for owner in inside if ours(owner) is not None] == []
        return
    owner = name if name in CLASSES else name.rpartition(".")[0]
    assert name in gaps(owner)


@pytest.mark.parametrize("key", sorted(RECORDED["keys"]))
def test_a_key_that_trident_reads_is_in_config_or_its_absence_is_explained(key: str) -> None:
    assert key in keys() or key in ABSENT


def keys() -> set[str]:
    return {value for name, value in vars(Config).items() if name.isupper()}


def test_every_absence_has_a_reason() -> None:
    assert [name for name, why in ABSENT.items() if len(why) < 7] == []
