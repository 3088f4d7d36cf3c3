"""The spout interfaces, which users implement to bring data into a topology.

A spout is a plain value that can be copied and pickled. Open connections in ``open``, in the coordinator or in the
emitter, never in ``__init__``. Where the parts run:

    IBatchSpout, IRichSpout, ICommitterTridentSpout   in the user's driver process, one instance per partition
    ITridentSpout, I(Opaque)PartitionedTridentSpout   coordinator in the driver process, emitters in the tasks

A spout, or its coordinator, may define ``isExhausted() -> bool``; the spout is then finite. ``kind`` says what a replay
of a batch emits: "transactional" (the same tuples), "opaque" (perhaps other tuples, but each tuple succeeds in one
batch only) or "non-transactional" (neither). Source in Storm: org.apache.storm.trident.spout.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any

from ..errors import DefinitionError
from ..model.requirements import Needs
from ..operations.base import TridentCollector, TridentOperationContext
from ..tuples import Fields, FieldsLike, TransactionAttempt

TRANSACTIONAL = "transactional"
OPAQUE = "opaque"
NON_TRANSACTIONAL = "non-transactional"
KINDS = (TRANSACTIONAL, OPAQUE, NON_TRANSACTIONAL)


class SpoutContext(TridentOperationContext):
    """The spout's component id, this task's index and the number of tasks; passed when a part of a spout is opened.

    ``transaction`` is the running attempt, during every call of a spout in the driver process.
    """

    def __init__(self, component: str, partitionIndex: int, numPartitions: int) -> None:
        super().__init__(partitionIndex, numPartitions)
        self._component = component

    def getThisComponentId(self) -> str:
        return self._component

    def getThisTaskIndex(self) -> int:
        return self.getPartitionIndex()

    def getThisTaskId(self) -> int:
        """Return `getThisTaskIndex`: tasks have no numbers of a whole topology."""
        return self.getPartitionIndex()

    def getComponentTasks(self, component: str | None = None) -> list[int]:
        """Return the task numbers of this spout."""
        return list(range(self.numPartitions()))


class ITridentDataSource:
    """The root of all spouts. Source in Storm: ITridentDataSource."""

    kind: str = NON_TRANSACTIONAL
    home: bool = False  # True: emits in the driver process. IBatchSpout, IRichSpout and committers always do.

    def getComponentConfiguration(self) -> dict[str, Any] | None:
        """Return the settings of this spout alone; ``topology.max.task.parallelism`` limits its partitions."""
        return None

    def getOutputFields(self) -> FieldsLike:
        raise NotImplementedError(f"{type(self).__name__}.getOutputFields must be defined and return the fields")

    @property
    def needs(self) -> Needs:
        """What must be there on each machine that runs emitters. Read on the driver; a start on a cluster checks it."""
        return Needs()

    def snapshot(self) -> Any:
        """Return the copy that ``newStream`` keeps; later changes do not reach it. A feeder returns itself.

        Raises DefinitionError if the spout cannot be copied.
        """
        try:
            return copy.deepcopy(self)
        except (TypeError, NotImplementedError) as error:
            raise DefinitionError(
                f"spout {self!r} cannot be copied: {error}; open connections in open(), in the "
                "coordinator or in the emitter, not in __init__"
            ) from error


class IBatchSpout(ITridentDataSource):
    """A spout of small batches. Runs in the driver process, one instance per partition.

    `emitBatch` is called on every attempt of a txid; batchId is the txid. The spout itself must keep a batch until its
    `ack` to emit it again; if it does, declare ``kind = "transactional"``. After a restart the txids go on, but the
    spout starts wherever `open` puts it. The attempt is ``context.transaction``.
    """

    emits_any_batch: bool = False  # True: emits each batch of before again, also in a later run (`trident txid rewind`)

    def open(self, conf: dict, context: SpoutContext) -> None:
        """Called once, before the first batch of a run."""

    @abstractmethod
    def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
        raise NotImplementedError

    def ack(self, batchId: int) -> None:
        """Called after the batch is committed. A call may be lost: an ack covers all earlier batches too."""

    def close(self) -> None:
        """Called when the run ends."""


class ITridentSpout(ITridentDataSource):
    """The general spout: a coordinator describes each batch, and emitters emit it from that description.

    Set ``kind`` to what the coordinator guarantees: whether a replayed batch has the same tuples.
    """

    class BatchCoordinator:
        """Runs in the driver process; one per spout, whatever its parallelism."""

        def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
            """Return the description of the batch, a JSON value. Called once per attempt.

            prevMetadata is the description of the closest earlier txid. currMetadata is the one that an earlier attempt
            of this txid got, or None. The result is stored and passed to every emitter.
            """
            raise NotImplementedError

        def success(self, txid: int) -> None:
            """Called after the batch is committed. A call may be lost."""

        def isReady(self, txid: int) -> bool:
            """Return whether this txid has tuples to emit. One ready spout starts a batch for all spouts."""
            return True

        def isPending(self) -> bool:
            """Return whether tuples are expected soon although the spout is not ready. A run with ``availableNow``
            ends when no spout is ready, but first waits for a pending one."""
            return False

        def backlog(self) -> dict[str, int]:
            """Return the number of waiting tuples by partition, as last known; shown as progress. Called often, during
            batches: do not query the source here."""
            return {}

        def metadataForTasks(self, metadata: Any, numTasks: int) -> list[Any]:
            """Return what the emitter of each task gets as ``coordinatorMeta``. Called on the driver, in each attempt.
            By default each gets the whole, so the data that a batch sends grows with the square of the tasks if the
            metadata grows with them."""
            return [metadata] * numTasks

        def tuplesAtMost(self, metadata: Any) -> int | None:
            """Return how many tuples the batch has at most; None if only its emitters know. Called on the driver in
            each attempt, after `initializeTransaction`. Small batches need no job of Spark (docs/small_batches.md)."""
            return None

        def sharedWithTasks(self, txid: int) -> Any:
            """Return a JSON value that states may read in every task of this txid, or None. Called on the driver
            before each attempt, after `initializeTransaction`. The value travels with every task: keep it small."""
            return None

        def restore(self, txid: int, metadata: Any) -> None:
            """Called before the first batch of a run that continues after ``txid``, with the metadata of that txid; and
            once more, with the next txid, if that batch was decided before the restart and is not emitted again."""

        def close(self) -> None: ...

    class Emitter:
        """One per partition; runs in a task, or in the driver process for a committer.

        An emitter in a task may define ``emitChunks(tx, coordinatorMeta, wanted) -> Iterator[Chunk]``, which is called
        instead of `emitBatch` and returns columns; ``wanted`` names the fields that are read. It may also define
        ``reportTo(report)``, called before the first batch: ``report(error)`` records an event and fails no batch.
        """

        def emitBatch(self, tx: TransactionAttempt, coordinatorMeta: Any, collector: TridentCollector) -> None:
            raise NotImplementedError

        def success(self, tx: TransactionAttempt) -> None:
            """Called after the batch is committed, in a task with the next batch at the latest. A call may be lost."""

        def close(self) -> None: ...

    @abstractmethod
    def getCoordinator(self, txStateId: str, conf: dict, context: SpoutContext) -> Any:
        """Called once, in the driver process (Storm: twice). ``conf["trident.report"](error)`` records an event."""
        raise NotImplementedError

    @abstractmethod
    def getEmitter(self, txStateId: str, conf: dict, context: SpoutContext) -> Any:
        """Called once per partition, in the process that emits it."""
        raise NotImplementedError


class ICommitterTridentSpout(ITridentSpout):
    """An ITridentSpout whose emitters take part in the commit. They run in the driver process."""

    class Emitter(ITridentSpout.Emitter):
        def commit(self, attempt: TransactionAttempt) -> None:
            """Called when all states have committed this attempt. A FailedException replays the batch."""
            raise NotImplementedError


class OutputFieldsDeclarer:
    """Collects the fields that `IRichSpout.declareOutputFields` declares."""

    def __init__(self) -> None:
        self.fields: Fields | None = None

    def declare(self, fields: FieldsLike) -> None:
        self.fields = Fields.of(fields)


class IRichSpout(ITridentDataSource):
    """A plain Storm spout, non-transactional. Runs in the driver process.

    A batch is up to ``topology.spout.max.batch.size`` (1000) calls of `nextTuple`. The message ids of a batch are acked
    when it is committed. When its txid is emitted again, they are failed first and a new batch is drawn.
    """

    def open(self, conf: dict, context: SpoutContext, collector: Any) -> None:
        """Called before the first batch. Keep ``collector``: ``collector.emit(values, messageId=None)``."""

    def close(self) -> None: ...

    def activate(self) -> None:
        """Do nothing: never called by Trident."""

    def deactivate(self) -> None:
        """Do nothing: never called by Trident."""

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
            raise NotImplementedError(f"{type(self).__name__}: declareOutputFields must call declarer.declare(fields)")
        return declarer.fields
