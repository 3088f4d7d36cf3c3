"""The rules that every reader of text files keeps. docs/files.md lists them for users.

- Marks: a byte order mark of UTF-8 at the beginning of a file is dropped; anywhere else it is text.
- Encodings and compression: UTF-8, not compressed; what is found to be something else is refused by name.
- Line ends: LF, with any CR before it. CR alone is text in a line and between quotes; elsewhere it is refused.
- Quotes: one that begins a CSV value quotes it, any other is text. What is quoted is a text, never a null.
"""

from __future__ import annotations

import re

from ...errors import SpoutError
from ...spouts.json_values import TO_UTF_8

MARK = b"\xef\xbb\xbf"
TO_LF = "a line ends with CR alone; convert the line ends to LF"

_COMPRESSED = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<bzip2>BZh[1-9]1AY&SY)|(?P<xz>\xfd7zXZ\0)|(?P<zstd>\x28\xb5\x2f\xfd)|(?P<zip>PK\x03\x04)"
    rb"|(?P<lz4>\x04\x22\x4d\x18)"
)
_WIDE = re.compile(rb"\xff\xfe|\xfe\xff|\0\0\xfe\xff|[^\0]\0[^\0]\0|\0[^\0]\0[^\0]|[^\0]\0\0\0|\0\0\0[^\0]", re.DOTALL)
_BARE_CR = re.compile(rb"\r(?!\r*\n)")


def check_content(path: str, beginning: bytes) -> None:
    """Raise SpoutError if a file begins like something else than text in UTF-8."""
    if found := _COMPRESSED.match(beginning):
        raise SpoutError(
            f"FileSpout: {path} is compressed ({found.lastgroup}) and cannot be read in parts; decompress it, or use "
            "Parquet"
        )
    if _WIDE.match(beginning):
        raise SpoutError(f"FileSpout: {path} is UTF-16 or UTF-32; {TO_UTF_8}")


def without_mark(beginning: bytes) -> bytes:
    """Return the beginning of a file without its byte order mark."""
    return beginning.removeprefix(MARK)


def bare_cr(outline: bytes) -> int:
    """Return where a CR ends a line in text whose quoted values are hidden; -1: nowhere."""
    found = _BARE_CR.search(outline) if b"\r" in outline else None
    return found.start() if found is not None else -1


class Quotes:
    """The quotes of CSV, as Arrow's reader and Python's have them: one opens a value only where the value begins.

    ``multiline``: rows may go on behind a line end that is between quotes.
    """

    def __init__(self, delimiter: str, multiline: bool) -> None:
        self.delimiter, self.multiline = delimiter, multiline
        self._begins = delimiter.encode() + b"\r\n"
        begins = re.escape(self._begins)
        plain = rb'"[^"\r\n]*+(?:""[^"\r\n]*+)*+"[%s][^"]*+(?<=[%s])' % (begins, begins)
        self._values = re.compile(rb'(?:%s)*+("[^"]*+(?:""[^"]*+)*+(?:"|\Z))' % plain)

    @property
    def unclosed(self) -> str:
        """What is wrong with a quote that is open where a row ends, and the next step."""
        more = "close it" if self.multiline else "if quoted values contain newlines, set multiline=True"
        return f"a quote is not closed; {more}"

    def outline(self, block: bytes) -> bytes:
        """Return the block, or one as long, in which rows end where lines do."""
        return self.hide(block) if self.multiline else block

    def hide(self, block: bytes) -> bytes:
        """Return the block with an x for each character of a line end between quotes."""
        parts: list[bytes] = []
        done, at = 0, block.find(b'"')
        while at >= 0:
            end = at + 1
            if at == 0 or block[at - 1] in self._begins:
                if (found := self._values.match(block, at)) is None:
                    break
                at, end = found.span(1)
                value = found[1]
                if b"\n" in value or b"\r" in value:
                    parts += block[done:at], value.replace(b"\n", b"x").replace(b"\r", b"x")
                    done = end
            at = block.find(b'"', end)
        return b"".join((*parts, block[done:])) if parts else block

    def rows_in(self, text: bytes) -> tuple[int, tuple[int, str] | None]:
        """Return the number of rows, blank lines left out, and where the text first breaks the rules, and how."""
        hidden = self.hide(text + b"\n")
        found = [(bare_cr(hidden[:-1]), TO_LF)]
        if not hidden.endswith(b"\n"):
            found.append((hidden.rfind(b"\n") + 1, self.unclosed))
        if not self.multiline and hidden.count(b"\n") <= text.count(b"\n"):
            at = next((at for at, each in enumerate(text) if each != hidden[at] and each == ord("\n")), -1)
            found.append((at, self.unclosed))
        rows = sum(map(bool, hidden.replace(b"\r", b"").split(b"\n")))
        return rows, min((each for each in found if each[0] >= 0), default=None)

    def row_at(self, rows: bytes, number: int) -> int:
        """Return where the row of this number begins, counted from 1; blank lines are no rows."""
        at = 0
        for line in self.hide(rows).split(b"\n"):
            number -= bool(line.strip(b"\r"))
            if number == 0:
                break
            at += len(line) + 1
        return at

    def is_open(self, rows: bytes) -> bool:
        """Return whether a quote is still open at the end of these rows."""
        return b'"' in rows and not self.hide(rows + b"\n").endswith(b"\n")
