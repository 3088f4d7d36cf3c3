"""`failing`: makes an operation, a plain callable or a spout fail in the attempts that a test names."""

from __future__ import annotations

import copy
from typing import Any

from ..errors import DefinitionError
from ..operations import (
    Aggregator,
    Consumer,
    Filter,
    FlatMapFunction,
    Function,
    GroupedMultiReducer,
    MapFunction,
    MultiReducer,
    TridentOperationContext,
)
from ..operations.base import Prepared
from ..spouts import ITridentDataSource
from .failing_spouts import failing_spout
from .failures import PlannedFailure, When


def failing(fn: Any, when: When, how: str = "fail") -> Any:
    """Wrap `fn` so that it fails in these attempts, before its own work.

    Takes functions, filters, map functions, consumers, aggregators, multi reducers, plain callables and spouts.
    ``when``: a set of (txid, attempt) or a callable of both. ``how``: as for Crashing.
    """
    failure = PlannedFailure(when, how)
    for base, wrapper in _WRAPPERS.items():
        if isinstance(fn, base):
            return wrapper(fn, failure)
    if isinstance(fn, ITridentDataSource):
        return failing_spout(fn, failure)
    if not callable(fn):
        raise DefinitionError(f"failing wraps operations, callables and spouts, got {fn!r}")
    return _FailingCallable(fn, failure)


class _Failing(Prepared):
    """Calls prepare and cleanup of the wrapped operation, and keeps the running attempt."""

    def __init__(self, inner: Any, failure: PlannedFailure) -> None:
        self.inner = inner
        self.failure = failure
        self.context: TridentOperationContext | None = None

    def prepare(self, conf: dict, context: TridentOperationContext) -> None:
        self.context = context
        if isinstance(self.inner, Prepared):
            self.inner = copy.copy(self.inner)  # a copy for this partition
            self.inner.prepare(conf, context)

    def cleanup(self) -> None:
        if isinstance(self.inner, Prepared):
            self.inner.cleanup()

    def check(self) -> None:
        if self.context is not None:
            self.failure.check(self.context.transaction, type(self.inner).__name__)


class _FailingCallable(_Failing):
    def __call__(self, *values: Any) -> Any:
        self.check()
        return self.inner(*values)


class _FailingExecute(_Failing):
    def execute(self, *args: Any) -> Any:
        self.check()
        return self.inner.execute(*args)


class _FailingFunction(_FailingExecute, Function):
    pass


class _FailingMap(_FailingExecute, MapFunction):
    pass


class _FailingFlatMap(_FailingExecute, FlatMapFunction):
    pass


class _FailingFilter(_Failing, Filter):
    def isKeep(self, tuple: Any) -> bool:
        self.check()
        return self.inner.isKeep(tuple)


class _FailingConsumer(_Failing, Consumer):
    def accept(self, tuple: Any) -> None:
        self.check()
        self.inner.accept(tuple)


class _FailingAggregator(_Failing, Aggregator):
    """Fails in `aggregate`."""

    def init(self, batchId: Any, collector: Any) -> Any:
        return self.inner.init(batchId, collector)

    def aggregate(self, value: Any, tuple: Any, collector: Any) -> Any:
        self.check()
        return self.inner.aggregate(value, tuple, collector)

    def complete(self, value: Any, collector: Any) -> None:
        self.inner.complete(value, collector)


class _FailingReducer(_FailingExecute):
    def init(self, *args: Any) -> Any:
        return self.inner.init(*args)

    def complete(self, *args: Any) -> None:
        self.inner.complete(*args)


class _FailingMultiReducer(_FailingReducer, MultiReducer):
    pass


class _FailingGroupedMultiReducer(_FailingReducer, GroupedMultiReducer):
    pass


_WRAPPERS: dict[type, Any] = {
    Function: _FailingFunction,
    Filter: _FailingFilter,
    MapFunction: _FailingMap,
    FlatMapFunction: _FailingFlatMap,
    Consumer: _FailingConsumer,
    Aggregator: _FailingAggregator,
    MultiReducer: _FailingMultiReducer,
    GroupedMultiReducer: _FailingGroupedMultiReducer,
}
