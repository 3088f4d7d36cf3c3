"""Pickles values that go to another process. A class that the other process cannot import goes with its definition.

Such classes are those of the user's main program, those of modules that executors on other machines do not have
(`trident_py.spark.pickle_by_value`), and those made in a function. All others go by name, as pickle does it.

A definition is loaded only by a process that has not got the class already: from the topology's program, from an
earlier value, or because it sent it. So a class stays one class, in the driver and in each worker.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from threading import RLock
from types import FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import cloudpickle
from cloudpickle import cloudpickle as internals

_PROTOCOL = 5
_MAIN = "__main__"
_WHOLE: dict[str, ModuleType] = {}
_DEFINITIONS: WeakKeyDictionary[type, bytes] = WeakKeyDictionary()
_LOCK = RLock()


def dumps(value: Any) -> bytes:
    """Pickle a value; `pickle.loads` reads it. Called in the driver and in workers. A memoryview becomes bytes.

    Raises what pickle raises if the value cannot be pickled.
    """
    try:
        block = pickle.dumps(value, protocol=_PROTOCOL)
    except Exception:
        return _with_definitions(value)
    return _with_definitions(value) if any(_pickle_name(name) in block for name in (_MAIN, *_WHOLE)) else block


def loads(block: bytes) -> Any:
    """Read what cloudpickle has written, in the driver: the classes that are here keep what they are.

    `pickle.loads` would set their attributes, and methods without a source, to those at the time of the writing.
    """
    return _Unpickler(io.BytesIO(block)).load()


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self._here = set(internals._DYNAMIC_CLASS_TRACKER_BY_CLASS)

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        return self._fill if found is internals._class_setstate else found

    def _fill(self, kind: type, state: Any) -> type:
        return kind if kind in self._here else internals._class_setstate(kind, state)


def remember(modules: Iterable[ModuleType]) -> None:
    """Pickle the classes of these modules with their definition from now on. Called in the driver when a run starts."""
    _WHOLE.update({module.__name__: module for module in modules})


@contextmanager
def by_value(modules: Iterable[ModuleType]) -> Iterator[None]:
    """Inside, cloudpickle takes these modules by value, as it takes the main program."""
    with _LOCK:
        before = cloudpickle.list_registry_pickle_by_value()
        taken = [module for module in modules if module.__name__ not in before]
        for module in taken:
            cloudpickle.register_pickle_by_value(module)
        try:
            yield
        finally:
            for module in taken:
                cloudpickle.unregister_pickle_by_value(module)


def _pickle_name(module: str) -> bytes:
    """Return what the pickle of a thing of this module contains: a text of this length, which pickle memoizes. The
    bytes around the name are rare in texts, so the search is fast."""
    name = module.encode()
    return pickle.SHORT_BINUNICODE + bytes([len(name) & 255]) + name + pickle.MEMOIZE


def _with_definitions(value: Any) -> bytes:
    sink = io.BytesIO()
    _Pickler(sink, protocol=_PROTOCOL).dump(value)
    return sink.getvalue()


class _Pickler(cloudpickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type):
            if _has_a_name(obj):
                return NotImplemented
            return _class, (internals._get_or_create_tracker_id(obj), _definition(obj))
        if not isinstance(obj, FunctionType):
            return NotImplemented
        if obj.__module__ in _WHOLE:
            return pickle.loads, (_pickle_definition(obj),)
        return super().reducer_override(obj)


def _has_a_name(kind: type) -> bool:
    """Return whether another process finds the class by its module and name."""
    if kind.__module__ == _MAIN or kind.__module__ in _WHOLE:
        return False
    try:
        return attrgetter(kind.__qualname__)(sys.modules.get(kind.__module__)) is kind
    except AttributeError:
        return False


def _definition(kind: type) -> bytes:
    """Return the definition of a class. Made once in a process: it holds what the class's methods use."""
    with _LOCK:
        if kind not in _DEFINITIONS:
            _DEFINITIONS[kind] = _pickle_definition(kind)
        return _DEFINITIONS[kind]


def _pickle_definition(thing: Any) -> bytes:
    with by_value(_WHOLE.values()):
        block: bytes = cloudpickle.dumps(thing, protocol=_PROTOCOL)
    return block


def _class(key: str, definition: bytes) -> Any:
    """Return the class with this key in this process. cloudpickle gives the key, and knows the classes that it has
    loaded."""
    known = internals._DYNAMIC_CLASS_TRACKER_BY_ID.get(key)
    return pickle.loads(definition) if known is None else known  # noqa: S301  from the driver, by Spark
