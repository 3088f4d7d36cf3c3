"""Breaks long lines: chains of calls in parentheses, arguments one below the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from .code import BREAK

WIDTH, WIDTH_BESIDE = 100, 75
_OPEN, _CLOSE = "([{", ")]}"


def break_lines(line: str) -> list[str]:
    """Return the lines of a statement without indentation, none much longer than WIDTH."""
    plain = line.replace(BREAK, "")
    links = _top_level(line, BREAK)
    if (len(plain) <= WIDTH and len(links) < 3) or "\n" in plain:
        return plain.split("\n")
    if len(links) > 1:
        return _chain(line, links)
    return _break_brackets(line)


def add_comment(lines: list[str], comment: list[str]) -> list[str]:
    """Return the statement with its comment behind it, or above it if there is no room."""
    if len(lines) == len(comment) == 1 and len(lines[0]) + len(comment[0]) <= WIDTH_BESIDE:
        return [f"{lines[0]}  # {comment[0]}"]
    return [*(f"# {line}" for line in comment), *lines]


def _top_level(line: str, wanted: str) -> list[int]:
    """Return where a sign stands outside brackets and texts."""
    found, depth = [], 0
    for index, sign in _outside_texts(line):
        if sign == wanted and depth == 0:
            found.append(index)
        depth += (sign in _OPEN) - (sign in _CLOSE)
    return found


def _outside_texts(line: str) -> Iterator[tuple[int, str]]:
    """Yield the signs that stand in no text, each with its place."""
    quoted, index = "", 0
    while index < len(line):
        sign = line[index]
        if quoted:
            index += sign == "\\"
            quoted = "" if sign == quoted else quoted
        elif sign in "\"'":
            quoted = sign
        else:
            yield index, sign
        index += 1


def _chain(line: str, links: list[int]) -> list[str]:
    """Put the calls of a chain below each other. The first one stays with its object."""
    start = _start(line[: links[0]])
    head, pieces = line[:start], [line[a:b] for a, b in zip([start, *links[1:]], [*links[1:], len(line)], strict=True)]
    end = ":" if line.endswith(":") else ""
    if end:
        pieces[-1] = pieces[-1][:-1]
    lines = [f"{head}("]
    for piece in pieces:
        lines += [f"    {part}" for part in break_lines(piece.lstrip(BREAK).replace(BREAK, ""))]
    return [*lines, f"){end}"]


def _start(before: str) -> int:
    """Return where the expression of a statement begins."""
    for word in ("return ", "raise ", "yield "):
        if before.startswith(word):
            return len(word)
    at = before.find(" = ")
    return at + 3 if at >= 0 and "(" not in before[:at] else 0


def _break_brackets(line: str) -> list[str]:
    """Break inside the last bracket of the outermost level that holds something."""
    pairs = _pairs(line)
    for start, end in sorted(pairs, key=lambda pair: (line[pair[0]] != "(", pair[0] - pair[1])):
        inside = line[start + 1 : end]
        if not inside.strip() or " for " in inside:
            continue
        cuts = [-1, *_top_level(inside, ","), len(inside)]
        parts = [inside[a + 1 : b].strip() for a, b in pairwise(cuts)]
        lines = [line[: start + 1].replace(BREAK, "")]
        present = [part for part in parts if part]
        listed = _is_listing(line, start)
        for index, part in enumerate(present):
            *first, last = break_lines(part)
            comma = "," if index + 1 < len(present) or (listed and len(present) > 1) else ""
            lines += [f"    {one}" for one in first] + [f"    {last}{comma}"]
        return [*lines, line[end:].replace(BREAK, "")]
    return [line.replace(BREAK, "")]


def _pairs(line: str) -> list[tuple[int, int]]:
    """Return the brackets of the outermost level."""
    found, stack = [], []
    for index, sign in _outside_texts(line):
        if sign in _OPEN:
            stack.append(index)
        elif sign in _CLOSE and stack:
            begun = stack.pop()
            if not stack:
                found.append((begun, index))
    return found


def _is_listing(line: str, start: int) -> bool:
    """Tell whether a bracket holds arguments or items, so that a comma may end it."""
    before = line[start - 1 : start]
    called = before.isalnum() or before in ("_", ")", "]")
    return called if line[start] == "(" else not called and before != "_"
