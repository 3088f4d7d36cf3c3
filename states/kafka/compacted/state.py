"""A map state and upserts in a compacted Kafka topic: one record for each key, for any Kafka consumer to read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trident_py.entry_points import load
from trident_py.errors import DefinitionError, StateError
from trident_py.kafka.clients import Cluster
from trident_py.model.context import RunContext
from trident_py.state import (
    BatchParticipant,
    Location,
    Needs,
    Reading,
    Remembered,
    StateFactory,
    StatePlace,
)
from trident_py.state.fit import refuse_global
from trident_py.state.keys import ExactKey
from trident_py.state.roles import StoredValues
from trident_py.tuples import Fields, FieldsLike

from ...diagnostics import Finding
from ...rows import RowUpdater, check_asked_behind
from ..advice import kafka_errors
from ..fence import TopicFence
from ..ledger import RENEWED, TopicLedger
from ..marks import ANSWER, Mark, MarkPlace
from ..owner import NotePlace
from ..settings import cluster_of, for_producers, location_of, pairs
from ..topic_admin import (
    count_partitions,
    look,
    look_ahead,
    make,
    partition_count,
    partitions_of,
    reach,
    run_when_available,
    settings_of,
    unless_missing,
)
from .backing import PLAIN, CompactedMap, KeyWriter, TopicBacking
from .codec import Codec
from .local_table import table_of

KEYS = "keys"
HOUR = 3600.0
_RETENTION = ("retention.ms", "retention.bytes")
_LAGS = {
    "delete.retention.ms": "a tombstone, and with it the txid that tells a replay, may be gone before the restart",
    "max.compaction.lag.ms": "records may be compacted away while a reader is down for so long",
}


@dataclass(frozen=True)
class Compaction:
    """A state's requirements of its topic. ``restart``: for how many seconds the topology may be down."""

    cluster: Cluster
    topic: str
    partitions: int | None = None
    replication: int | None = None
    config: tuple[tuple[str, str], ...] = ()
    restart: float = HOUR

    def look(self) -> list[Finding]:
        """Report whether the topic is suitable, would be created, or is wrong. Writes nothing."""
        reach(self.cluster)
        existing = self.find_topic()
        if existing is None:
            return self._look_ahead()
        settings, partitions = existing
        texts = [*self._problems(settings, partitions), *self._grown(partitions)]
        problems = [Finding("error", text) for text in texts]
        return problems or [Finding("ok", f"topic {self.topic!r} is compacted and has {partitions} partitions")]

    def _look_ahead(self) -> list[Finding]:
        """Report whether a missing topic can be created, and would then be suitable."""
        created = look_ahead(self.cluster, self.topic, self.partitions, self.replication, self._settings)
        suiting = dict.fromkeys(_LAGS, str(self._least)) | dict.fromkeys(_RETENTION, "-1")
        if created.level == "error":
            return [created]
        unsuitable = list(self._problems({**suiting, **self._settings}, self.partitions))
        return [Finding("error", f"by the state's config: {text}") for text in unsuitable] or [created]

    def _grown(self, partitions: int) -> Iterator[str]:
        """Report that the topic has another number of partitions than its owner has recorded."""
        owner = NotePlace(self.cluster, self.topic, "", "").owner(settled=False)
        place = owner and MarkPlace(self.cluster, self.topic, owner.topology, owner.state)
        recorded = place and place.read(KEYS, settled=False)
        if place and recorded and recorded.partitions != partitions:
            yield _describe_growth(place, recorded.partitions, partitions)

    def ensure_topic(self) -> int:
        """Create a missing topic; return the number of partitions. Raises StateError for an unsuitable topic."""
        existing = self.find_topic()
        if existing is None:
            self._create()
            return self.ensure_topic()
        settings, partitions = existing
        for text in self._problems(settings, partitions):
            raise StateError(text)
        return partitions

    def find_topic(self) -> tuple[dict[str, str], int] | None:
        """Return the topic's settings and its number of partitions; None for a missing topic."""
        admin, topic = self.cluster.admin(), self.topic
        return unless_missing(
            self.cluster, topic, lambda: (settings_of(admin, topic), len(partitions_of(admin, topic)))
        )

    @property
    def _settings(self) -> dict[str, str]:
        """The settings of a topic that is created."""
        return {"cleanup.policy": "compact", **dict(self.config)}

    @property
    def _least(self) -> int:
        """For how many milliseconds brokers must keep what identifies a replay."""
        return int(self.restart * 1000)

    def last_txid(self) -> int:
        """Return the highest txid among the topic's records, 0 if there is none."""
        if self.find_topic() is None:
            return 0
        table = table_of(self.cluster, self.topic)
        table.catch_up(ANSWER / 6)
        return table.last_txid()

    def _problems(self, settings: Mapping[str, str], partitions: int | None) -> Iterator[str]:
        policy = settings.get("cleanup.policy", "")
        if "compact" not in policy:
            yield self._problem("cleanup.policy", policy, "it is not compacted, so old keys are dropped with their "
                                "segments", "compact")  # fmt: skip
        elif "delete" in policy and any(settings.get(name) != "-1" for name in _RETENTION):
            yield self._problem("cleanup.policy", policy, "keys that are not written again are dropped after "
                                f"retention.ms={settings.get('retention.ms')}, "
                                f"retention.bytes={settings.get('retention.bytes')}", "compact")  # fmt: skip
        for name, why in _LAGS.items():
            value, least = int(settings.get(name, 0)), self._least
            if value < least:
                reason = f"{why}: the state must survive a stop of {self.restart:g} s (restart=)"
                yield self._problem(name, value, reason, least)
        if self.partitions is not None and self.partitions != partitions:
            yield (
                f"topic {self.topic!r} has {partitions} partitions, but the state declares {self.partitions}. "
                f"{_TWO}. Declare partitions={partitions}"
            )

    def _problem(self, name: str, value: Any, reason: str, instead: Any) -> str:
        return (
            f"topic {self.topic!r} has {name}={value}: {reason}. Change it: kafka-configs.sh --alter --entity-type "
            f"topics --entity-name {self.topic} --add-config {name}={instead}"
        )

    def _create(self) -> None:
        make(self.cluster, self.cluster.admin(), self.topic, self.partitions, self.replication, self._settings)
        until = time.monotonic() + ANSWER
        while self.find_topic() is None and time.monotonic() < until:
            time.sleep(0.02)


