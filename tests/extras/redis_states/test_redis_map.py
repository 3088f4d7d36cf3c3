"""RedisMapState: Storm's bytes, its options, and the servers and keys that it refuses."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import redis as client
from contracts.crashing import Driver
from redis_clients import close_servers
from redis_contract import COUNT

from states.redis import RedisMapState
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import DefinitionError, FailedException, LineageError, StateError
from trident_py.extras.redis import ledger, writer
from trident_py.extras.redis.server import server_of
from trident_py.model.retry import again_for
from trident_py.operations.builtin import Sum
from trident_py.spouts import FixedBatchSpout
from trident_py.state import MapCombinerAggStateUpdater, OpaqueValue, TransactionalValue
from trident_py.state.updaters import MapGet
from trident_py.tuples import TridentTuple

SUM = MapCombinerAggStateUpdater(Sum(), "word", "n")
WORDS = Fields("word", "n")


@pytest.fixture
def hash(redis: str) -> Iterator[str]:
    yield f"map-{os.getpid()}-{next(COUNT)}"
    close_servers()


@pytest.fixture
def reader(redis: str) -> Iterator[Any]:
    with client.Redis.from_url(redis) as reader:
        yield reader


def put(factory: RedisMapState, txid: int | None, rows: dict[tuple, Any]) -> Any:
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(txid)
    try:
        state.multiPut(list(rows), list(rows.values()))
        return state.commit(txid)
    except BaseException:
        state.rollback(txid)
        raise


def rows(**counts: int) -> list[TridentTuple]:
    return [TridentTuple.of(WORDS, each) for each in counts.items()]


def test_the_bytes_are_those_of_storm(redis: str, hash: str, reader: Any) -> None:
    """As storm-redis 2.8.3 writes them: JSON of json-smart, the key as it is."""
    kinds = (
        (RedisMapState.nonTransactional, [b"1", b"5"]),
        (RedisMapState.transactional, [b"[1,1]", b"[2,5]"]),
        (RedisMapState.opaque, [b"[1,1,null]", b"[2,5,1]"]),
    )
    for make, texts in kinds:
        factory = make(redis, f"{hash}-{make.__name__}")
        for txid, (value, text) in enumerate(zip((1, 5), texts, strict=True), 1):
            put(factory, txid, {("wörter/ä",): value})
            assert reader.hgetall(factory.hash) == {"wörter/ä".encode(): text}
    put(RedisMapState.opaque(redis, hash), 7, {("a",): "x/ü"})
    assert reader.hget(hash, "a") == '[7,"x\\/ü",null]'.encode()


def test_strings_are_keys_of_the_database(redis: str, reader: Any) -> None:
    url = redis.removesuffix("/0") + "/2"
    with client.Redis.from_url(url) as second:
        factory = RedisMapState.transactional(url)
        driver = Driver(factory, SUM)
        driver.batch(rows(storm=1, trident=2), 1)
        names = {name for name in second.scan_iter() if not name.startswith(b"trident:")}
        assert names == {b"storm", b"trident"}
        assert second.mget("storm", "trident") == [b"[1,1]", b"[1,2]"]
        assert {second.type(name) for name in second.keys("trident:*")} == {b"hash", b"string"}
        assert factory.stored() == {("storm",): TransactionalValue(1, 1), ("trident",): TransactionalValue(1, 2)}
        with pytest.raises(StateError, match="are those of the ledger"):
            put(factory, 2, {("trident:x",): 1})
        second.flushdb()


def test_a_storm_topologys_values_are_continued(redis: str, hash: str, reader: Any) -> None:
    """Written by Storm up to txid 41; the first start says so, and goes on there when told."""
    reader.hset(hash, mapping={"storm": "[41,12,9]", "trident": "[40,3,null]", "old": "[7,1,0]"})
    factory = RedisMapState.opaque(redis, hash)
    with pytest.raises(LineageError, match="txids up to 41") as told:
        Driver(factory, SUM)
    assert "topology.txid.base" in str(told.value)
    driver = Driver(factory, SUM, **{"topology.txid.base": 41})
    for _ in range(2):  # and a replay
        driver.batch(rows(storm=5, new=2), 42)
    assert reader.hgetall(hash) == {
        b"storm": b"[42,17,12]", b"trident": b"[40,3,null]", b"old": b"[7,1,0]", b"new": b"[42,2,null]",
    }  # fmt: skip


def test_a_ledger_of_a_later_format_is_refused(redis: str, hash: str, reader: Any) -> None:
    factory, before = RedisMapState.opaque(redis, hash), set(reader.keys("*"))
    Driver(factory, SUM).batch(rows(storm=5), 1)
    made = {*reader.keys("*")} - before
    (ledger,) = (key for key in made if reader.type(key) == b"hash" and reader.hexists(key, "generation"))
    reader.hset(ledger, "ledger_format", 2)
    with pytest.raises(StateError, match="its ledger has format 2, this version of trident_py reads 1"):
        Driver(factory, SUM)


def test_a_value_of_another_kind_is_named(redis: str, hash: str, reader: Any) -> None:
    reader.hset(hash, "a", "[41,12]")
    with pytest.raises(StateError, match=r"key 'a': .*\[41,12\].* The state is opaque; give it the kind"):
        RedisMapState.opaque(redis, hash).makeState({}, None, 0, 1).multiGet([("a",)])
    reader.hset(hash, "a", "not json")
    for make in (RedisMapState.opaque, RedisMapState.transactional, RedisMapState.nonTransactional):
        with pytest.raises(StateError, match=r"key 'a': .*not json"):
            make(redis, hash).stored()


def test_a_global_aggregate_has_storms_key(redis: str, hash: str, reader: Any) -> None:
    def run(factory: RedisMapState) -> None:
        topology = TridentTopology()
        spout = FixedBatchSpout(["n"], 2, [1], [2], [3])
        topology.newStream("numbers", spout).persistentAggregate(factory, "n", Sum(), "sum")
        with LocalCluster() as cluster:
            cluster.submitTopology("global", {}, topology.build()).awaitTermination()

    run(RedisMapState.transactional(redis, hash))
    assert reader.hgetall(hash) == {b"$REDIS-MAP-STATE-GLOBAL": b"[2,6]"}
    run(RedisMapState.nonTransactional(redis, f"{hash}-b", globalKey="all"))
    assert reader.hgetall(f"{hash}-b") == {b"all": b"6"}


def test_a_topology_counts_and_asks(redis: str, hash: str) -> None:
    """Storm's WordCountTridentRedisMap."""
    topology = TridentTopology()
    spout = FixedBatchSpout(["word", "count"], 4, ["storm", 1], ["trident", 1], ["needs", 1], ["javadoc", 1])
    stream = topology.newStream("spout1", spout)
    state = stream.groupBy("word").persistentAggregate(
        RedisMapState.transactional(redis, hash), "count", Sum(), "sum"
    )
    seen: list[tuple] = []
    stream.stateQuery(state, "word", MapGet(), "sum").peek(lambda row: seen.append((row[0], row[-1])))
    with LocalCluster() as cluster:
        cluster.submitTopology("words", {}, topology.build()).awaitTermination()
    expected = {(word,): TransactionalValue(1, 1) for word in ("storm", "trident", "needs", "javadoc")}
    assert RedisMapState.transactional(redis, hash).stored() == expected
    assert sorted(word for word, _ in seen) == ["javadoc", "needs", "storm", "trident"]


