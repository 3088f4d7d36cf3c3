"""`failing`: makes an operation, a plain callable or a spout fail in the attempts that a test names."""

from __future__ import annotations

import copy
from typing import Any

from ..errors import DefinitionError
from ..model.requirements import Needs, needs_of
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
from ..spouts import (
    IBatchSpout,
    ICommitterTridentSpout,
    IOpaquePartitionedTridentSpout,
    IPartitionedTridentSpout,
    ITridentDataSource,
    ITridentSpout,
)
from ..spouts.inspection import method_of
from ..tuples import FieldsLike
from .failures import PlannedFailure, When, Wrapper

EMITS = (
    "emitBatch",
    "emitChunks",
    "emitBatchNew",
    "emitPartitionBatch",
    "emitPartitionBatchNew",
    "reEmitPartitionBatch",
)


def failing_spout(spout: ITridentDataSource, failure: PlannedFailure) -> Any:
    """Wrap a spout so that it fails before it emits."""
    for base, wrapper in _SPOUTS.items():
        if isinstance(spout, base):
            return wrapper(spout, failure)
    raise DefinitionError(f"failing cannot wrap {type(spout).__name__}; wrap a function behind it")


class _FailingSpout(Wrapper):
    """Delegates everything but emitting to the wrapped spout."""

    def __init__(self, inner: Any, failure: PlannedFailure) -> None:
        self.inner = inner
        self.failure = failure
        self.kind = inner.kind
        self.home = inner.home

    def snapshot(self) -> Any:
        """Return the copy that newStream keeps: a wrapper around the spout's own snapshot."""
        return type(self)(self.inner.snapshot(), self.failure)

    @property
    def needs(self) -> Needs:
        return needs_of(self.inner)

    def getOutputFields(self) -> FieldsLike:
        return self.inner.getOutputFields()

    def getComponentConfiguration(self) -> dict[str, Any] | None:
        return self.inner.getComponentConfiguration()


class _FailingBatchSpout(_FailingSpout, IBatchSpout):
    """Takes the running attempt from the context."""

    def open(self, conf: dict, context: Any) -> None:
        self.context = context
        self.inner.open(conf, context)

    def emitBatch(self, batchId: int, collector: Any) -> None:
        self.failure.check(self.context.transaction, "emitBatch")
        self.inner.emitBatch(batchId, collector)

    def ack(self, batchId: int) -> None:
        self.inner.ack(batchId)

    def close(self) -> None:
        self.inner.close()


class _FailingSource(_FailingSpout):
    """Makes the spout's emitters fail."""

    def getCoordinator(self, *args: Any) -> Any:
        return self.inner.getCoordinator(*args)

    def getEmitter(self, *args: Any) -> Any:
        emitter = self.inner.getEmitter(*args)
        for name in EMITS:
            method = method_of(emitter, name)
            if method is not None:
                setattr(emitter, name, _Emit(method, self.failure))
        return emitter


class _Emit:
    """An emitting method that fails before it emits. Its first argument is the attempt."""

    def __init__(self, method: Any, failure: PlannedFailure) -> None:
        self.method = method
        self.failure = failure

    def __call__(self, tx: Any, *args: Any, **named: Any) -> Any:
        self.failure.check(tx, "emitBatch")
        return self.method(tx, *args, **named)


class _FailingCommitter(_FailingSource, ICommitterTridentSpout):
    pass


class _FailingTridentSpout(_FailingSource, ITridentSpout):
    pass


class _FailingPartitioned(_FailingSource, IPartitionedTridentSpout):
    pass


class _FailingOpaque(_FailingSource, IOpaquePartitionedTridentSpout):
    pass


_SPOUTS: dict[type, Any] = {
    IBatchSpout: _FailingBatchSpout,
    ICommitterTridentSpout: _FailingCommitter,  # before its base class ITridentSpout
    ITridentSpout: _FailingTridentSpout,
    IPartitionedTridentSpout: _FailingPartitioned,
    IOpaquePartitionedTridentSpout: _FailingOpaque,
}


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
