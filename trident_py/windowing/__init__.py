"""Windows: the last tuples of a stream, across batches. Source in Storm: org.apache.storm.trident.windowing."""

from typing import TYPE_CHECKING

from ..entry_points import answer
from .config import (
    CountWindow,
    Duration,
    DurationWindow,
    SlidingCountWindow,
    SlidingDurationWindow,
    TumblingCountWindow,
    TumblingDurationWindow,
    WindowConfig,
)
from .keyed import InMemoryWindowsStoreFactory, MakesWindows, MemoryWindow, WindowFactory, WindowsStoreFactory
from .state import WindowState
from .store import Backing, Block, Entry, InMemoryWindowsStore, WindowsStore
from .triggers import Head, Trigger

__all__ = [
    "Backing",
    "Block",
    "CountWindow",
    "Duration",
    "DurationWindow",
    "Entry",
    "Head",
    "InMemoryWindowsStore",
    "InMemoryWindowsStoreFactory",
    "MakesWindows",
    "MemoryWindow",
    "SlidingCountWindow",
    "SlidingDurationWindow",
    "Trigger",
    "TumblingCountWindow",
    "TumblingDurationWindow",
    "WindowConfig",
    "WindowFactory",
    "WindowState",
    "WindowsStore",
    "WindowsStoreFactory",
]

if not TYPE_CHECKING:
    __getattr__ = answer(__name__)
