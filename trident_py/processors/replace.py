"""map and flatMap replace a tuple by other tuples; peek shows it to a consumer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..canonical import in_order
from ..chunks import Chunk
from ..operations.roles import Accepts, Maps
from ..tuples import Fields
from .base import NodeContext, Processor, Spec, called, check_row, name_of


@dataclass(frozen=True)
class Replace(Spec):
    """map and flatMap: new tuples in place of the input tuple."""

    function: Any
    outputs: Fields
    flat: bool
    inputs: Fields

    @property
    def operation(self) -> str:
        return f"{'flatMap' if self.flat else 'map'} {name_of(self.function)}"

    @property
    def operations(self) -> tuple[Any, ...]:
        return (self.function,)

    def reads(self, port: int) -> Iterable[str]:
        return self.inputs

    def make(self, context: NodeContext) -> Processor:
        return ReplaceProcessor(self, context)


class ReplaceProcessor(Processor):
    """Calls the function with the whole tuple. It returns the new tuple; for flatMap, an iterable of tuples."""

    def __init__(self, spec: Replace, context: NodeContext) -> None:
        super().__init__(context)
        self.spec = spec
        self.function = context.prepare(spec.function)
        self.call: Callable[[Any], Any] = self.function.execute if isinstance(self.function, Maps) else self.function

    def execute(self, port: int, chunk: Chunk) -> None:
        tuples = chunk.tuples(self.spec.inputs)
        if self.spec.flat:
            call = self.call
            rows = [row for values in tuples if (made := call(values)) is not None for row in in_order(made)]
        else:
            rows = called(self.call, tuples)
        if rows:
            check_row(rows[0], self.spec.outputs, self.spec.operation)
            self.emit(Chunk.of_rows(self.spec.outputs, rows, self.context.kept(self.spec.outputs)))


@dataclass(frozen=True)
class Peek(Spec):
    """Shows every tuple to a Consumer, or to a callable in its place."""

    consumer: Any
    inputs: Fields
    passes = True

    @property
    def operation(self) -> str:
        return f"peek {name_of(self.consumer)}"

    def reads(self, port: int) -> Iterable[str]:
        return self.inputs

    def make(self, context: NodeContext) -> Processor:
        return PeekProcessor(self, context)


class PeekProcessor(Processor):
    """Calls the consumer with each tuple and passes all of them on."""

    def __init__(self, spec: Peek, context: NodeContext) -> None:
        super().__init__(context)
        self.spec = spec
        self.consumer = context.prepare(spec.consumer)
        accepts = isinstance(self.consumer, Accepts)
        self.accept: Callable[[Any], Any] = self.consumer.accept if accepts else self.consumer

    def execute(self, port: int, chunk: Chunk) -> None:
        for values in chunk.tuples(self.spec.inputs):
            self.accept(values)
        self.emit(chunk.only(self.context.kept(self.spec.inputs)))
