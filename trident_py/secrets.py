"""What is a secret: one list of names for the whole project."""

from __future__ import annotations

import re

HIDDEN = "***"
_NAMES = re.compile("pass|pwd|secret|token|cred|api_?key|private_?key", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether a setting, a parameter or a field of this name holds what nobody may read in an error or a log."""
    return _NAMES.search(name) is not None