_TWO = (
    "Their number decides the partition of a key: with another number a key would live in two partitions, where "
    "compaction never merges its records and it is unknown which is the last"
)


def _describe_growth(place: MarkPlace, before: int, now: int) -> str:
    return (
        f"{place.label}: the topic had {before} partitions and has {now}. {_TWO}. Create a new topic with {now} "
        "partitions and write the keys again"
    )


class CompactedLedger(TopicLedger):
    """The driver's side of a CompactedTopicState; it also checks the topic at the start of a run, and before each
    attempt that its partitions are unchanged. ``valued``: values have a txid."""

    def __init__(self, wanted: Compaction, location: Location, settings: Mapping[str, Any], valued: bool) -> None:
        super().__init__(wanted.cluster, location, settings, counted=False)
        self._wanted = wanted
        self._valued = valued
        self._partitions = 0
        self._recorded = 0.0

    def open(self, conf: dict) -> int:
        run_when_available(self._cluster, lambda: self._open_topic(MarkPlace.of(self._cluster, self._topic, conf)))
        return super().open(conf)

    def _open_topic(self, place: MarkPlace) -> None:
        """Check or create the topic. Raises StateError if it is unsuitable or its partition count has changed."""
        self._partitions = self._wanted.ensure_topic()
        recorded = place.read(KEYS)
        if recorded is not None:
            self._compare(place, recorded.partitions, self._partitions)
        self._record(place)

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        """Renew the recorded number of partitions if due. Raises StateError also if it has changed."""
        place = self._opened_place
        assert self._producer is not None
        with kafka_errors(self._cluster, f"look up topic {self._topic!r}"):
            now = count_partitions(self._producer.consumer, self._topic)
        self._compare(place, self._partitions, now)
        if time.monotonic() - self._recorded > RENEWED:
            self._record(place)
        super().prepare(txid, attempt, numPartitions)

    def _compare(self, place: MarkPlace, before: int, now: int) -> None:
        if before != now:
            raise StateError(_describe_growth(place, before, now))

    def _record(self, place: MarkPlace) -> None:
        place.write(KEYS, Mark(partitions=self._partitions), f"record the number of partitions of {place.label}")
        self._recorded = time.monotonic()

    def _in_values(self, marks: Remembered) -> int:
        """Return the highest txid according to the marks; without marks, according to the values, which reads the
        topic."""
        if not self._valued:
            return 0
        return marks.last or self._wanted.last_txid()


