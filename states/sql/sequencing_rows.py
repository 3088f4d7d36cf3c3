"""One partition of a SequenceState: a batch's rows against the numbers that the store knows."""

from __future__ import annotations

import datetime
import logging
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from trident_py.errors import StateError
from trident_py.state import ITupleCollection, State
from trident_py.tuples import Fields, TridentTuple

from ..sharing import shared
from .columns import Column, Refused, decoded, refusal, transposed
from .connection import Connection
from .ledger import Fence
from .sequencing import Arrived, Decided, Gap, Key, Known, hold, report
from .sequencing_tables import Tables
from .transaction import Transaction

if TYPE_CHECKING:
    from .sequence import SequenceState

_LOG = logging.getLogger("states.sql")
_COUNTS = ("applied", "dropped", "held", "released", "gaps", "missing", "late", "conflicts")


class SequenceRows(State, ITupleCollection):
    """One partition of a SequenceState.

    On replay: numbers that an earlier attempt applied or held back are dropped, so each is stored once.
    """

    def __init__(self, factory: SequenceState, fence: Fence | None, partition: int, of: int) -> None:
        self.factory = factory
        self.partition = partition
        self.of = of
        self.counts: Counter[str] = Counter()
        self.found: list[tuple[tuple, Gap]] = []
        self._tables: Tables | None = None
        self._txid: int | None = None
        self._first = True
        self._transaction = Transaction(factory.place.stores(), fence, partition)

    def prepare(self, fields: Fields) -> Tables:
        """Makes and checks the tables, outside of a transaction. ``fields`` are those of the tuples."""
        self._tables = self._tables or self.factory.tables(fields)
        return self._tables

    def beginCommit(self, txid: int | None) -> None:
        """Locks the store, once the columns are known. Raises ZombieError, FailedException if it stays locked."""
        self.counts, self.found, self._txid, self._first = Counter(), [], txid, True
        self._transaction.begin(txid, lazily=self._tables is None)

    def commit(self, txid: int | None) -> Any:
        """Returns the partition and the counts that `SequenceState` names. Gaps found are logged as warnings."""
        self._transaction.commit()
        for sender, gap in self.found:
            _LOG.warning("%s", _words(self.factory.table, sender, gap))
        return {"partition": self.partition, **{name: self.counts[name] for name in _COUNTS}}

    def rollback(self, txid: int | None) -> None:
        self._transaction.rollback()

    def getTuples(self) -> Iterator[list[Any]]:
        """This partition's share of the applied rows, with the columns in the order of the table's key and the rest."""
        for key, row in shared(self.factory.stored().items(), self.partition, self.of):
            yield [*key, *row]

    def reports(self) -> list[StateError]:
        """The gaps that this batch has found with onGap="report", for ``collector.reportError``."""
        return [StateError(_words(self.factory.table, sender, gap)) for sender, gap in self.found]

    def insert(self, tuples: Sequence[TridentTuple], tell: bool) -> Sequence[TridentTuple]:
        """Applies the rows, or holds them back; with ``tell`` returns those applied now, in order.

        A row that an earlier batch left waiting is among them, with None in fields that are no column. Raises
        StateError for a bad row.
        """
        if len(tuples) == 0:
            return []
        fields = tuples[0].getFields()
        tables = self.prepare(fields)

        def work() -> tuple[Arrived, Decided, list[tuple]]:
            rows = self._encoded(tables.columns, fields, tuples)
            arrived = Arrived.of(rows, len(tables.sender))
            return arrived, *self._apply(tables, rows, arrived, tell)

        first, self._first = self._first, False  # what the first call wrote would be lost with the transaction
        arrived, decided, waited = self._transaction.repeated(work) if first else work()
        if not tell:
            return []
        new = {key: tuples[arrived.position(key)] for key in decided.applied}
        new |= {key: self._tuple(tables, fields, key, row) for key, row in zip(decided.released, waited, strict=True)}
        return [new[key] for key in sorted(new)]

    def _apply(self, tables: Tables, rows: list[tuple], arrived: Arrived, tell: bool) -> tuple[Decided, list[tuple]]:
        """The whole work of a transaction; begun again after a deadlock."""
        with self._transaction.using(0) as connection:
            known = tables.lock(connection, arrived.senders())
            stood: dict[Key, tuple] = {}
            if self.factory.onGap == "report":
                decided = self._report(tables, connection, arrived, known)
            else:
                waits = [key for key in arrived.keys(known, past=False) if known[key[:-1]].held]
                stood = tables.stored(connection, tables.held, waits)
                decided = self._hold(tables, connection, arrived, known, stood)
            new = {key: rows[arrived.position(key)] for key in [*decided.applied, *decided.waiting]}
            past = [key for key in arrived.keys(known, past=True) if key not in new]
            stood |= tables.stored(connection, tables.table, past)
            waited = tables.waiting(connection, decided.released) if tell else []
            tables.write(connection, decided, new)
        old = [rows[at] for at in [*map(arrived.position, stood), *arrived.again]]
        self._count(decided, len(rows), _conflicts(tables, old, stood, new))
        return decided, waited

    def _hold(
        self, tables: Tables, connection: Connection, arrived: Arrived, known: dict[tuple, Known],
        held: Collection[Key],
    ) -> Decided:  # fmt: skip
        closing = [each for each, its in known.items() if its.held and its.last + 1 in arrived.first[each]]
        return hold(arrived, known, held, tables.queued(connection, sorted(closing)))

    def _report(
        self, tables: Tables, connection: Connection, arrived: Arrived, known: dict[tuple, Known]
    ) -> Decided:
        senders = {key[:-1] for key in arrived.keys(known, past=True) if known[key[:-1]].missing}
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        return report(arrived, known, tables.missing(connection, sorted(senders)), self._txid, now)

    def _count(self, decided: Decided, rows: int, conflicts: int) -> None:
        applied, held, released = len(decided.applied), len(decided.waiting), len(decided.released)
        self.counts.update(
            applied=applied + released, released=released, held=held, dropped=rows - applied - held,
            conflicts=conflicts, gaps=len(decided.opened), late=decided.late,
            missing=sum(gap.last - gap.first + 1 for _, gap in decided.opened),
        )  # fmt: skip
        self.found += decided.opened

    def _encoded(self, columns: Sequence[Column], fields: Fields, tuples: Sequence[TridentTuple]) -> list[tuple]:
        """The rows in the order of the table's columns. Raises StateError for the first value that does not fit."""
        table = self.factory.table
        if missing := [column.name for column in columns if column.name not in fields]:
            raise StateError(f"table {table!r} needs the columns {', '.join(missing)}; the tuples have {fields}")
        values = transposed(tuples, len(fields))
        if values is None:
            raise StateError(f"table {table!r}: a tuple has not the values of {fields}")
        wanted = [values[fields.fieldIndex(column.name)] for column in columns]
        done = []
        for column, given in zip(self._transaction.settled(table, columns, wanted), wanted, strict=True):
            try:
                done.append(column.encode(given))
                if column.name == self.factory.number:
                    _check_numbers(done[-1], self.factory.first)
            except Refused as why:
                row = [each[why.index] for each in wanted]
                raise refusal(table, columns, column, row, given[why.index], why) from None
        return list(zip(*done, strict=True))

    def _tuple(self, tables: Tables, fields: Fields, key: Key, row: tuple) -> TridentTuple:
        """A row that waited, with the fields of the tuples of today."""
        dialect = tables.dialect
        values = dict(zip((c.name for c in tables.others), decoded(row, [dialect.decoder(c) for c in tables.others]),
                          strict=True))  # fmt: skip
        values |= zip((c.name for c in tables.keys), key, strict=True)
        return TridentTuple.of(fields, [values.get(name) for name in fields])


def _conflicts(tables: Tables, old: list[tuple], stood: dict[Key, tuple], new: dict[Key, tuple]) -> int:
    """How many of the dropped rows differ from the one that stands: in the store, or first in the batch."""
    width, conflicts = len(tables.keys), 0
    for row in old:
        key = row[:width]
        stands = stood[key] if key in stood else new.get(key, row)[width:]
        conflicts += not tables.same(row[width:], stands)
    return conflicts


def _check_numbers(numbers: Sequence[int], first: int) -> None:
    if min(numbers) < first:
        at = next(i for i, number in enumerate(numbers) if number < first)
        raise Refused(f"the numbers of a sender begin with {first}", at)


def _words(table: str, sender: tuple, gap: Gap) -> str:
    numbers = f"number {gap.first}" if gap.first == gap.last else f"numbers {gap.first} to {gap.last}"
    return f"table {table!r}: {numbers} of sender {', '.join(map(repr, sender))} did not come before later ones"
