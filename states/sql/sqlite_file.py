"""What SQLite does not tell of a file: why it cannot open it, and that another one is there by now."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path


class FileConnection(sqlite3.Connection):
    """Knows which file it has open. A file that is replaced (`mv backup.db counts.db`) or deleted lives on for whoever
    has it open: what is written there is gone with the last of them, without an error."""

    _path = ""
    _file: tuple[int, int] | None = None

    def opened(self, path: str) -> None:
        """Once there is a file."""
        self._path, self._file = path, _file_at(path)

    def is_current(self) -> bool:
        """Whether the file is still the one under its name."""
        return self._file == _file_at(self._path)


def _file_at(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def unopenable(path: Path) -> str | None:
    """What to mend; None if nothing is seen. SQLite writes in the folder too, for the log lies beside the file."""
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}; make it"
    if path.is_dir():
        return f"{path} is a folder; name a file in it"
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return f"no permission to write in the folder {path.parent}"
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        return f"no permission to write the file {path}"
    return None
