"""Finds where user code raised an exception: the user's lines, and the arguments of the user's function."""

from __future__ import annotations

import datetime
import decimal
import reprlib
import sysconfig
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..tuples import TridentTuple
from .secrets import HIDDEN, is_secret

_HERE = Path(__file__).parents[1]
OURS = tuple(f"{folder.as_posix()}/" for folder in (_HERE, _HERE.with_name("states")))
_INSTALLED = tuple({f"{Path(sysconfig.get_path(name)).as_posix()}/" for name in ("stdlib", "purelib", "platlib")})
_MADE_UP = ("<frozen ", "<__array_function__", "<attrs ", "pyarrow/")  # Arrow has relative paths in its frames
_PLAIN = (str, bytes, int, float, type(None), decimal.Decimal, datetime.date, datetime.time, list, tuple, dict, set)
FRAMES = 5
LONGEST = 400
COLUMN = 4  # values of a column that are shown
NOTHING_LEFT = "next() ran out of values: give it a default, as in next(values, None), or catch StopIteration"


@dataclass(frozen=True)
class Blame:
    """The origin of an exception. ``frames``: the user's lines, from the outside in. ``values``: the arguments of the
    first of them, or "".

    ``trace``: the whole traceback, including causes, without frames of trident_py. ``hint``: the next step, if known.
    """

    frames: tuple[str, ...] = ()
    values: str = ""
    trace: str = ""
    hint: str = ""

    @property
    def origin(self) -> str:
        """The innermost line of the user's own code, or "" if none is involved."""
        return self.frames[-1] if self.frames else ""

    def lines(self) -> list[str]:
        """Return the lines for a message: the last frames, then the values, then the hint."""
        shown = [f"at {frame}" for frame in self.frames[-FRAMES:]] + ([f"with {self.values}"] if self.values else [])
        return shown + ([self.hint] if self.hint else [])


def blame(error: BaseException, values: bool = True) -> Blame:
    """Read the traceback of an exception, in the process that raised it. ``values=False`` leaves the values out."""
    raised = _unwrap(error)
    frames = [frame for exception in raised for frame in traceback.extract_tb(exception.__traceback__)]
    users_own = [_line_of(frame) for frame in frames if is_users(frame.filename)]
    hint = NOTHING_LEFT if isinstance(raised[-1], StopIteration) else ""
    return Blame(tuple(users_own), arguments(error) if values else "", _trace(error), hint)


def text_of(error: BaseException) -> str:
    """Return the text of an error. Raises nothing, whatever its own `__str__` does."""
    try:
        return str(error)
    except Exception as broken:
        return f"its text is unknown, as __str__ raised {type(broken).__name__}"


def describe_error(error: BaseException) -> str:
    """Return the type of an error and its text, if any."""
    text = text_of(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _unwrap(error: BaseException) -> list[BaseException]:
    """Return the exception. If a StopIteration left a generator (PEP 479), the RuntimeError and then the
    StopIteration."""
    cause = error.__cause__
    stopped = isinstance(error, RuntimeError) and isinstance(cause, StopIteration | StopAsyncIteration)
    return [error, cause] if stopped and cause is not None else [error]


def note(error: BaseException, origin: Blame) -> None:
    """Add the lines to the exception's notes, once."""
    for line in origin.lines():
        if line not in notes_of(error):
            error.add_note(line)


def notes_of(error: BaseException) -> list[str]:
    """Return the notes of an exception. Python creates their list only with the first note."""
    return list(getattr(error, "__notes__", ()))


def is_users(filename: str) -> bool:
    """Return whether a file belongs to the user: not to trident_py, nor to Python, nor to an installed package."""
    path = Path(filename).as_posix()
    return not (path.startswith(OURS + _INSTALLED + _MADE_UP) or "/site-packages/" in path)


def arguments(error: BaseException) -> str:
    """Return the arguments of the user's function that trident_py called, as ``name=value``; tuples field by field."""
    frames = (frame for exception in _unwrap(error) for frame, _ in traceback.walk_tb(exception.__traceback__))
    entry = next((frame for frame in frames if is_users(frame.f_code.co_filename)), None)
    if entry is None:
        return ""
    code = entry.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    shown = [text for name in names if name in entry.f_locals for text in _format_value(name, entry.f_locals[name])]
    return _short(", ".join(shown))


def format_values(names: Any, values: Any) -> str:
    """Format ``name=value`` for a function without a Python frame, such as ``int`` or a method of ``str``."""
    return _short(", ".join(_pair(name, value) for name, value in zip(names, values, strict=False)))


def _format_value(name: str, value: Any) -> Iterator[str]:
    """Show tuples, columns and plain data. The repr of a state or collector is useless, and may reveal secrets."""
    if isinstance(value, TridentTuple):
        values = tuple.__iter__(value)  # a ShortTuple's own iterator raises
        yield from (_pair(field, item) for field, item in zip(value.getFields(), values, strict=False))
    elif isinstance(value, pa.Array | pa.ChunkedArray):
        yield f"{name}={HIDDEN if is_secret(name) else _column(value)}"
    elif isinstance(value, _PLAIN):
        yield _pair(name, value)


def _column(values: Any) -> str:
    """Return the first values of a column, and how many there are."""
    shown = ", ".join(map(_short_repr, values.slice(0, COLUMN).to_pylist()))
    return f"{values.type}[{shown}{f', ... {len(values)} values' if len(values) > COLUMN else ''}]"


_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = 80


def _pair(name: str, value: Any) -> str:
    return f"{name}={HIDDEN if is_secret(name) else _short_repr(value)}"


def _short_repr(value: Any) -> str:
    """Return the repr, shortened. Never raises: an exception here would replace the user's own."""
    try:
        return _repr.repr(value)
    except Exception:
        return f"<cannot be shown: {type(value).__name__}>"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


def _line_of(frame: traceback.FrameSummary) -> str:
    where = f"{frame.filename}:{frame.lineno} in {frame.name}"
    return f"{where}: {frame.line}" if frame.line else where


def _trace(error: BaseException) -> str:
    """Return the traceback as Python prints it, without frames of trident_py."""
    trace = traceback.TracebackException.from_exception(error)
    link: traceback.TracebackException | None = trace
    while link is not None:
        link.stack = traceback.StackSummary.from_list([f for f in link.stack if not f.filename.startswith(OURS)])
        link = link.__cause__ or link.__context__
    return "".join(trace.format())
