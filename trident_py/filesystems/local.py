"""The file system of this machine, or one that is mounted on it."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from .base import LOCAL, LOCAL_PASSES, FileInfo, FileSystem, StorageFailure, make_hidden_path

_PASSES = {
    errno.ENOSPC, errno.EDQUOT, errno.EAGAIN, errno.EINTR, errno.ESTALE, errno.ETIMEDOUT, errno.EMFILE, errno.ENFILE,
}  # fmt: skip


class LocalFileSystem(FileSystem):
    """Paths are those of the machine. A name is durable when the file and the folder that holds the name have reached
    the disk (fsync). With ``sync=False`` the operating system writes them when it likes."""

    renames = True

    def __init__(self, sync: bool = True) -> None:
        self.secrets = []
        self._sync = sync

    def stat(self, path: str) -> FileInfo | None:
        with suppress(FileNotFoundError, NotADirectoryError):
            return self.identify(path)
        return None

    def identify(self, path: str) -> FileInfo:
        return _info(path, os.stat(path))  # noqa: PTH116  (three times for each range: a Path would double its cost)

    def list_folder(self, path: str) -> list[FileInfo]:
        found = []
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(path) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # gone since it was listed
                    found.append(_info(entry.path, entry.stat()))
        return found

    def find(self, path: str) -> list[str]:
        """Find as in other stores, but follow no link to a folder from a folder. Raises OSError for a folder that
        cannot be listed, which Python's ``glob`` leaves out."""
        place = Path(path).absolute()
        try:
            return _files_below(place) if place.is_dir() else super().find(str(place))
        except OSError as error:
            if error.errno in _PASSES:
                raise
            raise OSError(f"{error.filename}: {error.strerror}") from error

    def explain_absence(self, path: str) -> str:
        return f"current folder: {Path.cwd()}"

    def open(self, path: str) -> Any:
        return pa.OSFile(os.fsencode(path), "rb")

    def create(self, path: str, data: bytes) -> bool:
        """Write a hidden file and link it to its name: that fails if the name exists."""
        hidden = make_hidden_path(path)
        try:
            with self.open_writer(hidden) as file:
                file.write(data)
            os.link(hidden, path)
        except FileExistsError:
            return False
        finally:
            Path(hidden).unlink(missing_ok=True)
        self.sync(str(Path(path).parent))
        return True

    def open_writer(self, path: str) -> Any:
        self._make_folder(Path(path).parent)
        return _DurableFile(path, self._sync)

    def rename(self, source: str, target: str) -> bool:
        self._make_folder(Path(target).parent)
        try:
            Path(source).replace(target)
        except FileNotFoundError:
            return False
        return True

    rename_folder = rename

    def sync(self, folder: str) -> None:
        if self._sync:
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            if Path(path).is_dir():
                shutil.rmtree(path)
            else:
                Path(path).unlink()

    def explain(self, error: Exception) -> StorageFailure:
        number = error.errno if isinstance(error, OSError) else None
        return StorageFailure(
            LOCAL_PASSES if number in _PASSES else LOCAL, os.strerror(number) if number else str(error), error
        )

    def _make_folder(self, folder: Path) -> None:
        """Make a folder whose name is durable."""
        if not folder.is_dir():
            self._make_folder(folder.parent)
            folder.mkdir(exist_ok=True)
            self.sync(str(folder.parent))


def _files_below(place: Path) -> list[str]:
    """Return a folder's files, without those below a name that begins with a dot or an underscore."""

    def refuse(error: OSError) -> None:
        raise error

    found = []
    for folder, folders, names in os.walk(place, onerror=refuse):
        folders[:] = [name for name in folders if name[0] not in "._"]
        found += [file for name in names if name[0] not in "._" and (file := Path(folder, name)).is_file()]
    return [str(file) for file in found]


class _DurableFile(io.BufferedWriter):
    """A new file. ``close`` returns when its content is on disk."""

    def __init__(self, path: str, sync: bool) -> None:
        super().__init__(io.FileIO(path, "xb"))
        self._sync = sync

    def close(self) -> None:
        if not self.closed:
            try:
                self.flush()
                if self._sync:
                    os.fsync(self.fileno())
            finally:
                super().close()


def _info(path: str, found: os.stat_result) -> FileInfo:
    return FileInfo(path, stat.S_ISREG(found.st_mode), found.st_size, found.st_mtime_ns, found.st_ino)
