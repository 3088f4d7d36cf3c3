"""filter, and each with a filter: keeps or drops tuples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..chunks import Chunk
from ..errors import TridentError
from ..operations.roles import Keeps, KeepsColumns
from ..tuples import Fields
from .base import NodeContext, Processor, Spec, called, name_of


@dataclass(frozen=True)
class Keep(Spec):
    """A Filter, or a callable in its place."""

    filter: Any
    inputs: Fields
    passes = True

    @property
    def operation(self) -> str:
        return f"filter {name_of(self.filter)}"

    @property
    def operations(self) -> tuple[Any, ...]:
        return (self.filter,)

    def reads(self, port: int) -> Iterable[str]:
        return self.inputs

    def make(self, context: NodeContext) -> Processor:
        return FilterProcessor(self, context)


class FilterProcessor(Processor):
    """Keeps the rows for which the filter is true. A filter that takes columns gets typed columns as they are."""

    def __init__(self, spec: Keep, context: NodeContext) -> None:
        super().__init__(context)
        self.spec = spec
        self.filter = context.prepare(spec.filter)
        self.carried = context.kept(context.inputs[0])

    def execute(self, port: int, chunk: Chunk) -> None:
        keeps = self._keeps(chunk)
        if len(keeps) != chunk.length:
            raise TridentError(f"{self.spec.operation} gave {len(keeps)} answers for {chunk.length} rows")
        chosen = [i for i, keep in enumerate(keeps) if keep]
        carried = chunk.only(self.carried)
        if len(chosen) == chunk.length:
            self.emit(carried)
        elif chosen:
            self.emit(carried.take(chosen))

    def _keeps(self, chunk: Chunk) -> list[Any]:
        columns = [chunk.columns[name] for name in self.spec.inputs]
        typed = columns and all(isinstance(column, pa.Array) for column in columns)
        if typed and isinstance(self.filter, KeepsColumns):
            return self.filter.isKeepBatch(*columns).to_pylist()
        if isinstance(self.filter, Keeps):
            return called(self.filter.isKeep, chunk.tuples(self.spec.inputs))
        lists = [chunk.pylist(name) for name in self.spec.inputs]
        return called(self.filter, *lists) if lists else [self.filter() for _ in range(chunk.length)]
