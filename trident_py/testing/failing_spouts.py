"""Spouts that fail in the attempts that a test names."""

from __future__ import annotations

from typing import Any

from ..errors import DefinitionError
from ..model.requirements import Needs, needs_of
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
from .failures import PlannedFailure, Wrapper

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
    for base, wrapper in _WRAPPERS.items():
        if isinstance(spout, base):
            return wrapper(spout, failure)
    raise DefinitionError(f"failing cannot wrap {type(spout).__name__}; wrap a function behind it")


class _Failing(Wrapper):
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


class _FailingBatchSpout(_Failing, IBatchSpout):
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


class _FailingSource(_Failing):
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


_WRAPPERS: dict[type, Any] = {
    IBatchSpout: _FailingBatchSpout,
    ICommitterTridentSpout: _FailingCommitter,  # before its base class ITridentSpout
    ITridentSpout: _FailingTridentSpout,
    IPartitionedTridentSpout: _FailingPartitioned,
    IOpaquePartitionedTridentSpout: _FailingOpaque,
}
