"""The ports of TridentMinMaxOfDevicesTopology and TridentMinMaxOfVehiclesTopology: the winners of each batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ported import finished, printed

from examples import trident_min_max_of_devices, trident_min_max_of_vehicles
from trident_py import LocalCluster


def check_devices(cluster: Any) -> None:
    running = finished(cluster, trident_min_max_of_devices.build(batches=3))
    batches = running.collected("devices")
    assert {txid: len(rows) for txid, rows in batches.items()} == {1: 10, 2: 10, 3: 10}
    for field, name, best in ((0, "min id", min), (1, "max count", max)):
        assert running.collected(name) == {txid: [last_of(rows, field, best)] for txid, rows in batches.items()}


def last_of(rows: list[tuple], field: int, best: Callable[..., Any]) -> tuple:
    """Of equal tuples the last one wins, as in Storm."""
    wins = best(row[field] for row in rows)
    return [row for row in rows if row[field] == wins][-1]


def check_vehicles(cluster: Any) -> None:
    running = finished(cluster, trident_min_max_of_vehicles.build())
    batches = running.collected("vehicles")
    assert [len(rows) for rows in batches.values()] == [10, 10]
    for txid, rows in batches.items():
        speeds = [(vehicle.maxSpeed, *row) for row in rows for vehicle in row[:1]]
        economies = [(vehicle.efficiency, *row) for row in rows for vehicle in row[:1]]
        expected = {
            "slowest driver": last_of(speeds, 0, min)[2:],
            "fastest driver": last_of(speeds, 0, max)[2:],
            "least efficient": last_of(economies, 0, min)[1:],
            "most efficient": last_of(economies, 0, max)[1:],
        }
        assert {name: running.collected(name)[txid] for name in expected} == {n: [row] for n, row in expected.items()}


def test_each_batch_of_devices_has_its_smallest_id_and_its_largest_count() -> None:
    with LocalCluster() as cluster:
        check_devices(cluster)


def test_each_batch_of_vehicles_has_its_winners_with_their_drivers() -> None:
    with LocalCluster() as cluster:
        check_vehicles(cluster)


def test_a_batch_of_devices_is_kept_until_its_ack() -> None:
    spout = trident_min_max_of_devices.RandomNumberGeneratorSpout(["n"], 10, 1000)
    emitted: list[list[Any]] = [[], []]
    for rows in emitted:
        spout.emitBatch(1, type("Collector", (), {"emit": staticmethod(rows.append)}))
    assert emitted[0] == emitted[1] and list(spout.batches) == [1]
    spout.ack(1)
    assert spout.batches == {}


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("trident_min_max_of_devices", ["min id", "max count"]),
        ("trident_min_max_of_vehicles", ["slowest driver", "fastest driver", "least efficient", "most efficient"]),
    ],
)
def test_the_modules_print_the_winners(module: str, names: list[str]) -> None:
    lines = printed(module, "--local")
    winners = [line.split(": {1: [(")[0] for line in lines if "DEBUG" not in line]
    assert winners == names
    assert sum("DEBUG(##### " in line for line in lines) >= 20


@pytest.mark.spark
@pytest.mark.whole("test_each_batch_of_devices_has_its_smallest_id_and_its_largest_count")
def test_the_winners_are_the_same_on_spark(spark_cluster: Any) -> None:
    cluster = spark_cluster()
    check_devices(cluster)
    check_vehicles(cluster)
