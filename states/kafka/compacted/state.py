"""A map state and upserts in a compacted Kafka topic: one record for each key, for any Kafka consumer to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trident_py.errors import DefinitionError
from trident_py.kafka.clients import Cluster
from trident_py.model.context import RunContext
from trident_py.state import BatchParticipant, Location, Needs, Reading, StateClass, StateFactory, StatePlace
from trident_py.state.keys import ExactKey
from trident_py.tuples import Fields, FieldsLike

from ...diagnostics import Finding
from ...rows import RowUpdater, check_asked_behind
from ..fence import TopicFence
from ..ledger import UnfencedLedger
from ..marks import MarkPlace
from ..settings import cluster_of, for_producers, location_of, pairs
from ..topic_admin import partition_count
from .backing import PLAIN, CompactedMap, FencedWriter, KeyWriter, PlainWriter, TopicBacking
from .codec import Codec
from .compaction import HOUR, CompactedLedger, Compaction, KeyedTopic

_KINDS = {
    PLAIN: "upsert", "non-transactional": "non-transactional", "transactional": "transactional", "opaque": "opaque",
}  # fmt: skip
_REGRESS = (
    "at least once",
    "a key is written again with the same value, but nothing shuts out an older driver or a delayed attempt, which may "
    "overwrite a newer value with an older one",
    "use fence=True",
)


@dataclass(frozen=True, repr=False)
class CompactedTopicState(StateFactory):
    """Keeps the last value of every key in a compacted topic. Written by `states.RowUpdater` (upserts) and, except for
    kind "plain", by persistentAggregate; read by `MapGet`, `TupleCollectionGet` and any Kafka consumer.

    ``key``: the fields of the key, None for a global aggregate. ``value``: the fields of the value, optionally typed
    ("count bigint"). A row whose values are all None is a tombstone. ``kind``: "plain" (guarantee kind "upsert"),
    "non-transactional", "transactional" or "opaque"; txid and previous value are record headers. ``fence=False`` (plain
    only): no transactions, so an older driver may overwrite a key with an older value. ``settings``: librdkafka's
    settings. A missing topic is created with ``partitions``, ``replication`` and ``config``. ``restart``: for how many
    seconds the topology may be down; delete.retention.ms and max.compaction.lag.ms must be at least as long.

    On replay: as its kind; every partition of a batch is one Kafka transaction under a fixed transactional id.
    Raises DefinitionError for options that contradict each other; opens nothing.
    """

    bootstrap: str
    topic: str
    key: FieldsLike | None
    value: FieldsLike
    kind: str = PLAIN
    fence: bool = True
    settings: Mapping[str, Any] | tuple[tuple[str, str], ...] | None = None
    partitions: int | None = None
    replication: int | None = None
    config: Mapping[str, Any] | tuple[tuple[str, str], ...] | None = None
    restart: float = HOUR
    type: str = field(init=False, compare=False)
    cluster: Cluster = field(init=False, compare=False)
    codec: Codec = field(init=False, compare=False)

    def __post_init__(self) -> None:
        kind = {shown: name for name, shown in _KINDS.items()}.get(self.kind, self.kind)
        if kind not in _KINDS:
            raise DefinitionError(f"topic {self.topic!r}: kind must be one of {', '.join(_KINDS)}; got {self.kind!r}")
        if not self.fence and kind != PLAIN:
            raise DefinitionError(f"topic {self.topic!r}: kind {kind!r} reads before it writes, which needs the fence")
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
        return None if self.key is None else Fields.of_columns(self.key)

    @property
    def state_type(self) -> StateClass:
        return CompactedMap

    @property
    def needs(self) -> Needs:
        return self.cluster.needs

    @property
    def location(self) -> Location:
        return location_of(self.cluster, self.topic)

    @property
    def guarantees(self) -> Mapping[str, tuple[str, ...]]:
        """The exception to the kind's guarantee: without a fence, a key may go back to an older value."""
        return {} if self.fence else {"transactional": _REGRESS, "opaque": _REGRESS}

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> CompactedMap:
        settings = for_producers(self.settings)
        writer: KeyWriter = PlainWriter(self.cluster, self.topic, settings)  # opens nothing before its first batch
        if self.fence:
            fence = TopicFence.at(MarkPlace.of(self.cluster, self.topic, conf), conf)
            writer = FencedWriter(fence, partitionIndex, numPartitions, settings)
        settle = self.ensure_topic if RunContext.of(conf).generation is None else None
        return CompactedMap(self._backing(writer), partitionIndex, numPartitions, settle)

    @property
    def reading(self) -> Reading:
        return Reading.CURRENT

    @property
    def own_updater(self) -> RowUpdater:
        return RowUpdater()

    def check_place(self, place: StatePlace) -> None:
        """Raise DefinitionError for a query that could not see all that its batch has written."""
        check_asked_behind(place, f"topic {self.topic!r}")

    def participant(self) -> BatchParticipant:
        keyed = KeyedTopic(self._compaction)
        if not self.fence:
            return UnfencedLedger(keyed, self.location)
        return CompactedLedger(keyed, self.location, for_producers(self.settings), valued=self.type != PLAIN)

    def stored(self) -> dict[tuple, Any]:
        """Return all keys that have a value: key tuple -> plain value, TransactionalValue or OpaqueValue."""
        if self._compaction.look()[0].level == "creates":
            return {}
        backing = self._backing(PlainWriter(self.cluster, self.topic, {}))
        backing.written = 1  # waits for records committed just now
        return {ExactKey(key): value for key, value in backing.rows()}

    def ensure_topic(self) -> None:
        """Create the topic if it is missing. Raises StateError if an existing one is unsuitable."""
        self._compaction.ensure_topic()

    def check(self) -> Sequence[Finding]:
        """Look at the topic and write nothing."""
        return self._compaction.look()

    def _backing(self, writer: KeyWriter) -> TopicBacking:
        return TopicBacking(self.codec, self.type, self.cluster, writer)

    @property
    def _compaction(self) -> Compaction:
        config = tuple(dict(self.config or {}).items())
        return Compaction(self.cluster, self.topic, self.partitions, self.replication, config, self.restart)

    def __repr__(self) -> str:
        fence = "" if self.fence else ", fence=False"
        return (
            f"CompactedTopicState({self.bootstrap!r}, {self.topic!r}, key={self.key}, value={self.value}, "
            f"kind={self.type!r}{fence})"
        )
