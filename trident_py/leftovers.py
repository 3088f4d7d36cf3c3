"""Temporary folders of a process: it takes them away at its end, and the next one of its kind if it was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_OWNER = "owner"


@contextlib.contextmanager
def own_folder(prefix: str) -> Iterator[Path]:
    """A temporary folder of this process. First those with this prefix whose owner is dead are taken away."""
    sweep(prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        with (folder / f"{_OWNER}.new").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (folder / f"{_OWNER}.new").rename(folder / _OWNER)  # who finds the file finds it locked
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(prefix: str) -> list[Path]:
    """Takes away what killed processes have left; returns the folders. The lock of a dead process is free."""
    gone = []
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # another's, still owned, or swept meanwhile
            if folder.stat().st_uid != os.getuid():
                continue
            with (folder / _OWNER).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
                gone.append(folder)
    return gone
