"""Why SQLite cannot open a file, which its own message does not tell."""

from __future__ import annotations

import os
from pathlib import Path


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
