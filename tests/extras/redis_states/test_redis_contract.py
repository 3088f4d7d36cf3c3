"""RedisMapState and RedisState inherit the contract of all states: in their kinds, in a hash and in strings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis as client
from contracts.state import MapContract, RowContract
from redis_clients import close_servers
from redis_contract import RedisContract, plainly

from states.redis import FieldMapper, RedisMapState, RedisState, RedisStateUpdater
from trident_py.operations.base import CombinerAggregator
from trident_py.state import MapCombinerAggStateUpdater


class Plus(CombinerAggregator):
    """A combiner of the user's own."""

    def init(self, tuple: Any) -> int:
        return tuple[0]

    def combine(self, val1: int, val2: int) -> int:
        return val1 + val2

    def zero(self) -> int:
        return 0


class RedisMapContract(RedisContract, MapContract):
    bad_row = ("good", {7})
    bad_words = ("key 'good'", "{7} (set)", "Nothing of the batch is written")

    def listing(self, factory: Any) -> Any:
        return factory


class TestOpaque(RedisMapContract):
    updater = MapCombinerAggStateUpdater(Plus(), "word", "n")

    def make(self, url: str) -> RedisMapState:
        return RedisMapState.opaque(url, self.name())


class TestTransactional(RedisMapContract):
    def make(self, url: str) -> RedisMapState:
        return RedisMapState.transactional(url, self.name())


class TestOpaqueStrings(RedisMapContract):
    """In a database of its own."""

    tells_size = False

    @pytest.fixture
    def factory(self, redis: str) -> Iterator[Any]:
        url = redis.removesuffix("/0") + "/1"
        yield RedisMapState.opaque(url)
        close_servers()
        with client.Redis.from_url(url) as last:
            last.flushdb()


class TestRows(RedisContract, RowContract):
    """RedisState: the last text of each key."""

    updater = RedisStateUpdater(FieldMapper("word", "n"))
    bad_row = ("x", {1})
    bad_words = ("FieldMapper gave the value {1} (set) for ('x', {1})", "Nothing of the batch is written")

    @pytest.fixture
    def factory(self, redis: str) -> Iterator[Any]:
        name = self.name()
        self.updater = RedisStateUpdater(FieldMapper("word", "n", name))  # type: ignore[misc]
        yield RedisState(redis, name)
        close_servers()

    def found(self, factory: Any) -> dict[tuple, Any]:
        there = {(name,): str(value) for name, value in plainly(factory.url, factory.hash).items()}
        assert factory.stored() == there
        return there

    def expected(self, batches: list[list[tuple]]) -> dict[tuple, Any]:
        return {(word,): str(n) for batch in batches for word, n in batch}
