"""Names: which of Java's stay, and which get an underscore."""

from __future__ import annotations

import builtins
import functools
import importlib
import keyword

STORM_MODULES = (
    "trident_py", "trident_py.operations", "trident_py.operations.builtin", "trident_py.testing",
    "trident_py.state", "trident_py.spouts", "trident_py.windowing", "trident_py.drpc", "trident_py.metrics",
    "states.redis", "trident_py.extras.moving.connectors.hdfs", "trident_py.extras.moving.connectors.jdbc",
    "trident_py.extras.moving.connectors.kafka", "trident_py.extras.moving.connectors.redis",
)  # fmt: skip
RUNTIME = "trident_py.extras.moving.java"
STANDARD = (
    "abc",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "functools",
    "json",
    "logging",
    "math",
    "os",
    "re",
    "sys",
    "threading",
    "time",
    "yaml",
)
NESTED = {"BaseWindowedBolt.Duration": "Duration"}
"""Storm's nested classes that stand for themselves here."""
FREE = {"tuple", "input", "id", "hash", "type", "all", "any", "vars", "format", "filter", "map", "dir", "object"}
"""Builtins that no translation calls: as in the guide, a parameter ``tuple`` stays ``tuple``."""


@functools.cache
def runtime_names() -> frozenset[str]:
    return frozenset(importlib.import_module(RUNTIME).__all__)


@functools.cache
def storm_names() -> dict[str, str]:
    """Return the public names of trident_py that Storm has, with the module of each."""
    found: dict[str, str] = {}
    for module in STORM_MODULES:
        for name in importlib.import_module(module).__all__:
            found.setdefault(name, module)
    return {**found, "KafkaSpout": "trident_py.kafka"}


@functools.cache
def _reserve() -> frozenset[str]:
    return frozenset(set(dir(builtins)) - FREE | set(STANDARD) | runtime_names() | {"self", "cls"})


def python_name(name: str, member: bool = False) -> str:
    """Return the Python name of a Java name. ``member``: it stands behind a dot, and hides nothing."""
    taken = keyword.iskeyword(name) or (not member and name in _reserve())
    return f"{name}_" if taken else name.replace("$", "_")
