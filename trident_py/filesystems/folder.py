"""One folder in a file system, whatever the store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import TridentError
from .base import FileInfo, FileSystem, StorageFailure


class StoredFolder(ABC):
    """Names are relative to the folder, with ``/`` between their parts.

    ``root``: the folder's path in its file system; ``where``: its URI for messages, without secrets. Methods raise
    what a subclass makes of a failure of the store.
    """

    def __init__(self, files: FileSystem, root: str, where: str) -> None:
        self._files = files
        self._root = root
        self.where = where

    def ignores_condition(self, name: str) -> bool:
        """Return whether `create` makes a file twice: two writers could then not be told apart. ``name``: of the file
        that this leaves.

        A link or a rename to a name that exists fails in every file system; a store that copies is asked.
        """
        return not self._files.renames and (self.create(name, b""), self.create(name, b""))[1]

    def list_folder(self, folder: str) -> list[FileInfo]:
        with self._explained("list", folder):
            return self._files.list_folder(self._at(folder))

    def read(self, name: str) -> bytes | None:
        with self._explained("read", name):
            return self._files.read(self._at(name))

    def create(self, name: str, data: bytes) -> bool:
        with self._explained("write", name):
            return self._files.create(self._at(name), data)

    def delete(self, name: str) -> None:
        with self._explained("delete", name):
            self._files.delete(self._at(name))

    @abstractmethod
    def _error(self, doing: str, place: str, failure: StorageFailure) -> TridentError:
        """Return the error of a failure. ``doing``: a verb; ``place``: the URI of the file or folder."""

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    @contextmanager
    def _explained(self, doing: str, name: str) -> Iterator[None]:
        try:
            yield
        except TridentError:
            raise
        except (OSError, RuntimeError, ValueError) as error:
            failure = self._files.explain(error)
            place = f"{self.where}/{name}" if name else self.where
            raise self._error(doing, place, failure) from failure.cause
