"""`KafkaSpout` and its driver side, which decides the offset ranges of each batch."""

from __future__ import annotations

import time
from typing import Any

from ..errors import FailedException, SpoutError, TridentError
from ..model.context import RunContext
from ..model.requirements import Needs, needs_of, together
from ..model.retry import start_wait
from ..spouts.interfaces import OPAQUE, ITridentSpout, SpoutContext
from ..tuples import Fields
from .batches import (
    Place,
    Positions,
    RateLimit,
    TopicPosition,
    metadata_of,
    positions_of,
    ranges_of,
    shares,
    task_metadata,
)
from .clients import log
from .consumed_offsets import share
from .offsets import PATIENCE, AbandonedTopics, BrokenPromise, Judge, View, choose_start, has_gone_back, settle
from .open_transactions import OpenTransactions
from .options import KafkaOptions
from .reader import KafkaEmitter
from .topic_metadata import Absence, Watch


class KafkaSpout(KafkaOptions, ITridentSpout):
    """Reads Kafka topics: ``KafkaSpout("localhost:9092", "words", value="string", fields="value")``.

    For each batch the driver fixes an offset range of every partition and stores it before the batch runs; tasks read
    exactly these ranges. On replay: the same ranges again. For ``kind="transactional"`` these are the same records: a
    compacted topic, lost or truncated data, or a topic deleted and created anew ends the run with a SpoutError.
    ``kind="opaque"`` goes on from what exists and reports the loss; each record succeeds in one batch only.

    ``topics``: one name or several; ``pattern``: instead, a regular expression that matches whole names. New
    partitions, and new topics of a pattern, are read from their beginning. ``fields``: any of topic, partition, offset,
    key, value (the default), headers, timestamp. ``key``, ``value``: "bytes", "string", `Json`, `Avro` or a `Format`.
    ``onBadRecord``: "fail" or "skip". ``translator``: a function of a `KafkaRecord` that returns the values of
    ``fields``, or None for no tuple; or a dict of such functions by topic, with the key None for all other topics.

    ``firstPollOffsetStrategy`` applies to a new checkpoint only: EARLIEST, LATEST, TIMESTAMP (``startTimestamp``, in ms
    since 1970), or UNCOMMITTED_EARLIEST / UNCOMMITTED_LATEST: the committed offsets of group ``groupId``, else the
    earliest / latest. ``isolationLevel``: "read_committed" or "read_uncommitted". ``maxRecordsPerBatch`` and
    ``maxRecordsPerSecond`` count offsets, over all partitions. ``endingOffsets="latest"``: the spout ends where the
    topics ended when the run began. ``shareOffsets``: see `trident_py.kafka.consumed`. ``settings`` go to librdkafka
    (``security.protocol`` ...) and are never shown.

    Raises DefinitionError for options that contradict each other, and if the client is missing (pip install
    'trident-py[kafka]').
    Source in Storm: KafkaTridentSpoutConfig, KafkaTridentSpoutTransactional, KafkaTridentSpoutOpaque.
    """

    def getOutputFields(self) -> Fields:
        return self.output

    @property
    def needs(self) -> Needs:
        return together(self.cluster.needs, needs_of(self.keyFormat), needs_of(self.valueFormat))

    def getCoordinator(self, txStateId: str, conf: dict, context: SpoutContext) -> KafkaCoordinator:
        return KafkaCoordinator(self, txStateId, conf)

    def getEmitter(self, txStateId: str, conf: dict, context: SpoutContext) -> KafkaEmitter:
        return KafkaEmitter(self, txStateId)


IDLE = 0.010  # seconds between two reads of the logs' ends, while there is nothing to read
CALM = 5  # ... or this many times the duration of a read, if that is longer
FRESH = 0.005  # maximum age in seconds of the ends when a batch is made
LOOK = 1.0  # seconds between two reads of the topics
POLICY = 30.0  # seconds between two reads of the topics' settings
AWAY = 0.25  # seconds between two tries while the brokers are away