def test_a_query_in_the_batch_sees_what_its_partition_has_written(redis: str, hash: str) -> None:
    factory = RedisMapState.opaque(redis, hash)
    put(factory, 1, {("a",): 1, ("b",): 2})
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(2)
    state.multiPut([("b",), ("c",)], [7, 8])
    assert state.multiGet([("a",), ("b",), ("c",)]) == [1, 7, 8]
    assert sorted(state.getTuples()) == [["a", 1], ["b", 7], ["c", 8]]
    state.rollback(2)
    assert sorted(state.getTuples()) == [["a", 1], ["b", 2]]


def test_keys_and_values_that_would_change_are_refused(redis: str, hash: str) -> None:
    factory = RedisMapState.opaque(redis, hash)
    text = "takes a text"
    bad_keys = ((("a", "b"), "has 2 fields"), ((1,), text), ((None,), text), (("\ud800",), "not text"))
    for key, why in bad_keys:
        with pytest.raises(StateError, match=why):
            put(factory, 1, {key: 1})
    for value in ({1}, float("nan"), [float("inf")], b"x", (1 + 2j), {1: 2}, "\ud800", object()):
        with pytest.raises(StateError, match=r"key 'a': value .*Nothing of the batch"):
            put(factory, 1, {("a",): value})
    assert factory.stored() == {}
    good = [1.5, -7, 2**80, True, None, "text", [1, [2]], {"a": {"b": None}}]
    put(factory, 1, {(f"k{n}",): value for n, value in enumerate(good)})
    assert factory.makeState({}, None, 0, 1).multiGet([(f"k{n}",) for n in range(len(good))]) == good


