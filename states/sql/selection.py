"""The text of a `SqlQuery`: its parameters are found once, and the questions of a batch become one statement.

The text is the program's, never a tuple's: every value of a tuple is bound by the database driver.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from trident_py.errors import DefinitionError
from trident_py.tuples import Fields

# What may hide a colon, a question mark or a semicolon; then what they are outside of it.
_TOKENS = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*` | --[^\n]* | /\*.*?\*/ | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$
    | :: | :(?P<name>[A-Za-z_]\w*) | (?P<mark>\?) | (?P<end>;)""",
    re.VERBOSE | re.DOTALL,
)
_CODE = re.compile(r"/\*M?!")
_READS = re.compile(r"\s*(select|with|values|\()", re.IGNORECASE)


@dataclass(frozen=True)
class Select:
    """A query in pieces: ``names`` are the fields bound between the pieces of ``parts``, in their order."""

    parts: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, text: str, fields: Fields) -> Select:
        """Parse ``text``, which has ``:name`` for an input field, or one ``?`` for each in their order. Raises
        DefinitionError."""
        text = _check_select(text)
        found = list(_TOKENS.finditer(text))
        if any(match["end"] for match in found):
            raise DefinitionError(f"SqlQuery takes one SELECT, and {text[:60]!r} has several statements")
        named = [match for match in found if match["name"]]
        places = named or [match for match in found if match["mark"]]
        names = tuple(match["name"] for match in named) if named else tuple(fields)[: len(places)]
        _check_names(names, len(places), fields)
        edges = [0, *chain.from_iterable(match.span() for match in places), len(text)]
        return cls(tuple(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)), names)

    def together(self, many: int) -> list[str]:
        """Return the pieces of one statement that asks ``many`` times; the first column of a row is the number of its
        question."""
        parts = [""]
        for number in range(many):
            before = "\nUNION ALL\n" if number else ""
            head, *rest = self.parts
            parts[-1] += f"{before}SELECT {number} AS trident_question, q.* FROM (\n{head}"
            parts += rest
            parts[-1] += "\n) AS q"  # a comment may end the query: a new line first
        return parts


def _check_select(text: str) -> str:
    if not isinstance(text, str) or not _READS.match(text):
        raise DefinitionError(f"SqlQuery takes a query that begins with SELECT or WITH, got {str(text)[:60]!r}")
    if _CODE.search(text):
        raise DefinitionError("SqlQuery: /*! is no comment to MySQL, which may find a second statement in it")
    if "\\'" in text:
        raise DefinitionError("SqlQuery: write '' for a quote within a text, since \\' is not SQL")
    return text.strip().removesuffix(";")


def _check_names(names: Sequence[str], places: int, fields: Fields) -> None:
    for name in names:
        if name not in fields:
            raise DefinitionError(f"SqlQuery: no input field {name!r} for :{name}; the input fields are {fields}")
    unused = [name for name in fields if name not in names]
    if unused or places != len(names):
        raise DefinitionError(
            f"SqlQuery: {places} parameters for the input fields {fields}: write :name for each of them, or one ? for "
            "each in their order"
        )