_KINDS = {
    PLAIN: "upsert", "non-transactional": "non-transactional", "transactional": "transactional", "opaque": "opaque",
}  # fmt: skip
_PLAIN = (
    "a plain compacted topic cannot be updated, since its records do not identify a replay. For persistentAggregate "
    'choose kind="opaque" or kind="transactional" (or "non-transactional", which counts a replay twice)'
)


@dataclass(frozen=True, repr=False)
class CompactedTopicState(StateFactory):
    """Keeps the last value of every key in a compacted topic. Written by `states.RowUpdater` (upserts) and, except for
    kind "plain", by persistentAggregate; read by `MapGet`, `TupleCollectionGet` and any Kafka consumer.

    ``key``: the fields of the key, None for a global aggregate. ``value``: the fields of the value, optionally typed
    ("count bigint"). A row whose values are all None is a tombstone. ``kind``: "plain" (guarantee kind "upsert"),
    "non-transactional", "transactional" or "opaque"; txid and previous value are record headers. ``settings``:
    librdkafka's settings. A missing topic is created with ``partitions``, ``replication`` and ``config``. ``restart``:
    for how many seconds the topology may be down; delete.retention.ms and max.compaction.lag.ms must be at least as
    long.

    On replay: as its kind; every partition of a batch is one Kafka transaction under a fixed transactional id.
    Raises DefinitionError for options that contradict each other; opens nothing.
    """

    bootstrap: str
    topic: str
    key: FieldsLike | None
    value: FieldsLike
    kind: str = PLAIN
    settings: Mapping[str, Any] | tuple[tuple[str, str], ...] | None = None
    partitions: int | None = None
    replication: int | None = None
    config: Mapping[str, Any] | tuple[tuple[str, str], ...] | None = None
    restart: float = HOUR
    type: str = field(init=False, compare=False)
    cluster: Cluster = field(init=False, compare=False)
    codec: Codec = field(init=False, compare=False)
    own_updater = RowUpdater()
    reading = Reading.CURRENT
    state_type = CompactedMap

    def __post_init__(self) -> None:
        kind = {shown: name for name, shown in _KINDS.items()}.get(self.kind, self.kind)
        if kind not in _KINDS:
            raise DefinitionError(f"topic {self.topic!r}: kind must be one of {', '.join(_KINDS)}; got {self.kind!r}")
        key = None if self.key is None else Fields.of_columns(self.key)
        codec = Codec(self.topic, key, Fields.of_columns(self.value))
        if len(codec.value) == 0 or (key is not None and len(key) == 0):
            raise DefinitionError(f"topic {self.topic!r}: key and value need at least one field each")
        (key or Fields()).concat(codec.value)  # raises for a field named twice
        partition_count(self.topic, self.partitions)
        settings = pairs(self.topic, self.settings)
        if "partitioner" in dict(settings):
            raise DefinitionError(f"topic {self.topic!r}: the partitioner is murmur2 as in Java, and cannot be changed")
        derived = {
            "type": kind, "kind": _KINDS[kind], "key": key, "value": codec.value, "codec": codec,
            "settings": settings, "cluster": cluster_of(self.bootstrap, settings),
            "config": tuple(sorted((name, str(value)) for name, value in dict(self.config or {}).items())),
        }  # fmt: skip
        for name, value in derived.items():
            object.__setattr__(self, name, value)
        codec.key_columns, codec.value_columns  # noqa: B018 (raises DefinitionError for an unknown type)

    @classmethod
    def nonTransactional(
        cls, bootstrap: str, topic: str, key: FieldsLike | None = None, value: FieldsLike = "count bigint", **more: Any
    ) -> CompactedTopicState:
        """Return a map of plain values. A replayed batch counts twice."""
        return cls(bootstrap, topic, key, value, "non-transactional", **more)

    @classmethod
    def transactional(
        cls, bootstrap: str, topic: str, key: FieldsLike | None = None, value: FieldsLike = "count bigint", **more: Any
    ) -> CompactedTopicState:
        """Return a map with the txid beside each value. Exact if a replayed batch has the same content."""
        return cls(bootstrap, topic, key, value, "transactional", **more)

    @classmethod
    def opaque(
        cls, bootstrap: str, topic: str, key: FieldsLike | None = None, value: FieldsLike = "count bigint", **more: Any
    ) -> CompactedTopicState:
        """Return a map with txid and previous value. Exact even if a replayed batch has other content, except S12's
        keys."""
        return cls(bootstrap, topic, key, value, "opaque", **more)

    @property
    def stateName(self) -> str:
        return self.topic

    @property
    def key_fields(self) -> Fields | None:
        return self.codec.key_fields

    @property
    def row_fields(self) -> Fields:
        return self.codec.fields

    @property
    def refused_calls(self) -> Mapping[str, str]:
        refused = refuse_global(f"topic {self.topic!r}", self.codec.keys)
        return refused if self.type != PLAIN else {**dict.fromkeys(("update", "multiUpdate"), _PLAIN), **refused}

    @property
    def needs(self) -> Needs:
        return self.cluster.needs

    @property
    def location(self) -> Location:
        return location_of(self.cluster, self.topic)

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> CompactedMap:
        fence = TopicFence.at(MarkPlace.of(self.cluster, self.topic, conf), conf)
        writer = KeyWriter(fence, partitionIndex, numPartitions, for_producers(self.settings))
        backing = TopicBacking(self.codec, self.type, self.cluster, writer)
        settle = self.ensure_topic if RunContext.of(conf).generation is None else None
        return CompactedMap(self, backing, partitionIndex, numPartitions, settle)

    def check_place(self, place: StatePlace) -> None:
        """Raise DefinitionError for a query that could not see all that its batch has written, and for rows with fields
        that would be lost."""
        check_asked_behind(place, f"topic {self.topic!r}")
        if isinstance(place.updater, RowUpdater):
            self.codec.check_fields(place.fields)

    def participant(self) -> BatchParticipant:
        return CompactedLedger(self._compaction, self.location, for_producers(self.settings), valued=self.type != PLAIN)

    def stored(self) -> dict[tuple, Any]:
        """Return all keys that have a value: key tuple -> plain value, TransactionalValue or OpaqueValue."""
        reach(self.cluster)
        if self._compaction.find_topic() is None:
            return {}
        return {ExactKey(key): value for key, value in self._open_backing().rows()}

    def open_values(self) -> StoredValues:
        """Open the values of a map. The topic is created with the first ones that are put."""
        opened = load(repr(self), "topic_values").StoredTopicValues
        return opened(self._open_backing(), self._compaction, for_producers(self.settings))

    def _open_backing(self) -> TopicBacking:
        """Open the values outside of any run."""
        backing = self.makeState({}, None, 0, 1).backing
        backing.written = 1  # waits for records committed just now
        return backing

    def ensure_topic(self) -> None:
        """Create the topic if it is missing. Raises StateError if an existing one is unsuitable."""
        self._compaction.ensure_topic()

    def check(self) -> Sequence[Finding]:
        """Look at the topic and write nothing."""
        return self._compaction.look()

    def check_queried(self) -> Sequence[Finding]:
        """Look at the topic, which a query does not create."""
        return look(self.cluster, self.topic, queried=True)

    @property
    def _compaction(self) -> Compaction:
        config = tuple(dict(self.config or {}).items())
        return Compaction(self.cluster, self.topic, self.partitions, self.replication, config, self.restart)

    def __repr__(self) -> str:
        return (
            f"CompactedTopicState({self.bootstrap!r}, {self.topic!r}, key={self.key}, value={self.value}, "
            f"kind={self.type!r})"
        )
