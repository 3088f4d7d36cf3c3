"""The test kit: a topology of the user's own, disturbed at every point that it reaches (docs/testing.md)."""

from ...model.fault_points import STEPS, Watcher
from .campaign import everywhere
from .disturbances import FAULTS
from .kill_point import LINE, FaultCase, Point
from .report import FaultFound, FaultReport
from .scenario import Story
from .trials import Undisturbed

__all__ = [
    "FAULTS",
    "LINE",
    "STEPS",
    "FaultCase",
    "FaultFound",
    "FaultReport",
    "Point",
    "Story",
    "Undisturbed",
    "Watcher",
    "everywhere",
]
