"""Values that somebody else has deleted: told at the start and in each batch, and never counted from zero."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis as client
from contracts.crashing import Driver
from contracts.losing import Idle
from redis_clients import close_servers
from redis_contract import COUNT
from servers.waiting import soon

from states.redis import FieldMapper, RedisMapState, RedisState, RedisStateUpdater
from trident_py.engine.store_position import CheckpointState
from trident_py.errors import LineageError, StateError
from trident_py.operations.builtin import Sum
from trident_py.state import SILENT, MapCombinerAggStateUpdater, OpaqueValue
from trident_py.tuples import Fields, TridentTuple

SUM = MapCombinerAggStateUpdater(Sum(), "word", "n")
WORDS = Fields("word", "n")
GONE = r"state 's' of topology 'contract': nothing is left in .*batches up to 2 there, and they are not sent again"


def rows(**counts: int) -> list[TridentTuple]:
    return [TridentTuple.of(WORDS, each) for each in counts.items()]


@pytest.fixture
def url(redis: str) -> Iterator[str]:
    url = redis.removesuffix("/0") + "/5"
    yield url
    close_servers()
    with client.Redis.from_url(url) as last:
        last.flushdb()


@pytest.fixture
def reader(url: str) -> Iterator[Any]:
    with client.Redis.from_url(url) as reader:
        yield reader


def hash_name() -> str:
    return f"gone-{os.getpid()}-{next(COUNT)}"


def make_map(url: str) -> tuple[Any, Any]:
    return RedisMapState.opaque(url, hash_name()), SUM


def make_strings(url: str) -> tuple[Any, Any]:
    return RedisMapState.nonTransactional(url), SUM


def make_texts(url: str) -> tuple[Any, Any]:
    name = hash_name()
    return RedisState(url, name), RedisStateUpdater(FieldMapper("word", "n", name))


def value_keys(reader: Any) -> list[bytes]:
    return [key for key in reader.scan_iter() if not key.startswith(b"trident:")]


def delete(reader: Any) -> None:
    reader.delete(*value_keys(reader))


def rename(reader: Any) -> None:
    for key in value_keys(reader):
        reader.rename(key, b"trident:elsewhere:" + key)


def expire(reader: Any) -> None:
    for key in value_keys(reader):
        reader.pexpire(key, 1)
    assert soon(lambda: not value_keys(reader))


def on(factory: Any, updater: Any, committed: int, **more: Any) -> Driver:
    record = {"base": 0, "topology": "contract", "states": {"s": ["", 0, 0]}}
    standing = CheckpointState("checkpoint", "contract", record, "first", committed)
    return Driver(factory, updater, standing=standing, **more)


@pytest.mark.parametrize("take", [delete, rename, expire])
@pytest.mark.parametrize("make", [make_map, make_strings, make_texts])
def test_values_that_are_gone_end_the_run_and_the_next_start(
    url: str, reader: Any, make: Callable[[str], tuple[Any, Any]], take: Callable[[Any], None]
) -> None:
    factory, updater = make(url)
    driver = Driver(factory, updater)
    for txid in (1, 2):
        driver.batch(rows(a=1, b=1), txid)
    take(reader)
    for _ in range(2):
        with pytest.raises(StateError, match=GONE):
            driver.batch(rows(a=1), 3)
    for _ in range(2):
        with pytest.raises(StateError, match=GONE) as told:
            on(factory, updater, 2)
    assert factory.stored() == {}
    ledger = factory.place.ledger("contract", "s")
    assert f"delete the state's ledger, the key {ledger!r}" in str(told.value)
    reader.delete(ledger)
    with pytest.raises(LineageError, match="knows nothing of this state") as choices:
        on(factory, updater, 2)
    assert "'s@0:2'" in str(choices.value)
    on(factory, updater, 2, **{"topology.lineage.accept": "s@0:2"}).batch(rows(a=1), 3)
    on(factory, updater, 3)
    assert list(factory.stored()) == [("a",)]


def test_values_deleted_within_a_batch_are_told_at_its_commit(url: str, reader: Any) -> None:
    """Also if another partition has written since: neither makes the hash anew."""
    factory, _ = make_map(url)
    driver = Driver(factory, SUM)
    driver.batch(rows(a=1, b=1), 1)
    driver.participant.prepare(2, 0, 2)
    states = [factory.makeState(driver.conf, None, partition, 2) for partition in range(2)]
    for state, word in zip(states, "ab", strict=True):
        state.beginCommit(2)
        SUM.updateState(state, rows(**{word: 1}), SILENT)
    delete(reader)
    for state in states:
        with pytest.raises(StateError, match="nothing is left in hash"):
            state.commit(2)
    assert not reader.exists(factory.hash)


def test_values_that_come_back_are_continued(url: str, reader: Any) -> None:
    factory, _ = make_map(url)
    Driver(factory, SUM).batch(rows(a=1), 1)
    kept = reader.dump(factory.hash)
    delete(reader)
    with pytest.raises(StateError, match="nothing is left"):
        on(factory, SUM, 1)
    reader.restore(factory.hash, 0, kept)
    on(factory, SUM, 1).batch(rows(a=1), 2)
    assert factory.stored() == {("a",): OpaqueValue(2, 2, 1)}


@pytest.mark.parametrize("make", [make_map, make_strings, make_texts])
def test_a_state_that_has_no_value_yet_goes_on(url: str, make: Callable[[str], tuple[Any, Any]]) -> None:
    """Its batches bring no tuples, or its updater writes nothing."""
    factory, updater = make(url)
    driver = Driver(factory, Idle())
    for txid in (1, 2):
        driver.batch(rows(a=1), txid)
    on(factory, Idle(), 2).batch(rows(a=1), 3)
    driver = on(factory, updater, 3)
    driver.batch([], 4)
    driver.batch(rows(a=1), 5)
    assert list(factory.stored()) == [("a",)]


@pytest.mark.parametrize("hash", ["h", None])
def test_values_that_expire_as_declared_are_not_missed(url: str, reader: Any, hash: str | None) -> None:
    """Also if earlier runs have kept them for ever, and from then on if later ones do."""
    ever, passing = RedisMapState.opaque(url, hash), RedisMapState.opaque(url, hash, expireIntervalSec=0.05)
    Driver(ever, SUM).batch(rows(a=1), 1)
    driver = on(passing, SUM, 1)
    driver.batch(rows(a=1), 2)
    assert soon(lambda: not value_keys(reader))
    driver.batch([], 3)
    on(passing, SUM, 3).batch([], 4)
    driver = on(ever, SUM, 4)
    driver.batch(rows(a=1), 5)
    assert ever.stored() == {("a",): OpaqueValue(5, 1, None)}
    delete(reader)
    with pytest.raises(StateError, match="nothing is left"):
        driver.batch(rows(a=1), 6)


@pytest.mark.parametrize("hash", ["h", None])
def test_values_that_no_longer_expire_stay(url: str, reader: Any, hash: str | None) -> None:
    Driver(RedisMapState.opaque(url, hash, expireIntervalSec=60), SUM).batch(rows(a=1), 1)
    key = hash or "a"
    assert reader.pttl(key) > 0
    on(RedisMapState.opaque(url, hash), SUM, 1).batch(rows(a=1), 2)
    assert reader.pttl(key) == -1


def test_one_string_of_several_may_be_deleted(url: str, reader: Any) -> None:
    """As a row of a table; the ledger names another one then."""
    factory, _ = make_strings(url)
    driver = Driver(factory, SUM)
    driver.batch(rows(a=1, b=1, c=1), 1, of=1)
    ledger = factory.place.ledger("contract", "s")
    first = reader.hget(ledger, "kept")
    reader.delete(first)
    on(factory, SUM, 1)
    driver = on(factory, SUM, 1)
    driver.batch(rows(d=1), 2, of=1)
    assert reader.hget(ledger, "kept") == b"d"
    assert {(key.decode(),): 1 for key in (b"a", b"b", b"c", b"d") if key != first} == factory.stored()
    delete(reader)
    with pytest.raises(StateError, match="nothing is left in the strings"):
        driver.batch(rows(a=1), 3)


@pytest.mark.parametrize("make", [make_map, make_strings, make_texts])
def test_a_ledger_of_an_older_version_goes_on_and_notes_it(
    url: str, reader: Any, make: Callable[[str], tuple[Any, Any]]
) -> None:
    """It does not name a key, so values that are gone before the first batch are not missed."""
    factory, updater = make(url)
    Driver(factory, updater).batch(rows(a=1), 1)
    reader.hdel(factory.place.ledger("contract", "s"), "kept")
    delete(reader)
    driver = on(factory, updater, 1)
    driver.batch([], 2)
    driver.batch(rows(a=1), 3)
    delete(reader)
    with pytest.raises(StateError, match="nothing is left"):
        driver.batch(rows(a=1), 4)
