"""The syntax trees of sources. Each file is parsed once in a process."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All of a file, as `ast.walk` finds them."""
    return tuple(ast.walk(tree(path)))
