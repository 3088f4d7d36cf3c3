"""What a driver knows, as a number: two drivers that know the same do the same, whatever brought them there.

It is taken from the objects that the driver holds between two batches, and when the tasks of an attempt begin. Left out
is what is fixed (programs, functions), what only measures (progress, floats: times), and what the next attempt forgets
before it looks: what a partition has read or collected. A driver's own places are in the world's digest.
"""

from __future__ import annotations

import threading
import types
from collections import deque
from functools import partial
from typing import Any

from trident_py.engine.program import Program
from trident_py.model.plan import Plan
from trident_py.report.progress import RunningTopology

from .world import Driver, Place, World

PLAIN = (int, str, bytes, type, type(None))
FIXED = (float, Plan, Program, RunningTopology, World, Driver, Place, types.ModuleType, types.FunctionType,
         types.BuiltinFunctionType, type(threading.Lock()), type(threading.RLock()), threading.Event)  # fmt: skip
FORGOTTEN = {"read", "rows", "puts", "content", "_version", "_lock"}


_KNOWN: dict[Any, int] = {}


def digest(history: Any, *held: Any) -> int:
    """``history``: what leads to the same knowledge each time, so it is looked at once."""
    if history not in _KNOWN:
        _KNOWN[history] = hash(_look(held, {}))
    return _KNOWN[history]


def _look(value: Any, met: dict[int, tuple[int, Any]]) -> Any:
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, FIXED):
        return type(value).__name__
    if id(value) in met:
        return met[id(value)][0]
    met[id(value)] = len(met), value
    if isinstance(value, (list, tuple, deque)):
        return type(value).__name__, *[_look(each, met) for each in value]
    if isinstance(value, (set, frozenset)):
        return "set", frozenset(_look(each, met) for each in value)
    if isinstance(value, (dict, types.MappingProxyType)):
        return "dict", *[(_look(key, met), _look(each, met)) for key, each in value.items()]
    if isinstance(value, partial):
        return "partial", _look(value.args, met), _look(value.keywords, met)
    if isinstance(value, types.MethodType):
        return value.__name__, _look(value.__self__, met)
    return type(value).__qualname__, *_look_into(value, met)


def _look_into(value: Any, met: dict[int, tuple[int, Any]]) -> list[Any]:
    slots = [name for each in type(value).__mro__ for name in vars(each).get("__slots__", ()) if hasattr(value, name)]
    held = {name: getattr(value, name) for name in slots} | (vars(value) if hasattr(value, "__dict__") else {})
    return [(name, _look(each, met)) for name, each in held.items() if name not in FORGOTTEN]
