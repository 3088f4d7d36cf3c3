"""Nodes that pass tuples on: project drops fields, collect also reports the rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..chunks import Chunk
from ..tuples import Fields
from .base import NodeContext, Processor, Spec


@dataclass(frozen=True)
class Project(Spec):
    """Keeps the named fields. With all fields it is the identity."""

    fields: Fields
    passes = True

    @property
    def operation(self) -> str:
        return f"project {self.fields}"

    def reads(self, port: int) -> Iterable[str]:
        return ()

    def make(self, context: NodeContext) -> Processor:
        return ProjectProcessor(context)


class ProjectProcessor(Processor):
    """Drops columns."""

    def execute(self, port: int, chunk: Chunk) -> None:
        self.emit(chunk.only(self.context.kept(self.context.fields)))


@dataclass(frozen=True)
class Collect(Spec):
    """Reports the passing rows, for tests: `trident_py.testing.collect`."""

    name: str
    fields: Fields
    passes = True

    @property
    def operation(self) -> str:
        return f"collect {self.name}"

    def reads(self, port: int) -> Iterable[str]:
        return self.fields

    def make(self, context: NodeContext) -> Processor:
        return CollectProcessor(self, context)


class CollectProcessor(Processor):
    """Sends the rows to the driver with the outcome of the batch."""

    def __init__(self, spec: Collect, context: NodeContext) -> None:
        super().__init__(context)
        self.spec = spec

    def execute(self, port: int, chunk: Chunk) -> None:
        self.context.report("collected", (self.spec.name, chunk.rows(self.spec.fields)))
        self.emit(chunk.only(self.context.kept(self.spec.fields)))
