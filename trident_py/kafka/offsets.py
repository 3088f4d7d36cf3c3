"""A spout's positions: the start of a new checkpoint, and the adjustment to new partitions, lost records, and topics
that were deleted or recreated."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..errors import FailedException, SpoutError
from ..model.retry import TOLD
from .batches import Place, Positions, TopicPosition, metadata_of, positions_of
from .clients import log
from .options import KafkaOptions
from .topic_metadata import ExistingTopic, Watch

PATIENCE = 2.0
ADVICE = (
    "A transactional spout must be able to read the same records again. Restore the data, or start with a new "
    'checkpoint, or use kind="opaque", which continues with the records that exist (and states that stay exact then)'
)


class View(NamedTuple):
    """The cluster's topics and log ends as last seen."""

    topics: Mapping[str, ExistingTopic]
    begins: Mapping[Place, int]
    ends: Mapping[Place, int]

    def places(self) -> list[Place]:
        return [(name, p) for name, topic in self.topics.items() for p in range(topic.partitions)]


class BrokenPromise(NamedTuple):
    """An event that breaks the promise of a transactional spout. ``passing``: it may be gone in a moment; a starting
    cluster reports many such states."""

    key: str
    text: str
    passing: bool = False


class Judge:
    """Handles broken promises: ends the run of a transactional spout; an opaque one reports each once and goes on.

    What it has reported is stored with the metadata of the batch before: until there is another batch, each start finds
    the same loss behind that one.

    ``behind``: the metadata of the batch before. ``is_open``: the last look found a problem that may still pass. Until
    it is gone or counts, a spout has not ended.
    """

    def __init__(
        self, spout_id: str, opaque: bool, report: Callable[[BaseException], object], store: Any = None
    ) -> None:
        self._id = spout_id
        self._store = store
        self._path = f"{spout_id}/kafka-told"
        self._opaque = opaque
        self._report = report
        self._reported: set[str] = set()
        self.behind: Any = None
        self._since: dict[str, tuple[float, float]] = {}
        self.is_open = False

    def __call__(self, finding: BrokenPromise) -> bool:
        """Return True to go on from what exists, False to wait: it may pass. Raises SpoutError to end the run."""
        if finding.passing and not self.is_lasting(finding.key):
            self.is_open = True
            return False
        loss = f"{finding.key}: {finding.text}"
        if not self._opaque or loss not in self._reported:
            self.go_on_without(finding.text)
            self._reported.add(loss)
            if self._store is not None:
                self._store.put(self._path, 0, {"behind": self.behind, "told": sorted(self._reported)})
        return True

    def recall(self) -> None:
        """Called at a start: what an earlier run has reported behind the same batch is not reported again."""
        stored = None if self._store is None else self._store.get(self._path, 0)
        if stored is not None and stored["behind"] == json.loads(json.dumps(self.behind)):
            self._reported.update(stored["told"])

    def begin_look(self) -> None:
        """Called before each look, which names all problems that still exist."""
        self.is_open = False

    def go_on_without(self, lost: str) -> None:
        """Report lost records. Raises SpoutError for a transactional spout."""
        if not self._opaque:
            raise SpoutError(f"KafkaSpout {self._id!r}: {lost}. {ADVICE}")
        self.tell(f"{lost}; continuing with the records that exist")

    def is_lasting(self, key: str) -> bool:
        """Return whether the problem has lasted for a while. Must be called at least every second while the problem
        exists."""
        now = time.monotonic()
        first, last = self._since.get(key, (now, now))
        self._since[key] = (first, now) if now - last < PATIENCE else (now, now)
        return now - self._since[key][0] >= PATIENCE

    def tell(self, text: str) -> None:
        """Report an event that does not end the run."""
        error = SpoutError(f"KafkaSpout {self._id!r}: {text}")
        log.warning("%s", error, extra=TOLD)
        self._report(error)


