"""The values of a map in a compacted topic outside of any run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

from states.kafka.compacted.backing import TopicBacking
from states.kafka.compacted.codec import GLOBAL_KEY
from states.kafka.compacted.local_table import PREV, Row, format_txid
from states.kafka.compacted.state import Compaction
from states.kafka.marks import Mark, MarkPlace
from states.kafka.producer import TransactionalProducer

from ...errors import StateError
from ...state import StateType
from ...state.base import Key
from .declared_types import name_global

PART = "import"


class StoredTopicValues:
    """See `trident_py.state.roles.StoredValues`. Without a key the one value is that of the global aggregate, whatever
    its key elsewhere. It writes under a transactional id of its own, so of two imports the older one is shut out."""

    def __init__(self, backing: TopicBacking, compaction: Compaction, settings: Mapping[str, Any]) -> None:
        self.kind = StateType(backing.kind)
        self.key = backing.codec.keys
        self.value = backing.codec.value
        self._backing = backing
        self._compaction = compaction
        self._settings = settings

    def put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        self._compaction.ensure_topic()
        keys = self._map_keys(keys)
        if self.kind is StateType.NON_TRANSACTIONAL and None in values:
            raise StateError(
                f"{self._shown}: key {list(keys[list(values).index(None)])!r} has the value null, which a compacted "
                "topic cannot keep: its record would remove the key. Leave it out, or choose another kind of state"
            )
        rows = self._backing.rows_of(keys, values)
        texts, headers = [row.value for row in rows.values()], list(map(_headers, rows.values()))
        place = MarkPlace(self._compaction.cluster, self._compaction.topic, "", self._compaction.topic)
        with closing(TransactionalProducer(place, PART, self._settings)) as producer:
            producer.open()
            producer.begin()
            producer.send(place.topic, texts, list(rows), headers)
            producer.commit(Mark())

    def get(self, keys: Sequence[Key]) -> list[Any]:
        return self._backing.multiGet(self._map_keys(keys))

    def holds(self, keys: Sequence[Key], values: Sequence[Any]) -> bool:
        return self.get(keys) == list(values)

    def count(self) -> int:
        return self._backing.count()

    def rows(self) -> Iterable[tuple[Key, Any]]:
        return self._backing.rows()

    def _map_keys(self, keys: Sequence[Key]) -> Sequence[Key]:
        return keys if self.key is not None else name_global(self._shown, GLOBAL_KEY, keys)

    @property
    def _shown(self) -> str:
        return f"topic {self._compaction.topic!r}"


def _headers(row: Row) -> list[tuple[str, bytes]]:
    return format_txid(row.txid) + ([] if row.prev is None else [(PREV, row.prev)])
