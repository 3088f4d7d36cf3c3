"""RedisState: Storm's mappers, updater and querier; expiry; what it refuses."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import redis as client
from contracts.crashing import Driver
from redis_clients import close_servers
from redis_contract import COUNT

from states.redis import (
    FieldMapper,
    RedisDataType,
    RedisDataTypeDescription,
    RedisLookupMapper,
    RedisState,
    RedisStateQuerier,
    RedisStateUpdater,
    RedisStoreMapper,
)
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import DefinitionError, StateError, ZombieError
from trident_py.state import SILENT
from trident_py.testing import FixedBatchSpout
from trident_py.tuples import TridentTuple

WORDS = Fields("word", "n")


class WordCountStoreMapper(RedisStoreMapper):
    """As in storm-redis-examples."""

    def __init__(self, hash: str) -> None:
        self.description = RedisDataTypeDescription(RedisDataType.HASH, hash)

    def getDataTypeDescription(self) -> RedisDataTypeDescription:
        return self.description

    def getKeyFromTuple(self, tuple: TridentTuple) -> str:
        return "test_" + tuple.getString(0)

    def getValueFromTuple(self, tuple: TridentTuple) -> str:
        return str(tuple.getInteger(1))


class WordCountLookupMapper(RedisLookupMapper):
    def __init__(self, hash: str) -> None:
        self.description = RedisDataTypeDescription(RedisDataType.HASH, hash)

    def getDataTypeDescription(self) -> RedisDataTypeDescription:
        return self.description

    def getKeyFromTuple(self, tuple: TridentTuple) -> str:
        return "test_" + tuple.getString(0)

    def toTuple(self, input: TridentTuple, value: str | None) -> Sequence[Sequence[Any]]:
        return [[self.getKeyFromTuple(input), value]]


@pytest.fixture
def hash(redis: str) -> Iterator[str]:
    yield f"texts-{os.getpid()}-{next(COUNT)}"
    close_servers()


@pytest.fixture
def reader(redis: str) -> Iterator[Any]:
    with client.Redis.from_url(redis) as reader:
        yield reader


def rows(*pairs: tuple[Any, Any]) -> list[TridentTuple]:
    return [TridentTuple.of(WORDS, each) for each in pairs]


def test_storms_word_count(redis: str, hash: str, reader: Any) -> None:
    """WordCountTridentRedis of storm-redis-examples, line by line."""
    spout = FixedBatchSpout(["word", "count"], 4, ("storm", 1), ("trident", 1), ("needs", 1), ("javadoc", 1))
    factory = RedisState.Factory(redis, hash)
    topology = TridentTopology()
    stream = topology.newStream("spout1", spout)
    updater = RedisStateUpdater(WordCountStoreMapper(hash)).withExpire(86400)
    stream.partitionPersist(factory, ["word", "count"], updater, [])
    with LocalCluster() as cluster:
        cluster.submitTopology("words", {}, topology.build()).awaitTermination()
    assert reader.hgetall(hash) == {
        b"test_storm": b"1", b"test_trident": b"1", b"test_needs": b"1", b"test_javadoc": b"1",
    }  # fmt: skip
    assert 86_390 < reader.ttl(hash) <= 86_400

    asking, seen = TridentTopology(), []
    asked = asking.newStream("spout2", FixedBatchSpout(["word"], 2, ("storm",), ("nimbus",)))
    querier = RedisStateQuerier(WordCountLookupMapper(hash))
    found = asked.stateQuery(asking.newStaticState(factory), ["word"], querier, ["columnName", "columnValue"])
    found.peek(lambda row: seen.append(tuple(row)))
    with LocalCluster() as cluster:
        cluster.submitTopology("asking", {}, asking.build()).awaitTermination()
    assert sorted(seen) == [("nimbus", "test_nimbus", None), ("storm", "test_storm", "1")]


def test_the_last_text_of_a_key_stays_and_strings_expire_each(redis: str) -> None:
    url = redis.removesuffix("/0") + "/5"
    updater = RedisStateUpdater(FieldMapper("word", "n")).withExpire(60)
    with client.Redis.from_url(url) as fifth:
        driver = Driver(RedisState(url), updater)
        driver.batch(rows(("a", 1), ("b", 2.5), ("a", "x")), 1, of=1)
        assert fifth.mget("a", "b") == [b"x", b"2.5"]
        assert {0 < fifth.ttl(name) <= 60 for name in "ab"} == {True}
        assert {fifth.ttl(name) for name in fifth.keys("trident:*")} == {-1}
        fifth.flushdb()
    close_servers()


def test_a_query_in_the_batch_sees_what_its_partition_has_stored(redis: str, hash: str) -> None:
    mapper = FieldMapper("word", "n", hash)
    state = RedisState(redis, hash).makeState({}, None, 0, 1)
    state.beginCommit(1)
    RedisStateUpdater(mapper).updateState(state, rows(("a", 1)), SILENT)
    assert RedisStateQuerier(mapper).batchRetrieve(state, rows(("a", 0), ("b", 0))) == [[["1"]], [[None]]]
    state.rollback(1)
    assert RedisStateQuerier(mapper).batchRetrieve(state, rows(("a", 0))) == [[[None]]]


def test_an_older_driver_puts_no_older_text_back(redis: str, hash: str) -> None:
    updater = RedisStateUpdater(FieldMapper("word", "n", hash))
    factory = RedisState(redis, hash)
    old = Driver(factory, updater)
    old.batch(rows(("a", 1)), 1)
    old.participant.prepare(2, 0, 1)
    task = factory.makeState(old.conf, None, 0, 1)
    task.beginCommit(2)
    updater.updateState(task, rows(("a", "old")), SILENT)
    new = Driver(factory, updater)
    new.batch(rows(("a", "new")), 2)
    with pytest.raises(ZombieError, match="has taken over"):
        task.commit(2)
    assert factory.stored() == {("a",): "new"}


@pytest.mark.parametrize("row", [(1, "x"), (None, "x"), ("a", None), ("a", b"x"), ("a", "\ud800")])
def test_what_is_no_text_is_named(redis: str, hash: str, row: tuple) -> None:
    driver = Driver(RedisState(redis, hash), RedisStateUpdater(FieldMapper("word", "n", hash)))
    with pytest.raises(StateError, match=r"FieldMapper gave the (key|value) .* which is not text. Nothing of"):
        driver.run(rows(("good", 1), row), 1, of=1)
    assert driver.factory.stored() == {}


def test_a_mapper_of_another_place_is_refused(redis: str, hash: str) -> None:
    with pytest.raises(DefinitionError, match="describes HASH h, and the state is the strings: give RedisState hash="):
        RedisState(redis, mapper=FieldMapper("word", "n", "h"))
    state = RedisState(redis, hash).makeState({}, None, 0, 1)
    state.beginCommit(1)
    with pytest.raises(DefinitionError, match="describes STRING, and the state is hash"):
        RedisStateUpdater(FieldMapper("word", "n")).updateState(state, rows(("a", 1)), SILENT)
    for arguments in ((RedisDataType.HASH,), (RedisDataType.STRING, "h"), ("LIST",)):
        with pytest.raises(DefinitionError):
            RedisDataTypeDescription(*arguments)


def test_a_state_with_a_mapper_needs_no_updater(redis: str, hash: str, reader: Any) -> None:
    factory = RedisState(redis, hash, FieldMapper("word", "n", hash), expireIntervalSec=100)
    topology = TridentTopology()
    topology.newStream("words", FixedBatchSpout(["word", "n"], 1, ("a", 1), ("a", 2))).partitionPersist(
        factory, ["word", "n"]
    )
    (guarantee,) = topology.guarantees()
    assert (guarantee.state_kind, guarantee.guarantee) == ("upsert", "exactly once in effect")
    assert "if Redis loses no acknowledged write" in guarantee.reason
    with LocalCluster() as cluster:
        cluster.submitTopology("own", {}, topology.build()).awaitTermination()
    assert reader.hgetall(hash) == {b"a": b"2"} and 0 < reader.ttl(hash) <= 100
