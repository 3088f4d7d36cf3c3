"""The port of TridentWindowingInmemoryStoreTopology: the counts that Storm's window emits, from memory and a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ported import finished, printed, until

from examples import trident_windowing
from states.sql import SqlWindowsStoreFactory
from trident_py import LocalCluster
from trident_py.windowing import InMemoryWindowsStoreFactory, SlidingCountWindow

STORMS = [*range(100, 1001, 100), 1000, 1000]
"""34 cycles of 36 words through a window of 1000 by 100: the first windows are partial."""


def counts(running: Any) -> list[int]:
    return [count for rows in running.collected("counts").values() for (count,) in rows]


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_the_counts_are_storms(store: str, tmp_path: Path) -> None:
    kept = SqlWindowsStoreFactory(f"sqlite:///{tmp_path}/windows.db", "words")
    factory = InMemoryWindowsStoreFactory() if store == "memory" else kept
    topology = trident_windowing.build(factory, SlidingCountWindow.of(1000, 100), cycles=34)
    with LocalCluster() as cluster:
        running = finished(cluster, topology)
    assert counts(running) == STORMS
    assert list(running.collected("counts"))[:3] == [5, 10, 14]  # after 108, 216 and 304 words


def test_a_window_in_a_database_goes_on_in_the_next_run(tmp_path: Path) -> None:
    """A second run starts with the words of the first; its own 36 words come behind them."""
    store = SqlWindowsStoreFactory(f"sqlite:///{tmp_path}/windows.db", "words")
    window = SlidingCountWindow.of(30, 10)
    with LocalCluster() as cluster:
        assert counts(finished(cluster, trident_windowing.build(store, window))) == [10, 20, 30]
    with LocalCluster() as cluster:
        endless = trident_windowing.build(store, window, cycles=None)
        running = until(cluster, endless, 4, {"topology.txid.base": 2})
        found = running.collected("counts")
    assert [found[txid] for txid in (3, 4)] == [[(30,), (30,)], [(30,), (30,)]]


def test_the_module_prints_the_counts(tmp_path: Path) -> None:
    for arguments in (["--local"], ["--local", f"sqlite:///{tmp_path}/windows.db"]):
        lines = printed("trident_windowing", *arguments)
        assert lines == [*(f"Received tuple: [{count}]" for count in STORMS), f"COUNTS: {STORMS}"]


@pytest.mark.spark
@pytest.mark.whole("test_the_counts_are_storms")
@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_the_counts_are_the_same_on_spark(store: str, spark_cluster: Any, tmp_path: Path) -> None:
    kept = SqlWindowsStoreFactory(f"sqlite:///{tmp_path}/windows.db", "words")
    factory = InMemoryWindowsStoreFactory() if store == "memory" else kept
    topology = trident_windowing.build(factory, SlidingCountWindow.of(1000, 100), cycles=34, batch=50)
    assert counts(finished(spark_cluster(), topology)) == STORMS
