"""A folder of the local file system, or of one that is mounted."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from trident_py.errors import FailedException, StateError

from .base import Entry

_PASSES = {
    errno.ENOSPC, errno.EDQUOT, errno.EAGAIN, errno.EINTR, errno.ESTALE, errno.ETIMEDOUT, errno.EMFILE, errno.ENFILE,
}  # fmt: skip


class LocalStore:
    """A name is durable when the file and the folder that holds the name have reached the disk (fsync). With
    ``sync=False`` the operating system writes them when it likes."""

    renames = True

    def __init__(self, path: str, sync: bool = True) -> None:
        self._root = Path(path).absolute()
        self._sync = sync
        self.where = str(self._root)
        self.shown_to_spark = self._root.as_uri()

    def prove(self) -> None:
        """A link to a name that exists fails in every file system that has links."""

    def names(self, folder: str) -> list[Entry]:
        with self._explained("list", folder):
            try:
                with os.scandir(self._root / folder) as entries:
                    return [entry for each in entries if (entry := _entry(each)) is not None]
            except FileNotFoundError:
                return []

    def read(self, name: str) -> bytes | None:
        with self._explained("read", name):
            try:
                return (self._root / name).read_bytes()
            except FileNotFoundError:
                return None

    def create(self, name: str, data: bytes) -> bool:
        """Writes a hidden file and links it to its name: that fails if the name exists."""
        path = self._root / name
        with self._explained("write", name):
            self._make(path.parent)
            hidden = path.parent / f".{path.name}.{secrets.token_hex(8)}"
            try:
                with _Durable(hidden, self._sync, nullcontext) as file:
                    file.write(data)
                os.link(hidden, path)
            except FileExistsError:
                return False
            finally:
                hidden.unlink(missing_ok=True)
            self._settle(path.parent)
        return True

    def open(self, name: str) -> Any:
        with self._explained("read", name):
            return (self._root / name).open("rb")

    def writer(self, name: str) -> Any:
        path = self._root / name
        with self._explained("write", name):
            self._make(path.parent)
            return _Durable(path, self._sync, lambda: self._explained("write", name))

    def place(self, source: str, target: str) -> bool:
        return self._renamed(source, target)

    def place_folder(self, source: str, target: str) -> bool:
        return self._renamed(source, target)

    def settle(self, folder: str) -> None:
        with self._explained("sync", folder):
            self._settle(self._root / folder)

    def delete(self, name: str) -> None:
        path = self._root / name
        with self._explained("delete", name), suppress(FileNotFoundError):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _renamed(self, source: str, target: str) -> bool:
        with self._explained("rename", source):
            self._make((self._root / target).parent)
            try:
                (self._root / source).replace(self._root / target)
            except FileNotFoundError:
                return False
        return True

    def _make(self, folder: Path) -> None:
        """Makes a folder whose name is durable."""
        if folder.is_dir():
            return
        self._make(folder.parent)
        folder.mkdir(exist_ok=True)
        self._settle(folder.parent)

    def _settle(self, folder: Path) -> None:
        if self._sync:
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    @contextmanager
    def _explained(self, doing: str, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            told = f"FileState: cannot {doing} {self._root / name}: {error.strerror or error}"
            if error.errno in _PASSES:
                raise FailedException(f"{told}. The batch is tried again") from error
            raise StateError(f"{told}. Check the folder and who may write it") from error


class _Durable:
    """A new file. ``close`` returns when its content is on disk. ``explained`` makes the context of each call."""

    def __init__(self, path: Path, sync: bool, explained: Callable[[], AbstractContextManager[None]]) -> None:
        self._file = path.open("xb")
        self._sync = sync
        self._explained = explained

    def write(self, data: Any) -> None:
        with self._explained():
            self._file.write(data)

    def close(self) -> None:
        if self._file.closed:
            return
        with self._explained():
            try:
                self._file.flush()
                if self._sync:
                    os.fsync(self._file.fileno())
            finally:
                self._file.close()

    def __enter__(self) -> _Durable:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def _entry(entry: os.DirEntry[str]) -> Entry | None:
    """None for a file that is gone since it was listed."""
    try:
        return Entry(entry.name, entry.stat().st_size)
    except FileNotFoundError:
        return None
