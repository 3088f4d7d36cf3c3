"""The driver's clock, which tests set."""

from __future__ import annotations

import time


def now() -> float:
    """Return seconds since 1970."""
    return time.time()