@dataclass(frozen=True)
class Joined:
    """A user's KeyFactory for two fields."""

    prefix: str = "words:"

    def build(self, key: Any) -> str:
        return self.prefix + "|".join(map(str, key))


def test_a_key_factory_names_compound_keys(redis: str, hash: str, reader: Any) -> None:
    factory = RedisMapState.opaque(redis, hash, keyFactory=Joined())
    put(factory, 1, {("a", 1): 5, ("b", 2): 6})
    assert reader.hkeys(hash) == [b"words:a|1", b"words:b|2"]
    assert factory.makeState({}, None, 0, 1).multiGet([("b", 2), ("c", 3)]) == [6, None]
    with pytest.raises(StateError, match=r"gives two keys of the batch the name 'words:a\|1'"):
        put(factory, 2, {("a", 1): 7, ("a", "1"): 8})
    with pytest.raises(DefinitionError, match=r"an object with build\(key\)"):
        RedisMapState.opaque(redis, hash, keyFactory=len)


def test_values_expire_when_told(redis: str, hash: str, reader: Any) -> None:
    put(RedisMapState.opaque(redis, hash, expireIntervalSec=60), 1, {("a",): 1})
    assert 59_000 < reader.pttl(hash) <= 60_000
    url = redis.removesuffix("/0") + "/3"
    with client.Redis.from_url(url) as third:
        put(RedisMapState.opaque(url, expireIntervalSec=0.5), 1, {("a",): 1})
        assert 0 < third.pttl("a") <= 500
        put(RedisMapState.opaque(url), 2, {("a",): 1})
        assert third.pttl("a") == -1
        third.flushdb()
    for seconds in (-1, 0.0009):  # less than a millisecond was never
        with pytest.raises(DefinitionError, match="expireIntervalSec must be a number of seconds, at least"):
            RedisMapState.opaque(redis, expireIntervalSec=seconds)


def test_a_key_of_another_type_is_not_written_over(redis: str, hash: str, reader: Any) -> None:
    reader.set(hash, "a string")
    with pytest.raises(StateError, match=r"WRONGTYPE.*holds another type of Redis"):
        put(RedisMapState.opaque(redis, hash), 1, {("a",): 1})
    url = redis.removesuffix("/0") + "/4"
    with client.Redis.from_url(url) as fourth:
        fourth.hset("b", "is", "a hash")
        with pytest.raises(StateError, match="WRONGTYPE"):
            put(RedisMapState.opaque(url), 1, {("a",): 1, ("b",): 1})
        assert fourth.keys() == [b"b"]  # nothing of the batch
        fourth.flushdb()


def test_many_keys_are_one_step(redis: str, hash: str, reader: Any) -> None:
    factory = RedisMapState.transactional(redis, hash)
    put(factory, 1, {(f"k{n}",): n for n in range(12_345)})
    assert reader.hlen(hash) == 12_345
    assert factory.stored() == {(f"k{n}",): TransactionalValue(1, n) for n in range(12_345)}
    found = factory.makeState({}, None, 0, 1).multiGet([(f"k{n}",) for n in range(-5, 12_345)])
    assert found == [None] * 5 + list(range(12_345))


