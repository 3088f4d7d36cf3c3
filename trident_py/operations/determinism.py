"""Whether an operation gives the same results for the same tuples: by its declaration, or by what reads its source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..config import Config, check
from ..entry_points import find
from ..errors import DefinitionError
from .base import CombinerAggregator, Prepared, ReducerAggregator, name_of

DETERMINISTIC, CHANGING, UNSEEN, UNCHECKED = "deterministic", "not deterministic", "not seen", "unchecked"
DECLARED = "__trident_deterministic__"
READER = "determinism"  # the extra that reads the source of operations
_OURS = ("trident_py", "states")
_PLAIN = (bool, int, float, str, bytes, type(None))

T = TypeVar("T")


def nondeterministic(operation: T) -> T:
    """Declare that an operation may give other results when it runs again on the same tuples.

    Such an operation reads a clock, draws random numbers or asks a service. For a class, a plain callable or one
    object: ``@nondeterministic class AskService(Function)``. ``topology.guarantees()`` then reports what that means for
    the states after it. Called on the driver when the topology is defined; nothing changes at run time.
    """
    return _declare(operation, False)


def deterministic(operation: T) -> T:
    """Declare that an operation gives the same results for the same tuples, whatever its source looks like.

    Use it for source that cannot be read, for calls that do not affect the results, such as a clock read for a log
    line, or for a query of a table that never changes. The declaration covers the class and its base classes, not what
    a subclass adds.
    """
    return _declare(operation, True)


@dataclass(frozen=True)
class Verdict:
    """The verdict on an operation: ``kind`` is DETERMINISTIC, CHANGING ("not deterministic"), UNSEEN or UNCHECKED.

    DETERMINISTIC means that the operation was declared so, or its source was read and understood completely. ``why``
    names the first reason, with its place or the declaration. UNSEEN ("not seen") and UNCHECKED (nothing has read the
    source: the extra is missing) count as not deterministic.
    """

    kind: str
    why: str = ""

    @property
    def deterministic(self) -> bool:
        return self.kind == DETERMINISTIC

    @property
    def seen(self) -> bool:
        return self.kind not in (UNSEEN, UNCHECKED)


Judge = Callable[[Any], Verdict]


@dataclass(frozen=True)
class Declared:
    """Wraps a callable that takes no attributes, to hold its declaration."""

    function: Any
    value: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "__qualname__", name_of(self.function))  # its name in plans and errors
        object.__setattr__(self, DECLARED, self.value)

    def __call__(self, *values: Any) -> Any:
        return self.function(*values)


def judge(operation: Any, trusted: Iterable[str] = ()) -> Verdict:
    """Return the verdict by the declaration, else by the source of the operation. Executes no user code.

    ``trusted``: modules, classes and functions to take as deterministic; "*" takes everything unseen as
    deterministic.
    """
    reader = find(READER)
    return _unread(operation, trusted) if reader is None else reader.judge(operation, trusted)


def follows_hash_seed(operation: Any, trusted: Iterable[str] = ()) -> str:
    """Return what in the operation depends on Python's hash seed: a set's order, or `hash`; "" if nothing is known."""
    reader = find(READER)
    return "" if reader is None else reader.follows_hash_seed(operation, trusted)


def _unread(operation: Any, trusted: Iterable[str]) -> Verdict:
    """Return the verdict without the source: what is neither declared nor ours is unchecked."""
    declaration = own_declaration(operation)
    if declaration is None and nearest(type(operation)) is False:
        declaration = False
    if declaration is False:
        return Verdict(CHANGING, "declared non-deterministic")
    declared = declaration or vars(type(operation)).get(DECLARED)  # not a base class: a subclass may add anything
    if declared or "*" in trusted or _is_ours(operation):
        return Verdict(DETERMINISTIC)
    return Verdict(UNCHECKED, f"is unchecked: the extra {READER!r} is missing")


def _is_ours(value: Any) -> bool:
    """Return whether the value is plain, or an object of ours that holds only such values."""
    if isinstance(value, list | tuple):
        return all(map(_is_ours, value))
    ours = type(value).__module__.partition(".")[0] in _OURS
    return type(value) in _PLAIN or (ours and all(map(_is_ours, attributes_of(value).values())))


def is_trusted(conf: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the names that this configuration declares deterministic."""
    names = (conf or {}).get(Config.TOPOLOGY_DETERMINISM_TRUST) or ()
    check({Config.TOPOLOGY_DETERMINISM_TRUST: names})
    return (names,) if isinstance(names, str) else tuple(names)


class Verdicts:
    """The verdicts of one topology. Reads every operation once."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self.trusted = tuple(trusted)
        self._verdicts: dict[int, tuple[Any, Verdict]] = {}

    def __call__(self, operation: Any) -> Verdict:
        if id(operation) not in self._verdicts:
            self._verdicts[id(operation)] = operation, judge(operation, self.trusted)
        return self._verdicts[id(operation)][1]


def own_declaration(thing: Any) -> bool | None:
    """Return the declaration of the object itself."""
    return attributes_of(thing).get(DECLARED)


def nearest(kind: type) -> bool | None:
    """Return the declaration of the nearest class; it does not cover methods that a subclass adds."""
    return next((vars(base)[DECLARED] for base in kind.__mro__ if DECLARED in vars(base)), None)


def attributes_of(thing: Any) -> Mapping[str, Any]:
    """Return the object's own attributes."""
    return getattr(thing, "__dict__", {})  # many classes of libraries have none


def is_declared(operation: Any) -> bool:
    """Return whether the object or its class is declared deterministic or not."""
    declaration = own_declaration(operation)
    return bool(declaration if declaration is not None else nearest(type(operation)))


def _declare(operation: Any, value: bool) -> Any:
    if not (callable(operation) or isinstance(operation, Prepared | CombinerAggregator | ReducerAggregator)):
        raise DefinitionError(
            f"{operation!r} is not an operation; declare a class, a function or an instance of an operation"
        )
    try:
        if isinstance(operation, type):
            setattr(operation, DECLARED, value)
        else:
            object.__setattr__(operation, DECLARED, value)
    except (AttributeError, TypeError):
        return Declared(operation, value)
    return operation
