"""Rows under a deterministic key: each is inserted once, however often it comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, ClassVar

from trident_py.errors import DefinitionError, StateError
from trident_py.state import BatchParticipant, State, StateFactory
from trident_py.tuples import Fields, FieldsLike, TridentTuple

from .columns import Column, Refused, decoded, refusal, transposed
from .ledger import Fence, Ledger
from .store import parsed, shown
from .table import Place, Shape, existing, prepare, prepare_ledger, shape_of
from .transaction import Transaction


class InsertIgnoreRows(State):
    """One partition of an InsertIgnoreState.

    On replay: rows that an earlier attempt inserted are ignored, by their key.
    """

    def __init__(self, factory: InsertIgnoreState, fence: Fence | None, partition: int) -> None:
        self.factory = factory
        self.partition = partition
        self.inserted = 0
        self.ignored = 0
        self._shape: Shape | None = None
        self._transaction = Transaction(factory.place.stores(), fence)

    def beginCommit(self, txid: int | None) -> None:
        """Locks the store, once the columns are known. Raises ZombieError, FailedException if it stays locked."""
        self.inserted = self.ignored = 0
        self._transaction.begin(txid, lazily=self._shape is None)

    def commit(self, txid: int | None) -> Any:
        """Returns how many rows were inserted and how many ignored."""
        self._transaction.commit()
        return {"partition": self.partition, "inserted": self.inserted, "ignored": self.ignored}

    def rollback(self, txid: int | None) -> None:
        self._transaction.rollback()

    def insert(self, tuples: Sequence[TridentTuple], tell: bool) -> Sequence[TridentTuple]:
        """Writes the rows; with ``tell`` returns the new ones. Raises StateError for a bad row."""
        if len(tuples) == 0:
            return []
        columns = self._columns(tuples[0].getFields())
        rows = self._encoded(columns, tuples)
        at = [i for i, column in enumerate(columns) if column.key]
        key = itemgetter(*at) if len(at) > 1 else itemgetter(slice(at[0], at[0] + 1))
        positions = sorted(range(len(rows)), key=lambda i: key(rows[i]))
        new: list[int] = []
        for index, mine in self._by_file(positions, [key(row) for row in rows]).items():
            new += self._write(index, columns, rows, mine, key, tell)
        return [tuples[i] for i in sorted(new)]

    def _columns(self, fields: Fields) -> list[Column]:
        """The table's columns that the tuples fill, in the order of the tuples' fields."""
        if self._shape is None:
            self._shape = self.factory.shape(fields)
        by_name = {column.name: column for column in self._shape.columns}
        if missing := [name for name in by_name if name not in fields]:
            raise StateError(
                f"table {self.factory.table!r} needs the columns {', '.join(missing)}; "
                f"the tuples have {fields}"
            )
        return [by_name[name] for name in fields if name in by_name]

    def _encoded(self, columns: list[Column], tuples: Sequence[TridentTuple]) -> list[tuple]:
        fields = tuples[0].getFields()
        values = transposed(tuples, len(fields))
        if values is None:
            raise StateError(f"table {self.factory.table!r}: a tuple has not the values of {fields}")
        wanted = [values[fields.fieldIndex(column.name)] for column in columns]
        done = []
        for column, given in zip(columns, wanted, strict=True):
            try:
                done.append(column.encode(given))
            except Refused as why:
                row = [each[why.index] for each in wanted]
                raise refusal(self.factory.table, columns, column, row, given[why.index], why) from None
        return list(zip(*done, strict=True))

    def _by_file(self, positions: list[int], keys: list[tuple]) -> dict[int, list[int]]:
        place = self.factory.place
        files: dict[int, list[int]] = {0: positions} if place.files == 1 else {}
        if place.files > 1:
            for position in positions:
                files.setdefault(place.file_of(keys[position]), []).append(position)
        self._transaction.touch(list(files))
        return dict(sorted(files.items()))

    def _write(
        self, index: int, columns: list[Column], rows: list[tuple], mine: list[int], key: Any, tell: bool
    ) -> list[int]:
        store = self._transaction.stores[index]
        keys = [column.name for column in columns if column.key]
        with self._transaction.using(index) as connection:
            first = {key(rows[i]): i for i in reversed(mine)} if tell else {}
            new = self._new(connection, index, keys, first)
            text = store.dialect.insert_new(self.factory.table, keys, [column.name for column in columns])
            inserted = connection.executemany(text, [rows[i] for i in mine]).rowcount
        self.inserted += inserted
        self.ignored += len(mine) - inserted
        return new

    def _new(self, connection: Any, index: int, names: list[str], first: dict[tuple, int]) -> list[int]:
        """The positions whose keys the table does not have yet; of equal keys the first."""
        dialect = self._transaction.stores[index].dialect
        keys = sorted(first)
        new = []
        for start in range(0, len(keys), dialect.chunk):
            part = keys[start : start + dialect.chunk]
            text = dialect.select(self.factory.table, names, [], len(part))
            found = connection.execute(text, list(chain.from_iterable(part))).fetchall()
            new += [first[k] for k, row in zip(part, found, strict=True) if row[len(names)] is None]
        return new


@dataclass(frozen=True, repr=False)
class InsertIgnoreState(StateFactory):
    """Rows with a deterministic key in one SQL table, written by `RowUpdater`.

    ``key`` names the key's fields, ``columns`` all fields of a row (None: those of the table, or the fields
    of the tuples if it is missing). Types come from ``columns`` or ``key`` or from the table.
    On replay: rows that are there are ignored, so every row is stored exactly once.
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
            ("onConflict", self.onConflict, ["ignore"]), ("onBadRow", self.onBadRow, ["fail"]),
        ):  # fmt: skip
            if given not in known:
                raise DefinitionError(f"table {self.table!r}: {name} is one of {known}, got {given!r}")
        if len(Fields.of(self.key)) == 0 or self.files < 1:
            raise DefinitionError(f"table {self.table!r}: needs a key, and at least one file")
        gone = [] if self.columns is None else [n for n in self.key if n not in Fields.of(self.columns)]
        if gone:
            raise DefinitionError(f"table {self.table!r}: the key {gone} is not among {self.columns}")

    @property
    def place(self) -> Place:
        return Place(self.url, self.table, self.files)

    @property
    def stateName(self) -> str:
        return self.table

    def makeState(
        self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int
    ) -> InsertIgnoreRows:
        if self.columns is not None:
            self.shape(Fields.of(self.columns))
        return InsertIgnoreRows(self, Fence.of(conf), partitionIndex)

    def participant(self) -> BatchParticipant:
        """The ledger's side on the driver, for one run."""
        return Ledger(self._stores, lambda: 0)

    def shape(self, fields: Fields) -> Shape:
        """The table's columns; made now if it is missing. ``fields`` are those of the tuples."""
        known = existing(self.place.stores()[0], self.table)
        declared = Fields.of(self.columns) if self.columns is not None else fields
        if self.columns is None and known is not None:
            declared = fields.only([name for name in fields if name in known])
            if unknown := [name for name in fields if name not in known]:
                raise StateError(f"table {self.table!r} has no columns {unknown}; it has: {', '.join(known)}")
        key = Fields.of(self.key)
        types = {**declared.types, **key.types}
        both = Fields([f"{name} {types[name]}" if name in types else name for name in declared])
        shape = shape_of(self.place, both.only(key), both.without(key))
        prepare(self.place, shape)
        return shape

    def stored(self) -> dict[tuple, Any]:
        """All rows: key tuple -> tuple of the other columns, in the order of their declaration."""
        store = self.place.stores()[0]
        known = existing(store, self.table)
        if known is None:
            return {}
        names = Fields.of(self.columns) if self.columns is not None else Fields(list(known))
        shape = self.shape(names)
        found: dict[tuple, Any] = {}
        for each in self.place.stores():
            columns = ", ".join(f'"{column.name}"' for column in shape.columns)
            with each.reading() as connection, each.errors("read"):
                rows = connection.execute(f'SELECT {columns} FROM "{self.table}"').fetchall()
            decoders = [column.decoder() for column in shape.columns]
            for row in rows:
                done = decoded(row, decoders)
                found[done[: len(shape.keys)]] = done[len(shape.keys) :]
        return found

    def _stores(self) -> list[Any]:
        """The stores with the ledger's table in each, also before the first row decides the columns."""
        prepare_ledger(self.place)
        return self.place.stores()

    def __repr__(self) -> str:
        return (
            f"InsertIgnoreState({shown(parsed(self.url))!r}, {self.table!r}, key={self.key}, "
            f"columns={self.columns}, onConflict={self.onConflict!r}, onBadRow={self.onBadRow!r})"
        )
