"""What a node does to the tuples of one partition of one batch, on either cluster.

A processor is made once for each partition and serves batch after batch:
start, then execute for each chunk of each input, then finish. What it emits goes on at once.
"""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..chunks import Chunk
from ..errors import TridentError
from ..operations.base import TridentOperationContext
from ..operations.roles import CleansUp, Prepares
from ..tuples import Fields, TransactionAttempt


class NodeContext:
    """What a processor knows of its place.

    ``inputs`` are the fields of each input, ``fields`` those of the output, ``wanted`` the output fields
    that somebody reads: others need not be carried. ``consumed``: some node takes the output at all.
    """

    def __init__(
        self,
        conf: dict,
        operations: TridentOperationContext,
        inputs: tuple[Fields, ...],
        fields: Fields,
        wanted: frozenset[str],
        consumed: bool,
        state: Callable[[], Any],
        report: Callable[[str, Any], None],
    ) -> None:
        self.conf = conf
        self.operations = operations
        self.inputs = inputs
        self.fields = fields
        self.wanted = wanted
        self.consumed = consumed
        self.state = state
        self.report = report
        self._prepared: list[Any] = []

    def kept(self, names: Iterable[str]) -> list[str]:
        """Those of the names that somebody reads, in their order."""
        return [name for name in names if name in self.wanted]

    def prepare(self, operation: Any) -> Any:
        """This partition's own copy of an operation, prepared; a plain callable as it is."""
        own = operation
        if isinstance(operation, Prepares):
            own = copy.copy(operation)
            own.prepare(self.conf, self.operations)
        self._prepared.append(own)
        return own

    def cleanup(self) -> None:
        """The run ends, for all operations that were prepared here."""
        for own in self._prepared:
            if isinstance(own, CleansUp):
                own.cleanup()

    def report_error(self, error: BaseException) -> None:
        self.report("error", repr(error))


class Spec:
    """What a node does, as data: a frozen value in the plan, of which each partition makes its processor.

    ``passes``: the fields that come in go out again. ``steps``: how many nodes it is in Storm.
    """

    passes: bool = False

    @property
    def steps(self) -> int:
        return 1

    @property
    def operation(self) -> str:
        """The step in words."""
        raise NotImplementedError

    @property
    def operations(self) -> tuple[Any, ...]:
        """The user code that decides what comes out."""
        return ()

    @property
    def groups_by(self) -> Fields:
        """The fields by which it groups, and keeps."""
        return Fields()

    def reads(self, port: int) -> Iterable[str]:
        """The fields of this input that it needs, besides those that it passes on."""
        raise NotImplementedError

    def make(self, context: NodeContext) -> Processor:
        raise NotImplementedError


class Processor:
    """The base of all processors: does nothing, keeps nothing."""

    def __init__(self, context: NodeContext) -> None:
        self.context = context
        self.emit: Callable[[Chunk], None] = lambda chunk: None

    def start(self, attempt: TransactionAttempt) -> None:
        """A new attempt begins; whatever an older one left is dropped."""

    def execute(self, port: int, chunk: Chunk) -> None:
        """Tuples of this input. Never called with none."""

    def finish(self) -> None:
        """All tuples of the batch have been here."""

    def close(self) -> None:
        """The run ends."""
        self.context.cleanup()


@contextmanager
def no_collection() -> Iterator[None]:
    """No cyclic garbage collection while a chunk is worked on: it would walk all its tuples, again and again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def called(function: Callable[..., Any], *columns: Iterable[Any]) -> list[Any]:
    """What a function of the user returns for each row.

    A loop, for to ``map`` a StopIteration that leaves the function would be the end of the rows; and no slower.
    """
    if len(columns) == 1:
        return [function(value) for value in columns[0]]
    return [function(*values) for values in zip(*columns, strict=True)]


def name_of(thing: Any) -> str:
    """How an operation is called in plans and errors: a function by its name, an object by its class."""
    return getattr(thing, "__qualname__", None) or type(thing).__name__


def is_frame(kind: type) -> bool:
    """A DataFrame, a Series, an Arrow table: what comes when it is iterated are names of columns, or loose values."""
    return kind.__module__.partition(".")[0] in ("pandas", "polars", "pyarrow", "pyspark")


def check_row(row: Any, outputs: Fields, operation: str) -> None:
    """Catches the commonest slip: a bare value emitted in place of a tuple's values."""
    if len(outputs) and (isinstance(row, str | bytes) or not hasattr(row, "__getitem__") or is_frame(type(row))):
        raise TridentError(f"{operation} emitted {row!r}; emit the values of one tuple, for example [{row!r}]")
