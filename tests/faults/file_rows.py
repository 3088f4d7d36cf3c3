"""A FileState whose calls are counted, and the rows in its folder, read by pandas alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from states.files import FileState
from trident_py.extras.files.folder import StateFolder

from . import steps
from .stores import ROW

CALLS = ("list_folder", "read", "create", "open", "open_writer", "rename", "rename_folder", "sync", "delete")


def count_calls() -> None:
    """Every call of a FileState's store is a statement to the hook, from now on in this process."""
    for name in CALLS:
        steps.count(StateFolder, name)


def files_state(url: str, mode: str, **more: Any) -> FileState:
    return FileState(url, columns=ROW, visible=mode, compact="1MB" if mode == "manifest" else None, grace=0, **more)


def rows_in_files(folder: Path, listing: bool) -> Counter[tuple]:
    """The rows that pandas reads, by the ledger or from the listed folder."""
    files: Any = folder
    if not listing:
        newest = max((folder / "_trident" / "ledger").glob("[0-9]*.json"))
        files = [str(folder / file["name"]) for file in json.loads(newest.read_text())["files"]]
    frame = pd.read_parquet(files)
    return Counter(frame[list(ROW)].itertuples(index=False, name=None))
