"""Trident's states in SQL tables. SQLite needs no server: one durable file, safe from several processes."""

from ..rows import InsertIgnoreUpdater, RowUpdater
from .append import AppendState
from .batch import BatchState
from .insert import InsertIgnoreState
from .maps import SqlMapState
from .sequence import SequenceState

__all__ = [
    "AppendState",
    "BatchState",
    "InsertIgnoreState",
    "InsertIgnoreUpdater",
    "RowUpdater",
    "SequenceState",
    "SqlMapState",
]
