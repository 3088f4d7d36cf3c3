"""Small pieces of Storm: objects that were lambdas, `ObjectReader`, and the URL of a Redis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from ....state import StateFactory, ValueUpdater
from .objects import to_text

__all__ = ["StateFactoryOf", "ValueUpdaterOf", "read_boolean", "read_double", "read_int", "read_string", "redis_url"]


class StateFactoryOf(StateFactory):
    """A StateFactory that was a lambda."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def makeState(self, conf: Any, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        return self._make(conf, metrics, partitionIndex, numPartitions)


class ValueUpdaterOf(ValueUpdater):
    """A ValueUpdater that was a lambda."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        self._change = change

    def update(self, stored: Any) -> Any:
        return self._change(stored)


def read_int(value: Any, default: int | None = None) -> int:
    """Return what ``ObjectReader.getInt`` does."""
    if value is None and default is not None:
        return default
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        return int(value)
    raise ValueError(f"Don't know how to convert {value} to int")


def read_double(value: Any, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise ValueError(f"Don't know how to convert ({value}) to double")


def read_string(value: Any, default: str | None = None) -> str | None:
    return default if value is None else to_text(value)


def read_boolean(value: Any, default: bool) -> bool:
    if value is None:
        return default
    if isinstance(value, bool):
        return value
    raise ValueError(f"Don't know how to convert {value} to boolean")


def redis_url(host: str = "127.0.0.1", port: int = 6379, password: str | None = None, database: int = 0) -> str:
    """Return what a JedisPoolConfig says, as the URL that the states of `states.redis` take."""
    user = f":{quote(password, safe='')}@" if password else ""
    return f"redis://{user}{host}:{port}/{database}"
