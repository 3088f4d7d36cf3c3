"""The findings from reading an operation."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ...operations.determinism import CHANGING, UNSEEN

LONGEST = 60


@dataclass(frozen=True)
class CodePlace:
    """A place in the user's code: the file, the line and the expression."""

    file: str
    node: ast.AST | None = None

    @property
    def text(self) -> str:
        """The source of the expression, shortened."""
        text = " ".join(ast.unparse(self.node).split()) if self.node is not None else ""
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."

    def __str__(self) -> str:
        line = getattr(self.node, "lineno", None)  # a node made here has none
        return f"{self.file}:{line}" if line is not None else self.file


@dataclass(frozen=True)
class CodeFinding:
    """A reason why a result may differ: a known cause (CHANGING), or code that was not understood (UNSEEN)."""

    kind: str
    what: str
    name: str = ""  # the name that is called or read
    seeded: bool = False  # the same in all processes with one PYTHONHASHSEED


def calls(name: str, place: CodePlace | None) -> CodeFinding:
    return CodeFinding(CHANGING, f"calls {name} ({place})" if place else f"is {name}", name, name == "hash")


def reads(name: str, place: CodePlace | None) -> CodeFinding:
    return CodeFinding(CHANGING, f"reads {name} ({place})", name)


def keeps(place: CodePlace, name: str = "") -> CodeFinding:
    return CodeFinding(CHANGING, f"keeps {name or place.text} from call to call ({place})")


def differs(name: str, place: CodePlace) -> CodeFinding:
    return CodeFinding(CHANGING, f"reads {name}, which differs from the value that its module assigns ({place})")


def set_order(place: CodePlace) -> CodeFinding:
    return CodeFinding(CHANGING, f"depends on the order of a set: {place.text} ({place})", seeded=True)


def unseen(what: str, place: CodePlace | None) -> CodeFinding:
    return CodeFinding(UNSEEN, f"{what} ({place})" if place else what)
