"""Pieces of Python: an expression's text with its type in Java, and parentheses where they are needed."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from .java_types import Type

ATOM = 20
_RANKS: dict[type, int] = {
    ast.Lambda: 0, ast.NamedExpr: 0, ast.Starred: 0, ast.Yield: 0, ast.IfExp: 1, ast.Or: 2, ast.And: 3, ast.Not: 4,
    ast.Compare: 5, ast.BitOr: 6, ast.BitXor: 7, ast.BitAnd: 8, ast.LShift: 9, ast.RShift: 9, ast.Add: 10,
    ast.Sub: 10, ast.Mult: 11, ast.Div: 11, ast.FloorDiv: 11, ast.Mod: 11, ast.USub: 12, ast.UAdd: 12,
    ast.Invert: 12, ast.Pow: 13,
}  # fmt: skip
RANKS = {
    "or": 2, "and": 3, "not": 4, "==": 5, "!=": 5, "<": 5, ">": 5, "<=": 5, ">=": 5, "is": 5, "is not": 5, "in": 5,
    "|": 6, "^": 7, "&": 8, "<<": 9, ">>": 9, "+": 10, "-": 10, "*": 11, "/": 11, "//": 11, "%": 11,
}  # fmt: skip


class Code(NamedTuple):
    """An expression. ``sure``: it is never None. ``wide``: a whole number that may be near the end of its range.
    ``unbounded``: the sum or product that the text wraps at the range of its type; a sum around it wraps once."""

    text: str
    type: Type
    sure: bool = False
    wide: bool = False
    unbounded: str = ""


@functools.lru_cache(10_000)
def rank(text: str) -> int:
    try:
        node = ast.parse(text.replace(BREAK, ""), mode="eval").body
    except SyntaxError:
        return 0
    kind = getattr(node, "op", node) if isinstance(node, ast.BinOp | ast.UnaryOp | ast.BoolOp) else node
    return _RANKS.get(type(kind), ATOM)


BREAK = "\x01"
"""Stands in a text before a dot at which a long chain of calls may be broken."""


def wrap(text: str, least: int = ATOM) -> str:
    """Put the text in parentheses if it binds less than ``least``."""
    number = least == ATOM and re.fullmatch(r"-?\d+", text)
    return f"({text})" if number or rank(text) < least else text


def binary(left: str, operator: str, right: str) -> str:
    level = RANKS[operator]
    comparing = level == 5
    return f"{wrap(left, level + comparing)} {operator} {wrap(right, level + (operator not in ('and', 'or')))}"


_HOLE = re.compile(r"\$(this|\*|\d)")


def fill(template: str, this: str, arguments: Sequence[str]) -> str:
    """Fill a template of the library: ``$this``, ``$0``, ``$1`` and ``$*`` for all arguments."""

    def value(match: re.Match[str]) -> str:
        hole = match[1]
        if hole == "*":
            return ", ".join(arguments)
        found = this if hole == "this" else arguments[int(hole)]
        before, after = template[: match.start()], template[match.end() :]
        enclosed = (before == "" or before.endswith(("(", ", ", "[", "= "))) and after.startswith((")", ", ", "]"))
        return found if enclosed or not (before or after) else wrap(found)

    return _HOLE.sub(value, template)
