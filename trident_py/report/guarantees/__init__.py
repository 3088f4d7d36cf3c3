"""The guarantees of a topology, reported before it starts: spout kind x functions x state kind, with the reason."""

from .matrix import AT_LEAST, EXACTLY, IN_EFFECT, NONE, STATE_KINDS, WRONG, Cell
from .matrix import cell as _cell
from .replays import replay_of
from .table import GUARANTEE, Guarantee, Guarantees, announce, find_declared_cell, find_weakened, guarantees, require
