"""States in external stores. A state decides where and how it writes; `trident_py` decides when and under which txid.

`states.sql` keeps maps and rows in SQL tables, `states.kafka` in topics. `states.load` creates the states that a YAML
file names. Third-party packages add types through the entry point group ``trident_py.states``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trident_py.entry_points import absent

from .diagnostics import Checkable, Finding
from .rows import InsertIgnoreUpdater, RowUpdater

if TYPE_CHECKING:
    from .loading import load, schema

__all__ = ["Checkable", "Finding", "InsertIgnoreUpdater", "RowUpdater", "load", "schema"]


def __getattr__(name: str) -> Any:
    """Import ``load`` and ``schema`` on first use, since a worker that only writes needs no pydantic."""
    if name in ("load", "schema"):
        return getattr(import_module(".loading", __name__), name)  # one of the two names, as PEP 562 asks for
    raise absent(__name__, name)
