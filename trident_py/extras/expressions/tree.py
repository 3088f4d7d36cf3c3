"""An expression as data: literals, fields and calls. It is picklable, and needs no parser where it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_INFIX = frozenset(("+", "-", "*", "/", "div", "%", "||", "=", "<=>", "<", "<=", ">", ">=", "and", "or"))
_POSTFIX = frozenset(("is null", "is true", "is false"))


@dataclass(frozen=True)
class Constant:
    """A literal. ``text``: its digits, its text, "true" or ""; so 0.0 and -0.0 differ. ``kind``: a type of `types`."""

    text: str
    kind: str

    def __str__(self) -> str:
        if self.kind in ("string", "date"):
            quoted = "'" + self.text.replace("\\", "\\\\").replace("'", "\\'") + "'"
            return quoted if self.kind == "string" else f"DATE {quoted}"
        return "NULL" if self.kind == "void" else self.text


@dataclass(frozen=True)
class SqlField:
    """An input field."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class SqlCall:
    """An operator or a function. ``detail``: the type of a cast."""

    name: str
    args: tuple[Tree, ...]
    detail: str = ""

    def __str__(self) -> str:
        shown = [f"({arg})" if isinstance(arg, SqlCall) and arg.name in _INFIX else str(arg) for arg in self.args]
        if self.name in _INFIX and len(shown) == 2:
            return f"{shown[0]} {self.name.upper()} {shown[1]}"
        if self.name in _POSTFIX:
            return f"{shown[0]} {self.name.upper()}"
        if self.name == "cast":
            return f"CAST({self.args[0]} AS {self.detail.upper()})"
        if self.name == "case":
            return _case(self.args)
        if self.name == "in":
            return f"{shown[0]} IN ({', '.join(shown[1:])})"
        if self.name == "like":
            return f"{shown[0]} LIKE {shown[1]}"
        if self.name == "not":
            return f"NOT {shown[0]}"
        return f"{self.name}({', '.join(map(str, self.args))})"


Tree = Constant | SqlField | SqlCall


def _case(args: tuple[Tree, ...]) -> str:
    """Format CASE. ``args``: condition, value, condition, value ..., and the value of ELSE."""
    pairs = zip(args[:-1:2], args[1::2], strict=True)
    return " ".join(["CASE", *(f"WHEN {when} THEN {then}" for when, then in pairs), f"ELSE {args[-1]} END"])


def columns_of(tree: Tree) -> Iterator[str]:
    """Return the names of the fields that it reads, with repetitions."""
    if isinstance(tree, SqlField):
        yield tree.name
    elif isinstance(tree, SqlCall):
        for arg in tree.args:
            yield from columns_of(arg)
