"""Texts: regular expressions, splitting and formatting as in Java."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from .errors import IllegalStateError, NoSuchElementError
from .objects import hash_code, to_text

__all__ = [
    "JavaByte", "JavaShort", "Matcher", "StringBuilder", "StringJoiner", "StringTokenizer", "char_at", "char_lower",
    "char_upper", "code_points", "compare_ignoring_case", "compare_text",
    "compile_pattern", "decode", "equals_ignore_case", "format_located",
    "format_text", "get_bytes", "is_alphabetic", "is_letter_or_digit", "is_whitespace", "join_text", "lines_of",
    "matches", "numeric_value", "repeat", "replace_all", "replace_first", "split", "strip",
    "strip_leading", "strip_trailing", "substring", "trim",
]  # fmt: skip


def char_at(text: str, index: int) -> str:
    if not 0 <= index < len(text):
        raise IndexError(f"index {index}, length {len(text)}")
    return text[index]


def substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= start <= stop <= len(text):
        raise IndexError(f"begin {start}, end {stop}, length {len(text)}")
    return text[start:stop]


def trim(text: str) -> str:
    """Remove blanks and control characters from both ends."""
    return text.strip("".join(map(chr, range(33))))


def strip(text: str) -> str:
    start, end = 0, len(text)
    while start < end and is_whitespace(text[start]):
        start += 1
    while end > start and is_whitespace(text[end - 1]):
        end -= 1
    return text[start:end]


def strip_leading(text: str) -> str:
    return text[len(text) - len(strip(f"{text}.")) + 1 :]


def strip_trailing(text: str) -> str:
    return text[: len(strip(f".{text}")) - 1]


def code_points(text: str) -> list[int]:
    """Return ``text.codePoints()``: a pair of surrogates is one."""
    return list(map(ord, text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")))


def repeat(text: str, count: int) -> str:
    if count < 0:
        raise ValueError(f"count is negative: {count}")
    return text * count


def equals_ignore_case(text: str, other: str | None) -> bool:
    return other is not None and text.upper().lower() == other.upper().lower()


def compare_text(a: str, b: str) -> int:
    """Return ``a.compareTo(b)``: the difference of the first differing characters, or of the lengths."""
    for one, other in zip(a, b, strict=False):
        if one != other:
            return ord(one) - ord(other)
    return len(a) - len(b)


def compare_ignoring_case(a: str, b: str) -> int:
    return compare_text(a.lower(), b.lower())


def is_letter_or_digit(char: str) -> bool:
    return char.isalpha() or char.isdecimal()


def is_alphabetic(char: str | int) -> bool:
    return (chr(char) if isinstance(char, int) else char).isalpha()


def is_whitespace(char: str) -> bool:
    return char.isspace() and char not in "\xa0\u2007\u202f\x85"


def char_upper(char: str) -> str:
    return char.upper() if len(char.upper()) == 1 else char


def char_lower(char: str) -> str:
    return char.lower() if len(char.lower()) == 1 else char


def numeric_value(char: str) -> int:
    try:
        return int(char, 36)
    except ValueError:
        return -1


def get_bytes(text: str, charset: str = "UTF-8") -> bytes:
    return text.encode(charset, "replace")


def decode(data: bytes, charset: str = "UTF-8") -> str:
    return data.decode(charset, "replace")


def lines_of(text: str) -> list[str]:
    lines = re.split("\r\n|\r|\n", text)
    return lines if lines[-1] else lines[:-1]


def join_text(separator: str, *values: Any) -> str:
    parts: Iterable[Any] = values[0] if len(values) == 1 and not isinstance(values[0], str) else values
    return separator.join(map(to_text, parts))


def _expression(pattern: str | re.Pattern[str], flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern of Java: its classes are ASCII; possessive marks and \\p{...} of ASCII are known."""
    if isinstance(pattern, re.Pattern):
        return pattern
    written, depth = "", 0
    for piece in re.findall(r"\\p\{\w+\}|\\.|.", pattern, re.DOTALL):
        if depth and (piece == "[" or written.endswith("&&")):
            raise NotImplementedError(f"a class in a class of the pattern {pattern!r}: Python's re has no such thing")
        depth += (piece == "[") - (piece == "]")
        if piece in _CLASSES:
            written += _CLASSES[piece] if depth else f"[{_CLASSES[piece]}]"
        else:
            written += "\\Z" if piece == "\\z" else piece
    return re.compile(re.sub(r"\(\?<([a-zA-Z]\w*)>", r"(?P<\1>", written), flags | re.ASCII)


