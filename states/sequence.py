"""`SequenceState` under its first name; it lives in `states.sql`."""

from .sql.rows.sequence.state import SequenceState

__all__ = ["SequenceState"]
