"""Adjusts a spout's positions to the cluster: new partitions, lost records, topics deleted or created anew."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..errors import SpoutError, TridentError
from .batches import Place, Positions, TopicPosition, metadata_of, positions_of
from .clients import log
from .watch import Seen

PATIENCE = 2.0
ADVICE = (
    "A transactional spout must be able to give the same records again: restore the data, or start with a new "
    'checkpoint, or use kind="opaque", which goes on from what exists (with states that stay exact then)'
)


class View(NamedTuple):
    """The cluster's topics and log ends as last seen."""

    topics: Mapping[str, Seen]
    begins: Mapping[Place, int]
    ends: Mapping[Place, int]

    def places(self) -> list[Place]:
        return [(name, p) for name, seen in self.topics.items() for p in range(seen.partitions)]


class BrokenPromise(NamedTuple):
    """An event that breaks the promise of a transactional spout. ``passing``: it may be gone in a moment; a starting
    cluster reports many such states."""

    key: str
    what: str
    passing: bool = False


class Judge:
    """Handles broken promises: ends the run, or reports each once and goes on."""

    def __init__(self, spout_id: str, opaque: bool, report: Callable[[BaseException], object]) -> None:
        self._id = spout_id
        self._opaque = opaque
        self._report = report
        self._told: set[str] = set()
        self._since: dict[str, tuple[float, float]] = {}

    def __call__(self, finding: BrokenPromise) -> bool:
        """Returns True to go on from what exists, False to wait: it may pass. Raises SpoutError to end the run."""
        if finding.passing and not self.lasting(finding.key):
            return False
        text = f"KafkaSpout {self._id!r}: {finding.what}"
        if not self._opaque:
            raise SpoutError(f"{text}. {ADVICE}")
        if finding.key not in self._told:
            self._told.add(finding.key)
            self.tell(SpoutError(f"{text}; going on from what exists"))
        return True

    def lasting(self, key: str) -> bool:
        """Whether the problem has lasted for a while. Must be called at least every second while the problem exists."""
        now = time.monotonic()
        first, last = self._since.get(key, (now, now))
        self._since[key] = (first, now) if now - last < PATIENCE else (now, now)
        return now - self._since[key][0] >= PATIENCE

    def tell(self, error: TridentError) -> None:
        log.warning("%s", error)
        self._report(error)


class Gone:
    """Topics that an opaque spout has given up. A topic that reappears with the same id was only invisible, and
    continues at its old position. Stored in the metadata store before a batch is made without them."""

    def __init__(self, store: Any, spout_id: str) -> None:
        self._store = store
        self._path = f"{spout_id}/kafka-gone"
        kept = None if store is None else store.get(self._path, 0)
        self._topics = {} if kept is None else positions_of(kept)

    def with_those_back(self, base: Positions, view: View) -> Positions:
        seen = {name: one.id for name, one in view.topics.items() if name not in base and one.id in self._topics}
        return {**base, **{name: self._topics[id] for name, id in seen.items()}}

    def keep(self, base: Positions, after: Positions) -> None:
        """Stores the topics of ``base`` that are no longer in ``after``."""
        new = {topic.id: topic for name, topic in base.items() if name not in after}
        if new and new != {id: self._topics.get(id) for id in new}:
            self._topics |= new
            if self._store is not None:
                self._store.put(self._path, 0, metadata_of(self._topics, {}))


def settle(base: Positions, view: View, judge: Callable[[BrokenPromise], bool]) -> Positions:
    """Returns the positions adjusted to what exists. New partitions and topics start at their beginning."""
    positions: Positions = {}
    for name, topic in base.items():
        gone = BrokenPromise(f"gone {name} {topic.id}", f"topic {name} is gone", True)
        if name not in view.topics and not judge(gone):
            positions[name] = topic
    for name, seen in view.topics.items():
        old = base.get(name)
        if old is not None and old.id == seen.id:
            positions[name] = _same(name, old, seen, view, judge)
            continue
        if old is not None:
            what = f"topic {name} was deleted and made anew; the batches so far are of the old one"
            judge(BrokenPromise(f"anew {name} {seen.id}", what))
        positions[name] = TopicPosition(seen.id, [view.begins.get((name, p)) for p in range(seen.partitions)])
    return positions


def _same(
    name: str, old: TopicPosition, seen: Seen, view: View, judge: Callable[[BrokenPromise], bool]
) -> TopicPosition:
    """Adjusts the position in a topic that still has the same id."""
    after: list[int | None] = []
    for p in range(max(seen.partitions, len(old.next))):
        at = old.next[p] if p < len(old.next) else None
        begin, end = view.begins.get((name, p)), view.ends.get((name, p))
        where = f"topic {name}, partition {p}"
        if at is None:
            at = begin
        elif begin is not None and at < begin:
            what = f"{where}: offsets {at} to {begin - 1} were deleted before they were read"
            judge(BrokenPromise(f"lost {where} {at}", what))
            at = begin
        elif end is not None and at > end:
            what = f"{where}: the log ends at offset {end}, but was read up to {at}: it was cut"
            at = end if judge(BrokenPromise(f"cut {where} {at}", what, True)) else at
        after.append(at)
    return TopicPosition(seen.id, after)
