"""Rows that their senders number: each is applied once, in the order of the numbers, as in TCP."""

from __future__ import annotations

import datetime
import logging
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from trident_py.errors import DefinitionError, StateError
from trident_py.tuples import Fields, FieldsLike, TridentTuple

from ....columns.values import Column, RefusedValue, decode_row, refusal, transpose
from ....rows import share_rows
from ...connection import Connection
from ...dialects.base import names
from ...key_types import settle_types
from ...ledger import SqlFence
from ...table import CheckedTable, Shape, read_columns
from ...undo import Never
from ..base import RowFactory, RowPartition, declare_fields, make_keyed_shape
from .numbers import Arrived, Decided, Gap, Key, SenderRow, hold, report
from .tables import BESIDE, RESERVED, Tables, make_beside

_LOG = logging.getLogger("states.sql")
_COUNTS = ("applied", "dropped", "held", "released", "gaps", "missing", "late", "conflicts")


class SequenceRows(RowPartition):
    """One partition of a SequenceState.

    On replay: numbers that an earlier attempt applied or held back are dropped, so each is stored once.
    """

    def __init__(self, factory: SequenceState, fence: SqlFence | None, partition: int, of: int) -> None:
        super().__init__(factory, fence, partition, of)
        self.counts: Counter[str] = Counter()
        self.new_gaps: list[tuple[tuple, Gap]] = []
        self._tables: Tables | None = None
        self._txid: int | None = None

    def prepare(self, fields: Fields) -> Tables:
        """Create and check the tables, outside of a transaction. ``fields``: the fields of the tuples."""
        if self._tables is None:
            self._tables = self.factory.tables(fields)
            self._transaction.table = CheckedTable(self.factory.place, Shape(self._tables.columns))
        return self._tables

    def beginCommit(self, txid: int | None) -> None:
        """Open the transaction if the columns are known, else `insert` does."""
        self.counts, self.new_gaps, self._txid = Counter(), [], txid
        self._transaction.begin(txid, lazily=self._tables is None)

    def commit(self, txid: int | None) -> Any:
        """Commit, logs new gaps as warnings, and return the receipt with the counts that `SequenceState` names."""
        mark = self._transaction.commit()
        for sender, gap in self.new_gaps:
            _LOG.warning("%s", _describe_gap(self.factory.table, sender, gap))
        return {"partition": self.partition, **{name: self.counts[name] for name in _COUNTS}, **mark}

    def getTuples(self) -> Iterator[list[Any]]:
        for key, row in share_rows(self.factory.stored().items(), self.partition, self.of):
            yield [*key, *row]

    def reports(self) -> list[StateError]:
        """Return the gaps that this batch found with onGap="report", for ``collector.reportError``."""
        return [StateError(_describe_gap(self.factory.table, sender, gap)) for sender, gap in self.new_gaps]

    def insert(self, tuples: Sequence[TridentTuple], tell: bool) -> Sequence[TridentTuple]:
        """Apply the rows or holds them back; with ``tell`` returns the rows applied now, in the order of their keys.

        They include released rows of earlier batches, which have None in fields without a column. Raises StateError
        for a bad row.
        """
        if len(tuples) == 0:
            return []
        fields = tuples[0].getFields()
        tables = self.prepare(fields)

        def work() -> tuple[Arrived, Decided, list[tuple]]:
            rows = self._encode(tables.columns, fields, tuples)
            arrived = Arrived.of(rows, len(tables.sender))
            return arrived, *self._apply(tables, rows, arrived, tell)

        arrived, decided, waited = self._transaction.repeat(work)
        if not tell:
            return []
        new = {key: tuples[arrived.position(key)] for key in decided.applied}
        new |= zip(decided.released, self._as_tuples(tables, fields, decided.released, waited), strict=True)
        return [new[key] for key in sorted(new)]

    def _apply(self, tables: Tables, rows: list[tuple], arrived: Arrived, tell: bool) -> tuple[Decided, list[tuple]]:
        """Lock the senders, decides, and write; repeated as a whole after a deadlock."""
        with self._transaction.using() as connection:
            senders = tables.lock(connection, arrived.senders())
            stood: dict[Key, tuple] = {}
            if self.factory.onGap == "report":
                decided = self._report(tables, connection, arrived, senders)
            else:
                waits = [key for key in arrived.keys(senders, past=False) if senders[key[:-1]].held]
                stood = tables.read_stored(connection, tables.held, waits)
                decided = self._hold(tables, connection, arrived, senders, stood)
            new = {key: rows[arrived.position(key)] for key in [*decided.applied, *decided.waiting]}
            past = [key for key in arrived.keys(senders, past=True) if key not in new]
            stood |= tables.read_stored(connection, tables.table, past)
            waited = tables.read_rows(connection, decided.released) if tell else []
            tables.write(connection, decided, new)
        old = [rows[at] for at in [*map(arrived.position, stood), *arrived.again]]
        self._count(decided, len(rows), _conflicts(tables, old, stood, new))
        return decided, waited

    def _hold(
        self, tables: Tables, connection: Connection, arrived: Arrived, senders: dict[tuple, SenderRow],
        held: Collection[Key],
    ) -> Decided:  # fmt: skip
        closing = [name for name, its in senders.items() if its.held and its.last + 1 in arrived.first[name]]
        return hold(arrived, senders, held, tables.read_waiting(connection, sorted(closing)))

    def _report(
        self, tables: Tables, connection: Connection, arrived: Arrived, senders: dict[tuple, SenderRow]
    ) -> Decided:
        gappy = {key[:-1] for key in arrived.keys(senders, past=True) if senders[key[:-1]].missing}
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        return report(arrived, senders, tables.read_gaps(connection, sorted(gappy)), self._txid, now)

    def _count(self, decided: Decided, rows: int, conflicts: int) -> None:
        applied, held, released = len(decided.applied), len(decided.waiting), len(decided.released)
        self.counts.update(
            applied=applied + released, released=released, held=held, dropped=rows - applied - held,
            conflicts=conflicts, gaps=len(decided.opened), late=decided.late,
            missing=sum(gap.last - gap.first + 1 for _, gap in decided.opened),
        )  # fmt: skip
        self.new_gaps += decided.opened

    def _encode(self, columns: Sequence[Column], fields: Fields, tuples: Sequence[TridentTuple]) -> list[tuple]:
        """Return the rows in the order of the table's columns. Raises StateError for the first value that does not
        fit."""
        table = self.factory.table
        if missing := [column.name for column in columns if column.name not in fields]:
            raise StateError(f"table {table!r} needs the columns {', '.join(missing)}; the tuples have {fields}")
        values = transpose(tuples, len(fields))
        if values is None:
            raise StateError(f"table {table!r}: a tuple lacks values for {fields}")
        wanted = [values[fields.fieldIndex(column.name)] for column in columns]
        encoded = []
        for column, column_values in zip(self._transaction.settle_types(table, columns, wanted), wanted, strict=True):
            try:
                encoded.append(column.encode(column_values))
                if column.name == self.factory.number:
                    _check_numbers(encoded[-1], self.factory.first)
            except RefusedValue as why:
                row = [values_of[why.index] for values_of in wanted]
                raise refusal(table, columns, column, row, column_values[why.index], why) from None
        return list(zip(*encoded, strict=True))

    def _as_tuples(
        self, tables: Tables, fields: Fields, keys: Sequence[Key], rows: Sequence[tuple]
    ) -> Iterator[TridentTuple]:
        """Yield released rows as tuples with the fields of the current batch."""
        columns = self._transaction.settle_types(tables.table, tables.others) if keys else tables.others
        decoders = list(map(tables.dialect.decoder, columns))
        for key, row in zip(keys, rows, strict=True):
            values = dict(zip((column.name for column in columns), decode_row(row, decoders), strict=True))
            values |= zip((column.name for column in tables.keys), key, strict=True)
            yield TridentTuple.of(fields, [values.get(name) for name in fields])


