"""Feeders: spouts that a test or a program feeds by hand, in the process that runs the coordination.

A feeder is a handle. A copy in the same process is the feeder itself; a feeder unpickled in another process is inert.
Source in Storm: org.apache.storm.trident.testing.FeederBatchSpout, FeederCommitterBatchSpout.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any
from weakref import WeakValueDictionary

from ..errors import SpoutError
from ..operations.base import TridentCollector
from ..spouts.interfaces import TRANSACTIONAL, ICommitterTridentSpout, ITridentSpout, SpoutContext
from ..tuples import Fields, FieldsLike, TransactionAttempt

log = logging.getLogger(__name__)
Rows = list[Any]
Tuples = Sequence[Any] | Mapping[int, Sequence[Any]]

_LIVE: WeakValueDictionary[str, FeederBatchSpout] = WeakValueDictionary()
_LARGEST_METADATA = 1_000_000


class _Fed:
    """One fed batch: first queued, then assigned to a txid, then done."""

    def __init__(self, tuples: Tuples) -> None:
        self.done = False
        self._by_partition = dict(tuples) if isinstance(tuples, Mapping) else None
        self._tuples = [] if isinstance(tuples, Mapping) else list(tuples)
        for values in chain(self._tuples, *(self._by_partition or {}).values()):
            if not isinstance(values, list | tuple):
                raise SpoutError(f"feed: {values!r} is not a tuple of values; pass a list of tuples")

    def parts(self, count: int) -> list[Rows]:
        """Return the tuples of each partition: as given by partition, or dealt round robin."""
        if self._by_partition is None:
            return [self._tuples[index::count] for index in range(count)]
        beyond = [index for index in self._by_partition if index not in range(count)]
        if beyond:
            raise SpoutError(f"feed: no partition {beyond[0]!r}; the feeder has {count} partitions, numbered from 0")
        return [list(self._by_partition.get(index, ())) for index in range(count)]


class FeederBatchSpout(ITridentSpout):
    """A spout whose batches are fed by `feed`, one per call. Emits in the driver process.

    A batch is kept until it is committed, so replays are identical. Batches whose values are JSON values (up to 1 MB)
    also survive a restart of the process, in the metadata of their txid. `close` makes the feeder finite.
    """

    kind = TRANSACTIONAL
    home = True

    def __init__(self, fields: FieldsLike) -> None:
        self._setup(Fields.of(fields), uuid.uuid4().hex, live=True)
        _LIVE[self._token] = self

    def _setup(self, fields: Fields, token: str, live: bool) -> None:
        self._fields = fields
        self._token = token
        self._live = live
        self._changed = threading.Condition()
        self._queue: deque[_Fed] = deque()
        self._assigned: dict[int, _Fed] = {}
        self._left: dict[int, _Fed] = {}
        self._wait = True
        self._closed = False
        self._ended = False

    def __deepcopy__(self, memo: dict) -> FeederBatchSpout:
        return self

    def __reduce__(self) -> tuple:
        return _feeder_of, (type(self), self._token, self._fields)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._fields})"

    # Called by the user.

    def feed(self, tuples: Tuples, timeout: float | None = None, wait: bool = True) -> None:
        """Queue one batch and wait until it is committed.

        ``tuples`` is a list, dealt round robin over the partitions, or {partition: tuples}. ``wait=False`` only queues.
        Raises SpoutError after ``timeout`` seconds, or if the run ends first. The batch then stays queued for the next
        run: do not feed it again.
        """
        fed = _Fed(tuples)
        with self._changed:
            self._check_open(wait)
            self._queue.append(fed)
            self._changed.notify_all()
            if wait and not self._changed.wait_for(lambda: fed.done or self._ended, timeout):
                raise SpoutError(f"feed: the batch was not committed within {timeout} s; it stays queued")
            if wait and not fed.done:
                raise SpoutError("feed: the run ended before the batch was committed; the next run emits it")

    def _check_open(self, wait: bool) -> None:
        if not self._live:
            raise SpoutError("feed: this is a copy of a feeder in another process; feed the original")
        if self._closed:
            raise SpoutError("feed: the feeder is closed; feed before close()")
        if wait and self._ended:
            raise SpoutError("feed: the run has ended; start it again first, or call feed(..., wait=False)")

    def setWaitToEmit(self, wait: bool) -> None:
        """Set when batches start. True (the default): a batch starts only after a `feed`. False: empty batches run
        too."""
        with self._changed:
            self._wait = wait

    def close(self) -> None:
        """Declare the end of the input: the feeder ends when all batches are emitted."""
        with self._changed:
            self._closed = True

    def isExhausted(self) -> bool:
        with self._changed:
            return self._closed and not self._queue and not self._left

    # Called by the coordination.

    def getOutputFields(self) -> Fields:
        return self._fields

    def getCoordinator(self, txStateId: str, conf: dict, context: SpoutContext) -> _FeederCoordinator:
        with self._changed:
            self._ended = False
            self._left = self._left | self._assigned
            self._assigned = {}
        return _FeederCoordinator(self, context.numPartitions())

    def getEmitter(self, txStateId: str, conf: dict, context: SpoutContext) -> _FeederEmitter:
        return _FeederEmitter(self, context.getPartitionIndex(), context.numPartitions())

    def assign(self, txid: int, logged: bool) -> _Fed | None:
        """Return the batch of a txid: the one assigned before, else the next of the queue; None if there is none."""
        with self._changed:
            if txid not in self._assigned and logged and txid in self._left:
                self._assigned[txid] = self._left.pop(txid)
            if txid not in self._assigned and not logged:
                # Batches that an earlier run took but this run's log lacks were never emitted: they come first.
                self._queue.extendleft(self._left[earlier] for earlier in sorted(self._left, reverse=True))
                self._left = {}
                if self._queue:
                    self._assigned[txid] = self._queue.popleft()
            return self._assigned.get(txid)

    def find_batch(self, txid: int) -> _Fed | None:
        with self._changed:
            return self._assigned.get(txid)

    def ready(self, txid: int) -> bool:
        """Return whether this txid has a batch, or could get one."""
        with self._changed:
            return not self._wait or txid in self._assigned or bool(self._queue) or bool(self._left)

    def mark_committed(self, txid: int) -> None:
        """Mark the batch and all earlier ones as committed."""
        with self._changed:
            for batches in (self._assigned, self._left):
                for over in [earlier for earlier in batches if earlier <= txid]:
                    batches.pop(over).done = True
            self._changed.notify_all()

    def end(self) -> None:
        """End the run: wakes every waiting `feed`."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class FeederCommitterBatchSpout(FeederBatchSpout, ICommitterTridentSpout):
    """A feeder that takes part in the commit and does nothing there."""

    def getEmitter(self, txStateId: str, conf: dict, context: SpoutContext) -> _FeederCommitter:
        return _FeederCommitter(self, context.getPartitionIndex(), context.numPartitions())


