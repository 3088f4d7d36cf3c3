"""Gives the files of a decided batch their final names. Every step that was done is found done by who comes next."""

from __future__ import annotations

from collections.abc import Sequence

from trident_py.errors import FailedException, StateError

from .folder import StateFolder
from .ledger import STAGING, DataFile, Record
from .names import BATCHES, batch_of, file_name, folder_of, waiting_folder

Pairs = list[tuple[str, DataFile]]
"""Hidden names, and what becomes of them."""


def pairs(visible: str, record: Record, txid: int, receipts: Sequence[dict], suffix: str, now: float) -> Pairs:
    """Return the files that the receipts name. The order is that of partitions, then of files."""
    made = []
    for receipt in sorted(receipts, key=lambda receipt: receipt["partition"]):
        for number, (staged, rows, size, crc) in enumerate(receipt["files"]):
            name = file_name(visible, record.epoch, txid, receipt["partition"], number, suffix)
            file = DataFile(folder_of(visible, txid) + name, rows, size, crc, txid, txid, now)
            made.append((staged, file))
    return made


def place(folder: StateFolder, visible: str, txid: int, files: Pairs, shown: str) -> None:
    """Make the files of a batch visible in its folder. Raises StateError, before any is, if one is missing."""
    if not files:
        return
    if visible == BATCHES:
        _place_folder(folder, txid, files, shown)
        return
    staging = _sizes(folder, STAGING)
    placed = {} if all(staged in staging for staged, _ in files) else _sizes(folder, "")
    _check(files, {**placed, **staging}, txid, shown)
    _move(folder, {staged: file.name for staged, file in files if staged in staging})
    folder.sync("")


def _place_folder(folder: StateFolder, txid: int, files: Pairs, shown: str) -> None:
    """Collect the files in a hidden folder, which then gets its final name in one step."""
    target, waiting = folder_of(BATCHES, txid).rstrip("/"), waiting_folder(txid)
    final = _sizes(folder, target)
    if all(final.get(file.name) == file.bytes for _, file in files):
        return
    staging, there = _sizes(folder, STAGING), _sizes(folder, waiting)
    moved = {file.name: there[name] for _, file in files if (name := f"{waiting}/{_last(file.name)}") in there}
    _check(files, {**moved, **staging}, txid, shown)
    _move(folder, {staged: f"{waiting}/{_last(file.name)}" for staged, file in files if staged in staging})
    for name in there.keys() - {f"{waiting}/{_last(file.name)}" for _, file in files}:
        folder.delete(name)  # of a decision that was withdrawn
    folder.sync(waiting)
    folder.rename_folder(waiting, target)
    folder.sync("")


def strays(folder: StateFolder, visible: str, before: Record, after: Record) -> list[str]:
    """Return files under final names that no version of the ledger has named: a batch that was decided and then given
    up left them. Only batches between the two versions are looked at."""
    counted = {file.name for file in after.files}
    found = []
    for entry in folder.list_folder("") if visible != BATCHES else []:
        batch = batch_of(entry.name)
        if batch is not None and batch[0] == after.epoch and before.txid < batch[1] <= after.txid:
            found.append(entry.name)
    return [name for name in found if name not in counted]


def _move(folder: StateFolder, names: dict[str, str]) -> None:
    for staged, name in names.items():
        if not folder.rename(staged, name):
            raise FailedException(f"FileState: {folder.where}/{staged} was moved by another driver of this batch")


def _check(files: Pairs, sizes: dict[str, int], txid: int, shown: str) -> None:
    for staged, file in files:
        size = sizes.get(staged, sizes.get(file.name))
        if size == file.bytes:
            continue
        found = "is gone" if size is None else f"has {size} bytes"
        raise StateError(
            f"{shown}: batch {txid}: the hidden file {staged} {found}; its task wrote {file.bytes} bytes. Nothing of "
            "the batch is visible. The folder was changed by another program, or the task wrote into another folder "
            "of this name: a local folder must be one for all machines"
        )


def _sizes(folder: StateFolder, below: str) -> dict[str, int]:
    prefix = f"{below}/" if below else ""
    return {f"{prefix}{info.name}": info.size for info in folder.list_folder(below)}


def _last(name: str) -> str:
    return name.rpartition("/")[2]
