"""Whether an operation gives the same results for the same tuples: as declared, else as its source shows."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import DefinitionError
from .base import CombinerAggregator, Operation, ReducerAggregator
from .reading import calls, source_of_chance

DECLARED = "__trident_deterministic__"
_OURS = ("trident_py", "states")
_NO_RESULT = ("cleanup", "__repr__", "__str__", "__del__")

T = TypeVar("T")


def nondeterministic(operation: T) -> T:
    """Declares that an operation may give other results when it runs again on the same tuples.

    For a class, a plain callable or one object: ``@nondeterministic class AskService(Function)``. It reads a
    clock, draws random numbers, asks a service. ``topology.guarantees()`` then says what that means for the
    states behind it. Called on the driver when the topology is defined; nothing changes at run time.
    """
    return _declare(operation, False)


def deterministic(operation: T) -> T:
    """Declares that an operation gives the same results for the same tuples, whatever its source looks like.

    For calls that do not reach the results, such as a clock read for a log line, or a query of a table that
    nobody changes. The declaration covers the class and what it inherits, not what a subclass adds.
    """
    return _declare(operation, True)


@dataclass(frozen=True)
class Verdict:
    """``why`` names the call, its place, or the declaration. ``seen`` is False where there was no source."""

    deterministic: bool
    why: str = ""
    seen: bool = True


@dataclass(frozen=True)
class Declared:
    """A callable that takes no attributes, with its declaration."""

    function: Any
    value: bool

    def __post_init__(self) -> None:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        object.__setattr__(self, "__qualname__", name)  # how plans and errors call it

    def __call__(self, *values: Any) -> Any:
        return self.function(*values)


def judge(operation: Any) -> Verdict:
    """The declaration, else what the source of the operation shows; without source taken as deterministic."""
    return _judge(operation, set())


def _declare(operation: Any, value: bool) -> Any:
    if not (callable(operation) or isinstance(operation, Operation | CombinerAggregator | ReducerAggregator)):
        raise DefinitionError(f"{operation!r} is no operation; declare a class, a function or an operation's object")
    try:
        if isinstance(operation, type):
            setattr(operation, DECLARED, value)
        else:
            object.__setattr__(operation, DECLARED, value)
    except (AttributeError, TypeError):
        return Declared(operation, value)
    return operation


_FINE = Verdict(True)
_BY_DECLARATION = Verdict(False, "declared non-deterministic")


def _judge(thing: Any, seen: set[int]) -> Verdict:
    if id(thing) in seen:
        return _FINE
    seen.add(id(thing))
    declared = thing.value if isinstance(thing, Declared) else _own(thing).get(DECLARED)
    if declared is not None:
        return _FINE if declared else _BY_DECLARATION
    if isinstance(thing, functools.partial):
        return _worst(_judge(part, seen) for part in (thing.func, *thing.args, *thing.keywords.values()) if _ours(part))
    if isinstance(thing, types.MethodType) and source_of_chance(thing) is None:
        return _worst([_judge(thing.__func__, seen), _judge(thing.__self__, seen)])
    if isinstance(thing, types.FunctionType):
        return _function(thing, seen)
    chance = source_of_chance(thing)
    if chance is not None:
        return Verdict(False, f"is {chance}")
    return _object(thing, seen)


def _own(thing: Any) -> dict[str, Any]:
    return getattr(thing, "__dict__", {})  # of this very class or object, nothing inherited


def _ours(value: Any) -> bool:
    """Whether a part of an operation is code that the operation may call."""
    kinds = types.FunctionType | types.MethodType | functools.partial | Declared
    return isinstance(value, kinds | Operation | CombinerAggregator | ReducerAggregator)


def _function(function: types.FunctionType, seen: set[int]) -> Verdict:
    if function.__module__ and function.__module__.partition(".")[0] in _OURS:
        return _FINE
    if (chance := source_of_chance(function)) is not None:
        return Verdict(False, f"is {chance}")
    called = calls(function)
    if called is None:
        return Verdict(True, f"no source of {function.__qualname__} is found", seen=False)
    verdicts = [Verdict(False, f"calls {chance} ({place})") for _, chance, place in called if chance]
    helpers = [thing for thing, chance, _ in called if chance is None and _helper(thing, function)]
    return _worst([*verdicts, *(_judge(helper, seen) for helper in helpers)])


def _helper(thing: Any, caller: types.FunctionType) -> bool:
    """A function of the caller's own module is read too; libraries are not."""
    return isinstance(thing, types.FunctionType | Declared) and (
        isinstance(thing, Declared) or thing.__module__ == caller.__module__ or DECLARED in _own(thing)
    )


def _object(thing: Any, seen: set[int]) -> Verdict:
    kind = thing if isinstance(thing, type) else type(thing)
    if _nearest(kind) is False:
        return _BY_DECLARATION
    verdicts = [_judge(method, seen) for method in _methods(kind)]
    verdicts += [_judge(part, seen) for part in _own(thing).values() if kind is not thing and _ours(part)]
    return _worst(verdicts)


def _nearest(kind: type) -> bool | None:
    return next((vars(each)[DECLARED] for each in kind.__mro__ if DECLARED in vars(each)), None)


def _methods(kind: type) -> Iterator[types.FunctionType]:
    """The methods that users wrote, down to the first class that is declared deterministic."""
    names: set[str] = set(_NO_RESULT)
    for each in kind.__mro__:
        if DECLARED in vars(each):
            return
        root = each.__module__.partition(".")[0]
        if root in sys.stdlib_module_names and root != "__main__":
            continue
        for name, value in vars(each).items():
            value = getattr(value, "__func__", getattr(value, "fget", value))
            if isinstance(value, types.FunctionType) and name not in names and not _generated(value):
                names.add(name)
                yield value


def _generated(function: types.FunctionType) -> bool:
    """What dataclasses and the like write: `__init__` and its kind, with no file."""
    return function.__name__.startswith("__") and function.__code__.co_filename.startswith("<")


def _worst(verdicts: Any) -> Verdict:
    found = list(verdicts)
    return next((v for v in found if not v.deterministic), next((v for v in found if not v.seen), _FINE))
