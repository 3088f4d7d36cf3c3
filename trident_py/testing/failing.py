"""`failing`: makes an operation, a plain callable or a spout fail in the attempts that a test names."""

from __future__ import annotations

import copy
from operator import methodcaller
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


def _subclass(base: type, wrapper: type, **methods: Any) -> Any:
    """Return a wrapper that is a ``base``, too. It is found by its name in this module, so that it can be pickled."""
    name = f"_Failing{base.__name__}"
    made = globals()[name] = type(name, (wrapper, base), {"__module__": __name__, **methods})
    return made


_SPOUTS: dict[type, Any] = {
    IBatchSpout: _FailingBatchSpout,
    **{
        base: _subclass(base, _FailingSource)  # the committer before its base class
        for base in (
            ICommitterTridentSpout, ITridentSpout, IPartitionedTridentSpout, IOpaquePartitionedTridentSpout,
        )
    },
}  # fmt: skip


def failing(fn: Any, when: When, how: str = "fail") -> Any:
    """Wrap `fn` so that it fails in these attempts, before its own work.

    Takes functions, filters, map functions, consumers, aggregators, multi reducers, plain callables and spouts.
    ``when``: a set of (txid, attempt) or a callable of both. ``how``: as for Crashing.
    """
    failure = PlannedFailure(when, how)
    for base, wrapper in [*_WRAPPERS.items(), *_SPOUTS.items()]:
        if isinstance(fn, base):
            return wrapper(fn, failure)
    if isinstance(fn, ITridentDataSource):
        raise DefinitionError(f"failing cannot wrap {type(fn).__name__}; wrap a function behind it")
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


def _method(name: str, checks: bool) -> Any:
    def method(self: Any, *args: Any) -> Any:
        if checks:
            self.check()
        return methodcaller(name, *args)(self.inner)

    return method


def _make_failing(base: type, checked: str, *others: str) -> Any:
    """Return a ``base`` that fails in the method ``checked``, and passes on the others."""
    return _subclass(base, _Failing, **{name: _method(name, name == checked) for name in (checked, *others)})


_WRAPPERS: dict[type, Any] = {
    **{base: _make_failing(base, "execute") for base in (Function, MapFunction, FlatMapFunction)},
    Filter: _make_failing(Filter, "isKeep"),
    Consumer: _make_failing(Consumer, "accept"),
    Aggregator: _make_failing(Aggregator, "aggregate", "init", "complete"),
    **{base: _make_failing(base, "execute", "init", "complete") for base in (MultiReducer, GroupedMultiReducer)},
}
