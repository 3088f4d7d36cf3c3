"""Every state that a campaign knows, by store and name: how it is made, and what it holds against what it must hold."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import redis
from compacted_reading import headers, latest
from topic_reading import read as read_topic

from states.files import RowUpdater as FileRows
from states.kafka import CompactedTopicState, TransactionalTopicState
from states.kafka import RowUpdater as TopicRows
from states.redis import (
    RedisDataType,
    RedisDataTypeDescription,
    RedisMapState,
    RedisState,
    RedisStateUpdater,
    RedisStoreMapper,
)
from states.sql import RowUpdater, SqlWindowsStoreFactory
from trident_py.operations.builtin import Count, Sum
from trident_py.windowing import TumblingCountWindow

from . import steps
from .cell_topology import SteppedStore, topic_of
from .file_rows import files_state, rows_in_files
from .readings import Fold
from .stores import FACTORIES, MAPS, PAIRS, ROW, Pairs, read

DATABASES = ("sqlite", "mariadb", "mysql", "postgresql")
TOPICS = ("kafka", "brokers")
"""One broker, and three with replication 3."""
INPUT = "readings"
"""The topic of a KafkaSpout."""
FIELDS = list(ROW)


@dataclass(frozen=True)
class Held:
    """A state of a store. ``combiner``: it is a map. ``persist``: it is no plain partitionPersist."""

    make: Callable[[str], Any]
    pairs: Callable[[str, Fold], Pairs]
    combiner: Any = None
    updater: Callable[[], Any] = RowUpdater
    persist: Callable[[Any, str, str], Any] | None = None


# -- windows ----------------------------------------------------------------------------------------------------------


def window(stream: Any, url: str, name: str) -> Any:
    """A window that never ends: its table holds every tuple that has entered."""
    store = SteppedStore(name, SqlWindowsStoreFactory(url, "windowed"))
    config = TumblingCountWindow.of(1_000_000)
    return stream.partitionBy("sender").window(config, store, ["id", "n"], Count(), "count", stateName=name)


def in_window(url: str, fold: Fold) -> Pairs:
    blocks = [bytes(data) for (data,) in read(url, "SELECT data FROM windowed WHERE tuples > 0 AND part >= 0")]
    tables = [pa.ipc.open_stream(block).read_all() for block in blocks]
    found = Counter((row["id"], row["n"]) for tuples in tables for row in tuples.to_pylist())
    return [(found, Counter((row[0], row[2]) for row in fold.delivered))]


# -- Redis ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowMapper(RedisStoreMapper):
    """A reading under its id, as JSON."""

    hash: str

    def getDataTypeDescription(self) -> RedisDataTypeDescription:
        return RedisDataTypeDescription(RedisDataType.HASH, self.hash)

    def getKeyFromTuple(self, tuple: Any) -> str:
        return tuple[0]

    def getValueFromTuple(self, tuple: Any) -> str:
        return json.dumps(list(tuple)[1:])


def redis_rows(stream: Any, url: str, name: str) -> Any:
    database, hash = topic_of(url, name)
    factory, updater = steps.Stepped(name, RedisState(database, hash)), RedisStateUpdater(RowMapper(hash))
    stream = stream.partitionBy("id")
    return stream.partitionPersist(factory, FIELDS, steps.InHalves(updater), stateName=name)


def _hashed(kind: str, name: str) -> Callable[[str], Any]:
    return lambda url: getattr(RedisMapState, kind)(*topic_of(url, name))


def _texts(url: str, name: str) -> dict[str, Any]:
    database, hash = topic_of(url, name)
    with redis.Redis.from_url(database, decode_responses=True) as reader:
        return {key: json.loads(text) for key, text in reader.hgetall(hash).items()}


def _rows_in_redis(url: str, fold: Fold) -> Pairs:
    found = Counter((key, *values) for key, values in _texts(url, "rows").items())
    return [(found, Counter(fold.by_id().values()))]


def _sums_in_redis(name: str, columns: int) -> Callable[[str, Fold], Pairs]:
    def compare(url: str, fold: Fold) -> Pairs:
        found = Counter((word, value[1], value[0], *value[2:]) for word, value in _texts(url, name).items())
        return [(found, Counter((word, *value)[:columns] for word, value in fold.sums().items()))]

    return compare


# -- Kafka ------------------------------------------------------------------------------------------------------------


def compacted_rows(stream: Any, url: str, name: str) -> Any:
    made = CompactedTopicState(*topic_of(url, name), "id string", FIELDS[1:], partitions=2)
    stepped, updater = steps.Stepped(name, made), steps.InHalves(TopicRows())
    return stream.partitionBy("id").partitionPersist(stepped, FIELDS, updater, stateName=name)


def _compacted(kind: str, name: str) -> Callable[[str], Any]:
    make = getattr(CompactedTopicState, kind)
    return lambda url: make(*topic_of(url, name), "word string", "total bigint", partitions=2)


def _rows_in_topic(url: str, fold: Fold) -> Pairs:
    found = Counter()
    for key, record in latest(*topic_of(url, "rows")).items():
        value = json.loads(record.value or b"null")
        found[(key.decode(), *(value[field] for field in FIELDS[1:]))] += 1
    return [(found, Counter(fold.by_id().values()))]


def _sums_in_topic(name: str, columns: int) -> Callable[[str, Fold], Pairs]:
    def compare(url: str, fold: Fold) -> Pairs:
        found: Counter = Counter()
        for key, record in latest(*topic_of(url, name)).items():
            told = headers(record)
            prev = told.get("trident-prev")
            value = (key.decode(), json.loads(record.value or b"null"), int(told["trident-txid"] or 0))
            found[(*value, None if prev is None else json.loads(prev))[:columns]] += 1
        return [(found, Counter((word, *value)[:columns] for word, value in fold.sums().items()))]

    return compare


def _records(url: str, fold: Fold) -> Pairs:
    values = [json.loads(record.value or b"null") for record in read_topic(*topic_of(url, "topic"))]
    return [(Counter(tuple(value[field] for field in FIELDS) for value in values), fold.counted())]


# -- files ------------------------------------------------------------------------------------------------------------

def _in_files(mode: str) -> Callable[[str, Fold], Pairs]:
    def compare(url: str, fold: Fold) -> Pairs:
        folder, expected = Path(f"{url}/{mode}"), fold.counted()
        listed = [] if mode == "manifest" else [(rows_in_files(folder, True), expected)]
        return [(rows_in_files(folder, False), expected), *listed]

    return compare


# -- all of them ------------------------------------------------------------------------------------------------------

_IN_SQL = {name: Held(FACTORIES[name], PAIRS[name], MAPS.get(name)) for name in FACTORIES}
_IN_SQL["window"] = Held(lambda url: None, in_window, persist=window)
_IN_TOPICS = {
    "rows": Held(lambda url: None, _rows_in_topic, persist=compacted_rows),
    "trans": Held(_compacted("transactional", "trans"), _sums_in_topic("trans", 3), Sum()),
    "opaque": Held(_compacted("opaque", "opaque"), _sums_in_topic("opaque", 4), Sum()),
    "topic": Held(
        lambda url: TransactionalTopicState(*topic_of(url, "topic"), key="sender", value=FIELDS),
        _records, updater=TopicRows,
    ),
}  # fmt: skip
HELD: dict[str, dict[str, Held]] = {
    **dict.fromkeys(DATABASES, _IN_SQL),
    "redis": {
        "rows": Held(lambda url: None, _rows_in_redis, persist=redis_rows),
        "trans": Held(_hashed("transactional", "trans"), _sums_in_redis("trans", 3), Sum()),
        "opaque": Held(_hashed("opaque", "opaque"), _sums_in_redis("opaque", 4), Sum()),
    },
    **dict.fromkeys(TOPICS, _IN_TOPICS),
    "files": {
        mode: Held(lambda url, mode=mode: files_state(f"{url}/{mode}", mode), _in_files(mode), updater=FileRows)
        for mode in ("files", "batches", "manifest")
    },
}  # fmt: skip
