"""Rows under a deterministic key: each is inserted once, however often it comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from trident_py.errors import DefinitionError
from trident_py.state import BatchParticipant, StateClass
from trident_py.tuples import Fields, FieldsLike

from .columns import decoded
from .ledger import Fence, Ledger
from .rejects import SUFFIX
from .rows import InsertIgnoreRows
from .rowtable import RowFactory, row_shape
from .store import parsed, shown
from .table import Shape, existing


@dataclass(frozen=True, repr=False)
class InsertIgnoreState(RowFactory):
    """Rows with a deterministic key in one SQL table, written by `RowUpdater`.

    ``key`` names the key's fields, ``columns`` all fields of a row (None: those of the table, or the fields
    of the tuples if it is missing). Types come from ``columns`` or ``key`` or from the table.
    On replay: rows that are there are ignored, so every row is stored exactly once.

    Only a row whose key is there is ignored, of equal keys in a batch the first stands. Everything else that the
    table objects to is a StateError that names row, column and cause, and nothing of the batch is written; with
    ``onBadRow="dead-letter"`` such a row goes to ``<table>_rejected`` in the same transaction and the others are
    written. ``onConflict`` says what a row is that has the key of another one and other values: "ignore" drops it
    like any duplicate, "fail" stops the batch, "report" drops and counts it, and logs the first few as warnings of
    the logger ``states.sql``.

    The receipt of a partition holds ``inserted`` and ``ignored`` (every row that was left out for its key), with
    "report" ``conflicts``, with "dead-letter" ``rejected``.
    """

    url: str
    table: str
    key: FieldsLike
    columns: FieldsLike | None = None
    onConflict: str = "ignore"
    onBadRow: str = "fail"
    files: int = 1
    kind: ClassVar[str] = "insert-ignore"

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", parsed(self.url).render_as_string(hide_password=False))
        object.__setattr__(self, "key", Fields.of(self.key))
        object.__setattr__(self, "columns", None if self.columns is None else Fields.of(self.columns))
        for name, given, known in (
            ("onConflict", self.onConflict, ["ignore", "fail", "report"]),
            ("onBadRow", self.onBadRow, ["fail", "dead-letter"]),
        ):  # fmt: skip
            if given not in known:
                raise DefinitionError(f"table {self.table!r}: {name} is one of {known}, got {given!r}")
        if len(Fields.of(self.key)) == 0 or self.files < 1:
            raise DefinitionError(f"table {self.table!r}: needs a key, and at least one file")
        gone = [] if self.columns is None else [n for n in self.key if n not in Fields.of(self.columns)]
        if gone:
            raise DefinitionError(f"table {self.table!r}: the key {gone} is not among {self.columns}")

    @property
    def _beside(self) -> tuple[str, ...]:
        return (SUFFIX,) if self.onBadRow == "dead-letter" else ()

    @property
    def _shared(self) -> str:
        return "insert-ignore"  # rows of others change nothing of what it writes

    @property
    def state_type(self) -> StateClass:
        return InsertIgnoreRows

    def makeState(
        self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int
    ) -> InsertIgnoreRows:
        state = InsertIgnoreRows(self, Fence.of(conf), partitionIndex, numPartitions)
        if self._fields is not None:
            self.shape(self._fields)
        return state

    def participant(self) -> BatchParticipant:
        """The ledger's side on the driver, for one run."""
        return Ledger(self.location, self._stores, self.place.stores)

    def shape(self, fields: Fields) -> Shape:
        """The table's columns; made now if it is missing. ``fields`` are those of the tuples."""
        return row_shape(self.place, self._fields, Fields.of(self.key), fields)

    def stored(self) -> dict[tuple, Any]:
        """All rows: key tuple -> tuple of the other columns, in the order of their declaration."""
        store = self.place.stores()[0]
        known = existing(store, self.table)
        if known is None:
            return {}
        shape = self.shape(self._fields or Fields(list(known)))
        found: dict[tuple, Any] = {}
        for each in self.place.stores():
            columns = ", ".join(f'"{column.name}"' for column in shape.columns)
            with each.reading() as connection, each.errors("read"):
                rows = connection.execute(f'SELECT {columns} FROM "{self.table}"').fetchall()
            decoders = [each.dialect.decoder(column) for column in shape.columns]
            for row in rows:
                done = decoded(row, decoders)
                found[done[: len(shape.keys)]] = done[len(shape.keys) :]
        return found

    def __repr__(self) -> str:
        return (
            f"InsertIgnoreState({shown(parsed(self.url))!r}, {self.table!r}, key={self.key}, "
            f"columns={self.columns}, onConflict={self.onConflict!r}, onBadRow={self.onBadRow!r})"
        )
