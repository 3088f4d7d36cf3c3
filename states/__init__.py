"""States with a store of their own: where, and how. `trident_py` decides when, and under which txid.

`states.sql` keeps maps and rows in SQL tables, `states.load` makes the states that a YAML file names. A third
party adds a type through the entry point group ``trident_py.states``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .findings import Checkable, Finding
from .rows import InsertIgnoreUpdater, RowUpdater

if TYPE_CHECKING:
    from .loading import load, schema

__all__ = ["Checkable", "Finding", "InsertIgnoreUpdater", "RowUpdater", "load", "schema"]


def __getattr__(name: str) -> Any:
    """The file's reader is loaded when it is asked for: a worker that only writes needs no pydantic."""
    if name in ("load", "schema"):
        return getattr(import_module(".loading", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
