"""Rows that their senders number: each is applied once, in the order of the numbers, as TCP does it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from trident_py.errors import DefinitionError, StateError
from trident_py.state import BatchParticipant, StateClass
from trident_py.tuples import Fields, FieldsLike

from .columns import Column, decoded
from .dialect import names
from .ledger import Fence, Ledger
from .naming import nameable
from .rowtable import RowFactory, declared, keyed_shape
from .sequencing_rows import SequenceRows
from .sequencing_tables import BESIDE, RESERVED, Tables, make_beside
from .store import parsed, shown
from .table import existing


@dataclass(frozen=True, repr=False)
class SequenceState(RowFactory):
    """Rows that carry their sender and its number, in one SQL table, written by `RowUpdater`.

    ``sender`` names the fields of the sender, ``sequence`` that of the number: whole, counted by the sender one by
    one from ``first``. ``columns`` as in InsertIgnoreState. A number that has come before is dropped, whatever row
    it brings (the first one stands). A number behind a gap:

    - ``onGap="hold"``: waits in ``<table>_held`` until the missing ones have come, and moves in the transaction
      that brings the last of them: of every sender the table holds 1, 2, 3 ... without a gap, at any time. What
      waits is not bounded: a number that never comes keeps all that follow it.
    - ``onGap="report"``: is applied; the missing ones stand in ``<table>_gaps`` and are logged and reported. One
      that comes late is applied then, and its gap shrinks: each row is still stored once, but not in order.

    Rows of one batch and partition are put in order first. ``<table>_senders`` holds each sender's last number
    with the counts ``held`` and ``missing``, and is the lock: topologies may write one table together, with the
    same ``onGap``. Removing old rows from the table is allowed, from the other tables it is not.

    The receipt of a partition counts ``applied`` rows (also the ``released``, which waited, and the ``late``),
    ``dropped`` and newly ``held`` ones, new ``gaps`` and the numbers ``missing`` in them, and ``conflicts``: dropped
    rows that differ from the one that stands.
    On replay: numbers that are there are dropped, in whichever batch, partition or topology they come.
    """

    url: str
    table: str
    sender: FieldsLike
    sequence: FieldsLike
    columns: FieldsLike | None = None
    onGap: str = "hold"
    first: int = 1
    kind: ClassVar[str] = "sequence"

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", parsed(self.url).render_as_string(hide_password=False))
        for name in ("sender", "sequence"):
            object.__setattr__(self, name, Fields.of(getattr(self, name)))
        object.__setattr__(self, "columns", None if self.columns is None else Fields.of(self.columns))
        for name in [self.table, *self.key, *(self.columns or ())]:
            nameable("table or column", name)
        for problem in self._problems():
            raise DefinitionError(f"table {self.table!r}: {problem}")

    def _problems(self) -> Iterator[str]:
        sender, columns = Fields.of(self.sender), Fields() if self.columns is None else Fields.of(self.columns)
        if len(sender) == 0 or len(Fields.of(self.sequence)) != 1:
            yield f"needs the sender's fields and one field for its number, got {sender} and {self.sequence}"
        if self.columns is not None and (gone := [name for name in self.key if name not in columns]):
            yield f"{gone} of sender and sequence are not among {columns}"
        if taken := [name for name in sender if name in RESERVED]:
            yield f"a sender's field cannot be called {taken[0]!r}: {', '.join(RESERVED)} stand beside it"
        if self.onGap not in ("hold", "report"):
            yield f'onGap is one of ["hold", "report"], got {self.onGap!r}'
        if not isinstance(self.first, int) or isinstance(self.first, bool) or self.first <= -(1 << 63):
            yield f"first is a whole number of 64 bits, got {self.first!r}"
        ddl = {**columns.types, **Fields.of(self.sequence).types}.get(self.number)
        if ddl is not None and Column(self.number, ddl).family != "integer":
            yield f"the number {self.number!r} is a whole one, such as bigint; {ddl} is not"

    @property
    def key(self) -> Fields:
        """The key of a row: its sender and its number."""
        return Fields.of(self.sender).concat(Fields.of(self.sequence))

    @property
    def number(self) -> str:
        return Fields.of(self.sequence)[0]

    @property
    def _beside(self) -> tuple[str, ...]:
        return BESIDE

    @property
    def _shared(self) -> str:
        return f"sequence, {self.onGap}"  # the row of a sender is its lock, whoever asks

    @property
    def state_type(self) -> StateClass:
        return SequenceRows

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> SequenceRows:
        state = SequenceRows(self, Fence.of(conf), partitionIndex, numPartitions)
        if self._fields is not None:
            state.prepare(self._fields)
        return state

    def participant(self) -> BatchParticipant:
        """The ledger's side on the driver, for one run."""
        return Ledger(self.location, self._stores, self.place.stores)

    def tables(self, fields: Fields) -> Tables:
        """The tables and their columns; made now if they are missing. ``fields`` are those of the tuples."""
        store, row = self.place.stores()[0], declared(self.place, self._fields, fields)
        if gone := [name for name in self.key if name not in row]:
            raise StateError(f"table {self.table!r} needs {gone} for sender and number; the tuples have {fields}")
        known = existing(store, self.table) or {}
        usual = {self.number: known.get(self.number, "bigint")}
        shape = keyed_shape(self.place, row, self.key, usual)
        tables = Tables(store.dialect, self.table, shape.columns, self.first)
        make_beside(self.place, tables, self.onGap)
        return tables

    def stored(self) -> dict[tuple, tuple]:
        """The applied rows: (sender ..., number) -> tuple of the other columns, in the order of their declaration."""
        return self._look("", len(self.key))

    def held(self) -> dict[tuple, tuple]:
        """The rows that wait, as `stored` gives them."""
        return self._look("_held", len(self.key))

    def gaps(self) -> dict[tuple, tuple]:
        """The numbers that are missing: (sender ..., first) -> (last, txid, time) of each run."""
        return self._look("_gaps", len(self.key))

    def senders(self) -> dict[tuple, tuple]:
        """(sender ...) -> (last number, rows that wait, numbers that are missing)."""
        return self._look("_senders", len(self.key) - 1)

    def _look(self, suffix: str, width: int) -> dict[tuple, tuple]:
        store = self.place.stores()[0]
        known = existing(store, self.table)
        if known is None:
            return {}
        tables = self.tables(self._fields or Fields(list(known)))
        name = f"{self.table}{suffix}"
        columns = {self.table: list(tables.columns), **tables.beside(self.onGap)}.get(name)
        if columns is None:
            return {}
        with store.reading() as connection, store.errors(f"read table {name!r}"):
            rows = connection.execute(f'SELECT {names(columns)} FROM "{name}"').fetchall()
        decoders = [store.dialect.decoder(column) for column in columns]
        done = [decoded(row, decoders) for row in rows]
        return {row[:width]: row[width:] for row in done}

    def __repr__(self) -> str:
        return (
            f"SequenceState({shown(parsed(self.url))!r}, {self.table!r}, sender={self.sender}, "
            f"sequence={self.sequence}, columns={self.columns}, onGap={self.onGap!r}, first={self.first})"
        )