def _conflicts(tables: Tables, old: list[tuple], stood: dict[Key, tuple], new: dict[Key, tuple]) -> int:
    """Return how many dropped rows differ from the row that was kept, in the store or earlier in the batch."""
    width, conflicts = len(tables.keys), 0
    for row in old:
        key = row[:width]
        stands = stood[key] if key in stood else new.get(key, row)[width:]
        conflicts += not tables.same(row[width:], stands)
    return conflicts


def _check_numbers(numbers: Sequence[int], first: int) -> None:
    if min(numbers) < first:
        at = next(i for i, number in enumerate(numbers) if number < first)
        raise RefusedValue(f"a sender's numbers begin with {first}", at)


def _describe_gap(table: str, sender: tuple, gap: Gap) -> str:
    numbers = f"number {gap.first}" if gap.first == gap.last else f"numbers {gap.first} to {gap.last}"
    return f"table {table!r}: {numbers} of sender {', '.join(map(repr, sender))} did not arrive before later ones"


@dataclass(frozen=True, repr=False)
class SequenceState(RowFactory):
    """Rows with their sender and sequence number in one SQL table, written by `RowUpdater`.

    ``sender`` names the fields of the sender, ``sequence`` the field of the number: a whole number that the sender
    raises by one per row, starting at ``first``. ``columns`` as in InsertIgnoreState. A repeated number is dropped,
    whatever its row holds: the first row wins. A number behind a gap:

    - ``onGap="hold"``: waits in ``<table>_held`` until the missing numbers have arrived, and moves in the transaction
      that brings the last of them. At any time the table holds 1, 2, 3 ... of every sender without a gap. The number
      of waiting rows is not bounded: a number that never arrives holds back all that follow it.
    - ``onGap="report"``: is applied; the missing numbers go to ``<table>_gaps`` and are logged and reported. A late
      number is applied when it arrives, and its gap shrinks: each row is still stored once, but not in order.

    Rows of one batch and partition are sorted first. ``<table>_senders`` holds each sender's last number and the counts
    ``held`` and ``missing``, and is the lock: several topologies may write one table, with the same ``onGap``. You may
    delete old rows from the table, but not from the other tables.

    The receipt of a partition counts ``applied`` rows (including ``released`` and ``late`` ones), ``dropped`` rows,
    newly ``held`` rows, new ``gaps`` and the numbers ``missing`` in them, and ``conflicts``: dropped rows that differ
    from the stored row.
    On replay: numbers already stored are dropped, in whichever batch, partition or topology they come.
    """

    url: str
    table: str
    sender: FieldsLike
    sequence: FieldsLike
    columns: FieldsLike | None = None
    onGap: str = "hold"
    first: int = 1
    kind: ClassVar[str] = "sequence"
    state_type = SequenceRows
    _beside = BESIDE
    _undo = Never("which rows waited behind a gap is not kept by batch")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sender", Fields.of_columns(self.sender))
        object.__setattr__(self, "sequence", Fields.of_columns(self.sequence))
        for problem in self._problems():
            raise DefinitionError(f"table {self.table!r}: {problem}")

    def _problems(self) -> Iterator[str]:
        sender, columns = Fields.of_columns(self.sender), Fields.of_columns(self.columns or ())
        if len(sender) == 0 or len(Fields.of_columns(self.sequence)) != 1:
            yield f"needs the sender's fields and one field for its number, got {sender} and {self.sequence}"
        if self.columns is not None and (missing := [name for name in self.key if name not in columns]):
            yield f"the fields {missing} of sender and sequence are not in columns: {columns}"
        if taken := [name for name in sender if name in RESERVED]:
            yield f"a sender's field cannot be called {taken[0]!r}; reserved names: {', '.join(RESERVED)}"
        if self.onGap not in ("hold", "report"):
            yield f'onGap must be one of ["hold", "report"], got {self.onGap!r}'
        if not isinstance(self.first, int) or isinstance(self.first, bool) or not -(1 << 63) < self.first < 1 << 63:
            yield f"first must be a whole number of 64 bits, got {self.first!r}"
        ddl = {**columns.types, **Fields.of_columns(self.sequence).types}.get(self.number)
        if ddl is not None and Column(self.number, ddl).family != "integer":
            yield f"the type of {self.number!r} must be a whole number such as bigint, got {ddl}"

    @property
    def key(self) -> Fields:
        """The key of a row: its sender and its number."""
        return Fields.of_columns(self.sender).concat(Fields.of_columns(self.sequence))

    @property
    def number(self) -> str:
        return Fields.of_columns(self.sequence)[0]

    @property
    def _key(self) -> Fields:
        return self.key

    @property
    def _usual(self) -> dict[str, str]:
        return {self.number: "bigint"}

    @property
    def _created(self) -> tuple[str, ...]:
        return "_senders", "_held" if self.onGap == "hold" else "_gaps"

    @property
    def _shared(self) -> str:
        return f"sequence, {self.onGap}"  # the row of a sender locks it against every writer

    def tables(self, fields: Fields) -> Tables:
        """Return the tables and their columns; create missing tables. ``fields``: the fields of the tuples."""
        store, row = self.place.store(), declare_fields(self.place, self._fields, fields)
        if missing := [name for name in self.key if name not in row]:
            raise StateError(f"table {self.table!r} needs {missing} for sender and number; the tuples have {fields}")
        types = read_columns(store, self.table) or {}
        usual = {name: types.get(name, ddl) for name, ddl in self._usual.items()}
        shape = make_keyed_shape(self.place, row, self.key, usual)
        tables = Tables(shape.columns, store.dialect, self.table, self.first)
        make_beside(self.place, tables, self.onGap)
        return tables

    def stored(self) -> dict[tuple, tuple]:
        """Return the applied rows: (sender ..., number) -> tuple of the other columns, in declaration order."""
        return self._look("", len(self.key))

    def held(self) -> dict[tuple, tuple]:
        """Return the waiting rows, in the form of `stored`."""
        return self._look("_held", len(self.key))

    def gaps(self) -> dict[tuple, tuple]:
        """Return the gaps, one for each run of missing numbers: (sender ..., first) -> (last, txid, time)."""
        return self._look("_gaps", len(self.key))

    def senders(self) -> dict[tuple, tuple]:
        """Return the senders: (sender ...) -> (last number, count of waiting rows, count of missing numbers)."""
        return self._look("_senders", len(self.key) - 1)

    def _look(self, suffix: str, width: int) -> dict[tuple, tuple]:
        store = self.place.store()
        types = read_columns(store, self.table)
        if types is None:
            return {}
        tables = self.tables(self._fields or Fields.of_names(types))
        name = f"{self.table}{suffix}"
        columns = {self.table: list(tables.columns), **tables.beside(self.onGap)}.get(name)
        if columns is None:
            return {}
        with store.reading() as connection, store.errors(f"read table {name!r}"):
            rows = connection.execute(f'SELECT {names(columns)} FROM "{name}"').fetchall()
            columns = settle_types(store, connection, self.table, columns)
        decoders = [store.dialect.decoder(column) for column in columns]
        done = [decode_row(row, decoders) for row in rows]
        return {row[:width]: row[width:] for row in done}