class AbandonedTopics:
    """Topics that an opaque spout has given up. A topic that reappears with the same id was only invisible, and
    continues at its old position. Stored in the metadata store before a batch is made without them."""

    def __init__(self, store: Any, spout_id: str) -> None:
        self._store = store
        self._path = f"{spout_id}/kafka-gone"
        stored = None if store is None else store.get(self._path, 0)
        self._topics = {} if stored is None else positions_of(stored)

    def with_those_back(self, base: Positions, view: View) -> Positions:
        back = {name: topic.id for name, topic in view.topics.items() if name not in base and topic.id in self._topics}
        return {**base, **{name: self._topics[id] for name, id in back.items()}}

    def keep(self, base: Positions, after: Positions) -> None:
        """Store the topics of ``base`` that are no longer in ``after``."""
        new = {topic.id: topic for name, topic in base.items() if name not in after}
        if new and new != {id: self._topics.get(id) for id in new}:
            self._topics |= new
            if self._store is not None:
                self._store.put(self._path, 0, metadata_of(self._topics, {}))


def choose_start(options: KafkaOptions, watch: Watch, view: View) -> Positions:
    """Return the positions that firstPollOffsetStrategy names, for the existing partitions.

    Raises FailedException if any of them does not answer: it would start by another rule than the others.
    """
    places = view.places()
    silent = [place for place in places if place not in view.begins or place not in view.ends]
    if silent:
        raise FailedException(f"KafkaSpout: topic {silent[0][0]}, partition {silent[0][1]} has no leader")
    first = _first(options, watch, view, places)
    return {
        name: TopicPosition(topic.id, [first[name, p] for p in range(topic.partitions)])
        for name, topic in view.topics.items()
    }


def _first(options: KafkaOptions, watch: Watch, view: View, places: list[Place]) -> dict[Place, int]:
    strategy = options.firstPollOffsetStrategy
    if strategy == "TIMESTAMP":
        assert options.startTimestamp is not None
        since = watch.since(places, options.startTimestamp)
        return {place: view.ends[place] if since.get(place, -1) < 0 else since[place] for place in places}
    otherwise = view.ends if strategy.endswith("LATEST") else view.begins
    offsets = watch.fetch_committed(places) if strategy.startswith("UNCOMMITTED") else {}
    return {place: offsets.get(place, otherwise[place]) for place in places}


def settle(base: Positions, view: View, judge: Callable[[BrokenPromise], bool]) -> Positions:
    """Return the positions adjusted to what exists. New partitions and topics start at their beginning."""
    positions: Positions = {}
    for name, topic in base.items():
        finding = BrokenPromise(f"gone {name} {topic.id} {topic.next}", f"topic {name} is gone", True)
        if name not in view.topics and not judge(finding):
            positions[name] = topic
    for name, current in view.topics.items():
        old = base.get(name)
        if old is not None and old.id == current.id:
            positions[name] = _same(name, old, current, view, judge)
            continue
        if old is not None:
            text = f"topic {name} was deleted and recreated; earlier batches read the old one"
            judge(BrokenPromise(f"anew {name} {current.id}", text))
        positions[name] = TopicPosition(current.id, [view.begins.get((name, p)) for p in range(current.partitions)])
    return positions


def has_gone_back(before: Positions, after: Positions) -> bool:
    """Return whether a position lies before the earlier one in the same topic: its log was truncated."""
    return any(
        old is not None and new is not None and new < old
        for name, topic in after.items()
        if name in before and before[name].id == topic.id
        for old, new in zip(before[name].next, topic.next, strict=False)
    )


def _same(
    name: str, old: TopicPosition, topic: ExistingTopic, view: View, judge: Callable[[BrokenPromise], bool]
) -> TopicPosition:
    """Adjust the position in a topic that still has the same id."""
    after: list[int | None] = []
    for p in range(max(topic.partitions, len(old.next))):
        at = old.next[p] if p < len(old.next) else None
        begin, end = view.begins.get((name, p)), view.ends.get((name, p))
        where = f"topic {name}, partition {p}"
        if at is None:
            at = begin
        elif begin is not None and at < begin:
            text = f"{where}: offsets {at} to {begin - 1} were deleted before they were read"
            judge(BrokenPromise(f"lost {where} {at}", text))
            at = begin
        elif end is not None and at > end:
            text = f"{where}: the log ends at offset {end}, but was read up to {at}: it was truncated"
            at = end if judge(BrokenPromise(f"cut {where} {at}", text, True)) else at
        after.append(at)
    return TopicPosition(topic.id, after)
