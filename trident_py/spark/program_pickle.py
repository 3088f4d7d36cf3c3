"""Pickles programs for the workers. If one cannot be sent, finds the function and the variable that prevent it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import cloudpickle
from pyspark.sql import SparkSession

from ..engine.program import Program
from ..errors import DefinitionError
from ..model.plan import describe
from .pickle_by_value import by_value

_DEPTH = 4


def pickle_program(program: Program, spark: SparkSession) -> bytes:
    """Return the pickled program. Called on the driver before a run starts. Executors on other machines get the user's
    own modules inside it.

    Raises DefinitionError, naming the operation and the variable, if the program cannot be pickled.
    """
    with by_value(spark):
        try:
            return cloudpickle.dumps(program)
        except Exception as error:
            raise DefinitionError(_reason(program, error)) from error


def _reason(program: Program, error: Exception) -> str:
    for node in program.lowered.plan.nodes:
        if not _is_picklable(node):
            path, culprit = _culprit(node, "", _DEPTH)
            return (
                f"{describe(node)} cannot be sent to Spark's workers: {path or 'it'} holds a {type(culprit).__name__} "
                f"({error}). Create it where it is used: in prepare() or open() of an operation, makeState of a state"
            )
    return f"the topology cannot be sent to Spark's workers: {error}"


def _is_picklable(thing: Any) -> bool:
    try:
        cloudpickle.dumps(thing)
    except Exception:
        return False
    return True


def _culprit(thing: Any, path: str, depth: int) -> tuple[str, Any]:
    """Return the path to the innermost object that cannot be pickled, and the object."""
    for name, part in _parts(thing) if depth else ():
        if not _is_picklable(part):
            return _culprit(part, f"{path}.{name}" if path else name, depth - 1)
    return path, thing


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """Return the values that an object of any class holds, by name."""
    if inspect.ismethod(thing):
        yield "self", thing.__self__
    if inspect.isfunction(thing):
        variables = inspect.getclosurevars(thing)
        yield from {**variables.nonlocals, **variables.globals}.items()
    elif isinstance(thing, dict):
        yield from ((str(key), value) for key, value in thing.items())
    elif isinstance(thing, list | tuple):
        yield from ((str(i), value) for i, value in enumerate(thing))
    else:
        state = object.__getstate__(thing)  # None, the __dict__, or both the __dict__ and the __slots__
        for attributes in state if isinstance(state, tuple) else (state,):
            yield from (attributes or {}).items()
