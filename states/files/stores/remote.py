"""What the remote stores share: the errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trident_py.errors import FailedException, StateError, TridentError
from trident_py.secrets import hidden
from trident_py.spouts.remotestores import is_away, is_refused

_PAUSES = ("standby", "safe mode", "Safe mode")


@contextmanager
def explained(doing: str, where: str, secrets: list[str], away: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """A context in which a store's errors become ours: FailedException while it is away, else StateError.
    FileNotFoundError passes."""
    known: tuple[type[Exception], ...] = (OSError, RuntimeError, ValueError, *away)
    try:
        yield
    except (TridentError, FileNotFoundError):
        raise
    except known as error:
        text = hidden(" ".join(str(error).split()), secrets)
        cause = None if text != " ".join(str(error).split()) else error
        if is_refused(error, text):
            raise StateError(
                f"FileState: cannot {doing} {where}: the store refuses access: {text}. Check the credentials "
                "(storage={...}, or the environment of driver and executors) and what they may write"
            ) from cause
        if isinstance(error, away) or is_away(error, text) or any(word in text for word in _PAUSES):
            raise FailedException(
                f"FileState: cannot {doing} {where}: the store does not answer: {text}. The batch is tried again; if "
                "this stays, check host and port in the URI and in storage={...}"
            ) from cause
        raise StateError(f"FileState: cannot {doing} {where}: {text}") from cause


class Explained:
    """A file of a store whose calls explain their errors."""

    def __init__(self, file: Any, where: str, secrets: list[str], away: tuple[type[Exception], ...]) -> None:
        self._file = file
        self._told = ("write", where, secrets, away)

    def write(self, data: Any) -> None:
        with explained(*self._told):
            self._file.write(data)

    def close(self) -> None:
        with explained(*self._told):
            self._file.close()
