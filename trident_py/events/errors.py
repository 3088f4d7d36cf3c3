"""The error of the events gateway."""

from __future__ import annotations

from ..errors import TridentError


class EventError(TridentError):
    """An event that cannot be taken. Says what is wrong, where, and what to send instead."""