def test_a_batch_too_large_for_one_step_is_refused_in_words(
    redis: str, hash: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MOST", 2)
    factory = RedisMapState.opaque(redis, hash)
    put(factory, 1, {("a",): 1, ("b",): 1})
    with pytest.raises(StateError, match="partition 0 of batch 2 changes 3 keys, and one step of Redis takes 2"):
        put(factory, 2, {("a",): 1, ("b",): 1, ("c",): 1})
    assert factory.stored() == {("a",): OpaqueValue(1, 1, None), ("b",): OpaqueValue(1, 1, None)}


def test_two_states_on_one_hash_are_refused(redis: str, hash: str) -> None:
    topology = TridentTopology()
    stream = topology.newStream("numbers", FixedBatchSpout(["word", "n"], 2, ["a", 1]))
    for url in (redis, redis.replace("127.0.0.1", "localhost")):
        factory = RedisMapState.opaque(url, hash)
        stream.groupBy("word").persistentAggregate(factory, "n", Sum(), f"sum{len(url)}")
    with pytest.raises(DefinitionError, match=f"hash '{hash}'"):
        topology.build()


def test_another_topology_does_not_take_the_hash(redis: str, hash: str, reader: Any) -> None:
    factory = RedisMapState.opaque(redis, hash)
    first = Driver(factory, SUM)
    first.batch(rows(a=1), 1)
    other = {"topology.name": "other", "topology.txid.base": 1}
    with pytest.raises(StateError, match="is updated by state 's' of topology 'contract'"):
        Driver(factory, SUM, "second", **other)
    second = Driver(factory, SUM, "second", **other, **{"topology.owner.replace": "contract/s"})
    second.batch(rows(a=1), 2)
    with pytest.raises(StateError, match="has taken over"):
        first.batch(rows(a=1), 3)
    assert factory.stored() == {("a",): OpaqueValue(2, 2, 1)}


# -- what the server must be


def test_a_server_that_may_evict_is_refused(own_server: Callable[..., Any]) -> None:
    server = own_server("redis", maxmemory="100mb", **{"maxmemory-policy": "allkeys-lru"})
    factory = RedisMapState.opaque(server.url, "h")
    with pytest.raises(StateError, match="maxmemory-policy is allkeys-lru: Redis may drop keys"):
        Driver(factory, SUM)
    assert [finding.level for finding in factory.check()] == ["error"]
    server.restart(maxmemory=0)
    Driver(factory, SUM).batch(rows(a=1), 1)


def test_a_server_that_may_evict_since_the_start_ends_the_run(
    own_server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "LOOK_SECONDS", 0)
    server = own_server("redis")
    driver = Driver(RedisMapState.opaque(server.url, "h"), SUM)
    driver.batch(rows(a=1), 1)
    with client.Redis.from_url(server.url) as admin:
        admin.config_set("maxmemory", "100mb")
        admin.config_set("maxmemory-policy", "volatile-lru")
    with pytest.raises(StateError, match=r"maxmemory-policy is volatile-lru.* while the topology ran"):
        driver.batch(rows(a=1), 2)


def test_a_cluster_and_a_replica_are_refused(own_server: Callable[..., Any]) -> None:
    primary = own_server("redis")
    for options, why in (
        ({"cluster-enabled": "yes"}, "Redis Cluster, which is not supported"),
        ({"replicaof": f"127.0.0.1 {primary.port}"}, "is a replica, which takes no writes"),
    ):
        server = own_server("redis", **options)
        with pytest.raises(StateError, match=why):  # a replica is away while it loads its primary's data
            again_for(20, 0.1, is_away, partial(Driver, RedisMapState.opaque(server.url, "h"), SUM))
        server.close()


def is_away(error: Exception) -> bool:
    return isinstance(error, FailedException)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "appendonly yes, appendfsync always: a crash loses nothing"),
        ({"appendfsync": "everysec"}, "appendfsync everysec: a crash loses the last batches, about a second of them"),
        ({"appendonly": "no"}, "appendonly is no: a crash loses all batches since the last snapshot"),
    ],
    ids=["always", "everysec", "memory"],
)
def test_a_start_says_what_a_crash_of_the_server_may_lose(
    own_server: Callable[..., Any], caplog: pytest.LogCaptureFixture, options: dict, said: str
) -> None:
    server = own_server("redis", **options)
    factory = RedisMapState.opaque(server.url, "h")
    with caplog.at_level(logging.INFO, "trident_py"):
        Driver(factory, SUM).batch(rows(a=1), 1)
    (line,) = [record for record in caplog.records if said in record.message]
    assert line.levelno == (logging.INFO if said.endswith("nothing") else logging.WARNING)
    (finding,) = factory.check()
    assert finding.level == "ok" and said in finding.text


def test_a_user_needs_no_more_rights_than_are_told(own_server: Callable[..., Any], hash: str) -> None:
    """Those of the error's advice; CONFIG is not among them."""
    server = own_server("redis")
    rights = "+eval +evalsha +script +info +scan +del +exists +pexpire +@hash +@string"
    admin = server_of(server.url).client
    admin.execute_command("ACL", "SETUSER", "me", "on", ">hush", "~trident:*", "~h", *rights.split())
    url = server.url.replace("redis://", "redis://me:hush@")
    Driver(RedisMapState.opaque(url, "h"), SUM).batch(rows(a=1), 1)
    (finding,) = RedisMapState.opaque(url, "h").check()
    assert finding.text == "the server does not tell how it writes to disk"
    with pytest.raises(StateError, match=r"NoPermissionError.* Allow this user EVAL, EVALSHA") as told:
        Driver(RedisMapState.opaque(url, "other"), SUM)
    assert "hush" not in str(told.value)


