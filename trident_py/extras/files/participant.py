"""The driver's side of a FileState: which hidden files become visible, and the ledger that says so."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from states.ledger.fence import Fence
from states.ledger.owner import Owner
from states.ledger.protocol import Ledger
from states.ledger.store import LedgerStore, Trace

from ...errors import FailedException, StateError, TridentError
from ...model.context import RunContext
from . import clock, spark_listing
from .folder import HIDDEN, StateFolder
from .ledger import LEDGER, STAGING, DataFile, FileLedger, Record
from .names import (
    BATCHES,
    MANIFEST,
    batch_of,
    file_name,
    find_txid,
    folder_of,
    format_waiting_folder,
    parse_staged_name,
)
from .upkeep import Upkeep

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
    target, waiting = folder_of(BATCHES, txid).rstrip("/"), format_waiting_folder(txid)
    final, staging = _sizes(folder, target), _sizes(folder, STAGING)
    moving = any(staged in staging for staged, _ in files)  # then a folder of the final name is another decision's
    if not moving and all(final.get(file.name) == file.bytes for _, file in files):
        folder.sync("")  # who has renamed it may have died before
        return
    taken = f"{shown}: {target} is there already, and is not of this decision. Move it out of the folder"
    if moving and final:
        raise StateError(taken)
    there = _sizes(folder, waiting)
    moved = {file.name: there[name] for _, file in files if (name := f"{waiting}/{_last(file.name)}") in there}
    _check(files, {**moved, **staging}, txid, shown)
    _move(folder, {staged: f"{waiting}/{_last(file.name)}" for staged, file in files if staged in staging})
    for name in there.keys() - {f"{waiting}/{_last(file.name)}" for _, file in files}:
        folder.delete(name)  # of a decision that was withdrawn
    folder.sync(waiting)
    if not folder.rename_folder(waiting, target):
        raise StateError(taken)
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


log = logging.getLogger("trident_py")


class FileLedgerStore(FileLedger, LedgerStore[Record]):
    """The ledger of a folder that belongs to one state. The version that joins a checkpoint names the owner, too."""

    def __init__(self, folder: StateFolder, factory: Any, own: tuple[str, str]) -> None:
        super().__init__(folder)
        self._factory = factory
        self._own = own

    def trace(self) -> Trace:
        """Raise StateError for a folder that holds files and no ledger, or files of another format."""
        record, shown = self.read(), self._factory.shown
        if record is None:
            check_empty(self.folder, shown)
            return Trace()
        if record.format and record.format != self._factory.rows.name:
            raise StateError(
                f"the ledger of {shown} is one of {record.format} files, and the state would add "
                f"{self._factory.rows.name} files. "
                "Nothing was changed. Choose another folder"
            )
        if (record.topology, record.state) != self._own:
            return Trace()
        staged = (parse_staged_name(entry.name) for entry in self.folder.list_folder(STAGING))
        begun = max((each.txid for each in staged if each is not None and each.epoch == record.epoch), default=0)
        return Trace(record, record.txid, max(record.last, begun))

    def owners(self) -> Mapping[str, Owner | None]:
        return {self.folder.where: owner_of(self.read() or Record())}

    def claim(self, name: str, old: Owner | None, new: Owner) -> bool:
        return True


def owner_of(record: Record) -> Owner | None:
    return Owner(record.topology, record.state) if record.topology else None


class FileParticipant(Ledger[Record]):
    """Publishes batches in one order: files get their final names, the ledger names them, Spark's listing follows.

    A step that was done is found done when a batch is published again, by this driver or by the next one.
    """

    decides = True
    keeps_receipts = False
    row_type = Record

    def __init__(self, factory: Any) -> None:
        super().__init__(factory.location)
        self.factory = factory
        self._folder: StateFolder = factory.folder()
        self._written: Sequence[dict] = ()
        self._files: list[DataFile] = []
        self._swept = False
        self._upkeep = Upkeep(factory, self._folder, self)

    def _store_of(self, context: RunContext, ready: bool) -> FileLedgerStore:
        if ready:
            self._folder.check_conditional_write()
        return FileLedgerStore(self._folder, self.factory, (context.topology, context.state))

    def _fence_of(self, conf: dict) -> Fence | None:
        fence: Fence | None = self.factory.fence_of(conf)
        return fence

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Show the files of these receipts, once for a txid; it may be called again whenever its outcome is unknown.

        Raises FailedException if the store is away, ZombieError for an older driver, StateError if a file is missing.
        """
        self._join()
        before = self.fence.follows(self._store.read(), txid)
        if before.txid < txid:
            self._written = [receipt for receipt in receipts if receipt is not None and receipt["files"]]
            if len({receipt["partition"] for receipt in self._written}) < len(self._written):
                raise StateError(f"{self.factory.shown}: batch {txid} has two receipts from one partition")
            self._files = self._place(before, txid, self._written)
        super().publish(txid, attempt, receipts)
        record = self._known
        assert record is not None
        spark_listing.write(self._folder, record)
        self._sweep(before, record, txid, attempt)
        self._upkeep.keep(record)

    def measure_size(self) -> int:
        """Return the bytes of the files that the ledger names."""
        record = FileLedger(self._folder).read() or Record()
        return sum(file.bytes for file in record.files)

    def can_rewind(self, conf: dict, txid: int) -> str | None:
        record = self._store_of(RunContext.of(conf), ready=False).read() or Record()
        if began_anew(record.files):
            return "its folder has files of an earlier checkpoint, of which the later one has used txids again"
        across = next((file for file in record.files if file.first <= txid < file.last), None)
        return None if across is None else f"its batches {across.first} to {across.last} are in one file by compaction"

    def rewind(self, txid: int) -> None:
        """Take the files of later batches out of the ledger, and then out of the folder."""
        super().rewind(txid)
        record = self._known
        assert record is not None
        spark_listing.write(self._folder, record)
        known = {file.name for file in record.files} | {name for name, _ in record.replaced}
        names = {entry.name for entry in self._folder.list_folder("")} - known
        later = sorted(name for name in names if (find_txid(name) or 0) > txid)
        self._upkeep.delete(later)
        self._folder.sync("")

    def give_up(self, txid: int) -> bool:
        """Keep also a batch whose folder has its final name: readers have seen it."""
        if self.factory.visible == BATCHES and self._folder.list_folder(folder_of(BATCHES, txid).rstrip("/")):
            return False
        return super().give_up(txid)

    def abort(self, txid: int, attempt: int) -> None:
        """Delete the attempt's hidden files; if that fails, a later `publish` does."""
        try:
            if self._fence is not None:
                self._delete_staged(lambda each: each.txid == txid and each.generation <= self.fence.generation)
        except TridentError as error:
            log.info("batch %d: the hidden files of attempt %d will be deleted later: %s", txid, attempt, error)

    def _place(self, record: Record, txid: int, receipts: Sequence[dict]) -> list[DataFile]:
        """Return the batch's files, under their final names. Raises StateError, before any is moved, if one is
        missing."""
        visible, suffix = self.factory.visible, self.factory.rows.suffix
        files = pairs(visible, record, txid, receipts, suffix, clock.now())
        try:
            place(self._folder, visible, txid, files, self.factory.shown)
        except StateError:
            self.newest()  # a newer driver may have moved the files while this one slept
            raise
        return [file for _, file in files]

    def _complete(self, row: Record | None, txid: int, attempt: int) -> Record:
        record = super()._complete(row, txid, attempt)
        if record is row:
            return record
        columns = tuple(self._written[0]["columns"]) if self._written else record.columns
        listing = record.listing + 1 if self._files else record.listing
        return replace(record, files=(*record.files, *self._files), columns=columns, listing=listing)

    def _go_back(self, row: Record | None, txid: int) -> Record:
        """Go back. Readers by the ledger may still read a file that no longer counts; by its name, no other is made."""
        record = super()._go_back(row, txid)
        if record is row:
            return record
        later = [file for file in record.files if file.last > txid]
        files = tuple(file for file in record.files if file.last <= txid)
        gone = [(file.name, clock.now()) for file in later if self.factory.visible == MANIFEST]
        batches = self.factory.visible == BATCHES  # there a batch that runs anew has the folder of the one before
        waiting = [each for each in record.replaced if not batches or (find_txid(each[0]) or 0) <= txid]
        replaced, listing = (*waiting, *gone), record.listing + bool(later)
        return replace(record, files=files, replaced=replaced, listing=listing, epoch=record.epoch + 1)

    def _hand_over(self, row: Record | None) -> Record:
        """Make the folder this checkpoint's, and this state's."""
        assert self._tenure is not None
        record, own = super()._hand_over(row), self._tenure.own
        if record is row and self._tenure.stays(owner_of(record)):
            return record
        anew = row is not None and self._forgets(row)
        if anew and self.factory.visible == BATCHES:
            raise StateError(
                f"{self.factory.shown}: txids cannot begin anew in a folder that has a folder for each txid: "
                f"txid=1 is taken. Choose another folder, or visible={MANIFEST!r}"
            )
        mine = {"topology": own.topology, "state": own.state, "format": self.factory.rows.name}
        record = record.evolve() if record is row else record
        files = tuple(replace(file, first=0, last=0) for file in record.files) if anew else record.files
        return replace(record, **mine, epoch=record.epoch + anew, files=files)

    def _forgets(self, row: Record) -> bool:
        """Begin anew also after another state."""
        assert self._tenure is not None
        return row.topology != "" and (super()._forgets(row) or not self._tenure.stays(owner_of(row)))

    def _sweep(self, before: Record, record: Record, txid: int, attempt: int) -> None:
        """Delete what no driver needs any more: hidden files of this batch and of older ones; and, once in a run and
        after failed attempts, files of a decision that was withdrawn."""
        self._delete_staged(lambda each: (each.epoch, each.txid) <= (record.epoch, txid))
        if attempt > 0 or not self._swept:
            for name in strays(self._folder, self.factory.visible, before, record):
                self._folder.delete(name)
            self._swept = True

    def _delete_staged(self, which: Any) -> None:
        for entry in self._folder.list_folder(STAGING):
            found = parse_staged_name(entry.name)
            if found is not None and which(found):
                self._folder.delete(f"{STAGING}/{entry.name}")


def check_empty(folder: StateFolder, shown: str) -> None:
    """Raise StateError for a folder that holds files, and no ledger."""
    found = sorted(entry.name for entry in folder.list_folder("") if entry.name != HIDDEN)
    if found:
        raise StateError(
            f"{shown} holds {found[0]!r}{' and more' if len(found) > 1 else ''}, and no ledger of a FileState "
            f"({LEDGER}). Readers could not tell its rows from those files. Nothing was changed. Choose an empty "
            "folder, or restore the ledger"
        )


def began_anew(files: Sequence[DataFile]) -> bool:
    """Return whether the txids of files, in the order in which these were written, have begun anew, in a ledger that
    does not mark the files of an earlier checkpoint yet."""
    epochs = [batch[0] if (batch := batch_of(file.name)) is not None else None for file in files]
    return any(
        after.first < before.last or (after.first == before.last and None not in pair and pair[0] != pair[1])
        for (before, after), pair in zip(pairwise(files), pairwise(epochs), strict=True)
        if after.first
    )
