"""`SequenceState` under its first name; it lives in `states.sql`."""

from .sql.sequence import SequenceState

__all__ = ["SequenceState"]
