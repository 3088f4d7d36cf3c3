"""The port of TridentReach answers as real Storm does."""

from __future__ import annotations

from typing import Any

import pytest
from ported import printed

from examples import trident_reach
from trident_py import LocalCluster, LocalDRPC

REACH = {
    "aaa": 0,
    "foo.com/blog/1": 16,
    "engineering.twitter.com/blog/5": 14,
    "tech.backtype.com/blog/123": 7,
}


def reach(cluster: Any) -> dict[str, Any]:
    drpc = LocalDRPC()
    cluster.submitTopology("reach", {}, trident_reach.build(drpc).build())
    return {url: drpc.execute("reach", url) for url in REACH}


def test_the_answers_are_storms() -> None:
    with LocalCluster() as cluster:
        assert reach(cluster) == {url: [[count]] for url, count in REACH.items()}


def test_the_module_prints_the_answers() -> None:
    assert printed("trident_reach", "--local") == ["REACH: [[0]]", "REACH: [[16]]", "REACH: [[14]]"]


@pytest.mark.spark
@pytest.mark.whole("test_the_answers_are_storms")
def test_the_answers_are_the_same_on_spark(spark_cluster: Any) -> None:
    assert reach(spark_cluster()) == {url: [[count]] for url, count in REACH.items()}
