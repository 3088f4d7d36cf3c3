"""The log of a component, wherever its checkpoint is: the same files with the same content on both clusters.

    <checkpoints>/<topology name>/<component>/
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

from ..engine.startup import AGREEMENT
from ..engine.store_position import BASE, IN_MEMORY
from ..errors import DefinitionError, LineageError, TridentError
from .append_log import JOURNAL, AppendLogStore, entries_of, read_journal
from .batch_log import BatchLog
from .metadata_store import LOG, MemoryMetadataStore
from .versioned_store import Folder, VersionedStore

Place = str | os.PathLike[str]
_ONE_SLASH = re.compile(r"(?!file:)([a-z][a-z0-9+.-]+):/(?!/)", re.IGNORECASE)


def text_of(checkpoints: Place | None) -> str | None:
    """Return ``checkpoints=`` as text. Raises DefinitionError for what is neither a path nor a URI."""
    text = os.fspath(checkpoints) if isinstance(checkpoints, os.PathLike) else checkpoints
    if text is not None and not isinstance(text, str):
        raise DefinitionError(f"checkpoints is {checkpoints!r}; give a folder, or a URI as text")
    if match := _ONE_SLASH.match(text or ""):
        raise DefinitionError(f"checkpoints: {text!r} has one slash; give a URI as text, not as a Path: {match[1]}://")
    return text


def inside(topology: str, component: str) -> str:
    """Return the folder of a component's checkpoint."""
    return f"{quote(topology, safe=' ')}/{quote(component, safe=' ')}"


def local_folder(root: str) -> str | None:
    """Return the path on this machine that ``checkpoints=`` names: a plain path or ``file://``; None for any other
    URI."""
    if "://" not in root or root.startswith("file://"):
        return root.removeprefix("file://").removeprefix("file:")
    return None


def open_log(
    root: str | None,
    topology: str,
    component: str,
    order: Callable[[], Mapping[str, str]],
    open_folder: Callable[[str], Folder],
) -> BatchLog:
    """Return the log of a component. ``root``: a path of this machine, or a URI, which ``open_folder`` opens; None
    keeps a log in memory. ``order``: as of `BatchLog`. Raises TridentError if the place cannot be used."""
    if root is None:
        return BatchLog(MemoryMetadataStore(), IN_MEMORY, topology, order)
    local = local_folder(root)
    if local is not None:
        place = Path(local).absolute() / inside(topology, component)
        try:
            _refuse_copied_back(place)
            return BatchLog(AppendLogStore(place), str(place), topology, order)
        except OSError as error:
            raise TridentError(f"the checkpoint {place} cannot be used: {error}") from error
    folder = open_folder(f"{root.rstrip('/')}/{inside(topology, component)}")
    store = VersionedStore(folder)
    _adopt(folder, store)
    return BatchLog(store, folder.where, topology, order)


def read_log(
    root: str,
    topology: str,
    component: str,
    order: Callable[[], Mapping[str, str]],
    find_folder: Callable[[str], Folder],
) -> BatchLog:
    """Return the log of a component as it is now, to be read: the place is left as it is, also while a driver writes
    there. For arguments and errors see `open_log`."""
    local = local_folder(root)
    if local is not None:
        place = Path(local).absolute() / inside(topology, component)
        try:
            _refuse_copied_back(place)
            return BatchLog(read_journal(place), str(place), topology, order)
        except OSError as error:
            raise TridentError(f"the checkpoint {place} cannot be read: {error}") from error
    folder = find_folder(f"{root.rstrip('/')}/{inside(topology, component)}")
    store: MemoryMetadataStore = VersionedStore(folder)
    copied = folder.read(JOURNAL) if store.get(AGREEMENT, 0) is None else None
    if copied is not None:
        store = MemoryMetadataStore(entries_of(copied, f"{folder.where}/{JOURNAL}"))
    return BatchLog(store, folder.where, topology, order)


def _adopt(folder: Folder, store: VersionedStore) -> None:
    """Continue a checkpoint that was copied from a local folder. Its first record is written last: a copy that is
    interrupted is repeated."""
    copied = folder.read(JOURNAL)
    if copied is None:
        return
    entries = entries_of(copied, f"{folder.where}/{JOURNAL}")
    for path in entries:
        store.peek(path, 0)  # now, so that no write below goes over that of a driver that continues it meanwhile
    if store.get(AGREEMENT, 0) is not None:
        return
    for path in sorted(entries, key=lambda path: path == AGREEMENT):
        for txid, value in entries[path].items():
            store.put(path, txid, value)


def _refuse_copied_back(folder: Path) -> None:
    """Raise LineageError if the checkpoint has been in HDFS or S3: what was local before that is old now."""
    if (folder / LOG).is_dir():
        raise LineageError(
            f"the checkpoint {folder} was copied from HDFS or S3, where its files have other names. Go on there, or "
            f"move it away: the next start names the {BASE} with which a new one continues"
        )
