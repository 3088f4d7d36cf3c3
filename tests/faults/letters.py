"""Dead letters in each store of a campaign, and the ids of the rows that they are of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import redis
from topic_reading import read as read_topic

from states.files import FileState
from states.kafka import TransactionalTopicState
from states.redis import RedisDataType, RedisDataTypeDescription, RedisState, RedisStoreMapper
from states.sql import AppendState

from .cell_topology import topic_of
from .held import DATABASES, TOPICS
from .stores import read

NAME = "letters"


class Letters(NamedTuple):
    """How the state is made, and the column ``tuple`` of what it holds."""

    make: Callable[[str], Any]
    tuples: Callable[[str], Iterable[str]]


@dataclass(frozen=True)
class LetterMapper(RedisStoreMapper):
    """The excluded tuple, under the batch and the place in it."""

    hash: str

    def getDataTypeDescription(self) -> RedisDataTypeDescription:
        return RedisDataTypeDescription(RedisDataType.HASH, self.hash)

    def getKeyFromTuple(self, tuple: Any) -> str:
        return "/".join(str(tuple.getValueByField(name)) for name in ("txid", "spout", "partition", "index"))

    def getValueFromTuple(self, tuple: Any) -> str:
        return str(tuple.getValueByField("tuple"))


def _to_redis(url: str) -> RedisState:
    database, hash = topic_of(url, NAME)
    return RedisState(database, hash, LetterMapper(hash))


def _in_redis(url: str) -> Iterable[str]:
    database, hash = topic_of(url, NAME)
    with redis.Redis.from_url(database, decode_responses=True) as reader:
        return reader.hvals(hash)


def _in_topic(url: str) -> Iterable[str]:
    return [json.loads(record.value or b"null")["tuple"] for record in read_topic(*topic_of(url, NAME))]


def _in_files(url: str) -> Iterable[str]:
    files = sorted(Path(f"{url}/{NAME}").glob("part-*"))
    return [text for file in files for text in pd.read_parquet(file)["tuple"]]


LETTERS = {
    **dict.fromkeys(
        DATABASES,
        Letters(
            lambda url: AppendState(url, NAME),
            lambda url: [text for (text,) in read(url, f"SELECT tuple FROM {NAME}")],
        ),
    ),
    "redis": Letters(_to_redis, _in_redis),
    **dict.fromkeys(
        TOPICS, Letters(lambda url: TransactionalTopicState(*topic_of(url, NAME), partitions=2), _in_topic)
    ),
    "files": Letters(lambda url: FileState(f"{url}/{NAME}"), _in_files),
}


def ids(store: str, url: str) -> Counter[str]:
    return Counter(text.split('"')[1] for text in LETTERS[store].tuples(url))
