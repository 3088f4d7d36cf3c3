"""Moves the clock of a process that executes only second runs."""

from __future__ import annotations

import ctypes
import datetime
import gc
import time
from collections.abc import Callable
from typing import Any

AHEAD = 400 * 86_400 + 5 * 3_600 + 17 * 60 + 43  # another year, month, weekday, hour, minute and second
_OF_NOW = ("localtime", "gmtime", "ctime")
_SECONDS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")


def move() -> None:
    """Move every clock of Python in this process ahead, whatever name it is imported under."""
    clocks = vars(time)
    for name in _SECONDS:
        clocks[name] = _later(clocks[name], AHEAD)
        clocks[f"{name}_ns"] = _later(clocks[f"{name}_ns"], AHEAD * 1_000_000_000)
    for name in _OF_NOW:
        clocks[name] = _of_now(clocks[name])
    asctime, strftime = time.asctime, time.strftime
    time.asctime = lambda *moment: asctime(*(moment or (time.localtime(),)))
    time.strftime = lambda form, *moment: strftime(form, *(moment or (time.localtime(),)))
    _replace(datetime.datetime, now=_now, utcnow=_utcnow, today=_today)
    _replace(datetime.date, today=_today)


def _later(read: Callable[[], Any], ahead: int) -> Callable[[], Any]:
    return lambda: read() + ahead


def _of_now(shown: Callable[..., Any]) -> Callable[..., Any]:
    return lambda seconds=None: shown(time.time() if seconds is None else seconds)


def _now(cls: Any, tz: Any = None) -> Any:
    return cls.fromtimestamp(time.time(), tz)


def _utcnow(cls: Any) -> Any:
    return cls.fromtimestamp(time.time(), datetime.UTC).replace(tzinfo=None)


def _today(cls: Any) -> Any:
    return cls.fromtimestamp(time.time())


def _replace(kind: type, **methods: Callable[..., Any]) -> None:
    """Replace methods of a class written in C. The class stays the same object, so its instances stay valid."""
    attributes = gc.get_referents(vars(kind))[0]  # the dict itself; vars() gives a view that cannot be written
    for name, method in methods.items():
        attributes[name] = classmethod(method)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
