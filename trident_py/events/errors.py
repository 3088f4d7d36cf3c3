"""The error of the events gateway."""

from __future__ import annotations

from ..errors import TridentError


class EventError(TridentError):
    """An event that cannot be taken: what is wrong with it, where, and what to send instead."""
