"""The roles of user code, named as Storm's interfaces: an object plays a role if it has its methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from ..model.requirements import role


@role
@runtime_checkable
class Executes(Protocol):
    """As a `Function`."""

    def execute(self, tuple: Any, collector: Any, /) -> Any: ...


@role
@runtime_checkable
class Keeps(Protocol):
    """As a `Filter`."""

    def isKeep(self, tuple: Any, /) -> Any: ...


@role
@runtime_checkable
class Maps(Protocol):
    """As a `MapFunction` or a `FlatMapFunction`."""

    def execute(self, tuple: Any, /) -> Any: ...


@role
@runtime_checkable
class Accepts(Protocol):
    """As a `Consumer`."""

    def accept(self, tuple: Any, /) -> Any: ...


@role
@runtime_checkable
class Updates(Protocol):
    """As a `StateUpdater`."""

    def updateState(self, state: Any, tuples: Any, collector: Any, /) -> Any: ...


@role
@runtime_checkable
class Queries(Protocol):
    """As a `QueryFunction`."""

    def batchRetrieve(self, state: Any, tuples: Any, /) -> Sequence[Any]: ...

    def execute(self, tuple: Any, result: Any, collector: Any, /) -> Any: ...


@role
@runtime_checkable
class Chooses(Protocol):
    """As a CustomStreamGrouping."""

    def chooseTasks(self, taskId: Any, values: Any, /) -> Any: ...


@role
@runtime_checkable
class Compares(Protocol):
    """As a java.util.Comparator."""

    def compare(self, a: Any, b: Any, /) -> int: ...


@role
@runtime_checkable
class Applies(Protocol):
    """As an `Assembly`."""

    def apply(self, stream: Any, /) -> Any: ...


@role
@runtime_checkable
class Prepares(Protocol):
    """As an `Operation`, at the start; a CustomStreamGrouping has other arguments."""

    def prepare(self, *arguments: Any) -> Any: ...


@role
@runtime_checkable
class CleansUp(Protocol):
    """As an `Operation`, at the end."""

    def cleanup(self) -> Any: ...


@role
@runtime_checkable
class ExecutesColumns(Protocol):
    """A function that also takes Arrow columns. Returns columns and a callable that gives the parent row of each."""

    def executeBatch(self, *columns: Any) -> Any: ...


@role
@runtime_checkable
class KeepsColumns(Protocol):
    """A filter that also takes Arrow columns."""

    def isKeepBatch(self, *columns: Any) -> Any: ...
