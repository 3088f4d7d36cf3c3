"""The ports of WordCountTridentRedis and WordCountTridentRedisMap: what Storm writes to Redis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis as client
from ported import finished, printed
from redis_clients import close_servers

from examples import trident_redis, trident_redis_map
from trident_py import LocalCluster

WORDS = ("storm", "trident", "needs", "javadoc")


@pytest.fixture
def reader(redis: str) -> Iterator[Any]:
    """A client of a Redis without the example's hash and its ledger."""
    with client.Redis.from_url(redis, decode_responses=True) as reader:
        empty(reader)
        yield reader
        empty(reader)
    close_servers()


def empty(reader: Any) -> None:
    for key in ("test", *reader.scan_iter("trident:*:{test}:test*")):
        reader.delete(key)


def check_texts(cluster: Any, url: str, reader: Any) -> None:
    running = finished(cluster, trident_redis.build(url))
    assert reader.hgetall("test") == {f"test_{word}": "1" for word in WORDS}
    assert reader.ttl("test") > 86_000_000
    assert sorted(running.collected("found")[2]) == sorted((word, f"test_{word}", "1") for word in WORDS)


def check_sums(cluster: Any, url: str, reader: Any) -> None:
    running = finished(cluster, trident_redis_map.build(url, cycles=3))
    assert reader.hgetall("test") == dict.fromkeys(WORDS, "[3,3]")
    found = {txid: sorted(rows) for txid, rows in running.collected("found").items()}
    assert found == {txid: sorted((word, txid - 1 or None) for word in WORDS) for txid in (1, 2, 3)}


def test_the_texts_are_storms(redis: str, reader: Any) -> None:
    with LocalCluster() as cluster:
        check_texts(cluster, redis, reader)


def test_the_sums_are_storms(redis: str, reader: Any) -> None:
    with LocalCluster() as cluster:
        check_sums(cluster, redis, reader)


@pytest.mark.parametrize("module", ["trident_redis", "trident_redis_map"])
def test_the_modules_print_what_the_queries_find(module: str, redis: str, reader: Any) -> None:
    first, second = printed(module, redis, "--local")
    assert first.startswith("batch 1 found [('storm', ") and "None" in first
    assert second.startswith("batch 2 found [('storm', ") and "1" in second and "None" not in second


@pytest.mark.spark
@pytest.mark.whole("test_the_texts_are_storms")
@pytest.mark.parametrize("check", [check_texts, check_sums])
def test_what_is_written_is_the_same_on_spark(check: Any, redis: str, reader: Any, spark_cluster: Any) -> None:
    check(spark_cluster(), redis, reader)
