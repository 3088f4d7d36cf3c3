"""A folder of this machine that makes a file as HDFS and S3 do: not if it exists."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


class LinkedFiles:
    """A `trident_py.checkpoints.versioned_store.Folder` in a local one."""

    def __init__(self, folder: Path) -> None:
        self.where = str(folder)
        self.folder = Path(folder)

    def names(self, folder: str = "") -> list[str]:
        return [file.name for file in (self.folder / folder).glob("[!.]*")]

    def read(self, name: str) -> str | None:
        try:
            return (self.folder / name).read_text(encoding="utf-8", errors="replace")  # as Java does
        except FileNotFoundError:
            return None

    def create(self, name: str, text: str) -> bool:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch = file.parent / f".{uuid.uuid4().hex}"
        scratch.write_text(text)
        try:
            os.link(scratch, file)
        except FileExistsError:
            return False
        finally:
            scratch.unlink()
        return True

    def delete(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
