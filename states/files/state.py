"""FileState: rows in files, one per batch and partition, exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from trident_py.chunks import arrow_type
from trident_py.errors import DefinitionError, StateError, TridentError
from trident_py.spouts.fileuris import shown_storage
from trident_py.state import BatchParticipant, Location, Needs, StateClass, StateFactory, StatePlace
from trident_py.tuples import Fields, FieldsLike

from ..findings import Finding
from ..rows import RowUpdater
from .formats import Format, RecordFormat, format_of
from .ledger import FileFence, Ledger, Record
from .participant import FileParticipant
from .partition import FilePartition, check_columns, schema_of
from .places import Settings, checked, location_of, needs_of, store_of
from .stores.base import FileStore

SYNC = ("batch", "never")
UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
LARGEST = 4 << 30  # S3 copies up to 5 GB in one request


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
    rotate: int | str = "1GB"
    sync: str = "batch"
    shared: bool = False
    kind: ClassVar[str] = "batch"

    def __post_init__(self) -> None:
        storage: Mapping[str, Any] = dict(self.storage)
        set_ = object.__setattr__
        set_(self, "uri", checked(str(self.uri), storage))
        set_(self, "storage", tuple(sorted(storage.items())))
        set_(self, "columns", None if self.columns is None else Fields.of(self.columns))
        if self.sync not in SYNC:
            raise DefinitionError(f"{self.shown}: sync must be one of {SYNC}, got {self.sync!r}")
        _ = self.rows, self.rotate_bytes
        if self.columns is not None:
            self._check_columns(Fields.of(self.columns))

    @property
    def rows(self) -> Format:
        """The format."""
        return format_of(self.format)

    @property
    def rotate_bytes(self) -> int:
        """From which size on a file is continued in another one."""
        size = bytes_of(self.rotate)
        if size is None or not 0 < size <= LARGEST:
            raise DefinitionError(
                f"{self.shown}: rotate must be a number of bytes up to 4GB, or a text such as '128MB'; got "
                f"{self.rotate!r}"
            )
        return size

    @property
    def shown(self) -> str:
        return f"folder {self.uri}"

    @property
    def stateName(self) -> str:
        return self.uri.rstrip("/").rpartition("/")[2]

    @property
    def location(self) -> Location:
        return location_of(self.uri)

    @property
    def needs(self) -> Needs:
        return needs_of(self.uri, dict(self.storage), self.shared)

    @property
    def state_type(self) -> StateClass:
        return FilePartition

    @property
    def own_updater(self) -> RowUpdater:
        return RowUpdater()

    def store(self) -> FileStore:
        settings: Settings = self.storage
        return store_of(self.uri, settings, self.sync == "batch")

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> FilePartition:
        return FilePartition(self, FileFence.of(conf, self.store().where), partitionIndex)

    def participant(self) -> BatchParticipant:
        """Returns the state's driver side for one run; it shows the batches."""
        return FileParticipant(self)

    def check_place(self, place: StatePlace) -> None:
        """Raises DefinitionError for a query behind the update: the rows are shown only when the batch is over."""
        if place.queries:
            raise DefinitionError(
                f"{self.shown}: a query follows the update of state {place.state!r} in the same batch, and must see "
                "the rows of the batch; but a FileState shows its rows when all partitions are done, and answers no "
                "queries. Read its files in another program"
            )

    def check(self) -> Sequence[Finding]:
        """Looks at the folder and writes nothing."""
        record = self.newest()
        if record is None:
            return [Finding("creates", f"{self.shown} with its ledger")]
        return [Finding("ok", f"{self.shown}: batch {record.txid}, {len(record.files)} files, {record.rows} rows")]

    def declared(self, fields: Fields) -> Fields:
        """The columns of the files: ``columns``, else the fields of the tuples. Raises StateError."""
        columns = fields if self.columns is None else Fields.of(self.columns)
        if missing := [name for name in columns if name not in fields]:
            raise StateError(f"{self.shown} needs the columns {', '.join(missing)}; the tuples have {fields}")
        if self.rows.typed:
            check_columns(self.rows, columns, self.shown)
        return columns

    def newest(self) -> Record | None:
        """The newest version of the folder's ledger; None if there is none. Opens the store."""
        return Ledger(self.store()).newest()

    def read(self) -> Iterator[tuple]:
        """The rows of all complete batches, file by file."""
        record = self.newest()
        if record is not None:
            schema = schema_of(Fields.of(list(record.columns)))
            for file in record.files:
                with self.store().open(file.name) as opened:
                    yield from self.rows.read(opened, schema)

    def stored(self) -> dict[tuple, Any]:
        """Returns all rows and how often each is stored; of a format of one's own: its lines."""
        return dict(Counter(self.read()))

    def _check_columns(self, columns: Fields) -> None:
        try:
            for ddl in columns.types.values():
                arrow_type(ddl)
            if self.rows.typed:
                check_columns(self.rows, columns, self.shown)
        except TridentError as error:
            raise DefinitionError(str(error)) from None

    def __repr__(self) -> str:
        storage = f", storage={shown_storage(dict(self.storage))}" if self.storage else ""
        more = f", columns={self.columns!r}" if self.columns is not None else ""
        return f"FileState({self.uri!r}, format={self.format!r}{more}{storage}, rotate={self.rotate!r})"


def bytes_of(value: int | str) -> int | None:
    """The number of bytes of 1000 or "128MB"; None for something else."""
    if isinstance(value, int):
        return None if isinstance(value, bool) else value
    text = value.strip().upper()
    number = text.rstrip("KMGB").strip()
    unit = text[len(text.rstrip("KMGB")) :]
    return int(number) * UNITS[unit] if number.isdigit() and unit in UNITS else None