_CLASSES = {
    r"\p{Punct}": r"!-/:-@\[-`{-~", r"\p{Alpha}": "a-zA-Z", r"\p{Digit}": "0-9", r"\p{Alnum}": "a-zA-Z0-9",
    r"\p{Upper}": "A-Z", r"\p{Lower}": "a-z", r"\p{Space}": r"\s",
}  # fmt: skip


def compile_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    return _expression(pattern, flags)


def matches(text: str, pattern: str) -> bool:
    return _expression(pattern).fullmatch(text) is not None


def split(text: str, pattern: str | re.Pattern[str], limit: int = 0) -> list[str]:
    """Return ``text.split(pattern, limit)``: empty texts at the end are dropped if the limit is 0."""
    parts: list[str] = []
    start = 0
    for match in _expression(pattern).finditer(text):
        if limit > 0 and len(parts) == limit - 1:
            break
        if match.end() == 0 or (match.start() == match.end() == len(text)):
            continue
        parts.append(text[start : match.start()])
        start = match.end()
    parts.append(text[start:])
    while limit == 0 and len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [] if limit == 0 and parts == [""] and text else parts


def _replacement(replacement: str) -> Any:
    def replace(match: re.Match[str]) -> str:
        return re.sub(
            r"\\(.)|\$(\d)|\$\{(\w+)\}",
            lambda one: one[1] if one[1] is not None else (match[int(one[2])] if one[2] else match[one[3]]) or "",
            replacement,
        )

    return replace


def replace_all(text: str, pattern: str | re.Pattern[str], replacement: str) -> str:
    return _expression(pattern).sub(_replacement(replacement), text)


def replace_first(text: str, pattern: str, replacement: str) -> str:
    return _expression(pattern).sub(_replacement(replacement), text, count=1)


class Matcher:
    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self._pattern, self._text, self._at = pattern, text, 0
        self._match: re.Match[str] | None = None

    def matches(self) -> bool:
        return self._keep(self._pattern.fullmatch(self._text))

    def lookingAt(self) -> bool:
        return self._keep(self._pattern.match(self._text))

    def find(self) -> bool:
        return self._keep(self._pattern.search(self._text, self._at) if self._at <= len(self._text) else None)

    def _keep(self, match: re.Match[str] | None) -> bool:
        """Keep a match: the next `find` goes on behind it."""
        self._match = match
        if match is not None:
            self._at = match.end() + (match.end() == match.start())
        return match is not None

    def _current(self) -> re.Match[str]:
        if self._match is None:
            raise IllegalStateError("No match found")
        return self._match

    def group(self, group: int | str = 0) -> Any:
        return self._current()[group]

    def groupCount(self) -> int:
        return self._pattern.groups

    def start(self) -> int:
        return self._current().start()

    def end(self) -> int:
        return self._current().end()

    def replaceAll(self, replacement: str) -> str:
        return replace_all(self._text, self._pattern, replacement)


class StringBuilder:
    def __init__(self, text: Any = "") -> None:
        self._parts = [to_text(text)]

    def append(self, value: Any) -> StringBuilder:
        self._parts.append(to_text(value))
        return self

    def _change(self, text: str) -> StringBuilder:
        self._parts = [text]
        return self

    def replace(self, start: int, end: int, text: str) -> StringBuilder:
        return self.delete(start, end).insert(start, text)

    def insert(self, index: int, value: Any) -> StringBuilder:
        text = str(self)
        return self._change(substring(text, 0, index) + to_text(value) + text[index:])

    def reverse(self) -> StringBuilder:
        return self._change(str(self)[::-1])

    def charAt(self, index: int) -> str:
        return char_at(str(self), index)

    def setCharAt(self, index: int, char: str) -> None:
        text = str(self)
        self._change(substring(text, 0, index) + char + text[index + 1 :])

    def deleteCharAt(self, index: int) -> StringBuilder:
        text = str(self)
        char_at(text, index)
        return self._change(text[:index] + text[index + 1 :])

    def delete(self, start: int, end: int) -> StringBuilder:
        text = str(self)
        return self._change(substring(text, 0, start) + text[max(end, start) :])

    def setLength(self, length: int) -> None:
        self._change(str(self)[:length].ljust(length, "\0"))

    def __len__(self) -> int:
        return len(str(self))

    def __str__(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0]


class StringJoiner:
    def __init__(self, separator: str, prefix: str = "", suffix: str = "") -> None:
        self._separator, self._prefix, self._suffix = separator, prefix, suffix
        self._parts: list[str] = []

    def add(self, value: Any) -> StringJoiner:
        self._parts.append(to_text(value))
        return self

    def __str__(self) -> str:
        return self._prefix + self._separator.join(self._parts) + self._suffix


