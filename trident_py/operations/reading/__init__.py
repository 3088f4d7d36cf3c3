"""Reads the source of users' operations for what may give another result each time.

Names are resolved through globals, closures, defaults, attributes and imports, so aliases do not hide a call, and
helpers are read with what they are handed. Nothing of the user's is executed. It is a list of what is allowed: what
does not lead to something known is a finding too.
"""

from .findings import CHANGING, UNSEEN, CodeFinding
from .reader import DECLARED, nearest, read

__all__ = ["CHANGING", "DECLARED", "UNSEEN", "CodeFinding", "nearest", "read"]
