"""Redis states by name, in a file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis as client
from contracts.crashing import Driver
from redis_clients import close_servers
from redis_contract import COUNT

import states
from states.redis import FieldMapper, RedisMapState, RedisState, RedisStateUpdater
from trident_py.errors import DefinitionError
from trident_py.state import Needs
from trident_py.tuples import Fields, TridentTuple


def load(folder: Path, text: str) -> dict[str, Any]:
    path = folder / "states.yaml"
    path.write_text(f"states:\n  s: {text}")
    return states.load(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "{type: redis-map, kind: opaque, url: 'redis://h:1/2', hash: counts}",
            RedisMapState.opaque("redis://h:1/2", "counts"),
        ),
        (
            "{type: redis-map, kind: non-transactional, url: 'unix:///run/redis.sock?db=1'}",
            RedisMapState.nonTransactional("unix:///run/redis.sock?db=1"),
        ),
        (
            "{type: redis, url: 'redis://h', hash: latest, key: sensor, value: celsius, expireIntervalSec: 60}",
            RedisState("redis://h", "latest", FieldMapper("sensor", "celsius", "latest"), 60),
        ),
        (
            "{type: redis, url: 'redis://h', key: sensor, value: celsius}",
            RedisState("redis://h", None, FieldMapper("sensor", "celsius")),
        ),
        (
            "{type: redis-map, kind: transactional, url: 'redis://h', globalKey: all, expireIntervalSec: 1.5}",
            RedisMapState.transactional("redis://h", globalKey="all", expireIntervalSec=1.5),
        ),
    ],
)
def test_a_file_makes_the_factories_that_code_would_make(tmp_path: Path, text: str, expected: Any) -> None:
    assert load(tmp_path, text) == {"s": expected}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{type: redis-map, kind: opaque}", "states.s.url: is missing"),
        ("{type: redis, url: 'redis://h', key: k}", "states.s.value: is missing"),
        ("{type: redis-map, kind: opaque, url: 'http://:hush@h'}", "its scheme must be redis, rediss, unix"),
        ("{type: redis-map, kind: opaque, url: 'redis://:hu/sh@h/0'}", "is not readable: percent-encode"),
        ("{type: redis-map, kind: opaq, url: 'redis://h'}", "states.s.kind: found 'opaq'"),
        ("{type: redis-map, kind: opaque, url: 'redis://h', hash: ''}", "states.s.hash"),
        ("{type: redis-map, kind: opaque, url: 'redis://h', expireIntervalSec: -1}", "states.s.expireIntervalSec"),
    ],
)
def test_a_bad_file_is_refused_in_words(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DefinitionError) as told:
        load(tmp_path, text)
    assert said in str(told.value) and "hush" not in str(told.value) and "hu/sh" not in str(told.value)


def test_a_look_at_the_store_says_what_it_keeps(tmp_path: Path, redis: str) -> None:
    load(tmp_path, f"{{type: redis-map, kind: opaque, url: '{redis}'}}")
    (look,) = states.loading.look(tmp_path / "states.yaml")
    assert [(finding.level, finding.text) for finding in look.findings] == [
        ("ok", "appendonly yes, appendfsync always: a crash loses nothing")
    ]
    load(tmp_path, "{type: redis-map, kind: opaque, url: 'redis://:hush@127.0.0.1:1/0'}")
    (look,) = states.loading.look(tmp_path / "states.yaml")
    assert look.stops and "The server is gone" in look.findings[0].text and "hush" not in look.findings[0].text


@pytest.mark.parametrize("key", ["hash", "owner", "ledger", "marks"])
@pytest.mark.parametrize("make", [RedisMapState.opaque, RedisState])
def test_a_look_names_a_key_of_another_type(redis: str, key: str, make: Callable[..., Any]) -> None:
    factory = make(redis, f"look-{os.getpid()}-{next(COUNT)}")
    place = factory.place
    name = {"hash": place.hash, "owner": place.owner, "ledger": place.ledger("t", "s"), "marks": place.marks("t", "s")}
    with client.Redis.from_url(redis) as admin:
        admin.set(place.owner, json.dumps(["t", "s", ""]))
        assert [finding.level for finding in factory.check()] == ["ok"]
        admin.delete(name[key])
        admin.rpush(name[key], "a list")
        finding = factory.check()[-1]
        admin.delete(*name.values())
    assert finding.level == "error"
    assert "WRONGTYPE" in finding.text and "A key of the state holds another type of Redis" in finding.text
    assert {"hash": f"hash {place.hash!r}"}.get(key, key) in finding.text
    close_servers()


def test_a_look_says_that_the_values_are_gone(redis: str) -> None:
    factory = RedisState(redis, f"look-{os.getpid()}-{next(COUNT)}")
    updater = RedisStateUpdater(FieldMapper("word", "n", factory.hash))
    Driver(factory, updater).batch([TridentTuple.of(Fields("word", "n"), ("a", 1))], 1)
    assert [finding.level for finding in factory.check()] == ["ok"]
    with client.Redis.from_url(redis) as admin:
        admin.delete(factory.hash)
    kept, finding = factory.check()
    assert (kept.level, finding.level) == ("ok", "error") and "nothing is left in hash" in finding.text
    close_servers()


def test_the_guarantee_names_the_condition_that_redis_sets() -> None:
    from trident_py import TridentTopology
    from trident_py.operations.builtin import Count
    from trident_py.testing import FixedBatchSpout

    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word", 2, ("the",))).groupBy("word")
    words.persistentAggregate(RedisMapState.opaque("redis://h", "o"), Count(), "n")
    words.persistentAggregate(RedisMapState.nonTransactional("redis://h", "p"), Count(), "n")
    first, second = topology.guarantees()
    assert first.guarantee == "exactly once"
    assert "if Redis loses no acknowledged write (appendonly yes, appendfsync always)" in first.reason
    assert second.guarantee == "at least once" and "Redis" not in second.reason


@pytest.mark.parametrize(
    ("url", "store", "needs"),
    [
        ("redis://localhost", "localhost:6379/0", ("localhost:6379",)),
        ("redis://:hush@127.0.0.1:6379/0", "localhost:6379/0", ("127.0.0.1:6379",)),
        ("rediss://me:hush@Redis.Example:7/3?socket_timeout=1", "redis.example:7/3", ("redis.example:7",)),
        ("redis://[::1]:7?db=2", "localhost:7/2", ("[::1]:7",)),
    ],
)
def test_a_url_has_one_spelling_and_tells_what_a_machine_needs(url: str, store: str, needs: tuple[str, ...]) -> None:
    for factory in (RedisMapState.opaque(url, "h"), RedisState(url, "h")):
        assert factory.location.stores == {store} and factory.location.names == {"hash h"}
        assert factory.needs == Needs(("redis",), "trident-py[redis]", needs)
        assert "hush" not in factory.location.shown + repr(factory) + str(factory.needs)


def test_a_socket_is_a_path_on_each_machine() -> None:
    factory = RedisMapState.opaque("unix:///run/redis.sock?db=1")
    assert factory.location.stores == {"/run/redis.sock/1"} and factory.location.names == {"strings"}
    assert factory.needs == Needs(("redis",), "trident-py[redis]", paths=("/run/redis.sock",))