def test_a_password_is_needed_and_not_shown(own_server: Callable[..., Any]) -> None:
    server = own_server("redis")
    server_of(server.url).client.config_set("requirepass", "hush")
    close_servers()
    wrong = server.url.replace("redis://", "redis://:hish@")
    for url in (server.url, wrong):
        with pytest.raises(StateError, match="Check the user and the password in the URL") as told:
            Driver(RedisMapState.opaque(url, "h"), SUM)
        assert "hish" not in str(told.value)
    Driver(RedisMapState.opaque(server.url.replace("redis://", "redis://:hush@"), "h"), SUM).batch(rows(a=1), 1)


# -- a server that loses what it has acknowledged


@pytest.fixture
def forgetful(own_server: Callable[..., Any]) -> Any:
    """It has no log: a restart goes back to the last snapshot."""
    return own_server("redis", appendonly="no")


def back(server: Any) -> None:
    server.kill()
    server.start()


def test_a_commit_that_redis_has_lost_is_replayed(forgetful: Any) -> None:
    factory = RedisMapState.opaque(forgetful.url, "h")
    driver = Driver(factory, SUM)
    driver.batch(rows(a=1, b=1), 1)
    driver.participant.prepare(2, 0, 2)
    server_of(forgetful.url).client.save()
    receipts = driver.tasks(rows(a=1, b=1), 2)
    assert factory.stored()[("a",)] == OpaqueValue(2, 2, 1)
    back(forgetful)
    assert factory.stored()[("a",)] == OpaqueValue(1, 1, None)
    with pytest.raises(FailedException, match=r"does not have the marks of all of them"):
        driver.publish(2, 0, receipts)
    driver.batch(rows(a=1, b=1), 2, attempt=1)
    assert factory.stored() == {(name,): OpaqueValue(2, 2, 1) for name in "ab"}


def test_a_batch_that_redis_has_lost_ends_the_run_and_is_told_at_the_start(forgetful: Any) -> None:
    factory = RedisMapState.opaque(forgetful.url, "h")
    driver = Driver(factory, SUM)
    driver.batch(rows(a=1), 1)
    server_of(forgetful.url).client.save()
    driver.batch(rows(a=1), 2)
    driver.batch(rows(a=1), 3)
    back(forgetful)
    with pytest.raises(StateError, match="its last complete batch is 1, and this driver has completed batch 3"):
        driver.batch(rows(a=1), 4)
    assert factory.stored() == {("a",): OpaqueValue(1, 1, None)}


def test_a_beginning_that_redis_has_lost_ends_the_run(forgetful: Any) -> None:
    factory = RedisMapState.opaque(forgetful.url, "h")
    driver = Driver(factory, SUM)
    driver.batch(rows(a=1), 1)
    server_of(forgetful.url).client.save()
    driver.participant.prepare(2, 0, 1)
    back(forgetful)
    with pytest.raises(StateError, match="has lost the beginning of batch 2, attempt 0"):
        driver.tasks(rows(a=1), 2, of=1)
    server_of(forgetful.url).client.flushall()
    with pytest.raises(StateError, match="its ledger in Redis is gone or older than this driver"):
        driver.tasks(rows(a=1), 2, of=1)


# -- a map without txids in its values


def test_a_plain_map_remembers_its_batches_in_the_ledger_alone(redis: str, hash: str, reader: Any) -> None:
    factory = RedisMapState.nonTransactional(redis, hash)
    first = Driver(factory, SUM)
    first.batch(rows(b=2), 1)
    first.run(rows(a=1), 2)  # not published
    assert (first.participant.remembered(first.conf).written, first.participant.remembered(first.conf).whole) == (2, 1)
    with pytest.raises(LineageError, match="remembers batch 2"):
        Driver(factory, SUM, "second")
    told = {"topology.lineage.abandon": "first"}
    second = Driver(factory, SUM, "second", **told)
    second.batch(rows(a=1), 1)
    second.batch(rows(a=1), 1)  # a replay counts again: at least once
    assert reader.hgetall(hash) == {b"a": b"3", b"b": b"2"}
    found = second.participant.remembered(second.conf)
    assert (found.lineage, found.written, found.whole, found.last) == ("second", 1, 1, 1)
