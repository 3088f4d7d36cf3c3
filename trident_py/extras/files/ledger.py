"""The ledger of a folder, also its manifest: one file for each version, whose number nobody else has taken."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from states.ledger.fence import Fence, LedgerRow
from states.ledger.format import NAME, check_format
from states.ledger.store import Transition, utc_now

from ...errors import FailedException, StateError
from ...filesystems.base import is_number
from ...model.json_text import parse_json
from .folder import HIDDEN, StateFolder

LEDGER = f"{HIDDEN}/ledger"
STAGING = f"{HIDDEN}/staging"
KEPT = 20
_TRIES = 20


@dataclass(frozen=True)
class DataFile:
    """A file whose rows count. ``name`` is relative to the folder; ``crc32`` in hexadecimal; ``first`` and ``last``:
    the txids whose rows it holds, 0 for those of an earlier checkpoint; ``time``: when the last of them became visible,
    in seconds since 1970."""

    name: str
    rows: int
    bytes: int
    crc32: str
    first: int
    last: int
    time: float = 0.0


@dataclass(frozen=True)
class Record(LedgerRow):
    """One version of the ledger.

    ``epoch`` counts how often the folder's txids were begun anew. ``columns``: those of the files, as DDL. ``listing``
    counts the versions that changed the files. ``replaced``: files that no longer count, and since when (seconds since
    1970): a reader of an older version may still read them.
    """

    version: int = 0
    by: str = ""
    topology: str = ""
    state: str = ""
    epoch: int = 0
    format: str = ""
    columns: tuple[str, ...] = ()
    listing: int = -1
    time: str = ""
    files: tuple[DataFile, ...] = ()
    replaced: tuple[tuple[str, float], ...] = ()

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    def evolve(self, **changes: Any) -> Record:
        made = {"version": self.version + 1, "by": secrets.token_hex(8), "time": utc_now("milliseconds")}
        return replace(self, **{**made, **changes})

    def encode(self) -> bytes:
        return json.dumps(asdict(self), indent=0).encode()

    @classmethod
    def decode(cls, data: bytes, shown: str) -> Record:
        """Raise ValueError, TypeError or KeyError for damaged content, StateError for a later format."""
        found = parse_json(data)
        check_format(shown, found.pop(NAME, None))
        files = tuple(DataFile(**each) for each in found.pop("files"))
        replaced = tuple((name, since) for name, since in found.pop("replaced"))
        return cls(**{**found, "columns": tuple(found["columns"])}, files=files, replaced=replaced)


class FileLedger:
    """The ledger of one folder."""

    def __init__(self, folder: StateFolder) -> None:
        self.folder = folder
        self._read: Record | None = None

    def read(self) -> Record | None:
        """Return the newest version; None if the folder has no ledger. Raises StateError for a damaged one."""
        for _ in range(_TRIES):
            numbers = self._numbers()
            if not numbers:
                return None
            if self._read is not None and self._read.version == numbers[-1]:
                return self._read
            data = self.folder.read(_name(numbers[-1]))
            if data is not None:  # else it was deleted since it was listed, as an old one
                self._read = self._decode(_name(numbers[-1]), data)
                return self._read
        raise FailedException(f"FileState: the ledger in {self.folder.where} changes faster than it can be read")

    def change(self, old: Record | None, new: Record, transition: Transition) -> bool:
        """Make the version ``new``, if ``old`` is there as it was and the number is free. In a folder that was restored
        from a copy, numbers are free again."""
        assert new.version == (0 if old is None else old.version) + 1, "a rule evolves a record once"
        if not self._is_there(old) or not self._try_create(new):
            return False
        self._read = new
        self._sweep(new.version)
        return True

    def _is_there(self, record: Record | None) -> bool:
        if record is None or record.version == 0:
            return True
        name = _name(record.version)
        data = self.folder.read(name)
        if data is not None and self._decode(name, data).by == record.by:
            return True
        self._read = None
        return False

    def _try_create(self, record: Record) -> bool:
        """Return whether this record is the newest version now. An answer may have been lost, and a writer that slept
        for long may have found its number free again."""
        name = _name(record.version)
        if not self.folder.create(name, record.encode()):
            found = self.folder.read(name)
            if found is None or self._decode(name, found).by != record.by:
                return False
        if max(self._numbers(), default=record.version) >= record.version + KEPT:
            self.folder.delete(name)
            return False
        return True

    def _numbers(self) -> list[int]:
        names = [entry.name.removesuffix(".json") for entry in self.folder.list_folder(LEDGER)]
        return sorted(int(name) for name in names if is_number(name))

    def _sweep(self, newest: int) -> None:
        for entry in self.folder.list_folder(LEDGER):
            number = entry.name.lstrip(".").partition(".")[0]  # a hidden name: of a driver that died in `create`
            if is_number(number) and int(number) <= newest - KEPT:
                self.folder.delete(f"{LEDGER}/{entry.name}")

    def _decode(self, name: str, data: bytes) -> Record:
        try:
            return Record.decode(data, f"FileState: {self.folder.where}")
        except (ValueError, TypeError, KeyError) as error:
            raise StateError(
                f"FileState: {self.folder.where}/{name} is damaged: {error}. Restore it from a copy; the version "
                "before it lacks the last batch"
            ) from error


@dataclass(frozen=True)
class FileFence(Fence):
    """What a task or a driver of one run must find in the ledger before it writes."""

    where: str = ""

    gone: ClassVar[str] = "its ledger in the folder is gone or older than this driver; the store was replaced"

    @property
    def shown(self) -> str:
        return f"{super().shown} in {self.where}"


def _name(number: int) -> str:
    return f"{LEDGER}/{number:020d}.json"
