"""The base classes of processors, and helpers for them."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ...metrics import IMetricsContext
from ...model.chunks import Chunk
from ...model.resources import close_all
from ...operations.base import GroupedMultiReducer, MultiReducer, TridentOperationContext
from ...operations.roles import CleansUp, Prepares
from ...tuples import BatchId, Fields
from ..phases import measure_calls


@dataclass(eq=False)
class NodeContext:
    """The context of a processor.

    ``inputs``: the fields of each input. ``fields``: the output fields. ``wanted``: the output fields that a later
    node reads; the others need not be carried. ``consumed``: whether any node reads the output. ``state_name``: the
    name of the state that it uses. ``letters``: the dead letters of a spout in this partition of the batch.
    """

    conf: dict
    operations: TridentOperationContext
    inputs: tuple[Fields, ...]
    fields: Fields
    wanted: frozenset[str]
    consumed: bool
    state: Callable[[], Any]
    report: Callable[[str, Any], None]
    state_name: str = ""
    letters: Callable[[str], list[list[Any]]] = field(default=lambda spout: [], init=False)
    metrics: list[IMetricsContext] = field(default_factory=list, init=False)
    _prepared: list[Any] = field(default_factory=list, init=False)

    def select_read(self, names: Iterable[str]) -> list[str]:
        """Return the names that a later node reads, in the given order."""
        return [name for name in names if name in self.wanted]

    def prepare(self, operation: Any, *inputs: Fields) -> Any:
        """Return this partition's own copy of an operation, prepared. A plain callable is returned as it is.

        ``inputs``: the fields of the tuples that it gets, of each stream.
        """
        prepared = operation
        if isinstance(operation, Prepares):
            prepared = copy.copy(operation)
            context = self.operations.derive(inputs, isinstance(operation, MultiReducer | GroupedMultiReducer))
            prepared.prepare(self.conf, context)
            self.metrics.append(context)
        self._prepared.append(prepared)
        return prepared

    def cleanup(self) -> None:
        """Clean up all operations that were prepared here. Called at the end of the run."""
        close_all(operation.cleanup for operation in self._prepared if isinstance(operation, CleansUp))

    def report_error(self, error: BaseException) -> None:
        self.report("error", repr(error))


class Spec:
    """The description of a node: a frozen value in the plan, from which each partition makes its processor.

    ``passes``: whether the input fields are part of the output. ``steps``: the number of nodes that Storm has for it,
    and ``works_in`` which of these does the work.
    """

    passes: bool = False
    inputs: Any

    @property
    def steps(self) -> int:
        return 1

    @property
    def works_in(self) -> int:
        return self.steps - 1

    @property
    def operation(self) -> str:
        """The step as text."""
        raise NotImplementedError

    @property
    def operations(self) -> tuple[Any, ...]:
        """The user code that determines the output."""
        return ()

    @property
    def groups_by(self) -> Fields:
        """The fields by which it groups and which its output keeps."""
        return Fields()

    def reads(self, port: int) -> Iterable[str]:
        """Return the fields of this input that it needs, besides the fields that it passes on."""
        return self.inputs

    def make(self, context: NodeContext) -> Processor:
        raise NotImplementedError


S = TypeVar("S")


class Processor(Generic[S]):
    """The base of all processors, made from a node's description: does nothing, keeps nothing."""

    def __init__(self, spec: S, context: NodeContext) -> None:
        self.spec = spec
        self.context = context
        self.emit: Callable[[Chunk], None] = lambda chunk: None

    def start(self, attempt: BatchId) -> None:
        """Begin an attempt or a DRPC request: drop everything left from an older one."""

    def execute(self, port: int, chunk: Chunk) -> None:
        """Process tuples of this input. Never called with an empty chunk."""

    def finish(self) -> None:
        """Called after the last tuple of the batch."""

    def emit_rows(self, fields: Fields, rows: list[Any]) -> None:
        """Emit the rows, if there are any, with the fields that a later node reads. Empties the list before that."""
        if rows:
            chunk = Chunk.of_rows(fields, rows, self.context.select_read(fields))
            rows.clear()
            self.emit(chunk)

    def emit_chosen(self, carried: Chunk, chosen: Any) -> None:
        """Emit the rows at these places, if there are any."""
        if len(chosen):
            self.emit(carried if len(chosen) == carried.length else carried.take(chosen))

    def watch(self, name: str) -> None:
        """Called once, in a run that measures its phases: the calls count for the operation of this name."""
        self.start = measure_calls(self.start, "operation", name)  # type: ignore[method-assign]
        self.execute = measure_calls(self.execute, "operation", name)  # type: ignore[method-assign]
        self.finish = measure_calls(self.finish, "operation", name)  # type: ignore[method-assign]

    def close(self) -> None:
        """End the run."""
        self.context.cleanup()


@contextmanager
def no_collection() -> Iterator[None]:
    """Turn cyclic garbage collection off while many tuples are processed: it would walk all of them repeatedly."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def note_call(function: Callable[..., Any], *columns: Iterable[Any]) -> list[Any]:
    """Return the user's function applied to each row.

    A loop, because ``map`` would take a StopIteration that leaves the function for the end of the rows. It is as fast.
    """
    if len(columns) == 1:
        return [function(value) for value in columns[0]]
    return [function(*values) for values in zip(*columns, strict=True)]


def beside(carried: Chunk, results: Chunk) -> Chunk:
    """Pair a function's results with the columns passed through."""
    return Chunk({**carried.columns, **results.columns}, results.length, results.short or carried.short)
