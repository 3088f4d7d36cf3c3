"""FileState: rows in files, one per batch and partition, exactly once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from states.diagnostics import Finding
from states.rows import RowUpdater

from ...errors import DefinitionError, StateError, TridentError
from ...filesystems.uris import show_storage
from ...model.chunks import arrow_type
from ...state import BatchParticipant, Location, Needs, StateFactory, StatePlace
from ...state.roles import StoredRows
from ...tuples import Fields, FieldsLike
from .folder import StateFolder, can_rename_folders, location_of, needs_of, normalize_uri, open_folder
from .formats import FileFormat, RecordFormat, format_of
from .ledger import FileFence, FileLedger, Record
from .names import BATCHES, FILES, MANIFEST, VISIBLE
from .participant import FileParticipant, check_empty
from .partition import FilePartition, check_columns, schema_of
from .upkeep import LARGEST

SIZES = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}
TIMES = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_AMOUNT = re.compile(r"\s*(\d+)\s*([a-z]*)\s*", re.IGNORECASE)


def amount(name: str, value: float | str, units: Mapping[str, int], most: int | None = None, least: int = 1) -> int:
    """Raise DefinitionError for something else than an amount between these bounds."""
    match = None if isinstance(value, bool) else _AMOUNT.fullmatch(str(value))
    if match is not None and match[2].lower() in units:
        found = int(match[1]) * units[match[2].lower()]
        if least <= found and (most is None or found <= most):
            return found
    known = ", ".join(unit for unit in units if unit)
    upto = f", up to {most}" if most is not None else ""
    raise DefinitionError(f"{name} must be a whole number from {least} on{upto}, with one of {known}; got {value!r}")


SYNC = ("batch", "never")


@dataclass(frozen=True, repr=False)
class FileState(StateFactory):
    """Rows in the files of one folder, written by `RowUpdater`: each batch and partition has files of its own.

    The counterpart of Storm's HdfsState. ``uri``: a local folder, ``hdfs://`` or ``s3://``, with ``storage`` as for
    `FileSpout`. ``format``: "parquet", "csv", "json", or a `RecordFormat`. ``columns``: the fields of a row with their
    types; default: the fields of the tuples, which must be typed. ``rotate``: a partition whose file is this large goes
    on in another one ("128MB", or bytes). ``sync``: "batch" returns from a commit only when files and folders are on
    disk, "never" leaves that to the operating system. ``shared``: a local folder is one network file system that all
    machines have mounted.

    Tasks write hidden files. When all have, the driver gives them their final names ``part-<txid>-<partition>``, and
    one new version of the ledger names them: readers by the ledger, or by Spark's list that follows it, see a batch at
    once or not at all. docs/files_state.md says what others see.
    On replay: the ledger tells whether the batch is visible. If it is, the rows are not written again; if not, exactly
    the files of the tasks that succeeded now become visible, whatever other attempts have left.
    """

    uri: str
    format: str | RecordFormat = "parquet"
    columns: FieldsLike | None = None
    storage: Any = ()
    visible: str = FILES
    rotate: int | str = "1GB"
    compact: int | str | None = None
    retention: float | str | None = None
    grace: float | str = "1h"
    sync: str = "batch"
    shared: bool = False
    kind: ClassVar[str] = "batch"
    own_updater = RowUpdater()
    state_type = FilePartition

    def __post_init__(self) -> None:
        storage: Mapping[str, Any] = dict(self.storage)
        set_ = object.__setattr__
        set_(self, "uri", normalize_uri(str(self.uri), storage))
        set_(self, "storage", tuple(sorted(storage.items())))
        set_(self, "columns", None if self.columns is None else Fields.of_columns(self.columns))
        if self.sync not in SYNC:
            raise DefinitionError(f"{self.shown}: sync must be one of {SYNC}, got {self.sync!r}")
        self._check_visible()
        _ = self.rows, self.rotate_bytes, self.compact_bytes, self.retention_seconds, self.grace_seconds
        if self.columns is not None:
            self._check_columns(Fields.of(self.columns))

    @property
    def rows(self) -> FileFormat:
        """The format."""
        return format_of(self.format)

    @property
    def rotate_bytes(self) -> int:
        """From which size on a file is continued in another one."""
        return amount(f"{self.shown}: rotate", self.rotate, SIZES, LARGEST)

    @property
    def compact_bytes(self) -> int | None:
        """The size of the files that compaction makes; None: no compaction."""
        return None if self.compact is None else amount(f"{self.shown}: compact", self.compact, SIZES, LARGEST)

    @property
    def retention_seconds(self) -> int | None:
        """How long rows stay; None: for ever."""
        return None if self.retention is None else amount(f"{self.shown}: retention", self.retention, TIMES)

    @property
    def grace_seconds(self) -> int:
        """How long a file that no longer counts stays for readers who have begun."""
        return amount(f"{self.shown}: grace", self.grace, TIMES, least=0)

    @property
    def shown(self) -> str:
        return f"folder {self.uri}"

    @property
    def stateName(self) -> str:
        return self.uri.rstrip("/").rpartition("/")[2]

    @property
    def row_fields(self) -> Fields:
        return Fields.of(self.columns)

    @property
    def location(self) -> Location:
        return location_of(self.uri)

    @property
    def needs(self) -> Needs:
        return needs_of(self.uri, dict(self.storage), self.shared)

    def folder(self) -> StateFolder:
        return open_folder(self.uri, self.storage, self.sync == "batch")

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> FilePartition:
        return FilePartition(self, self.fence_of(conf), partitionIndex)

    def fence_of(self, conf: dict) -> FileFence | None:
        """Return the fence of a run; None if no cluster runs the state."""
        fence = FileFence.of(conf)
        return None if fence is None else replace(fence, where=self.folder().where)

    def participant(self) -> BatchParticipant:
        return FileParticipant(self)

    def check_place(self, place: StatePlace) -> None:
        if place.queries:
            raise DefinitionError(
                f"{self.shown}: a query follows the update of state {place.state!r} in the same batch, and must see "
                "the rows of the batch; but a FileState shows its rows when all partitions are done, and answers no "
                "queries. Read its files in another program"
            )
        if self.columns is None and isinstance(place.updater, RowUpdater):
            self._check_columns(place.fields)

    def check(self) -> Sequence[Finding]:
        record = self.newest()
        if record is None:
            try:
                check_empty(self.folder(), self.shown)
            except StateError as error:
                return [Finding("error", str(error))]
            return [Finding("creates", f"{self.shown} with its ledger")]
        return [Finding("ok", f"{self.shown}: batch {record.txid}, {len(record.files)} files, {record.rows} rows")]

    def declare_columns(self, fields: Fields) -> Fields:
        """Return the columns of the files: ``columns``, else the fields of the tuples. Raises StateError."""
        columns = fields if self.columns is None else Fields.of(self.columns)
        if missing := [name for name in columns if name not in fields]:
            raise StateError(f"{self.shown} needs the columns {', '.join(missing)}; the tuples have {fields}")
        self._check_declared(columns)
        return columns

    def newest(self) -> Record | None:
        """Return the newest version of the folder's ledger; None if there is none. Opens the folder."""
        return FileLedger(self.folder()).read()

    def read(self) -> Iterator[tuple]:
        """Yield the rows of all complete batches, file by file."""
        record = self.newest()
        return (row for _, row in self._rows_of(record)) if record is not None else iter(())

    def open_rows(self) -> StoredRows:
        record = self.newest()
        if record is None:
            return StoredRows(Fields(), Fields(), None, (), batched=True)
        columns = Fields.of(list(record.columns)) if self.rows.typed else Fields("record")
        return StoredRows(Fields(), columns, None, self._rows_of(record), batched=True)

    def _rows_of(self, record: Record) -> Iterator[tuple[int, tuple]]:
        """Yield the rows, each with the last txid whose rows its file holds."""
        schema = schema_of(Fields.of(list(record.columns)))
        for file in record.files:
            with self.folder().open(file.name) as opened:
                for row in self.rows.read(opened, schema):
                    yield file.last, row

    def stored(self) -> dict[tuple, Any]:
        """Return all rows and how often each is stored; of a format of one's own: its lines."""
        return dict(Counter(self.read()))

    def _check_visible(self) -> None:
        if self.visible not in VISIBLE:
            raise DefinitionError(f"{self.shown}: visible must be one of {VISIBLE}, got {self.visible!r}")
        if self.visible == BATCHES and not can_rename_folders(self.uri):
            raise DefinitionError(
                f"{self.shown}: this store cannot rename a folder in one step, so a reader who lists it could see a "
                f"part of a batch. Use visible={MANIFEST!r}, or {FILES!r}"
            )
        if self.compact is not None and self.visible != MANIFEST:
            raise DefinitionError(
                f"{self.shown}: compaction replaces many files by one, and a reader who lists the folder would see "
                f"rows twice or not at all. Use visible={MANIFEST!r}, where Spark reads by its list and others by the "
                "ledger"
            )

    def _check_columns(self, columns: Fields) -> None:
        try:
            for ddl in columns.types.values():
                arrow_type(ddl)
            self._check_declared(columns)
        except TridentError as error:
            raise DefinitionError(str(error)) from None

    def _check_declared(self, columns: Fields) -> None:
        """Raise StateError for columns that the files cannot have."""
        if self.rows.typed:
            check_columns(self.rows, columns, self.shown)
        if self.visible == BATCHES and "txid" in columns:
            raise StateError(
                f"{self.shown}: the column 'txid' is the name of the batches' folders, which readers take for a "
                f"column. Rename it, or use visible={FILES!r}"
            )

    def __repr__(self) -> str:
        storage = f", storage={show_storage(dict(self.storage))}" if self.storage else ""
        more = f", columns={self.columns!r}" if self.columns is not None else ""
        options = [(name, vars(self)[name]) for name in ("visible", "rotate", "compact", "retention", "grace", "sync")]
        told = "".join(f", {name}={value!r}" for name, value in options)
        return f"FileState({self.uri!r}, format={self.format!r}{more}{storage}{told})"
