"""The driver's side of a FileState: which hidden files become visible, and the ledger that says so."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trident_py.errors import StateError, TridentError
from trident_py.model.context import RunContext
from trident_py.state import BatchParticipant, Remembered

from ..ledger.owner import Owner, Tenure
from . import clock, publisher, spark_listing
from .folder import HIDDEN, StateFolder
from .ledger import LEDGER, STAGING, DataFile, FileFence, FileLedger, Record
from .names import BATCHES, MANIFEST, parse_staged_name
from .upkeep import Upkeep

log = logging.getLogger("trident_py")


class FileParticipant(BatchParticipant):
    """Publishes batches in one order: files get their final names, the ledger names them, Spark's listing follows.

    A step that was done is found done when a batch is published again, by this driver or by the next one.
    """

    decides = True

    def __init__(self, factory: Any) -> None:
        self.factory = factory
        self._folder: StateFolder = factory.folder()
        self._ledger = FileLedger(self._folder)
        self._fence: FileFence | None = None
        self._joins: tuple[int, bool] | None = None
        self._tenure: Tenure | None = None
        self._swept = False
        self._upkeep = Upkeep(factory, self._folder, self._ledger)

    @property
    def fence(self) -> FileFence:
        if self._fence is None:
            raise StateError(f"{self.factory.shown}: the driver does not know its run: call open() first")
        return self._fence

    def remembered(self, conf: dict) -> Remembered:
        """Read the ledger and the hidden names. Raises StateError if another state owns the folder, or if it holds
        files and no ledger."""
        where, context = self.factory.location.shown, RunContext.of(conf)
        record = self._ledger.newest()
        if record is None:
            check_empty(self._folder, self.factory.shown)
            return Remembered(where)
        owner = Owner(record.topology, record.state) if record.topology else None
        Tenure.of(self.factory.location, conf).stays(owner)
        self._check_format(record)
        if owner is None or owner != Owner(context.topology, context.state):
            return Remembered(where)
        staged = (parse_staged_name(entry.name) for entry in self._folder.list_folder(STAGING))
        begun = max((each.txid for each in staged if each is not None and each.epoch == record.epoch), default=0)
        return Remembered(where, record.lineage, record.txid, last=max(record.last, begun), run=record.run)

    def open(self, conf: dict) -> int:
        """Take over: raises the generation. From now on no older driver changes the ledger."""
        context = RunContext.of(conf)
        self._tenure = Tenure.of(self.factory.location, conf)
        self._joins = context.txid, context.forget
        self._folder.check_conditional_write()
        record = self._ledger.change(lambda old: replace(old, generation=old.generation + 1, attempt=0))
        own = context.topology, context.state, record.generation, context.lineage
        self._fence = FileFence(*own, run=context.run, where=self._folder.where)
        self._upkeep.fence = self._fence
        return record.generation

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        """Make the folder this checkpoint's before the first batch of a run. Shuts out earlier attempts."""
        if self._fence is None:
            return
        self._join()
        if attempt > 0:
            self._ledger.change(lambda old: self._begun(old, txid, attempt))
        else:
            self.fence.follows(self._ledger.newest(), txid)

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Show the files of these receipts, once for a txid; it may be called again whenever its outcome is unknown.

        Raises FailedException if the store is away, ZombieError for an older driver, StateError if a file is missing.
        """
        self._join()
        before = record = self.fence.follows(self._ledger.newest(), txid)
        if record.txid < txid:
            written = [receipt for receipt in receipts if receipt is not None and receipt["files"]]
            if len({receipt["partition"] for receipt in written}) < len(written):
                raise StateError(f"{self.factory.shown}: batch {txid} has two receipts from one partition")
            files = self._place(record, txid, written)
            record = self._ledger.change(lambda old: self._complete(old, txid, files, written))
        spark_listing.write(self._folder, record)
        self._sweep(before, record, txid, attempt)
        self._upkeep.keep(record)

    def _join(self) -> None:
        """Run once, before the first batch or the end of one that was decided."""
        if self._joins is not None:
            self._ledger.change(self._join_record)
            self._joins = None

    def published(self, txid: int) -> bool:
        """Return whether the ledger has the batch as complete."""
        return self.fence.newest(self._ledger.newest()).txid >= txid

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
        files = publisher.pairs(visible, record, txid, receipts, suffix, clock.now())
        try:
            publisher.place(self._folder, visible, txid, files, self.factory.shown)
        except StateError:
            self.fence.newest(self._ledger.newest())  # a newer driver may have moved the files while this one slept
            raise
        return [file for _, file in files]

    def _complete(self, old: Record, txid: int, files: list[DataFile], receipts: Sequence[dict]) -> Record:
        record = self.fence.follows(old, txid)
        if record.txid >= txid:
            return old
        columns = tuple(receipts[0]["columns"]) if receipts else record.columns
        listing = record.listing + 1 if files else record.listing
        return replace(record, txid=txid, files=(*record.files, *files), columns=columns, listing=listing)

    def _begun(self, old: Record, txid: int, attempt: int) -> Record:
        record = self.fence.follows(old, txid)
        if record.started > txid or (record.started == txid and record.attempt >= attempt):
            return old
        return replace(record, started=txid, attempt=attempt)

    def _join_record(self, old: Record) -> Record:
        """Return the record of a folder that belongs to this checkpoint, which has committed ``txid``."""
        assert self._joins is not None and self._tenure is not None
        record, (txid, forget), own = self.fence.newest(old), self._joins, self._tenure.own
        stays = self._tenure.stays(Owner(record.topology, record.state) if record.topology else None)
        ours = record.lineage, record.run
        if stays and ours == (self.fence.lineage, self.fence.token) and record.txid >= txid:
            return old
        anew = record.topology != "" and ((forget and record.lineage != self.fence.lineage) or not stays)
        if anew and self.factory.visible == BATCHES:
            raise StateError(
                f"{self.factory.shown}: txids cannot begin anew in a folder that has a folder for each txid: "
                f"txid=1 is taken. Choose another folder, or visible={MANIFEST!r}"
            )
        over, started = (txid, 0) if anew else (max(record.txid, txid), record.started)
        return replace(
            record, topology=own.topology, state=own.state, lineage=self.fence.lineage, txid=over, started=started,
            epoch=record.epoch + anew, format=self.factory.rows.name, run=self.fence.token,
        )  # fmt: skip

    def _sweep(self, before: Record, record: Record, txid: int, attempt: int) -> None:
        """Delete what no driver needs any more: hidden files of this batch and of older ones; and, once in a run and
        after failed attempts, files of a decision that was withdrawn."""
        self._delete_staged(lambda each: (each.epoch, each.txid) <= (record.epoch, txid))
        if attempt > 0 or not self._swept:
            for name in publisher.strays(self._folder, self.factory.visible, before, record):
                self._folder.delete(name)
            self._swept = True

    def _delete_staged(self, which: Any) -> None:
        for entry in self._folder.list_folder(STAGING):
            found = parse_staged_name(entry.name)
            if found is not None and which(found):
                self._folder.delete(f"{STAGING}/{entry.name}")

    def _check_format(self, record: Record) -> None:
        if record.format and record.format != self.factory.rows.name:
            raise StateError(
                f"{self.factory.shown} holds {record.format} files, and the state would add {self.factory.rows.name} "
                "files. Nothing was changed. Choose another folder"
            )


def check_empty(folder: StateFolder, shown: str) -> None:
    """Raise StateError for a folder that holds files, and no ledger."""
    found = sorted(entry.name for entry in folder.list_folder("") if entry.name != HIDDEN)
    if found:
        raise StateError(
            f"{shown} holds {found[0]!r}{' and more' if len(found) > 1 else ''}, and no ledger of a FileState "
            f"({LEDGER}). Readers could not tell its rows from those files. Nothing was changed. Choose an empty "
            "folder, or restore the ledger"
        )
