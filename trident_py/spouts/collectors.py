"""The collectors that spouts emit into. Each checks the number of values of every tuple."""

from __future__ import annotations

from typing import Any

from ..errors import SpoutError
from ..model.rows import Emit, is_row
from ..operations.base import TridentCollector
from ..tuples import Fields


class WrongNumberOfValues(SpoutError, ValueError):
    """A spout emitted more or fewer values than it has fields. Storm: IllegalArgumentException at emit."""


def check_tuples(spout: str, fields: Fields, append: Emit) -> Emit:
    """Wrap `append`: raises WrongNumberOfValues unless the values of a tuple are as many as the fields, and
    copies a list: the spout may fill it again."""
    expected = len(fields)

    def emit(values: Any) -> None:
        if type(values) is not tuple and type(values) is not list and not is_row(values):
            raise WrongNumberOfValues(
                f"spout {spout!r} emitted {values!r}; emit the values of one tuple as a list or a tuple"
            )
        if len(values) != expected:
            raise WrongNumberOfValues(
                f"spout {spout!r}: Tuple created with wrong number of fields. Expected {expected} fields "
                f"but got {len(values)} fields; the fields are {fields}, the tuple is {values!r}"
            )
        append(tuple(values) if isinstance(values, list) else values)

    return emit


class SpoutOutputCollector:
    """The collector of an `IRichSpout`. Remembers the message ids of the running batch."""

    def __init__(self) -> None:
        self.ids: list[Any] = []
        self.emitted = 0
        self._target: TridentCollector | None = None

    def start(self, target: TridentCollector) -> None:
        """Start a new batch."""
        self._target = target
        self.ids = []
        self.emitted = 0

    def emit(self, values: Any, messageId: Any = None) -> list[int]:
        """Emit one tuple; messageId is acked or failed with its batch. Returns no task ids, as in Trident."""
        if self._target is None:
            raise SpoutError("an IRichSpout emitted outside a batch; emit only while nextTuple() runs")
        self._target.emit(values)
        self.emitted += 1
        if messageId is not None:
            self.ids.append(messageId)
        return []

    def emitDirect(self, taskId: int, values: Any, messageId: Any = None) -> None:
        raise SpoutError("Trident does not support direct streams; use emit(values, messageId)")

    def flush(self) -> None:
        """Do nothing; a transport hint in Storm."""

    def getPendingCount(self) -> int:
        """Return 0, as for a spout in Trident: its batch waits, not its tuples."""
        return 0

    def reportError(self, error: BaseException) -> None:
        if self._target is not None:
            self._target.reportError(error)
