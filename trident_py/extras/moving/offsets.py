"""From what Storm remembers of its streams to the position of one of our components."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import DefinitionError
from ...kafka import KafkaSpout
from ...kafka.batches import TopicPosition, metadata_of, places_of
from ...kafka.topic_metadata import ExistingTopic, Watch
from ...spouts.inspection import SpoutNodeInfo
from ...spouts.interfaces import TRANSACTIONAL, ITridentSpout
from ...spouts.opaque_offsets import partition_path, positions_path
from ...spouts.partitioned import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout
from ..txid.components import Component
from .checkpoint import Entries, ImportedPosition, Moved
from .kafka_offsets import KafkaProgress, Place, read_progress
from .storm_stream import StormStream, find_committed


@dataclass(frozen=True)
class ImportAnswers:
    """What the person says. ``streams``: the stream in Storm of each of ours that has another name; ``starts``: the
    next offset of Kafka partitions that Storm does not tell; ``txid``: our last txid, None for Storm's."""

    streams: Mapping[str, str] = field(default_factory=dict)
    starts: Mapping[Place, int] = field(default_factory=dict)
    txid: int | None = None


@dataclass
class Findings:
    """The position of one component as it is put together, and what is said of it."""

    over: dict[str, Any] = field(default_factory=dict)
    begun: dict[str, Any] = field(default_factory=dict)
    entries: Entries = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)


Found = tuple[Component, ImportedPosition | None, list[str]]


def find_positions(
    components: Sequence[Component], streams: Mapping[str, StormStream], answers: ImportAnswers
) -> list[Found]:
    """Return each component with where it begins, and the lines that say so: None for a new one beside others that
    Storm knows. Raises what `find_position` raises, also for an answer that fits no stream."""
    _check_streams([info.id for component in components for info in spouts_of(component)], streams, answers)
    known = [any(_find_stream(info.id, streams, answers) for info in spouts_of(each)) for each in components]
    found: list[Found] = []
    for component, is_known in zip(components, known, strict=True):
        if is_known or not any(known):
            found.append((component, *find_position(component, streams, answers)))
        else:
            names = ", ".join(info.id for info in spouts_of(component))
            line = f"{component.shown}: Storm remembers none of its streams {names}; it begins as a new one"
            found.append((component, None, [line]))
    return found


def spouts_of(component: Component) -> Sequence[SpoutNodeInfo]:
    """Return the spouts of a component whose topology is known."""
    assert component.program is not None
    return component.program.spouts


def _check_streams(ours: Sequence[str], streams: Mapping[str, StormStream], answers: ImportAnswers) -> None:
    """Raise DefinitionError for an answer about none of our streams, and for a stream of Storm that two of ours read:
    its records would count twice."""
    for name, wanted in answers.streams.items():
        if name not in ours:
            raise DefinitionError(f"--stream {name}={wanted}: we have no stream {name}; there are {', '.join(ours)}")
    of_storm: dict[str, str] = {}
    for name in ours:
        wanted = answers.streams.get(name, name)
        if wanted in streams and (other := of_storm.setdefault(wanted, name)) != name:
            raise DefinitionError(
                f"stream {wanted} of Storm would be read by {other} and {name}, and its records would count twice; "
                "name the stream of each with --stream OURS=STORMS"
            )


def check_starts(found: Sequence[Found], answers: ImportAnswers) -> None:
    """Raise DefinitionError for a start of a partition that no imported stream reads."""
    read = {
        place
        for component, position, _ in found if position is not None
        for info in spouts_of(component) if isinstance(info.spout, KafkaSpout) and info.id in position.over
        for place in places_of(position.over[info.id])
    }  # fmt: skip
    for name, p in sorted(answers.starts.keys() - read):
        start = answers.starts[name, p]
        raise DefinitionError(f"--start {name}@{p}={start}: no stream that is imported reads {name}@{p}")


def check_group(found: Sequence[Found], group: str) -> None:
    """Raise DefinitionError if a consumer group has no offset in any topic, as one whose name is misspelled."""
    topics = {name: at for _, position, _ in found if position for over in position.over.values()
              for name, (_, at, _) in over.items()}  # fmt: skip
    if not any(offset is not None for at in topics.values() for offset in at):
        raise DefinitionError(
            f"group {group} has committed no offset in {', '.join(sorted(topics))}: check its name. All records would "
            "come again; to begin there, import nothing, or say --start TOPIC@N=OFFSET. Nothing was changed"
        )


