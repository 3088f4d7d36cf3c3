"""Reads the source of users' operations for code that may give another result each time.

Resolves names through globals, closures, defaults, attributes and imports, so that aliases do not hide a call, and
reads helpers with their actual arguments. Executes no user code. Works as an allowlist: code that does not lead to a
known name is a finding too.
"""

from .findings import CHANGING, UNSEEN, CodeFinding
from .reader import DECLARED, nearest, own_declaration, read

__all__ = ["CHANGING", "DECLARED", "UNSEEN", "CodeFinding", "nearest", "own_declaration", "read"]
