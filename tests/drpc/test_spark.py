"""Requests to topologies that run on Spark: answered in the driver, over the states that the batches write."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from states.sql import SqlMapState
from trident_py import DRPCExecutionException, LocalDRPC, TridentTopology
from trident_py.operations.builtin import Count
from trident_py.testing import FeederBatchSpout, MemoryMapState

from .functions import word_count, words

pytestmark = pytest.mark.spark

BATCHES = 6


def test_requests_are_answered_while_batches_run_on_spark(spark_cluster: Callable[..., Any], tmp_path: Path) -> None:
    """One state in the driver's memory and one in a database; each answer has every batch that was complete."""
    table = SqlMapState.opaque(f"sqlite:///{tmp_path}/counts.db", "counts", "word string", "n bigint")
    drpc, topology, feeder = LocalDRPC(), TridentTopology(), FeederBatchSpout("sentence")
    words(topology, word_count(topology, feeder, MemoryMapState.Factory(), 2), drpc, "memory")
    other = FeederBatchSpout("sentence")
    split = topology.newStream("other", other).each("sentence", lambda text: text.split(), "word").groupBy("word")
    counts = split.persistentAggregate(table, Count(), "count").parallelismHint(2)
    words(topology, counts, drpc, "sql")
    running = spark_cluster().submitTopology("asked", {}, topology.build())
    over, wrong, asked = threading.Event(), [], [0]
    complete, begun = [0], [0]

    def ask() -> None:
        while not over.wait(0.01):
            for function in ("memory", "sql"):
                least = complete[0]
                found, most = drpc.execute(function, "b", 60)[0][0], begun[0]
                asked[0] += 1
                if not least <= found <= most:
                    wrong.append((function, least, found, most))

    client = threading.Thread(target=ask)
    client.start()
    try:
        for number in range(1, BATCHES + 1):
            begun[0] = number
            feeder.feed([("a b",), ("c",)], timeout=300)
            other.feed([("a b",), ("c",)], timeout=300)
            complete[0] = number
    finally:
        over.set()
        client.join(60)
    assert wrong == [] and asked[0] > 2 * BATCHES
    assert drpc.execute("memory", "a b c") == [[3 * BATCHES]] == drpc.execute("sql", "a b c")
    running.stop()
    with pytest.raises(DRPCExecutionException, match="no running topology answers the function 'sql'"):
        drpc.execute("sql", "a")