def find_position(
    component: Component, streams: Mapping[str, StormStream], answers: ImportAnswers
) -> tuple[ImportedPosition, list[str]]:
    """Return where a component begins, and the lines that say so. Asks Kafka for the topics; changes nothing. Raises
    DefinitionError for what does not fit together."""
    spouts = spouts_of(component)
    of_spouts = {info.id: _find_stream(info.id, streams, answers) for info in spouts}
    known = [stream for stream in of_spouts.values() if stream is not None]
    if not known:
        raise DefinitionError(
            f"{component.shown}: Storm remembers none of its streams {', '.join(of_spouts)}; it has "
            f"{', '.join(streams) or 'none'}. Name them by --stream OURS=STORMS. A new component "
            "needs no import"
        )
    for each in known:
        each.check()
    committed = find_committed(known)
    begun = [info for info in spouts if (own := of_spouts[info.id]) is not None and own.has_begun(committed + 1)]
    repeats = bool(begun) and all(info.spout.kind == TRANSACTIONAL for info in begun)  # then its content must stay
    moved = Moved(committed, _choose_base(answers, committed, repeats), bool(begun), repeats)
    found = Findings()
    for info in spouts:
        if (stream := of_spouts[info.id]) is None:
            found.lines.append(f"  stream {info.id}: Storm remembers nothing of it; it begins as a new one")
        else:
            _add_spout(found, info, stream, moved, answers)
    repeated = found.begun if moved.repeats else None
    return ImportedPosition(moved, found.over, repeated, found.entries), [_headline(component, moved), *found.lines]


def _headline(component: Component, moved: Moved) -> str:
    ours = "" if moved.base == moved.committed else f", here txid {moved.base}"
    return f"{component.shown}: Storm has committed txid {moved.committed}{ours}"


def _find_stream(name: str, streams: Mapping[str, StormStream], answers: ImportAnswers) -> StormStream | None:
    wanted = answers.streams.get(name, name)
    if wanted not in streams and name in answers.streams:
        raise DefinitionError(f"--stream {name}={wanted}: Storm has no stream {wanted}; there are {', '.join(streams)}")
    return streams.get(wanted)


def _choose_base(answers: ImportAnswers, committed: int, repeats: bool) -> int:
    base = committed if answers.txid is None else answers.txid
    if base < committed:
        raise DefinitionError(f"--txid {base}: Storm has committed txid {committed}; ours must not be lower")
    if base != committed and repeats:
        raise DefinitionError(
            f"--txid {base}: batch {committed + 1} is under way in a transactional spout and is repeated under its "
            "txid; leave --txid out, or let Storm finish the batch first"
        )
    return base


def _add_spout(found: Findings, info: SpoutNodeInfo, stream: StormStream, moved: Moved, answers: ImportAnswers) -> None:
    spout, before = info.spout, [txid for txid in stream.metadata if txid <= moved.committed]
    if isinstance(spout, KafkaSpout):
        _add_kafka(found, info, stream, moved, answers)
    elif isinstance(spout, IOpaquePartitionedTridentSpout):
        last = dict(_last_metadata(stream, moved.committed))
        found.entries[positions_path(info.id)] = {moved.base: last}
        found.lines.append(f"  stream {info.id}: the metadata of {len(last)} partitions")
    elif isinstance(spout, IPartitionedTridentSpout):
        for partition, meta in _last_metadata(stream, moved.committed):
            found.entries[partition_path(info.id, partition)] = {moved.base: meta}
        for partition, by_txid in stream.partitions.items():
            if (meta := by_txid.get(moved.committed + 1)) is not None:
                found.entries.setdefault(partition_path(info.id, partition), {})[moved.base + 1] = meta
        found.begun[info.id] = stream.metadata.get(moved.committed + 1)
        found.lines.append(f"  stream {info.id}: the metadata of {len(stream.partitions)} partitions")
    elif isinstance(spout, ITridentSpout):
        found.over[info.id] = stream.metadata[max(before)] if before else None
        found.begun[info.id] = stream.metadata.get(moved.committed + 1)
        found.lines.append(f"  stream {info.id}: the coordinator's metadata {found.over[info.id]!r}")
    else:
        kind = type(spout).__name__
        found.lines.append(f"  stream {info.id}: a {kind} keeps no position in ZooKeeper; it begins as a new one")