class KafkaCoordinator(ITridentSpout.BatchCoordinator):
    """Fixes the offset ranges of each batch. Queries the cluster at its own pace, however often it is called.

    `isReady` finds the problems that end the run; `initializeTransaction` raises them, so that they reach the user.
    """

    def __init__(self, options: KafkaOptions, txStateId: str, conf: dict) -> None:
        self._options = options
        self._id = txStateId
        self._conf = conf
        self._watch = Watch(options)
        context = RunContext.of(conf)
        self._judge = Judge(
            txStateId, options.kind == OPAQUE, context.report or (lambda error: None), context.metadata
        )
        self._judge.recall()
        self._absence = Absence(txStateId, start_wait(dict(conf)), self._judge.tell)
        self._open = OpenTransactions(self._watch.log_ends, self._judge.tell)
        self._abandoned = AbandonedTopics(context.metadata, txStateId)
        self._rate = RateLimit(options.maxRecordsPerSecond)
        self._view: View | None = None
        self._positions: Positions | None = None
        self._initialized: tuple[int, Any] = (0, None)
        self._final: dict[tuple[str, int], int] | None = None
        self._waiting = 0
        self._unread = True
        self._gone_back = False  # a position is not in any batch, and the next start would skip what comes before
        self._took = 0.0
        self._away = False
        self._problem: TridentError | None = None
        self._policies: set[str] = set()
        self._ends_at = self._looked_at = self._policy_at = self._away_until = float("-inf")

    def restore(self, txid: int, metadata: Any) -> None:
        if metadata is not None:
            self._positions, self._judge.behind = positions_of(metadata), metadata
            self._judge.recall()

    def isReady(self, txid: int) -> bool:
        self._look_if_due()
        if self._problem is not None:
            return True
        return not self._away and (self._gone_back or self._rate.worth(self._waiting))

    def isPending(self) -> bool:
        return self._away or self._waiting > 0 or self._judge.is_open

    def isExhausted(self) -> bool:
        """Return, with endingOffsets, whether all records that existed when the run began are in batches."""
        if self._options.endingOffsets is None:
            return False
        if self._final is None:
            self._look_if_due()
        unsure = self._problem is not None or self._judge.is_open or self._gone_back
        return not unsure and self._final is not None and not self._unread

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        """Return the ranges of the batch; on replay the same, after a check that they can still be read."""
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem
        if currMetadata is not None:
            metadata = self._again(currMetadata)
        else:
            metadata = self._new(txid, self._base(prevMetadata))
        self._go_to(positions_of(metadata))
        self._judge.behind, self._gone_back = metadata, False
        self._initialized = txid, metadata
        return metadata

    def metadataForTasks(self, metadata: Any, numTasks: int) -> list[Any]:
        return task_metadata(metadata, numTasks)

    def tuplesAtMost(self, metadata: Any) -> int:
        return sum(piece.end - piece.start for piece in ranges_of(metadata))

    def sharedWithTasks(self, txid: int) -> Any:
        """Return the offsets that the batch consumes, if they are shared; see `trident_py.kafka.consumed`."""
        group = self._options.groupId if self._options.shareOffsets else None
        if group is None or self._initialized[0] != txid:
            return None
        return share(group, positions_of(self._initialized[1]))

    def close(self) -> None:
        self._watch.close()

    def backlog(self) -> dict[str, int]:
        view, positions = self._view, self._positions
        if view is None or positions is None:
            return {}
        waiting = {}
        for (name, p), end in sorted(view.ends.items()):
            after = positions[name].next if name in positions else []
            at = after[p] if p < len(after) else None
            waiting[f"{name}-{p}"] = 0 if at is None else max(0, end - at)
        return waiting

    def _look_if_due(self) -> None:
        """Read the cluster every 10 ms at most, but only every second while there is something to read."""
        now = time.monotonic()
        pause = LOOK if self._waiting and not self._away else max(IDLE, CALM * self._took)
        if now < self._away_until or now - self._ends_at < pause:
            return
        try:
            view = self._look()
            self._go_to(self._settle(view, self._positions))
        except FailedException as error:
            self._note_outage(error)
        except TridentError as error:
            self._problem = error

    def _note_outage(self, error: FailedException) -> None:
        """Record that the cluster does not answer: no batch starts until it does. A start has a limit."""
        self._away = True
        self._problem = self._absence.record_silence(error) or self._problem
        self._away_until = time.monotonic() + AWAY
        log.debug("%s", error)

    def _look(self, topics: bool = False) -> View:
        """Return a view with fresh ends. Reads topics and beginnings every second, or now if ``topics``."""
        now = time.monotonic()
        old = self._view
        if old is None or topics or now - self._looked_at >= LOOK:
            topics_now = self._watch.topics()
            self._check_policies(set(topics_now))
            old = View(topics_now, self._watch.begins(View(topics_now, {}, {}).places()), {})
            self._looked_at = now
        self._view = old._replace(ends=self._watch.ends(old.places()))
        self._ends_at, self._away = now, False
        self._absence.record_answer()
        self._open.compare(self._view.ends, now)
        self._took = time.monotonic() - now
        return self._view

    def _check_policies(self, names: set[str]) -> None:
        now = time.monotonic()
        if self._options.kind == OPAQUE or (now - self._policy_at < POLICY and names <= self._policies):
            return
        for name in self._watch.list_compacted(names):
            raise SpoutError(
                f"KafkaSpout {self._id!r}: topic {name} is compacted (cleanup.policy): compaction removes records, so "
                'a replay could differ. Read it with kind="opaque", or remove compact from its cleanup.policy'
            )
        self._policy_at, self._policies = now, names

    def _settle(self, view: View, base: Positions | None) -> Positions:
        """Return the positions for the next batch. Fixes the ``endingOffsets`` once all partitions have answered, and
        no problem may still pass: a log would seem too short."""
        self._judge.begin_look()
        base = self._abandoned.with_those_back(self._start(view) if base is None else base, view)
        positions = settle(base, view, self._judge)
        self._abandoned.keep(base, positions)
        self._gone_back = self._gone_back or has_gone_back(base, positions)
        complete = len(view.ends) == len(view.places()) and not self._judge.is_open
        if self._options.endingOffsets is not None and self._final is None and complete:
            self._final = {(positions[name].id, p): end for (name, p), end in view.ends.items()}
        self._check_final(positions, view)
        return positions

    def _check_final(self, positions: Positions, view: View) -> None:
        """Check that the logs still reach the ``endingOffsets``."""
        final = self._final or {}
        for (name, p), end in view.ends.items() if final else ():
            place = (positions[name].id, p)
            last = final.get(place, -1)
            text = f"topic {name}, partition {p}: the log ends at offset {end}, but ended at {last}: it was truncated"
            if end < last and self._judge(BrokenPromise(f"cut {place} {last}", text, True)):
                final[place] = end

    def _go_to(self, positions: Positions) -> None:
        self._positions = positions
        self._waiting = sum(self._backlogs(positions).values())
        final = self._final or {}
        self._unread = any(
            (end := final.get((topic.id, p), -1)) >= 0 and (at is None or at < end)
            for topic in positions.values()
            for p, at in enumerate(topic.next)
        )

    def _backlogs(self, positions: Positions) -> dict[Place, int]:
        """Return how many offsets a batch may take, by partition."""
        ends = {} if self._view is None else self._view.ends
        waiting = {}
        for name, topic in positions.items():
            for p, at in enumerate(topic.next):
                end = ends.get((name, p), -1)
                if self._options.endingOffsets is not None:
                    end = min(end, (self._final or {}).get((topic.id, p), -1))
                if at is not None and end > at:
                    waiting[name, p] = end - at
        return waiting

    def _start(self, view: View) -> Positions:
        """Return the start of a new checkpoint. Stored once: a restart before the first batch begins there too."""
        store, path = RunContext.of(self._conf).metadata, f"{self._id}/kafka-start"
        stored = None if store is None else store.get(path, 0)
        if stored is not None:
            return positions_of(stored)
        for name in self._options.topics or ():
            if name not in view.topics:
                self._report_missing(str(name))
        positions = choose_start(self._options, self._watch, view)
        if store is not None:
            store.put(path, 0, metadata_of(positions, {}))
        return positions

    def _report_missing(self, name: str) -> None:
        text = f"KafkaSpout {self._id!r}: there is no topic {name} at {self._options.bootstrap}"
        if not self._judge.is_lasting(f"missing {name}"):
            raise FailedException(text)
        raise SpoutError(f"{text}; create it, or use pattern= for topics that are created later")

    def _base(self, previous: Any) -> Positions | None:
        """Return the positions after the previous batch, adjusted to changes of the topics since."""
        if previous is None or previous != self._judge.behind:
            return None if previous is None else positions_of(previous)
        return self._positions

    def _new(self, txid: int, base: Positions | None) -> dict[str, Any]:
        try:
            base = self._fresh(base)
        except FailedException as error:
            self._note_outage(error)
            if base is None:
                raise
            return metadata_of(base, {})  # another spout has records, but this cluster does not answer
        waiting = self._backlogs(base)
        taken = shares(waiting, min(self._options.maxRecordsPerBatch, self._rate.room()), txid)
        self._rate.take(sum(taken.values()))
        starts: dict[Place, int] = {}
        after: Positions = {}
        for name, topic in base.items():
            starts |= {(name, p): at for p, at in enumerate(topic.next) if at is not None and (name, p) in taken}
            ends = [None if at is None else at + taken.get((name, p), 0) for p, at in enumerate(topic.next)]
            after[name] = TopicPosition(topic.id, ends)
        return metadata_of(after, starts)

    def _fresh(self, base: Positions | None) -> Positions:
        """Return the positions for a batch that is made now, with the topics and log ends of this moment."""
        view = self._view
        if view is None or time.monotonic() - self._ends_at > FRESH:
            view = self._look()
        if self._watch.topics() != view.topics:
            view = self._look(topics=True)
        return self._settle(view, base)

    def _again(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """Return the same ranges for a replay. A range that is known to be unreadable ends the run, or is left out. Of
        what may pass it is asked again here: further attempts may come too seldom to see that it lasts."""
        until = time.monotonic() + 2 * PATIENCE
        try:
            while (kept := self._readable(metadata, self._look(topics=True))) is None and time.monotonic() < until:
                time.sleep(AWAY)
        except FailedException:
            return metadata  # the tasks cannot reach the cluster either, and fail the batch
        if kept is None:
            raise FailedException(f"KafkaSpout {self._id!r}: a topic of the batch is not visible now")
        return kept

    def _readable(self, metadata: dict[str, Any], view: View) -> dict[str, Any] | None:
        """Return what can be read again of a batch; None if a topic is not visible, which may pass."""
        kept = {name: [id, after, list(starts)] for name, (id, after, starts) in metadata.items()}
        for piece in ranges_of(metadata):
            topic, begin = view.topics.get(piece.topic), view.begins.get(piece.place)
            where = f"topic {piece.topic}, partition {piece.partition}: offsets {piece.start} to {piece.end - 1}"
            if topic is None or topic.id != piece.id:
                text = f"{where} belonged to a topic that is gone"
                if not self._judge(BrokenPromise(f"replay {piece.id} {piece.place}", text, topic is None)):
                    return None
                kept[piece.topic][2] = [start for start in kept[piece.topic][2] if start[0] != piece.partition]
            elif begin is not None and begin > piece.start and self._options.kind != OPAQUE:
                self._judge(BrokenPromise("", f"{where} must be read again, but the log begins at {begin}"))
        return kept
