"""The roles of user code, as Storm's interfaces name them: what has these methods plays the role.

The protocols hold at run time as they do for mypy, so both take the same objects, whether or not they inherit from the
class of the same role in `trident_py.operations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Executes(Protocol):
    """As a `Function`."""

    def execute(self, tuple: Any, collector: Any, /) -> Any: ...


@runtime_checkable
class Keeps(Protocol):
    """As a `Filter`."""

    def isKeep(self, tuple: Any, /) -> Any: ...


@runtime_checkable
class Maps(Protocol):
    """As a `MapFunction` or a `FlatMapFunction`."""

    def execute(self, tuple: Any, /) -> Any: ...


@runtime_checkable
class Accepts(Protocol):
    """As a `Consumer`."""

    def accept(self, tuple: Any, /) -> Any: ...


@runtime_checkable
class Updates(Protocol):
    """As a `StateUpdater`."""

    def updateState(self, state: Any, tuples: Any, collector: Any, /) -> Any: ...


@runtime_checkable
class Queries(Protocol):
    """As a `QueryFunction`."""

    def batchRetrieve(self, state: Any, tuples: Any, /) -> Sequence[Any]: ...

    def execute(self, tuple: Any, result: Any, collector: Any, /) -> Any: ...


@runtime_checkable
class Chooses(Protocol):
    """As a CustomStreamGrouping."""

    def chooseTasks(self, taskId: Any, values: Any, /) -> Any: ...


@runtime_checkable
class Applies(Protocol):
    """As an `Assembly`."""

    def apply(self, stream: Any, /) -> Any: ...


@runtime_checkable
class Prepares(Protocol):
    """As an `Operation`, at the start; a CustomStreamGrouping has other arguments."""

    def prepare(self, *told: Any) -> Any: ...


@runtime_checkable
class CleansUp(Protocol):
    """As an `Operation`, at the end."""

    def cleanup(self) -> Any: ...


@runtime_checkable
class ExecutesColumns(Protocol):
    """A function that also takes Arrow columns: it returns columns and, as a call, each row's parent."""

    def executeBatch(self, *columns: Any) -> Any: ...


@runtime_checkable
class KeepsColumns(Protocol):
    """A filter that also takes Arrow columns."""

    def isKeepBatch(self, *columns: Any) -> Any: ...