class _FeederCoordinator(ITridentSpout.BatchCoordinator):
    def __init__(self, feeder: FeederBatchSpout, partitions: int) -> None:
        self._feeder = feeder
        self._partitions = partitions

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        fed = self._feeder.assign(txid, logged=currMetadata is not None)
        if currMetadata is not None:
            if fed is None and currMetadata.get("here"):
                log.warning("the tuples of txid %d were lost with the process that was fed; the batch is empty", txid)
            return currMetadata
        return {} if fed is None else _describe(fed.parts(self._partitions))

    def isReady(self, txid: int) -> bool:
        return self._feeder.ready(txid)

    def success(self, txid: int) -> None:
        self._feeder.mark_committed(txid)

    def close(self) -> None:
        self._feeder.end()


class _FeederEmitter(ITridentSpout.Emitter):
    def __init__(self, feeder: FeederBatchSpout, index: int, partitions: int) -> None:
        self._feeder = feeder
        self._index = index
        self._partitions = partitions

    def emitBatch(self, tx: TransactionAttempt, coordinatorMeta: Any, collector: TridentCollector) -> None:
        fed = self._feeder.find_batch(tx.txid)
        if fed is not None:
            parts = fed.parts(self._partitions)
        else:
            parts = (coordinatorMeta or {}).get("rows", [])
        # A log written with more partitions has more parts than there are partitions now.
        for part in parts[self._index :: self._partitions]:
            for values in part:
                collector.emit(values)


class _FeederCommitter(_FeederEmitter, ICommitterTridentSpout.Emitter):
    def commit(self, attempt: TransactionAttempt) -> None: ...


def _describe(parts: list[Rows]) -> dict:
    """Return the rows as metadata if JSON keeps them exactly, else a marker that this process holds them."""
    if all(_plain(value) for part in parts for row in part for value in row):
        rows = [[list(row) for row in part] for part in parts]
        if len(json.dumps(rows)) <= _LARGEST_METADATA:
            return {"rows": rows}
    return {"here": True}


def _plain(value: Any) -> bool:
    kind = type(value)
    if kind is list:
        return all(map(_plain, value))
    if kind is dict:
        return all(type(key) is str and _plain(item) for key, item in value.items())
    return value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value))


def _feeder_of(kind: type[FeederBatchSpout], token: str, fields: Fields) -> FeederBatchSpout:
    live = _LIVE.get(token)
    if live is not None:
        return live
    inert = kind.__new__(kind)
    inert._setup(fields, token, live=False)
    return inert
