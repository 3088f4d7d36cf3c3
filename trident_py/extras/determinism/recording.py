"""Records the input and output of operations in a sampled batch, and compares the output with a second run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...config import Config
from ...engine.hooks import Difference, Kept, TaskWatch
from ...engine.processors import Aggregate, Each, Keep, MultiReduce, Replace
from ...engine.processors.base import NodeContext, Processor
from ...errors import TridentError
from ...model.canonical import UnkeyableError, identity
from ...model.chunks import Chunk
from ...model.pickling import dumps
from ...model.plan import Node, ProcessorNode
from ...model.user_traceback import format_values
from ...tuples import BatchId, TransactionAttempt
from .shadow_run import ShadowProcess, ShadowRun, freeze

_CHECKED = Aggregate | Each | Keep | MultiReduce | Replace


def watch(conf: Mapping[str, Any], kept: Kept) -> TaskWatch | None:
    """Return the checks of one task; None if they are not configured."""
    every, values = conf.get(Config.TOPOLOGY_DETERMINISM_CHECK), conf.get(Config.TOPOLOGY_ERROR_VALUES, True)
    return None if every is None else Checks(every, values is not False, kept(ShadowProcess))


class Checks(TaskWatch):
    """The checks of one task. Every ``every``-th txid is a sample. ``values``: messages may show values."""

    def __init__(self, every: int, values: bool, shadow: ShadowProcess) -> None:
        self.every, self.values, self.shadow = every, values, shadow
        self.watched: list[Watched] = []
        self.refused: list[Difference] = []
        self.attempt: TransactionAttempt | None = None

    def begin(self, attempt: TransactionAttempt) -> None:
        self.attempt = attempt if attempt.txid % self.every == 0 else None

    def make(self, node: ProcessorNode, context: NodeContext) -> Processor:
        """Make the processor of a node. If it runs user code and uses no state, it is watched."""
        if node.state is not None or not isinstance(node.spec, _CHECKED):
            return node.spec.make(context)
        try:
            frozen = freeze(node.spec, context)
        except Exception as error:
            self.refused.append(Difference(node, f"cannot be sent to another process: {error}"))
            return node.spec.make(context)
        watched = Watched(self, node, context, frozen, node.spec.make(context))
        self.watched.append(watched)
        return watched

    def end(self) -> Iterator[Difference]:
        """Called when the batch is done in this task: runs the operations again and yields the differences."""
        yield from self.refused
        self.refused = []
        if self.attempt is None:
            return
        for watched in self.watched:
            text = self._differs(watched, self.attempt)
            if text:
                yield Difference(watched.node, text)

    def _differs(self, watched: Watched, attempt: TransactionAttempt) -> str:
        try:
            again = self.shadow.run(ShadowRun(watched.frozen, attempt.txid, attempt.attemptId, watched.calls))
        except TridentError as error:
            return f"could not be run a second time: {error}"
        if again.error:
            return f"raised {again.error} when it ran a second time"
        return difference(watched.emitted, again.blocks, self.values)


class Watched(Processor[Any]):
    """Wraps a processor and records its input and output while the batch is a sample."""

    def __init__(self, checks: Checks, node: Node, context: NodeContext, frozen: bytes, inner: Processor) -> None:
        super().__init__(inner.spec, context)
        self.checks, self.node, self.frozen, self.inner = checks, node, frozen, inner
        self.calls: list[tuple[int, bytes]] = []
        self.emitted: list[bytes] = []
        inner.emit = self._emit

    def start(self, attempt: BatchId) -> None:
        self.calls, self.emitted = [], []
        self.inner.start(attempt)

    def execute(self, port: int, chunk: Chunk) -> None:
        if self.checks.attempt is not None:
            self.calls.append((port, chunk.encode()))
        self.inner.execute(port, chunk)

    def finish(self) -> None:
        self.inner.finish()

    def close(self) -> None:
        self.inner.close()

    def _emit(self, chunk: Chunk) -> None:
        if self.checks.attempt is not None:
            self.emitted.append(chunk.encode())
        self.emit(chunk)


def difference(first: Iterable[bytes], second: Iterable[bytes], values: bool) -> str:
    """Describe the first row that differs, or a difference in the number of rows; "" if both runs agree."""
    names, rows = _rows(first)
    _, again = _rows(second)
    for number, (row, other) in enumerate(zip(rows, again, strict=False), 1):
        if list(map(_same, row)) != list(map(_same, other)):
            shown = f": first ({format_values(names, row)}), then ({format_values(names, other)})" if values else ""
            return f"returned a different row {number} in a second run{shown}"
    return "" if len(rows) == len(again) else f"returned {len(rows)} rows, then {len(again)} in a second run"


def _rows(blocks: Iterable[bytes]) -> tuple[list[str], list[tuple]]:
    names: list[str] = []
    rows: list[tuple] = []
    for chunk in map(Chunk.decode, blocks):
        names = list(chunk.columns)
        rows += zip(*(_list(chunk, name) for name in names), strict=True) if names else [()] * chunk.length
    return names, rows


def _list(chunk: Chunk, name: str) -> list:
    column = chunk.columns[name]
    return column if isinstance(column, list) else column.to_pylist()


def _same(value: Any) -> Any:
    """Return the value to compare by: the canonical identity, else the pickled bytes."""
    try:
        return identity(value)
    except UnkeyableError:
        return dumps(value)
