"""The older name of `states.sql.SequenceState`."""

from .sql.rows.sequence.state import SequenceState

__all__ = ["SequenceState"]
