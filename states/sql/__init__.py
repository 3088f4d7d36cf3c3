"""Trident states in SQL tables. SQLite needs no server: one durable file, safe to use from several processes."""

from typing import TYPE_CHECKING

from trident_py.entry_points import answer

from ..rows import InsertIgnoreUpdater, RowUpdater
from .maps.state import SqlMapState
from .query import SqlQuery
from .rows.append import AppendState
from .rows.batch import BatchState
from .rows.insert_ignore import InsertIgnoreState
from .rows.sequence.state import SequenceState
from .windows import SqlWindowsStoreFactory

__all__ = [
    "AppendState",
    "BatchState",
    "InsertIgnoreState",
    "InsertIgnoreUpdater",
    "RowUpdater",
    "SequenceState",
    "SqlMapState",
    "SqlQuery",
    "SqlWindowsStoreFactory",
]

if not TYPE_CHECKING:
    __getattr__ = answer(__name__)
