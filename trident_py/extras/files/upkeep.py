"""Compaction and retention, on the driver, after a batch has become visible. Both are one new version of the ledger."""

from __future__ import annotations

import logging
import secrets
import zlib
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import islice
from typing import Any

from states.ledger.protocol import Ledger

from ...errors import StateError, TridentError, ZombieError
from ...tuples import Fields
from . import clock, spark_listing
from .folder import StateFolder
from .ledger import STAGING, DataFile, Record
from .names import BATCHES, format_merged_name, is_merged
from .partition import schema_of

log = logging.getLogger("trident_py")
_OWN = ("merged-", "expired-")
AT_LEAST = 8
"""How many files are merged at once, at least."""
LARGEST = 4 << 30  # S3 copies up to 5 GB in one request


class Upkeep:
    """The upkeep of one folder by one driver, whose side of the ledger is ``ledger``."""

    def __init__(self, factory: Any, folder: StateFolder, ledger: Ledger[Record]) -> None:
        self._factory = factory
        self._folder = folder
        self._ledger = ledger
        self._tidied = False

    def keep(self, record: Record) -> None:
        """Do what is due. What fails is logged and tried again after the next batch: the batch is visible already.
        Raises ZombieError for an older driver."""
        for step in (self._expire, self._compact, self._delete_replaced, self._tidy):
            try:
                record = step(record)
            except ZombieError:
                raise
            except TridentError as error:
                log.warning("%s: upkeep is tried again after the next batch: %s", self._factory.shown, error)
                if not isinstance(error, StateError):
                    return  # the store is away; a damaged file stops what needs it

    def _expire(self, record: Record) -> Record:
        """Return the ledger without the batches that are older than ``retention``."""
        seconds = self._factory.retention_seconds
        if seconds is None:
            return record
        old = [file for file in record.files if file.time <= clock.now() - seconds]
        return self._without(old, []) if old else record

    def _compact(self, record: Record) -> Record:
        target = self._factory.compact_bytes
        small = None if target is None else due(record.files, target)
        if not small:
            return record
        return self._without(small, [self._merge(record, small)])

    def _without(self, gone: Sequence[DataFile], instead: Sequence[DataFile]) -> Record:
        def change(old: Record) -> Record:
            record, names = self._ledger.fence.newest(old), {file.name for file in gone}
            if not names <= {file.name for file in record.files}:
                return old
            at = min(number for number, file in enumerate(record.files) if file.name in names)
            left = [file for file in record.files if file.name not in names]
            files = (*left[:at], *instead, *left[at:])
            replaced = (*record.replaced, *((file.name, clock.now()) for file in gone))
            return record.evolve(files=files, replaced=replaced, listing=record.listing + 1)

        record = self._ledger.change(change)
        spark_listing.write(self._folder, record)
        return record

    def _merge(self, record: Record, small: Sequence[DataFile]) -> DataFile:
        """Return one file with the rows of all these, under its final name. Raises StateError if one of them is
        damaged."""
        factory = self._factory
        token, first, last = secrets.token_hex(8), small[0].first, small[-1].last
        name = format_merged_name(first, last, token, factory.rows.suffix)
        staged = f"{STAGING}/{_OWN[0]}{token}{factory.rows.suffix}"
        try:
            with self._folder.open_writer(staged) as out:
                factory.rows.merge(self._contents(small), schema_of(Fields.of(list(record.columns))), out)
            self._folder.rename(staged, name)
            self._folder.sync("")
        finally:
            self._folder.delete(staged)
        rows, time = sum(file.rows for file in small), max(file.time for file in small)
        return DataFile(name, rows, out.size, f"{out.crc:08x}", first, last, time)

    def _contents(self, files: Sequence[DataFile]) -> Iterator[Any]:
        for file in files:
            with self._folder.open(file.name) as opened:
                data = opened.read()
            if f"{zlib.crc32(data):08x}" != file.crc32:
                raise StateError(f"{self._folder.where}/{file.name} is damaged: its checksum is not the one written")
            yield BytesIO(data)

    def _delete_replaced(self, record: Record) -> Record:
        """Delete the files that have not counted for ``grace`` seconds."""
        over = clock.now() - self._factory.grace_seconds
        gone = {name for name, since in record.replaced if since <= over}
        if gone:
            self.delete(sorted(gone))
            fence = self._ledger.fence
            return self._ledger.change(lambda old: fence.newest(old).evolve(replaced=_other(old.replaced, gone)))
        return record

    def _tidy(self, record: Record) -> Record:
        """Delete, once in a run, what a driver that died in its upkeep has left.

        The names are listed before the fence is checked: if this driver is then still the newest, no other one has
        made a file that is listed and not yet in the ledger.
        """
        if self._tidied:
            return record
        names = [entry.name for entry in self._folder.list_folder("") if is_merged(entry.name)]
        staged = [entry.name for entry in self._folder.list_folder(STAGING) if entry.name.startswith(_OWN)]
        record = self._ledger.newest()
        counted = {file.name for file in record.files} | {name for name, _ in record.replaced}
        for name in [*(name for name in names if name not in counted), *(f"{STAGING}/{name}" for name in staged)]:
            self._folder.delete(name)
        self._tidied = True
        return record

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; of a batch with a folder of its own the folder, which is out of sight in one step."""
        if self._factory.visible != BATCHES:
            for name in names:
                self._folder.delete(name)
            return
        for folder in sorted({name.partition("/")[0] for name in names}):
            away = f"{STAGING}/{_OWN[1]}{folder}"
            self._folder.rename_folder(folder, away)
            self._folder.sync("")
            self._folder.delete(away)


def _other(replaced: tuple[tuple[str, float], ...], gone: set[str]) -> tuple[tuple[str, float], ...]:
    return tuple(each for each in replaced if each[0] not in gone)


def due(files: Sequence[DataFile], target: int) -> list[DataFile]:
    """Neighbouring files, smaller than ``target``, that are to become one; none if there are too few.

    A file that is larger than all behind it together is left out: so a row is copied a few times, not once per batch.
    """
    for at in range(len(files) - AT_LEAST + 1):
        run = _run(files, at, target)
        if len(run) >= AT_LEAST and run[0].bytes <= sum(file.bytes for file in run[1:]):
            return run
    return []


def _run(files: Sequence[DataFile], at: int, target: int) -> list[DataFile]:
    """Return the small files from here on, until they are large enough together."""
    run: list[DataFile] = []
    size = 0
    for file in islice(files, at, None):
        if file.bytes >= target or size >= target or size + file.bytes > LARGEST:
            break
        run.append(file)
        size += file.bytes
    return run
