"""What tells a replay where rows have no key: which partition has written its part, and of how many.

A partition's number stands for the same rows only while the number of partitions is the same. So the driver
records that number under the txid before the first write, and a batch that was begun with another number is not
written: its replay only counts its rows. As many as there are in the parts that are written, or all parts
written: the batch was whole (a partition without rows has no part). Else the replay cannot tell which of its
rows are there, and the run ends with the way on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trident_py.errors import StateError

from .connection import Connection
from .dialect import Dialect
from .ledger import LAYOUT_PART, Fence, FenceRow, Ledger, read
from .store import Store

_PART = "WHERE topology = ? AND state = ? AND txid = ? AND part = ?"


@dataclass(frozen=True)
class Claim(Fence):
    """A fence whose partitions claim their part before they write it; the part's row keeps the count of its rows."""

    tally: list[int] = field(default_factory=lambda: [0], compare=False, repr=False)

    def claim(self, connection: Connection, txid: int, part: int) -> None:
        """Raises the driver's duplicate key error if another task has written this part; waits for its end first."""
        self._insert(connection, txid, part, 0)

    def wrote(self, connection: Connection, txid: int | None, part: int, token: str, dialect: Dialect) -> None:
        text = f"UPDATE trident_part SET token = ?, partitions = ? {_PART}"
        connection.execute(text, (token, self.tally[0], *self.own, txid, part))

    def record(self, connection: Connection, txid: int, partitions: int) -> None:
        """The number of partitions of a batch of which nothing is written yet."""
        connection.execute(f"DELETE FROM trident_part {_PART}", (*self.own, txid, LAYOUT_PART))
        self._insert(connection, txid, LAYOUT_PART, partitions)

    def _insert(self, connection: Connection, txid: int, part: int, number: int) -> None:
        text = (
            "INSERT INTO trident_part (topology, state, txid, part, attempt, partitions, token)"
            " VALUES (?, ?, ?, ?, ?, ?, '')"
        )
        connection.execute(text, (*self.own, txid, part, self.attempt, number))


class Unfenced(Claim):
    """The ledger without a driver (a unit test's makeState): a replay with the same partitions is told."""

    def row(self, connection: Connection, lock: str = "") -> FenceRow:
        return read(connection, *self.own, lock) or FenceRow(0, "", 0, 0, 0)


def claim_of(conf: dict, table: str) -> Claim:
    """The claim of a run, or of none."""
    found = Claim.of(conf)
    if isinstance(found, Claim):
        return found
    return Unfenced(conf.get("topology.name") or "", conf.get("trident.state.name") or table, 0, "")


class AppendLedger(Ledger):
    """The driver's side of a state whose partitions are known by their number."""

    def __init__(self, stores: Callable[[], Sequence[Store]], table: str) -> None:
        super().__init__(stores, lambda: 0)
        self.table = table
        self._partitions: dict[int, int] = {}

    def open(self, conf: dict) -> int:
        generation = super().open(conf)
        fence = super().fence
        self._fence = Claim(*fence.own, generation, fence.lineage)
        return generation

    @property
    def fence(self) -> Claim:
        found = super().fence
        assert isinstance(found, Claim)
        return found

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        """Shuts out older attempts and records the number of partitions, unless some have written with another."""
        store = self._stores()[0]
        with store.errors("begin the batch in the ledger"), store.writing(relaxed=True) as connection:
            row = self.fence.row(connection, store.dialect.exclusive)
            if txid < row.last or txid <= row.txid:
                return  # complete, or behind: the tasks are told
            self.fence.begun(connection, txid, attempt)
            written = self.fence.parts(connection, txid)
            if written.pop(LAYOUT_PART, None) != numPartitions and not written:
                self.fence.record(connection, txid, numPartitions)
        self._partitions = {txid: numPartitions}

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Moves the last complete txid. Raises StateError if a batch half written cannot be told apart."""
        store = self._stores()[0]
        with store.errors("end the batch in the ledger"), store.writing(relaxed=True) as connection:
            row = self.fence.row(connection, store.dialect.exclusive)
            if row.txid < txid:
                counted = sum(receipt["rows"] for receipt in receipts)
                self._check(txid, self.fence.parts(connection, txid), counted)
            self.fence.complete(connection, txid)

    def _check(self, txid: int, written: Mapping[int, int], counted: int) -> None:
        now, then = self._partitions.get(txid), written.get(LAYOUT_PART)
        if now is None or then is None or now == then:
            return
        parts = {part: rows for part, rows in written.items() if part != LAYOUT_PART}
        if len(parts) == then or sum(parts.values()) == counted:
            return
        raise StateError(
            f"table {self.table!r}: batch {txid} was begun with {then} partitions, and {len(parts)} of them have "
            f"written {sum(parts.values())} rows; it is replayed with {now} partitions and {counted} rows, which may "
            "not be told from those. Nothing more is written. Start the topology once with parallelismHint"
            f"({then}) for this state; when batch {txid} is committed, {now} will do"
        )
