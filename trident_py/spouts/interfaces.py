"""The spout interfaces: what users implement to bring data into a topology.

A spout is a plain value that can be copied and pickled; connections are opened in ``open``, in the
coordinator or in the emitter, never in ``__init__``. Where its parts run:

    IBatchSpout, IRichSpout, ICommitterTridentSpout   in the user's driver process, one instance per partition
    ITridentSpout, I(Opaque)PartitionedTridentSpout   coordinator in the driver process, emitters in the tasks

Any of them may have ``isExhausted() -> bool`` (a coordinator may have it too): that makes the spout finite.
Every spout has ``kind``: what a replay of a batch looks like ("transactional": the same tuples; "opaque":
each tuple succeeds in one batch only; "non-transactional": neither). Source in Storm:
org.apache.storm.trident.spout.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any

from ..errors import DefinitionError
from ..operations.base import TridentCollector, TridentOperationContext
from ..tuples import Fields, FieldsLike, TransactionAttempt

TRANSACTIONAL = "transactional"
OPAQUE = "opaque"
NON_TRANSACTIONAL = "non-transactional"
KINDS = (TRANSACTIONAL, OPAQUE, NON_TRANSACTIONAL)


class SpoutContext(TridentOperationContext):
    """What `open`, `getCoordinator` and `getEmitter` learn: which task of how many, and of which spout.

    ``transaction`` is the attempt that is running whenever a spout in the driver process is called.
    """

    def __init__(self, component: str, partitionIndex: int, numPartitions: int) -> None:
        super().__init__(partitionIndex, numPartitions)
        self._component = component

    def getThisComponentId(self) -> str:
        return self._component

    def getThisTaskIndex(self) -> int:
        return self.getPartitionIndex()

    def getComponentTasks(self, component: str | None = None) -> list[int]:
        """The task numbers of this spout."""
        return list(range(self.numPartitions()))


class ITridentDataSource:
    """The root of all spouts. Source in Storm: ITridentDataSource."""

    kind: str = NON_TRANSACTIONAL
    home: bool = False  # emits in the driver process, as the kinds of spouts that can do nothing else

    def getComponentConfiguration(self) -> dict[str, Any] | None:
        """Settings of this spout alone; ``topology.max.task.parallelism`` limits its partitions."""
        return None

    def getOutputFields(self) -> FieldsLike:
        raise NotImplementedError(f"{type(self).__name__}.getOutputFields: return the fields of this spout")

    def snapshot(self) -> Any:
        """What ``newStream`` takes: a copy, which later changes do not reach. A feeder gives itself.

        Raises DefinitionError for a spout that cannot be copied.
        """
        try:
            return copy.deepcopy(self)
        except (TypeError, NotImplementedError) as error:
            raise DefinitionError(
                f"spout {self!r} cannot be copied: {error}; open connections in open(), in the "
                "coordinator or in the emitter, not in __init__"
            ) from error


class IBatchSpout(ITridentDataSource):
    """A spout of small batches, one instance per partition, in the driver process.

    `emitBatch` is called on every attempt of a txid, with the same batchId (the txid) on replay: the spout
    itself must remember the batch until `ack`. If it does, say so: ``kind = "transactional"``. After a
    restart the txid goes on, but the spout starts wherever `open` puts it.
    The attempt is ``context.transaction``.
    """

    def open(self, conf: dict, context: SpoutContext) -> None:
        """Called once, before the first batch of a run."""

    @abstractmethod
    def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
        raise NotImplementedError

    def ack(self, batchId: int) -> None:
        """The batch is committed. Not guaranteed: a later batch's ack covers the earlier ones too."""

    def close(self) -> None:
        """Called when the run ends."""


