"""A sequence over the simulated store: the rules for the numbers and the state are the product's, its tables a dict.

The sender is the tuple's partition. Its numbers do not come in order: 0 and 3 are in batch 1, as usual, 1 and 4 in
batch 2. So rows wait for two batches, or leave a gap that shrinks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from states.columns.values import Column
from states.sql.rows.sequence.numbers import Decided, Gap, Key, SenderRow
from states.sql.rows.sequence.state import SequenceRows
from states.sql.rows.sequence.tables import Tables

APPLIED, HELD, SENDER, GAPS = "data", "held", "sender", "gap"
_ORDER = (0, 3, 1, 4, 2, 5, 6, 7)


def number_of(at: int) -> int:
    """Return the number of the tuple at a position."""
    return 8 * (at // 8) + _ORDER[at % 8]


class _DictTables(Tables):
    """The tables in the content that a transaction has read. Each key begins with the table's name."""

    def lock(self, connection: Any, senders: Sequence[tuple]) -> dict[tuple, SenderRow]:
        return {each: connection.setdefault((SENDER, each), SenderRow(self.first - 1)) for each in senders}

    def read_stored(self, connection: Any, table: str, keys: Sequence[Key]) -> dict[Key, tuple]:
        return {key: () for key in keys if (HELD if table == self.held else APPLIED, key) in connection}

    def read_waiting(self, connection: Any, senders: Sequence[tuple]) -> dict[tuple, set[int]]:
        return {each: {at[1][-1] for at in connection if at[0] == HELD and at[1][:-1] == each} for each in senders}

    def read_gaps(self, connection: Any, senders: Sequence[tuple]) -> dict[tuple, list[Gap]]:
        found = {each: [gap for at, gap in connection.items() if at[0] == GAPS and at[1][:-1] == each]
                 for each in senders}  # fmt: skip
        return {each: sorted(gaps) for each, gaps in found.items()}

    def read_rows(self, connection: Any, keys: Sequence[Key]) -> list[tuple]:
        return [() for key in keys if (HELD, key) in connection]

    def write(self, connection: Any, decided: Decided, rows: dict[Key, tuple]) -> None:
        for key in [*decided.applied, *decided.released]:
            connection[APPLIED, key] = connection.get((APPLIED, key), 0) + 1
        for key in decided.released:
            del connection[HELD, key]
        connection.update(((HELD, key), 1) for key in decided.waiting)
        connection.update(((SENDER, each), row) for each, row in decided.changed.items())
        for key in decided.closed:
            del connection[GAPS, key]
        for sender, gap in [*decided.remaining, *decided.opened]:
            connection[GAPS, (*sender, gap.first)] = gap._replace(time="")


TABLES = _DictTables((Column("part", "bigint", True), Column("at", "bigint", True)), None, "rows", 0)  # type: ignore[arg-type]


class SimulatedSequence(SequenceRows):
    """A partition of a sequence.

    On replay: as `SequenceRows`.
    """

    def __init__(self, factory: Any, transaction: Any) -> None:
        self.factory = SimpleNamespace(table="rows", onGap="report" if "gaps" in factory.kind else "hold")
        self.counts, self.new_gaps, self._tables, self.partition = Counter(), [], TABLES, transaction.partition
        self._transaction = _Working(transaction)  # type: ignore[assignment]

    def _encode(self, columns: Any, fields: Any, tuples: Any) -> list[tuple]:
        return [(each[0], number_of(each[1])) for each in tuples]


class _Working:
    """What a state's transaction does, on a copy of what the simulated one has read."""

    def __init__(self, transaction: Any) -> None:
        self.transaction = transaction
        self.content: dict[Any, Any] = {}

    def begin(self, txid: int | None, lazily: bool) -> None:
        self.transaction.begin(txid)
        self.content = dict(self.transaction.read)

    def repeat(self, work: Any) -> Any:
        return work()

    @contextmanager
    def using(self) -> Iterator[dict[Any, Any]]:
        yield self.content

    def commit(self) -> dict[str, list]:
        before, after = self.transaction.read, self.content
        new = {key: value for key, value in after.items() if before.get(key) != value}
        gone = [key for key in before if key not in after]

        def write(content: dict[Any, Any]) -> None:
            content.update(new)
            for key in gone:
                content.pop(key, None)

        self.transaction.commit(write)
        return {}

    def rollback(self) -> None:
        """Forget nothing: the next batch begins with what it reads."""