def _last_metadata(stream: StormStream, committed: int) -> Iterator[tuple[str, Any]]:
    for partition, by_txid in sorted(stream.partitions.items()):
        txids = [txid for txid, meta in by_txid.items() if txid <= committed and meta is not None]
        if txids:
            yield partition, by_txid[max(txids)]


def _add_kafka(found: Findings, info: SpoutNodeInfo, stream: StormStream, moved: Moved, answers: ImportAnswers) -> None:
    progress = read_progress(stream, moved.committed, info.spout.topics or (), answers.starts)
    topics = read_topics(info)
    for name, p in stream.list_places(moved.committed):
        if name in topics and (name, p) not in progress.next:
            raise DefinitionError(
                f"stream {info.id}: {name}@{p} was in batch {moved.committed}, the last committed one, and no node "
                f"says where: all of it would come again. The dump is not whole; else say --start {name}@{p}=OFFSET"
            )
    found.over[info.id] = _metadata(topics, progress.next, {})
    if moved.repeats:
        progress.check_repeatable(topics)
        starts = {place: start for place, start in progress.next.items() if progress.after.get(place, start) > start}
        found.begun[info.id] = _metadata(topics, {**progress.next, **progress.after}, starts)
    found.lines += describe_offsets(info, topics, progress, answers.starts)


def read_topics(info: SpoutNodeInfo) -> dict[str, ExistingTopic]:
    """Return the topics of a Kafka spout. Raises DefinitionError for one that is missing."""
    watch = Watch(info.spout)
    try:
        topics = watch.topics()
    finally:
        watch.close()
    for name in info.spout.topics or ():
        if name not in topics:
            raise DefinitionError(f"stream {info.id}: there is no topic {name} at {info.spout.bootstrap}")
    return topics


def _metadata(
    topics: Mapping[str, ExistingTopic], ends: Mapping[Place, int], starts: Mapping[Place, int]
) -> dict[str, Any]:
    """Return the metadata of a batch of our Kafka spout."""
    positions = {
        name: TopicPosition(topic.id, [ends.get((name, p)) for p in range(topic.partitions)])
        for name, topic in topics.items()
    }
    return metadata_of(positions, starts)


def describe_offsets(
    info: SpoutNodeInfo, topics: Mapping[str, ExistingTopic], progress: KafkaProgress, starts: Mapping[Place, int]
) -> Iterator[str]:
    """Yield a line for each partition. What Storm does not tell is told, with the choices."""
    for name, topic in sorted(topics.items()):
        for p in range(topic.partitions):
            place = name, p
            if place in starts:
                yield f"  {name}@{p}: next offset {starts[place]}, as told"
            elif place in progress.next:
                yield f"  {name}@{p}: next offset {progress.next[place]}"
            else:
                why = progress.unknown.get(place, "has no position in Storm")
                yield f"  {name}@{p}: {why}; it begins at its beginning, or where --start {name}@{p}=OFFSET says"
    for name, p in sorted(progress.next.keys() - starts.keys()):
        if name not in topics or p >= topics[name].partitions:
            yield f"  {name}@{p}: Storm was at offset {progress.next[name, p]}, and stream {info.id} does not read it"


def find_group(component: Component, group: str, answers: ImportAnswers) -> tuple[ImportedPosition, list[str]]:
    """Return where a component begins after the offsets that a consumer group has committed: those of KafkaSpout, the
    spout of core Storm. They are the next ones to read; what was acked beyond a gap comes again."""
    txid = answers.txid or 0
    found = Findings(lines=[f"{component.shown}: after the committed offsets of group {group}, txid {txid}"])
    for info in spouts_of(component):
        if not isinstance(info.spout, KafkaSpout):
            raise DefinitionError(f"stream {info.id} is no KafkaSpout; a consumer group has no position of it")
        topics = read_topics(info)
        watch = Watch(dataclasses.replace(info.spout, groupId=group, settings=dict(info.spout.settings or {})))
        try:
            ends = watch.fetch_committed([(name, p) for name, t in topics.items() for p in range(t.partitions)])
        finally:
            watch.close()
        found.over[info.id] = _metadata(topics, {**ends, **answers.starts}, {})
        found.lines += describe_offsets(info, topics, KafkaProgress(ends), answers.starts)
    return ImportedPosition(Moved(txid, txid), found.over, None, {}), found.lines
