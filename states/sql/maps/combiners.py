"""Combining inside the database: one statement combines the partial results of a batch with the stored values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trident_py.errors import DefinitionError
from trident_py.state import StateType

from ...columns.arrow import arrow_array, between
from ...columns.values import Column, RefusedValue

_KINDS: dict[str, type] = {"integer": int, "double": float}


@dataclass(frozen=True)
class Recipe:
    """How partial results are combined into one table: its columns, the kind of map, `CombinerAggregator.sql`."""

    table: str
    keys: tuple[Column, ...]
    value: Column
    kind: StateType
    sql: str

    def __post_init__(self) -> None:
        if "{old}" not in self.sql or "{new}" not in self.sql:
            raise DefinitionError(f"a combiner's sql needs {{old}} and {{new}}, got {self.sql!r}")

    @property
    def columns(self) -> list[Column]:
        """The columns that a batch fills: the keys and the partial result."""
        return [*self.keys, self.value]

    @property
    def own(self) -> str:
        return f'"{self.table}"."{self.value.name}"'

    @property
    def previous(self) -> str:
        return f'"{self.table}"."prev_{self.value.name}"'

    @property
    def txid(self) -> str:
        return f'"{self.table}".txid'

    @property
    def limits(self) -> tuple[int, int] | None:
        """The least and greatest number of the declared type; None where the table's column cannot be wider."""
        if self.value.family != "integer" or self.value.bits >= 64:
            return None
        return self.value.limits

    def combine(self, old: str, new: str) -> str:
        """Return the new value; without an old value, the partial result."""
        both = self.sql.replace("{old}", old).replace("{new}", new)
        return f"CASE WHEN {old} IS NULL THEN {new} ELSE {both} END"

    def base(self, txid: str) -> str:
        """Return the value that the batch starts from: in an opaque map, the value before the batch."""
        if self.kind is not StateType.OPAQUE:
            return self.own
        return f"CASE WHEN {self.txid} = {txid} THEN {self.previous} ELSE {self.own} END"

    def row_condition(self, txid: str) -> str | None:
        """Return the condition under which an existing row may be changed; any other row hands the batch to the map
        itself."""
        if self.kind is StateType.NON_TRANSACTIONAL:
            return None
        if self.kind is StateType.OPAQUE:
            return f"{self.txid} <= {txid}"
        return f"({self.txid} IS NULL OR {self.txid} < {txid})"

    def changes(self, new: str, txid: str, in_turn: bool = False) -> dict[str, str]:
        """Return the new columns of an existing row, each computed from the old row.

        ``in_turn``: the database assigns them in this order, so the new value is computed from the new previous one.
        """
        base = self.base(txid)
        is_opaque = self.kind is StateType.OPAQUE
        changes = {f"prev_{self.value.name}": base} if is_opaque else {}
        changes[self.value.name] = self.combine(self.previous if is_opaque and in_turn else f"({base})", new)
        if self.kind is not StateType.NON_TRANSACTIONAL:
            changes["txid"] = txid
        return changes

    @classmethod
    def of(
        cls, table: str, keys: Sequence[Column], columns: Sequence[Column], width: int, kind: StateType, sql: str
    ) -> Recipe | None:
        """Return the recipe; None for a map whose value is not a single number."""
        value = columns[0 if kind is StateType.NON_TRANSACTIONAL else 1]
        if width != 1 or value.family not in _KINDS:
            return None
        return cls(table, tuple(keys), value, kind, sql)

    def takes(self, numbers: Any) -> bool:
        """Return whether all are numbers of the column's own type that it can hold."""
        if isinstance(numbers, pa.Array):
            return self._takes_array(numbers)
        if set(map(type, numbers)) != {_KINDS[self.value.family]}:
            return False
        try:
            return self.value.encode(numbers) is numbers
        except RefusedValue:
            return False

    def _takes_array(self, numbers: pa.Array) -> bool:
        is_integer = self.value.family == "integer"
        fits = pa.types.is_signed_integer(numbers.type) if is_integer else pa.types.is_float64(numbers.type)
        if not fits or numbers.null_count > 0 or len(numbers) == 0:
            return False
        if not is_integer:
            return bool(pc.all(pc.is_finite(numbers)).as_py())
        return numbers.type.bit_width <= self.value.bits or between(numbers, *self.value.limits)


@dataclass(frozen=True)
class PartialResults:
    """Partial results in the order of the table's tree: a column for each key column, then the numbers.

    The columns are lists, or Arrow arrays if there are more rows than the dialect has ``listed``. ``positions`` returns
    the rows' positions in the batch.
    """

    txid: int | None
    columns: list[Any]
    positions: Callable[[], list[int]]

    def __len__(self) -> int:
        return len(self.columns[0])

    def in_arrow(self, columns: Sequence[Column]) -> PartialResults:
        """Return the same, as Arrow arrays."""
        return replace(self, columns=[arrow_array(c, v) for c, v in zip(columns, self.columns, strict=True)])
