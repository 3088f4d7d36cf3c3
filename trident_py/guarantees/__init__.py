"""What a topology guarantees, told before it starts: spout kind x functions x state kind, with the reason."""

from .matrix import AT_LEAST, EXACTLY, IN_EFFECT, NONE, STATE_KINDS, WRONG, Cell
from .matrix import cell as _cell
from .sources import replay_of
from .table import Guarantee, Guarantees, announce, guarantees, require

__all__ = [
    "AT_LEAST",
    "EXACTLY",
    "IN_EFFECT",
    "NONE",
    "STATE_KINDS",
    "WRONG",
    "Cell",
    "Guarantee",
    "Guarantees",
    "_cell",
    "announce",
    "guarantees",
    "replay_of",
    "require",
]