class ITridentSpout(ITridentDataSource):
    """The general spout: a coordinator says what a batch is, emitters emit it from that description.

    The coordinator decides whether replays are identical: say so with ``kind``.
    """

    class BatchCoordinator:
        """Lives in the driver process; one for the spout, whatever its parallelism."""

        def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
            """What the batch is, as a JSON value. Called once for each attempt.

            prevMetadata belongs to the closest earlier txid, currMetadata is what an earlier attempt of this
            txid got, or None. The result is stored and reaches every emitter.
            """
            raise NotImplementedError

        def success(self, txid: int) -> None:
            """The batch is committed. Not guaranteed."""

        def isReady(self, txid: int) -> bool:
            """Whether there is something for this txid; one ready spout starts a batch for all."""
            return True

        def isPending(self) -> bool:
            """Whether it is worth waiting a moment although it is not ready: a run with ``availableNow`` ends where
            no spout is ready."""
            return False

        def backlog(self) -> dict[str, int]:
            """How many tuples still wait, by partition, as far as is known; shown as progress. Called often, while
            batches are made: look nothing up here."""
            return {}

        def restore(self, txid: int, metadata: Any) -> None:
            """A run goes on after ``txid``, whose metadata this is. Called before its first batch."""

        def close(self) -> None: ...

    class Emitter:
        """One per partition; in the tasks, or in the driver process for a committer.

        An emitter may have ``emitChunks(tx, coordinatorMeta, wanted) -> Iterator[Chunk]``, which is then
        called instead of `emitBatch`: columns, never rows. ``wanted`` names the fields that are read. It may have
        ``reportTo(report)``: called first, with what makes events of errors that do not fail the batch.
        """

        def emitBatch(self, tx: TransactionAttempt, coordinatorMeta: Any, collector: TridentCollector) -> None:
            raise NotImplementedError

        def success(self, tx: TransactionAttempt) -> None:
            """The batch is committed. Not guaranteed; in a task it comes with the next batch at latest."""

        def close(self) -> None: ...

    @abstractmethod
    def getCoordinator(self, txStateId: str, conf: dict, context: SpoutContext) -> Any:
        """Called once in the driver process (Storm: twice). ``conf["trident.report"](error)`` makes an event."""
        raise NotImplementedError

    @abstractmethod
    def getEmitter(self, txStateId: str, conf: dict, context: SpoutContext) -> Any:
        """Called once for each partition, where it emits."""
        raise NotImplementedError


class ICommitterTridentSpout(ITridentSpout):
    """An ITridentSpout whose emitters take part in the commit; they live in the driver process."""

    class Emitter(ITridentSpout.Emitter):
        def commit(self, attempt: TransactionAttempt) -> None:
            """All states have committed this attempt. A FailedException replays the batch."""
            raise NotImplementedError


class OutputFieldsDeclarer:
    """What `IRichSpout.declareOutputFields` writes to."""

    def __init__(self) -> None:
        self.fields: Fields | None = None

    def declare(self, fields: FieldsLike) -> None:
        self.fields = Fields.of(fields)


class IRichSpout(ITridentDataSource):
    """A plain Storm spout; non-transactional. In the driver process.

    A batch is up to ``topology.spout.max.batch.size`` (1000) calls of `nextTuple`. Message ids of a batch are
    acked when it is committed; when its txid is emitted again they are failed first and a new batch is drawn.
    """

    def open(self, conf: dict, context: SpoutContext, collector: Any) -> None:
        """Called at the first batch. ``collector.emit(values, messageId=None)``."""

    def close(self) -> None: ...

    def activate(self) -> None:
        """Never called by Trident."""

    def deactivate(self) -> None:
        """Never called by Trident."""

    @abstractmethod
    def nextTuple(self) -> None:
        raise NotImplementedError

    def ack(self, msgId: Any) -> None: ...

    def fail(self, msgId: Any) -> None: ...

    def declareOutputFields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the fields here, or return them from `getOutputFields`."""

    def getOutputFields(self) -> FieldsLike:
        declarer = OutputFieldsDeclarer()
        self.declareOutputFields(declarer)
        if declarer.fields is None:
            raise NotImplementedError(f"{type(self).__name__}: declareOutputFields declared no fields")
        return declarer.fields
