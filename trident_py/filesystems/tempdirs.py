"""Temporary folders that a process deletes at its end. If it was killed, the next such process deletes them."""

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
    """A temporary folder of this process. First deletes the folders with this prefix whose owner is dead."""
    sweep(prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        with (folder / f"{_OWNER}.new").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (folder / f"{_OWNER}.new").rename(folder / _OWNER)  # so the file is locked as soon as it exists
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(prefix: str) -> list[Path]:
    """Delete the folders that killed processes left, and return them. A dead process holds no lock."""
    deleted = []
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # another user's, still locked, or already deleted
            if folder.stat().st_uid != os.getuid():
                continue
            with (folder / _OWNER).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
                deleted.append(folder)
    return deleted
