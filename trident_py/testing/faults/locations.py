"""The stores on which a topology is tried: each case gets an empty one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ...errors import DefinitionError
from ..databases import create_database, drop_database

StorePlace = str | Callable[[Path], AbstractContextManager[str]]
"""A store's kind, the URL of a database server, or a function that gives an empty store to a folder."""
MEMORY, ROOM = "/dev/shm", 1 << 30  # noqa: S108  a mount, in which own_folder makes its own
KINDS = ("sqlite", "files", "memory")


@contextmanager
def empty_store(store: StorePlace, folder: Path) -> Iterator[str]:
    """The URL of an empty store for one case, gone afterwards. Raises DefinitionError for an unknown kind."""
    if not isinstance(store, str):
        with store(folder) as url:
            yield url
    elif store == "sqlite":
        yield f"sqlite:///{folder}/store.sqlite"
    elif store == "files":
        yield f"file://{folder}/store"
    elif store == "memory":
        yield ""
    elif has_proxy(store) and "://" in store:
        url = create_database(store)
        try:
            yield url
        finally:
            drop_database(url)
    else:
        raise DefinitionError(
            f"stores: {store!r} is none; it is one of {', '.join(KINDS)}, the URL of a MySQL, MariaDB or PostgreSQL on "
            "which databases may be created, or a function of a folder"
        )


def scratch(prefix: str) -> tempfile.TemporaryDirectory[str]:
    """Return a folder for checkpoints and stores: in memory where there is room, unless TMPDIR names a place. What
    survives SIGKILL does so there, too, and a run syncs its files dozens of times."""
    room = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM
    return tempfile.TemporaryDirectory(prefix=prefix, dir=MEMORY if room and "TMPDIR" not in os.environ else None)


def name_of(store: StorePlace) -> str:
    """Return the store in reports and in --trident-point; without secrets."""
    if not isinstance(store, str):
        return store.__name__
    return store if "://" not in store else store.split("://")[0].split("+")[0] + "-url"


def has_proxy(url: str) -> bool:
    """Return whether connections to this store can be cut and its COMMIT be held."""
    return url.startswith(("mysql", "mariadb", "postgresql"))