class StringTokenizer:
    def __init__(self, text: str, separators: str = " \t\n\r\f") -> None:
        self._tokens = [token for token in re.split(f"[{re.escape(separators)}]", text) if token]

    def hasMoreTokens(self) -> bool:
        return bool(self._tokens)

    def nextToken(self) -> str:
        if not self._tokens:
            raise NoSuchElementError("no such element")
        return self._tokens.pop(0)

    def countTokens(self) -> int:
        return len(self._tokens)


_WIDE = Context(prec=800)
_FORMAT = re.compile(r"%(?:(\d+)\$|(<))?([-#+ 0,(]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])")


def format_located(locale: Any, pattern: str, *values: Any) -> str:
    return format_text(pattern, *values)


def format_text(pattern: str, *values: Any) -> str:
    """Return ``String.format(pattern, values)`` in the root locale."""
    left, last = iter(range(len(values))), -1

    def fill(match: re.Match[str]) -> str:
        nonlocal last
        number, again, flags, width, precision, kind = match.groups()
        if kind in "n%":
            return _pad("\n" if kind == "n" else "%", flags, width if kind == "%" else None)
        try:
            last = last if again else int(number) - 1 if number else next(left)
            value = values[last] if last >= 0 else values[len(values)]
        except (StopIteration, IndexError):
            raise ValueError(f"Format specifier '{match[0]}'") from None
        text = _convert(value, kind, flags, None if precision is None else int(precision), int(width or 0))
        return _pad(text.upper() if kind.isupper() else text, flags, width)

    return _FORMAT.sub(fill, pattern)


def _pad(text: str, flags: str, width: str | None) -> str:
    size = int(width or 0)
    return text.ljust(size) if "-" in flags else text.rjust(size)


def _convert(value: Any, kind: str, flags: str, precision: int | None, width: int) -> str:
    lower = kind.lower()
    if lower == "b":
        return to_text(value if isinstance(value, bool) else value is not None)
    if value is None:
        return "null"
    if lower == "s":
        return to_text(value)[:precision]
    if lower == "c":
        return value if isinstance(value, str) else chr(value)
    if lower == "h":
        return f"{hash_code(value) & 0xFFFFFFFF:x}"
    if lower in ("d", "x", "o") and isinstance(value, int) and not isinstance(value, bool):
        return _whole(value, lower, flags, width)
    if lower in ("f", "e") and isinstance(value, float | Decimal):
        return _decimal(value, lower, flags, 6 if precision is None else precision, width)
    raise ValueError(f"{kind} != {type(value).__name__}")


class JavaShort(int):
    """A short for `format_text`: its ``%x`` has as many digits."""

    bits = 16


class JavaByte(JavaShort):
    """A byte for `format_text`."""

    bits = 8


def _whole(value: int, kind: str, flags: str, width: int) -> str:
    if kind != "d":
        bits = value.bits if isinstance(value, JavaShort) else 32 if -(2**31) <= value < 2**31 else 64
        begin = {"x": "0x", "o": "0"}[kind] if "#" in flags else ""
        digits = f"{value & ((1 << bits) - 1):{kind}}"
        return begin + _sign(digits, False, flags.replace("+", ""), width - len(begin))
    return _sign(f"{abs(value):{',' if ',' in flags else ''}d}", value < 0, flags, width)


def _decimal(value: float | Decimal, kind: str, flags: str, precision: int, width: int) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return _sign(to_text(abs(value)), value < 0, flags.replace("0", ""), width)
    exact = (value if isinstance(value, Decimal) else Decimal(to_text(value))).copy_abs()
    negative = math.copysign(1, value) < 0
    if kind == "e":
        exponent = exact.adjusted() if exact else 0
        digits = exact.scaleb(-exponent, _WIDE).quantize(Decimal(1).scaleb(-precision), ROUND_HALF_UP, _WIDE)
        if digits >= 10:
            digits, exponent = (digits / 10).quantize(Decimal(1).scaleb(-precision)), exponent + 1
        return _sign(f"{digits}e{exponent:+03d}", negative, flags, width)
    rounded = exact.quantize(Decimal(1).scaleb(-precision), ROUND_HALF_UP, _WIDE)
    return _sign(f"{rounded:{',' if ',' in flags else ''}f}", negative, flags, width)


def _sign(digits: str, negative: bool, flags: str, width: int) -> str:
    sign = "-" if negative else "+" if "+" in flags else " " if " " in flags else ""
    if negative and "(" in flags:
        return f"({digits})"
    return sign + (digits.rjust(width - len(sign), "0") if "0" in flags else digits)
