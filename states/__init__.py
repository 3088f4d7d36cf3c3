"""States in external stores. A state decides where and how it writes; `trident_py` decides when and under which txid.

`states.sql` keeps maps and rows in SQL tables, `states.kafka` in topics. `states.load` creates the states that a YAML
file names. Third-party packages add types through the entry point group ``trident_py.states``.
"""

from typing import TYPE_CHECKING

from trident_py.entry_points import answer

from .diagnostics import Checkable, Finding
from .rows import InsertIgnoreUpdater, RowUpdater

if TYPE_CHECKING:
    from .loading import load, schema

__all__ = ["Checkable", "Finding", "InsertIgnoreUpdater", "RowUpdater", "load", "schema"]

if not TYPE_CHECKING:
    # Loaded on first use: a worker that only writes needs no pydantic.
    __getattr__ = answer(__name__, {"load": "loading", "schema": "loading"})
